"""Which of a model's numbers is explained, and by which range and threshold."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from anchorline.errors import ParameterError

TASKS = (None, "label", "number")


@dataclass(frozen=True, slots=True)
class Target:
    """What to ask a model, and which part of its answer is explained.

    ``classes`` are the labels of the answer's columns, or None if they are not known. ``column`` is the column
    that is explained; None stands for the class that the model predicts at the instance. ``name`` is the name of
    the output; None stands for the name of its class. ``labels`` are the only labels that an answer may hold, or
    None if any label may come. ``rule`` is how the model itself chooses a class, in plain values; answers then
    have one more column, with the number of the chosen class. None stands for the most probable class.
    ``contrast`` names all classes and the two whose scores are subtracted, in plain values; None if the answers
    are not such differences. ``known_range`` is the range of the output, if its kind determines it. ``scale`` is
    the name of the margins if a classifier is queried for them, "log-odds" or "margin", and otherwise None.
    """

    ask: Callable[[Any], Any]
    task: str | None = None
    classes: tuple[Any, ...] | None = None
    column: int | None = None
    name: str | None = None
    input: str = "auto"
    labels: tuple[Any, ...] | None = None
    rule: Mapping[str, Any] | None = None
    contrast: Mapping[str, Any] | None = None
    known_range: tuple[float, float] | None = None
    scale: str | None = None


def checked_threshold(threshold: float | None) -> float | None:
    """Return the threshold as a finite number, or None."""
    if threshold is None:
        return None
    if isinstance(threshold, (int, float, np.number)) and np.isfinite(threshold):
        return float(threshold)
    raise ParameterError(
        f"threshold is {threshold!r}, but it must be a finite number, or None. Type threshold=0.5."
    )


def checked_range(output_range: tuple[float, float]) -> tuple[float, float]:
    """Return lowest and highest output as floats whose difference can be halved."""
    try:
        low, high = (float(end) for end in output_range)
    except (TypeError, ValueError):
        low = high = np.nan
    half = high / 2 - low / 2
    if not (np.isfinite([low, high, half]).all() and half > 1e-300 and np.isfinite(2 * half)):
        raise ParameterError(
            f"output_range is {output_range!r}, but it must be two finite numbers, lowest first. "
            "Type output_range=(0, 1)."
        )
    return low, high


def plain_label(label: Any) -> str | int | float | bool | None:
    """Return a label as JSON can hold it; JSON has no infinity."""
    fits = label is None or isinstance(label, (str, int)) or (isinstance(label, float) and math.isfinite(label))
    return label if fits else str(label)
