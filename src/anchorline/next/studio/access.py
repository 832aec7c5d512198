"""Access control: the token, the cookie derived from the token, and the host names of this server."""

import hashlib
import hmac
import ipaddress
import secrets
from urllib.parse import urlsplit

TOKEN_BYTES = 32
MIN_TOKEN = 16  # the minimum number of characters in a token that a person chooses


def new_token() -> str:
    """Return a random token that cannot be guessed."""
    return secrets.token_urlsafe(TOKEN_BYTES)


class Access:
    """Checks the token, the cookie and the Host header of a request.

    ``token`` is None where no token is required; then only the checks of Host and Origin apply.
    """

    def __init__(self, token: str | None, hosts: frozenset[str]) -> None:
        self._token = token
        self._hosts = frozenset(host.lower().strip("[]") for host in hosts)
        digest = hashlib.sha256(f"cookie of {token}".encode()).hexdigest()
        # Cookies ignore ports, so that two servers on one machine need two cookie names.
        self.cookie_name, self._session = f"anchorline_{digest[:8]}", digest[8:]

    @property
    def is_open(self) -> bool:
        """Whether requests need no token."""
        return self._token is None

    def is_token(self, text: str) -> bool:
        """Return whether ``text`` is the token, in a time that does not depend on where the two differ."""
        return self._token is not None and _is_equal(text, self._token)

    def admits(self, authorization: str | None, cookies: str | None) -> bool:
        """Return whether a request carries the token as ``Bearer``, or the session cookie."""
        if self._token is None:
            return True
        scheme, _, credentials = (authorization or "").partition(" ")
        if scheme.lower() == "bearer" and _is_equal(credentials.strip(), self._token):
            return True
        return _is_equal(self._session_of(cookies or ""), self._session)

    def _session_of(self, cookies: str) -> str:
        """Return the value of this server's cookie; cookies of other programs, in any format, are skipped."""
        pairs = (cookie.partition("=") for cookie in cookies.split(";"))
        return next((value.strip() for name, _, value in pairs if name.strip() == self.cookie_name), "")

    def set_cookie(self, secure: bool, root_path: str = "") -> str:
        """Return the Set-Cookie header of the session, which scripts cannot read and other sites cannot send."""
        cookie = f"{self.cookie_name}={self._session}; Path={root_path}/; HttpOnly; SameSite=Strict"
        return f"{cookie}; Secure" if secure else cookie

    def is_own_host(self, host: str | None) -> bool:
        """Return whether a Host header names this server.

        An attacker's host name whose DNS entry points here (DNS rebinding) is not one of the names.
        """
        return host is not None and (host_name(host) or "") in self._hosts


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
    try:
        return ipaddress.ip_address(host_name(host or "") or "").version > 0
    except ValueError:
        return False


def is_loopback(host: str) -> bool:
    """Return whether an address can be reached from this machine only."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _is_equal(text: str, secret: str) -> bool:
    return hmac.compare_digest(text.encode("utf-8", "replace"), secret.encode())
