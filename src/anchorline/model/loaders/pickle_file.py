"""Pickle and joblib files: they run code, so only for those who say that they trust them."""

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anchorline.errors import MissingDependencyError, ModelFileError, UntrustedError

if TYPE_CHECKING:
    from anchorline.model.loaders.loading import Options

_log = logging.getLogger(__name__)


def load(name: str, kind: str, options: "Options") -> Any:
    """Unpickle, if ``trust_pickle`` was said, and warn; not a byte of it is run otherwise."""
    if not options.trust_pickle:
        raise UntrustedError(
            f"{name!r} is a pickle: loading it runs whatever code its maker put in. Save the model as .skops or "
            ".onnx instead; or, if you trust whoever made it, pass trust_pickle=True (--trust-pickle)."
        )
    _log.warning("loading the pickle %r runs the code in it; you said that you trust its maker", name)
    try:
        import joblib  # noqa: PLC0415  scikit-learn brings it; reads plain pickles, too
    except ImportError as error:
        raise MissingDependencyError.for_package("joblib", "bench") from error
    try:
        model = joblib.load(Path(name))
    except Exception as error:
        raise ModelFileError(f"Unpickling {name!r} raised {type(error).__name__}: {error}") from error
    if not (callable(model) or hasattr(model, "predict")):
        raise ModelFileError(f"{name!r} holds a {type(model).__name__}; needed a model with `predict`.")
    return model
