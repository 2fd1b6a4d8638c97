"""The command as a whole: exit codes, one-line errors, nothing imported that is not needed."""

from __future__ import annotations

import subprocess
import sys

import pytest

from support.command import ranktop


def test_help_names_every_command() -> None:
    done = ranktop("--help")
    assert done.returncode == 0
    for command in ("watch", "demo", "plan", "preflight", "check", "doctor"):
        assert f"\n  {command} " in done.stdout


def test_version() -> None:
    assert ranktop("--version").stdout.startswith("ranktop, version 0.")


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["chekc"], 2, "No such command 'chekc'. Did you mean 'check'? (see `ranktop --help`)"),
        (["check", "--windw", "5"], 2, "No such option"),
        (["check", "--window", "soon"], 2, "is no duration"),
        (["check", "--url", "ftp://x"], 2, "not an address"),
        (["check", "--url", "http://me:secret@x:1"], 2, "RANKTOP_API_KEY"),
        (["demo", "no-such"], 2, "no scenario 'no-such' (one of healthy,"),
        (["check", "--pid", "1", "--window", "0"], 3, "main process 1 on this node (leave --pid out for all)"),
        (["replay"], 2, "replay: Missing argument 'FILE.rtop' (see `ranktop replay --help`)"),
        (["config", "valdate"], 2, "'valdate'. Did you mean 'validate'? (see `ranktop config --help`)"),
    ],
)
def test_a_failure_is_one_line_and_a_code(arguments: list[str], code: int, says: str) -> None:
    done = ranktop(*arguments)
    assert done.returncode == code
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("ranktop: ")
    assert says in done.stderr
    assert "secret" not in done.stderr
    assert done.stdout == ""


HEAVY = ("textual", "pynvml", "prometheus_client", "prometheus_api_client", "requests", "http.client", "psutil")


@pytest.mark.parametrize("module", ["ranktop.cli.main", "ranktop.cli.plan"])
def test_the_plan_imports_no_screen_no_driver_and_no_network(module: str) -> None:
    script = f"import sys, {module}; print(*[name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


def test_sglangs_metrics_folder_is_left_alone() -> None:
    """PROMETHEUS_MULTIPROC_DIR, inherited from SGLang, would make ranktop write into the server's own files."""
    script = (
        "import os, ranktop, prometheus_client\n"
        "prometheus_client.Counter('x', 'x').inc()\n"
        "print(os.environ.get('PROMETHEUS_MULTIPROC_DIR'), os.listdir('.'))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        env={"PROMETHEUS_MULTIPROC_DIR": "."},
        cwd="/proc/self",
    )
    assert done.stdout.startswith("None ")


def test_the_packages_are_ours() -> None:
    """PyPI has other distributions named tui, collectors and themes."""
    script = (
        "import ranktop, tui, collectors, themes\n"
        "print(len({m.__file__.split('/')[-3:][0] for m in (ranktop, tui, collectors, themes)}))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "1"
