"""The trees of a model on a table: which attribute decides each of their features, and the moments of one case.

Features are computed by the model's own preparation, so nothing of it is written again. That they depend on one
attribute each is found out, and then checked on rows whose columns are drawn independently. Nothing that is read
is trusted: the trees are compared with the model's own answers.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from anchorline.errors import ParameterError
from anchorline.laws import Random
from anchorline.model.features import ColumnMatch
from anchorline.model.outputs import OfArrays, Target, resolve
from anchorline.model.trees import Agreement, Reading, Refusal, agrees, read
from anchorline.search.case import Case
from anchorline.search.leaves import LeafSums, NotSeparableError, Runs
from anchorline.search.sources import LeafMoments
from anchorline.search.table import TableAnswers
from anchorline.spaces.base import Space
from anchorline.spaces.table import Table, TableNeighborhood

_N_PROBES = 1024  # rows that find out which feature depends on which column
_N_CHECKED = 256  # rows on which that is checked
_N_COMPARED = 512  # rows of the table whose answers, if they are known, are compared with the trees'
_N_ASKED = 32  # neighbors that are asked about if they are not, at most an eighth of the queries

Transform = Callable[[Any], np.ndarray]


class ModelTrees:
    """The trees of a model on a space, read on first use; the constructor asks nothing."""

    def __init__(self, model: Any, columns: ColumnMatch, space: Space) -> None:
        self._model, self._columns, self._space = model, columns, space
        self._known: dict[Any, Any] = {}

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_known": {}}  # every process reads them for itself

    def _once(self, name: Any, find: Callable[[], Any]) -> Any:
        if name not in self._known:
            self._known[name] = find()
        return self._known[name]

    def answering(self, target: Target) -> Reading | None:
        """Return the trees of which the explained answers are sums; None if they are not, or cannot be read."""
        found = self._once("read", lambda: read(self._model, target))
        reading: Reading | None = self._once("answering", lambda: self._selecting(found, target))
        return reading

    def deciding(self, target: Target) -> Reading | None:
        """Return the trees that decide: of probabilities that are not sums of trees, those of the margins."""
        found = self.answering(target)
        return self._once("deciding", lambda: self._margins(target)) if found is None else found

    def _margins(self, target: Target) -> Reading | None:
        is_plain = (target.task, target.scale, target.contrast) == (None, None, None)
        if not isinstance(self._known["read"], Refusal) or not is_plain:
            return None
        try:
            return self._selecting(read(self._model, resolve(self._model, output_scale="margin")), target)
        except ParameterError:  # it has no margins
            return None

    def _selecting(self, found: Reading | Refusal | None, target: Target) -> Reading | None:
        """Return trees that take rows of the table, of which the model gets its own columns."""
        if not isinstance(found, Reading):
            return None
        transform = OfArrays(found.transform) if target.input == "array" else found.transform
        return replace(found, transform=self._columns.selecting(transform))

    def joined(self, reading: Reading | None) -> "JoinedTrees | None":
        """Return trees joined with the table; None if the model or the law does not allow it."""
        return None if reading is None else self._once(reading, lambda: self._join(reading))

    def _join(self, reading: Reading) -> "JoinedTrees | None":
        table = self._space
        if not isinstance(table, Table) or table.neighbors != "independent" or table.valid is not None:
            return None
        try:
            return JoinedTrees.of(reading, table)
        except Exception:  # not separable; or a preparation refuses values, as the model will when it is asked
            return None

    def moments(self, case: Case, answers: TableAnswers | None = None) -> LeafMoments | None:
        """Return what gives cell drops (cells,), mean and variance of the drops of a case, or None.

        Only outputs that are sums of trees under the independent law have moments here: numbers and margins of
        boosted trees, and numbers and probabilities of single trees and of averages; in a `Table` without a rule
        ``valid``. ``answers`` are those of the model to rows of the table; without them it is asked about a few
        neighbors, which count.
        """
        joined = self._opened(case)
        return None if joined is None else joined.moments(case, answers)

    def gains(self, case: Case, answers: TableAnswers | None = None) -> np.ndarray | None:
        """Return what the value of each donor changes on average, (attributes, n_pool); None as for moments."""
        joined = self._opened(case)
        return None if joined is None else joined.gains(case, answers)

    def _opened(self, case: Case) -> "JoinedTrees | None":
        joined = self.joined(self.answering(case.predictor.target))
        if joined is None:
            return None
        if not case.predictor.is_open:
            case.predictor.open(case.neighborhood.original)
        return None if case.predictor.is_label else joined


@dataclass(frozen=True, eq=False)
class JoinedTrees:
    """Trees whose features depend on one attribute of a table each.

    ``pool`` (n_pool, m) are the features of the rows that donate. ``owners`` (m,) are attributes; their number for
    features of columns that never change, and -1 for features that are the same in all rows of the table,
    ``same`` (m,).
    """

    reading: Reading
    table: Table
    pool: np.ndarray
    owners: np.ndarray
    same: np.ndarray
    _sums: dict[bytes, LeafSums | None] = field(default_factory=dict, repr=False)
    _runs: dict[bytes, Runs] = field(default_factory=dict, repr=False)
    _compared: dict[int | None, Agreement] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, reading: Reading, table: Table) -> "JoinedTrees":
        """Join trees with a table; raise `NotSeparableError` if a feature depends on several attributes."""
        owners, same = _owners(_Units(table), reading.transform)
        pool = features_of(reading.transform, table.donated.rows(np.arange(table.n_pool)))
        fixed = owners < 0
        if differ(pool[:, fixed], same[fixed]).any():
            raise NotSeparableError("the reference has values that the table lacks")
        return cls(reading, table, pool, np.minimum(owners, len(table.attributes)), same)

    def features(self, inputs: Any) -> np.ndarray:
        """Return the features (n, m) of model inputs of n rows."""
        return features_of(self.reading.transform, inputs)

    def is_strange(self, features: np.ndarray) -> bool:
        """Return whether a row has other features (m,) than all rows of the table where these are the same."""
        fixed = self.owners < 0
        return bool(differ(features[fixed], self.same[fixed]).any())

    def sums(self, weights: np.ndarray) -> LeafSums | None:
        """Return the sum of the columns of the answers with these weights (columns,); None if not by leaves."""
        key = weights.tobytes()
        if key not in self._sums:
            used = {column: float(weight) for column, weight in enumerate(weights) if weight}
            if self.reading.is_mirrored:
                used = {0: float(weights[1] - weights[0])}
            names = [attribute.name for attribute in self.table.attributes]
            try:
                self._sums[key] = LeafSums.of(self.reading.ensemble.weighted(used), self.owners, names, self.pool)
            except NotSeparableError:
                self._sums[key] = None
        return self._sums[key]

    def moments(self, case: Case, answers: TableAnswers | None) -> LeafMoments | None:
        """Return the moments of a case; None if the trees do not answer like the model, or not by leaves."""
        if (found := self._checked(case, answers)) is None:
            return None
        (key, sums, own), places, views = found, np.arange(self.table.n_pool), self.table.views
        if key not in self._runs:
            orders = [self.table.donors_at(view, places) for view in range(len(views.columns))]
            self._runs[key] = Runs.of(sums.classes, views.attributes, orders)
        return lambda: _moments(sums, self._runs[key], case, own)

    def gains(self, case: Case, answers: TableAnswers | None) -> np.ndarray | None:
        r"""Return what the value of each donor r changes, (attributes, n_pool); None as for moments.

        .. math:: \mathbb E[f \mid z_a = r] - \mathbb E[f \mid z_a = x_a]
        """
        if (found := self._checked(case, answers)) is None:
            return None
        _, sums, own = found
        effects = sums.effects(own, case.replace_probability)
        return np.asarray(effects.classes[sums.classes.codes] - effects.own[:, None])

    def _checked(self, case: Case, answers: TableAnswers | None) -> tuple[bytes, LeafSums, np.ndarray] | None:
        """Return the sum of the explained output with its key, and the row's features; None if they differ."""
        column = case.predictor.column
        weights = np.eye(self.reading.n_columns)[-1 if column is None else column]
        sums, own = self.sums(weights), self.features(case.neighborhood.original)[0]
        if sums is None or self.is_strange(own) or not self._agrees(case, sums, answers, own):
            return None
        return weights.tobytes(), sums, own

    def _agrees(self, case: Case, sums: LeafSums, answers: TableAnswers | None, own: np.ndarray) -> bool:
        """Return whether the trees answer like the model: about the row, and rows of the table or neighbors."""
        predictor = case.predictor
        if answers is None:
            donors = case.draw("trees", 0, min(_N_ASKED, case.n_left // 8))
            outputs = predictor.prediction - case.ask(donors).drops
            features = self.features(case.neighborhood.realize(donors))
            return self._compare(sums, np.vstack([features, own]), np.append(outputs, predictor.prediction)).holds
        if predictor.column not in self._compared:
            inputs, n_rows = next(self.table.examples())
            n = min(n_rows, _N_COMPARED)
            features = self.features(inputs)[:n]
            self._compared[predictor.column] = self._compare(sums, features, answers.outputs(predictor)[:n])
        found = self._compared[predictor.column]
        return found.holds and abs(sums.answer(own) - predictor.prediction) <= found.allowed

    def _compare(self, sums: LeafSums, features: np.ndarray, outputs: np.ndarray) -> Agreement:
        same = replace(self.reading, ensemble=sums.ensemble, transform=np.asarray, is_mirrored=False)
        return agrees(same, outputs, features)


def _moments(sums: LeafSums, runs: Runs, case: Case, features: np.ndarray) -> tuple[np.ndarray, float, float]:
    r"""Return cell drops, mean and variance of :math:`t = f(x) - f(z)`, where f is the sum of trees.

    .. math:: \mathbb E[t\,1_c] = P_c \bar t - \frac q n \sum_{r \in c} \bigl(g_a(r) - \mathbb E f\bigr)
              - (1 - q)\,[c = c_x] \bigl(g_a(x) - \mathbb E f\bigr)
    """
    neighborhood, q = case.neighborhood, case.replace_probability
    assert isinstance(neighborhood, TableNeighborhood)
    candidates, views = neighborhood.candidates, neighborhood.table.views
    effects = sums.effects(features, q)
    mean = sums.answer(features) - effects.mean
    sizes = np.diff(candidates.starts)
    first = (np.arange(len(sizes)) * views.n_pool).repeat(sizes)
    starts, stops, others = neighborhood.views.places
    drops = candidates.chances(q) * mean
    drops -= q / views.n_pool * runs.sums(effects.classes, first + starts, first + stops)
    drops[candidates.own] -= (1 - q) * effects.own[candidates.attributes]
    drops[others] = mean - drops[others - 1] - drops[others + 1]  # the rest of the view
    return drops, mean, effects.variance


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
    values = features_of(transform, units.natives.rows(np.arange(units.n_rows)))
    owners = np.full(values.shape[1], -1, dtype=np.intp)
    for n_probes in dict.fromkeys((min(units.n_rows, _N_PROBES), units.n_rows)):
        is_open = (owners < 0) & differ(values, values[0]).any(axis=0)
        if is_open.any():
            rows = np.unique(np.linspace(0, units.n_rows - 1, n_probes).astype(np.intp))
            owners[is_open] = _probe(units, transform, values, rows)[is_open]
    drawn = (Random.of(0, b"", "features").uniforms(units.n, _N_CHECKED) * units.n_rows).astype(np.intp)
    answered = features_of(transform, units.inputs(drawn))
    row_of_unit = np.append(drawn, np.zeros((1, _N_CHECKED), dtype=np.intp), axis=0)
    expected = np.take_along_axis(values, row_of_unit[owners].T, axis=0)  # the last row is that of owner -1
    wrong = np.flatnonzero(differ(answered, expected).any(axis=0))
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
        found += differ(features_of(transform, units.inputs(mixed)), values[rows]).any(axis=0) << bit
    return np.where(found > units.n, units.n, found) - 1  # a mixture of units fails the check


def features_of(transform: Transform, inputs: Any) -> np.ndarray:
    """Return the features (n, m) of model inputs of n rows."""
    return np.asarray(transform(inputs), dtype=np.float64)


def differ(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return where two arrays differ; missing values are equal."""
    return np.asarray((first != second) & ~(np.isnan(first) & np.isnan(second)))
