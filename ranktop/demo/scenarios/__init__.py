"""What a stand-in node can play, and the findings that each scenario must give."""

from msgspec.structs import replace

from ranktop.demo.launch import VERSIONS
from ranktop.demo.scenarios.basic import BASIC
from ranktop.demo.scenarios.host import HOST
from ranktop.demo.scenarios.prefill import PREFILL
from ranktop.demo.scenarios.scenario import Event, GaugeOverride, HostScript, Scenario
from ranktop.demo.scenarios.tiers import TIERS
from ranktop.demo.scenarios.watching import WATCHING
from ranktop.demo.scenarios.wide import WIDTHS, widened, widths_of

SCENARIOS: dict[str, Scenario] = {scenario.name: scenario for scenario in (*BASIC, *HOST, *TIERS, *WATCHING, *PREFILL)}


def find_scenario(name: str) -> Scenario | None:
    """A scenario by its name; `NAME:RANKS` with more ranks, `NAME@VERSION` as another SGLang than 0.5.18, or both.

    None where there is no such.
    """
    wide, _, version = name.partition("@")
    base, _, ranks = wide.partition(":")
    scenario = SCENARIOS.get(base)
    if scenario is not None and ranks:
        scenario = widened(scenario, ranks)
    if scenario is None or (version and version not in VERSIONS):
        return None
    if version:
        scenario = replace(scenario, launch=scenario.launch._replace(version=version))
    return scenario if name == base else replace(scenario, name=name)


def why_no_scenario(name: str) -> str:
    """Where there is no scenario of that name: which part of it is wrong, and what is accepted there."""
    wide, _, version = name.partition("@")
    base, _, ranks = wide.partition(":")
    scenario = SCENARIOS.get(base)
    if scenario is None:
        return f"no scenario {base!r} (one of {', '.join(SCENARIOS)})"
    widths = widths_of(scenario)
    if ranks and not widths:
        return f"{name!r}: {base} has one size, {scenario.launch.gpus} ranks (give {base} alone)"
    if ranks not in ("", *map(str, widths)):
        others = ", ".join(f"{base}:{each}" for each in widths)
        return f"{name!r}: no node of {ranks!r} ranks ({base} has {scenario.launch.gpus}; or give {others})"
    return f"{name!r}: no SGLang {version!r} is played (one of {', '.join(VERSIONS)})"


__all__ = [
    "SCENARIOS",
    "WIDTHS",
    "Event",
    "GaugeOverride",
    "HostScript",
    "Scenario",
    "find_scenario",
    "why_no_scenario",
]
