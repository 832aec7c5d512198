"""Which cells of the neighbors are drawn from the training table, and from which rows."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """The cells of n neighbors that are drawn from the table, ``counts[j]`` of them in ``columns[j]``.

    ``at`` holds column-major positions among these columns: the cell of neighbor i in ``columns[j]`` has position
    ``i + j n``. ``rows`` are the rows of the table that the cells are drawn from.
    """

    columns: np.ndarray
    counts: np.ndarray
    at: np.ndarray
    rows: np.ndarray

    def per_cell(self, per_column: np.ndarray) -> np.ndarray:
        """Repeat a number per column once per cell of the column."""
        return per_column.repeat(self.counts)

    def flat_positions(self, n: int) -> np.ndarray:
        """Return the column-major positions of the cells in a table of n rows: ``i + column n``."""
        columns = self.columns.tolist()
        first = min(columns, default=0)
        if columns == list(range(first, first + len(columns))):  # adjacent, which is the usual case
            return np.asarray(self.at + first * n)
        return np.asarray(self.at + self.per_cell((self.columns - np.arange(len(columns))) * n))

    def for_columns(self, columns: np.ndarray, n: int) -> "Cells":
        """Return the same cells in other columns; leave out those whose new column is -1."""
        gone = columns < 0
        if not gone.any():
            return Cells(columns, self.counts, self.at, self.rows)
        kept = ~self.per_cell(gone)
        at = self.at - self.per_cell(np.cumsum(gone) * n)
        return Cells(columns[~gone], self.counts[~gone], at[kept], self.rows[kept])
