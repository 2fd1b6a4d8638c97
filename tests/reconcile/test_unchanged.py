from __future__ import annotations

from ranktop.lazy import lazy
from ranktop.reconcile.unchanged import Unchanged
from ranktop.reconcile.verdict import Line, LineGroup, RankVerdict


def test_equal_inputs_give_what_was_made_before() -> None:
    unchanged, made = Unchanged(), list[tuple[int, ...]]()

    def make(*numbers: int) -> tuple[int, ...]:
        made.append(numbers)
        return numbers

    first = unchanged.of("sum", make, 1, 2)
    unchanged.next_update()
    assert unchanged.of("sum", make, 1, 2) is first
    unchanged.next_update()
    assert unchanged.of("sum", make, 1, 3) == (1, 3)
    assert made == [(1, 2), (1, 3)]


def test_what_an_update_did_not_ask_for_is_forgotten() -> None:
    unchanged = Unchanged()
    first = unchanged.of("rank 7", list, (1,))
    unchanged.next_update()
    unchanged.next_update()
    assert unchanged.of("rank 7", list, (1,)) is not first


def _group(*seen: int) -> LineGroup:
    return LineGroup(tuple([Line(f"l{place}", seen=value) for place, value in enumerate(seen)]))


def test_what_is_made_anew_keeps_the_lines_that_are_equal() -> None:
    unchanged = Unchanged()
    first = unchanged.renewed("rank 7", _group, 1, 2)
    unchanged.next_update()
    second = unchanged.renewed("rank 7", _group, 1, 3)
    assert second == _group(1, 3)
    assert second.lines[0] is first.lines[0]
    unchanged.next_update()
    assert unchanged.renewed("rank 7", _group, 1, 3) is second
    unchanged.next_update()
    assert unchanged.renewed("rank 7", _group, 1, 3, 4) == _group(1, 3, 4)


def test_equal_lines_of_other_inputs_are_the_group_of_before() -> None:
    unchanged = Unchanged()
    first = unchanged.renewed("rank 7", lambda page: _group(1), "page 1")
    unchanged.next_update()
    assert unchanged.renewed("rank 7", lambda page: _group(1), "page 2") is first


def _rank(*groups: LineGroup) -> RankVerdict:
    return RankVerdict("node:30000", "TP0", 7, 0, 0, 0, "S", groups)


def test_the_lines_of_a_verdict_after_another_are_its_own() -> None:
    own, told = LineGroup((Line("host.anon", seen=1), Line("host.rss", seen=2))), LineGroup((Line("l1.used", seen=3),))
    first = _rank(own, told)
    assert first.line("host.anon").seen == 1
    moved = LineGroup((Line("host.anon", seen=5), Line("host.rss", seen=2)))
    later = _rank(moved, told).after(first)
    assert [later.line(name) for name in ("host.anon", "host.rss", "l1.used")] == [*moved.lines, *told.lines]
    assert first.line("host.anon").seen == 1
    fewer = _rank(LineGroup((Line("host.rss", seen=2),)), told).after(later)
    assert (fewer.line("host.anon").seen, fewer.line("host.rss").seen) == (None, 2)


def test_a_lazy_value_is_worked_out_once() -> None:
    class Rank:
        asked = 0

        @lazy
        def number(self) -> int:
            self.asked += 1
            return 7

    rank = Rank()
    assert (rank.number, rank.number, rank.asked) == (7, 7, 1)
