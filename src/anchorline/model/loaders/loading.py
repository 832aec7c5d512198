"""`load_model`: finds out which kind of model a text or path names, and loads it.

To add a kind of file, write one module with a ``load`` function and add one line to the table.
"""

import importlib
import logging
import operator
import re
from collections.abc import Iterable
from os import PathLike, fspath
from pathlib import Path
from typing import Any, NamedTuple

from anchorline.errors import (
    AnchorlineError,
    MissingDependencyError,
    ModelFileError,
    ParameterError,
    UntrustedError,
)
from anchorline.model.loaders.http_endpoint import HttpLimits, Mlflow, OpenInference

_log = logging.getLogger(__name__)
_NAME = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*")
_HEAD_BYTES = 512


class _Format(NamedTuple):
    """How models of one kind are recognized and loaded."""

    module: str  # imported when its kind is first needed
    title: str  # what the file must be
    packages: tuple[str, ...] = ()
    extra: str = ""  # which installs the packages
    suffixes: tuple[str, ...] = ()
    head: bytes = rb"(?!)"  # pattern of the first bytes of a file
    max_bytes: int = 2**31 - 1  # the size of the largest protocol buffer


_XGBOOST = rb"\{\s*(\"learner\"|L.{8}learner)"
_FORMATS = {
    "onnx": _Format("onnx_file", "an ONNX model", ("onnx", "onnxruntime"), "onnx", (".onnx",)),
    "skops": _Format(
        "skops_file", "a skops file", ("skops.io",), "skops", (".skops",), rb"PK\x03\x04", max_bytes=4 * 2**30
    ),
    "xgboost": _Format(
        "boosters", "an XGBoost model in JSON or UBJSON", ("xgboost",), "boosters", (".json", ".ubj"), _XGBOOST
    ),
    "lightgbm": _Format(
        "boosters", "a LightGBM model", ("lightgbm",), "boosters", (".txt", ".lgb"), rb"tree\r?\n"
    ),
    "python": _Format("loading", "a name"),
    "open-inference": _Format("http_endpoint", "an address", ("httpx",), "http"),
    "mlflow": _Format("http_endpoint", "an address", ("httpx",), "http"),
    "pickle": _Format(  # of protocol 2 or later
        "loading", "a pickle", suffixes=(".pkl", ".pickle", ".joblib"), head=rb"\x80[\x02-\x05]"
    ),
}
KINDS = {kind: f"anchorline.model.loaders.{each.module}" for kind, each in _FORMATS.items()}
_BY_SUFFIX = {suffix: kind for kind, each in _FORMATS.items() for suffix in each.suffixes}


def load_model(
    spec: str | PathLike[str],
    *,
    kind: str | None = None,
    trust: Iterable[str] = (),
    trust_pickle: bool = False,
    http: HttpLimits | None = None,
) -> Any:
    """Load a model that `Explainer` takes: a fitted estimator, or a callable on frames and 2-D arrays.

    A callable returns n numbers, n labels, or class scores of shape (n, c). It has the labels of the score
    columns in ``classes_`` if they are known, and None there if they are not. The kind of a file is determined
    from its extension and its first bytes; the file is never unpickled to find out.

    Parameters
    ----------
    spec
        A file (.onnx, .skops, .json or .ubj of XGBoost, .txt of LightGBM), ``"package.module:function"``, or
        an address ``http(s)://...`` that ends in ``/v2/models/NAME/infer`` or ``/invocations``. A text with a
        colon and without a slash is read as the name of a module; write ``./a:b`` for a file named ``a:b``.
    kind
        One of `KINDS`, if it cannot be determined from ``spec``.
    trust
        Types that a skops file may build in addition to the built-in list, as ``"module.Type"``.
    trust_pickle
        Whether to load pickle and joblib files. Such a file runs code of its author on this machine.
    http
        Limits of an HTTP model; see `HttpLimits`. Its credentials are read from the environment only.

    Examples
    --------
    >>> load_model("math:hypot")(3.0, 4.0)
    5.0
    """
    if isinstance(trust, str):
        raise ParameterError(
            f"trust is the text {trust!r}, but it must be a list of names. Type trust=[{trust!r}]."
        )
    if kind is not None and kind not in KINDS:
        raise ParameterError(f"kind is {kind!r}, but it must be one of {', '.join(map(repr, KINDS))}, or None.")
    name = fspath(spec)
    kind = kind or _kind_of(name, is_path=not isinstance(spec, str))
    for package in _FORMATS[kind].packages:
        try:
            importlib.import_module(package)
        except ImportError as error:
            raise MissingDependencyError.for_package(package.partition(".")[0], _FORMATS[kind].extra) from error
    if _FORMATS[kind].module == "http_endpoint":
        return (Mlflow if kind == "mlflow" else OpenInference)(name, http or HttpLimits())
    model = _imported(name) if kind == "python" else _read(name, kind, tuple(trust), trust_pickle)
    if not (callable(model) or hasattr(model, "predict")):
        raise ModelFileError(
            f"{name!r} holds an object of type {type(model).__name__}. It must be a function of rows, or an "
            "object with `predict`."
        )
    return model


