"""What is remembered of every server between samples: its log, ledgers of its pages, activity, launches."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence

from ranktop.reconcile.activity import Activity, follow
from ranktop.reconcile.digest import PageDigest
from ranktop.reconcile.eventlog import EventLog
from ranktop.reconcile.launches import Launch, extend, present
from ranktop.reconcile.ledger import Ledger, has_restarted, ledger
from ranktop.reconcile.verdict import RankVerdict, ServerVerdict
from ranktop.sample import RequestRecord, Sample

LEDGER_SECONDS = 900.0
MAX_REQUESTS = 2000


class ServerPast:
    """Grows with each sample. `launches` are those remembered from earlier runs of ranktop, oldest first."""

    def __init__(self, launches: Iterable[Launch] = ()) -> None:
        self.log = EventLog()
        self.activities: dict[str, Activity] = {}
        self.launches: dict[str, tuple[Launch, ...]] = {}
        self.requests: dict[str, deque[RequestRecord]] = {}
        self._read: dict[str, tuple[RequestRecord, ...]] = {}
        self._ledgers: dict[str, deque[Ledger]] = {}
        for launch in launches:
            self.launches[launch.server] = extend(self.launches.get(launch.server, ()), launch)

    def ledgers(self) -> dict[str, tuple[Ledger, ...]]:
        """By server: totals at its pages of the last LEDGER_SECONDS, oldest first."""
        return {server: tuple(kept) for server, kept in self._ledgers.items()}

    def note_pages(self, now: float, digests: Mapping[str, PageDigest]) -> None:
        """Keep the totals of every new page. A server behind the same address that counts anew starts anew here."""
        for server, told in digests.items():
            kept = self._ledgers.setdefault(server, deque())
            if not kept or kept[-1].at_unix_seconds != told.page.at_unix_seconds:
                totals = ledger(told.series, now, told.gains.version, told.gains.ranks)
                if kept and has_restarted(kept[-1], totals):
                    kept.clear()
                kept.append(totals)
            # The newest stays however old it is: its page may come no more.
            while len(kept) > 1 and now - kept[0].at_monotonic_seconds > LEDGER_SECONDS:
                kept.popleft()
        for server in [server for server in self._ledgers if server not in digests]:
            del self._ledgers[server]

    def note_servers(self, sample: Sample, servers: Sequence[ServerVerdict], ranks: Sequence[RankVerdict]) -> None:
        """Follow what every server does and which launch it runs."""
        for server_id, records in sample.requests.items():
            # A read stays in the samples until the next one.
            if records != self._read.get(server_id):
                self.requests.setdefault(server_id, deque(maxlen=MAX_REQUESTS)).extend(records)
        self._read = sample.requests
        activities: dict[str, Activity] = {}
        available = sample.host.available_bytes if sample.host is not None else None
        for server in servers:
            own = [rank for rank in ranks if rank.server == server.id]
            kept = self._ledgers.get(server.id, ())
            logged = self.log.last_unix_seconds(server.id)
            activities[server.id] = follow(self.activities.get(server.id), sample, server, own, kept, logged)
            launch = present(server, sample.infos.get(server.id), own, kept, available)
            if launch is not None:
                self.launches[server.id] = extend(self.launches.get(server.id, ()), launch)
        self.activities = activities
