"""What `deploy/` ships: rules that hold, manifests that parse, and a dashboard whose every query has data.

The dashboard and the rules run against `ranktop exporter` on a stand-in node, scraped by a real Prometheus.
"""

from __future__ import annotations

import configparser
import json
import re
import shlex
import subprocess
import time
import tomllib
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from collectors.prometheus import Access, Prometheus
from conftest import ROOT
from ranktop.cli.exporter import exporter
from ranktop.cli.record import record
from ranktop.demo.launcher import DemoNode
from ranktop.exporter.metrics import METRICS
from ranktop.fleet.look import look, look_at_node
from ranktop.fleet.queries import Scope
from support.exporter import exporting
from support.prometheus import answered, api, prometheus, target, wait_until

DEPLOY = ROOT / "deploy"
RULES = DEPLOY / "prometheus" / "ranktop.rules.yml"
DASHBOARD: dict[str, Any] = json.loads((DEPLOY / "grafana" / "ranktop.json").read_text(encoding="utf-8"))
QUERIES = [(panel["title"], query["expr"]) for panel in DASHBOARD["panels"] for query in panel["targets"]]


@pytest.mark.tools("promtool")
def test_rules_hold() -> None:
    for command in (
        ["check", "config", "scrape.yml"],
        ["check", "rules", RULES.name],
        ["test", "rules", "ranktop.rules.test.yml"],
    ):
        done = subprocess.run(["promtool", *command], cwd=RULES.parent, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


def test_every_alert_and_recording_is_tested() -> None:
    rules = [rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]
    tests = yaml.safe_load(RULES.with_name("ranktop.rules.test.yml").read_text())["tests"]
    fired = {one["alertname"] for test in tests for one in test.get("alert_rule_test", ()) if one.get("exp_alerts")}
    read = {one["expr"] for test in tests for one in test.get("promql_expr_test", ())}
    assert {rule["alert"] for rule in rules if "alert" in rule} == fired
    assert {rule["record"] for rule in rules if "record" in rule} == read


def test_rules_and_dashboard_name_metrics_that_exist() -> None:
    known = {metric.name for metric in METRICS}
    rules = [rule["expr"] for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]
    for text in (*rules, *(query for _, query in QUERIES)):
        assert set(re.findall(r"\branktop_\w+", text)) <= known


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """A stand-in node with a pool that is too big, exported, and scraped for as long as rates need."""
    with (
        DemoNode("pool-too-big", speed=20.0) as node,
        exporting("--pid", str(node.pid), "--scrape-interval", "1") as address,
        prometheus(tmp_path_factory.mktemp("prometheus"), [target(address, "demo:9472")], rules=RULES) as url,
    ):
        node.wait_ready(60)
        source = Prometheus(Access(url))
        answered(source, 'ranktop_finding{code="HOST-POOL-OVER"}', seconds=90)
        answered(source, 'ranktop_service_latency_seconds{stage="ttft"}', seconds=60)
        yield source


@pytest.mark.e2e
@pytest.mark.tools("prometheus")
@pytest.mark.xdist_group("demo")
@pytest.mark.parametrize(
    ("title", "query"), QUERIES, ids=[f"{title}-{place}" for place, (title, _) in enumerate(QUERIES)]
)
def test_every_panel_has_data(source: Prometheus, title: str, query: str) -> None:
    answered(source, query.replace("$node", ".*"), seconds=30)


@pytest.mark.e2e
@pytest.mark.tools("prometheus")
@pytest.mark.xdist_group("demo")
def test_the_fleet_sees_the_demo_node_as_it_is(source: Prometheus) -> None:
    # At twenty times its speed a node looks hung for a minute when this machine is busy for three seconds.
    ends = time.monotonic() + 60
    while (row := look(source, Scope()).rows[0]).severity != "breach" and time.monotonic() < ends:
        time.sleep(1)
    assert (row.instance, row.severity) == ("demo:9472", "breach")
    assert "HOST-POOL-OVER" in [finding.code for finding in row.findings]
    assert row.tiers.device_hit is not None
    assert row.hbm_free_bytes
    verdict = look_at_node(source, Scope(), "demo:9472")
    assert verdict is not None
    assert [rank.rank for rank in verdict.ranks] == [f"TP{tp}" for tp in range(8)]
    line = verdict.ranks[3].line("host.primary")
    assert (line.planned, line.status) == (52_396_032, "over")
    assert verdict.ranks[2].line("host.primary").difference == 0
    assert verdict.ranks[0].line("numa.local").seen == 100.0
    assert verdict.findings[0].ranks == ("TP3",)


@pytest.mark.e2e
@pytest.mark.tools("prometheus")
@pytest.mark.xdist_group("demo")
def test_its_breach_becomes_an_alert(source: Prometheus) -> None:
    url = source._access.url

    def alerts() -> list[str]:
        return [one["labels"].get("code", "") for one in api(url, "alerts")["alerts"]]

    wait_until(lambda: "HOST-POOL-OVER" in alerts(), 30, "the alert is pending or firing")


@pytest.mark.parametrize("unit", ["ranktop-exporter", "ranktop-record"])
def test_units_start_commands_that_exist(unit: str) -> None:
    parser = configparser.ConfigParser(strict=False, interpolation=None)
    parser.optionxform = str  # type: ignore[assignment, method-assign]
    parser.read(DEPLOY / "systemd" / f"{unit}.service")
    assert parser["Install"]["WantedBy"] == "multi-user.target"
    line = re.sub(r"\$\$\(.*?\)", "NOW", parser["Service"]["ExecStart"])
    words = shlex.split(line)
    if words[0] == "/bin/sh":
        words = shlex.split(words[2].removeprefix("exec "))
    assert words[0] == "/usr/local/bin/ranktop"
    command = {"exporter": exporter, "record": record}[words[1]]
    options = {option for parameter in command.params for option in parameter.opts}
    assert {word for word in words if word.startswith("-")} <= options
    assert CliRunner().invoke(command, ["--help"]).exit_code == 0


def test_the_daemonset_starts_the_exporter_and_reserves_no_gpu() -> None:
    (manifest,) = yaml.safe_load_all((DEPLOY / "kubernetes" / "ranktop-exporter.yml").read_text())
    pod = manifest["spec"]["template"]["spec"]
    assert (
        manifest["spec"]["selector"]["matchLabels"].items()
        <= manifest["spec"]["template"]["metadata"]["labels"].items()
    )
    assert pod["hostPID"] is True
    (container,) = pod["containers"]
    assert container["command"] == ["ranktop", "exporter"]
    assert container["args"][0] in {option for parameter in exporter.params for option in parameter.opts}
    assert "nvidia.com/gpu" not in json.dumps(container["resources"])
    assert {mount["name"] for mount in container["volumeMounts"]} == {volume["name"] for volume in pod["volumes"]}
    assert all(mount["readOnly"] for mount in container["volumeMounts"])


def test_the_image_has_what_the_wheel_is_built_of() -> None:
    steps = (DEPLOY / "kubernetes" / "Containerfile").read_text().splitlines()
    copied = {word for step in steps if step.startswith("COPY") for word in step.split()[1:-1]}
    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert {*wheel["packages"], *(path.split("/")[0] for path in wheel["shared-data"])} <= copied
    assert {"pyproject.toml", "README.md", "LICENSE"} <= copied
    assert all((ROOT / name).exists() for name in copied)
