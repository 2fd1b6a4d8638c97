"""One row of the eligibility tables, and what it looks at."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from ranktop.plan.arguments import Arguments
from ranktop.plan.plan import EligibilityVerdict, ModelFacts
from ranktop.plan.profiles import Profile, version_key


class Case(Struct, frozen=True):
    """What a rule looks at: the resolved launch of one model on one release."""

    args: Arguments
    model: ModelFacts
    profile: Profile


class Rule(Struct, frozen=True):
    """One row: when it applies, from and up to which release, and what SGLang then does.

    `message` is the server's own where it has one. `since` and `until` are inclusive releases.
    """

    rule: str
    verdict: EligibilityVerdict
    message: str
    when: Callable[[Case], bool]
    since: str | None = None
    until: str | None = None
    finding: str | None = None

    def applies(self, case: Case) -> bool:
        """Whether this row says something of the case."""
        version = version_key(case.profile.version)
        if self.since is not None and version < version_key(self.since):
            return False
        if self.until is not None and version > version_key(self.until):
            return False
        return self.when(case)
