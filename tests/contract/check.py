"""Hold one SGLang release against what ranktop relies on, and write its row of the version table.

`python tests/contract/check.py VERSION` (or `newest`): prints what is missing or has changed, adds the version to
`ranktop/reconcile/series_by_version.json`, exits 1 when something relied on is not there.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from collectors.serverlog_batches import match_batch
from collectors.serverlog_lines import match_message
from ranktop.reconcile.families import FAMILIES
from ranktop.reconcile.series_by_version import has_family, is_before
from tests.contract.relied_on import ARGUMENTS, LABELS, LOG_KINDS, LOG_KINDS_SINCE, TAG_WORDS, TEXTS
from tests.contract.wheel import NoRegistryError, Wheel, fetch, read, rendered

TABLE = Path(__file__).resolve().parents[2] / "ranktop" / "reconcile" / "series_by_version.json"


def problems(wheel: Wheel) -> list[str]:
    """What ranktop relies on and this release does not have, one line each."""
    return [*_metrics(wheel), *_arguments(wheel), *_log(wheel)]


def write_row(wheel: Wheel, table: Path = TABLE) -> bool:
    """Put the release's families into the table. True when the table changed."""
    before = table.read_text()
    content = json.loads(before)
    versions = sorted({*content["versions"], wheel.version}, key=_order)
    families: dict[str, list[str]] = {}
    for name in sorted(FAMILIES):
        having = set(content["families"].get(name, ())) - {wheel.version}
        if name in wheel.metrics:
            having.add(wheel.version)
        if having:
            families[name] = sorted(having, key=_order)
    rows = ",\n".join(f"{json.dumps(name)}: {json.dumps(having)}" for name, having in families.items())
    after = f'{{\n"versions": {json.dumps(versions)},\n"families": {{\n{rows}\n}}\n}}\n'
    if after != before:
        table.write_text(after)
    return after != before


def log_kinds(wheel: Wheel) -> frozenset[str]:
    """Kinds of log events that the release's templates give."""
    found: set[str] = set()
    for template in wheel.templates:
        for line in rendered(template):
            match = match_message(line) or match_batch(line)
            if match is not None:
                found.add(match[0])
    return frozenset(found)


def _metrics(wheel: Wheel) -> list[str]:
    found: list[str] = []
    for name, family in FAMILIES.items():
        metric = wheel.metrics.get(name)
        if metric is None:
            if has_family(name, wheel.version):
                found.append(f"metric {name} is gone")
            continue
        if metric.kind != {"summary": "histogram"}.get(family.kind, family.kind):
            found.append(f"metric {name} is a {metric.kind}, read as a {family.kind}")
        lacking = LABELS.get(name, frozenset()) - metric.labels
        if lacking:
            found.append(f"metric {name} has no label {', '.join(sorted(lacking))}")
    return found


def _arguments(wheel: Wheel) -> list[str]:
    found: list[str] = []
    for name, default in ARGUMENTS.items():
        if name not in wheel.arguments:
            found.append(f"server argument {name} is gone")
        elif ... not in (default, wheel.arguments[name]) and wheel.arguments[name] != default:
            found.append(f"server argument {name} defaults to {wheel.arguments[name]!r}, relied on {default!r}")
    return found


def _log(wheel: Wheel) -> list[str]:
    wanted = {*LOG_KINDS} | {
        kind for kind, since in LOG_KINDS_SINCE.items() if is_before(wheel.version, since) is False
    }
    found = [f"no log line gives {kind}" for kind in sorted(wanted - log_kinds(wheel))]
    texts = frozenset(wheel.templates)
    found += [f"the source has no text {text!r}" for text in TEXTS if not any(text in template for template in texts)]
    tags = [text for text in texts if text.startswith(TAG_WORDS) and "{" in text]
    found += [f"no rank tag {word!r}" for word in TAG_WORDS if not any(text.startswith(word + "{") for text in tags)]
    return found


def _order(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".")[:3])


def main() -> int:
    """Check the version on the command line; the exit status for the shell."""
    version = sys.argv[1] if len(sys.argv) > 1 else "newest"
    try:
        wheel = read(fetch(None if version == "newest" else version))
    except NoRegistryError as error:
        print(f"no registry answers: {error}", file=sys.stderr)
        return 3
    found = problems(wheel)
    for line in found:
        print(f"sglang {wheel.version}: {line}")
    new = sorted(name for name in wheel.metrics if name not in FAMILIES)
    print(f"sglang {wheel.version}: {len(found)} problems, {len(new)} families that ranktop does not read")
    print("version table " + ("written" if write_row(wheel) else "unchanged"))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
