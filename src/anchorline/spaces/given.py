"""What people pass where a space is needed: a space, or a training table, which is taken as ``Table(frame)``."""

from typing import Any

from anchorline.errors import ParameterError
from anchorline.spaces.base import Space


def as_space(given: Any) -> Space:
    """Return a space unchanged, and a training table as ``Table(frame)``."""
    if isinstance(given, Space):
        return given
    from anchorline.spaces.table import Table  # noqa: PLC0415  heavy

    return Table(given)


def check_order(model: Any, space: Any) -> None:
    """Raise `ParameterError` if the space or the training table was passed first and the model second."""
    is_table = isinstance(model, Space) or (hasattr(model, "shape") and not _is_model(model))
    if is_table and _is_model(space) and not isinstance(space, Space):
        raise ParameterError(
            f"The first argument is of type {type(model).__name__}, and the second of type "
            f"{type(space).__name__}; the model must come first, and the space or training table second. Type "
            "Explainer(model, table)."
        )


def _is_model(given: Any) -> bool:
    return callable(given) or callable(getattr(given, "predict", None))
