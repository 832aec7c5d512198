"""The server process: bind a socket, report the link, serve until a signal, and finish the running jobs."""

import asyncio
import contextlib
import os
import re
import secrets
import signal
import socket
import threading
from collections.abc import Callable
from typing import Any

import uvicorn

from anchorline.errors import ParameterError
from anchorline.explainer import Explainer
from anchorline.studio.access import is_loopback
from anchorline.studio.app import LOOPBACK, Studio

PORT = 8377
_MIN_TOKEN = 16  # the minimum number of characters in a token that a person chooses
TOKEN_VARIABLE = "ANCHORLINE_STUDIO_TOKEN"
_MOST_HEADER_BYTES = 32_768
_FINISH_SECONDS = 3.0  # running jobs get this long to finish after a signal; then their clients get a 503
_GRACE_SECONDS = 4  # and the server this long to send the answers
_END_SECONDS = 4.5  # after a signal, the process ends after this time in any case


class StudioServer(uvicorn.Server):
    """A server that is ready to `run` on its own socket; ``link`` is the address to open in a browser.

    After a signal it accepts no more jobs and finishes the running ones. Requests whose jobs would take too
    long are answered with 503.
    """

    def __init__(
        self, studio: Studio, listener: socket.socket, link: str, on_ready: Callable[[str], None]
    ) -> None:
        super().__init__(
            uvicorn.Config(
                studio.app,
                http="h11",
                ws="none",
                lifespan="on",
                log_config=None,
                access_log=False,  # its lines contain query strings
                server_header=False,
                proxy_headers=False,
                limit_concurrency=studio.limits.concurrency,
                timeout_keep_alive=10,
                timeout_graceful_shutdown=_GRACE_SECONDS,
                h11_max_incomplete_event_size=_MOST_HEADER_BYTES,
            )
        )
        self.studio, self.link, self._listener, self._on_ready = studio, link, listener, on_ready
        self.has_signal = False  # whether a signal has asked the process to end

    def run(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve until `stop` is called or a signal arrives."""
        super().run(sockets or [self._listener])

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, and call ``on_ready`` with the link once requests are answered."""
        await super().startup(sockets)
        loop = asyncio.get_running_loop()
        # These handlers replace uvicorn's, which raise the signal again, so that the process ends with code 0.
        with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):  # Windows, or not the main thread
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.add_signal_handler(number, self._end_process)
        self._on_ready(self.link)

    def close(self) -> None:
        """Give up the socket without serving."""
        self._listener.close()

    def stop(self) -> None:
        """Begin to shut down."""
        self.should_exit = True

    def _end_process(self) -> None:
        """Begin to shut down, and end the process in time, whatever the model's threads do."""
        self.has_signal = True
        self.stop()
        timer = threading.Timer(_END_SECONDS, os._exit, (0,))
        timer.daemon = True
        timer.start()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Finish the running jobs within the time limits."""
        self.studio.jobs.close()
        asyncio.get_running_loop().call_later(_FINISH_SECONDS, self.studio.jobs.abandon)
        await super().shutdown(sockets)


def prepare(
    explainer: Explainer,
    *,
    on_ready: Callable[[str], None],
    host: str = "127.0.0.1",
    port: int = PORT,
    with_token: bool = True,
    allow_hosts: frozenset[str] = frozenset(),
    **options: Any,
) -> StudioServer:
    """Return a server that listens, and that answers once `run` is called; see `Studio` for the other options.

    Parameters
    ----------
    explainer
        A model and a `Table`, or `Contents`.
    on_ready
        Called once with the link, when the server answers requests.
    host, port
        Address to listen on; port 0 selects a free port.
    with_token
        Whether requests need a token: that of the variable ANCHORLINE_STUDIO_TOKEN, else a random one.
    allow_hosts
        Host names of this server in addition to ``host``.
    """
    token = token_from_environment() if with_token else None
    if token is None and not is_loopback(host):
        raise ParameterError(
            f"The host is {host!r} and no token is required. Without a token, the host must be a loopback "
            "address. Drop --no-token, or drop --host."
        )
    is_wildcard = host in ("0.0.0.0", "::")
    loopback_names = LOOPBACK if is_wildcard or is_loopback(host) else frozenset()
    hosts = loopback_names | {host} | allow_hosts
    studio = Studio(explainer, token=token, hosts=hosts, **options)
    listener = bind(host, port)
    reachable = "127.0.0.1" if is_wildcard else host
    reachable = f"[{reachable}]" if ":" in reachable else reachable
    query = f"?token={token.partition(',')[0]}" if token else ""
    return StudioServer(studio, listener, f"http://{reachable}:{listener.getsockname()[1]}/{query}", on_ready)


def token_from_environment() -> str:
    """Return the token in the environment, or several separated by commas; a new random one if it is not set."""
    token = os.environ.get(TOKEN_VARIABLE)
    if token is None:
        return secrets.token_urlsafe(32)
    if not all(len(each) >= _MIN_TOKEN and re.fullmatch(r"[\w.~-]+", each, re.ASCII) for each in token.split(",")):
        raise ParameterError(
            f"{TOKEN_VARIABLE} is too short or contains characters that are not allowed. It needs at least "
            f"{_MIN_TOKEN} letters, digits or characters of -._~; unset it to use a random token."
        )
    return token


def bind(host: str, port: int) -> socket.socket:
    """Return a listening socket, or raise `ParameterError` if the address cannot be used."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio sets TCP_NODELAY only if the protocol is IPPROTO_TCP; without it, small answers take 40 ms longer.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        if os.name == "posix":  # allows a port in TIME_WAIT; on Windows it would allow a port in use
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(256)
    except (OSError, OverflowError) as error:
        listener.close()
        reason = getattr(error, "strerror", None) or error
        raise ParameterError(
            f"The server cannot listen on {host}, port {port}: {reason}. Use --port 0 to select a free port."
        ) from error
    return listener
