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
import re
import threading
import time
import weakref
from abc import ABC, abstractmethod
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, fields
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote, urlsplit, urlunsplit

import numpy as np

from anchorline.errors import (
    AnchorlineError,
    BudgetError,
    ModelFileError,
    ModelInputError,
    ParameterError,
    RemoteModelError,
    RemoteRefusalError,
    listed,
)
from anchorline.model.loaders.rows import InputRows, is_missing

if TYPE_CHECKING:
    import httpx

_log = logging.getLogger(__name__)
_RETRY_STATUSES = {429, 502, 503, 504}
_MAY_BE_ZERO = {"max_retries", "first_wait", "longest_wait"}
_HEADERS = {"Content-Type": "application/json", "Accept": "application/json", "Accept-Encoding": "identity"}
_PROBABILITIES = "predict_proba"  # the output that MLServer computes only if a request names it
_ASK_PROBABILITIES = {"outputs": [{"name": _PROBABILITIES}]}
_CLASS_NAMES = ("class_names", "classes", "labels")  # members of an output's parameters or tags
_DATATYPES = {"i": "INT64", "u": "INT64", "b": "BOOL", "f": "FP64"}  # by the kind of NumPy's type


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpLimits:
    """Limits of a model behind an address.

    Parameters
    ----------
    batch_rows
        Rows per request. The number is fixed because the last bits of a model's answer may depend on the batch.
    connect_timeout, read_timeout, total_timeout
        Seconds to connect, between two parts of an answer, and from the request to the end of the answer.
    max_retries
        Further attempts after a failed connection or after the statuses 429, 502, 503 and 504.
    first_wait, longest_wait
        Seconds before the first further attempt. The wait doubles with each attempt up to ``longest_wait``,
        which also limits the wait that a server requests by ``Retry-After``.
    requests_per_second
        Largest rate at which requests are started, further attempts included; None for no limit. Each process has
        its own rate.
    parallel
        Requests that may be under way at once. The order of answers does not depend on it.
    max_queries
        Rows sent in total over the life of the model; None for no limit. Each process counts its own rows. The
        ``queries`` of an explanation limits that explanation alone.
    max_answer_bytes
        Largest size of one answer. Reading stops there.

    Examples
    --------
    >>> HttpLimits(read_timeout=5).batch_rows
    1000
    """

    batch_rows: int = 1000
    connect_timeout: float = 5.0
    read_timeout: float = 60.0
    total_timeout: float = 300.0
    max_retries: int = 4
    first_wait: float = 0.5
    longest_wait: float = 30.0
    requests_per_second: float | None = None
    parallel: int = 1
    max_queries: int | None = None
    max_answer_bytes: int = 64 * 2**20

    def __post_init__(self) -> None:
        for name in (field.name for field in fields(self)):
            value, zero_allowed = getattr(self, name), name in _MAY_BE_ZERO
            if value is None and name in ("max_queries", "requests_per_second"):
                continue
            is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
            if not is_number or not (value > 0 or (value == 0 and zero_allowed)):
                lowest = "a number that is not negative" if zero_allowed else "a number above 0"
                raise ParameterError(f"{name} is {value!r}, but it must be {lowest}.")


class _Column(NamedTuple):
    """One column that is ready to be sent: its values as JSON values, with None for missing ones."""

    name: str
    datatype: str
    values: Sequence[Any]


