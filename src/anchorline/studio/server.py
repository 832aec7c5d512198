"""Start the studio: bind, tell the link, serve until asked to stop, finish what runs."""

import asyncio
import contextlib
import os
import re
import signal
import socket
from collections.abc import Callable
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from anchorline.errors import ParameterError
from anchorline.explainer import Explainer
from anchorline.studio.access import MIN_TOKEN, is_loopback, new_token
from anchorline.studio.app import LOOPBACK, Studio
from anchorline.studio.limits import Limits

PORT = 8377
TOKEN_VARIABLE = "ANCHORLINE_STUDIO_TOKEN"
_HEADER_SECONDS = 10.0  # a client that sends no whole request within this time is left
_FINISH_SECONDS = 3.0  # after a signal, what runs may take so long; then those who wait are told
_GRACE_SECONDS = 4  # and after this the process ends whatever happens


class Impatient(H11Protocol):
    """Leaves connections on which no request begins, or none after one: silent ones must not keep others out."""

    def connection_made(self, transport: Any) -> None:
        """Begin to wait."""
        super().connection_made(transport)
        self._deadline = self.loop.call_later(_HEADER_SECONDS, self._leave_silent)

    def on_response_complete(self) -> None:
        """Begin to wait again: the server's own patience ends with the first byte of the next request."""
        self._deadline.cancel()
        self._deadline = self.loop.call_later(_HEADER_SECONDS, self._leave_silent)
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no more."""
        self._deadline.cancel()
        super().connection_lost(exc)

    def _leave_silent(self) -> None:
        busy = self.cycle is not None and not self.cycle.response_complete
        if not busy and not self.transport.is_closing():
            self.transport.close()


class StudioServer(uvicorn.Server):
    """A server ready to `run` on its own socket; ``link`` is what to open.

    Told to end, it takes no more work, finishes what runs, and tells those whose answer would take too long.
    """

    def __init__(self, studio: Studio, listener: socket.socket, link: str, tell: Callable[[str], None]) -> None:
        super().__init__(
            uvicorn.Config(
                studio.app,
                http=Impatient,
                ws="none",
                lifespan="on",
                log_config=None,
                access_log=False,  # its lines hold queries
                server_header=False,
                proxy_headers=False,
                limit_concurrency=studio.limits.concurrency,
                timeout_keep_alive=10,
                timeout_graceful_shutdown=_GRACE_SECONDS,
                h11_max_incomplete_event_size=32_768,
            )
        )
        self.studio, self.link, self._listener, self._tell = studio, link, listener, tell

    def run(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve until told to end."""
        super().run(sockets or [self._listener])

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, and tell the link when there is somebody to answer."""
        await super().startup(sockets)
        loop = asyncio.get_running_loop()
        # Handled by us alone, the signal is not raised again afterwards: the process ends with 0.
        with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):  # Windows, or a side thread
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.add_signal_handler(number, self.stop)
        self._tell(self.link)

    def stop(self) -> None:
        """End soon."""
        self.should_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Finish what runs, within limits."""
        self.studio.work.close()
        asyncio.get_running_loop().call_later(_FINISH_SECONDS, self.studio.work.abandon)
        await super().shutdown(sockets)


def prepare(
    explainer: Explainer,
    *,
    tell: Callable[[str], None],
    name: str = "model",
    host: str = "127.0.0.1",
    port: int = PORT,
    with_token: bool = True,
    allow_hosts: frozenset[str] = frozenset(),
    limits: Limits | None = None,
) -> StudioServer:
    """A server that listens, and answers once it is `run`.

    Parameters
    ----------
    explainer
        A model and a `Table`.
    tell
        Called once with the link, when the server answers.
    name
        What the model is called.
    host, port
        Where to listen; port 0 takes any that is free.
    with_token
        Whether a token is needed: a random one, or that of the variable ANCHORLINE_STUDIO_TOKEN.
    allow_hosts
        Names in addition to ``host`` by which browsers may call this server.
    limits
        Of requests, queue and cache.
    """
    token = chosen_token() if with_token else None
    if token is None and not is_loopback(host):
        raise ParameterError(f"Without a token only this machine may ask, but the host is {host!r}. Drop one.")
    everywhere = host in ("0.0.0.0", "::")
    own = LOOPBACK if everywhere or is_loopback(host) else frozenset()
    studio = Studio(explainer, name=name, token=token, hosts=own | {host} | allow_hosts, limits=limits)
    listener = bind(host, port)
    return StudioServer(studio, listener, link_to(host, listener.getsockname()[1], token), tell)


def chosen_token() -> str:
    """The token of the environment, or a new one."""
    given = os.environ.get(TOKEN_VARIABLE)
    if given is None:
        return new_token()
    if len(given) < MIN_TOKEN or not re.fullmatch(r"[\w.~-]+", given, re.ASCII):
        raise ParameterError(
            f"{TOKEN_VARIABLE} needs at least {MIN_TOKEN} letters, digits or signs of -._~; or leave it out."
        )
    return given


def bind(host: str, port: int) -> socket.socket:
    """A listening socket; `ParameterError` where there cannot be one."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio sends small answers at once (TCP_NODELAY) only where the protocol is told: else each waits 40 ms.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        if os.name == "posix":  # a port in TIME_WAIT can be taken; elsewhere this would share a port in use
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(256)
    except (OSError, OverflowError) as error:
        listener.close()
        reason = getattr(error, "strerror", None) or error
        raise ParameterError(f"Cannot listen on {host}, port {port}: {reason}. Try --port 0.") from error
    return listener


def link_to(host: str, port: int, token: str | None) -> str:
    """What to open in a browser."""
    shown = "127.0.0.1" if host in ("0.0.0.0", "::") else host
    shown = f"[{shown}]" if ":" in shown else shown
    return f"http://{shown}:{port}/" + (f"?token={token}" if token else "")
