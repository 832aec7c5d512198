"""Where numbers are cut, under LIME's names, and the cut points of LIME's own discretizers."""

from typing import Any

import numpy as np

from anchorline.errors import ParameterError
from anchorline.spaces.attributes import Intervals
from anchorline.spaces.columns import NUMBER, Column
from anchorline.spaces.table import Table


class Discretizer:
    """The intervals into which a table's numbers are cut, by column number, as LIME's discretizers list them.

    Attributes
    ----------
    to_discretize
        The numbers of the columns that hold numbers and not categories.
    names
        The facts about every such column, from the lowest interval to the highest; "is missing" comes last if a
        training value is missing.

    Examples
    --------
    >>> discretizer = Discretizer(Table(np.array([[25, 0], [38, 1], [47, 0], [52, 1], [61, 0]]), n_bins=2))
    >>> discretizer.names
    {0: ['x0 < 40', 'x0 >= 40'], 1: ['x1 < 1', 'x1 >= 1']}
    >>> discretizer.discretize(np.array([30, 1])).tolist()
    [0, 1]
    """

    def __init__(self, table: Table) -> None:
        columns = table.schema.columns
        self._intervals = {
            attribute.positions[0]: attribute.encodings[0]
            for attribute in table.attributes
            if columns[attribute.positions[0]].kind == NUMBER and isinstance(attribute.encodings[0], Intervals)
        }
        self.to_discretize = list(self._intervals)
        self.names = {
            j: [statement.text for statement in intervals.statements[: None if columns[j].missing.any() else -1]]
            for j, intervals in self._intervals.items()
        }

    def discretize(self, data: Any) -> np.ndarray:
        """Return a copy of a row or of rows, with the number of its interval in place of every number."""
        discretized = np.array(data)
        for j, intervals in self._intervals.items():
            values = np.atleast_1d(discretized[..., j]).astype(np.float64)
            codes = intervals.codes(Column(NUMBER, values, np.isnan(values)))
            discretized[..., j] = codes if discretized.ndim > 1 else codes[0]
        return discretized


def values_and_frequencies(table: Table) -> tuple[dict[int, list[Any]], dict[int, np.ndarray]]:
    """Return the values of every column and their shares, by column number, as LIME's explainer lists them.

    The values of a column of numbers or dates are the numbers of its intervals; a missing category is left out.
    """
    values, frequencies = {}, {}
    for attribute in table.attributes:
        j, encoding = attribute.positions[0], attribute.encodings[0]
        column = table.schema.columns[j]
        entries = encoding.codes(column) if isinstance(encoding, Intervals) else column.values[~column.missing]
        distinct, counts = np.unique(entries, return_counts=True)
        values[j], frequencies[j] = distinct.tolist(), counts / counts.sum()
    return values, frequencies


def cuts_of(discretizer: Any, training_data: Any, names: list[str]) -> dict[str, list[float]]:
    """Return the cut points of one of LIME's discretizers, which split the training rows as it does.

    Its intervals include their upper ends, and ours their lower ends, so a cut point that is a training value
    moves up to the next one.
    """
    try:
        cuts = {int(j): [float(cut) for cut in discretizer.mins[j][1:]] for j in discretizer.to_discretize}
        rows = np.asarray(training_data)
        return {names[j]: [same_split(cut, rows[:, j]) for cut in points] for j, points in cuts.items()}
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise ParameterError(
            f"discretizer is {discretizer!r}, but it must be 'quartile', 'decile', 'entropy', or a discretizer of "
            "LIME that was fitted on this training_data. For your own cut points, type "
            "anchorline.Table(X, cuts={'age': [30, 40, 50]}) and use anchorline.Explainer."
        ) from error


def same_split(cut: float, column: np.ndarray) -> float:
    """Return the number with the fewest digits for which ``value < number`` exactly where ``value <= cut``."""
    numbers = column.astype(np.float64)
    values = np.unique(numbers[np.isfinite(numbers)])
    position = int(np.searchsorted(values, cut, side="right"))
    if not 0 < position < len(values):  # nothing to separate
        return float(cut)
    below, above = values[position - 1], values[position]
    roundings = (float(f"{cut:.{digits}g}") for digits in range(1, 18))  # 17 digits reproduce any float
    return next((rounded for rounded in roundings if below < rounded <= above), float(above))
