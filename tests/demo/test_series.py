from __future__ import annotations

from ranktop.demo import series
from ranktop.demo.exposition import SCHEDULER_FAMILIES, TOKENIZER_FAMILIES
from ranktop.demo.sizes import pool_sizes
from ranktop.demo.traffic import Traffic

SIZES = pool_sizes()
TRAFFIC = Traffic(7, SIZES.tokens)
STEPS = [TRAFFIC.step(1.0) for _ in range(300)]


def _added(name: str, *extra: str) -> float:
    operations = [one for step in STEPS for one in series.every_rank(step, SIZES) + series.stats_rank(step, SIZES)]
    return sum(value for family, labels, value in operations if (family, labels) == (name, extra))


def test_every_operation_fits_its_family() -> None:
    scheduler = series.constants(0, SIZES)
    tokenizer = series.tokenizer_start()
    for step in STEPS:
        scheduler += series.every_rank(step, SIZES) + series.stats_rank(step, SIZES)
        tokenizer += series.tokenizer(step)
    for operations, families in ((scheduler, SCHEDULER_FAMILIES), (tokenizer, TOKENIZER_FAMILIES)):
        assert {(name, len(extra)) for name, extra, _ in operations} <= {
            (name, len(family.extra)) for name, family in families.items()
        }


def test_tokens_and_bytes_move_together() -> None:
    for moved in ("hicache_backup", "load_back"):
        assert _added(f"{moved}_bytes_total") == _added(f"{moved}_tokens_total", "kv") * SIZES.bytes_per_token > 0


def test_scheduler_and_tokenizer_agree_on_hits() -> None:
    finished = [one for step in STEPS for one in step.finished]
    scheduled = _added("prefill_effective_tokens_total", "host_hit")
    assert 0 <= scheduled - sum(one.host_tokens for one in finished) <= 3 * SIZES.tokens


def test_the_host_gauge_never_exceeds_its_pool() -> None:
    gauges = [{name: value for name, _, value in series.stats_rank(step, SIZES)} for step in STEPS]
    assert all(one["hicache_host_used_tokens"] <= one["hicache_host_total_tokens"] == SIZES.tokens for one in gauges)
