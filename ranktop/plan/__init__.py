"""What should be there: every rank's pools of one launch, computed. Pure arithmetic, no I/O."""

from ranktop.plan.budget import compute_plan
from ranktop.plan.launch import (
    LaunchRequest,
    launch_from_fields,
    launch_from_server_info,
    parse_launch,
    render_launch,
)
from ranktop.plan.models import MODELS, guess_model, model_from_config, model_named
from ranktop.plan.plan import GB, GIB, ModelFacts, Plan, PlanError, RankPlan
from ranktop.plan.profiles import DEFAULT_VERSION, PROFILES, Profile, profile_for
from ranktop.plan.ranks import rank_tags

__all__ = [
    "DEFAULT_VERSION",
    "GB",
    "GIB",
    "MODELS",
    "PROFILES",
    "LaunchRequest",
    "ModelFacts",
    "Plan",
    "PlanError",
    "Profile",
    "RankPlan",
    "compute_plan",
    "guess_model",
    "launch_from_fields",
    "launch_from_server_info",
    "model_from_config",
    "model_named",
    "parse_launch",
    "profile_for",
    "rank_tags",
    "render_launch",
]
