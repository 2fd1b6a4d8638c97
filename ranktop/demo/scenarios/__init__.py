"""What a stand-in node can play, and the findings that each scenario must give."""

from ranktop.demo.scenarios.basic import BASIC
from ranktop.demo.scenarios.host import HOST
from ranktop.demo.scenarios.prefill import PREFILL
from ranktop.demo.scenarios.scenario import Event, GaugeOverride, HostScript, Scenario
from ranktop.demo.scenarios.tiers import TIERS
from ranktop.demo.scenarios.watching import WATCHING

SCENARIOS: dict[str, Scenario] = {scenario.name: scenario for scenario in (*BASIC, *HOST, *TIERS, *WATCHING, *PREFILL)}

__all__ = ["SCENARIOS", "Event", "GaugeOverride", "HostScript", "Scenario"]
