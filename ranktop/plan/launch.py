"""A launch of SGLang, read from whatever people paste or a server reports. Secrets are dropped here, at the door."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct

from ranktop.plan.field_names import BOOLEAN_FIELDS, KNOWN_FIELDS, LIST_FIELDS
from ranktop.plan.flags import field_of, is_secret, json_without_secrets, keeps_environment, typed, without_user
from ranktop.plan.plan import PlanError
from ranktop.plan.words import MAX_TEXT_CHARS, split_words

Origin = Literal["command line", "server_info", "log", "given"]

_ASSIGNMENT = re.compile(r"^[A-Za-z_][A-Za-z0-9_]*=")
_NUMBER = re.compile(r"^-(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$", re.IGNORECASE)
_OPERATORS = frozenset({"&&", "||", "|", ";", "&", ">", ">>", "2>&1", "2>", "&>", "<"})
_CONTAINER_RUN = re.compile(r"^(docker|podman|nerdctl|ctr)$")
_CONTAINER_FLAGS = frozenset(
    {"device", "env", "name", "network", "ipc", "volume", "gpus", "shm-size", "ulimit", "restart", "hostname", "user"}
    | {"workdir", "cpus", "memory", "host"}
)
"""Options of `docker run` that must not be taken for SGLang's."""
_NESTED = re.compile(r"\s.*--|sglang[. ]|\n")


class LaunchRequest(Struct, frozen=True):
    """What was asked of SGLang: the flags explicitly given, by SGLang's field names, typed.

    `resolved` says that the values are those after SGLang's own resolution (a server's report), so none is rewritten
    again. `device_tokens` is the L1 pool's token count where the server reports it.
    """

    flags: dict[str, Any] = {}
    unknown_flags: tuple[str, ...] = ()
    """`--flag` or `--flag=value`, as typed; secrets without their value."""
    environment: dict[str, str] = {}
    origin: Origin = "given"
    resolved: bool = False
    sglang_version: str | None = None
    device_tokens: int | None = None
    dated_flags: tuple[str, ...] = ()
    """Spellings that were used and only some releases know."""


def parse_launch(launch: str | Sequence[str], *, origin: Origin = "given") -> LaunchRequest:
    """The launch in a pasted text or a list of words.

    Understands `python -m sglang.launch_server`, `sglang serve`, a leading `docker run ... image`, `args:` lists of a
    pod, line continuations, `--flag=value`, environment assignments, quotes, comments, and a process title (one
    space-separated string). Raises PlanError when a known flag has an impossible value.
    """
    words = _words(launch)
    environment: dict[str, str] = {}
    start = _flags_start(words, environment)
    end = next((index for index in range(start, len(words)) if words[index] in _OPERATORS), len(words))
    return _parse_flags(words[start:end], environment, origin)


def _words(launch: str | Sequence[str]) -> list[str]:
    if isinstance(launch, str):
        if len(launch) > MAX_TEXT_CHARS:
            raise PlanError(f"launch: {len(launch)} characters, at most {MAX_TEXT_CHARS} are read")
        if _looks_like_list(launch):
            from ranktop.plan.podspec import words_of_yaml

            listed = words_of_yaml(launch)
            if listed is not None:
                return _unnest(listed)
        return _unnest(split_words(launch))
    if len(launch) == 1:
        return _words(launch[0])
    return _unnest([str(word) for word in launch if str(word).strip()])


def _looks_like_list(text: str) -> bool:
    return bool(re.search(r"^[ \t]*(- |\[)|^[ \t]*(args|command):", text, re.MULTILINE))


def _unnest(words: list[str]) -> list[str]:
    """Opens `sh -c "python -m sglang.launch_server ..."`, and a quoted launch with more flags after it."""
    if any(_is_entry(words, index) for index in range(len(words))):
        return words
    for index, word in enumerate(words):
        inner = split_words(word) if "sglang" in word and _NESTED.search(word) else [word]
        if inner != [word]:
            return _unnest([*inner, *words[index + 1 :]])
    return words


def _is_entry(words: list[str], index: int) -> bool:
    word = words[index]
    if word.endswith(("sglang.launch_server", "launch_server.py")):
        return True
    return word.rsplit("/", 1)[-1] == "sglang" and words[index + 1 : index + 2] == ["serve"]


