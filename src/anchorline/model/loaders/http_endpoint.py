"""`HttpModel`: a model behind an address, with batches, retries, limits, and checked answers.

Redirects are never followed, because they would send rows and credentials to an address that the caller did not
name. Credentials are read from the environment when a connection is opened, and no object stores them:
``ANCHORLINE_HTTP_TOKEN`` (sent as ``Authorization: Bearer``), or ``ANCHORLINE_HTTP_USER`` with
``ANCHORLINE_HTTP_PASSWORD`` (sent as ``Authorization: Basic``).
"""

import base64
import contextlib
import json
import logging
import os
import queue
import re
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

import numpy as np

from anchorline.errors import (
    BudgetError,
    MissingDependencyError,
    ModelFileError,
    ParameterError,
    RemoteModelError,
    RemoteRefusalError,
)
from anchorline.model.loaders.files import Options
from anchorline.model.loaders.http_limits import HttpLimits
from anchorline.model.loaders.http_protocols import Mlflow, OpenInference
from anchorline.model.loaders.rows import InputRows

if TYPE_CHECKING:
    import httpx

_log = logging.getLogger(__name__)
_RETRY_STATUSES = {429, 502, 503, 504}
_QUOTED_CHARACTERS = 200


def load(name: str, kind: str, options: Options) -> "HttpModel":
    """Return the model at an address, after a check of the address; no request is sent yet."""
    try:
        import httpx  # noqa: F401, PLC0415
    except ImportError as error:
        raise MissingDependencyError.for_package("httpx", "http") from error
    return HttpModel(name, kind, options.http)


