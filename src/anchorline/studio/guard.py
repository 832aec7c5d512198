"""The outermost ASGI middleware: refuses requests before routing, and adds the headers of every answer.

The checks run in this order: Host and Origin (against DNS rebinding and other sites), then the token, then the
body with its size, duration, depth, keys, numbers and texts.
"""

import asyncio
import json
import math
import re
import time
import uuid
from collections.abc import Callable, Mapping
from typing import Any, NoReturn
from urllib.parse import parse_qsl, urlencode

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from anchorline.render.characters import printable
from anchorline.studio.access import Access, Proxy, StudioLimits, is_address, is_same_origin
from anchorline.studio.observability import Metrics
from anchorline.studio.problems import INTERNAL_ERROR, Problem, logger, request_id

_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
_HEADERS = {
    b"content-security-policy": _POLICY.encode(),
    b"x-content-type-options": b"nosniff",
    b"referrer-policy": b"no-referrer",
    b"x-frame-options": b"DENY",
    b"cross-origin-opener-policy": b"same-origin",
    b"cross-origin-resource-policy": b"same-origin",
    b"permissions-policy": b"camera=(), geolocation=(), microphone=()",
    b"cache-control": b"no-store",
}
_PROBES = frozenset({"/health", "/ready"})
_OPEN_PATHS = _PROBES | frozenset({"/login", "/static/style.css", "/static/landing.js"})
_MODEL = re.compile(r"/m/[a-z0-9-]{1,40}(?=/|$)")
_METHODS_WITH_BODY = frozenset({"POST", "PUT", "PATCH", "DELETE"})
_LARGE = 32_000  # bytes; checking a larger body takes milliseconds, in which the server would answer nobody else
_MAX_FORM = 4096  # bytes of a login, which needs no token; a megabyte of fields would take a tenth of a second
_MAX_FILES, _FILE_PATIENCE = 4, 6  # files of cases that arrive at the same time; they may take longer
FILE_PATH = "/v1/file"
_MAX_LARGE = 16  # large bodies that wait to be checked
_REST = 2.0  # for each second of checking large bodies, seconds without
_MAX_DEPTH = 32  # levels of a JSON body
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


