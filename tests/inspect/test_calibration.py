"""From logged GB to the release that allocates so: every profile is told from its own pools."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ranktop.plan import PROFILES, compute_plan, parse_launch
from ranktop.plan.plan import Plan
from ranktop.reconcile.calibration import checked_pools, fit, infer, usual_pools
from ranktop.reconcile.logged import LoggedServer, fold
from ranktop.sample import Event

LAUNCH = "--model-path zai-org/GLM-5.2-FP8 --tp-size 8 --kv-cache-dtype fp8_e4m3 --enable-hierarchical-cache"
REQUEST = parse_launch(f"{LAUNCH} --hicache-size 96 --speculative-algorithm EAGLE")
WITHOUT_DRAFT = parse_launch(f"{LAUNCH} --hicache-size 96")


def plan_of(version: str, launch: object = REQUEST) -> Plan:
    return compute_plan(launch, version=version)  # type: ignore[arg-type]


def events(
    plan: Plan, *, with_tokens: bool = False, tagged: bool = True, factor: dict[str, float] | None = None
) -> list[Event]:
    """What the ranks of this plan log: sizes with two decimals of 1e9, draft and index pools in their own lines."""
    found: list[Event] = []
    packed = PROFILES[plan.sglang.profile].mtp_packed and plan.launch.speculative is not None
    for rank in plan.ranks:
        assert rank.host is not None
        for line, size in checked_pools(rank.host):
            if not size:
                continue
            size = int(size * (factor or {}).get(rank.rank, 1.0))
            fields: dict[str, object] = {"size_gb": round(size / 1e9, 2)}
            if line == "host.primary" and with_tokens:
                fields["tokens"] = rank.host.tokens
            if packed and line in ("host.primary", "host.indexer"):
                fields["draft_layers"] = 1
            kind = "host_indexer" if "indexer" in line else "host_pool"
            found.append(Event(1.0, kind, "", "a", rank.rank if tagged else None, fields))
    return found


def logged(plan: Plan, **options: object) -> LoggedServer:
    return fold(LoggedServer(), events(plan, **options))  # type: ignore[arg-type]


@pytest.mark.parametrize("version", list(PROFILES))
@pytest.mark.parametrize("launch", [REQUEST, WITHOUT_DRAFT], ids=["draft", "no draft"])
def test_the_release_that_logged_is_among_those_that_fit(version: str, launch: object) -> None:
    told = logged(plan_of(version, launch))
    fitted = fit(plan_of("0.5.18", launch), launch, told, is_version_known=False, arch=None)  # type: ignore[arg-type]
    assert fitted.calibration is not None
    assert version in (fitted.calibration.fits, *fitted.calibration.also_fits)
    assert fitted.plan.ranks[0].host == plan_of(version, launch).ranks[0].host


def test_below_0_5_18_the_draft_is_a_sidecar_of_its_own_row_width() -> None:
    told = logged(plan_of("0.5.16"))
    plan = plan_of("0.5.13.post1")
    fitted = fit(plan, REQUEST, told, is_version_known=True, arch=None)
    assert fitted.calibration is not None
    assert (fitted.calibration.fits, fitted.calibration.draft_row_bytes) == ("0.5.16", 576)
    assert (fitted.plan.sglang.version, fitted.plan.sglang.exact) == ("0.5.13.post1", False)


def test_a_packed_line_moves_an_inexact_version_to_a_packed_plan() -> None:
    plan = plan_of("0.5.13.post1")
    fitted = fit(plan, REQUEST, logged(plan_of("0.5.18")), is_version_known=True, arch=None)
    assert (fitted.plan.sglang.profile, fitted.plan.sglang.exact) == ("0.5.18", False)


def test_an_exact_version_keeps_its_plan_whatever_the_log_says() -> None:
    plan = plan_of("0.5.23")
    fitted = fit(plan, REQUEST, logged(plan_of("0.5.18")), is_version_known=True, arch=None)
    assert fitted.plan is plan
    assert fitted.calibration is not None
    assert fitted.calibration.fits == "0.5.21"


def test_one_odd_rank_does_not_move_the_plan() -> None:
    plan = plan_of("0.5.18")
    fitted = fit(plan, REQUEST, logged(plan, factor={"TP3": 1.1}), is_version_known=True, arch=None)
    assert fitted.calibration is not None
    assert fitted.calibration.fits == "0.5.18"


def test_sizes_that_no_release_gives_fit_none_and_still_tell_the_row() -> None:
    plan = plan_of("0.5.18", WITHOUT_DRAFT)
    told = logged(plan, with_tokens=True, factor={rank.rank: 1.003 for rank in plan.ranks})
    fitted = fit(plan, WITHOUT_DRAFT, told, is_version_known=False, arch=None)
    assert fitted.calibration is not None
    assert (fitted.calibration.fits, fitted.calibration.row_bytes, fitted.calibration.index_layers) == (None, 656, 78)
    assert not fitted.plan.sglang.exact


def test_no_logged_pool_gives_no_calibration() -> None:
    assert fit(plan_of("0.5.18"), REQUEST, LoggedServer(), is_version_known=True, arch=None).calibration is None


@settings(max_examples=25, deadline=None)
@given(size=st.integers(2, 400), version=st.sampled_from(list(PROFILES)), tagged=st.booleans(), draft=st.booleans())
def test_a_launch_is_inferred_from_sizes_alone(size: int, version: str, tagged: bool, draft: bool) -> None:
    launch = parse_launch(f"{LAUNCH} --hicache-size {size}" + (" --speculative-algorithm EAGLE" if draft else ""))
    plan = plan_of(version, launch)
    request = infer(logged(plan, tagged=tagged), version)
    assert request is not None
    again = compute_plan(request, version=version)
    assert len(again.ranks) == 8
    assert again.ranks[0].host is not None
    assert plan.ranks[0].host is not None
    for (line, mine), (_, theirs) in zip(
        checked_pools(again.ranks[0].host), checked_pools(plan.ranks[0].host), strict=True
    ):
        assert abs((mine or 0) - (theirs or 0)) <= 10_000_000, line


def test_a_model_without_an_index_is_not_guessed() -> None:
    plan = plan_of("0.5.18", parse_launch("--model-path x/qwen3-32b --enable-hierarchical-cache --hicache-size 40"))
    assert infer(logged(plan), "0.5.18") is None


def test_untagged_lines_are_counted_out_to_ranks() -> None:
    told = logged(plan_of("0.5.16"), tagged=False)
    assert list(told.pools) == [f"TP{tp}" for tp in range(8)]
    assert {pool.line for pool in told.pools["TP7"]} == {"host.primary", "host.indexer", "host.draft"}
    assert set(usual_pools(told)) == {"host.primary", "host.indexer", "host.draft"}


def test_a_new_start_forgets_the_pools_before_it_and_an_old_one_does_not() -> None:
    told = logged(plan_of("0.5.18"))
    start = Event(2.0, "server_args", "", "a", None, {"args": {"tp_size": 1}})
    assert fold(told, [start]).pools == {}
    after = fold(LoggedServer(), [start, *events(plan_of("0.5.18"))])
    assert fold(after, [Event(1.0, "server_args", "", "a", None, {"args": {}})]) == after
