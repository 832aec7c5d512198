"""`AnswerCache`: a model's answers kept in a file, so that the same question is never asked twice.

An answer is found again by the model, by what is asked of it, and by the content of all inputs of the call. So an
explanation has the same bytes with and without a cache, even if a model's last bits depend on the batch. The file
is an SQLite database in write-ahead mode: several processes may use it at once, and what was stored survives a
crash. It contains numbers and labels only, never code.
"""

import contextlib
import datetime
import decimal
import hashlib
import io
import json
import os
import pickle
import sqlite3
import sys
import sysconfig
import threading
import types
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from anchorline.errors import CacheError, ParameterError
from anchorline.model.answers import NamedScores, read_answer
from anchorline.model.outputs import Asking, Target, method_of, owner_of, scores_only, tells_labels_later

_APPLICATION_ID = 0x416E4C43  # "AnLC", by which the file is known to be ours
_WAIT_SECONDS = 60.0  # for other processes that write
_PLAIN = (str, bytes, int, float, complex, bool, type(None), decimal.Decimal, np.generic)
_TIMES = (datetime.date, datetime.time, datetime.timedelta)
_TABLE = (
    "CREATE TABLE IF NOT EXISTS answers "
    "(key BLOB PRIMARY KEY, dtype TEXT, shape TEXT, content BLOB, digest BLOB) WITHOUT ROWID"
)


class AnswerCache:
    """A file of answers.

    Parameters
    ----------
    path
        The file, which is created if it does not exist. Its folder must be on a local disk.
    key
        A name of the model, which must change whenever the model changes. Fitted estimators of installed packages
        need none, because they are recognized by their content.
    rows_per_call
        The largest number of rows in one call of the model. Every call is stored when it returns, so if the model
        fails or the process ends, only the answers of one call are lost. By default calls are not cut.

    Examples
    --------
    >>> import tempfile
    >>> import anchorline as al
    >>> path = Path(tempfile.mkdtemp()) / "answers.db"
    >>> for _ in range(2):
    ...     cache = AnswerCache(path, key="score, version 1")
    ...     explainer = al.Explainer(lambda z: 0.5 * z[:, 0], al.Hypercube(), cache=cache)
    ...     e = explainer.explain([1] * 20, queries=300)
    ...     print(e.queries.total, cache.n_asked, cache.n_found)
    300 300 0
    300 0 300
    """

    def __init__(self, path: Any, *, key: str | None = None, rows_per_call: int | None = None) -> None:
        if not (key is None or (isinstance(key, str) and key)):
            raise ParameterError(f"key is {key!r}, but it must be a text. Type key='credit model, version 3'.")
        if rows_per_call is not None and not (isinstance(rows_per_call, int) and rows_per_call >= 1):
            raise ParameterError(
                f"rows_per_call is {rows_per_call!r}, but it must be a whole number >= 1, or None. Type "
                "rows_per_call=16."
            )
        self.path, self.key, self.rows_per_call = Path(path), key, rows_per_call
        self.n_asked, self.n_found = 0, 0  # rows, in this process
        self._lock, self._process = threading.Lock(), -1
        self._connection: sqlite3.Connection | None = None
        with self._errors():
            self._open()

    @classmethod
    def of(cls, cache: Any) -> "AnswerCache | None":
        """Return a cache as it is, and a path as the cache of that file."""
        return cache if cache is None or isinstance(cache, cls) else cls(cache)

    def __del__(self) -> None:
        connection = self.__dict__.get("_connection")
        if connection is not None and self._process == os.getpid():
            connection.close()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in ("_lock", "_connection")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _lock=threading.Lock(), _connection=None, _process=-1)

    def __repr__(self) -> str:
        return f"AnswerCache({str(self.path)!r}, key={self.key!r})"

    def wrapping(self, model: Any, target: Target) -> "CachedModel":
        """Return what to call instead of ``target.ask``."""
        name = self.key if self.key is not None else fingerprint(model)
        asked = (target.task, target.input, target.rule, target.contrast, target.scale, target.classes is None)
        method = "" if owner_of(target.ask) is target.ask else method_of(target.ask)
        way = (type(target.ask).__name__, method)  # a function is known by the key, not by its name
        return CachedModel(target.ask, self, hashlib.sha256(repr((name, asked, way)).encode()).digest())

    def classes_of(self, model: Any, inputs: Any) -> list[str] | None:
        """Return the labels of a model behind an address, which may be asked about one row to learn them."""
        key = hashlib.sha256(repr((self.key, "labels")).encode()).digest()
        found = self.find(key, 0)
        if found is None:
            labels = model.classes_for(inputs)
            if not labels:  # another row may be answered
                return None
            found = np.array(labels, dtype=object)
            self.store(key, found)
        return found.tolist() or None

    def find(self, key: bytes, n_rows: int) -> np.ndarray | None:
        """Return the answer that was stored under a key, or None; raise `CacheError` if it is damaged."""
        with self._errors():
            row = self._open().execute("SELECT dtype, shape, content, digest FROM answers WHERE key = ?", (key,))
            found = row.fetchone()
        if found is None:
            return None
        dtype, shape, content, digest = found
        if _digest(dtype, shape, content) != digest:
            raise self._damaged("an answer in it was changed")
        self.n_found += n_rows
        return _unpacked(dtype, shape, content)

    def store(self, key: bytes, answer: np.ndarray) -> None:
        """Store an answer, unless another process has stored it meanwhile."""
        packed = _packed(answer)
        if packed is not None:
            with self._errors():
                self._open().execute(
                    "INSERT OR IGNORE INTO answers VALUES (?, ?, ?, ?, ?)", (key, *packed, _digest(*packed))
                )

    def _open(self) -> sqlite3.Connection:
        """Return this process's connection; a connection must not be shared with a forked process."""
        if self._connection is None or self._process != os.getpid():
            connection = sqlite3.connect(
                self.path, timeout=_WAIT_SECONDS, isolation_level=None, check_same_thread=False
            )
            try:
                self._prepare(connection)
            except BaseException:
                connection.close()
                raise
            self._connection, self._process = connection, os.getpid()
        return self._connection

    def _prepare(self, connection: sqlite3.Connection) -> None:
        """Make the table of answers, unless the file is the database of another program."""
        # In this order: another process may be creating the file, and it sets the owner before the table.
        n_tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        owner = connection.execute("PRAGMA application_id").fetchone()[0]
        if owner != _APPLICATION_ID and n_tables:
            raise CacheError(
                f"{str(self.path)!r} is the database of another program. It was left as it is. Type the name "
                "of a file that does not exist."
            )
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
        connection.execute(_TABLE)

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        """Serialize threads, and turn errors of the database into a `CacheError`."""
        with self._lock:
            try:
                yield
            except (sqlite3.OperationalError, OSError) as error:
                raise CacheError(
                    f"The cache {str(self.path)!r} cannot be used: {error}. Its folder must exist, and allow "
                    "writing. Type another path."
                ) from error
            except sqlite3.DatabaseError as error:
                raise self._damaged(str(error)) from error

    def _damaged(self, reason: str) -> CacheError:
        return CacheError(
            f"The cache {str(self.path)!r} is damaged: {reason}. It was left as it is. Type another path, or move "
            "the file away and ask again."
        )