class Guard:
    """ASGI middleware around the whole application: that at the root, and those of several models, by prefix.

    ``apps`` and ``access`` may be replaced while requests are under way. ``end`` is called when the server ends.
    """

    def __init__(
        self,
        apps: Mapping[str, ASGIApp],
        access: Access,
        limits: StudioLimits,
        metrics: Metrics,
        landing: bytes,
        proxy: Proxy,
        end: Callable[[], None] = lambda: None,
    ) -> None:
        self.apps, self.access, self._limits, self._metrics, self._end = apps, access, limits, metrics, end
        self._landing, self._proxy = landing, proxy
        self._large, self._n_large, self._n_files = asyncio.Lock(), 0, 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, whatever the application raises."""
        if scope["type"] == "lifespan":
            await receive()
            await send({"type": "lifespan.startup.complete"})
            await receive()
            self._end()
            await send({"type": "lifespan.shutdown.complete"})
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        headers = Headers(scope=scope)
        reply = _Reply(send, headers)
        scope = self._as_inside(scope, headers)
        scope["state"]["request_id"] = reply.request_id
        request_id.set(reply.request_id)
        start = time.perf_counter()
        try:
            app, receive = await self._admitted(scope, headers, receive)
            await app(scope, receive, reply.send)
        except Problem as problem:
            await reply.send_problem(scope, receive, problem)
        except ClientDisconnect:
            reply.status = 499
        except Exception:
            logger.exception("request %s failed", reply.request_id)
            await reply.send_problem(scope, receive, Problem(500, INTERNAL_ERROR))
        finally:
            self._record(scope, reply, time.perf_counter() - start)

    def _as_inside(self, scope: Scope, headers: Headers) -> Scope:
        """Return the scope as the application sees it: without the prefixes, and GET instead of HEAD.

        The server omits the body of the answer to HEAD. A proxy may remove the prefix itself, or leave it.
        """
        path, prefix, client = scope["path"], self._proxy.root_path, scope.get("client")
        if prefix and path.startswith(f"{prefix}/"):
            path = path[len(prefix) :]
        own = _MODEL.match(path)
        path = path if own is None else path[own.end() :]
        state = scope.get("state", {}) | {"user": self._proxy.user(scope, headers)}
        state["prefix"] = own[0] if own else ""
        state["address"] = client[0] if client else None
        method = "GET" if scope["method"] == "HEAD" else scope["method"]
        scheme = self._proxy.scheme(scope, headers)
        return {**scope, "path": path, "method": method, "scheme": scheme, "state": state}

    async def _admitted(self, scope: Scope, headers: Headers, receive: Receive) -> tuple[ASGIApp, Receive]:
        """Return what answers the request, and what it receives; raise `Problem` if the request is refused."""
        method, path, root = scope["method"], scope["path"], self._proxy.root_path
        host, origin = headers.get("host"), headers.get("origin")
        if "content-length" in headers and "transfer-encoding" in headers:  # two lengths of one body
            detail = "The request has both Content-Length and Transfer-Encoding. Send only one of them."
            raise Problem(400, detail, headers={"Connection": "close"})
        prefix = scope["state"]["prefix"]
        is_probe = path in _PROBES and not prefix and is_address(host)
        if not is_probe and not self.access.is_own_host(host):
            detail = "The Host header does not name this server. Start it with --allow-host NAME to allow a name."
            raise Problem(421, detail)
        is_landing = method == "GET" and path == "/"
        # Browsers report the site that sends a request. A link on another site may open the page only.
        is_foreign = headers.get("sec-fetch-site") in ("cross-site", "same-site") and not is_landing
        if is_foreign or (origin is not None and not is_same_origin(origin, str(host))):
            raise Problem(
                403, "The request comes from another site. Only this server's own page may send requests."
            )
        if path in ("", root):  # relative addresses need the slash at the end
            return RedirectResponse(f"{root}{prefix}/", 303), receive
        is_admitted = self.access.admits(headers.get("authorization"), headers.get("cookie"))
        if is_landing and (answer := self._login_by_link(scope, is_admitted)):
            return answer, receive
        scope["state"]["admitted"] = is_admitted
        if not is_admitted and path not in _OPEN_PATHS:
            if is_landing:
                return HTMLResponse(self._landing, 401), receive
            detail = (
                "The token is missing or wrong. Send the token from the link that `anchorline serve` printed, "
                "in the header Authorization: Bearer TOKEN."
            )
            raise Problem(401, detail, headers={"WWW-Authenticate": "Bearer"})
        if method in _METHODS_WITH_BODY and (is_admitted or path == "/login"):  # other bodies are not read
            receive = await self._read_body(scope, headers, receive)
        app = self.apps.get("" if path in _OPEN_PATHS or path.startswith("/static/") else prefix)
        if app is None:
            raise Problem(404, "No model has this address. The page at the root lists the models.")
        return app, receive

    def _login_by_link(self, scope: Scope, is_admitted: bool) -> ASGIApp | None:
        """Redirect a link with a token to the link without it, and set the cookie if the token is right.

        A client with a wrong token and without the cookie receives the login page with a message.
        """
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        tokens = [value for key, value in query if key == "token"]
        if not tokens:
            return None
        is_token = self.access.is_token(tokens[0])
        if not is_token and not is_admitted:
            return HTMLResponse(refused_landing(self._landing), 401)
        root, rest = self._proxy.root_path, urlencode([pair for pair in query if pair[0] != "token"])
        here = f"{root}{scope['state']['prefix']}/"
        cookie = {"Set-Cookie": self.access.set_cookie(scope["scheme"] == "https", root)} if is_token else None
        return RedirectResponse(f"{here}?{rest}" if rest else here, 303, cookie)

    async def _read_body(self, scope: Scope, headers: Headers, receive: Receive) -> Receive:
        """Read and check the whole body, and return a function that delivers it to the application."""
        path, most, media_type = scope["path"], self._limits.max_body, "application/json"
        if path == "/login":
            most, media_type = _MAX_FORM, "application/x-www-form-urlencoded"
        is_file = path == FILE_PATH and scope["method"] == "POST"
        if is_file:
            most, media_type = self._limits.max_upload, "application/octet-stream"
            if not most:
                raise Problem(422, "This server opens no files of its users. Start it with --upload.")
            if self._n_files >= _MAX_FILES:
                raise Problem(429, "Too many files arrive at once. Try again later.", retry_after=5)
        patience = self._limits.body_timeout * (_FILE_PATIENCE if is_file else 1)
        self._n_files += is_file
        try:
            body = await self._bytes(scope, headers, receive, most, patience)
        finally:
            self._n_files -= is_file
        if body and headers.get("content-type", "").partition(";")[0].strip().lower() != media_type:
            raise Problem(415, f"The body must be {media_type}.", headers={"Accept-Post": media_type})
        if body and media_type == "application/json":
            await self._check(body)
        messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def deliver() -> Message:
            return messages.pop() if messages else await receive()

        return deliver

    async def _bytes(self, scope: Scope, headers: Headers, receive: Receive, most: int, patience: float) -> bytes:
        length, body = headers.get("content-length", "0"), bytearray()
        if length.isdecimal() and int(length) > most:
            raise Problem(413, f"The body has {length} bytes; the maximum is {most} bytes.")
        try:
            async with asyncio.timeout(patience):
                async for part in Request(scope, receive).stream():
                    body += part
                    if len(body) > most:
                        raise Problem(413, f"The body has more than {most} bytes, which is the maximum.")
        except TimeoutError:
            detail = f"The request took longer than {patience:g} s to arrive."
            raise Problem(408, detail, headers={"Connection": "close"}) from None
        return bytes(body)

    async def _check(self, body: bytes) -> None:
        """Check a JSON body; large ones in a thread and one at a time, so that many of them stop nobody."""
        if len(body) < _LARGE:
            check_json(body)
            return
        if self._n_large >= _MAX_LARGE:
            raise Problem(429, "Too many large requests arrive at once. Try again later.", retry_after=5)
        self._n_large += 1
        try:
            async with self._large:
                start = time.perf_counter()
                try:
                    await asyncio.to_thread(check_json, body)
                finally:
                    await asyncio.sleep(_REST * (time.perf_counter() - start))
        finally:
            self._n_large -= 1

    def _record(self, scope: Scope, reply: "_Reply", seconds: float) -> None:
        """Update the metrics and write a log line."""
        route, prefix = str(getattr(scope.get("route"), "path", "other")), scope["state"]["prefix"]
        route = f"{prefix}{route}" if prefix in self.apps and "route" in scope else route
        method = scope["method"] if scope["method"] in _METHODS_WITH_BODY | {"GET", "HEAD", "OPTIONS"} else "other"
        self._metrics.requests.labels(route=route, method=method, status=str(reply.status)).inc()
        self._metrics.request_seconds.labels(route=route).observe(seconds)
        # The query string is never logged, because it may contain a token or a search text.
        path = printable(f"{prefix}{scope['path']}")[:200]
        logger.info("%s %s %s %.1f ms id=%s", method, path, reply.status, 1000 * seconds, reply.request_id)


def refused_landing(landing: bytes) -> bytes:
    """Return the page that asks for the token, with a message that the token was wrong."""
    message = (
        "This token is not valid. Every start of the server makes a new token, unless "
        "ANCHORLINE_STUDIO_TOKEN is set. Use the link that was printed last."
    )
    return landing.replace(b'role="alert">', b'role="alert">' + message.encode(), 1)


async def refuse_connection(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer a request on a connection that exceeds the limit of connections."""
    headers = {"Retry-After": "10", "Connection": "close"}
    problem = Problem(503, "The server has too many open connections. Try again later.", headers=headers)
    await _Reply(send, Headers(scope=scope)).send_problem(scope, receive, problem)


