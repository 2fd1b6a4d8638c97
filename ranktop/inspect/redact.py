"""What leaves the node in a bundle: no secret, no address, no host name. Loopback addresses stay."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from typing import Any

from collectors.secrets import is_secret, prose_without_secrets

_IPV4 = re.compile(r"(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?![\w.]*\d)")
_IPV6 = re.compile(r"(?<![\w:.])(?:[0-9a-fA-F]{0,4}:){2,7}[0-9a-fA-F]{0,4}(?![\w:])")
_URL_HOST = re.compile(r"(\b[a-zA-Z][a-zA-Z0-9+.-]*://)(?:[^/\s@'\"]+@)?([A-Za-z0-9_.-]+)")
_MAIL = re.compile(r"\b[\w.+-]+@[\w-]+(?:\.[\w-]+)+\b")
_LOCAL = ("localhost", "127.0.0.1")
_LEAST_NAME = 4


class Redactor:
    """The same address gets the same stand-in everywhere in one bundle."""

    def __init__(self, host_names: Iterable[str] = ()) -> None:
        self._stand_ins: dict[str, str] = {}
        self._known: dict[str, str] = {}
        names = sorted((name for name in set(host_names) if _is_telling(name)), key=len, reverse=True)
        self._names = re.compile(r"(?<![\w-])(?:" + "|".join(map(re.escape, names)) + r")(?![\w-])") if names else None

    def text(self, text: str) -> str:
        """One string or log line without what must not leave."""
        known = self._known.get(text)
        if known is None:
            known = self._redacted(text)
            if len(self._known) < 100_000 and len(text) < 1000:
                self._known[text] = known
        return known

    def value(self, value: Any) -> Any:
        """A JSON value with every string redacted, and the keys that are ids of servers."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {
                self.text(name) if isinstance(name, str) and ":" in name else name: self.value(item)
                for name, item in value.items()
                if not (isinstance(name, str) and is_secret(name))
            }
        return [self.value(item) for item in value] if isinstance(value, list | tuple) else value

    def _redacted(self, text: str) -> str:
        text = prose_without_secrets(text)
        text = _URL_HOST.sub(self._url, text)
        text = _MAIL.sub("(address)", text)
        text = _IPV4.sub(self._address, text)
        if text.count(":") > 1:
            text = _IPV6.sub(self._address, text)
        return self._names.sub("node", text) if self._names is not None else text

    def _url(self, match: re.Match[str]) -> str:
        scheme, host = match[1], match[2]
        if host in _LOCAL or _IPV4.fullmatch(host) or re.fullmatch(r"host-\d+|node", host):
            return scheme + host
        return scheme + self._stand_in(host)

    def _address(self, match: re.Match[str]) -> str:
        try:
            address = ipaddress.ip_address(match[0])
        except ValueError:
            return match[0]
        return match[0] if address.is_loopback or address.is_unspecified else self._stand_in(match[0])

    def _stand_in(self, name: str) -> str:
        return self._stand_ins.setdefault(name, f"host-{len(self._stand_ins) + 1}")


def _is_telling(name: str) -> bool:
    """A short plain word may be any word of a log, and names nobody."""
    return len(name) >= _LEAST_NAME and (len(name) >= 8 or not name.isalpha()) and name not in _LOCAL
