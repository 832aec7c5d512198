"""What is always so: decisions of trees that stay for every altered copy with the facts, as a theorem.

A decision is a few sums of trees that must all be positive. Of each tree, the least value of the leaves that can
be reached with the facts is known exactly: a leaf is reached if each attribute on its path has a value that may
occur and passes all of its tests. The sum of these least values bounds the sum of the trees from below. If the
bound is not positive, the values of one attribute are divided in two, until it is, or until one value of every
attribute is left, which is a counterexample. Values that pass the same tests are one.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from anchorline.model.trees.reading import Forms, allowed_error
from anchorline.search.case import Case
from anchorline.search.leaves import LeafSums, admitted
from anchorline.search.trees import ModelTrees
from anchorline.spaces.table import TableNeighborhood

MOST_NODES = 400  # of one proof
_N_COMPARED = 64  # neighbors on which trees and model must answer alike


def prover_of(trees: ModelTrees, case: Case) -> "Prover | None":
    """Return what proves that a case's decision stays; None if it cannot be read off trees.

    The model is asked about a few neighbors, on which the trees must answer alike.
    """
    predictor, neighborhood = case.predictor, case.neighborhood
    if predictor.is_label or "threshold" in (predictor.target.rule or ()) or not neighborhood.is_product:
        return None
    joined = trees.joined(trees.deciding(predictor.target))
    if joined is None:
        return None
    reading = joined.reading
    forms = [Forms.of(kind, wanted, reading, predictor.column or 0) for kind, wanted in _goals(case)]
    own = joined.features(neighborhood.original)[0]
    if None in forms or joined.is_strange(own):
        return None
    n_compared = min(_N_COMPARED, case.n_left // 8)
    if not n_compared:
        return None
    donors = case.draw("rule/trees", 0, n_compared)
    scores = predictor.questions.ask(neighborhood.realize(donors), n_compared)
    allowed = allowed_error(reading, predictor.target, neighborhood.realize(donors), scores)
    if allowed is None:
        return None
    sums = [joined.sums(column) for form in forms if form is not None for column in form.weights.T]
    offsets = [float(offset) for form in forms if form is not None for offset in form.offsets]
    known = [each for each in sums if each is not None]
    assert isinstance(neighborhood, TableNeighborhood)  # only these are joined with trees
    return Prover(case, neighborhood, known, offsets, own, 2 * allowed) if len(known) == len(sums) else None


def _goals(case: Case) -> Iterator[tuple[str, float]]:
    """Yield what must be so for the decision to stay."""
    predictor, within = case.predictor, case.within
    if within is not None:
        yield ">=", predictor.prediction - within
        yield "<=", predictor.prediction + within
    elif predictor.output.threshold is not None:
        is_above = predictor.prediction >= predictor.output.threshold
        yield ">=" if is_above else "<", predictor.output.threshold
    else:
        assert predictor.class_ is not None  # labels are not read off trees
        yield "class", predictor.class_


@dataclass(frozen=True, eq=False)
class Prover:
    """Proves that a case's decision stays for all altered copies with some facts."""

    case: Case
    neighborhood: TableNeighborhood
    sums: Sequence[LeafSums]
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

    def _is_positive(self, each: LeafSums, offset: float, facts: Sequence[int]) -> bool | None:
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
