"""What a stand-in node can play, and the findings that each scenario must give."""

from msgspec.structs import replace

from ranktop.demo.launch import VERSIONS
from ranktop.demo.scenarios.basic import BASIC
from ranktop.demo.scenarios.host import HOST
from ranktop.demo.scenarios.prefill import PREFILL
from ranktop.demo.scenarios.scenario import Event, GaugeOverride, HostScript, Scenario
from ranktop.demo.scenarios.tiers import TIERS
from ranktop.demo.scenarios.watching import WATCHING

SCENARIOS: dict[str, Scenario] = {scenario.name: scenario for scenario in (*BASIC, *HOST, *TIERS, *WATCHING, *PREFILL)}


def find_scenario(name: str) -> Scenario | None:
    """A scenario by its name, `NAME@VERSION` for another SGLang than 0.5.18; None where there is no such."""
    base, _, version = name.partition("@")
    scenario = SCENARIOS.get(base)
    if scenario is None or (version and version not in VERSIONS):
        return None
    return replace(scenario, name=name, launch=scenario.launch._replace(version=version)) if version else scenario


__all__ = ["SCENARIOS", "Event", "GaugeOverride", "HostScript", "Scenario", "find_scenario"]