class HttpModel(ABC):
    """A callable on frames and 2-D arrays that queries a model behind an address; the first call connects.

    A subclass says which columns its kind of server needs, which request it is sent, and how its answer is read.
    """

    classes_: list[str] | None = None  # set when they are known
    _labels: list[str] | None = None  # of the columns of scores

    def __init__(self, address: str, limits: HttpLimits) -> None:
        self.address = redact_address(address)
        self._address = self._url = _checked_address(address)
        self._limits, self._n_queries, self._next_turn = limits, 0, 0.0
        self.__setstate__({})

    def __repr__(self) -> str:
        return f"HttpModel({self.address!r})"

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in self.__dict__.items() if key not in ("_lock", "_client")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = threading.Lock()
        self._client: httpx.Client | None = None
        logger = logging.getLogger("httpx")
        if urlsplit(self._address).query and _redact_record not in logger.filters:  # it may be a key
            logger.addFilter(_redact_record)

    @abstractmethod
    def classes_for(self, inputs: Any) -> list[str] | None:
        """Return the labels of the answer's columns, or None; a server that has to be asked gets ``inputs``."""

    @abstractmethod
    def _columns(self, rows: InputRows) -> list[_Column]: ...

    @abstractmethod
    def _request(self, columns: Sequence[_Column], n_rows: int) -> dict[str, Any]: ...

    @abstractmethod
    def _read(self, body: Any) -> np.ndarray: ...

    def _query(self, request: dict[str, Any], n_rows: int) -> Any:
        """Return the answer to a request about some rows."""
        return json.loads(self._exchange("POST", self._url, json.dumps(request, allow_nan=False).encode()))

    def __call__(self, inputs: Any) -> np.ndarray:
        """Return the model's answers to rows, which are sent in batches of fixed size."""
        rows, size = InputRows(inputs), self._limits.batch_rows
        self._count_queries(rows.n_rows)
        columns = self._columns(rows)

        def ask(start: int) -> np.ndarray:
            parts = [column._replace(values=column.values[start : start + size]) for column in columns]
            return self._answer(parts, min(size, rows.n_rows - start))

        starts = range(0, rows.n_rows, size)
        answers = [ask(start) for start in starts[:1]]  # which settles how to ask for the others
        with ThreadPoolExecutor(int(self._limits.parallel)) as pool:
            answers += pool.map(ask, starts[1:])  # in order, whichever ends first
        if len({answer.shape[1:] for answer in answers}) > 1:
            raise RemoteModelError(
                f"{self.address} returned different numbers of columns for different batches. It must return the "
                "same number each time."
            )
        return np.concatenate(answers or [np.zeros(0)])

    def close(self) -> None:
        """Close the connections; the next call opens a new one."""
        with self._lock:
            client, self._client = self._client, None
        if client is not None:
            client.close()

    def _count_queries(self, n_rows: int) -> None:
        limit = self._limits.max_queries
        with self._lock:
            n_queries = self._n_queries + n_rows
            if limit is not None and n_queries > limit:
                raise BudgetError(
                    f"This call would raise the rows sent to {self.address} to {n_queries}; its max_queries is "
                    f"{limit}. Type http=HttpLimits(max_queries={2 * n_queries}), or max_queries=None for no "
                    "limit."
                )
            self._n_queries = n_queries

    def _answer(self, columns: Sequence[_Column], n_rows: int) -> np.ndarray:
        """Return the checked answer to one batch."""
        request = self._request(columns, n_rows)
        try:
            answer = self._read(self._query(request, n_rows))
        except AnchorlineError:
            raise
        except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
            reason = self._without_secrets(str(error))
            raise RemoteModelError(f"The answer of {self.address} cannot be read: {reason}") from error
        if answer.shape[:1] != (n_rows,) or answer.ndim > 2:
            raise RemoteModelError(
                f"{self.address} returned shape {answer.shape} for {n_rows} rows; it must return one per row."
            )
        if answer.dtype.kind == "f" and not np.isfinite(answer).all():
            row = int(np.flatnonzero(~np.isfinite(answer).reshape(n_rows, -1).all(axis=1))[0])
            raise RemoteModelError(
                f"{self.address} returned {answer[row]} for row {row}; it must return finite numbers."
            )
        answer = answer[:, 0] if answer.shape == (n_rows, 1) else answer
        if answer.ndim == 2 and self._labels:
            self.classes_ = list(self._labels)
        return answer

    def _exchange(self, method: str, address: str, body: bytes | None = None) -> bytes:
        """Return the content of the answer to one request, with further attempts where these may help.

        The retries of httpx itself are for connections only, and their waits cannot be set.
        """
        import httpx  # noqa: PLC0415

        for attempt in range(self._limits.max_retries + 1):
            wait = self._limits.first_wait * 2**attempt
            try:
                status, headers, content = self._send(method, address, body)
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
                with contextlib.suppress(
                    TypeError, ValueError, OverflowError
                ):  # a number or a date; else our own wait
                    asked = str(headers.get("retry-after", "")).strip()
                    date = None if asked.isdigit() else parsedate_to_datetime(asked)
                    wait = float(asked) if date is None else max(0.0, date.timestamp() - time.time())
            if attempt < self._limits.max_retries:
                wait = min(wait, self._limits.longest_wait)
                _log.info("%s; trying again in %.1f s", problem, wait)
                time.sleep(wait)
        raise RemoteModelError(f"{problem} (tried {attempt + 1} times).")

    def _send(self, method: str, address: str, body: bytes | None) -> tuple[int, Any, bytes]:
        """Send one request and return status, headers and content of its answer, within ``total_timeout``.

        A thread does the work, because httpx limits the time of each part of an answer, headers included, but
        never the time of the whole. A thread that is given up ends when the next part is late or too large.
        """
        import httpx  # noqa: PLC0415

        limits = self._limits
        with self._lock:  # turns are given in order, at the allowed distance
            turn = max(time.monotonic(), self._next_turn)
            self._next_turn = turn + 1 / (limits.requests_per_second or float("inf"))
            if self._client is None:
                timeout = httpx.Timeout(limits.read_timeout, connect=limits.connect_timeout)
                unlimited = httpx.Limits(max_connections=None, max_keepalive_connections=None)
                self._client = httpx.Client(timeout=timeout, headers=_credentials(), limits=unlimited)
                weakref.finalize(self, self._client.close)  # also if nobody closes it
            client = self._client  # whose connections are kept between calls and shared by threads
        time.sleep(max(0.0, turn - time.monotonic()))
        request = client.build_request(method, address, content=body, headers=_HEADERS)
        outcome, deadline = Future[tuple[int, Any, bytes]](), time.monotonic() + limits.total_timeout

        def send() -> None:
            try:
                with contextlib.closing(client.send(request, stream=True)) as response:
                    outcome.set_result((response.status_code, response.headers, self._content(response, deadline)))
            except Exception as error:
                outcome.set_exception(error)

        threading.Thread(target=send, daemon=True).start()
        try:
            return outcome.result(min(limits.total_timeout, threading.TIMEOUT_MAX))
        except TimeoutError:
            late = f"{self.address} took more than {limits.total_timeout:g} s to answer."
            raise RemoteModelError(late) from None

    def _content(self, response: "httpx.Response", deadline: float) -> bytes:
        """Read an answer, which must neither be compressed, nor too large, nor too late."""
        if response.headers.get("content-encoding", "identity") != "identity":
            raise RemoteModelError(f"{self.address} sent a compressed answer; it must send an uncompressed one.")
        content = bytearray()
        for part in response.iter_raw():
            content += part
            if len(content) > self._limits.max_answer_bytes:
                raise RemoteModelError(
                    f"{self.address} answered with more than {self._limits.max_answer_bytes:,} bytes. For "
                    "longer answers raise HttpLimits(max_answer_bytes=...)."
                )
            if time.monotonic() > deadline:
                raise TimeoutError
        return bytes(content)

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
        return f"{self.address} answered {status}: {self._without_secrets(text)[:200]}"

    def _without_secrets(self, text: str) -> str:
        """Return a server's text with ``***`` in place of credentials and of the address' query.

        A server may repeat what it was sent, in its original or in its decoded form.
        """
        query = urlsplit(self._address).query
        sent = [*_credentials().values(), *query.split("&")]
        values = {part.partition(mark)[2] for part in sent for mark in " ="}
        secrets = {*sent, query, _variable("ANCHORLINE_HTTP_PASSWORD")}
        secrets |= {value for value in values if len(value) > 2}  # shorter values occur in any text by chance
        for secret in sorted(secrets - {""}, key=len, reverse=True):
            text = text.replace(secret, "***").replace(unquote(secret), "***")
        return text


