"""The trees of a model on a table: which attribute decides each of their features, and the moments of one case.

Features are computed by the model's own preparation, so nothing of it is written again. That they depend on one
attribute each is found out, and then checked on rows whose columns are drawn independently. Nothing that is read
is trusted: the trees are compared with the model's own answers.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from types import EllipsisType
from typing import Any

import numpy as np

from anchorline.laws import Random
from anchorline.model.features import ColumnMatch
from anchorline.model.outputs import OfArrays, Target
from anchorline.model.trees import Agreement, Reading, Refusal, agrees, read
from anchorline.search.case import Case
from anchorline.search.leaves import LeafSums, NotSeparableError, Runs
from anchorline.search.sources import LeafMoments
from anchorline.search.table_answers import TableAnswers
from anchorline.spaces.base import Space
from anchorline.spaces.table import Table, TableNeighborhood

_N_PROBES = 1024  # rows that find out which feature depends on which column
_N_CHECKED = 256  # rows on which that is checked
_N_COMPARED = 512  # rows of the table whose answers, if they are known, are compared with the trees'
_N_ASKED = 32  # neighbors that are asked about if they are not, at most an eighth of the queries

Transform = Callable[[Any], np.ndarray]


class ModelTrees:
    """The trees of a model on a space, read on first use; the constructor asks nothing.

    Only outputs that are sums of trees under the independent law have moments here: numbers and margins of boosted
    trees, and numbers and probabilities of single trees and of averages; in a `Table` without a rule ``valid``.
    """

    def __init__(self, model: Any, columns: ColumnMatch, space: Space) -> None:
        self._model, self._columns, self._space = model, columns, space
        self._joined: JoinedTrees | EllipsisType | None = ...

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_joined": ...}  # every process reads them for itself

    def at(self, case: Case, answers: TableAnswers | None = None) -> LeafMoments | None:
        """Return what gives cell drops (cells,), mean and variance of the drops of a case, or None.

        ``answers`` are those of the model to rows of the table; without them it is asked about a few neighbors,
        which count.
        """
        if (joined := self.joined(case.predictor.target)) is None:
            return None
        if not case.predictor.is_open:
            case.predictor.open(case.neighborhood.original)
        return None if case.predictor.is_label else joined.at(case, answers)

    def joined(self, target: Target) -> "JoinedTrees | None":
        """Return the trees joined with the table; None if the model, its output or the law does not allow it."""
        if isinstance(self._joined, EllipsisType):
            self._joined = self._join(target)
        return self._joined

    def _join(self, target: Target) -> "JoinedTrees | None":
        table = self._space
        if not isinstance(table, Table) or table.neighbors != "independent" or table.valid is not None:
            return None
        reading = read(self._model, target)
        if reading is None or isinstance(reading, Refusal):
            return None
        transform: Transform = OfArrays(reading.transform) if target.input == "array" else reading.transform
        try:
            return JoinedTrees.of(reading, self._columns.selecting(transform), table)
        except Exception:  # not separable; or a preparation refuses values, as the model will when it is asked
            return None


@dataclass(frozen=True, eq=False)
class _Column:
    """One column of a model's answers as a sum of trees, beside the views of a table."""

    sums: LeafSums
    runs: Runs

    def moments(
        self, neighborhood: TableNeighborhood, features: np.ndarray, replace_probability: float
    ) -> tuple[np.ndarray, float, float]:
        r"""Return cell drops, mean and variance of :math:`t = f(x) - f(z)`, where f is the sum of trees.

        .. math:: \mathbb E[t\,1_c] = P_c \bar t - \frac q n \sum_{r \in c} \bigl(g_a(r) - \mathbb E f\bigr)
                  - (1 - q)\,[c = c_x] \bigl(g_a(x) - \mathbb E f\bigr)
        """
        q, candidates, views = replace_probability, neighborhood.candidates, neighborhood.table.views
        effects = self.sums.effects(features, q)
        mean = self.sums.answer(features) - effects.mean
        sizes = np.diff(candidates.starts)
        first = (np.arange(len(sizes)) * views.n_pool).repeat(sizes)
        starts, stops = neighborhood.views.places
        drops = candidates.chances(q) * mean
        drops -= q / views.n_pool * self.runs.sums(effects.classes, first + starts, first + stops)
        drops[candidates.own] -= (1 - q) * effects.own[candidates.attributes]
        others = candidates.starts[:-1][~views.ordered] + 1  # all other categories: the rest of the view
        drops[others] = mean - drops[others - 1] - drops[others + 1]
        return drops, mean, effects.variance


