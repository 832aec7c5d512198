"""Who may ask: a token, a cookie made of it, and the names this server goes by."""

import hashlib
import hmac
import ipaddress
import secrets
from http.cookies import CookieError, SimpleCookie
from urllib.parse import urlsplit

TOKEN_BYTES = 32
MIN_TOKEN = 16  # characters, where somebody chooses their own


def new_token() -> str:
    """A token nobody guesses."""
    return secrets.token_urlsafe(TOKEN_BYTES)


class Access:
    """Checks of token, cookie, Host and Origin; ``token`` None lets everybody in that a check of names lets in."""

    def __init__(self, token: str | None, hosts: frozenset[str]) -> None:
        self._token = token
        self._hosts = frozenset(host.lower().strip("[]") for host in hosts)
        digest = hashlib.sha256(f"cookie of {token}".encode()).hexdigest()
        # Cookies know no ports: a name of its own lets two servers on one machine live side by side.
        self.cookie_name, self._session = f"anchorline_{digest[:8]}", digest[8:]

    @property
    def is_open(self) -> bool:
        """Whether no token is needed."""
        return self._token is None

    def knows(self, token: str) -> bool:
        """Whether this is the token; takes as long for a near miss as for a far one."""
        return self._token is not None and _same(token, self._token)

    def admits(self, authorization: str | None, cookies: str | None) -> bool:
        """Whether a request carries the token as ``Bearer``, or the cookie that was given for it."""
        if self._token is None:
            return True
        scheme, _, given = (authorization or "").partition(" ")
        if scheme.lower() == "bearer" and _same(given.strip(), self._token):
            return True
        return _same(self._cookie(cookies or ""), self._session)

    def _cookie(self, cookies: str) -> str:
        jar = SimpleCookie()
        try:
            jar.load(cookies)
        except CookieError:
            return ""
        return jar[self.cookie_name].value if self.cookie_name in jar else ""

    def set_cookie(self, secure: bool) -> str:
        """The header that keeps the session: no script reads it, no other site sends it."""
        return f"{self.cookie_name}={self._session}; Path=/; HttpOnly; SameSite=Strict" + (
            "; Secure" if secure else ""
        )

    def is_ours(self, host: str | None) -> bool:
        """Whether a Host header names this server: a name that an attacker's DNS points here does not."""
        return host is not None and (host_name(host) or "") in self._hosts


def is_same_origin(origin: str, host: str) -> bool:
    """Whether a page of ``origin`` comes from the server that it calls ``host``."""
    parts = urlsplit(origin)
    return parts.scheme in ("http", "https") and parts.netloc.lower() == host.lower()


def host_name(host: str) -> str | None:
    """The name in a Host header, without port and brackets; None where it is none."""
    try:
        parts = urlsplit(f"//{host}")
        _ = parts.port
    except ValueError:
        return None
    if parts.netloc != host or "@" in host or parts.path:
        return None
    return parts.hostname


def is_loopback(host: str) -> bool:
    """Whether an address is reached from this machine only."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _same(given: str, known: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "replace"), known.encode())
