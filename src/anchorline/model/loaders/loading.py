"""Which kind of model a text or path names, and who loads it. A new kind: one file and one line here."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import import_module
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from anchorline.errors import ModelFileError, ParameterError
from anchorline.model.loaders.http_limits import HttpLimits

_NAME = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*")
_HEAD_BYTES = 512


@dataclass(frozen=True, slots=True)
class Options:
    """What the caller allows: types of a skops file, pickles, and the limits of an HTTP model."""

    trust: tuple[str, ...]
    trust_pickle: bool
    http: HttpLimits


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

    Callables answer n numbers or labels, or (n, c) class scores with the labels in ``classes_`` where they
    are known. Files are told apart by their extension and their first bytes, never by unpickling them.

    Parameters
    ----------
    spec
        A file (.onnx, .skops, .json or .ubj of XGBoost, .txt of LightGBM), ``"package.module:function"``, or
        an address ``http(s)://...`` that ends in ``/v2/models/NAME/infer`` or ``/invocations``. A text with a
        colon and without a slash is a module's name; write ``./a:b`` for a file called so.
    kind
        One of `KINDS`, where the name does not tell.
    trust
        Types that a skops file may make besides those shipped, as ``"module.Type"``.
    trust_pickle
        Load pickle and joblib files: whoever made such a file runs code on this machine.
    http
        Limits of an HTTP model; see `HttpLimits`. Its credentials come from the environment alone.

    Examples
    --------
    >>> load_model("math:hypot")(3.0, 4.0)
    5.0
    """
    if isinstance(trust, str):
        raise ParameterError(f"trust is the text {trust!r}; needed several names. Type trust=[{trust!r}].")
    if kind is not None and kind not in KINDS:
        raise ParameterError(f"kind is {kind!r}; needed one of {', '.join(map(repr, KINDS))}, or None.")
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
            f"{name!r} is no model that is known by its name: needed {', '.join(_BY_SUFFIX)}, module:function or "
            "http(s)://. If you know what it is, pass kind= (--kind on the command line)."
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


def read_head(path: Path) -> bytes:
    """The first bytes of a model file, or a `ModelFileError` that says why there are none."""
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD_BYTES)
    except IsADirectoryError:
        raise ModelFileError(f"{str(path)!r} is a folder; needed a model file.") from None
    except (OSError, ValueError) as error:  # ValueError: a null character in the name
        reason = getattr(error, "strerror", None) or error
        raise ModelFileError(f"The model {str(path)!r} cannot be read: {reason}.") from error
    if not head:
        raise ModelFileError(f"The model {str(path)!r} is empty.")
    return head


def read_whole(path: Path, most_bytes: int) -> bytes:
    """All bytes of a model file, if they are not more than ``most_bytes``."""
    read_head(path)
    with path.open("rb") as file:
        content = file.read(most_bytes + 1)
    if len(content) > most_bytes:
        raise ModelFileError(f"The model {str(path)!r} has more than {most_bytes:,} bytes.")
    return content


def _looks_pickled(head: bytes) -> bool:
    """Whether these are the first bytes of a pickle of protocol 2 or later, whatever the name says."""
    return head[0] == 0x80 and head[1:2] in (b"\x02", b"\x03", b"\x04", b"\x05")


def _kind_of_head(head: bytes) -> str | None:
    if head.startswith(b"PK\x03\x04"):
        return "skops"
    if head.startswith((b"tree\n", b"tree\r\n")):
        return "lightgbm"
    if re.match(rb"\{\s*(\"learner\"|L.{8}learner)", head, flags=re.DOTALL):
        return "xgboost"
    return None
