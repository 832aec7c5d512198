"""Requests and answers of two HTTP protocols: the Open Inference Protocol v2, and MLflow's invocations."""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import numpy as np

from anchorline.errors import ModelInputError
from anchorline.model.loaders.rows import InputRows, is_missing, list_names

_LABELS = "predict"  # the output of MLServer if a request names none
_PROBABILITIES = "predict_proba"  # the output that MLServer computes only if a request names it
_CLASS_NAMES = ("class_names", "classes", "labels")  # members of an output's parameters or tags
_INTEGERS = ("INT8", "INT16", "INT32", "INT64", "UINT8", "UINT16", "UINT32", "UINT64")


@dataclass(frozen=True, slots=True)
class Column:
    """One column that is ready to be sent: its values as JSON values, with None for missing ones."""

    name: str
    datatype: str
    values: Sequence[Any]


class Mlflow:
    """``POST .../invocations`` with ``dataframe_split``; the answer is ``{"predictions": [...]}``.

    Scores may come as one JSON object per row, with one score per label. JSON objects have no order, so the
    columns of the answer are in the order of the sorted ``labels``.
    """

    def __init__(self, address: str) -> None:
        self.address = address
        self.labels: list[str] | None = None

    def table(self, rows: InputRows) -> list[Column]:
        """Return all columns."""
        return [_column(rows, position) for position in range(rows.n_columns)]

    def request(self, table: list[Column], start: int, stop: int) -> dict[str, Any]:
        """Return the request for the rows from ``start`` up to ``stop``."""
        parts = [column.values[start:stop] for column in table]
        split = {
            "columns": [column.name for column in table],
            "data": [list(row) for row in zip(*parts, strict=True)],
        }
        return {"dataframe_split": split}

    def settle(self, content: bytes, try_again: Callable[[dict[str, Any]], bytes | None]) -> bytes:
        """Return the content of an answer: an MLflow server has only one output."""
        return content

    def answer(self, body: Any) -> np.ndarray:
        """Return the numbers, labels or scores in an answer; store the labels of scores in ``labels``."""
        predictions = body.get("predictions") if isinstance(body, dict) else body
        if not isinstance(predictions, list):
            raise ValueError("the answer holds no list of predictions")
        if not predictions or not isinstance(predictions[0], dict):
            return _array(predictions)
        labels = self.labels or sorted(predictions[0])
        for row in predictions:
            if not isinstance(row, dict) or row.keys() != set(labels):
                raise ValueError(
                    f"the predictions do not all have the same labels: {list_names(labels)}, then {row!r:.60}"
                )
        scores = _array([[row[label] for label in labels] for row in predictions])
        self.labels = labels
        return _flat(scores)


