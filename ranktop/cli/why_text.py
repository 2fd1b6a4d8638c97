"""`why` for a person: one page, each claim with how sure it is and where it comes from."""

from __future__ import annotations

from collections.abc import Iterator

from ranktop.clock import iso_utc
from ranktop.folding import folded
from ranktop.printable import printable
from ranktop.why.death import Claim, Death
from ranktop.why.evidence import Evidence
from ranktop.why.judge import Judgement

_WIDTH = 80
_MAX_DEATHS = 8
_INDENT = " " * 22


def why_text(judgement: Judgement, evidence: Evidence, since: str) -> str:
    """Plain text for 80 columns."""
    return printable("\n".join(_lines(judgement, evidence, since)))


def _lines(judgement: Judgement, evidence: Evidence, since: str) -> Iterator[str]:
    count = len(judgement.deaths)
    yield f"{count or 'no'} death{'' if count == 1 else 's'} found in the last {since} and in the files given"
    for death in judgement.deaths[:_MAX_DEATHS]:
        yield ""
        yield from _death(death)
    if count > _MAX_DEATHS:
        yield ""
        yield f"and {count - _MAX_DEATHS} older ones (--json has all)"
    if judgement.others:
        yield ""
        yield "kills of other programs:"
        for death in judgement.others[:_MAX_DEATHS]:
            yield _wrapped(f"{_when(death)}  {death.title}", "  ")
    if evidence.series:
        yield ""
        yield "Prometheus, of every node that it scrapes:"
        for series in evidence.series:
            yield _wrapped(f"{series.query}: {series.value:g}  {series.labels}", "  ")
    yield ""
    yield "looked at:"
    for reading in evidence.readings:
        yield _wrapped(f"{reading.state:<7} {reading.source}: {reading.detail}", "  ", " " * 10)


def _death(death: Death) -> Iterator[str]:
    yield _wrapped(f"{_when(death)}  {death.cause}: {death.title}")
    for claim in death.claims:
        yield _claim(claim)


def _claim(claim: Claim) -> str:
    source = f" [{claim.source}]" if claim.source else ""
    name = claim.about.replace("_", " ")
    return _wrapped(f"{claim.text}{source}", f"  {claim.certainty:<8} {name:<11}", _INDENT)


def _when(death: Death) -> str:
    return iso_utc(death.at_unix_seconds) if death.at_unix_seconds is not None else "time unknown"


def _wrapped(text: str, first: str = "", rest: str | None = None) -> str:
    rest = rest if rest is not None else first + "  "
    return "\n".join(folded(text, _WIDTH, initial_indent=first, subsequent_indent=rest, break_long_words=False))
