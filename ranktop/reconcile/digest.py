"""What follows from a server's last two pages. A page comes every few seconds and samples every second, so this is
worked out once a page."""

from __future__ import annotations

from typing import NamedTuple

from ranktop.reconcile.lines.rates import Gains
from ranktop.reconcile.pd import handoff
from ranktop.reconcile.series import Series, seconds_between
from ranktop.reconcile.service import acceptance, load, service
from ranktop.reconcile.tiers import host_bytes_per_token, tier_shares, transfer_rates
from ranktop.reconcile.traffic import traffic
from ranktop.reconcile.verdict import Acceptance, Handoff, Load, Service, TierShares, Traffic, TransferRates
from ranktop.sample import MetricsPage, ServerInfo


class PageDigest(NamedTuple):
    """Two pages and their derivations, read with what the server says of itself (version, role)."""

    previous: Series | None
    page: MetricsPage
    info: ServerInfo | None
    processes: int
    series: Series
    gains: Gains
    tiers: TierShares
    transfers: TransferRates
    service: Service
    load: Load
    acceptance: Acceptance
    traffic: Traffic
    handoff: Handoff


def digest(known: PageDigest | None, page: MetricsPage, info: ServerInfo | None, processes: int) -> PageDigest:
    """The digest of the newest page; the one that is known, where nothing changed.

    `processes` are those of the server's ranks that were found; without any its ranks are those of the page.
    """
    if known is not None and known.page.at_unix_seconds == page.at_unix_seconds:
        if known.info is info and known.processes == processes:
            return known
        previous = known.previous
    else:
        previous = known.series if known is not None else None
    version = info.version if info is not None else None
    series = Series(page, known.series if known is not None else None)
    ranks = processes or max(1, len(series.ranks()))
    gains, seconds = series.since(previous), seconds_between(previous, series)
    return PageDigest(
        previous,
        page,
        info,
        processes,
        series,
        Gains(gains, seconds, version, ranks),
        tier_shares(gains, seconds, version),
        transfer_rates(gains, seconds, version, host_bytes_per_token(series)),
        service(gains, seconds),
        load(gains, seconds, version),
        acceptance(gains),
        traffic(gains, seconds, version, ranks),
        handoff(gains, seconds, info),
    )
