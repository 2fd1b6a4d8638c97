"""Cases."""

from support.inspect_case import Case

CASES: tuple[Case, ...] = ()
