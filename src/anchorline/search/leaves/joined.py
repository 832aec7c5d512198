"""The trees of a model on a table, once per explainer; or the reason why its neighborhoods are sampled."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from anchorline.model.features import ColumnMatch
from anchorline.model.outputs import OfArrays
from anchorline.model.predictor import Predictor
from anchorline.model.target import Target
from anchorline.model.trees import Reading, Refusal, agrees, read
from anchorline.search.leaves.joining import Features, NotSeparableError, Transform, drawn_rows, find_features
from anchorline.search.leaves.row import LeafRow
from anchorline.search.leaves.sums import LeafSums
from anchorline.spaces.base import Law
from anchorline.spaces.table import Table, TableNeighborhood

_N_CHECKED = 256  # training rows, and as many drawn rows, on which the trees are compared with the model


@dataclass(frozen=True, eq=False)
class JoinedTrees:
    """The trees of a model, whose features were found to depend on one attribute of the table each.

    ``transform`` turns rows of the table into features. ``allowed`` is how far the trees' answers may lie from the
    model's own because of rounding.
    """

    reading: Reading
    transform: Transform
    features: Features
    table: Table
    allowed: float
    _sums: dict[int | None, LeafSums] = field(default_factory=dict, repr=False)
    _extremes: dict[int | None, tuple[float, float]] = field(default_factory=dict, repr=False)

    def column(self, number: int | None) -> LeafSums:
        """Return the sums over leaves for one column of the model's answers; None for the only one."""
        if number not in self._sums:
            ensemble = self.reading.column(number)
            self._sums[number] = LeafSums.of(ensemble, self.features)
        return self._sums[number]

    @cached_property
    def whole(self) -> LeafSums:
        """The sums over leaves for all columns of the model's answers at once."""
        return LeafSums.of(self.reading.ensemble, self.features)

    def row(self, neighborhood: TableNeighborhood, law: Law, predictor: Predictor) -> LeafRow | str:
        """Return the row as the trees see it, or why this row is sampled; of an opened predictor only."""
        if neighborhood.drawing.validity is not None:
            return "neighbors that break the rule of the table (valid) are drawn again"
        if not neighborhood.independent_values:
            return "the values of a neighbor are drawn together, and not each by itself"
        if predictor.is_label:
            return "labels are explained, and a label is not a sum of trees"
        try:
            sums = self.column(predictor.column)
        except NotSeparableError as error:
            return str(error)
        values = np.asarray(self.transform(neighborhood.original), dtype=np.float64)
        answer = float(sums.ensemble.evaluate(values)[0, 0])
        return self.doubt(sums, values, answer, predictor) or LeafRow(
            sums, values, neighborhood.sources, law, answer, predictor.half_range
        )

    def doubt(self, sums: LeafSums, values: np.ndarray, answer: float, predictor: Predictor) -> str | None:
        """Return why a row of features (1, m), to which the trees give this answer, is sampled, or None."""
        if sums.unlike_training(values).any():
            return "the row has a value that the training table lacks, in a feature that is constant there"
        if abs(answer - predictor.prediction) > self.allowed + 1e-9 * predictor.half_range:
            return (
                f"the trees answer {answer:.6g} for this row, where the model answers {predictor.prediction:.6g}"
            )
        if self._are_clipped(predictor):
            return (
                "outputs on the training table are beyond output_range, and clipped outputs are not sums of trees"
            )
        return None

    def _are_clipped(self, predictor: Predictor) -> bool:
        """Return whether outputs of training rows, at most 10,000, are beyond the output range, if it is given."""
        column, (low, high) = predictor.column, predictor.output_range
        if predictor.is_probability or predictor.describe()["learned_range"]:
            return False
        if column not in self._extremes:
            known = [np.asarray(self.transform(rows), dtype=np.float64) for rows in self.table.examples()]
            answers = self.column(column).ensemble.evaluate(np.concatenate(known))[:, 0]
            self._extremes[column] = float(answers.min()) + self.allowed, float(answers.max()) - self.allowed
        least, most = self._extremes[column]
        return least < low or most > high


def join_trees(model: Any, target: Target, columns: ColumnMatch, table: Any) -> JoinedTrees | str | None:
    """Read the trees of a model and join them with a table; otherwise return why that is not possible.

    None if the model has no trees. The model is queried about 512 rows, which no certificate counts.
    """
    if not isinstance(table, Table):
        return None
    reading = read(getattr(model, "counted_model", model), target)
    if reading is None or isinstance(reading, Refusal):
        return None if reading is None else reading.reason
    transform: Callable[[Any], Any] = OfArrays(reading.transform) if target.input == "array" else reading.transform
    transform = columns.selecting(transform)
    try:
        features = find_features(table, transform)
    except NotSeparableError as error:
        return str(error)
    rows = np.unique(np.linspace(0, table.schema.n_rows - 1, _N_CHECKED).astype(np.intp))
    drawn = features.units.assembled(drawn_rows(features.units, _N_CHECKED))
    allowed = 0.0
    for inputs in (table.schema.natives.rows(rows), drawn):
        agreement = agrees(replace(reading, transform=transform), target.ask, inputs)
        if not agreement:
            return agreement.reason
        allowed = max(allowed, agreement.allowed)
    return JoinedTrees(reading, transform, features, table, allowed)
