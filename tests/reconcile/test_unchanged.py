from __future__ import annotations

from ranktop.lazy import lazy
from ranktop.reconcile.unchanged import Unchanged


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


def test_a_lazy_value_is_worked_out_once() -> None:
    class Rank:
        asked = 0

        @lazy
        def number(self) -> int:
            self.asked += 1
            return 7

    rank = Rank()
    assert (rank.number, rank.number, rank.asked) == (7, 7, 1)
