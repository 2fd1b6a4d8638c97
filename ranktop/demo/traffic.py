"""Seeded traffic: sessions that come back, over the exact little cache of `cache.py`.

A session is a shared system page and pages of its own, one more with each turn. Time is the node's (scaled) seconds.
Everything a step reports follows from the same requests, so the counters agree with each other by construction.
"""

from __future__ import annotations

import math
import random
from collections import deque

from msgspec import Struct, field

from ranktop.demo.cache import Admission, Page, PageCache
from ranktop.demo.launch import DEVICE_TOKENS, PAGE_TOKENS

_SLICE_SECONDS = 0.1
_PRIVATE_PAGES = 1
"""The last part of a prompt and the output share one page that is never cached."""


class Profile(Struct, frozen=True):
    """What kind of traffic comes, and what the cache does with it."""

    requests_per_second: float = 2.2
    swing: float = 0.45
    """Share by which the rate rises and falls over `swing_seconds`."""
    swing_seconds: float = 90.0
    sessions: int = 5
    turns: int = 10
    """Requests of one session before a new one takes its place."""
    first_pages: int = 1
    own_pages: int = 4
    """Pages of its own that a session has at its last turn; it starts with `first_pages`."""
    shared_prefix: bool = True
    """Whether a session begins with a page that others begin with too."""
    prefill_only: bool = False
    """A prefill worker: one token comes out, the rest is another server's."""
    load_back: bool = True
    """False: host hits are counted and the tokens are computed again."""
    max_running: int = 3


class Finished(Struct, frozen=True):
    """One request that ended in this step."""

    streaming: bool
    prompt_tokens: int
    device_tokens: int
    host_tokens: int
    output_tokens: int
    ttft_seconds: float
    inter_token_seconds: float
    e2e_seconds: float


class PrefillBatch(Struct, frozen=True):
    """One prefill report (0.5.18 logs one a batch)."""

    new_tokens: int
    cached_tokens: int
    queue_seconds: float


class Step(Struct, frozen=True):
    """What happened in one step, and how things stand at its end. Tokens are logical: one rank's."""

    seconds: float
    input_tokens: int
    device_hit_tokens: int
    host_hit_tokens: int
    load_back_tokens: int
    backup_tokens: int
    dropped_tokens: int
    evicted_tokens: int
    host_evicted_tokens: int
    decode_tokens: int
    backup_operations: int
    load_back_operations: int
    eviction_operations: int
    prefills: tuple[PrefillBatch, ...]
    finished: tuple[Finished, ...]
    running: int
    queued: int
    used_tokens: int
    evictable_tokens: int
    available_tokens: int
    host_used_tokens: int

    @property
    def hit_rate(self) -> float:
        """`cache_hit_rate` of the last prefill report."""
        if not self.prefills:
            return 0.0
        last = self.prefills[-1]
        return last.cached_tokens / (last.cached_tokens + last.new_tokens)


class _Session(Struct):
    number: int
    system: int
    turn: int = 0


class _Request(Struct):
    path: tuple[Page, ...]
    tail_tokens: int
    output_tokens: int
    inter_token_seconds: float
    streaming: bool
    arrived: float
    admission: Admission | None = None
    first_token_at: float = 0.0
    ends_at: float = 0.0
    decoded: int = 0


class _Tally(Struct):
    input: int = 0
    decode: int = 0
    admissions: list[Admission] = field(default_factory=list)
    prefills: list[PrefillBatch] = field(default_factory=list)
    finished: list[Finished] = field(default_factory=list)