@dataclass(frozen=True, eq=False)
class JoinedTrees:
    """Trees whose features depend on one attribute of a table each.

    ``transform`` turns rows of the table into features. ``pool`` (n_pool, m) are the features of the rows that
    donate. ``owners`` (m,) are attributes; their number for features of columns that never change, and -1 for
    features that are the same in all rows of the table, ``same`` (m,).
    """

    reading: Reading
    transform: Transform
    table: Table
    pool: np.ndarray
    owners: np.ndarray
    same: np.ndarray
    _columns: dict[int | None, _Column | None] = field(default_factory=dict, repr=False)
    _compared: dict[int | None, Agreement] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, reading: Reading, transform: Transform, table: Table) -> "JoinedTrees":
        """Join trees with a table; raise `NotSeparableError` if a feature depends on several attributes."""
        owners, same = _owners(_Units(table), transform)
        pool = _features(transform, table.donated.rows(np.arange(table.n_pool)))
        fixed = owners < 0
        if _differ(pool[:, fixed], same[fixed]).any():
            raise NotSeparableError("the reference has values that the table lacks")
        return cls(reading, transform, table, pool, np.minimum(owners, len(table.attributes)), same)

    def features(self, inputs: Any) -> np.ndarray:
        """Return the features (n, m) of model inputs of n rows."""
        return _features(self.transform, inputs)

    def is_strange(self, features: np.ndarray) -> bool:
        """Return whether a row has other features (m,) than all rows of the table where these are the same."""
        fixed = self.owners < 0
        return bool(_differ(features[fixed], self.same[fixed]).any())

    def at(self, case: Case, answers: TableAnswers | None) -> LeafMoments | None:
        """Return the moments of a case; None if the trees do not answer like the model, or not by leaves."""
        neighborhood = case.neighborhood
        assert isinstance(neighborhood, TableNeighborhood)
        column = self._column(case.predictor.column)
        if column is None:
            return None
        own = self.features(neighborhood.original)[0]
        if self.is_strange(own) or not self._agrees(case, column, answers, own):
            return None
        return lambda: column.moments(neighborhood, own, case.settings.replace_probability)

    def _column(self, number: int | None) -> _Column | None:
        if number not in self._columns:
            names = [attribute.name for attribute in self.table.attributes]
            places, views = np.arange(self.table.n_pool), self.table.views
            try:
                sums = LeafSums.of(self.reading.column(number), self.owners, names, self.pool)
            except NotSeparableError:
                self._columns[number] = None
            else:
                orders = [self.table.donors_at(view, places) for view in range(len(views.columns))]
                self._columns[number] = _Column(sums, Runs.of(sums.classes, views.attributes, orders))
        return self._columns[number]

    def _agrees(self, case: Case, column: _Column, answers: TableAnswers | None, own: np.ndarray) -> bool:
        """Return whether the trees answer like the model: about the row, and rows of the table or neighbors."""
        predictor = case.predictor
        if answers is None:
            donors = case.draw("trees", 0, min(_N_ASKED, case.n_left // 8))
            outputs = predictor.prediction - case.ask(donors).drops
            features = self.features(case.neighborhood.realize(donors))
            found = self._compare(column, np.vstack([features, own]), np.append(outputs, predictor.prediction))
            return found.holds
        if predictor.column not in self._compared:
            inputs, n_rows = next(self.table.examples())
            n = min(n_rows, _N_COMPARED)
            features = self.features(inputs)[:n]
            self._compared[predictor.column] = self._compare(column, features, answers.outputs(predictor)[:n])
        found = self._compared[predictor.column]
        return found.holds and abs(column.sums.answer(own) - predictor.prediction) <= found.allowed

    def _compare(self, column: _Column, features: np.ndarray, outputs: np.ndarray) -> Agreement:
        same = replace(self.reading, ensemble=column.sums.ensemble, transform=np.asarray, is_mirrored=False)
        return agrees(same, lambda _: outputs, features)


class _Units:
    """The parts of a table that change independently: its attributes, and then every column that never changes."""

    def __init__(self, table: Table) -> None:
        self.natives, self.n_rows = table.schema.natives, table.schema.n_rows
        self.of_column = np.full(len(table.names), -1, dtype=np.intp)
        for number, attribute in enumerate(table.attributes):
            self.of_column[list(attribute.positions)] = number
        held = np.flatnonzero(self.of_column < 0)
        self.of_column[held] = len(table.attributes) + np.arange(len(held))
        self.n = len(table.attributes) + len(held)

    def inputs(self, rows: np.ndarray) -> Any:
        """Return n model inputs; unit u has the values of row ``rows[u, i]`` of the table; rows (units, n)."""
        return self.natives.neighbors(self.natives.row(0), rows[self.of_column])


def _owners(units: _Units, transform: Transform) -> tuple[np.ndarray, np.ndarray]:
    """Return the unit (m,) that decides each feature, -1 if all rows have the same, and the first row's features.

    Units are numbered in binary: all units that have bit i take the values of other rows at once, and the features
    that change are those of units that have bit i. Raise `NotSeparableError` if several units decide a feature.
    """
    values = _features(transform, units.natives.rows(np.arange(units.n_rows)))
    owners = np.full(values.shape[1], -1, dtype=np.intp)
    for n_probes in dict.fromkeys((min(units.n_rows, _N_PROBES), units.n_rows)):
        is_open = (owners < 0) & _differ(values, values[0]).any(axis=0)
        if is_open.any():
            rows = np.unique(np.linspace(0, units.n_rows - 1, n_probes).astype(np.intp))
            owners[is_open] = _probe(units, transform, values, rows)[is_open]
    drawn = (Random.of(0, b"", "features").uniforms(units.n, _N_CHECKED) * units.n_rows).astype(np.intp)
    answered = _features(transform, units.inputs(drawn))
    row_of_unit = np.append(drawn, np.zeros((1, _N_CHECKED), dtype=np.intp), axis=0)
    expected = np.take_along_axis(values, row_of_unit[owners].T, axis=0)  # the last row is that of owner -1
    wrong = np.flatnonzero(_differ(answered, expected).any(axis=0))
    if len(wrong):
        raise NotSeparableError(f"feature {wrong[0]} of the model depends on several attributes")
    return owners, values[0]


def _probe(units: _Units, transform: Transform, values: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return the unit (m,) of each feature according to some rows; -1 if it does not change among them."""
    numbers = np.arange(1, units.n + 1)  # from 1, so that a feature without any bit does not change at all
    found = np.zeros(values.shape[1], dtype=np.intp)
    for bit in range(units.n.bit_length()):
        has_bit = (numbers >> bit & 1).astype(bool)
        mixed = np.where(has_bit[:, None], np.roll(rows, 1), rows)
        found += _differ(_features(transform, units.inputs(mixed)), values[rows]).any(axis=0) << bit
    return np.where(found > units.n, units.n, found) - 1  # a mixture of units fails the check


def _features(transform: Transform, inputs: Any) -> np.ndarray:
    return np.asarray(transform(inputs), dtype=np.float64)


def _differ(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return where two arrays differ; missing values are equal."""
    return np.asarray((first != second) & ~(np.isnan(first) & np.isnan(second)))
