"""Joins the trees of a model with a table: which attribute decides each feature, and what its values are.

Features are computed by the model's own preparation, from the training table, so nothing of it is written again.
That they depend on one attribute each is found out and then checked on rows whose columns are drawn independently.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from anchorline.spaces.natives import Cells
from anchorline.spaces.table import Table

_N_PROBES = 1024  # rows that find out which feature depends on which column
_N_CHECKED = 256  # rows on which the result is checked, and compared with the model

Transform = Callable[[Any], np.ndarray]


class NotSeparableError(Exception):
    """A feature depends on several attributes; the text says which, as a clause that follows "because"."""


@dataclass(frozen=True, eq=False)
class Units:
    """The parts of a table that change independently: its attributes, and then every column that is held fixed.

    ``unit_of_column`` (columns,) numbers them. ``assembled`` returns model inputs from a row of the pool per unit.
    """

    table: Table
    names: tuple[str, ...]
    unit_of_column: np.ndarray

    @classmethod
    def of(cls, table: Table) -> "Units":
        """Return the units of a table."""
        units = np.full(len(table.names), -1, dtype=np.intp)
        names = [attribute.name for attribute in table.attributes]
        for number, attribute in enumerate(table.attributes):
            units[list(attribute.positions)] = number
        held = np.flatnonzero(units < 0)
        units[held] = len(names) + np.arange(len(held))
        return cls(table, (*names, *(table.names[j] for j in held.tolist())), units)

    @property
    def n_units(self) -> int:
        """Number of units."""
        return len(self.names)

    def assembled(self, rows: np.ndarray) -> Any:
        """Return n model inputs whose unit u has the values of row ``rows[u, i]`` of the pool; rows (units, n)."""
        n, n_columns = rows.shape[1], len(self.unit_of_column)
        counts = np.full(n_columns, n, dtype=np.intp)
        drawn = rows[self.unit_of_column].reshape(-1)
        cells = Cells(np.arange(n_columns), counts, np.arange(n * n_columns), drawn)
        return self.table.pool.neighbors(self.table.schema.natives.row(0), n, [cells])

    def together(self) -> Any:
        """Return all rows of the pool as model inputs."""
        n = self.table.schema.n_rows
        return self.assembled(np.tile(np.arange(n), (self.n_units, 1)))


@dataclass(frozen=True, eq=False)
class Features:
    """Features of the training table: ``values`` (n, features) in the order of the pool, and their ``owners``.

    ``owners`` (features,) are units, -1 for features that never change.
    """

    units: Units
    values: np.ndarray
    owners: np.ndarray

    def assembled(self, rows: np.ndarray) -> np.ndarray:
        """Return the features of rows as in `Units.assembled`, each taken from its owner's row."""
        found = np.empty((rows.shape[1], len(self.owners)))
        for feature, owner in enumerate(self.owners.tolist()):
            found[:, feature] = self.values[rows[owner] if owner >= 0 else 0, feature]
        return found


def find_features(table: Table, transform: Transform) -> Features:
    """Find the unit that decides each feature, and check it; raise `NotSeparableError` if there are several.

    Units are numbered in binary: all units that have bit i take the values of other rows at once, and the features
    that change are those of units that have bit i.
    """
    units = Units.of(table)
    values = _features(transform, units.together())
    changing = np.flatnonzero([_differ(column, column[:1]).any() for column in values.T])
    owners = np.full(values.shape[1], -1, dtype=np.intp)
    n = len(values)
    for n_probes in dict.fromkeys((min(n, _N_PROBES), n)):
        open_ = changing[owners[changing] < 0]
        if len(open_):
            owners[open_] = _probe(units, transform, values, n_probes)[open_]
    features = Features(units, values, owners)
    _check(features, transform)
    return features


def _probe(units: Units, transform: Transform, values: np.ndarray, n_probes: int) -> np.ndarray:
    """Return the unit of each feature according to some rows; -1 if the feature does not change among them."""
    rows = np.unique(np.linspace(0, len(values) - 1, n_probes).astype(np.intp))
    numbers = np.arange(1, units.n_units + 1)  # from 1, so that a feature without any bit does not change at all
    found = np.zeros(values.shape[1], dtype=np.intp)
    for bit in range(units.n_units.bit_length()):
        has_bit = (numbers >> bit & 1).astype(bool)
        mixed = np.where(has_bit[:, None], np.roll(rows, 1), rows)
        changed = _differ(_features(transform, units.assembled(mixed)), values[rows]).any(axis=0)
        found += changed << bit
    return np.where(found > units.n_units, units.n_units, found) - 1  # a mixture of units fails the check


def _check(features: Features, transform: Transform) -> None:
    rows = drawn_rows(features.units, _N_CHECKED)
    answered = _features(transform, features.units.assembled(rows))
    wrong = np.flatnonzero(_differ(answered, features.assembled(rows)).any(axis=0))
    if len(wrong):
        raise NotSeparableError(_why(features, transform, int(wrong[0])))


def drawn_rows(units: Units, n: int) -> np.ndarray:
    """Return rows (units, n) of the pool, drawn independently per unit, the same at every call."""
    rng = np.random.default_rng(0)
    return rng.integers(units.table.schema.n_rows, size=(units.n_units, n))


def _why(features: Features, transform: Transform, feature: int) -> str:
    """Return which units a feature depends on, found by changing one at a time."""
    units, rows = features.units, drawn_rows(features.units, _N_CHECKED)
    base = _features(transform, units.assembled(rows))[:, feature]
    names = []
    for unit, name in enumerate(units.names):
        mixed = rows.copy()
        mixed[unit] = np.roll(rows[unit], 1)
        if _differ(_features(transform, units.assembled(mixed))[:, feature], base).any():
            names.append(name)
    if len(names) < 2:
        return f"feature {feature} of the model does not depend on the columns of its row alone"
    return f"feature {feature} of the model depends on both {names[0]!r} and {names[1]!r}"


def _features(transform: Transform, inputs: Any) -> np.ndarray:
    return np.asarray(transform(inputs), dtype=np.float64)


def _differ(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return where two arrays differ; missing values are equal."""
    return np.asarray((first != second) & ~(np.isnan(first) & np.isnan(second)))