class OpenInference:
    """``POST .../v2/models/NAME/infer``; the inputs are those that the server's metadata list.

    A server without metadata gets one input per column if a column holds texts, and otherwise one matrix. If the
    metadata list an output named "predict_proba", every request names it, because MLServer otherwise returns
    labels. MLServer's metadata list no outputs unless its operator declares them. If they list none and the only
    output of an answer is "predict", the caller should find out, by a request that names "predict_proba", whether
    the server has it; see `settle`. ``labels`` are the class names that the metadata state for this output.
    """

    def __init__(self, address: str, fetch: Callable[[str], Any]) -> None:
        parts = urlsplit(address)
        path = re.sub(r"/infer/?$", "", parts.path.rstrip("/"))
        self.address = urlunsplit(parts._replace(path=f"{path}/infer"))
        self._metadata_address = urlunsplit(parts._replace(path=path))
        self.labels: list[str] | None = None
        self._fetch: Callable[[str], Any] | None = fetch
        self._inputs: list[dict[str, Any]] = []
        self._wants_probabilities = self._is_settled = False

    def fetch_metadata(self) -> None:
        """Fetch the lists of the model's inputs and outputs, once: when labels or answers are first needed."""
        if self._fetch is not None:
            metadata = self._fetch(self._metadata_address)
            inputs = metadata.get("inputs") if isinstance(metadata, dict) else None
            if isinstance(inputs, list) and all(isinstance(part, dict) and "name" in part for part in inputs):
                self._inputs = inputs
            outputs = metadata.get("outputs") if isinstance(metadata, dict) else None
            for part in outputs if isinstance(outputs, list) else []:
                if isinstance(part, dict) and "name" in part:
                    self._is_settled = True
                if isinstance(part, dict) and part.get("name") == _PROBABILITIES:
                    self._wants_probabilities = True
                    self.labels = _class_names(part)
            self._fetch = None

    def settle(self, content: bytes, try_again: Callable[[dict[str, Any]], bytes | None]) -> bytes:
        """Return the content of an answer, or of another one with probabilities if the server has them.

        ``try_again`` sends a request again with the given members added, and returns None if it is refused.
        """
        if self._is_settled or _output_names(content) != [_LABELS]:
            return content
        better = try_again({"outputs": [{"name": _PROBABILITIES}]})
        self._wants_probabilities = better is not None and _output_names(better) == [_PROBABILITIES]
        self._is_settled = True
        return better if better is not None and self._wants_probabilities else content

    def table(self, rows: InputRows) -> list[Column]:
        """Return the columns that the model needs, each in the type that it needs."""
        self.fetch_metadata()
        names_it = len(self._inputs) == 1 and self._inputs[0]["name"] in (rows.names or ())
        if len(self._inputs) > 1 or names_it:
            names = [str(part["name"]) for part in self._inputs]
            positions = rows.positions(names)
            kinds = [str(part.get("datatype", "")) for part in self._inputs]
            return [_column(rows, p, n, k) for p, n, k in zip(positions, names, kinds, strict=True)]
        kind = str(self._inputs[0].get("datatype", "")) if self._inputs else ""
        return [_column(rows, position, kind=kind) for position in rows.all_positions(self._width())]

    def request(self, table: list[Column], start: int, stop: int) -> dict[str, Any]:
        """Return the request for the rows from ``start`` up to ``stop``."""
        outputs = {"outputs": [{"name": _PROBABILITIES}]} if self._wants_probabilities else {}
        return self._inputs_of(table, start, stop) | outputs

    def _inputs_of(self, table: list[Column], start: int, stop: int) -> dict[str, Any]:
        n_rows = stop - start
        kinds = {column.datatype for column in table}
        as_matrix = len(self._inputs) == 1 if self._inputs else "BYTES" not in kinds
        is_narrow = self._inputs and len(table) == 1 and table[0].name == self._inputs[0]["name"]
        if as_matrix and not is_narrow:
            values = [value for row in zip(*(c.values[start:stop] for c in table), strict=True) for value in row]
            declared = self._inputs[0] if self._inputs else {}
            name = declared.get("name", "input-0")
            kind = declared.get("datatype") or (kinds.pop() if len(kinds) == 1 else "FP64")
            return {"inputs": [{"name": name, "shape": [n_rows, len(table)], "datatype": kind, "data": values}]}
        inputs: list[dict[str, Any]] = [
            {"name": c.name, "shape": [n_rows, 1], "datatype": c.datatype, "data": list(c.values[start:stop])}
            for c in table
        ]
        for part in inputs:
            if part["datatype"] == "BYTES":
                part["parameters"] = {"content_type": "str"}
        return {"parameters": {"content_type": "pd"}, "inputs": inputs}

    def answer(self, body: Any) -> np.ndarray:
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
        return _flat(values.reshape(shape))

    def _width(self) -> int | None:
        shape = self._inputs[0].get("shape") if self._inputs else None
        if isinstance(shape, list) and len(shape) == 2 and isinstance(shape[1], int) and shape[1] > 0:
            return shape[1]
        return None


def _output_names(content: bytes) -> list[Any]:
    """Return the names of the outputs in an answer; an answer that cannot be read has none."""
    try:
        return [part["name"] for part in json.loads(content)["outputs"]]
    except (LookupError, RecursionError, TypeError, ValueError):
        return []


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


def _column(rows: InputRows, position: int, name: str | None = None, kind: str = "") -> Column:
    """Return a column in the protocol's type ``kind``, or in the type of its values if ``kind`` is empty."""
    if name is None:
        name = rows.names[position] if rows.names is not None else f"x{position}"
    values = rows.values(position)
    if not kind:
        kind = _datatype_of(values)
    if kind == "BYTES":
        texts = rows.texts(position)
        missing = [is_missing(value) for value in values.tolist()]
        return Column(name, kind, [None if m else t for t, m in zip(texts, missing, strict=True)])
    if kind in _INTEGERS:
        return Column(name, kind, rows.integers(position).tolist())
    if kind == "BOOL":
        return Column(name, kind, rows.integers(position).astype(bool).tolist())
    numbers = rows.numbers(position)
    if np.isinf(numbers).any():
        raise ModelInputError(
            f"Column {name!r} holds an infinite number, but JSON can represent only finite numbers."
        )
    return Column(name, kind, [None if value != value else value for value in numbers.tolist()])  # noqa: PLR0124


def _datatype_of(values: np.ndarray) -> str:
    if values.dtype.kind in "iu":
        return "INT64"
    if values.dtype.kind == "b":
        return "BOOL"
    if values.dtype.kind == "f":
        return "FP64"
    return "BYTES" if any(isinstance(value, str) for value in values.tolist()) else "FP64"


def _flat(answer: np.ndarray) -> np.ndarray:
    return answer[:, 0] if answer.ndim == 2 and answer.shape[1] == 1 else answer


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
