"""The message for a model that raised an exception: what it raised, what it received, and what to try."""

from typing import Any

import numpy as np

_LIBRARIES = {"pyarrow": "Arrow tables", "polars": "Polars frames"}


def failure_text(error: Exception, model: Any, inputs: Any, n_rows: int) -> str:
    """Return the message for an exception that the model raised; quote the exception on one line."""
    kind = type(inputs).__name__
    raised = " ".join(f"{type(error).__name__}: {error}".split())
    return (
        f"The model raised {raised} (queried for {n_rows} rows, input of type {kind}, "
        f"shape {getattr(inputs, 'shape', None)}). {_advice(model, inputs)}"
    )


def _owner(model: Any) -> Any:
    """Return the model behind a method, and behind what selects its columns and its class."""
    for name in ("ask", "scores", "__self__"):
        inner = getattr(model, name, None)
        if inner is not None:
            return _owner(inner)
    return model


def _advice(model: Any, inputs: Any) -> str:
    if isinstance(inputs, np.ndarray):
        return "Call `predict` on an input of that shape by hand."
    library = _LIBRARIES.get(type(inputs).__module__.partition(".")[0])
    owner = _owner(model)
    if library == "Arrow tables" and hasattr(owner, "feature_names_in_"):
        return (
            "The model was fitted on a frame with column names, most likely a pandas frame, but it receives "
            f"{library}, because the training table is one. Type "
            "`al.Explainer(model, al.Table(table.to_pandas()))`."
        )
    if library is not None:
        return (
            f"The model receives {library}, because the training table is one. If it takes pandas frames, type "
            "`al.Table(table.to_pandas())`. If the model takes arrays, pass input='array'."
        )
    return "If the model takes arrays, pass input='array'; otherwise call it on such a frame by hand."
