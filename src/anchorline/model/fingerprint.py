"""Digests by which a model and its inputs are recognized, also in another process."""

import datetime
import decimal
import hashlib
import io
import pickle
import sys
import sysconfig
import types
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from anchorline.errors import CacheError

_PLAIN = (str, bytes, int, float, complex, bool, type(None), decimal.Decimal, np.generic)
_TIMES = (datetime.date, datetime.time, datetime.timedelta)


def fingerprint(model: Any) -> str:
    """Return the SHA-256 of a fitted estimator's content, with the versions of the packages that it comes from.

    Code of your own may change while the content stays the same, and so may a model behind an address. Such models
    are refused, because only a name can tell one version of them from the next. Two copies of an estimator may
    differ in their content, for example if one was loaded from a file; then the answers are asked again.
    """
    if hasattr(model, "classes_for"):  # a model behind an address
        raise _needs_key("it is behind an address, where it can be replaced")
    try:
        content = _pickled(pickle.loads(_pickled(model).getvalue()))
    except CacheError:
        raise
    except Exception as error:
        raise _needs_key(f"its content cannot be read ({type(error).__name__})") from error
    tops = sorted({name.partition(".")[0] for name in content.modules})
    versions = [(name, str(getattr(sys.modules.get(name), "__version__", ""))) for name in tops]
    return hashlib.sha256(repr((sys.version_info[:2], versions)).encode() + content.getvalue()).hexdigest()


def _needs_key(reason: str) -> CacheError:
    return CacheError(
        f"The model cannot be recognized in a later run: {reason}. Type cache=AnswerCache(path, key='name and "
        "version of the model'), and change the key whenever the model changes."
    )


class _Content(io.BytesIO):
    """Pickled bytes, and the modules that they refer to."""

    def __init__(self) -> None:
        super().__init__()
        self.modules: set[str] = set()


class _Pickler(pickle.Pickler):
    """Pickles what consists of values and of code of installed packages."""

    def __init__(self, content: _Content) -> None:
        super().__init__(content, protocol=4)
        self._content = content

    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, type | types.FunctionType):
            if not _is_installed(value.__module__):
                raise _needs_key(f"it contains code of {value.__module__!r}, which may change")
            self._content.modules.add(value.__module__)
        return NotImplemented


def _pickled(value: Any) -> _Content:
    content = _Content()
    _Pickler(content).dump(value)
    return content


def _is_installed(name: str) -> bool:
    """Whether a module is built in, or a file in a folder of installed packages."""
    file = getattr(sys.modules.get(name), "__file__", None)
    if name == "__main__" or name not in sys.modules:
        return False
    places = [Path(sysconfig.get_path(place)).resolve() for place in ("stdlib", "purelib", "platlib")]
    return file is None or any(place in Path(file).resolve().parents for place in places)


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
        _add(digest, [str(name), str(column.dtype)])
        _add(
            digest,
            column.to_numpy() if column.dtype.is_numeric() and not column.is_null().any() else column.to_list(),
        )
