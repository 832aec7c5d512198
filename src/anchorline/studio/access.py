"""Who may ask, and how much: the token and its cookie, host names, the reverse proxy, and the server's limits."""

import hashlib
import hmac
import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from starlette.requests import cookie_parser

from anchorline.errors import ParameterError
from anchorline.render.characters import printable

_MAX_USER = 200  # characters of a user's name in the audit log


class Access:
    """Checks the token, the cookie and the Host header of a request.

    ``token`` is None where no token is required; then only the checks of Host and Origin apply. Several tokens,
    separated by commas, are all admitted, so that a new one can be handed out before the old one ends.
    """

    def __init__(self, token: str | None, hosts: frozenset[str]) -> None:
        self._tokens = () if token is None else tuple(token.split(","))
        self._hosts = frozenset(host.lower().strip("[]") for host in hosts)
        self._sessions = dict(map(_session_of, self._tokens or (None,)))
        self.cookie_name = next(iter(self._sessions))  # of the first token

    @property
    def is_open(self) -> bool:
        """Whether requests need no token."""
        return not self._tokens

    def is_token(self, text: str) -> bool:
        """Return whether ``text`` is the token, in a time that does not depend on where the two differ."""
        found = [_is_equal(text, token) for token in self._tokens]  # all of them, so that the time says nothing
        return any(found)

    def admits(self, authorization: str | None, cookies: str | None) -> bool:
        """Return whether a request carries the token as ``Bearer``, or the session cookie."""
        if self.is_open:
            return True
        scheme, _, credentials = (authorization or "").partition(" ")
        if scheme.lower() == "bearer" and self.is_token(credentials.strip()):
            return True
        sent = cookie_parser(cookies or "")
        found = [_is_equal(sent.get(name, ""), session) for name, session in self._sessions.items()]
        return any(found)

    def set_cookie(self, secure: bool, root_path: str = "") -> str:
        """Return the Set-Cookie header of the session, which scripts cannot read and other sites cannot send."""
        cookie = (
            f"{self.cookie_name}={self._sessions[self.cookie_name]}; Path={root_path}/; HttpOnly; SameSite=Strict"
        )
        return f"{cookie}; Secure" if secure else cookie

    def is_own_host(self, host: str | None) -> bool:
        """Return whether a Host header names this server.

        An attacker's host name whose DNS entry points here (DNS rebinding) is not one of the names.
        """
        return host is not None and (host_name(host) or "") in self._hosts


def _session_of(token: str | None) -> tuple[str, str]:
    """Return the name and the value of the cookie of a token.

    Cookies ignore ports, so that two servers on one machine need two names.
    """
    digest = hashlib.sha256(f"cookie of {token}".encode()).hexdigest()
    return f"anchorline_{digest[:8]}", digest[8:]


def is_same_origin(origin: str, host: str) -> bool:
    """Return whether an Origin header belongs to the server that the Host header names."""
    try:
        parts = urlsplit(origin)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and parts.netloc.lower() == host.lower()


def host_name(host: str) -> str | None:
    """Return the name in a Host header without port and brackets, or None if the header is malformed."""
    try:
        parts = urlsplit(f"//{host}")
        _ = parts.port
    except ValueError:
        return None
    if parts.netloc != host or "@" in host or parts.path:
        return None
    return parts.hostname


def is_address(host: str | None) -> bool:
    """Return whether a Host header is an address, which no DNS entry of an attacker can point elsewhere."""
    return _address_of(host_name(host or "")) is not None


def is_loopback(host: str) -> bool:
    """Return whether an address can be reached from this machine only."""
    address = _address_of(host.strip("[]"))
    return host == "localhost" or (address is not None and address.is_loopback)


def _address_of(text: str | None) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(text or "")
    except ValueError:
        return None


def _is_equal(text: str, secret: str) -> bool:
    return hmac.compare_digest(text.encode("utf-8", "replace"), secret.encode())


@dataclass(frozen=True, slots=True)
class Proxy:
    """A reverse proxy in front of the server: the scheme of the outer connection, and the name of the user.

    Its headers count only if the request comes from its address, because any client can send them.

    Parameters
    ----------
    network
        Address or network of the proxy, such as ``127.0.0.1`` or ``10.0.0.0/24``; None without a proxy.
    user_header
        Header in which the proxy sends the name of the user; None if it sends none.
    root_path
        Prefix of the public addresses, such as ``/studio``; empty if the server has its own host name.
    """

    network: str | None = None
    user_header: str | None = None
    root_path: str = ""

    def __post_init__(self) -> None:
        if self.network is not None:
            try:
                ipaddress.ip_network(self.network, strict=False)
            except ValueError:
                raise ParameterError(
                    f"--behind-proxy is {self.network!r}, but it must be an address or a network. "
                    "Type, for example, --behind-proxy 127.0.0.1."
                ) from None
        if self.user_header is not None and self.network is None:
            raise ParameterError(
                f"--user-header is {self.user_header!r}, but no proxy is named, so that every client could choose "
                "its name. Add --behind-proxy ADDRESS."
            )
        path = self.root_path
        if path and not (path.startswith("/") and path.isascii() and path.isprintable() and path[-1] not in "/ "):
            raise ParameterError(
                f"--root-path is {path!r}, but it must begin with a slash and must not end with one. "
                "Type, for example, --root-path /studio."
            )

    def is_sender(self, client: Any) -> bool:
        """Return whether a connection comes from the proxy; ``client`` is the ASGI pair of address and port."""
        address = _address_of(client[0]) if client else None
        if self.network is None or address is None:
            return False
        return address in ipaddress.ip_network(self.network, strict=False)

    def scheme(self, scope: Mapping[str, Any], headers: Mapping[str, str]) -> str:
        """Return the scheme that the browser uses."""
        forwarded = headers.get("x-forwarded-proto", "").strip().lower()
        if forwarded in ("http", "https") and self.is_sender(scope.get("client")):
            return forwarded
        return str(scope["scheme"])

    def user(self, scope: Mapping[str, Any], headers: Mapping[str, str]) -> str | None:
        """Return the name of the user that the proxy has logged in, or None if it sent none."""
        if self.user_header is None or not self.is_sender(scope.get("client")):
            return None
        name = headers.get(self.user_header.lower())
        return printable(name)[:_MAX_USER] if name else None


@dataclass(frozen=True, slots=True, kw_only=True)
class StudioLimits:
    """Limits of one server; the constants in `schemas` apply to every server.

    Parameters
    ----------
    max_queries
        Maximum number of answers of the model per explanation, rule, and search for changes. Below 20,000, the
        model is not asked about the rows of the table either.
    max_body
        Maximum number of bytes per request body.
    max_upload
        Maximum number of bytes of a file of cases that a user opens; 0 if users open none.
    queue, workers
        Maximum number of jobs that wait, and number of threads that run jobs.
    timeout
        Seconds from the arrival of a request until it is answered with 503.
    body_timeout
        Seconds within which a client must have sent its request.
    cache_bytes
        Maximum total size of cached answers.
    concurrency
        Maximum number of open connections or running requests; further ones receive status 503.
    """

    max_queries: int = 20_000
    max_body: int = 1_000_000
    max_upload: int = 0
    queue: int = 64
    workers: int = 2
    timeout: float = 60.0
    body_timeout: float = 10.0
    cache_bytes: int = 64_000_000
    concurrency: int = 512