def _read(name: str, kind: str, trust: tuple[str, ...], trust_pickle: bool) -> Any:
    """Load a file; whatever a library raises becomes a `ModelFileError`."""
    if kind == "pickle" and not trust_pickle:
        raise UntrustedError(
            f"{name!r} is a pickle, and loading a pickle runs whatever code its author put into it. Save the "
            "model as .skops or .onnx instead. If you trust the author, pass trust_pickle=True (--trust-pickle)."
        )
    max_bytes = _FORMATS[kind].max_bytes
    content = _read_bytes(name, _HEAD_BYTES if kind == "pickle" else max_bytes + 1)
    if len(content) > max_bytes:
        raise ModelFileError(f"The model {name!r} is too large; the limit is {max_bytes:,} bytes.")
    try:
        if kind != "pickle":
            return importlib.import_module(KINDS[kind]).load(name, kind, content, trust)
        _log.warning("loading the pickle %r runs the code in it, because trust_pickle is true", name)
        return importlib.import_module("joblib").load(Path(name))  # which reads plain pickles too
    except AnchorlineError:
        raise
    except Exception as error:
        reason = next((line.strip() for line in str(error).splitlines() if line.strip()), "no reason given")
        raise ModelFileError(
            f"{name!r} is not {_FORMATS[kind].title}, or it is damaged: {type(error).__name__}: {reason}"
        ) from error


def _imported(name: str) -> Any:
    """Import the module of ``module:function`` and return the named object; ``sys.path`` is left as it is.

    The working directory is not added to ``sys.path``, so that a module that happens to be there is not run. To
    use a module from a folder, type ``PYTHONPATH=folder`` or install the module.
    """
    module_name, _, inside = name.partition(":")
    try:
        module = importlib.import_module(module_name)
    except ImportError as error:
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise ModelFileError(f"Importing {module_name!r} failed: {error}.") from error
        raise ModelFileError(
            f"The Python path has no module {error.name!r}; the working directory is not searched. Install the "
            "module, or type PYTHONPATH=folder before the command."
        ) from error
    except Exception as error:
        raise ModelFileError(f"Importing {module_name!r} raised {type(error).__name__}: {error}") from error
    try:
        return operator.attrgetter(inside)(module)
    except AttributeError as error:
        raise ModelFileError(f"Module {module_name!r} has no {inside!r}.") from error


def _kind_of(name: str, is_path: bool) -> str:
    if not is_path and re.match(r"https?://", name, flags=re.IGNORECASE):
        path = re.split(r"[?#]", name.partition("://")[2])[0].rstrip("/")
        if path.endswith("/invocations"):
            return "mlflow"
        if re.search(r"/v2/models/[^/]+(/versions/[^/]+)?(/infer)?$", path):
            return "open-inference"
        raise ModelFileError(
            "The address ends neither in /invocations nor in /v2/models/NAME/infer. Pass kind='mlflow' or "
            "kind='open-inference' (--kind on the command line)."
        )
    if not is_path and _NAME.fullmatch(name):
        return "python"
    head = _read_bytes(name, _HEAD_BYTES)
    by_head = next((kind for kind, each in _FORMATS.items() if re.match(each.head, head, re.DOTALL)), None)
    kind = by_head if by_head == "pickle" else _BY_SUFFIX.get(Path(name).suffix.lower(), by_head)
    if kind is None:
        raise ModelFileError(
            f"The kind of the model {name!r} is unknown. It must be a file that ends in {', '.join(_BY_SUFFIX)}, "
            "a name module:function, or an address http(s)://. If you know the kind, pass kind= (--kind on the "
            "command line)."
        )
    return kind


def _read_bytes(name: str, most: int) -> bytes:
    """Return the first bytes of a model file; raise `ModelFileError` if it is unreadable or empty."""
    try:
        with Path(name).open("rb") as file:
            content = file.read(most)
    except IsADirectoryError:
        raise ModelFileError(f"{name!r} is a folder. Type the name of a model file.") from None
    except (OSError, ValueError) as error:  # ValueError if the name holds a null character
        reason = getattr(error, "strerror", None) or error
        raise ModelFileError(f"The model {name!r} cannot be read: {reason}.") from error
    if not content:
        raise ModelFileError(f"The model {name!r} is empty.")
    return content