class HttpModel:
    """A callable on frames and 2-D arrays that queries a model behind an address."""

    def __init__(self, address: str, kind: str, limits: HttpLimits) -> None:
        self.address = redact_address(address)
        self._address, self._limits = _checked_address(address), limits
        self._n_queries, self._next_turn, self._lock = 0, 0.0, threading.Lock()
        self._idle: list[httpx.Client] = []
        self.classes_: list[str] | None = None
        self._protocol: Mlflow | OpenInference
        if kind == "mlflow":
            self._protocol = Mlflow(self._address)
        else:
            self._protocol = OpenInference(self._address, self._fetch_metadata)
        _hide_query(self._address)

    def __repr__(self) -> str:
        return f"HttpModel({self.address!r})"

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in self.__dict__.items() if key not in ("_lock", "_idle")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _lock=threading.Lock(), _idle=[])
        _hide_query(self._address)

    def __call__(self, inputs: Any) -> np.ndarray:
        """Return the model's answers to rows, which are sent in batches of fixed size."""
        rows = InputRows(inputs)
        self._count_queries(rows.n_rows)
        table = self._protocol.table(rows)

        def ask(start: int) -> np.ndarray:
            stop = min(start + self._limits.batch_rows, rows.n_rows)
            content = self._query(self._protocol.request(table, start, stop), stop - start)
            return self._parse_answer(content, stop - start)

        starts = range(0, rows.n_rows, self._limits.batch_rows)
        answers = [ask(start) for start in starts[:1]]  # which settles how to ask for the others
        with ThreadPoolExecutor(int(self._limits.parallel)) as pool:
            answers += pool.map(ask, starts[1:])  # in order, whichever ends first
        if not answers:
            return np.zeros(0)
        if len({answer.shape[1:] for answer in answers}) > 1:
            raise RemoteModelError(
                f"{self.address} returned different numbers of columns for different batches. It must return the "
                "same number each time."
            )
        return np.concatenate(answers)

    def classes_for(self, inputs: Any) -> list[str] | None:
        """Return the labels of the answer's columns, or None if they are unknown.

        An MLflow server sends labels only together with answers. If none has come yet, this method queries such a
        server about ``inputs``, and returns None if the server refuses these rows. An Open Inference server may
        state them in its metadata.
        """
        if self.classes_ is None and isinstance(self._protocol, Mlflow):
            with contextlib.suppress(RemoteRefusalError):
                self(inputs)
        elif self.classes_ is None and isinstance(self._protocol, OpenInference):
            self._protocol.fetch_metadata()
            self.classes_ = self._protocol.labels
        return self.classes_

    def close(self) -> None:
        """Close the connections; the next call opens a new one."""
        with self._lock:
            while self._idle:
                self._idle.pop().close()

    def _count_queries(self, n_rows: int) -> None:
        max_queries = self._limits.max_queries
        with self._lock:
            n_queries = self._n_queries + n_rows
            if max_queries is not None and n_queries > max_queries:
                raise BudgetError(
                    f"This call would raise the rows sent to {self.address} to {n_queries}; its max_queries is "
                    f"{max_queries}. Type http=HttpLimits(max_queries={2 * n_queries}), or max_queries=None for "
                    "no limit."
                )
            self._n_queries = n_queries

    def _query(self, request: dict[str, Any], n_rows: int) -> bytes:
        """Return the content of the answer to a request, which is repeated if the server has a better output."""

        def try_again(members: dict[str, Any]) -> bytes | None:
            self._count_queries(n_rows)
            try:
                return self._post(request | members)
            except RemoteRefusalError as error:
                _log.debug("no such output: %s", error)
                return None

        return self._protocol.settle(self._post(request), try_again)

    def _post(self, request: dict[str, Any]) -> bytes:
        return self._exchange("POST", self._protocol.address, json.dumps(request, allow_nan=False).encode())

    def _fetch_metadata(self, address: str) -> Any:
        """Return what the server reports about its model, or None if it reports nothing."""
        try:
            return json.loads(self._exchange("GET", address, None))
        except (RemoteRefusalError, ValueError) as error:
            _log.debug("no metadata: %s", error)
            return None

    def _parse_answer(self, content: bytes, n_rows: int) -> np.ndarray:
        try:
            answer = self._protocol.answer(json.loads(content))
        except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
            reason = self._without_secrets(str(error))
            raise RemoteModelError(f"The answer of {self.address} cannot be read: {reason}") from error
        if len(answer) != n_rows or answer.ndim not in (1, 2):
            raise RemoteModelError(
                f"{self.address} returned shape {answer.shape} for {n_rows} rows; it must return one per row."
            )
        if answer.dtype.kind == "f" and not np.isfinite(answer).all():
            row = int(np.flatnonzero(~np.isfinite(answer).reshape(n_rows, -1).all(axis=1))[0])
            raise RemoteModelError(
                f"{self.address} returned {answer[row]} for row {row}; it must return finite numbers."
            )
        if answer.ndim == 2 and self._protocol.labels:
            self.classes_ = list(self._protocol.labels)
        return answer

    def _exchange(self, method: str, address: str, body: bytes | None) -> bytes:
        """Return the content of the answer to one request, with further attempts where these may help."""
        import httpx  # noqa: PLC0415

        for attempt in range(self._limits.max_retries + 1):
            requested_wait: float | None = None
            try:
                status, headers, content = self._exchange_once(method, address, body)
            except (httpx.ConnectError, httpx.ConnectTimeout, httpx.RemoteProtocolError, httpx.ReadError) as error:
                problem = f"{self.address} cannot be reached: {type(error).__name__}"
            except httpx.TimeoutException as error:
                raise RemoteModelError(
                    f"{self.address} did not answer within {self._limits.read_timeout:g} s."
                ) from error
            except (httpx.HTTPError, httpx.InvalidURL, UnicodeError) as error:  # the address may be a redirect's
                raise RemoteModelError(f"The request to {self.address} failed: {type(error).__name__}.") from error
            else:
                if status == 200:
                    return content
                problem = self._refusal(status, headers, content)
                if status not in _RETRY_STATUSES:
                    raise RemoteRefusalError(problem)
                requested_wait = _retry_after(headers.get("retry-after"))
            if attempt == self._limits.max_retries:
                raise RemoteModelError(f"{problem} (tried {attempt + 1} times).")
            doubled = self._limits.first_wait * 2**attempt
            wait = min(doubled if requested_wait is None else requested_wait, self._limits.longest_wait)
            _log.info("%s; trying again in %.1f s", problem, wait)
            time.sleep(wait)
        raise AssertionError("unreachable")

    def _exchange_once(self, method: str, address: str, body: bytes | None) -> tuple[int, Any, bytes]:
        """Send one request and return status, headers and content, within ``total_timeout``.

        A thread does the work, because httpx limits the time of each part of an answer, headers included, but
        never the time of the whole. A thread that is given up ends when the next part is late or too large.
        """
        self._wait_for_turn()
        client, outcome = self._take_client(), queue.SimpleQueue[Any]()
        headers = {"Content-Type": "application/json", "Accept": "application/json", "Accept-Encoding": "identity"}
        request = client.build_request(method, address, content=body, headers=headers)
        threading.Thread(target=self._send, args=(client, request, outcome), daemon=True).start()
        try:
            answer: tuple[int, Any, bytes] | Exception = outcome.get(
                timeout=min(self._limits.total_timeout, threading.TIMEOUT_MAX)
            )
        except queue.Empty:
            answer = self._too_late()
        if isinstance(answer, Exception):
            raise answer
        return answer

    def _wait_for_turn(self) -> None:
        """Wait until another request may start; turns are given in order, at the allowed distance."""
        rate = self._limits.requests_per_second
        if rate is not None:
            with self._lock:
                turn = max(time.monotonic(), self._next_turn)
                self._next_turn = turn + 1 / rate
            time.sleep(max(0.0, turn - time.monotonic()))

    def _send(self, client: "httpx.Client", request: "httpx.Request", outcome: "queue.SimpleQueue[Any]") -> None:
        """Put the answer or the error into ``outcome``; a client that failed is not used again."""
        try:
            answer = self._read(client, request)
        except Exception as error:
            client.close()
            outcome.put(error)
        else:
            self._idle.append(client)
            outcome.put(answer)

    def _read(self, client: "httpx.Client", request: "httpx.Request") -> tuple[int, Any, bytes]:
        deadline = time.monotonic() + self._limits.total_timeout
        with contextlib.closing(client.send(request, stream=True)) as response:
            if response.headers.get("content-encoding", "identity") != "identity":
                raise RemoteModelError(
                    f"{self.address} sent a compressed answer; it must send an uncompressed one."
                )
            parts, size = [], 0
            for part in response.iter_raw():
                size += len(part)
                parts.append(part)
                if size > self._limits.max_answer_bytes:
                    raise RemoteModelError(
                        f"{self.address} answered with more than {self._limits.max_answer_bytes:,} bytes. For "
                        "longer answers raise HttpLimits(max_answer_bytes=...)."
                    )
                if time.monotonic() > deadline:
                    raise self._too_late()
            return response.status_code, response.headers, b"".join(parts)

    def _too_late(self) -> RemoteModelError:
        return RemoteModelError(f"{self.address} took more than {self._limits.total_timeout:g} s to answer.")

    def _refusal(self, status: int, headers: Any, content: bytes) -> str:
        if 300 <= status < 400:
            location = redact_address(str(headers.get("location", "")))
            return (
                f"{self.address} redirects to {location!r}, and redirects are not followed. If you trust that "
                "address, pass it as the model."
            )
        if status in (401, 403):
            return f"{self.address} answered {status}: set ANCHORLINE_HTTP_TOKEN to a token that it accepts."
        text = " ".join(content.decode("utf-8", "replace").split())
        return f"{self.address} answered {status}: {self._without_secrets(text)[:_QUOTED_CHARACTERS]}"

    def _without_secrets(self, text: str) -> str:
        """Return a server's text with ``***`` in place of credentials and of the address' query.

        A server may repeat what it was sent, in its original or in its decoded form.
        """
        query = urlsplit(self._address).query
        headers = [part for header in _credentials().values() for part in (header, header.partition(" ")[2])]
        values = [part for pair in query.split("&") for part in (pair, pair.partition("=")[2])]
        secrets = {*headers, _variable("ANCHORLINE_HTTP_PASSWORD"), query}
        secrets |= {value for value in values if len(value) > 2}  # shorter values occur in any text by chance
        for secret in sorted(secrets - {""}, key=len, reverse=True):
            text = text.replace(secret, "***").replace(unquote(secret), "***")
        return text

    def _take_client(self) -> "httpx.Client":
        """Return a client that no other thread is using."""
        import httpx  # noqa: PLC0415

        with self._lock:
            if self._idle:
                return self._idle.pop()
        timeout = httpx.Timeout(self._limits.read_timeout, connect=self._limits.connect_timeout)
        return httpx.Client(timeout=timeout, headers=_credentials(), follow_redirects=False)


