"""What follows from a server's last two pages. A page comes every few seconds and samples every second, so this is
worked out once a page."""

from __future__ import annotations

from typing import NamedTuple

from ranktop.reconcile.lines.rates import Gains
from ranktop.reconcile.reported import Reported
from ranktop.reconcile.series import Series, seconds_between, window
from ranktop.reconcile.service import service
from ranktop.reconcile.tiers import tier_shares, transfer_rates
from ranktop.reconcile.verdict import Line, Service, TierShares, TransferRates
from ranktop.sample import MetricsPage


class RankDigest(NamedTuple):
    """What two pages tell of one rank, and everything else that it was worked out from."""

    inputs: tuple[object, ...]
    said: Reported
    lines: tuple[Line, ...]


class PageDigest(NamedTuple):
    """Two pages and their derivations. `version` is what the shares were read with."""

    previous: MetricsPage | None
    page: MetricsPage
    version: str | None
    ranks: int
    series: Series
    gains: Gains
    tiers: TierShares
    transfers: TransferRates
    service: Service
    by_rank: dict[str, RankDigest]
    """By rank tag, filled as ranks are judged."""


def digest(known: PageDigest | None, page: MetricsPage, version: str | None, ranks: int) -> PageDigest:
    """The digest of the newest page; the one that is known, where nothing changed."""
    if known is not None and known.page.at_unix_seconds == page.at_unix_seconds:
        if (known.version, known.ranks) == (version, ranks):
            return known
        previous = known.previous
    else:
        previous = known.page if known is not None else None
    gains = window(previous, page)
    return PageDigest(
        previous,
        page,
        version,
        ranks,
        Series(page),
        Gains(gains, seconds_between(previous, page), version, ranks),
        tier_shares(previous, page, version, gains),
        transfer_rates(previous, page, version, ranks, gains=gains),
        service(previous, page, gains),
        {},
    )