@dataclass(frozen=True, slots=True, eq=False)
class CachedModel(Asking):
    """A model that is asked only what the cache does not contain."""

    cache: AnswerCache
    prefix: bytes

    def __call__(self, inputs: Any) -> Any:
        """Return the answers to some rows, in calls of at most ``rows_per_call``."""
        n_rows, size = len(inputs), self.cache.rows_per_call
        if size is None or n_rows <= size:
            return self._one(inputs, n_rows)
        import narwhals as nw  # noqa: PLC0415  heavy

        rows = nw.from_native(inputs, eager_only=True, pass_through=True)
        parts = [nw.to_native(rows[k : k + size], pass_through=True) for k in range(0, n_rows, size)]
        return np.concatenate([np.asarray(self._one(part, len(part))) for part in parts])

    def scores_only(self) -> "CachedModel":
        """Return what answers scores alone, which are other answers than those to both questions."""
        return CachedModel(scores_only(self.ask), self.cache, self.prefix + b"scores")

    def _one(self, inputs: Any, n_rows: int) -> Any:
        key = digest_inputs(self.prefix, inputs)
        found = self.cache.find(key, n_rows)
        if found is not None:
            return found
        answer = self.ask(inputs)
        self.cache.n_asked += n_rows
        read = read_answer(answer)
        array = answer = read.values if isinstance(read, NamedScores) else read  # a stored answer has no names
        if array.shape[:1] == (n_rows,):  # otherwise the predictor raises an error about it
            self.cache.store(key, array)
        return answer


def _packed(answer: np.ndarray) -> tuple[str, str, bytes] | None:
    """Return type, shape and bytes of numbers, or texts as JSON; None if the answer is neither or not finite."""
    shape = json.dumps(answer.shape)
    if answer.dtype.kind in "iub" or (answer.dtype.kind == "f" and np.isfinite(answer).all()):
        return answer.dtype.str, shape, np.ascontiguousarray(answer).tobytes()
    items = answer.ravel().tolist() if answer.dtype.kind in "UO" else [None]
    if all(isinstance(item, str) for item in items):
        return "text" if answer.dtype.kind == "O" else "unicode", shape, json.dumps(items).encode()
    return None


