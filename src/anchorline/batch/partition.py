"""The one function of all engines: a frame of rows in, a frame of explanations out."""

import contextlib
import hashlib
import io
import pickle
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, BinaryIO, ClassVar, Unpack

import numpy as np

from anchorline.batch.blas import one_blas_thread
from anchorline.batch.sharing import share_calls
from anchorline.errors import ParameterError, UnpackableError
from anchorline.explainer import Explainer, Ranges
from anchorline.model.exits import contain_exits
from anchorline.result.explanations import COLUMNS, Record, content_key, failed_record, frame_of, record_of
from anchorline.settings import Keywords, Settings
from anchorline.spaces.columns import kind_of, level_of, row_values, to_narwhals

TAKEN = frozenset({"row", *COLUMNS})  # names of the answer, in a file too
_VALUES_AT_ONCE = 50_000  # read of a frame, a few megabytes
SHARED_ROWS = 16  # whose queries go to the model together, where asked for


@dataclass(frozen=True)
class Work:
    """What is done to every row: an explainer, the settings, and what was learned before the rows were spread.

    ``share`` is the number of rows whose queries go to the model together; 1: every row asks alone.
    """

    explainer: Explainer
    settings: Settings = field(default_factory=Settings)
    share: int = 1

    @classmethod
    def from_keywords(
        cls, explainer: Explainer, *, share_calls: bool = False, **keywords: Unpack[Keywords]
    ) -> "Work":
        """The work that these keywords ask for."""
        return cls(explainer, Settings.from_keywords(**keywords), SHARED_ROWS if share_calls else 1)

    def record(self, row: Any) -> Record:
        """Explain one row; whatever goes wrong becomes part of the record, and the next row goes on."""
        return _record(self.explainer, self.settings, row)

    def records(self, rows: Sequence[Any]) -> list[Record]:
        """Explain rows, in order."""
        if self.share == 1:
            return [self.record(row) for row in rows]
        return share_calls(self.explainer, lambda one, row: _record(one, self.settings, row), rows, self.share)

    def with_ranges(self) -> "Work":
        """The same, knowing the range of the model's outputs, so that no worker has to ask for it again."""
        learn_ranges(self.explainer)
        return self


def _record(explainer: Explainer, settings: Settings, row: Any) -> Record:
    try:
        with contain_exits():
            return record_of(explainer.explain_with(row, settings))
    except Exception as error:
        return failed_record(key_of(explainer, row), type(error).__name__, str(error))


def key_of(explainer: Explainer, row: Any) -> str:
    """The row's identity where it has no explanation: by the space's reading of it, else by its texts."""
    try:
        return content_key(explainer.space.at(row).instance)
    except Exception:  # it cannot be read: that is why it failed
        names = getattr(explainer.space, "names", None)
        if isinstance(row, Mapping):
            row = [row.get(name) for name in names] if names else list(row.values())
        values = row if isinstance(row, Sequence | np.ndarray) and not isinstance(row, str) else [row]
        return content_key(["unreadable", *map(_told, values)])


def _told(value: Any) -> str | None:
    """A value that may be of no use, told alike of every library: None is NaN, 1 is 1.0."""
    kind = kind_of(value)
    with contextlib.suppress(Exception):  # of another kind, or too large
        return None if kind is None else level_of(value, kind)
    return str(value)


def learn_ranges(explainer: Explainer) -> Ranges:
    """The range of every output the model has, asked on the training table; None where none is needed."""
    if explainer.output_range is None and hasattr(explainer.space, "examples"):
        with contextlib.suppress(Exception), contain_exits():  # every row will tell, each as its own error
            explainer.prepare(0, Settings())
    return explainer.learned_ranges


def packed(work: Work) -> bytes:
    """The work as bytes, functions typed at a prompt included; `UnpackableError` where that cannot be."""
    try:
        import cloudpickle  # noqa: PLC0415  comes with joblib
    except ImportError:  # joblib before 1.6 had it inside
        from joblib.externals import cloudpickle  # noqa: PLC0415
    try:
        packed: bytes = cloudpickle.dumps(work)
    except Exception as error:
        told = f"{type(error).__name__}: {error}"
        raise UnpackableError(f"The model cannot be packed for another process ({told}).") from error
    return packed


def unpacked(file: BinaryIO) -> Work:
    """The work that was packed, elsewhere; `UnpackableError` where that cannot be."""
    try:
        work: Work = pickle.load(file)
    except Exception as error:
        told = f"{type(error).__name__}: {error}"
        raise UnpackableError(f"The model cannot be unpacked in another process ({told}).") from error
    return work


class PackedWork:
    """Work as bytes, to be sent anywhere and unpacked once a process, however many frames it meets there."""

    _opened: ClassVar[dict[bytes, Work]] = {}

    def __init__(self, work: Work) -> None:
        self._content = packed(work)
        self._digest = hashlib.sha256(self._content).digest()

    def explain(self, frame: Any, id: str | None = None) -> Any:
        """`explain_partition`, with the work inside."""
        return explain_partition(frame, self.open(), id)

    def open(self) -> Work:
        """The work; `UnpackableError` where it cannot be unpacked here."""
        if self._digest not in self._opened:
            self._opened.clear()  # one is enough, and models are large
            self._opened[self._digest] = unpacked(io.BytesIO(self._content))
        return self._opened[self._digest]