class Mlflow(HttpModel):
    """``POST .../invocations`` with ``dataframe_split``; the answer is ``{"predictions": [...]}``.

    Scores may come as one JSON object per row, with one score per label. JSON objects have no order, so the
    columns of the answer are in the order of the sorted labels, which come with answers only.
    """

    def classes_for(self, inputs: Any) -> list[str] | None:
        """Return the labels of the answer's columns; the server is asked about ``inputs``, which it may refuse."""
        if self.classes_ is None:
            with contextlib.suppress(RemoteRefusalError):
                self(inputs)
        return self.classes_

    def _columns(self, rows: InputRows) -> list[_Column]:
        return [_column(rows, position) for position in range(rows.n_columns)]

    def _request(self, columns: Sequence[_Column], n_rows: int) -> dict[str, Any]:
        data = [list(row) for row in zip(*(column.values for column in columns), strict=True)]
        return {"dataframe_split": {"columns": [column.name for column in columns], "data": data}}

    def _read(self, body: Any) -> np.ndarray:
        predictions = body.get("predictions") if isinstance(body, dict) else body
        if not isinstance(predictions, list):
            raise ValueError("the answer holds no list of predictions")
        if not predictions or not isinstance(predictions[0], dict):
            return _array(predictions)
        labels = self._labels or sorted(predictions[0])
        for row in predictions:
            if not isinstance(row, dict) or row.keys() != set(labels):
                raise ValueError(
                    f"the predictions do not all have the same labels: {listed(labels)}, then {row!r:.60}"
                )
        scores = _array([[row[label] for label in labels] for row in predictions])
        self._labels = labels
        return scores