class Traffic:
    """The same seed and the same steps give the same traffic."""

    def __init__(self, seed: int, host_tokens: int, profile: Profile | None = None) -> None:
        self.profile = profile or Profile()
        self._random = random.Random(seed)
        self._cache = PageCache(DEVICE_TOKENS // PAGE_TOKENS, host_tokens // PAGE_TOKENS)
        self._slices = 0
        self._asked_seconds = 0.0
        self._sessions = [self._new_session(number) for number in range(self.profile.sessions)]
        self._born = len(self._sessions)
        self._waiting: deque[_Request] = deque()
        self._running: list[_Request] = []

    def step(self, seconds: float) -> Step:
        """Let `seconds` of the node's time pass."""
        tally = _Tally()
        self._asked_seconds += seconds
        while (self._slices + 1) * _SLICE_SECONDS < self._asked_seconds + 1e-6:
            self._slices += 1
            self._arrive()
            self._advance(tally)
            self._admit(tally)
        return self._report(seconds, tally)

    @property
    def _now(self) -> float:
        return self._slices * _SLICE_SECONDS

    def _arrive(self) -> None:
        wave = 1 + self.profile.swing * math.sin(2 * math.pi * self._now / self.profile.swing_seconds)
        if self._random.random() < self.profile.requests_per_second * wave * _SLICE_SECONDS:
            self._waiting.append(self._next_request())

    def _new_session(self, number: int) -> _Session:
        return _Session(number, system=self._random.randrange(2))

    def _next_request(self) -> _Request:
        index = self._random.randrange(len(self._sessions))
        session = self._sessions[index]
        profile = self.profile
        own = profile.first_pages
        own += session.turn * (profile.own_pages - profile.first_pages) // max(1, profile.turns - 1)
        shared = ((-1 - session.system, 0),) if profile.shared_prefix else ()
        path = (*shared, *((session.number, page) for page in range(own)))
        session.turn += 1
        if session.turn >= self.profile.turns:
            self._sessions[index] = self._new_session(self._born)
            self._born += 1
        return _Request(
            path=path,
            tail_tokens=self._random.randint(4, 20),
            output_tokens=1 if profile.prefill_only else self._random.randint(20, 44),
            inter_token_seconds=self._random.uniform(0.008, 0.016),
            streaming=self._random.random() < 0.7,
            arrived=self._now,
        )

    def _advance(self, tally: _Tally) -> None:
        for request in list(self._running):
            done = min(request.output_tokens, int((self._now - request.first_token_at) / request.inter_token_seconds))
            tally.decode += max(0, done - request.decoded)
            request.decoded = max(done, request.decoded)
            if self._now >= request.ends_at:
                tally.decode += request.output_tokens - request.decoded
                self._running.remove(request)
                self._cache.release(request.path, _PRIVATE_PAGES)
                tally.finished.append(_finish(request))

    def _admit(self, tally: _Tally) -> None:
        while self._waiting and len(self._running) < self.profile.max_running:
            request = self._waiting[0]
            admission = self._cache.admit(request.path, _PRIVATE_PAGES, load_back=self.profile.load_back)
            if admission is None:
                return
            self._waiting.popleft()
            cached = (admission.device_hit + admission.host_hit) * PAGE_TOKENS
            computed = len(request.path) * PAGE_TOKENS - cached + request.tail_tokens
            request.admission = admission
            request.first_token_at = self._now + 0.06 + 0.0012 * computed + 0.0002 * admission.loaded * PAGE_TOKENS
            request.first_token_at += 0.0012 * (admission.host_hit - admission.loaded) * PAGE_TOKENS
            request.ends_at = request.first_token_at + request.output_tokens * request.inter_token_seconds
            tally.admissions.append(admission)
            tally.input += computed
            tally.prefills.append(PrefillBatch(computed, cached, self._now - request.arrived))
            self._running.append(request)

    def _report(self, seconds: float, tally: _Tally) -> Step:
        done = tally.admissions
        return Step(
            seconds=seconds,
            input_tokens=tally.input,
            device_hit_tokens=sum(one.device_hit for one in done) * PAGE_TOKENS,
            host_hit_tokens=sum(one.host_hit for one in done) * PAGE_TOKENS,
            load_back_tokens=sum(one.loaded for one in done) * PAGE_TOKENS,
            backup_tokens=sum(one.backed_up for one in done) * PAGE_TOKENS,
            dropped_tokens=sum(one.dropped for one in done) * PAGE_TOKENS,
            evicted_tokens=sum(one.evicted for one in done) * PAGE_TOKENS,
            host_evicted_tokens=sum(one.host_evicted for one in done) * PAGE_TOKENS,
            decode_tokens=tally.decode,
            backup_operations=sum(1 for one in done if one.backed_up),
            load_back_operations=sum(1 for one in done if one.loaded),
            eviction_operations=sum(1 for one in done if one.evicted),
            prefills=tuple(tally.prefills),
            finished=tuple(tally.finished),
            running=len(self._running),
            queued=len(self._waiting),
            used_tokens=self._cache.locked * PAGE_TOKENS,
            evictable_tokens=self._cache.evictable * PAGE_TOKENS,
            available_tokens=self._cache.available * PAGE_TOKENS,
            host_used_tokens=self._cache.host_used * PAGE_TOKENS,
        )


def _finish(request: _Request) -> Finished:
    admission = request.admission
    assert admission is not None
    return Finished(
        streaming=request.streaming,
        prompt_tokens=len(request.path) * PAGE_TOKENS + request.tail_tokens,
        device_tokens=admission.device_hit * PAGE_TOKENS,
        host_tokens=admission.host_hit * PAGE_TOKENS,
        output_tokens=request.output_tokens,
        ttft_seconds=request.first_token_at - request.arrived,
        inter_token_seconds=request.inter_token_seconds,
        e2e_seconds=request.ends_at - request.arrived,
    )
