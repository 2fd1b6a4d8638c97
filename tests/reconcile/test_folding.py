"""Effects stand under their root, and nothing is lost."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ranktop.finding import Finding
from ranktop.reconcile.folding import EXPLAINED_BY, fold_effects

CODES = sorted({*EXPLAINED_BY, *(root for roots in EXPLAINED_BY.values() for root in roots)})


def finding(code: str, *ranks: str, server: str | None = "s") -> Finding:
    return Finding(code, "breach", code, server=server, ranks=ranks)


def test_an_effect_follows_its_root() -> None:
    folded = fold_effects(
        [finding("L2-GAUGE-LIES", "TP3"), finding("NUMA-REMOTE", "TP1"), finding("HOST-POOL-OVER", "TP3")]
    )
    assert [each.code for each in folded] == ["NUMA-REMOTE", "HOST-POOL-OVER", "L2-GAUGE-LIES"]
    assert folded[1].effects == ("L2-GAUGE-LIES",)
    assert folded[2].causes == ("HOST-POOL-OVER",)


def test_other_ranks_or_another_server_explain_nothing() -> None:
    for root in (finding("HOST-POOL-OVER", "TP4"), finding("HOST-POOL-OVER", "TP3", server="t")):
        assert all(not folded.causes for folded in fold_effects([finding("L2-GAUGE-LIES", "TP3"), root]))


def test_a_finding_of_the_node_concerns_its_ranks() -> None:
    _, dead = fold_effects([finding("RANK-DEAD", "TP5"), finding("HOST-OOM-KILL", server=None)])
    assert dead.causes == ("HOST-OOM-KILL",)


@given(st.lists(st.tuples(st.sampled_from(CODES), st.sampled_from(["TP0", "TP1"])), max_size=8))
def test_nothing_is_lost_and_no_effect_precedes_its_root(drawn: list[tuple[str, str]]) -> None:
    before = [finding(code, rank) for code, rank in drawn]
    after = fold_effects(before)
    assert sorted((f.code, f.ranks) for f in after) == sorted((f.code, f.ranks) for f in before)
    for place, folded in enumerate(after):
        for cause in folded.causes:
            assert cause in {earlier.code for earlier in after[:place]}