def _unpacked(dtype: str, shape: str, content: bytes) -> np.ndarray:
    size = json.loads(shape)
    if dtype in ("text", "unicode"):
        items = json.loads(content)
        return np.array(items, dtype=object if dtype == "text" else np.str_).reshape(size)
    return np.frombuffer(content, dtype=np.dtype(dtype)).reshape(size).copy()


def _digest(dtype: str, shape: str, content: bytes) -> bytes:
    return hashlib.sha256(f"{dtype} {shape} ".encode() + content).digest()


def fingerprint(model: Any) -> str:
    """Return the SHA-256 of a fitted estimator's content, with the versions of the packages that it comes from.

    Code of your own may change while the content stays the same, and so may a model behind an address. Such models
    are refused, because only a name can tell one version of them from the next. Two copies of an estimator may
    differ in their content, for example if one was loaded from a file; then the answers are asked again.
    """
    if tells_labels_later(model):
        raise _needs_key("it is behind an address, where it can be replaced")
    try:
        pickled = _Pickler(pickle.loads(_Pickler(model).content))
    except CacheError:
        raise
    except Exception as error:
        raise _needs_key(f"its content cannot be read ({type(error).__name__})") from error
    tops = sorted({name.partition(".")[0] for name in pickled.modules})
    versions = [(name, str(getattr(sys.modules.get(name), "__version__", ""))) for name in tops]
    return hashlib.sha256(repr((sys.version_info[:2], versions)).encode() + pickled.content).hexdigest()


def _needs_key(reason: str) -> CacheError:
    return CacheError(
        f"The model cannot be recognized in a later run: {reason}. Type cache=AnswerCache(path, key='name and "
        "version of the model'), and change the key whenever the model changes."
    )


class _Pickler(pickle.Pickler):
    """Pickles what consists of values and of code of installed packages, and notes the modules of the code."""

    def __init__(self, value: Any) -> None:
        self._file, self.modules = io.BytesIO(), set[str]()
        super().__init__(self._file, protocol=4)
        self.dump(value)
        self.content = self._file.getvalue()

    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, type | types.FunctionType):
            module = sys.modules.get(value.__module__)  # built in, or a file in a folder of installed packages?
            file = getattr(module, "__file__", None)
            places = [Path(sysconfig.get_path(each)).resolve() for each in ("stdlib", "purelib", "platlib")]
            is_installed = file is None or not {*places}.isdisjoint(Path(file).resolve().parents)
            if module is None or value.__module__ == "__main__" or not is_installed:
                raise _needs_key(f"it contains code of {value.__module__!r}, which may change")
            self.modules.add(value.__module__)
        if isinstance(value, np.ndarray) and value.dtype.names:  # between the fields of trees' nodes lies anything
            clean = np.zeros(value.shape, value.dtype)
            for name in value.dtype.names:
                clean[name] = value[name]
            return clean.__reduce_ex__(4)
        return NotImplemented


def digest_inputs(prefix: bytes, inputs: Any) -> bytes:
    """Return the SHA-256 of model inputs: an array, a frame of any library, or a list of texts or other values."""
    digest = hashlib.sha256(prefix)
    _add(digest, inputs)
    return digest.digest()


def _add(digest: Any, value: Any) -> None:
    if isinstance(value, np.ndarray):
        digest.update(f"array {value.dtype.str} {value.shape};".encode())
        if value.dtype.kind == "O":
            _add(digest, value.ravel().tolist())
        else:
            digest.update(np.ascontiguousarray(value).tobytes())
    elif isinstance(value, list | tuple):
        digest.update(f"{type(value).__name__} {len(value)};".encode())
        for item in value:
            _add(digest, item)
    elif isinstance(value, Mapping):
        _add(digest, [*value.keys(), *value.values()])
    elif isinstance(value, (*_PLAIN, *_TIMES)) or repr(value) in ("<NA>", "NaT"):
        text = repr(value).encode("utf-8", "surrogatepass")
        digest.update(f"{type(value).__name__} {len(text)};".encode() + text)
    else:
        _add_frame(digest, value)


def _add_frame(digest: Any, value: Any) -> None:
    import narwhals as nw  # noqa: PLC0415  heavy

    frame = nw.from_native(value, eager_only=True, pass_through=True)
    if not isinstance(frame, nw.DataFrame):
        raise CacheError(
            f"Inputs of type {type(value).__name__} cannot be recognized in a later run. Caches are for arrays, "
            "frames, and lists of texts or numbers. Leave out cache."
        )
    digest.update(f"frame {type(value).__module__} {frame.shape};".encode())
    for name in frame.columns:
        column = frame[name]
        is_plain = column.dtype.is_numeric() and not column.is_null().any()
        _add(digest, [str(name), str(column.dtype)])
        _add(digest, column.to_numpy() if is_plain else column.to_list())
