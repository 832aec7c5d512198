"""The door: everything that is refused before a route is looked for, and the headers of everything that leaves.

Pure ASGI, outermost. Host and Origin first (DNS rebinding, other sites), then the token, then the body: its
size, how long it takes, its nesting and its values.
"""

import asyncio
import logging
import re
import time
import uuid
from collections.abc import Awaitable, Callable, Mapping
from typing import Any
from urllib.parse import parse_qsl, urlencode

from anchorline.render.characters import printable
from anchorline.studio.access import Access, is_same_origin
from anchorline.studio.bodies import check_json
from anchorline.studio.limits import Limits
from anchorline.studio.metrics import Metrics
from anchorline.studio.problems import MEDIA_TYPE, Problem
from anchorline.studio.work import Left

Scope = dict[str, Any]
Message = dict[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

logger = logging.getLogger("anchorline.studio")
_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
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
_OPEN_PATHS = frozenset({"/health", "/login", "/static/style.css", "/static/landing.js"})
_WITH_BODY = frozenset({"POST", "PUT", "PATCH", "DELETE"})


class Guard:
    """ASGI middleware around the whole application."""

    def __init__(self, app: App, access: Access, limits: Limits, metrics: Metrics, landing: bytes) -> None:
        self._app, self._access, self._limits, self._metrics = app, access, limits, metrics
        self._landing = landing

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, whatever happens inside."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        headers = {key.decode("latin-1"): value.decode("latin-1") for key, value in reversed(scope["headers"])}
        reply = _Reply(send, _request_id(headers))
        scope.setdefault("state", {})["request_id"] = reply.request_id
        began = time.perf_counter()
        try:
            await self._answer(scope, headers, receive, reply)
        except Problem as problem:
            await reply.problem(problem)
        except Left:
            reply.status = 499
        except Exception:
            logger.exception("request %s failed", reply.request_id)
            await reply.problem(Problem(500, "Something went wrong; the log says what."))
        finally:
            self._note(scope, reply, time.perf_counter() - began)

    async def _answer(self, scope: Scope, headers: Mapping[str, str], receive: Receive, reply: "_Reply") -> None:
        method, path = scope["method"], scope["path"]
        host, origin = headers.get("host"), headers.get("origin")
        if not self._access.is_ours(host):
            raise Problem(421, "This server does not go by that name; start it with --allow-host to give it one.")
        is_landing = method == "GET" and path == "/"
        # Browsers tell where a request comes from: a link elsewhere may lead to the page, and to nothing else.
        is_foreign = headers.get("sec-fetch-site") in ("cross-site", "same-site") and not is_landing
        if is_foreign or (origin is not None and not is_same_origin(origin, str(host))):
            raise Problem(403, "Requests from other sites are refused.")
        if is_landing and await self._logged_in(scope, reply):
            return
        admitted = self._access.admits(headers.get("authorization"), headers.get("cookie"))
        scope["state"]["admitted"] = admitted
        if not admitted and path not in _OPEN_PATHS:
            if is_landing:
                await reply.page(401, self._landing)
                return
            told = "A token is needed: the one in the link that `anchorline serve` printed."
            raise Problem(401, told, headers={"WWW-Authenticate": "Bearer"})
        if method in _WITH_BODY:
            receive = await self._checked(headers, receive, is_form=path == "/login")
        await self._app(scope, receive, reply.send)

    async def _logged_in(self, scope: Scope, reply: "_Reply") -> bool:
        """Take the token out of the link: into a cookie if it is right, and away in any case."""
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        given = [value for key, value in query if key == "token"]
        if not given:
            return False
        rest = urlencode([pair for pair in query if pair[0] != "token"])
        cookie = self._access.set_cookie(scope["scheme"] == "https") if self._access.knows(given[0]) else None
        await reply.redirect(f"/?{rest}" if rest else "/", cookie)
        return True

    async def _checked(self, headers: Mapping[str, str], receive: Receive, is_form: bool) -> Receive:
        """The body, read whole within its limits, and handed on as if it had just come."""
        needed = "application/x-www-form-urlencoded" if is_form else "application/json"
        length = headers.get("content-length", "0")
        if length.isdecimal() and int(length) > self._limits.max_body:
            raise Problem(413, f"The body has {length} bytes; at most {self._limits.max_body} are read.")
        try:
            async with asyncio.timeout(self._limits.body_timeout):
                body = await self._read(receive)
        except TimeoutError:
            raise Problem(408, "The request took too long to arrive.", headers={"Connection": "close"}) from None
        if body and headers.get("content-type", "").partition(";")[0].strip().lower() != needed:
            raise Problem(415, f"The body must be {needed}.", headers={"Accept-Post": needed})
        if body and not is_form:
            check_json(body, self._limits.max_depth)
        handed_on = False

        async def again() -> Message:
            nonlocal handed_on
            if handed_on:
                return await receive()
            handed_on = True
            return {"type": "http.request", "body": body, "more_body": False}

        return again

    async def _read(self, receive: Receive) -> bytes:
        parts, size = [], 0
        while True:
            message = await receive()
            if message["type"] != "http.request":
                raise Left
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            if size > self._limits.max_body:
                raise Problem(413, f"The body has more than {self._limits.max_body} bytes.")
            if not message.get("more_body", False):
                return b"".join(parts)

    def _note(self, scope: Scope, reply: "_Reply", seconds: float) -> None:
        route = str(getattr(scope.get("route"), "path", "other"))
        method = scope["method"] if scope["method"] in _WITH_BODY | {"GET", "HEAD", "OPTIONS"} else "other"
        self._metrics.count("anchorline_requests_total", route=route, method=method, status=str(reply.status))
        self._metrics.observe(route, seconds)
        # Never the query: it may hold a token, or what somebody searches for.
        path = printable(scope["path"])[:200]
        logger.info("%s %s %s %.1f ms id=%s", method, path, reply.status, 1000 * seconds, reply.request_id)


class _Reply:
    """Sends the answer with the headers that every answer has; remembers its status."""

    def __init__(self, send: Send, request_id: str) -> None:
        self._send, self.request_id, self.status, self._started = send, request_id, 500, False

    async def send(self, message: Message) -> None:
        """Pass a message on; its headers are completed."""
        if message["type"] == "http.response.start":
            self.status, self._started = message["status"], True
            given = {key.lower(): value for key, value in message.get("headers", [])}
            fixed = _HEADERS | {b"x-request-id": self.request_id.encode()}
            message = message | {"headers": list((fixed | given).items())}
        await self._send(message)

    async def problem(self, problem: Problem) -> None:
        """Answer with a problem, unless an answer has begun."""
        if not self._started:
            told = {"Content-Type": MEDIA_TYPE} | problem.headers
            await self._whole(problem.status, told, problem.body(self.request_id))

    async def page(self, status: int, content: bytes) -> None:
        """Answer with a page."""
        await self._whole(status, {"Content-Type": "text/html; charset=utf-8"}, content)

    async def redirect(self, where: str, cookie: str | None) -> None:
        """Send the browser elsewhere, with a cookie."""
        await self._whole(303, {"Location": where} | ({} if cookie is None else {"Set-Cookie": cookie}), b"")

    async def _whole(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        told = [(key.lower().encode(), value.encode("latin-1")) for key, value in headers.items()]
        told.append((b"content-length", str(len(body)).encode()))
        await self.send({"type": "http.response.start", "status": status, "headers": told})
        await self.send({"type": "http.response.body", "body": body})


def _request_id(headers: Mapping[str, str]) -> str:
    given = headers.get("x-request-id", "")
    return given if _ID.fullmatch(given) else uuid.uuid4().hex
