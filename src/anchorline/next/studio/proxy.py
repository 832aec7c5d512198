"""Headers of a reverse proxy: the scheme of the outer connection and the name of the user.

They count only if the request comes from the address of the named proxy, because any client can send them.
"""

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from anchorline.errors import ParameterError
from anchorline.render.characters import printable

_MAX_USER = 200  # characters of a user's name in the audit log


@dataclass(frozen=True, slots=True)
class Proxy:
    """A reverse proxy in front of the server.

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
        if self.network is None or not client:
            return False
        try:
            address = ipaddress.ip_address(str(client[0]))
        except ValueError:
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