class OpenInference(HttpModel):
    """``POST .../v2/models/NAME/infer``; the inputs are those that the server's metadata list.

    A server without metadata gets one input per column if a column holds texts, and otherwise one matrix. If the
    metadata list an output named "predict_proba", every request names it, because MLServer otherwise returns
    labels; its class names are the labels of the columns. MLServer's metadata list no outputs unless its operator
    declares them. If they list none and the only output of an answer is "predict", a request that names
    "predict_proba" finds out whether the server has it.
    """

    def __init__(self, address: str, limits: HttpLimits) -> None:
        super().__init__(address, limits)
        parts = urlsplit(self._address)
        path = re.sub(r"/infer/?$", "", parts.path.rstrip("/"))
        self._url, self._about = (urlunsplit(parts._replace(path=each)) for each in (f"{path}/infer", path))
        self._inputs: list[dict[str, Any]] | None = None  # until the metadata are read
        self._outputs: dict[str, Any] = {}  # that requests name
        self._is_settled = False

    def classes_for(self, inputs: Any) -> list[str] | None:
        """Return the labels of the answer's columns, if the server's metadata state them."""
        if self.classes_ is None:
            self._describe()
            self.classes_ = self._labels
        return self.classes_

    def _describe(self) -> list[dict[str, Any]]:
        """Return the model's inputs; what the server reports about its model is read once."""
        if self._inputs is None:
            metadata: Any = None
            try:
                metadata = json.loads(self._exchange("GET", self._about))
            except (RemoteRefusalError, RecursionError, ValueError) as error:
                _log.debug("no metadata: %s", error)
            outputs = [part for part in _objects(metadata, "outputs") if "name" in part]
            self._is_settled = bool(outputs)
            for part in outputs:
                if part["name"] == _PROBABILITIES:
                    self._outputs, self._labels = _ASK_PROBABILITIES, _class_names(part)
            inputs = _objects(metadata, "inputs")
            self._inputs = inputs if all("name" in part for part in inputs) else []
        return self._inputs

    def _query(self, request: dict[str, Any], n_rows: int) -> Any:
        """Return the answer to a request, which is repeated if MLServer may have probabilities beside labels."""
        body = super()._query(request | self._outputs, n_rows)
        if not self._is_settled and _output_names(body) == ["predict"]:  # what it sends if not asked
            self._count_queries(n_rows)
            better = None
            try:
                better = super()._query(request | _ASK_PROBABILITIES, n_rows)
            except (RemoteRefusalError, RecursionError, ValueError) as error:
                _log.debug("no such output: %s", error)
            self._is_settled = True
            if _output_names(better) == [_PROBABILITIES]:
                self._outputs, body = _ASK_PROBABILITIES, better
        return body

    def _columns(self, rows: InputRows) -> list[_Column]:
        """Return the columns that the model needs, each in the type that it needs."""
        inputs = self._describe()
        names, kinds = [[str(part.get(key, "")) for part in inputs] for key in ("name", "datatype")]
        if len(names) > 1 or (names and names[0] in (rows.names or ())):
            columns = zip(rows.positions(names), names, kinds, strict=True)
            return [_column(rows, position, name, kind) for position, name, kind in columns]
        shape = inputs[0].get("shape") if inputs else None
        is_wide = isinstance(shape, list) and len(shape) == 2 and isinstance(shape[1], int) and shape[1] > 0
        positions = rows.all_positions(shape[1] if shape is not None and is_wide else None)
        return [_column(rows, position, kind="".join(kinds)) for position in positions]

    def _request(self, columns: Sequence[_Column], n_rows: int) -> dict[str, Any]:
        kinds, declared = {column.datatype for column in columns}, self._describe()
        own = declared[0] if declared else {}
        as_matrix = len(declared) == 1 if declared else "BYTES" not in kinds
        if as_matrix and not (own and len(columns) == 1 and columns[0].name == own["name"]):
            values = [value for row in zip(*(column.values for column in columns), strict=True) for value in row]
            kind = own.get("datatype") or (kinds.pop() if len(kinds) == 1 else "FP64")
            tensor = {"name": own.get("name", "input-0"), "shape": [n_rows, len(columns)], "datatype": kind}
            return {"inputs": [tensor | {"data": values}]}
        inputs = [
            {"name": column.name, "shape": [n_rows, 1], "datatype": column.datatype, "data": list(column.values)}
            | ({"parameters": {"content_type": "str"}} if column.datatype == "BYTES" else {})
            for column in columns
        ]
        return {"parameters": {"content_type": "pd"}, "inputs": inputs}

    def _read(self, body: Any) -> np.ndarray:
        """Return the output whose name contains "prob" if there is one, and otherwise the first output."""
        outputs = body["outputs"]
        if not outputs:
            raise ValueError("the answer has no outputs")
        chosen = next((part for part in outputs if "prob" in str(part.get("name", "")).lower()), outputs[0])
        values = _array(chosen["data"])
        if str(chosen.get("datatype", "")).startswith(("FP", "BF")):
            values = values.astype(np.float64)  # JSON may write 3.0 as 3
        shape = [int(size) for size in chosen["shape"]]
        if int(np.prod(shape)) != values.size:
            raise ValueError(f"shape {shape} does not fit {values.size} values")
        return values.reshape(shape)