class _Reply:
    """Sends one answer with the headers that every answer has, and stores its status."""

    def __init__(self, send: Send, headers: Headers) -> None:
        proposed = headers.get("x-request-id", "")
        self.request_id = proposed if _REQUEST_ID.fullmatch(proposed) else uuid.uuid4().hex
        self._send, self.status, self._has_started = send, 500, False

    async def send(self, message: Message) -> None:
        """Send an ASGI message, with the common headers added to the start of a response."""
        if message["type"] == "http.response.start":
            self.status, self._has_started = message["status"], True
            headers = {key.lower(): value for key, value in message.get("headers", [])}
            common = _HEADERS | {b"x-request-id": self.request_id.encode()}
            message = {**message, "headers": list((common | headers).items())}
        await self._send(message)

    async def send_problem(self, scope: Scope, receive: Receive, problem: Problem) -> None:
        """Answer with a problem, unless an answer has already started."""
        if not self._has_started:
            await problem.response(self.request_id)(scope, receive, self.send)


def check_json(body: bytes) -> None:
    """Raise `Problem` 400 unless the body is valid JSON of limited depth.

    Numbers must be finite, keys must be unique within their object, and texts must be valid Unicode.
    """
    try:
        content = strict_json(body.decode("utf-8"))
        if _SURROGATE.search(body):
            json.dumps(content, ensure_ascii=False).encode()  # raises for a lone surrogate
        is_deep = _depth(content) > _MAX_DEPTH
    except UnicodeError:
        raise Problem(400, "The body is not valid UTF-8. Send JSON encoded as UTF-8.") from None
    except RecursionError:
        is_deep = True
    except ValueError as error:
        raise Problem(400, f"The body is not valid JSON: {error}") from None
    if is_deep:
        raise Problem(400, f"The body is nested more than {_MAX_DEPTH} levels deep.")


def strict_json(text: str) -> Any:
    """Return the content of JSON with finite numbers and unique keys; `ValueError` for any other text."""
    return json.loads(
        text, parse_constant=_refuse_constant, parse_float=_finite_float, object_pairs_hook=_unique_keys
    )


def _depth(content: Any) -> int:
    """Return the number of lists and objects around the innermost value."""
    if not isinstance(content, dict | list):
        return 0
    return 1 + max(map(_depth, content.values() if isinstance(content, dict) else content), default=0)


def _refuse_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a JSON number")


def _finite_float(text: str) -> float:
    if not math.isfinite(float(text)):
        raise ValueError(f"{text[:20]} exceeds the range of a float")
    return float(text)


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    body = dict(pairs)
    if len(body) < len(pairs):
        raise ValueError("an object contains the same key twice")
    return body
