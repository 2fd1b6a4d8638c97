"""Types of the sample with names in their JSON. Theirs are arrays, so that a recording's rows are small."""

from __future__ import annotations

import functools
import operator
import types
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import NODEFAULT, Struct, defstruct, field


@functools.cache
def named(kind: Any) -> Any:
    """The same type, with every struct in it encoded as an object: `msgspec.convert(..., from_attributes=True)` makes
    one of the other. Fields that have their default are left out."""
    if isinstance(kind, type) and issubclass(kind, Struct):
        return _struct(kind)
    origin, args = get_origin(kind), get_args(kind)
    if origin is None or origin is Literal:
        return kind
    inner = tuple(map(named, args))
    return functools.reduce(operator.or_, inner) if origin in (types.UnionType, Union) else origin[inner]


def _struct(kind: type[Struct]) -> type[Struct]:
    hints = get_type_hints(kind)
    fields: list[Any] = []
    for each in msgspec.structs.fields(kind):
        default = {"default": each.default} if each.default is not NODEFAULT else {}
        made = {"default_factory": each.default_factory} if each.default_factory is not NODEFAULT else {}
        fields.append((each.name, named(hints[each.name]), field(**default, **made)))
    return defstruct(kind.__name__, fields, frozen=True, omit_defaults=True)
