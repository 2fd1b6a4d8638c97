from __future__ import annotations

import msgspec
import pytest

from ranktop.demo.launch import DEVICE_TOKENS
from ranktop.demo.traffic import Profile, Step, Traffic

HOST_TOKENS = 1024


def _run(seconds: int, seed: int = 7, profile: Profile | None = None) -> list[Step]:
    traffic = Traffic(seed, HOST_TOKENS, profile)
    return [traffic.step(1.0) for _ in range(seconds)]


def test_the_same_seed_gives_the_same_traffic() -> None:
    assert _run(60) == _run(60)
    assert _run(60) != _run(60, seed=8)


def test_ten_minutes_hit_every_tier_and_miss() -> None:
    steps = _run(600)
    shares = [sum(getattr(step, name) for step in steps) for name in ("device_hit_tokens", "host_hit_tokens")]
    shares.append(sum(step.input_tokens for step in steps))
    assert all(share > 0.1 * sum(shares) for share in shares)


@pytest.mark.parametrize("seed", range(5))
def test_what_was_admitted_was_hit_or_computed(seed: int) -> None:
    steps = _run(600, seed)
    taken = sum(step.input_tokens + step.device_hit_tokens + step.host_hit_tokens for step in steps)
    ended = [one for step in steps for one in step.finished]
    assert 0 <= taken - sum(one.prompt_tokens for one in ended) <= 3 * DEVICE_TOKENS
    assert sum(step.load_back_tokens for step in steps) == sum(step.host_hit_tokens for step in steps)
    written = sum(step.backup_tokens - step.host_evicted_tokens for step in steps)
    assert steps[-1].host_used_tokens == written
    assert all(step.used_tokens + step.evictable_tokens + step.available_tokens == DEVICE_TOKENS for step in steps)


@pytest.mark.parametrize("seed", range(5))
def test_the_queue_empties_again(seed: int) -> None:
    steps = _run(1200, seed)
    assert max(step.queued for step in steps) < 30
    assert sum(1 for step in steps if step.queued == 0) > len(steps) // 2


def test_l2_is_read_more_than_it_is_overwritten() -> None:
    steps = _run(1200)
    assert sum(step.load_back_tokens for step in steps) > sum(step.host_evicted_tokens for step in steps)


def test_a_long_step_is_the_same_traffic_as_short_ones() -> None:
    short, long = Traffic(7, HOST_TOKENS), Traffic(7, HOST_TOKENS)
    steps = [short.step(1.0) for _ in range(30)]
    whole = long.step(30.0)
    assert whole.finished == tuple(one for step in steps for one in step.finished)
    assert whole.backup_tokens == sum(step.backup_tokens for step in steps)


def test_without_load_back_hits_are_counted_and_nothing_is_read() -> None:
    steps = _run(300, profile=Profile(load_back=False))
    assert sum(step.host_hit_tokens for step in steps) > 0
    assert sum(step.load_back_tokens for step in steps) == 0


def test_a_step_can_be_sent() -> None:
    step = _run(20)[-1]
    assert msgspec.json.decode(msgspec.json.encode(step), type=Step) == step
