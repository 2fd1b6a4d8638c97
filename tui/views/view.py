"""What a view is given and what it gives back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from ranktop.finding import Finding
from ranktop.reconcile.verdict import Verdict
from tui.draw.glyphs import Glyphs
from tui.draw.spans import TextLine
from tui.happening import Happening
from tui.own import OwnCost
from tui.trails import Trails


class RankTarget(NamedTuple):
    """Enter opens this rank."""

    server: str
    rank: str


class FindingTarget(NamedTuple):
    """Enter opens this finding."""

    finding: Finding


class NodeTarget(NamedTuple):
    """Enter opens this node of a fleet, by the instance that Prometheus knows it as."""

    instance: str


class LineTarget(NamedTuple):
    """Enter opens this line of Budget; `owner` None: a line of the node."""

    owner: RankTarget | None
    line: str


class EventTarget(NamedTuple):
    """Enter opens this event."""

    happening: Happening


Target = RankTarget | FindingTarget | NodeTarget | LineTarget | EventTarget


def are_one(one: Target, other: Target) -> bool:
    """Whether both are of the same thing: the numbers of a finding change while it is open, the ranks
    of an event while more of them log it."""
    if isinstance(one, FindingTarget) and isinstance(other, FindingTarget):
        return (one.finding.code, one.finding.server) == (other.finding.code, other.finding.server)
    if isinstance(one, EventTarget) and isinstance(other, EventTarget):
        return one.happening.begin == other.happening.begin
    return one == other


class Row:
    """A line, and what Enter opens on it.

    One of many rows is given how it is drawn, and drawn once it comes on the screen: a thousand cost what fits on it.
    `below`: what stands in the page's tail while the cursor is on it.
    """

    __slots__ = ("_line", "below", "target")

    def __init__(
        self,
        text_line: TextLine | Callable[[], TextLine],
        target: Target | None = None,
        below: tuple[Row, ...] = (),
    ) -> None:
        self._line = text_line
        self.target = target
        self.below = below

    @property
    def line(self) -> TextLine:
        if not isinstance(self._line, tuple):
            self._line = self._line()
        return self._line


class Sort(NamedTuple):
    """Columns to sort by, the first leading; `descending` holds for the first."""

    keys: tuple[str, ...] = ()
    descending: bool = True


UNSORTED = Sort()


class Differences(Protocol):
    """Findings that only the recorder saw, and those that only this replay finds."""

    @property
    def only_recorded(self) -> Sequence[Finding]: ...

    @property
    def only_replayed(self) -> Sequence[Finding]: ...


class _Same(NamedTuple):
    only_recorded: tuple[Finding, ...] = ()
    only_replayed: tuple[Finding, ...] = ()


NO_DIFFERENCES: Differences = _Same()


class Frame(NamedTuple):
    """Everything that a view may draw from."""

    verdict: Verdict
    width: int
    glyphs: Glyphs
    trails: Trails
    sort: Sort = UNSORTED
    filter: str = ""
    rank: RankTarget | None = None
    """The rank that was chosen last: Budget shows its waterfall."""
    events: tuple[Happening, ...] = ()
    columns: tuple[str, ...] = ()
    """Of the rank grid, in this order; all if empty."""
    own: OwnCost | None = None
    """What ranktop itself costs; None in a replay."""
    differences: Differences = NO_DIFFERENCES
    height: int | None = None
    """Rows that the page has on the screen, without title and keys; None: as many as it likes."""
    batches: tuple[Happening, ...] = ()
    """Log lines of batches, oldest first: shown when the filter asks for them."""


class Page(NamedTuple):
    """`head` stays, `rows` scroll. With a `tail` the page has a second part that scrolls by itself."""

    head: tuple[TextLine, ...]
    rows: tuple[Row, ...]
    tail_head: tuple[TextLine, ...] = ()
    tail: tuple[Row, ...] | None = None


def most_rows(height: int, page: Page) -> int:
    """How many of its rows a page of that height shows at most, so that the tail is seen too: eight ranks and five
    lines of findings on 24 lines."""
    room = rows_of_both(height, page)
    return max(0, room - min(len(page.tail or ()), max(2, room * 2 // 5)))


def draw_page(view: View, frame: Frame, has_bar: bool = False) -> tuple[Page, bool]:
    """The page, narrower by one cell while it scrolls, as its bar stands there; and whether it does.

    `has_bar` is of the frame before. What fits without that cell fits with it, so no page goes to and fro.
    """
    page = view.draw(frame._replace(width=max(1, frame.width - has_bar)))
    if has_bar != _scrolls(frame.height or 0, page):
        has_bar = not has_bar
        page = view.draw(frame._replace(width=max(1, frame.width - has_bar)))
    return page, has_bar


def _scrolls(height: int, page: Page) -> bool:
    """Whether rows or tail are more than a page of that height shows."""
    if page.tail is None:
        return len(page.rows) > height - len(page.head)
    most = most_rows(height, page)
    return len(page.rows) > most or len(page.tail) > rows_of_both(height, page) - min(len(page.rows), most)


def rows_of_both(height: int, page: Page) -> int:
    """What rows and tail share."""
    return height - len(page.head) - len(page.tail_head)


class View(Protocol):
    """One view: a key, a name for the bottom line, and its drawing."""

    @property
    def key(self) -> str: ...

    @property
    def name(self) -> str: ...

    def draw(self, frame: Frame) -> Page: ...
