"""What this version does with a combination of flags: accepted, rejected, rewritten, ignored, or never guarded.

Conjunctions, not single flags: support for each of two features says nothing of both together.
"""

from __future__ import annotations

from ranktop.plan.arguments import Arguments, flag_name
from ranktop.plan.flags import FIRST_VERSION, LEGACY, field_of
from ranktop.plan.hicache_rules import HICACHE_RULES
from ranktop.plan.launch import LaunchRequest
from ranktop.plan.layersplit_rules import LAYER_SPLIT_RULES
from ranktop.plan.parallel_rules import PARALLEL_RULES
from ranktop.plan.plan import Eligibility, EligibilityVerdict, ModelFacts
from ranktop.plan.profiles import Profile, version_key
from ranktop.plan.resolve import Resolved
from ranktop.plan.rule import Case, Rule

_FINDINGS: dict[EligibilityVerdict, str] = {
    "rejected": "PLAN-REJECTED",
    "rewritten": "PLAN-REWRITTEN",
    "ignored": "PLAN-SILENT-NOOP",
    "untested": "PLAN-UNTESTED",
}


def check_eligibility(
    resolved: Resolved, profile: Profile, model: ModelFacts, request: LaunchRequest
) -> tuple[Eligibility, ...]:
    """Every row that applies, rejections first."""
    case = Case(resolved.args, model, profile)
    found = _flag_rows(request, profile)
    found += [_row(rule) for rule in (*LAYER_SPLIT_RULES, *PARALLEL_RULES, *HICACHE_RULES) if rule.applies(case)]
    found += [
        Eligibility(
            flag_name(change.flag),
            "rewritten",
            f"{change.requested} -> {change.resolved}: {change.why}",
            "PLAN-REWRITTEN",
        )
        for change in resolved.rewritten
    ]
    order = ("rejected", "ignored", "untested", "rewritten", "accepted")
    return tuple(sorted(found, key=lambda row: order.index(row.verdict)))


def layer_split_reasons(args: Arguments, profile: Profile, model: ModelFacts) -> tuple[str, ...]:
    """Why a launch that asks for LayerSplit does not get it; empty when it does or does not ask."""
    case = Case(args, model, profile)
    refusing = ("rejected", "ignored")
    return tuple(rule.message for rule in LAYER_SPLIT_RULES if rule.verdict in refusing and rule.applies(case))


def _row(rule: Rule) -> Eligibility:
    return Eligibility(rule.rule, rule.verdict, rule.message, rule.finding or _FINDINGS.get(rule.verdict))


def _flag_rows(request: LaunchRequest, profile: Profile) -> list[Eligibility]:
    """Flags that this release does not have yet, or no longer."""
    if request.resolved:
        return []
    version = version_key(profile.version)
    rows = [
        Eligibility(flag_name(field), "rejected", f"{flag_name(field)} first exists in {since}", "PLAN-REJECTED")
        for field, since in FIRST_VERSION.items()
        if request.flags.get(field) and version < version_key(since)
    ]
    rows += _sizes_of_nothing(request)
    return rows + [row for flag in request.dated_flags if (row := _dated_row(flag, version)) is not None]


def _sizes_of_nothing(request: LaunchRequest) -> list[Eligibility]:
    """A size of host pools that are not asked for. No finding: who rolls L2 back may well leave it in the line.

    A decode server has host pools for retracted requests without HiCache (0.5.23).
    """
    flags = request.flags
    if flags.get("enable_hierarchical_cache") or flags.get("disaggregation_mode") == "decode":
        return []
    return [
        Eligibility(flag_name(field), "ignored", "does nothing without --enable-hierarchical-cache")
        for field in ("hicache_size", "hicache_ratio")
        if flags.get(field)
    ]


def _dated_row(flag: str, version: tuple[int, ...]) -> Eligibility | None:
    use = f"use {flag_name(field_of(flag)[0] or '')}"
    if flag.lstrip("-").replace("-", "_") in LEGACY:
        if version < (0, 5, 20):
            return Eligibility(flag, "accepted", f"deprecated; {use}")
        return Eligibility(flag, "rejected", f"{flag} was removed in 0.5.20; {use}", "PLAN-REJECTED")
    if version < (0, 5, 23):
        return Eligibility(flag, "rejected", f"{flag} first exists in 0.5.23; {use}", "PLAN-REJECTED")
    return None
