"""The rank grid: columns give way by weight, never clip, and mark what is not the rank's own or has aged."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from msgspec.structs import replace

from ranktop.reconcile import Reconciler, Verdict
from support import samples
from tui.draw.glyphs import ASCII, UNICODE
from tui.draw.spans import TextLine, width
from tui.views.columns import fitting, rank_columns
from tui.views.rank_rows import Grid, draw_grid
from tui.views.sorting import next_sort
from tui.views.view import UNSORTED, Sort


def text(text_line: TextLine) -> str:
    return "".join(span.text for span in text_line)


def roles(text_line: TextLine, piece: str) -> set[str]:
    return {span.role for span in text_line if piece in span.text}


def verdict(sample: object = None) -> Verdict:
    return Reconciler().update(sample or samples.healthy())  # type: ignore[arg-type]


@pytest.mark.parametrize("cells", [60, 78, 100, 118, 160, 240])
def test_every_row_has_the_width_of_the_screen_or_less_and_all_alike(cells: int) -> None:
    grid = draw_grid(verdict(), cells, UNICODE)
    assert len(grid.rows) == 8
    assert {width(row.line) for row in grid.rows} == {cells}
    assert width(grid.header) <= cells


def test_heavy_columns_stay_when_it_gets_narrow() -> None:
    wide = [column.key for column in fitting(rank_columns(4), 200)]
    narrow = [column.key for column in fitting(rank_columns(4), 78)]
    assert len(wide) == len(rank_columns(4))
    assert narrow == ["rank", "hbm", "primary", "indexer", "l2", "state"]
    assert [key for key in wide if key in narrow] == narrow, "columns keep their order"


def test_a_row_shows_the_demo_of_the_audit() -> None:
    row = text(draw_grid(verdict(), 200, UNICODE).rows[0].line)
    assert "TP0" in row
    assert "120.00/120.00" in row
    assert "24.15/24.15" in row
    assert "127.6/139.7" in row  # 137 of 150 decimal GB, in GiB
    assert row.rstrip().endswith("ok")


def test_a_breach_is_coloured_and_named() -> None:
    sample = samples.with_pool(samples.healthy(), 3, 132_000_000_000, 24_147_002_880)
    grid = draw_grid(verdict(sample), 160, UNICODE)
    assert roles(grid.rows[3].line, "132.00/120.00") == {"breach"}
    assert roles(grid.rows[3].line, "■ HOST-POOL-OVER") == {"breach"}
    assert roles(grid.rows[2].line, "120.00/120.00") == {"text"}


def test_values_of_the_group_and_missing_values_are_marked() -> None:
    at = samples.START
    sample = replace(samples.healthy(), metrics={samples.SERVER: samples.page(at, stats_ranks=1)}, placements={})
    rows = draw_grid(verdict(sample), 160, UNICODE).rows
    assert "69  " in text(rows[0].line)
    assert "69'" in text(rows[1].line)
    assert " –  " in text(rows[1].line), "no placement was sampled"


def test_aged_values_are_marked() -> None:
    sample = samples.with_source(samples.healthy(), "metrics", "stale", "stale")
    row = draw_grid(verdict(sample), 160, UNICODE).rows[0]
    assert roles(row.line, "~69") == {"muted"}


def test_what_only_the_log_says_is_not_drawn_as_read_now() -> None:
    found = verdict()
    lines = (replace(one, source="logged") if one.line == "host.primary" else one for one in found.ranks[5].lines)
    ranks = (*found.ranks[:5], replace(found.ranks[5], lines=tuple(lines)), *found.ranks[6:])
    rows = draw_grid(replace(found, ranks=ranks), 160, UNICODE).rows
    assert roles(rows[5].line, "~120.00/120.00") == {"muted"}
    assert roles(rows[5].line, "24.15/24.15") == {"text"}
    assert roles(rows[4].line, "120.00/120.00") == {"text"}


def test_ascii_rows_are_ascii() -> None:
    sample = samples.with_pool(samples.healthy(), 3, 132_000_000_000)
    grid = draw_grid(verdict(sample), 200, ASCII)
    assert all(text(row).isascii() for row in (grid.header, *(row.line for row in grid.rows)))


def test_columns_are_as_wide_as_the_user_says() -> None:
    wanted = ["rank:8", "state:24", "hbm_bar:30", "l2:9"]
    header, rows, *_ = draw_grid(verdict(), 80, UNICODE, wanted=wanted)
    assert text(header).rstrip() == f"{'rank':<8}  {'state':<24}  {'':<30}  {'L2 %':>9}"
    row = text(rows[0].line)
    assert row.index("ok") == 10
    assert row.rstrip().endswith(" 85")
    assert len(row.rstrip()) == len(text(header).rstrip()), "a number stands under its title, also in the last column"


def test_a_wide_column_takes_the_room_of_a_less_important_one() -> None:
    as_it_is = text(draw_grid(verdict(), 60, UNICODE, wanted=["rank", "hbm", "l2", "state"]).header)
    wider = text(draw_grid(verdict(), 60, UNICODE, wanted=["rank", "hbm", "l2", "state:46"]).header)
    assert "HBM GiB" in as_it_is
    assert "HBM GiB" not in wider


def test_a_user_says_which_column_stays() -> None:
    columns = ["rank", "hbm", "local", "state"]
    assert "HBM GiB" in text(draw_grid(verdict(), 42, UNICODE, wanted=columns).header)
    heavier = text(draw_grid(verdict(), 42, UNICODE, wanted=["rank", "hbm", "local::97", "state"]).header)
    assert "local %" in heavier
    assert "HBM GiB" not in heavier
    lighter = text(draw_grid(verdict(), 42, UNICODE, wanted=["rank", "hbm:12:59", "local", "state:19:0"]).header)
    assert "local %" in lighter
    assert "state" not in lighter, "0 goes before all others"


def test_among_equals_the_first_stays() -> None:
    header = text(draw_grid(verdict(), 14, UNICODE, wanted=["l2::50", "l1::50", "gpu::50"]).header)
    assert header.split() == ["L2", "%", "L1", "%"]


@pytest.mark.parametrize("cells", [60, 71, 120])
def test_what_is_left_goes_where_the_user_says(cells: int) -> None:
    header, rows, *_ = draw_grid(verdict(), cells, UNICODE, wanted=["rank", "hbm_bar:10+", "l2:+", "state:8"])
    bar, number = divmod(cells - 4 - 10 - 5 - 8 - 3 * 2, 2)
    bar, number = 10 + bar + number, 5 + bar
    assert text(header) == f"{'rank':<4}  {'':<{bar}}  {'L2 %':>{number}}  {'state':<8}"
    row = text(rows[0].line)
    assert len(row) == cells
    assert row.index("ok") == len(row) - 8
    assert row[: 4 + 2 + bar + 2 + number].endswith("85"), "the number stands at the right end of its room"


def test_the_last_words_take_what_is_left_when_nobody_else_does() -> None:
    sample = samples.with_pool(samples.healthy(), 3, 132_000_000_000, 24_147_002_880)
    shown = draw_grid(verdict(sample), 60, UNICODE, wanted=["rank", "state:6"]).rows[3].line
    assert "HOST-POOL-OVER" in text(shown)
    clipped = draw_grid(verdict(sample), 60, UNICODE, wanted=["rank:+", "state:6"]).rows[3].line
    assert "HOST-POOL-OVER" not in text(clipped)


def test_the_documented_weights_are_those_of_the_columns() -> None:
    page = (Path(__file__).parents[2] / "docs" / "reading-the-screens.md").read_text()
    told = re.search(r"Columns and their weights: (.*?)\. ", page, re.DOTALL)
    assert told is not None
    weights = [(name, int(weight)) for name, weight in re.findall(r"`(\w+)`\s(\d+)", told[1])]
    ordered = sorted(rank_columns(4), key=lambda column: -column.weight)
    assert weights == [(column.key, column.weight) for column in ordered]


def test_long_tags_are_whole() -> None:
    sample = samples.healthy()
    assert sample.processes is not None
    first, *others = sample.processes.ranks
    tag = replace(first.tag, dp=1, pp=0, cp=3, ep=15)
    long = replace(sample, processes=replace(sample.processes, ranks=(replace(first, tag=tag), *others)))
    rows = [text(row.line) for row in draw_grid(verdict(long), 120, UNICODE).rows]
    assert any(row.startswith("DP1 PP0 ATTN_CP3 TP0 EP15 ") for row in rows)


def test_an_empty_grid_says_why() -> None:
    nothing = replace(samples.healthy(ranks=0), processes=None, metrics={}, infos={})
    rows = draw_grid(verdict(nothing), 80, UNICODE, keep="tp3").rows
    told = " ".join(text(row.line).strip() for row in rows)
    assert all(word in told for word in ("no rank is seen", "--url", "`ranktop doctor`", "`ranktop demo`"))
    (row,) = draw_grid(replace(verdict(nothing), sample=replace(nothing, sources=())), 100, UNICODE).rows
    assert text(row.line).strip() == "no rank is seen"
    (row,) = draw_grid(verdict(samples.healthy()), 100, UNICODE, keep="nothing", margin=1).rows
    assert text(row.line).strip() == "no rank matches the filter"
    assert row.target is None


def tags(grid: Grid) -> list[str]:
    return [text(row.line).split()[0] for row in grid.rows]


def test_sorting_leads_with_the_column_and_breaks_ties_by_the_one_before() -> None:
    sample = samples.with_pool(samples.healthy(), 6, 132_000_000_000, 24_147_002_880)
    grid = draw_grid(verdict(sample), 160, UNICODE, Sort(("primary", "hbm")))
    assert tags(grid)[:3] == ["TP6", "TP0", "TP1"]
    assert "primary GBv" in text(grid.header)
    turned = draw_grid(verdict(sample), 160, UNICODE, Sort(("primary", "hbm"), descending=False))
    assert tags(turned)[-1] == "TP6"


@pytest.mark.parametrize("cells", [30, 60, 78, 158, 240])
@pytest.mark.parametrize("descending", [True, False])
def test_what_the_order_is_can_be_read_at_every_width(cells: int, descending: bool) -> None:
    sort = next_sort(UNSORTED)
    while sort.keys:
        grid = draw_grid(verdict(), cells, UNICODE, Sort(sort.keys, descending))
        shown = [column.key for column in fitting(rank_columns(4), cells)]
        titles = {column.key: column.title.replace("{unit}", "GB") for column in rank_columns(4)}
        if set(sort.keys) <= set(shown):
            assert f"{titles[sort.keys[0]]}{'v' if descending else '^'}" in text(grid.header)
            assert grid.order == ""
        else:
            ends = ("worst", "best") if sort.keys[0] == "state" else ("largest", "smallest")
            assert grid.order.startswith(f"sorted by {titles[sort.keys[0]]}, {ends[not descending]} first")
            assert grid.order.endswith(titles[sort.keys[-1]] if len(sort.keys) > 1 else "first")
        sort = next_sort(sort)
    assert draw_grid(verdict(), cells, UNICODE).order == ""


def test_the_worst_state_comes_first() -> None:
    sample = samples.without_rank(samples.with_pool(samples.healthy(), 6, 132_000_000_000, 24_147_002_880), 2)
    grid = draw_grid(verdict(sample), 160, UNICODE, Sort(("state",)))
    assert tags(grid)[:3] == ["TP2", "TP6", "TP0"]
    assert "statev" in text(grid.header)
    turned = draw_grid(verdict(sample), 160, UNICODE, Sort(("state",), descending=False))
    assert tags(turned)[-2:] == ["TP6", "TP2"]


@pytest.mark.parametrize("key", ["gpu", "numa"])
def test_ranks_are_sorted_by_what_no_line_says(key: str) -> None:
    ranks = verdict().ranks
    grid = draw_grid(verdict(), 160, UNICODE, Sort((key,)))
    by_tag = {rank.rank: rank.gpu if key == "gpu" else rank.numa for rank in ranks}
    values = [by_tag[tag] for tag in tags(grid)]
    assert len({*values}) > 1
    assert values == sorted(values, key=lambda value: -(value or 0))


def test_the_sign_of_the_order_moves_no_title() -> None:
    plain = text(draw_grid(verdict(), 240, UNICODE).header)
    for key in ("hbm", "primary", "local", "anon", "backup", "load_back"):
        signed = text(draw_grid(verdict(), 240, UNICODE, Sort((key,))).header)
        assert signed.replace("v  ", "   ").replace("v ", "  ") == plain


def test_missing_values_sort_last_both_ways() -> None:
    sample = samples.without_rank(samples.healthy(), 2)
    for descending in (True, False):
        grid = draw_grid(verdict(sample), 160, UNICODE, Sort(("anon",), descending))
        assert tags(grid)[-1] == "TP2"


def test_sorting_goes_through_the_columns_and_back_to_rank_order() -> None:
    sort, seen = next_sort(UNSORTED), []
    while sort.keys:
        seen.append(sort.keys[0])
        sort = next_sort(sort)
    assert seen[0] == "state"
    assert len(seen) == len(set(seen))
    assert {*seen} == {column.key for column in rank_columns(4)} - {"rank", "hbm_bar"}


@pytest.mark.parametrize(("keep", "left"), [("tp3", ["TP3"]), ("pool-over", ["TP3"]), ("30000", 8)])
def test_a_filter_looks_at_tag_server_and_state(keep: str, left: list[str] | int) -> None:
    sample = samples.with_pool(samples.healthy(), 3, 132_000_000_000, 24_147_002_880)
    shown = tags(draw_grid(verdict(sample), 160, UNICODE, keep=keep))
    assert shown == left if isinstance(left, list) else len(shown) == left


def test_the_legend_tells_the_marks_that_stand_on_this_screen() -> None:
    whole = samples.healthy()
    assert draw_grid(verdict(whole), 160, UNICODE).legend == ""
    gone = draw_grid(verdict(samples.without_rank(whole, 5)), 160, UNICODE)
    assert any("~" in text(row.line) for row in gone.rows)
    assert gone.legend == "~ aged value"
    moved = "rate.load_back"
    ranks = tuple(
        replace(rank, lines=tuple(replace(each, group=each.line == moved) for each in rank.lines))
        for rank in verdict(whole).ranks
    )
    of_group = replace(verdict(whole), ranks=ranks)
    assert draw_grid(of_group, 160, UNICODE).legend == "' value of the group"
    assert draw_grid(of_group, 80, UNICODE).legend == "", "no room for that column, so nothing is marked"
