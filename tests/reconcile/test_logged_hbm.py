"""GPU memory by a rank's own log lines, from the lines themselves."""

from __future__ import annotations

from collectors.serverlog_lines import match_message
from ranktop.plan.plan import GIB
from ranktop.reconcile.logged_hbm import LoggedHbm, logged_hbm
from ranktop.sample import Event


def events(kind: str, *messages: str, rank: str | None = "TP1") -> list[Event]:
    found: list[Event] = []
    for message in messages:
        told = match_message(message)
        assert told is not None, message
        if told[0] == kind:
            found.append(Event(0.0, kind, message, "a", rank, told[1]))
    return found


def test_a_draft_counts_on_top() -> None:
    pools = events(
        "l1_pool",
        "KV Cache is allocated. dtype: torch.bfloat16, #tokens: 1024, KV size: 24.00 GB",
        "KV Cache is allocated. dtype: torch.bfloat16, #tokens: 1024, K size: 0.25 GB, V size: 0.25 GB",
    )
    assert logged_hbm((), pools, ()) == {"TP1": LoggedHbm(None, 24 * GIB + GIB // 2, None)}


def test_reserved_addresses_are_no_memory() -> None:
    """From 0.5.20 a pool may reserve addresses first and be backed once the graphs are captured."""
    reserved = "KV Cache VA upper bound. dtype: torch.bfloat16, #tokens: 4096, KV size: 96.00 GB"
    backed = (
        "Post-capture KV sizing: KV cache allocated. dtype: torch.bfloat16, #tokens: 3000, KV size: 70.00 GB, "
        "avail mem=4.00 GB",
        "Post-capture KV sizing: draft KV cache allocated. dtype: torch.bfloat16, #tokens: 3000, KV size: 1.00 GB",
    )
    assert logged_hbm((), events("l1_pool", reserved), ()) == {}
    assert logged_hbm((), events("l1_pool", reserved, *backed), ()) == {"TP1": LoggedHbm(None, 71 * GIB, None)}


def test_a_rank_without_a_tag_is_the_first() -> None:
    ends = events(
        "weights_end", "Load weight end. type=Glm, dtype=x, avail mem=40.00 GB, mem usage=90.50 GB", rank=None
    )
    assert logged_hbm(ends, (), ()) == {"TP0": LoggedHbm(round(90.5 * GIB), None, None)}
