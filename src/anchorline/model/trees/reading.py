"""What was read of a model: its trees, how its inputs become features, and whether both agree with its answers."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from anchorline.model.trees.ensemble import Ensemble

_SHARE_OF_RANGE = 1e-9  # by how much of the range of the answers the trees may differ from the model


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why the trees of a model cannot stand for its answers, as a clause that follows "because".

    Examples
    --------
    >>> Refusal("a label is not a sum of trees").reason
    'a label is not a sum of trees'
    """

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Trees:
    """What a reader finds in one fitted model, whichever of its answers is explained.

    ``link`` is how the model turns the sum of its trees into its answers: "identity", "logistic", "softmax", or
    another name. ``build`` returns the sum. ``encode`` turns the inputs of this model, a frame, an array or a
    sparse matrix, into features.
    """

    link: str
    build: Callable[[], Ensemble]
    encode: Callable[[Any], np.ndarray]
    library: str
    sums_in: str = "float64"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Reading:
    """A model as a sum of trees.

    Parameters
    ----------
    ensemble
        The trees, with one output per column of the model's answers; one output if ``is_mirrored``.
    transform
        Turns model inputs of n rows, as the model gets them, into features (n, m): float64, with NaN for missing
        values, and with whole numbers for categories.
    scale
        "number" for numbers of a regressor, "probability" for averages of leaves, or "margin" for the sum inside
        the link of a boosted classifier.
    link
        How the model turns a margin into probabilities: "logistic" or "softmax"; "identity" for other scales.
    classes
        Labels of the columns, or None for numbers.
    library
        The library that fitted the trees.
    is_mirrored
        Whether the model has two classes and one margin: that of column 1, whose negative is that of column 0.
    sums_in
        The type in which the library adds leaf values up.
    """

    ensemble: Ensemble
    transform: Callable[[Any], np.ndarray]
    scale: str
    link: str
    classes: tuple[Any, ...] | None
    library: str
    is_mirrored: bool = False
    sums_in: str = "float64"

    @property
    def n_columns(self) -> int:
        """Number of columns of the model's answers."""
        return 2 if self.is_mirrored else self.ensemble.n_outputs

    def column(self, number: int | None = None) -> Ensemble:
        """Return one column of the answers as a sum of trees with one output; None stands for the only column."""
        if self.is_mirrored:
            return self.ensemble.weighted({0: -1.0 if number == 0 else 1.0})
        return self.ensemble.weighted({number or 0: 1.0})

    def evaluate(self, inputs: Any) -> np.ndarray:
        """Return the answers (n, columns) of the trees to model inputs."""
        answers = self.ensemble.evaluate(self.transform(inputs))
        return np.column_stack([-answers, answers]) if self.is_mirrored else answers


@dataclass(frozen=True, slots=True)
class Agreement:
    """Whether trees answer like their model, their largest difference, and how large it may be."""

    holds: bool
    difference: float
    allowed: float

    def __bool__(self) -> bool:
        return self.holds

    @property
    def reason(self) -> str | None:
        """Why the trees cannot stand for the model's answers, as in a `Refusal`; None if they can."""
        if self.holds:
            return None
        return (
            f"the trees that were read from the model differ from its own answers by up to {self.difference:.2g}, "
            f"where {self.allowed:.2g} is allowed for rounding"
        )


def agrees(reading: Reading, ask: Callable[[Any], Any], inputs: Any) -> Agreement:
    """Compare the trees with the model's own answers to some model inputs.

    They must be equal to 1e-9 of the range of the answers, plus the rounding of the model's own sum. A sum of T
    numbers that is rounded T times errs by about the square root of T roundings of the sum of their sizes.

    Parameters
    ----------
    ask
        The model: returns (n,) or (n, columns) numbers. Further columns, such as the chosen class, are ignored.
    """
    answers = np.asarray(ask(inputs), dtype=np.float64)
    answers = answers[:, None] if answers.ndim == 1 else answers[:, : reading.n_columns]
    found = reading.evaluate(inputs)
    if found.shape != answers.shape:
        return Agreement(False, float("inf"), 0.0)
    ensemble, differences = reading.ensemble, np.abs(found - answers)
    rounding = (4 + np.sqrt(len(ensemble.roots))) * np.finfo(reading.sums_in).eps * _largest_sum(ensemble)
    allowed = _SHARE_OF_RANGE * float(np.ptp(answers, axis=0).max()) + rounding
    difference = float(differences.max())
    return Agreement(bool(difference <= allowed), difference, float(allowed))


def _largest_sum(ensemble: Ensemble) -> float:
    """Return an upper limit for the sum of the sizes of the leaf values that one row reaches."""
    sizes = np.abs(ensemble.values).max(axis=1)
    return float(np.maximum.reduceat(sizes, ensemble.roots).sum() + np.abs(ensemble.base).max())
