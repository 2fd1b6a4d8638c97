"""The promotion packet: what was shown, and above all what was not."""

from __future__ import annotations

import hashlib
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from ranktop.reconcile import Reconciler
from ranktop.recording.marks import Mark
from ranktop.recording.packet.checklist import CHECKS, done
from ranktop.recording.packet.markdown import checklist_text, markdown
from ranktop.recording.packet.packet import Packet, attachment_of, packet_of, part_of, rank_places
from ranktop.recording.reader import Recording
from ranktop.recording.writer import Writer
from ranktop.sample import Pressure, Sample
from recording.test_compare import served
from support.samples import LAUNCH_WITHOUT_HICACHE, SERVER, START, healthy, with_pool


def without_hicache(sample: Sample) -> Sample:
    """The same node after the rollback: no flag, no pools, memory free again."""
    assert sample.processes is not None
    servers = tuple(
        replace(server, argv=tuple(LAUNCH_WITHOUT_HICACHE.split()), start_ticks=999)
        for server in sample.processes.servers
    )
    return replace(
        sample,
        processes=replace(sample.processes, servers=servers),
        mappings={},
        requests={SERVER: (served(int(sample.at_unix_seconds - START)),)},
    )


def packet(
    path: Path, *, rolls_back: bool = True, pressure_after: float = 0.0, marks: dict[int, str] | None = None
) -> Packet:
    writer, reconciler = Writer(str(path), {}), Reconciler()
    for second in range(90):
        sample = healthy(float(second))
        assert sample.host is not None
        pressure = pressure_after if second >= 50 else 0.0
        sample = replace(sample, host=replace(sample.host, pressure=Pressure(some_avg10_percent=pressure)))
        if 30 <= second < 36:
            sample = with_pool(sample, 3, 130 * 10**9, 24 * 10**9)
        if rolls_back and second >= 60:
            sample = without_hicache(sample)
        text = (marks or {}).get(second)
        writer.append(sample, reconciler.update(sample), [Mark(START + second, text)] if text else None)
    writer.close()
    with Recording(str(path)) as recording:
        part = part_of(recording, Reconciler(), "canary", "00")
    return packet_of([part], None, [])


def test_a_rank_that_is_gone_holds_no_pool() -> None:
    verdict = Reconciler().update(healthy())
    *others, last = verdict.ranks
    told = replace(last.line("host.primary"), source="logged")
    verdict = replace(verdict, ranks=(*others, replace(last, pid=None, lines=(told,))))
    *there, gone = rank_places(verdict)
    assert all(place.primary_seen_bytes == told.seen for place in there)
    assert (gone.primary_seen_bytes, gone.primary_planned_bytes) == (None, told.planned)


def test_a_rollback_that_was_seen_has_its_stamp(tmp_path: Path) -> None:
    found = packet(tmp_path / "a.rtop", marks={55: "rollback: flag removed"}).recordings[0].rollback
    assert found.at == "2026-09-21T14:14:20.000Z"
    assert found.began == "2026-09-21T14:14:15.000Z"
    assert found.within_objective is True
    assert any("L3" in what for what in found.not_shown)


def test_a_rollback_without_a_mark_is_found_by_the_launch(tmp_path: Path) -> None:
    found = packet(tmp_path / "a.rtop").recordings[0].rollback
    assert found.began == "2026-09-21T14:14:19.000Z"
    assert found.at is not None


def test_a_rollback_under_pressure_is_not_shown(tmp_path: Path) -> None:
    found = packet(tmp_path / "a.rtop", pressure_after=9.0).recordings[0].rollback
    assert found.at is None
    assert any("pressure" in what for what in found.not_shown)


def test_a_mark_alone_is_no_rollback(tmp_path: Path) -> None:
    found = packet(tmp_path / "a.rtop", rolls_back=False, marks={55: "rollback"}).recordings[0].rollback
    assert found.at is None
    assert len(found.not_shown) == 4


def test_an_injection_is_told_with_what_opened_after_it(tmp_path: Path) -> None:
    told = packet(tmp_path / "a.rtop", marks={25: "F1 owner rank stopped", 85: "nothing"})
    first, last = told.recordings[0].injections
    assert "HOST-POOL-OVER TP3 (breach)" in first.opened
    assert first.closed_again is True
    assert (last.opened, last.closed_again) == ([], None)
    check = next(one for one in told.checklist if one.id == "F1")
    assert check.status == "marked"
    assert any("HOST-POOL-OVER (breach) 5 s after" in one for one in check.findings_after)


def test_reuse_is_never_called_a_read_from_l2(tmp_path: Path) -> None:
    proof = packet(tmp_path / "a.rtop", marks={10: "series A", 20: "series B", 40: "series C"}).recordings[0].l2_proof
    assert [one.marked for one in proof.series] == [True, True, True]
    assert "an L2 read happened" not in proof.claim
    assert any("L2-PROVEN" in what for what in proof.not_shown)


def test_what_nobody_gave_is_named(tmp_path: Path) -> None:
    told = packet(tmp_path / "a.rtop", rolls_back=False)
    words = " ".join(told.not_shown)
    for part in (
        "container_digest",
        "request_corpus",
        "parity",
        "rollback",
        "cache-off control",
        "read from L2",
        "/server_info",
    ):
        assert part in words


def test_attachments_are_hashed_and_quoted() -> None:
    found = attachment_of("parity.json", b'{"equal": 41, "of": 41}')
    assert found.sha256 == hashlib.sha256(b'{"equal": 41, "of": 41}').hexdigest()
    assert found.content == {"equal": 41, "of": 41}
    for data in (b"{", b"x" * ((1 << 20) + 1), b"[" * 100_000):
        with pytest.raises(ValueError, match=r"is (no JSON|larger)"):
            attachment_of("a.json", data)


def test_both_documents_hold_the_same_and_text_is_no_markup(tmp_path: Path) -> None:
    evil = "<script>alert(1)</script> | [x](http://evil) `code`\x1b[31m"
    told = packet(tmp_path / "a.rtop", marks={25: evil})
    text = markdown(told)
    assert "<script>" not in text
    assert "\x1b" not in text
    assert "[x](" not in text
    assert text.count("not shown") >= 3
    again = msgspec.json.decode(msgspec.json.encode(told))
    assert again["schema"] == 1
    assert again["recordings"][0]["ranks"][3]["rank"] == "TP3"


def test_the_checklist_names_every_test_once_and_none_as_shown() -> None:
    assert len({check.id for check in CHECKS}) == len(CHECKS)
    assert all(one.status == "not shown" for one in done([]))
    text = checklist_text()
    assert all(f"- {check.id} [not shown]" in text for check in CHECKS)