def explain_partition(frame: Any, work: Work, id: str | None = None) -> Any:
    """Explain every row of a frame; a frame of the same library, with the column ``id`` and `COLUMNS`.

    A row that fails has its error in the columns ``error_type`` and ``error``. Without ``id`` a row is known
    by ``key``, a digest of its values.

    Examples
    --------
    >>> import anchorline as al, polars as pl
    >>> train = pl.DataFrame({"age": [25, 31, 47, 52], "name": ["a", "b", "c", "d"]})
    >>> explainer = al.Explainer(lambda f: f["age"].to_numpy() / 100, al.Table(train.select("age")))
    >>> explain_partition(train[:2], Work(explainer), id="name").select("name", "prediction").rows()
    [('a', 0.25), ('b', 0.31)]
    """
    import narwhals as nw  # noqa: PLC0415  heavy

    given = to_narwhals(frame, ParameterError, eager_only=True)
    if not isinstance(given, nw.DataFrame):
        raise ParameterError(f"Got a {type(frame).__name__}; needed a frame. Type explainer.explain_many(rows).")
    check_id(id, given.columns)
    by_name = hasattr(work.explainer.space, "names")  # else by position, where an id would be taken for a value
    rows = rows_of(frame if by_name or id is None else given.drop(id).to_native(), work.explainer)
    with one_blas_thread():
        records = work.records(rows.take(0, len(rows)))
    found = nw.from_native(frame_of(records, [], given.implementation), eager_only=True)
    native = found.to_native()
    if hasattr(native, "insert") and hasattr(native, "index"):  # pandas knows rows by their index: it is kept
        taken = {*TAKEN, id}  # an index of such a name could not be written beside them
        native.index = frame.index.set_names([None if name in taken else name for name in frame.index.names])
        if id is not None:
            native.insert(0, id, frame[id])
        return native
    return native if id is None else found.with_columns(given[id]).select(id, *COLUMNS).to_native()


def check_id(id: str | None, columns: Sequence[str]) -> None:
    """Refuse an ``id`` that is no column of the frame, or could be taken for one of the answer."""
    if id is None:
        return
    if id not in columns:
        raise ParameterError(f"id is {id!r}; the frame has {', '.join(map(repr, columns))}.")
    if id in TAKEN:
        raise ParameterError(f"id is {id!r}, the name of a column of the answer. Rename yours.")


def wrong_frame(frame: Any, needed: str, make: str) -> ParameterError:
    """The error for an engine that was given something else."""
    kind = type(frame)
    return ParameterError(
        f"Got a {kind.__module__.partition('.')[0]} {kind.__name__}; needed {needed}. Type {make}, or, on this "
        "machine alone, explainer.explain_many(frame)."
    )


class FrameRows:
    """Rows of a frame or array or list, some at a time, as the space reads them.

    More are read than are asked for: reading a column takes as long for one value as for a thousand.
    """

    def __init__(self, frame: Any, by_name: bool) -> None:
        self._frame, self._by_name = frame, by_name
        self._first, self._read = 0, list[Any]()

    def __len__(self) -> int:
        return len(self._frame)

    def take(self, start: int, stop: int) -> list[Any]:
        """The rows from ``start`` to ``stop``."""
        stop = min(stop, len(self))
        if not self._first <= start <= stop <= self._first + len(self._read):
            n_columns = self._frame.shape[1] if hasattr(self._frame, "shape") else 1
            more = start + _VALUES_AT_ONCE // max(1, n_columns)
            self._first, self._read = start, self._rows(start, max(stop, more))
        return self._read[start - self._first : stop - self._first]

    def _rows(self, start: int, stop: int) -> list[Any]:
        part = self._frame[start:stop]
        if isinstance(part, np.ndarray | list | tuple):
            return list(part)
        columns = {str(column.name): row_values(column) for column in part.iter_columns()}  # names may be numbers
        if self._by_name:
            return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
        return [list(values) for values in zip(*columns.values(), strict=True)]


def rows_of(frame: Any, explainer: Explainer) -> FrameRows:
    """The rows of a pandas, Polars or Arrow frame, a 2-D array or a list of rows."""
    by_name = hasattr(explainer.space, "names")
    if isinstance(frame, np.ndarray):
        if frame.ndim != 2:
            raise ParameterError(f"The array has shape {frame.shape}; needed (n, d). For one row: `explain`.")
        return FrameRows(frame, by_name)
    if isinstance(frame, list | tuple):
        return FrameRows(frame, by_name)
    import narwhals as nw  # noqa: PLC0415  heavy

    table = to_narwhals(frame, ParameterError)
    if isinstance(table, nw.LazyFrame):
        raise ParameterError(
            f"Got a lazy {type(frame).__name__}. Collect it, or see anchorline.batch.dask, .ray and .spark."
        )
    if not isinstance(table, nw.DataFrame):
        raise ParameterError(
            f"Got a {type(frame).__name__}; needed a pandas, Polars or Arrow frame, a 2-D array or a list of rows."
        )
    return FrameRows(table, by_name)
