"""What a stand-in node can play, and the findings that each scenario must give."""

from ranktop.demo.scenarios.basic import BASIC
from ranktop.demo.scenarios.scenario import Scenario

SCENARIOS: dict[str, Scenario] = {scenario.name: scenario for scenario in BASIC}

__all__ = ["SCENARIOS", "Scenario"]
