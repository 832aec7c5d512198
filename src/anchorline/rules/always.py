"""What is always so: decisions of trees that stay for every altered copy with the facts, as a theorem.

A decision is a few sums of trees that must all be positive. Of each tree, the least value of the leaves that can
be reached with the facts is known exactly: a leaf is reached if each attribute on its path has a value that may
occur and passes all of its tests. The sum of these least values bounds the sum of the trees from below. If the
bound is not positive, the values of one attribute are divided in two, until it is, or until one value of every
attribute is left, which is a counterexample. Values that pass the same tests are one.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import EllipsisType
from typing import Any

import numpy as np

from anchorline.model.outputs import Target
from anchorline.model.trees import Reading
from anchorline.model.trees.ensemble import Ensemble
from anchorline.model.trees.reading import Forms, ReadableTrees, allowed_error
from anchorline.search.case import Case
from anchorline.search.leaves import Classes, NotSeparableError, Paths, admitted
from anchorline.search.trees import JoinedTrees
from anchorline.spaces.base import Space
from anchorline.spaces.table import Table, TableNeighborhood

MOST_NODES = 400  # of one proof
_N_COMPARED = 64  # neighbors on which trees and model must answer alike


class TreeDecisions:
    """The decisions of a model's trees on a table, read on first use; the constructor asks nothing."""

    def __init__(self, trees: ReadableTrees, space: Space) -> None:
        self._trees, self._space = trees, space
        self._joined: JoinedTrees | EllipsisType | None = ...
        self._sums: dict[bytes, _Sum | None] = {}

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_joined": ..., "_sums": {}}  # every process reads them for itself

    def at(self, case: Case, within: float | None) -> "Prover | None":
        """Return what proves that a case's decision stays; None if it cannot be read off trees.

        The model is asked about a few neighbors, on which the trees must answer alike.
        """
        predictor = case.predictor
        if predictor.is_label or "threshold" in (predictor.target.rule or ()) or not case.neighborhood.is_product:
            return None
        joined = self._join(predictor.target)
        if joined is None:
            return None
        reading, goals = joined.reading, list(_goals(case, within))
        forms = [Forms.of(kind, wanted, reading, predictor.column or 0) for kind, wanted in goals]
        own = joined.features(case.neighborhood.original)[0]
        if None in forms or joined.is_strange(own):
            return None
        donors = case.draw("rule/trees", 0, min(_N_COMPARED, case.n_left // 8))
        inputs = case.neighborhood.realize(donors)
        scores = predictor.questions.ask(inputs, donors.shape[1])
        allowed = allowed_error(reading, predictor.target, case.neighborhood.realize(donors), scores)
        if allowed is None:
            return None
        sums = [self._sum(joined, column) for form in forms if form is not None for column in form.weights.T]
        offsets = [float(offset) for form in forms if form is not None for offset in form.offsets]
        if any(each is None for each in sums):
            return None
        known = [each for each in sums if each is not None]
        assert isinstance(case.neighborhood, TableNeighborhood)
        return Prover(case, case.neighborhood, known, offsets, own, 2 * allowed)

    def _join(self, target: Target) -> JoinedTrees | None:
        if isinstance(self._joined, EllipsisType):
            self._joined = self._read(target)
        return self._joined

    def _read(self, target: Target) -> JoinedTrees | None:
        table = self._space
        if not isinstance(table, Table) or table.neighbors != "independent" or table.valid is not None:
            return None
        reading = self._trees.of(target)
        if reading is None:
            return None
        try:
            return JoinedTrees.of(reading, reading.transform, table)
        except Exception:  # not separable; or a preparation refuses values, as the model will when it is asked
            return None

    def _sum(self, joined: JoinedTrees, weights: np.ndarray) -> "_Sum | None":
        key = weights.tobytes()
        if key not in self._sums:
            self._sums[key] = _Sum.of(joined, _weighted(joined.reading, weights))
        return self._sums[key]


def _goals(case: Case, within: float | None) -> Iterator[tuple[str, float]]:
    """Yield what must be so for the decision to stay."""
    predictor = case.predictor
    if within is not None:
        yield ">=", predictor.prediction - within
        yield "<=", predictor.prediction + within
    elif predictor.output.threshold is not None:
        is_above = predictor.prediction >= predictor.output.threshold
        yield ">=" if is_above else "<", predictor.output.threshold
    else:
        assert predictor.class_ is not None  # labels are not read off trees
        yield "class", predictor.class_


def _weighted(reading: Reading, weights: np.ndarray) -> Ensemble:
    """Return the sum of the columns of the trees' answers with these weights (columns,)."""
    if reading.is_mirrored:
        return reading.ensemble.weighted({0: float(weights[1] - weights[0])})
    return reading.ensemble.weighted({column: float(weight) for column, weight in enumerate(weights) if weight})


@dataclass(frozen=True, slots=True, eq=False)
class _Sum:
    """A sum of trees, its paths, and the classes of values that they distinguish."""

    ensemble: Ensemble
    paths: Paths
    classes: Classes

    @classmethod
    def of(cls, joined: JoinedTrees, ensemble: Ensemble) -> "_Sum | None":
        names = [attribute.name for attribute in joined.table.attributes]
        owners = np.where(joined.owners < 0, len(names), joined.owners)
        paths = Paths.of(ensemble, owners)
        try:
            return cls(ensemble, paths, Classes.of(ensemble, paths, names, joined.pool))
        except NotSeparableError:
            return None

    def least(self, allowed: np.ndarray, own: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the bound from below, and which edges can be reached, (edges,).

        ``allowed`` (classes,) says which classes of values may occur, ``own`` (edges,) which edges the row's own
        values pass where they may occur.
        """
        paths, classes = self.paths, self.classes
        until = np.concatenate([[0], np.cumsum(allowed)])
        alive = (until[classes.highs] > until[classes.lows]) | own
        alive |= np.bincount(classes.pair_edges, allowed[classes.pair_classes], minlength=len(alive)) > 0
        alive = np.append(alive, True)  # the root
        for level in paths.levels:
            alive[level] &= alive[paths.above[level]]
        values = np.where(alive[paths.leaf_edges], paths.values, np.inf)
        return float(np.minimum.reduceat(values, paths.begins).sum() + paths.constant), alive[:-1]


@dataclass(frozen=True, eq=False)
class Prover:
    """Proves that a case's decision stays for all altered copies with some facts."""

    case: Case
    neighborhood: TableNeighborhood
    sums: Sequence[_Sum]
    offsets: Sequence[float]
    features: np.ndarray
    tolerance: float
    _known: dict[tuple[int, ...], bool | None] = field(default_factory=dict, repr=False)

    def is_always(self, facts: Sequence[int]) -> bool | None:
        """Return whether the decision always stays with these facts; None if that was not found out."""
        key = tuple(sorted(facts))
        if key not in self._known:
            answers = [
                self._is_positive(each, offset, facts)
                for each, offset in zip(self.sums, self.offsets, strict=True)
            ]
            self._known[key] = False if False in answers else None if None in answers else True
        return self._known[key]

    def _is_positive(self, each: _Sum, offset: float, facts: Sequence[int]) -> bool | None:
        table, candidates = self.neighborhood.table, self.neighborhood.candidates
        classes, n_attributes = each.classes, len(table.attributes)
        allowed = classes.counts > 0
        for fact in facts:
            attribute, view = int(candidates.groups[fact]), int(candidates.views[fact])
            true = table.donors_at(view, np.arange(*self.neighborhood.views.span(fact)))
            allowed[classes.attributes == attribute] = False
            allowed[classes.codes[attribute, true]] = True
        admits = admitted(each.ensemble, each.paths, self.features)
        waiting, n_nodes = [(allowed, np.ones(n_attributes + 1, dtype=bool))], 0
        while waiting:
            if self.case.check is not None:
                self.case.check()
            allowed, owns = waiting.pop()
            bound, alive = each.least(allowed, admits & owns[each.paths.attribute])
            if bound + offset > self.tolerance:
                continue
            n_options = np.bincount(classes.attributes[allowed], minlength=n_attributes) + owns[:-1]
            if (n_options <= 1).all() and bound + offset < -self.tolerance:
                return False
            if (n_options <= 1).all() or n_nodes >= MOST_NODES:  # a tie, or too many values
                return None
            tested = np.bincount(each.paths.attribute[alive], minlength=n_attributes + 1)[:-1]
            attribute = int(np.where(n_options > 1, tested + 1, 0).argmax())
            waiting += _halves(
                allowed, owns, np.flatnonzero(allowed & (classes.attributes == attribute)), attribute
            )
            n_nodes += 1
        return True


def _halves(
    allowed: np.ndarray, owns: np.ndarray, options: np.ndarray, attribute: int
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the two halves of the values of an attribute; the own value is in the second."""
    first, second, none, half = allowed.copy(), allowed.copy(), owns.copy(), (len(options) + 1) // 2
    if not owns[attribute]:
        half = len(options) // 2
    none[attribute] = False
    first[options[half:]], second[options[:half]] = False, False
    return [(first, none), (second, owns)]


def widest_always(
    prover: Prover, facts_of: Mapping[int, np.ndarray], shares: np.ndarray, views: Sequence[int]
) -> tuple[int, ...] | None:
    """Return the widest facts about some views with which the decision always stays; None if there are none.

    Facts that are contained in others for which it stays always keep it, too. So the narrowest facts decide, and
    each end is then moved outward as far as possible, by halving; wider other facts never allow more.
    """
    candidates = prover.neighborhood.candidates
    chosen = {view: int(own[shares[own].argmin()]) for view, own in facts_of.items() if view in views}
    if prover.is_always(list(chosen.values())) is not True:
        return None
    for view in views:
        own = facts_of[view]
        for end, other, outward in (
            (candidates.first, candidates.last, -1),
            (candidates.last, candidates.first, 1),
        ):
            wider = own[(other[own] == other[chosen[view]]) & (outward * end[own] >= outward * end[chosen[view]])]
            wider = wider[np.argsort(outward * end[wider], kind="stable")]
            low, high = 0, len(wider) - 1
            while low < high:
                middle = (low + high + 1) // 2
                if prover.is_always([*(chosen | {view: int(wider[middle])}).values()]) is True:
                    low = middle
                else:
                    high = middle - 1
            chosen[view] = int(wider[low])
    return tuple(chosen[view] for view in views)