def redact_address(address: str) -> str:
    """Return an address for messages and logs: without user, password, query and fragment."""
    try:
        parts = urlsplit(address)
        port = f":{parts.port}" if parts.port else ""
        host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname or ""
    except ValueError:
        return "the address"
    query = "?..." if parts.query else ""
    return f"{parts.scheme}://{host}{port}{parts.path}{query}" if parts.scheme else parts.path


def _checked_address(address: str) -> str:
    import httpx  # noqa: PLC0415

    try:
        parts = urlsplit(address)
        httpx.URL(address).host.encode("idna")  # fails here as it would when a connection is opened
        has_host = bool(parts.hostname) and (parts.port is None or 0 < parts.port < 65536)
    except (ValueError, httpx.InvalidURL):
        has_host = False
    if not has_host or parts.scheme.lower() not in ("http", "https") or re.search(r"[\s\0]", address):
        raise ModelFileError(f"{redact_address(address)!r} is not a valid address. Type http(s)://host/path.")
    if "@" in parts.netloc:
        raise ModelFileError(
            f"The address of {redact_address(address)} holds a user or password, which would appear in shell "
            "histories and logs. Leave them out and set ANCHORLINE_HTTP_TOKEN, or ANCHORLINE_HTTP_USER and "
            "ANCHORLINE_HTTP_PASSWORD."
        )
    local = parts.hostname in ("localhost", "::1") or str(parts.hostname).startswith("127.")
    if parts.scheme.lower() == "http" and not local and _credentials():
        _log.warning("credentials are sent to %s unencrypted; use https", redact_address(address))
    return address.partition("#")[0]


