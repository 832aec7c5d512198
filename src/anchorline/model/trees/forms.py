"""What a model decides, as linear forms of the outputs of its trees; and the trees behind its answers."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from anchorline.errors import ParameterError
from anchorline.model.features import ColumnMatch
from anchorline.model.outputs import OfArrays, resolve
from anchorline.model.target import Target
from anchorline.model.trees.reading import Reading, Refusal, agrees, read

_LINKED = 1e-6  # by how much probabilities may differ, beside the rounding of margins


@dataclass(frozen=True, eq=False)
class Forms:
    """Linear forms of the trees' outputs that are positive where the goal is reached: one of them, or all.

    ``weights`` (outputs, forms) and ``offsets`` (forms,). Forms within ``tolerance`` of 0 leave it open.
    """

    weights: np.ndarray
    offsets: np.ndarray
    need_all: bool
    tolerance: float = 0.0

    @classmethod
    def of(cls, kind: str, wanted: float, reading: Reading, column: int) -> "Forms | None":
        """Return a goal as forms of the columns of the trees' answers; None if it is not linear in them.

        ``kind`` is "class" or "other class" (than the one with the number ``wanted``), or ">=", ">", "<=" or "<".
        """
        unit = np.eye(reading.n_columns)
        if kind in ("class", "other class"):
            own = int(wanted)
            others = [k for k in range(reading.n_columns) if k != own]
            lead, need_all = np.stack([unit[own] - unit[k] for k in others], axis=1), kind == "class"
            return cls(lead if need_all else -lead, np.zeros(len(others)), need_all)
        limit = float(wanted)
        if reading.link == "logistic" and reading.n_columns == 2 and 0 < limit < 1:
            limit = float(np.log(limit / (1 - limit)))
        elif reading.link != "identity":
            return None
        sign = 1.0 if kind in (">=", ">") else -1.0
        return cls(sign * unit[column][:, None], np.array([-sign * limit]), need_all=True)

    def margins(self, forms: np.ndarray) -> np.ndarray:
        """Return how far above 0 the forms (..., forms) are that decide."""
        return np.asarray(forms.min(axis=-1) if self.need_all else forms.max(axis=-1))


class ReadableTrees:
    """The trees behind a model's answers to rows of a table, read on first use; nothing is asked."""

    def __init__(self, model: Any, columns: ColumnMatch) -> None:
        self._model, self._columns = getattr(model, "counted_model", model), columns
        self._known: list[Reading | None] = []

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_known": []}  # every process reads them for itself

    def of(self, target: Target) -> Reading | None:
        """Return the trees; None if they cannot be read.

        The probabilities of a boosted classifier are not sums of trees, so the trees are those of its margins.
        """
        if not self._known:
            self._known.append(self._read(target))
        return self._known[0]

    def _read(self, target: Target) -> Reading | None:
        reading = read(self._model, target)
        if isinstance(reading, Refusal) and (target.task, target.scale, target.contrast) == (None, None, None):
            try:
                reading = read(self._model, resolve(self._model, output_scale="margin"))
            except ParameterError:  # it has no margins
                return None
        if not isinstance(reading, Reading):
            return None
        transform = OfArrays(reading.transform) if target.input == "array" else reading.transform
        return replace(reading, transform=self._columns.selecting(transform))


def allowed_error(reading: Reading, target: Target, inputs: Any, scores: Any) -> float | None:
    """Return how far trees and model may differ by rounding; None if they differ by more on some rows.

    ``scores`` are the model's answers to the inputs; it must name the class with the highest score.
    """
    found = reading.evaluate(inputs)
    answers = np.asarray(scores.values, dtype=np.float64)
    if scores.named is not None and (answers.max(axis=1) > answers[np.arange(len(answers)), scores.named]).any():
        return None
    answers = answers[:, None] if answers.ndim == 1 else answers
    allowed = agrees(reading, lambda rows: found, inputs).allowed
    is_linked = reading.scale == "margin" and target.scale is None and target.contrast is None
    shown = _probabilities(found, reading.link) if is_linked else found
    if shown.shape != answers.shape or np.abs(shown - answers).max() > allowed + (_LINKED if is_linked else 0.0):
        return None
    return allowed


def _probabilities(margins: np.ndarray, link: str) -> np.ndarray:
    """Return what a classifier makes of its margins (n, columns)."""
    if link == "softmax":
        shares = np.exp(margins - margins.max(axis=1, keepdims=True))
    else:
        with np.errstate(over="ignore"):
            shares = 1 / (1 + np.exp(-margins))
    return np.asarray(shares / shares.sum(axis=1, keepdims=True))
