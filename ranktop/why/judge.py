"""From evidence to deaths."""

from __future__ import annotations

from msgspec import Struct

from ranktop.why.death import Death
from ranktop.why.evidence import Evidence
from ranktop.why.faults import gpu_deaths, log_deaths, orphan_deaths, recorded_deaths
from ranktop.why.memory import oom_deaths


class Judgement(Struct, frozen=True):
    """Deaths of SGLang's processes, the newest first, and kills of other programs."""

    deaths: tuple[Death, ...]
    others: tuple[Death, ...] = ()


def judge(evidence: Evidence) -> Judgement:
    """Every death that the evidence tells, each once: the kernel's word comes before a log's."""
    deaths = [*oom_deaths(evidence), *gpu_deaths(evidence)]
    deaths += log_deaths(evidence, deaths)
    deaths += recorded_deaths(evidence, deaths)
    deaths += orphan_deaths(evidence)
    deaths.sort(key=lambda death: -(death.at_unix_seconds or 0.0))
    return Judgement(
        tuple(death for death in deaths if death.is_sglang), tuple(death for death in deaths if not death.is_sglang)
    )
