"""`load_model`: finds out which kind of model a text or path names, and calls the loader of that kind.

To add a kind, write one file with a ``load`` function and add one line to `KINDS`.
"""

import re
from collections.abc import Callable, Iterable
from importlib import import_module
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from anchorline.errors import ModelFileError, ParameterError
from anchorline.model.loaders.files import Options, read_head
from anchorline.model.loaders.http_limits import HttpLimits

_NAME = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*")

# Names, not modules: a loader is imported when its kind is first needed.
KINDS = {
    "onnx": "anchorline.model.loaders.onnx_file",
    "skops": "anchorline.model.loaders.skops_file",
    "xgboost": "anchorline.model.loaders.xgboost_file",
    "lightgbm": "anchorline.model.loaders.lightgbm_file",
    "python": "anchorline.model.loaders.python_name",
    "open-inference": "anchorline.model.loaders.http_endpoint",
    "mlflow": "anchorline.model.loaders.http_endpoint",
    "pickle": "anchorline.model.loaders.pickle_file",
}
_BY_SUFFIX = {
    ".onnx": "onnx",
    ".skops": "skops",
    ".json": "xgboost",
    ".ubj": "xgboost",
    ".txt": "lightgbm",
    ".lgb": "lightgbm",
    ".pkl": "pickle",
    ".pickle": "pickle",
    ".joblib": "pickle",
}


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
    load: Callable[[str, str, Options], Any] = import_module(KINDS[kind]).load
    return load(name, kind, Options(tuple(trust), trust_pickle, http or HttpLimits()))


def _kind_of(name: str, is_path: bool) -> str:
    if not is_path and re.match(r"https?://", name, flags=re.IGNORECASE):
        return _kind_of_address(name)
    if not is_path and _NAME.fullmatch(name):
        return "python"
    path = Path(name)
    kind = _BY_SUFFIX.get(path.suffix.lower())
    head = read_head(path)
    if _looks_pickled(head):
        return "pickle"
    if kind is None:
        kind = _kind_of_head(head)
    if kind is None:
        raise ModelFileError(
            f"The kind of the model {name!r} is unknown. It must be a file that ends in {', '.join(_BY_SUFFIX)}, "
            "a name module:function, or an address http(s)://. If you know the kind, pass kind= (--kind on the "
            "command line)."
        )
    return kind


def _kind_of_address(address: str) -> str:
    path = re.split(r"[?#]", address.partition("://")[2])[0].rstrip("/")
    if path.endswith("/invocations"):
        return "mlflow"
    if re.search(r"/v2/models/[^/]+(/versions/[^/]+)?(/infer)?$", path):
        return "open-inference"
    raise ModelFileError(
        "The address ends neither in /invocations nor in /v2/models/NAME/infer. Pass kind='mlflow' or "
        "kind='open-inference' (--kind on the command line)."
    )


def _looks_pickled(head: bytes) -> bool:
    """Return whether the file begins like a pickle of protocol 2 or later, whatever its name is."""
    return head[0] == 0x80 and head[1:2] in (b"\x02", b"\x03", b"\x04", b"\x05")


def _kind_of_head(head: bytes) -> str | None:
    if head.startswith(b"PK\x03\x04"):
        return "skops"
    if head.startswith((b"tree\n", b"tree\r\n")):
        return "lightgbm"
    if re.match(rb"\{\s*(\"learner\"|L.{8}learner)", head, flags=re.DOTALL):
        return "xgboost"
    return None
