"""The server process: bind a socket, report the link, serve until a signal, and finish the running jobs."""

import asyncio
import contextlib
import os
import re
import secrets
import signal
import socket
import threading
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from anchorline.errors import AnchorlineError, ParameterError
from anchorline.model.predictor import contain_exits
from anchorline.render.characters import printable
from anchorline.studio.access import is_loopback
from anchorline.studio.app import LOOPBACK, Loaded, Studio
from anchorline.studio.display import Model
from anchorline.studio.guard import refuse_connection
from anchorline.studio.problems import MEDIA_TYPE, Problem, logger

PORT = 8377
_MIN_TOKEN = 16  # the minimum number of characters in a token that a person chooses
TOKEN_VARIABLE = "ANCHORLINE_STUDIO_TOKEN"
_reloads = logger.getChild("reload")
Models = Model | Mapping[str, Model]
Reloaded = tuple[Models, str | None]  # and the token
_MOST_HEADER_BYTES = 32_768
_HEADER_SECONDS = 10.0  # a connection without a complete request head after this time is closed
_READ_SECONDS = 20.0  # a client that leaves a part of an answer unread for this time is disconnected
_WATCH_SECONDS = 1.0  # between two looks at the unread part of an answer
_FINISH_SECONDS = 3.0  # running jobs get this long to finish after a signal; then their clients get a 503
_GRACE_SECONDS = 4  # and the server this long to send the answers
_END_SECONDS = 4.5  # after a signal, the process ends after this time in any case


_MOST_CHUNKS = 1000  # of a body that names no length; each takes as long as many bytes
_BARE_LINE_FEED = re.compile(rb"(?<!\r)\n")


class CountingConnection(h11.Connection):
    """Refuses a body of very many chunks: a megabyte of single bytes would stop the event loop for seconds."""

    n_chunks = 0

    def next_event(self) -> Any:
        """Return the next event; raise `h11.RemoteProtocolError` if it is a chunk too many."""
        event = super().next_event()
        if isinstance(event, h11.Request):
            self.n_chunks = 0
        elif isinstance(event, h11.Data):
            self.n_chunks += event.chunk_start
            if self.n_chunks > _MOST_CHUNKS:
                raise h11.RemoteProtocolError("too many chunks")
        return event


