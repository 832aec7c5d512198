"""Pickle and joblib files, which run code: loaded only if the caller trusts their author."""

import logging
from pathlib import Path
from typing import Any

from anchorline.errors import ModelFileError, UntrustedError
from anchorline.model.loaders.files import Options

_log = logging.getLogger(__name__)


def load(name: str, kind: str, options: Options) -> Any:
    """Log a warning and unpickle the file if ``trust_pickle`` is true; raise before reading it otherwise."""
    if not options.trust_pickle:
        raise UntrustedError(
            f"{name!r} is a pickle, and loading a pickle runs whatever code its author put into it. Save the "
            "model as .skops or .onnx instead. If you trust the author, pass trust_pickle=True (--trust-pickle)."
        )
    _log.warning("loading the pickle %r runs the code in it, because trust_pickle is true", name)
    import joblib  # noqa: PLC0415  heavy; it reads plain pickles too

    try:
        model = joblib.load(Path(name))
    except Exception as error:
        raise ModelFileError(f"Unpickling {name!r} raised {type(error).__name__}: {error}") from error
    if not (callable(model) or hasattr(model, "predict")):
        raise ModelFileError(
            f"{name!r} holds an object of type {type(model).__name__}; it must hold a model with `predict`."
        )
    return model
