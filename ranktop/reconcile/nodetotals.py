"""Shares and rates of a whole node, from those of its servers."""

from __future__ import annotations

from collections.abc import Sequence

from ranktop.reconcile.verdict import ServerVerdict, TierShares, TransferRates


def node_tiers(servers: Sequence[ServerVerdict]) -> TierShares:
    """Shares over all servers, weighted by tokens. A share that a server does not tell is not taken for none of it."""
    known = [server.tiers for server in servers if server.tiers.window_tokens]
    if not known:
        return servers[0].tiers if servers else TierShares(detail="no server")
    windows = [tiers.window_seconds for tiers in known if tiers.window_seconds is not None]

    def mean(name: str) -> float | None:
        values = [(getattr(tiers, name), tiers.window_tokens or 0) for tiers in known]
        said = [(share, tokens) for share, tokens in values if share is not None]
        return sum(share * tokens for share, tokens in said) / sum(tokens for _, tokens in said) if said else None

    return TierShares(
        device_hit=mean("device_hit"),
        host_hit=mean("host_hit"),
        storage_hit=mean("storage_hit"),
        miss=mean("miss"),
        source=known[0].source,
        window_tokens=sum(tiers.window_tokens or 0 for tiers in known),
        # One that counts from its start makes all of it be since then.
        window_seconds=max(windows) if len(windows) == len(known) else None,
    )


def node_transfers(servers: Sequence[ServerVerdict]) -> TransferRates:
    """Rates summed over all servers that say."""

    def total(name: str) -> float | None:
        said = [rate for server in servers if (rate := getattr(server.transfers, name)) is not None]
        return sum(said) if said else None

    return TransferRates(
        backup_bytes_per_second=total("backup_bytes_per_second"),
        load_back_bytes_per_second=total("load_back_bytes_per_second"),
        prefetch_bytes_per_second=total("prefetch_bytes_per_second"),
        source=next((server.transfers.source for server in servers if server.transfers.source), None),
    )
