"""TLS and basic auth of the exporter, from a web configuration file as Prometheus's own exporters read it.

Format: https://github.com/prometheus/exporter-toolkit/blob/master/docs/web-configuration.md, of which these keys are
known: `tls_server_config` (`cert_file`, `key_file`, `client_auth_type`, `client_ca_file`, `min_version`) and
`basic_auth_users` (bcrypt hashes). Any other key is an error, because a key that is skipped in silence is a door left
open. Paths are relative to the file.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import importlib
import re
import ssl
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import msgspec
import yaml
from msgspec import Struct

_BCRYPT = re.compile(r"\$2[aby]\$\d\d\$[./A-Za-z0-9]{53}")
_MAX_BYTES = 1 << 20
_BCRYPT_BYTES = 72
"""bcrypt reads no more of a password."""
# A hash of no password that anybody knows: an unknown user costs as long as a known one.
_NOBODY = "$2b$10$CwTycUXWue0Thq9StjUM0uJ8.PRyqHk7DkLRB7ZPn0pGJ3zqI9R2K"


class WebConfigError(ValueError):
    """A web configuration that cannot be used: the file, the key, and what is accepted."""


class TlsServer(Struct, frozen=True, forbid_unknown_fields=True):
    """`tls_server_config`."""

    cert_file: str
    key_file: str
    client_auth_type: Literal[
        "NoClientCert", "RequireAnyClientCert", "VerifyClientCertIfGiven", "RequireAndVerifyClientCert"
    ] = "NoClientCert"
    client_ca_file: str | None = None
    min_version: Literal["TLS12", "TLS13"] = "TLS12"


class WebConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """The whole file."""

    tls_server_config: TlsServer | None = None
    basic_auth_users: dict[str, str] = {}


def load_web_config(path: Path) -> WebConfig:
    """Read and check a file. Raises WebConfigError."""
    try:
        with path.open("rb") as file:
            document: Any = yaml.safe_load(file.read(_MAX_BYTES))
    except (OSError, yaml.YAMLError) as problem:
        raise WebConfigError(f"{path}: cannot be read as YAML: {problem}") from problem
    try:
        config = msgspec.convert(document or {}, WebConfig)
    except msgspec.ValidationError as problem:
        raise WebConfigError(f"{path}: {problem}") from problem
    for user, password in config.basic_auth_users.items():
        if not _BCRYPT.fullmatch(password):
            raise WebConfigError(
                f"{path}: basic_auth_users.{user}: not a bcrypt hash (make one with: htpasswd -nBC 10 {user})"
            )
    return config


def tls_context(config: WebConfig, folder: Path) -> ssl.SSLContext | None:
    """The server's side of TLS, None without `tls_server_config`. Raises WebConfigError."""
    tls = config.tls_server_config
    if tls is None:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3 if tls.min_version == "TLS13" else ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(folder / tls.cert_file, folder / tls.key_file)
    except (OSError, ssl.SSLError) as problem:
        raise WebConfigError(f"tls_server_config: {tls.cert_file} and {tls.key_file}: {problem}") from problem
    if tls.client_auth_type != "NoClientCert":
        if tls.client_ca_file is None:
            raise WebConfigError(f"tls_server_config: client_auth_type {tls.client_auth_type} needs client_ca_file")
        try:
            context.load_verify_locations(folder / tls.client_ca_file)
        except (OSError, ssl.SSLError) as problem:
            raise WebConfigError(f"tls_server_config: client_ca_file {tls.client_ca_file}: {problem}") from problem
        given = tls.client_auth_type == "VerifyClientCertIfGiven"
        context.verify_mode = ssl.CERT_OPTIONAL if given else ssl.CERT_REQUIRED
    return context


class Users:
    """Who may scrape. bcrypt is slow on purpose, so a password that was right is known again by a keyed hash."""

    def __init__(self, hashes: dict[str, str]) -> None:
        """Raises WebConfigError when the bcrypt library is missing."""
        try:
            self._check: Callable[[bytes, bytes], bool] = importlib.import_module("bcrypt").checkpw
        except ImportError as problem:
            raise WebConfigError("basic_auth_users: needs the bcrypt library (install it beside ranktop)") from problem
        self._hashes = hashes
        self._key = hashlib.sha256(repr(sorted(hashes.items())).encode()).digest()
        self._known: set[bytes] = set()
        self._lock = threading.Lock()

    def admit(self, authorization: str | None) -> bool:
        """Whether an Authorization header names a user and his password."""
        given = _basic(authorization)
        if given is None:
            return False
        user, password = given[0], given[1][:_BCRYPT_BYTES]
        seen = hmac.digest(self._key, user.encode() + b"\0" + password, "sha256")
        if seen in self._known:
            return True
        # One at a time: guesses must not take the cores from the sampling.
        with self._lock:
            if not self._check(password, self._hashes.get(user, _NOBODY).encode()) or user not in self._hashes:
                return False
        self._known.add(seen)
        return True


def _basic(authorization: str | None) -> tuple[str, bytes] | None:
    scheme, _, token = (authorization or "").partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        user, colon, password = base64.b64decode(token, validate=True).partition(b":")
        return (user.decode(), password) if colon else None
    except (binascii.Error, UnicodeDecodeError):
        return None
