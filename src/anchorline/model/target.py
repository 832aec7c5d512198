"""Which of a model's numbers is explained."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from anchorline.errors import ParameterError

TASKS = (None, "label", "number")


@dataclass(frozen=True, slots=True)
class Target:
    """What to ask a model, and which part of its answer is explained.

    ``classes`` are the labels of the answer's columns, or None if they are not known. ``column`` is the column
    that is explained; None stands for the most probable class at the instance. ``name`` is the name of the
    output; None stands for the name of its class. ``labels`` are the only labels that an answer may hold, or
    None if any label may come.
    """

    ask: Callable[[Any], Any]
    task: str | None = None
    classes: tuple[Any, ...] | None = None
    column: int | None = None
    name: str | None = None
    input: str = "auto"
    labels: tuple[Any, ...] | None = None


def checked_threshold(threshold: float | None) -> float | None:
    """Return the threshold as a finite number, or None."""
    if threshold is None:
        return None
    if isinstance(threshold, (int, float, np.number)) and np.isfinite(threshold):
        return float(threshold)
    raise ParameterError(
        f"threshold is {threshold!r}, but it must be a finite number, or None. Type threshold=0.5."
    )
