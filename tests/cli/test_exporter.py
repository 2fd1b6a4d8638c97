"""`ranktop exporter` as a command: where it listens, what it says, how it ends."""

from __future__ import annotations

import re
import socket
import urllib.request
from pathlib import Path

import pytest

from ranktop.cli import main
from ranktop.cli.errors import UsageProblem
from ranktop.cli.exporter import address, is_loopback
from ranktop.recording.reader import Recording
from support.exporter import exporting
from support.prometheus import wait_until


@pytest.fixture(autouse=True)
def _known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(main.COMMANDS, "exporter", "")


def page(where: str) -> str:
    with urllib.request.urlopen(f"http://{where}/metrics", timeout=10) as response:
        return response.read().decode()


def test_it_serves_records_and_ends_well(tmp_path: Path) -> None:
    """No SGLang server has pid 1: the host's lines and the sources are there all the same."""
    path = tmp_path / "node.rtop"
    with exporting("--record", str(path), "--pid", "1") as where:
        text = wait_until(lambda: re.search(r"(?s).*host\.available.*", page(where)), 20, "the host's lines")[0]
        assert 'ranktop_source_up{source="hostmem"} 1' in text
        assert "ranktop_severity" in text

        def sampled() -> float:
            (found,) = re.findall(r"^ranktop_sample_timestamp_seconds (\S+)$", page(where), re.MULTILINE)
            return float(found)

        first = sampled()
        wait_until(lambda: sampled() > first + 1, 20, "later samples")
    with Recording(str(path)) as recording:
        assert len(recording.index.spans) > 0


@pytest.mark.parametrize(
    ("listen", "want"),
    [("127.0.0.1:9472", ("127.0.0.1", 9472)), (":9472", ("0.0.0.0", 9472)), ("[::1]:1", ("::1", 1))],
)
def test_addresses(listen: str, want: tuple[str, int]) -> None:
    assert address(listen) == want


@pytest.mark.parametrize("listen", ["9472", "127.0.0.1", "a:b", "a:65536", ""])
def test_what_is_no_address(listen: str) -> None:
    with pytest.raises(UsageProblem, match="not an address"):
        address(listen)


def test_what_only_this_machine_reaches() -> None:
    assert [is_loopback(host) for host in ("127.0.0.1", "::1", "localhost", "0.0.0.0", "node-a")] == [True] * 3 + [
        False
    ] * 2


def test_a_port_that_is_taken_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        assert main.run(["exporter", "--listen", f"127.0.0.1:{port}"]) == 2
    assert re.fullmatch(
        rf"ranktop: exporter: cannot listen on 127.0.0.1:{port}: Address already in use .*\n", capsys.readouterr().err
    )


def test_a_web_config_that_cannot_be_used_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "web.yml"
    path.write_text("users: {a: b}")
    assert main.run(["exporter", "--web-config", str(path)]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "users" in error
