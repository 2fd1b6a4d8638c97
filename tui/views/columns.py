"""The columns of the rank grid: what each shows, how wide it is, and how soon it gives way on a narrow screen."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from ranktop.reconcile.verdict import Line, RankVerdict
from tui.draw import numbers
from tui.draw.glyphs import Glyphs, bar
from tui.draw.numbers import Scale
from tui.draw.spans import Span, TextLine, fit, left, line, right
from tui.views.view import UNSORTED, Sort

GAP = 2

_LONGEST_TAG = 27
"""`DP15 PP0 ATTN_CP3 TP15 EP15` fits; nothing that SGLang prints is longer today."""


def tag_width(tags: Iterable[str], least: int = 4) -> int:
    """Cells of a column of rank tags: their end, the TP number, is what tells them apart."""
    return min(_LONGEST_TAG, max([least, *map(len, tags)]))


class Look(Struct, frozen=True):
    """What a cell needs besides its rank: signs, the units of this screen, the words of findings."""

    glyphs: Glyphs
    scales: dict[str, Scale]
    states: dict[tuple[str, str], tuple[str, str]]
    """(server, rank) -> (word, role) of the state column."""
    gone: frozenset[tuple[str, str]] = frozenset()
    """(server, rank) of those whose process is gone: what their server still reports of them is old."""

    def aged(self, rank: RankVerdict, shown: Line) -> Line:
        """The line, stale where it is an old report."""
        return replace(shown, stale=True) if self.gone and (rank.server, rank.rank) in self.gone else shown


class Column(Struct, frozen=True):
    """One column. `weight`: the heaviest stay longest. `title` may name `{unit}`, filled from the column's scale.

    `least`: how narrow it may be made, where that is less than `width`. Numbers are not cut, words and bars may be.
    `grows`: takes what is left of the width, as the last one does by itself where it begins at its left end.
    """

    key: str
    title: str
    width: int
    weight: int
    cell: Callable[[RankVerdict, Look, int], TextLine]
    align_left: bool = False
    least: int | None = None
    grows: bool = False
    of: str = ""
    """The line that its cells carry the marks of."""

    def named(self, look: Look) -> str:
        """Its title with the unit that it has on this screen."""
        return self.title.replace("{unit}", look.scales[self.key].unit) if self.key in look.scales else self.title


def rank_columns(rank_width: int) -> tuple[Column, ...]:
    """All columns in the order of the screen."""
    return (
        Column("rank", "rank", rank_width, 100, _rank, align_left=True, least=3),
        Column("gpu", "gpu", 3, 78, _gpu),
        Column("numa", "node", 4, 72, _numa),
        Column("hbm", "HBM GiB", 12, 95, _hbm, of="hbm.process"),
        Column("hbm_bar", "", 10, 30, _hbm_bar, align_left=True, least=3),
        Column("primary", "primary {unit}", 14, 98, _pair("host.primary"), of="host.primary"),
        Column("indexer", "indexer {unit}", 13, 94, _pair("host.indexer"), of="host.indexer"),
        Column("pinned", "pinned", 7, 40, _pinned),
        Column("local", "local %", 7, 60, _local, of="numa.local"),
        Column("anon", "anon {unit}", 8, 35, _bytes("host.anon"), of="host.anon"),
        Column("l1", "L1 %", 5, 80, _usage("l1.used", "l1.tokens"), of="l1.used"),
        Column("l2", "L2 %", 5, 82, _usage("l2.used", "l2.total"), of="l2.used"),
        Column("backup", "L1>L2 MB/s", 10, 50, _rate("rate.backup"), of="rate.backup"),
        Column("load_back", "L2>L1 MB/s", 10, 55, _rate("rate.load_back"), of="rate.load_back"),
        Column("state", "state", 19, 99, _state, align_left=True, least=6),
    )


def fitting(columns: Sequence[Column], width: int) -> tuple[Column, ...]:
    """The heaviest columns that fit beside each other, in screen order, and among them what is left of the width.

    A column is whole or absent, never clipped.
    """
    kept: set[str] = set()
    room = width
    for column in sorted(columns, key=lambda column: -column.weight):
        need = column.width + (GAP if kept else 0)
        if need <= room:
            kept.add(column.key)
            room -= need
    return _widened([column for column in columns if column.key in kept], room)


def _widened(columns: Sequence[Column], room: int) -> tuple[Column, ...]:
    """`room` more cells: alike for those that grow, the first have what cannot be shared."""
    growing = [column.key for column in columns if column.grows]
    if not growing:
        growing = [column.key for column in columns[-1:] if column.align_left]
    if not growing:
        return tuple(columns)
    share, rest = divmod(room, len(growing))
    more = {key: share + (place < rest) for place, key in enumerate(growing)}
    return tuple(replace(column, width=column.width + more.get(column.key, 0)) for column in columns)


def header(columns: Sequence[Column], look: Look, sort: Sort = UNSORTED) -> TextLine:
    """Titles, aligned as their cells; what is sorted by stands out, the first key with its direction behind it."""
    spans: list[Span | str] = []
    sign = ""
    for index, column in enumerate(columns):
        spans.append(Span(f"{sign:<{GAP}}" if index else "", "accent"))
        title = column.named(look)
        sign = ("v" if sort.descending else "^") if column.key in sort.keys[:1] else ""
        if column.align_left:
            title, sign = left(title + sign, column.width, look.glyphs.more), ""
        else:
            title = right(title, column.width)
        spans.append(Span(title, "accent" if column.key in sort.keys else "muted"))
    return line(*spans, Span(sign, "accent"))


def unseen_order(columns: Sequence[Column], shown: Sequence[Column], look: Look, sort: Sort) -> str:
    """The order in words, where the header cannot say it: a column that is sorted by has no room on this screen."""
    names = {column.key: column.named(look) for column in columns}
    if {column.key for column in shown} >= {*sort.keys}:
        return ""
    first, *others = (names[key] for key in sort.keys)
    ties = "".join(f", then {name}" for name in others)
    ends = ("worst", "best") if sort.keys[0] == "state" else ("largest", "smallest")
    return f"sorted by {first}, {ends[not sort.descending]} first{ties}"


def row(rank: RankVerdict, columns: Sequence[Column], look: Look, width: int, margin: int) -> TextLine:
    """One rank, `width` cells and so many blanks at both ends."""
    return _joined(tuple([column.cell(rank, look, column.width) for column in columns]), width, margin)


@functools.lru_cache(maxsize=256)
def _joined(cells: tuple[TextLine, ...], width: int, margin: int) -> TextLine:
    """Of most ranks on a screen the same is shown as a second ago."""
    spans: list[Span | str] = []
    for place, cell in enumerate(cells):
        spans += (" " * (GAP if place else margin), *cell)
    return fit(line(*spans), width + 2 * margin, "")


def scales(ranks: Sequence[RankVerdict]) -> dict[str, Scale]:
    """One unit a column for all ranks on the screen."""
    names = {"primary": "host.primary", "indexer": "host.indexer", "anon": "host.anon"}
    return {key: numbers.byte_scale(_amounts([rank.line(name) for rank in ranks])) for key, name in names.items()}


def _amounts(lines: Sequence[Line]) -> list[float]:
    return [amount for shown in lines for amount in (shown.seen, shown.planned) if amount is not None]


def legend(ranks: Sequence[RankVerdict], columns: Sequence[Column], look: Look) -> str:
    """What the marks mean that stand in these columns; empty where there are none."""
    names = [column.of for column in columns if column.of]
    is_group = is_old = False
    for rank in ranks:
        is_gone = (rank.server, rank.rank) in look.gone
        for shown in map(rank.line, names):
            is_group = is_group or shown.group
            if not is_old and shown.seen is not None:
                is_old = _is_old(shown) or (is_gone and shown.line.startswith(_REPORTED))
    return "  ".join([*(["' value of the group"] if is_group else []), *(["~ aged value"] if is_old else [])])


_REPORTED = ("l1.", "l2.", "rate.")
"""Lines that a server goes on telling of a rank that is gone."""


def _is_old(shown: Line) -> bool:
    """Late, or logged once and read nowhere since, as the pools of a rank that has died."""
    return shown.stale or shown.source == "logged"


def _told(text: str, shown: Line, width: int, role: str = "") -> TextLine:
    """`'` after a value of the group, `~` before one that has aged; a blank keeps the others in place.

    `role` is of a value that is not as it should be; else it says how new the value is.
    """
    is_old = _is_old(shown)
    is_missing = shown.seen is None
    mark, after = "~" if is_old and not is_missing else "", "'" if shown.group else ""
    quiet = "muted" if is_old or is_missing else "text"
    return _right(mark + text + after, width, role or quiet, role == "breach")


_cached = functools.lru_cache(maxsize=2048)
"""Of what is made of a line that stands still, or of a word: most cells of a screen are those of a second ago."""


@_cached
def _right(text: str, width: int, role: str, bold: bool = False) -> TextLine:
    return (Span(right(text, width), role, bold),)


@_cached
def _left(text: str, width: int, more: str, role: str, bold: bool) -> TextLine:
    return (Span(left(text, width, more), role, bold),)


def _rank(rank: RankVerdict, look: Look, width: int) -> TextLine:
    return _left(rank.rank, width, look.glyphs.more, "strong", True)


def _gpu(rank: RankVerdict, look: Look, width: int) -> TextLine:
    return _right(look.glyphs.missing if rank.gpu is None else str(rank.gpu), width, "muted")


def _numa(rank: RankVerdict, look: Look, width: int) -> TextLine:
    return _right(look.glyphs.missing if rank.numa is None else str(rank.numa), width, "muted")


def _hbm(rank: RankVerdict, look: Look, width: int) -> TextLine:
    used, total = rank.line("hbm.process"), rank.line("hbm.total")
    missing = look.glyphs.missing
    text = f"{numbers.gib(used.seen, missing)}/{numbers.gib(total.seen, missing)}"
    return _told(text, used, width)


def _hbm_bar(rank: RankVerdict, look: Look, width: int) -> TextLine:
    used, total = rank.line("hbm.process").seen, rank.line("hbm.total").seen
    filled, rest = bar(look.glyphs, used / total if used is not None and total else None, width)
    return (Span(filled, "bar"), Span(rest, "faint"))


def _pair(name: str) -> Callable[[RankVerdict, Look, int], TextLine]:
    key = name.removeprefix("host.")

    def cell(rank: RankVerdict, look: Look, width: int) -> TextLine:
        return _pair_cell(rank.line(name), look.scales[key], look.glyphs.missing, width)

    return cell


@_cached
def _pair_cell(shown: Line, scale: Scale, missing: str, width: int) -> TextLine:
    seen, planned = numbers.scaled(shown.seen, scale, missing), numbers.scaled(shown.planned, scale, missing)
    return _told(f"{seen}/{planned}", shown, width, "breach" if shown.status in ("over", "under") else "")


def _bytes(name: str) -> Callable[[RankVerdict, Look, int], TextLine]:
    key = name.removeprefix("host.")

    def cell(rank: RankVerdict, look: Look, width: int) -> TextLine:
        shown = rank.line(name)
        text = numbers.scaled(shown.seen, look.scales[key], look.glyphs.missing)
        return _told(text, shown, width)

    return cell


def _pinned(rank: RankVerdict, look: Look, width: int) -> TextLine:
    word, role = {
        "ok": ("yes", "text"),
        "under": ("no", "breach"),
        "over": ("yes", "text"),
        "unknown": ("?", "muted"),
    }[rank.line("host.pinned").status]
    return _right(word, width, role)


def _local(rank: RankVerdict, look: Look, width: int) -> TextLine:
    return _local_cell(rank.line("numa.local"), look.glyphs.missing, width)


@_cached
def _local_cell(shown: Line, missing: str, width: int) -> TextLine:
    text = missing if shown.seen is None else f"{shown.seen:.0f}"
    return _told(text, shown, width, "warn" if shown.status == "under" else "")


def _usage(used_name: str, total_name: str) -> Callable[[RankVerdict, Look, int], TextLine]:
    def cell(rank: RankVerdict, look: Look, width: int) -> TextLine:
        used, total = look.aged(rank, rank.line(used_name)), rank.line(total_name)
        return _usage_cell(used, total, look.glyphs.missing, width)

    return cell


@_cached
def _usage_cell(used: Line, total: Line, missing: str, width: int) -> TextLine:
    share = used.seen / total.seen if used.seen is not None and total.seen else None
    return _told(numbers.percent(share, missing), used, width)


def _rate(name: str) -> Callable[[RankVerdict, Look, int], TextLine]:
    def cell(rank: RankVerdict, look: Look, width: int) -> TextLine:
        return _rate_cell(look.aged(rank, rank.line(name)), look.glyphs.missing, width)

    return cell


@_cached
def _rate_cell(shown: Line, missing: str, width: int) -> TextLine:
    return _told(missing if shown.seen is None else f"{shown.seen / 1e6:.1f}", shown, width)


def _state(rank: RankVerdict, look: Look, width: int) -> TextLine:
    word, role = look.states.get((rank.server, rank.rank), ("ok", "muted"))
    return _left(word, width, look.glyphs.more, role, role in ("breach", "critical"))
