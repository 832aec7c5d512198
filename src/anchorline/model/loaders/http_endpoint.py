"""A model behind an address: batched, retried, limited, and checked.

Redirects are never followed: they would take rows and credentials to a place nobody named. Credentials come
from the environment alone, are read when a connection is opened, and are kept on no object:
``ANCHORLINE_HTTP_TOKEN`` (sent as ``Authorization: Bearer``), or ``ANCHORLINE_HTTP_USER`` with
``ANCHORLINE_HTTP_PASSWORD`` (Basic).
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
from anchorline.model.loaders import http_protocols
from anchorline.model.loaders.http_limits import HttpLimits
from anchorline.model.loaders.rows import InputRows

if TYPE_CHECKING:
    import httpx

    from anchorline.model.loaders.loading import Options

_log = logging.getLogger(__name__)
_AGAIN = {429, 502, 503, 504}
_SHOWN_CHARACTERS = 200


def load(name: str, kind: str, options: "Options") -> "HttpModel":
    """Check the address and make the model; an Open Inference model is asked what its inputs are."""
    try:
        import httpx  # noqa: F401, PLC0415
    except ImportError as error:
        raise MissingDependencyError.for_package("httpx", "http") from error
    return HttpModel(name, kind, options.http)


class HttpModel:
    """A callable on frames and 2-D arrays that asks a model behind an address."""

    def __init__(self, address: str, kind: str, limits: HttpLimits) -> None:
        self.address = shown(address)
        self._address, self._limits = _checked_address(address), limits
        self._n_queries, self._lock = 0, threading.Lock()
        self._idle: list[httpx.Client] = []
        self.classes_: list[str] | None = None
        self._protocol: Any
        if kind == "mlflow":
            self._protocol = http_protocols.Mlflow(self._address)
        else:
            self._protocol = http_protocols.OpenInference(self._address, self._metadata)
        _hide_query(self._address)

    def __repr__(self) -> str:
        return f"HttpModel({self.address!r})"

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in self.__dict__.items() if key not in ("_lock", "_idle")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _lock=threading.Lock(), _idle=[])
        _hide_query(self._address)

    def __call__(self, inputs: Any) -> np.ndarray:
        """Ask the model about rows, in batches of fixed size."""
        rows, most = InputRows(inputs), self._limits.max_queries
        with self._lock:
            n_queries = self._n_queries + rows.n_rows
            if most is not None and n_queries > most:
                raise BudgetError(
                    f"{n_queries} rows would have gone to {self.address}; its max_queries is {most}. "
                    f"Type http=HttpLimits(max_queries={2 * n_queries}), or max_queries=None for no limit."
                )
            self._n_queries = n_queries
        table = self._protocol.table(rows)
        answers = []
        for start in range(0, rows.n_rows, self._limits.batch_rows):
            stop = min(start + self._limits.batch_rows, rows.n_rows)
            body = json.dumps(self._protocol.request(table, start, stop), allow_nan=False).encode()
            answers.append(self._understood(self._exchange("POST", self._protocol.address, body), stop - start))
        if not answers:
            return np.zeros(0)
        if len({answer.shape[1:] for answer in answers}) > 1:
            raise RemoteModelError(f"{self.address} answered with different numbers of columns.")
        return np.concatenate(answers)

    def learn_classes(self, inputs: Any) -> None:
        """Ask about rows for ``classes_``, which MLflow tells with its answers; rows it refuses tell none."""
        if self.classes_ is None and isinstance(self._protocol, http_protocols.Mlflow):
            with contextlib.suppress(RemoteRefusalError):
                self(inputs)

    def _metadata(self, address: str) -> Any:
        """What the server says of its model; None if it says nothing."""
        try:
            return json.loads(self._exchange("GET", address, None))
        except (RemoteRefusalError, ValueError) as error:
            _log.debug("no metadata: %s", error)
            return None

    def close(self) -> None:
        """Close the connections; the next rows open another."""
        with self._lock:
            while self._idle:
                self._idle.pop().close()

    def _understood(self, content: bytes, n_rows: int) -> np.ndarray:
        try:
            answer: np.ndarray = self._protocol.answer(json.loads(content))
        except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
            told = self._without_secrets(str(error))
            raise RemoteModelError(f"{self.address} answered what cannot be read: {told}") from error
        if len(answer) != n_rows or answer.ndim not in (1, 2):
            raise RemoteModelError(
                f"{self.address} answered with shape {answer.shape} to {n_rows} rows; needed one answer a row."
            )
        if answer.dtype.kind == "f" and not np.isfinite(answer).all():
            row = int(np.flatnonzero(~np.isfinite(answer).reshape(n_rows, -1).all(axis=1))[0])
            raise RemoteModelError(f"{self.address} answered {answer[row]} to row {row}; needed finite numbers.")
        if answer.ndim == 2 and self._protocol.labels:
            self.classes_ = list(self._protocol.labels)
        return answer

    def _exchange(self, method: str, address: str, body: bytes | None) -> bytes:
        """One request, tried again while that may help."""
        import httpx  # noqa: PLC0415

        for attempt in range(self._limits.max_retries + 1):
            asked: float | None = None
            try:
                status, headers, content = self._once(method, address, body)
            except (httpx.ConnectError, httpx.ConnectTimeout, httpx.RemoteProtocolError, httpx.ReadError) as error:
                problem = f"{self.address} cannot be reached: {type(error).__name__}"
            except httpx.TimeoutException as error:
                raise RemoteModelError(
                    f"{self.address} did not answer within {self._limits.read_timeout:g} s."
                ) from error
            except (httpx.HTTPError, httpx.InvalidURL, UnicodeError) as error:  # also of a redirect's address
                raise RemoteModelError(f"{self.address} failed: {type(error).__name__}.") from error
            else:
                if status == 200:
                    return content
                problem = self._refusal(status, headers, content)
                if status not in _AGAIN:
                    raise RemoteRefusalError(problem)
                asked = _retry_after(headers.get("retry-after"))
            if attempt == self._limits.max_retries:
                raise RemoteModelError(f"{problem} (tried {attempt + 1} times).")
            doubled = self._limits.first_wait * 2**attempt
            wait = min(doubled if asked is None else asked, self._limits.longest_wait)
            _log.info("%s; trying again in %.1f s", problem, wait)
            time.sleep(wait)
        raise AssertionError("unreachable")

    def _once(self, method: str, address: str, body: bytes | None) -> tuple[int, Any, bytes]:
        """Send once and read, no longer than allowed.

        In a thread, because httpx limits the time of each part, headers included, and never of the whole. Given
        up, the thread ends by itself when a part is late or too much.
        """
        client, outcome = self._opened(), queue.SimpleQueue[Any]()
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

    def _send(self, client: "httpx.Client", request: "httpx.Request", outcome: "queue.SimpleQueue[Any]") -> None:
        """Put the answer, or what was raised instead; a client that failed is not used again."""
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
                raise RemoteModelError(f"{self.address} answered compressed, which was not asked for.")
            parts, size = [], 0
            for part in response.iter_raw():
                size += len(part)
                parts.append(part)
                if size > self._limits.max_answer_bytes:
                    raise RemoteModelError(
                        f"{self.address} answered with more than {self._limits.max_answer_bytes:,} bytes."
                    )
                if time.monotonic() > deadline:
                    raise self._too_late()
            return response.status_code, response.headers, b"".join(parts)

    def _too_late(self) -> RemoteModelError:
        return RemoteModelError(f"{self.address} took more than {self._limits.total_timeout:g} s to answer.")

    def _refusal(self, status: int, headers: Any, content: bytes) -> str:
        if 300 <= status < 400:
            place = shown(str(headers.get("location", "")))
            return (
                f"{self.address} redirects to {place!r}, and redirects are not followed. If you trust it, name it."
            )
        if status in (401, 403):
            return f"{self.address} answered {status}: set ANCHORLINE_HTTP_TOKEN to a token it accepts."
        text = " ".join(content.decode("utf-8", "replace").split())
        return f"{self.address} answered {status}: {self._without_secrets(text)[:_SHOWN_CHARACTERS]}"

    def _without_secrets(self, text: str) -> str:
        """A server's text, in case it repeats what it was sent: credentials in any form, the address' query."""
        query = urlsplit(self._address).query
        headers = [part for header in _credentials().values() for part in (header, header.partition(" ")[2])]
        values = [part for pair in query.split("&") for part in (pair, pair.partition("=")[2])]
        secrets = {*headers, _variable("ANCHORLINE_HTTP_PASSWORD"), query}
        secrets |= {value for value in values if len(value) > 2}  # shorter ones are in every text
        for secret in sorted(secrets - {""}, key=len, reverse=True):
            text = text.replace(secret, "***").replace(unquote(secret), "***")
        return text

    def _opened(self) -> "httpx.Client":
        """A client that nobody else is using."""
        import httpx  # noqa: PLC0415

        with self._lock:
            if self._idle:
                return self._idle.pop()
        timeout = httpx.Timeout(self._limits.read_timeout, connect=self._limits.connect_timeout)
        return httpx.Client(timeout=timeout, headers=_credentials(), follow_redirects=False)


def shown(address: str) -> str:
    """An address as it may be shown: without user, password, query and fragment."""
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
        httpx.URL(address).host.encode("idna")  # as it will be when a connection is opened
        named = bool(parts.hostname) and (parts.port is None or 0 < parts.port < 65536)
    except (ValueError, httpx.InvalidURL):
        named = False
    if not named or parts.scheme.lower() not in ("http", "https") or re.search(r"[\s\0]", address):
        raise ModelFileError(f"{shown(address)!r} is no address; needed http(s)://host/path.")
    if "@" in parts.netloc:
        raise ModelFileError(
            f"The address of {shown(address)} holds a user or password, which would end up in histories and logs. "
            "Leave them out and set ANCHORLINE_HTTP_TOKEN, or ANCHORLINE_HTTP_USER and ANCHORLINE_HTTP_PASSWORD."
        )
    local = parts.hostname in ("localhost", "::1") or str(parts.hostname).startswith("127.")
    if parts.scheme.lower() == "http" and not local and _credentials():
        _log.warning("credentials go to %s unencrypted; use https", shown(address))
    return address.partition("#")[0]


def _credentials() -> dict[str, str]:
    """The Authorization header, from the environment."""
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
    if not re.fullmatch(r"[!-~]*", value):  # a message that shows it would give it away
        raise ParameterError(f"The environment variable {name} holds a blank or a character beyond ASCII.")
    return value


def _retry_after(value: str | None) -> float | None:
    """Seconds that a server asks to wait: a number, or a date."""
    if value is None:
        return None
    try:
        return max(0.0, float(value)) if value.strip().isdigit() else _until(value)
    except (TypeError, ValueError, OverflowError):
        return None


def _until(date: str) -> float:
    return max(0.0, parsedate_to_datetime(date).timestamp() - time.time())


def _hide_query(address: str) -> None:
    """Keep an address's query, which may be a key, out of what httpx logs."""
    if not urlsplit(address).query:
        return
    logger = logging.getLogger("httpx")
    if _hide not in logger.filters:
        logger.addFilter(_hide)


def _hide(record: logging.LogRecord) -> bool:
    if isinstance(record.args, tuple):
        # Any address, because a protocol asks at several below the one that was typed.
        record.args = tuple(shown(str(part)) if "://" in str(part) else part for part in record.args)
    return True