def _credentials() -> dict[str, str]:
    """Return the Authorization header, read from the environment; empty if no credentials are set."""
    token = _variable("ANCHORLINE_HTTP_TOKEN")
    if token:
        return {"Authorization": f"Bearer {token}"}
    user = _variable("ANCHORLINE_HTTP_USER")
    if user:
        pair = f"{user}:{_variable('ANCHORLINE_HTTP_PASSWORD')}"
        return {"Authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}
    return {}


def _variable(name: str) -> str:
    value = os.environ.get(name, "").strip()
    if not re.fullmatch(r"[!-~]*", value):  # the message must not quote the value
        raise ParameterError(
            f"The environment variable {name} contains a blank or a non-ASCII character. It must contain only "
            "printable ASCII characters."
        )
    return value


def _retry_after(value: str | None) -> float | None:
    """Return the seconds that a ``Retry-After`` header requests (a number or a date), or None if unreadable."""
    if value is None:
        return None
    try:
        is_number = value.strip().isdigit()
        return max(0.0, float(value) if is_number else parsedate_to_datetime(value).timestamp() - time.time())
    except (TypeError, ValueError, OverflowError):
        return None


def _hide_query(address: str) -> None:
    """Keep the query of an address, which may be a key, out of what httpx logs."""
    if not urlsplit(address).query:
        return
    logger = logging.getLogger("httpx")
    if _redact_record not in logger.filters:
        logger.addFilter(_redact_record)


def _redact_record(record: logging.LogRecord) -> bool:
    if isinstance(record.args, tuple):
        # Every address, because a protocol sends requests to several addresses below the one that was typed.
        record.args = tuple(redact_address(str(part)) if "://" in str(part) else part for part in record.args)
    return True