class StrictProtocol(H11Protocol):
    """HTTP/1.1 that closes idle connections, slow readers and connections beyond the limit, and refuses bare LF.

    Otherwise such connections would count against the limit of connections. Beyond the limit, the connection that
    the server has waited for longest makes room for a new one: a client that sends no request, or only a part of
    its body, or that does not read its answer. Proxies disagree about lines that end with LF alone, so that
    such lines could smuggle a request past a proxy.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.conn = CountingConnection(h11.SERVER, max_incomplete_event_size=_MOST_HEADER_BYTES)
        self._max_connections, self.limit_concurrency = self.limit_concurrency, None
        self._last_empty = self.loop.time()  # when nothing was left to send

    def connection_made(self, transport: Any) -> None:
        """Start the timers; answer with 503 if there are too many connections."""
        super().connection_made(transport)
        if self._max_connections is not None and len(self.connections) > self._max_connections:
            others: list[Any] = [other for other in self.connections if other is not self]
            slow = [other for other in others if other.waits_for_client]
            if slow:
                min(slow, key=lambda other: other.idle_since).transport.abort()
            else:
                self.app = refuse_connection
        self._await_request()
        self._watch = self.loop.call_later(_WATCH_SECONDS, self._abort_if_unread)

    def handle_events(self) -> None:
        """Handle the received bytes, unless a line of the next request's head ends with LF alone."""
        if self.conn.their_state is h11.IDLE:
            head = self.conn.trailing_data[0].partition(b"\r\n\r\n")[0]
            if _BARE_LINE_FEED.search(head):
                self.send_400_response("A line ends with LF alone; it must end with CR LF.")
                return
        super().handle_events()

    def send_400_response(self, msg: str) -> None:
        """Refuse a request that is not valid HTTP, and close the connection."""
        body = Problem(400, msg).body(uuid.uuid4().hex)
        head = f"HTTP/1.1 400 Bad Request\r\ncontent-type: {MEDIA_TYPE}\r\ncontent-length: {len(body)}\r\n"
        self.transport.write(f"{head}connection: close\r\n\r\n".encode() + body)
        self.transport.close()

    def _abort_if_unread(self) -> None:
        """Disconnect a client that has not read its answer for too long, however little it reads at a time."""
        now = self.loop.time()
        if not self.transport.get_write_buffer_size():
            self._last_empty = now
        if now - self._last_empty > _READ_SECONDS:
            self.transport.abort()
        else:
            self._watch = self.loop.call_later(_WATCH_SECONDS, self._abort_if_unread)

    def on_response_complete(self) -> None:
        """Restart the timer; the keep-alive timer of uvicorn stops at the first byte of the next request."""
        self._deadline.cancel()
        self._await_request()
        super().on_response_complete()

    def _await_request(self) -> None:
        self.idle_since = self.loop.time()
        self._deadline = self.loop.call_later(_HEADER_SECONDS, self._close_if_idle)

    @property
    def is_idle(self) -> bool:
        """Whether no request is being answered and the connection is open."""
        is_busy = self.cycle is not None and not self.cycle.response_complete
        return not is_busy and not self.transport.is_closing()

    @property
    def waits_for_client(self) -> bool:
        """Whether only the client can go on: with a request, with the rest of its body, or by reading."""
        if self.transport.is_closing():
            return False
        return self.is_idle or bool(self.cycle.more_body) or self.transport.get_write_buffer_size() > 0

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timers."""
        self._deadline.cancel()
        self._watch.cancel()
        super().connection_lost(exc)

    def _close_if_idle(self) -> None:
        if self.is_idle:
            self.transport.close()


class StudioServer(uvicorn.Server):
    """A server that is ready to `run` on its own socket; ``link`` is the address to open in a browser.

    ``reload`` returns the models and the token anew; SIGHUP asks for it.

    After a signal it accepts no more jobs and finishes the running ones. Requests whose jobs would take too
    long are answered with 503.
    """

    def __init__(
        self,
        studio: Studio,
        listener: socket.socket,
        link: str,
        on_ready: Callable[[str], None],
        reload: Callable[[], Reloaded] | None = None,
    ) -> None:
        super().__init__(
            uvicorn.Config(
                studio.app,
                http=StrictProtocol,
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
        self._again, self._is_outdated = reload, False
        self.reloading: asyncio.Future[None] | None = None

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
            if self._again is not None:
                loop.add_signal_handler(signal.SIGHUP, self.reload)
        self._on_ready(self.link)

    def reload(self) -> None:
        """Load everything anew beside what runs, and switch to it; what runs goes on if anything is wrong.

        What changes meanwhile is loaded after that. To be called by the event loop.
        """
        self._is_outdated = True
        if self.reloading is None or self.reloading.done():
            self.reloading = asyncio.ensure_future(self._switch())

    async def _switch(self) -> None:
        while self._is_outdated and self._again is not None:
            self._is_outdated = False
            try:
                self.studio.switch(*await asyncio.to_thread(self._load, self._again))
                names = ", ".join(each.title for each in self.studio.served.values())
                _reloads.info("The server has loaded everything again: %s.", names)
            except Exception as raised:
                error: Any = raised
                is_usage = hasattr(error, "format_message")  # of an option in the configuration
                reason = error.format_message() if is_usage else str(error)
                cause = None if is_usage or isinstance(error, AnchorlineError) else error
                said = "Nothing was loaded again, and the server goes on as before. %s"
                _reloads.error(said, printable(reason), exc_info=cause)

    def _load(self, reload: Callable[[], Reloaded]) -> tuple[Loaded, str | None]:
        with contain_exits():
            models, token = reload()
            return self.studio.load(models), token

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
    models: Models,
    *,
    on_ready: Callable[[str], None],
    host: str = "127.0.0.1",
    port: int = PORT,
    with_token: bool = True,
    token_file: Path | None = None,
    reload: Callable[[], Models] | None = None,
    allow_hosts: frozenset[str] = frozenset(),
    **options: Any,
) -> StudioServer:
    """Return a server that listens, and that answers once `run` is called; see `Studio` for the other options.

    Parameters
    ----------
    models
        The model, or several by name.
    on_ready
        Called once with the link, when the server answers requests.
    host, port
        Address to listen on; port 0 selects a free port.
    with_token
        Whether requests need a token: that of the variable ANCHORLINE_STUDIO_TOKEN, else a random one.
    token_file
        A file with the token, which is read again at every reload.
    reload
        Returns the models anew when SIGHUP asks for it; None leaves the signal alone.
    allow_hosts
        Host names of this server in addition to ``host``.
    """
    token = _token_of(token_file, with_token=with_token)
    if token is None and not is_loopback(host):
        raise ParameterError(
            f"The host is {host!r} and no token is required. Without a token, the host must be a loopback "
            "address. Drop --no-token, or drop --host."
        )
    is_wildcard = host in ("0.0.0.0", "::")
    loopback_names = LOOPBACK if is_wildcard or is_loopback(host) else frozenset()
    hosts = loopback_names | {host} | allow_hosts
    studio = Studio(models, token=token, hosts=hosts, **options)
    listener = bind(host, port)
    reachable = "127.0.0.1" if is_wildcard else host
    reachable = f"[{reachable}]" if ":" in reachable else reachable
    query = f"?token={token.partition(',')[0]}" if token else ""
    link = f"http://{reachable}:{listener.getsockname()[1]}/{query}"

    def again() -> tuple[Models, str | None]:
        return ({} if reload is None else reload()), token if token_file is None else _token_of(token_file)

    return StudioServer(studio, listener, link, on_ready, None if reload is None else again)


def token_from_environment() -> str:
    """Return the token in the environment, or several separated by commas; a new random one if it is not set."""
    token = os.environ.get(TOKEN_VARIABLE)
    return secrets.token_urlsafe(32) if token is None else _checked_token(token, TOKEN_VARIABLE, "unset it")


def _token_of(path: Path | None, *, with_token: bool = True) -> str | None:
    """Return the token of a file, with one or several on lines of their own, or that of the environment."""
    if path is None:
        return token_from_environment() if with_token else None
    if not with_token or TOKEN_VARIABLE in os.environ:
        other = TOKEN_VARIABLE if with_token else "--no-token"
        raise ParameterError(f"--token-file and {other} are both given. Leave out one of them.")
    try:
        tokens = path.read_text(encoding="utf-8").replace(",", " ").split()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not a text"
        raise ParameterError(f"The file of --token-file, {str(path)!r}, cannot be read: {reason}.") from error
    return _checked_token(",".join(tokens), repr(str(path)), "leave out --token-file")


def _checked_token(token: str, source: str, otherwise: str) -> str:
    if not all(len(each) >= _MIN_TOKEN and re.fullmatch(r"[\w.~-]+", each, re.ASCII) for each in token.split(",")):
        raise ParameterError(
            f"{source} is too short or contains characters that are not allowed. It needs at least "
            f"{_MIN_TOKEN} letters, digits or characters of -._~; {otherwise} to use a random token."
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
