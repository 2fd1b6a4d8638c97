"""Command lines of SGLang's processes: which is a rank, which is a launch, where it listens, what must not be told."""

from __future__ import annotations

import re
import shlex

from collectors.secrets import DROPPED, is_secret, without_secrets
from ranktop.sample import RankTag

RANK_TITLE = re.compile(r"sglang::scheduler((?:_(?:DP|PP|ATTN_CP|MOE_DP|TP|EP)\d+)*)\Z")
_TAG_PART = re.compile(r"_(DP|PP|ATTN_CP|MOE_DP|TP|EP)(\d+)")
_TAG_FIELDS = {"DP": "dp", "PP": "pp", "ATTN_CP": "cp", "MOE_DP": "moe_dp", "TP": "tp", "EP": "ep"}

_QUOTES = re.compile(r"[\"'\\]")
"""Without any of them shlex splits at spaces too, and takes a hundred times as long."""

DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 30000


def split_argv(raw: bytes) -> tuple[str, ...]:
    """`/proc/PID/cmdline` as words: NUL-separated, or one title with spaces as setproctitle leaves it."""
    words = raw.rstrip(b"\0").split(b"\0")
    argv = tuple(word.decode("utf-8", "replace") for word in words)
    if len(argv) != 1:
        return argv
    if not _QUOTES.search(argv[0]):
        return tuple(argv[0].split())
    try:
        return tuple(shlex.split(argv[0]))
    except ValueError:
        return tuple(argv[0].split())


def rank_tag(title: str) -> RankTag | None:
    """The rank that a scheduler's title names, None for any other title."""
    match = RANK_TITLE.match(title)
    if match is None:
        return None
    return RankTag(**{_TAG_FIELDS[part]: int(number) for part, number in _TAG_PART.findall(match[1])})


def is_launch(argv: tuple[str, ...]) -> bool:
    """Whether this is a server's own command line: `python -m sglang.launch_server ...` or `sglang serve ...`.

    A shell, a container client or a wrapper that merely carries such a line in its arguments is none.
    """
    if not argv:
        return False
    program = _base_name(argv[0])
    rest = argv[1:]
    if program.startswith("python"):
        while rest and rest[0].startswith("-") and rest[0] not in ("-m", "-c"):
            rest = rest[2:] if rest[0] in ("-X", "-W") else rest[1:]
        if rest[:1] == ("-m",):
            return rest[1:2] == ("sglang.launch_server",) or (rest[1:2] == ("sglang",) and "serve" in rest[2:3])
        if not rest:
            return False
        program, rest = _base_name(rest[0]), rest[1:]
        if program == "launch_server.py":
            return True
    return program == "sglang" and rest[:1] == ("serve",)


def is_python(argv: tuple[str, ...]) -> bool:
    """Whether a Python program runs here: an engine inside somebody's own program is a main process too."""
    return bool(argv) and (_base_name(argv[0]).startswith("python") or is_launch(argv))


def is_spawned_child(argv: tuple[str, ...]) -> bool:
    """A child of multiprocessing before SGLang gives it a title."""
    return len(argv) > 2 and is_python(argv) and any("multiprocessing.spawn" in word for word in argv)


def option(argv: tuple[str, ...], name: str) -> str | None:
    """The value of `--name value` or `--name=value`; the last one wins, as in argparse."""
    found = None
    for index, word in enumerate(argv):
        if word == name and index + 1 < len(argv):
            found = argv[index + 1]
        elif word.startswith(name + "="):
            found = word[len(name) + 1 :]
    return found


def endpoint(argv: tuple[str, ...]) -> tuple[str, int]:
    """Host and port where the server of this launch answers on its own node (defaults of SGLang's ServerArgs)."""
    host = option(argv, "--host") or DEFAULT_HOST
    if host in ("0.0.0.0", "::", "[::]", "*"):
        host = DEFAULT_HOST
    port = option(argv, "--port") or ""
    return host, int(port) if port.isdecimal() and len(port) <= 5 else DEFAULT_PORT


def url_of(argv: tuple[str, ...]) -> str:
    """The base URL of the server of this launch."""
    host, port = endpoint(argv)
    scheme = "https" if option(argv, "--ssl-certfile") else "http"
    return f"{scheme}://{f'[{host}]' if ':' in host and not host.startswith('[') else host}:{port}"


def drop_secrets(argv: tuple[str, ...]) -> tuple[str, ...]:
    """The same words with the value of every secret replaced by `(dropped)`."""
    kept: list[str] = []
    hide_next = False
    for word in argv:
        flag, separator, value = word.partition("=")
        if hide_next and not word.startswith("--"):
            kept.append(DROPPED)
            hide_next = False
        elif flag.startswith("--") and is_secret(flag.lstrip("-")):
            hide_next = not separator
            kept.append(f"{flag}={DROPPED}" if separator else word)
        else:
            hide_next = False
            kept.append(
                f"{flag}={without_secrets(value)}" if flag.startswith("--") and separator else without_secrets(word)
            )
    return tuple(kept)


def _base_name(path: str) -> str:
    return path.rpartition("/")[2]