def _flags_start(words: list[str], environment: dict[str, str]) -> int:
    """Index of the first word after the entry point; assignments before it go into `environment`."""
    entry = next((index for index in range(len(words)) if _is_entry(words, index)), None)
    if entry is not None:
        start = entry + (2 if words[entry].rsplit("/", 1)[-1] == "sglang" else 1)
    elif any(_CONTAINER_RUN.match(word) for word in words[:3]):
        start = next((index for index, word in enumerate(words) if _is_server_flag(word)), len(words))
    else:
        start = next((index for index, word in enumerate(words) if word.startswith("--")), len(words))
    for word in words[:start]:
        candidate = re.sub(r"^(--env=|-e(?=[A-Z]))", "", word)
        name, _, value = candidate.partition("=")
        if _ASSIGNMENT.match(candidate) and keeps_environment(name):
            environment[name] = without_user(value.rstrip(";"))
    return start


def _is_server_flag(word: str) -> bool:
    name = word.partition("=")[0]
    return name.startswith("--") and name[2:] not in _CONTAINER_FLAGS and field_of(name)[0] is not None


def _parse_flags(words: list[str], environment: dict[str, str], origin: Origin) -> LaunchRequest:
    flags: dict[str, Any] = {}
    unknown: list[str] = []
    dated: list[str] = []
    index = 0
    while index < len(words):
        flag, equals, inline = words[index].partition("=")
        index += 1
        if not flag.startswith("--"):
            if index == 1 and "model_path" not in flags and not flag.startswith("-"):
                flags["model_path"] = without_user(words[0])
            else:
                unknown.append(without_user(words[index - 1]))
            continue
        field, is_dated = field_of(flag)
        values = [inline] if equals else _values(words, index, field)
        index += 0 if equals else len(values)
        if field is None:
            unknown.append(_unknown(flag, values))
        elif not is_secret(field):
            flags[field] = typed(field, flag, values)
            if is_dated:
                dated.append(flag)
    return LaunchRequest(flags, tuple(unknown), environment, origin, dated_flags=tuple(dated))


def _values(words: list[str], index: int, field: str | None) -> list[str]:
    """The words from `index` that belong to a flag: none, one, or all up to the next flag."""
    if field in BOOLEAN_FIELDS:
        return []
    many = field is None or field in LIST_FIELDS
    values: list[str] = []
    while index < len(words) and (many or not values):
        word = words[index]
        if word.startswith("-") and len(word) > 1 and not _NUMBER.match(word):
            break
        values.append(word)
        index += 1
    return values


def _unknown(flag: str, values: list[str]) -> str:
    if not values:
        return flag
    return f"{flag}=..." if is_secret(flag) else without_user(f"{flag}={' '.join(values)}")


def launch_from_server_info(args: Mapping[str, Any], version: str | None = None) -> LaunchRequest:
    """The launch that a server reports in `/server_info`: resolved values; secrets dropped."""
    return launch_from_fields(args, "server_info", version)


def launch_from_fields(args: Mapping[str, Any], origin: Origin, version: str | None = None) -> LaunchRequest:
    """A launch from resolved values by field name: a server's report, or a log's `server_args=` once it is parsed."""
    flags = {name: _kept(value) for name, value in args.items() if name in KNOWN_FIELDS and not is_secret(name)}
    flags = {name: value for name, value in flags.items() if value is not None}
    tokens = args.get("max_total_num_tokens")
    reported = version or args.get("version")
    return LaunchRequest(
        flags,
        origin=origin,
        resolved=True,
        sglang_version=reported if isinstance(reported, str) else None,
        device_tokens=tokens if isinstance(tokens, int) and tokens > 0 else None,
    )


def _kept(value: Any) -> Any:
    if isinstance(value, str):
        return json_without_secrets(value) if value.lstrip().startswith("{") else without_user(value)
    if isinstance(value, list | tuple):
        return tuple(_kept(item) for item in value)
    return value if isinstance(value, bool | int | float) else None


def render_launch(request: LaunchRequest) -> str:
    """A shell line that asks for the same launch; `parse_launch` of it gives the same flags back."""
    words = [f"{name}={shlex.quote(value)}" for name, value in request.environment.items()]
    words += ["python", "-m", "sglang.launch_server"]
    for field, value in request.flags.items():
        flag = "--" + field.replace("_", "-")
        if value is True:
            words.append(flag)
        elif isinstance(value, list | tuple):
            words += [flag, *(shlex.quote(str(item)) for item in value)]
        elif value is not False and value is not None:
            words += [flag, shlex.quote(str(value))]
    words += [shlex.quote(flag) for flag in request.unknown_flags]
    return " ".join(words)