def _objects(body: Any, key: str) -> list[dict[str, Any]]:
    """Return the objects in a list of a JSON object; what is not a list of objects has none."""
    parts = body.get(key) if isinstance(body, dict) else None
    return [part for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []


def _output_names(body: Any) -> list[Any]:
    return [part.get("name") for part in _objects(body, "outputs")]


def _class_names(output: dict[str, Any]) -> list[str] | None:
    """Return the class names in an output's metadata: different texts, one per column of its declared shape."""
    shape = output.get("shape")
    n_columns = shape[1] if isinstance(shape, list) and len(shape) == 2 else None
    parts = [part for part in (output.get("parameters"), output.get("tags")) if isinstance(part, dict)]
    for names in (part.get(key) for part in parts for key in _CLASS_NAMES):
        if not isinstance(names, list) or not all(isinstance(name, str) and name for name in names):
            continue
        if len(names) == len(set(names)) == n_columns and n_columns > 1:
            return names
    return None


def _column(rows: InputRows, position: int, name: str | None = None, kind: str = "") -> _Column:
    """Return a column in the protocol's type ``kind``, or in the type of its values if ``kind`` is empty."""
    if name is None:
        name = rows.names[position] if rows.names is not None else f"x{position}"
    if not kind:
        values = rows.values(position)
        has_texts = values.dtype.kind not in "iubf" and any(isinstance(value, str) for value in values.tolist())
        kind = "BYTES" if has_texts else _DATATYPES.get(values.dtype.kind, "FP64")
    if kind == "BYTES":
        pairs = zip(rows.texts(position), rows.values(position).tolist(), strict=True)
        return _Column(name, kind, [None if is_missing(value) else text for text, value in pairs])
    if kind == "BOOL" or kind.removeprefix("U").startswith("INT"):
        numbers = rows.integers(position)
        return _Column(name, kind, (numbers.astype(bool) if kind == "BOOL" else numbers).tolist())
    numbers = rows.numbers(position)
    if np.isinf(numbers).any():
        raise ModelInputError(
            f"Column {name!r} holds an infinite number, but JSON can represent only finite numbers."
        )
    return _Column(name, kind, [None if value != value else value for value in numbers.tolist()])  # noqa: PLR0124


def _array(values: Any) -> np.ndarray:
    """Return integers and booleans as they are, texts as objects, and other numbers as float64."""
    array = np.array(values)
    if array.dtype.kind in "iub":
        return array
    if array.dtype.kind == "U":
        if any(not isinstance(value, str) for value in values):
            raise ValueError("the answer mixes texts and numbers")
        return array.astype(object)
    return array.astype(np.float64)  # None becomes NaN, which `HttpModel` refuses


# ---- addresses and credentials


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
        url = httpx.URL(address)
        url.host.encode("idna")  # fails here as it would when a connection is opened
        is_valid = url.scheme in ("http", "https") and url.host and (url.port is None or 0 < url.port < 65536)
    except (ValueError, httpx.InvalidURL):
        is_valid = False
    if not is_valid or re.search(r"[\s\0]", address):
        raise ModelFileError(f"{redact_address(address)!r} is not a valid address. Type http(s)://host/path.")
    if url.userinfo:
        raise ModelFileError(
            f"The address of {redact_address(address)} holds a user or password, which would appear in shell "
            "histories and logs. Leave them out and set ANCHORLINE_HTTP_TOKEN, or ANCHORLINE_HTTP_USER and "
            "ANCHORLINE_HTTP_PASSWORD."
        )
    is_local = url.host in ("localhost", "::1") or url.host.startswith("127.")
    if url.scheme == "http" and not is_local and _credentials():
        _log.warning("credentials are sent to %s unencrypted; use https", redact_address(address))
    return address.partition("#")[0]


def _credentials() -> dict[str, str]:
    """Return the Authorization header, read from the environment; empty if no credentials are set."""
    token, user = _variable("ANCHORLINE_HTTP_TOKEN"), _variable("ANCHORLINE_HTTP_USER")
    if token:
        return {"Authorization": f"Bearer {token}"}
    pair = f"{user}:{_variable('ANCHORLINE_HTTP_PASSWORD')}".encode()
    return {"Authorization": f"Basic {base64.b64encode(pair).decode()}"} if user else {}


def _variable(name: str) -> str:
    value = os.environ.get(name, "").strip()
    if not re.fullmatch(r"[!-~]*", value):  # the message must not quote the value
        raise ParameterError(
            f"The environment variable {name} contains a blank or a non-ASCII character. It must contain only "
            "printable ASCII characters."
        )
    return value


def _redact_record(record: logging.LogRecord) -> bool:
    if isinstance(record.args, tuple):
        # Every address, because a protocol sends requests to several addresses below the one that was typed.
        record.args = tuple(redact_address(str(part)) if "://" in str(part) else part for part in record.args)
    return True
