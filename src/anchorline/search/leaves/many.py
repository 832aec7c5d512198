"""Many rows at once: their moments by sums over leaves, and their best sums, as arrays."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from anchorline.model.predictor import Predictor
from anchorline.search.investigate import Choice
from anchorline.search.leaves.joined import JoinedTrees
from anchorline.search.leaves.joining import NotSeparableError
from anchorline.search.leaves.moments import leaf_moments
from anchorline.search.leaves.outcomes import Outcomes
from anchorline.search.leaves.row import LeafRow
from anchorline.search.leaves.solving import BestSums, best_sums
from anchorline.search.leaves.sums import Drawn, LeafSums
from anchorline.settings import Settings
from anchorline.spaces.base import Law
from anchorline.spaces.table import Table, TableNeighborhood
from anchorline.spaces.table_rows import RowWays, TableRows, changes_alone

_EDGES_AT_ONCE = 500_000  # edges times rows, so that arrays of a few megabytes stay in the processor's cache
_FEWEST_ROWS = 16


def can_solve(table: Table, settings: Settings) -> bool:
    """Return whether many rows of a table are solved together: no certificate, and independent attributes."""
    usual = settings.objective == "fidelity" and settings.pairs is None and settings.solver == "exact"
    alone = settings.n_certify == 0 and settings.alternatives == 0
    unlimited = settings.max_queries is None and settings.budget is None
    return usual and alone and unlimited and changes_alone(table)


@dataclass(frozen=True, eq=False)
class SolvedRows:
    """Rows of one output whose best sums were found together, without a certificate.

    ``values`` (n, features) are as the trees see them. ``answers``, ``means`` (n,) and ``covariances``
    (attributes, ways, n) are those of the trees and of their drops.
    """

    sums: LeafSums
    values: np.ndarray
    answers: np.ndarray
    means: np.ndarray
    covariances: np.ndarray
    best: BestSums

    def choice(self, row: int, predictor: Predictor) -> Choice | None:
        """Return the best sum of a row; None if the row must be solved by itself."""
        return self.best.choice(row, predictor.scaled_prediction, predictor.origin)

    def leaf_row(self, row: int, neighborhood: TableNeighborhood, law: Law, half_range: float) -> LeafRow:
        """Return a row as `JoinedTrees.row` does, with the moments that are known."""
        known = float(self.means[row]), self.covariances[..., row]
        values, answer = self.values[row : row + 1], float(self.answers[row])
        return LeafRow(self.sums, values, neighborhood.sources, law, answer, half_range, known)


def solve_rows(
    trees: JoinedTrees, rows: TableRows, predictors: Sequence[Predictor], settings: Settings
) -> dict[int, tuple[SolvedRows, int]]:
    """Return where rows were solved, by their numbers; rows that are missing must be explained one by one."""
    values, ways = np.asarray(trees.transform(rows.inputs), dtype=np.float64), rows.ways
    solved: dict[int, tuple[SolvedRows, int]] = {}
    for column in dict.fromkeys(predictor.column for predictor in predictors):
        own = np.array([i for i, predictor in enumerate(predictors) if predictor.column == column])
        try:
            sums = trees.column(column)
        except NotSeparableError:
            continue
        answers = sums.ensemble.evaluate(values[own])[:, 0]
        pairs = zip(own, answers.tolist(), strict=True)
        fine = [trees.doubt(sums, values[[i]], answer, predictors[i]) is None for i, answer in pairs]
        own, answers = own[fine], answers[fine]
        one_way = ~(ways.sizes[:, 2:, own] > 0).any(axis=(0, 1))  # the closed form by sorting applies to these
        for kind in (one_way, ~one_way):
            if kind.any():
                given = [predictors[i] for i in own[kind]]
                part = _solve(sums, values[own[kind]], answers[kind], ways.take(own[kind]), given, settings)
                solved |= {int(i): (part, place) for place, i in enumerate(own[kind]) if part.best.solved[place]}
    return solved


def _solve(
    sums: LeafSums,
    values: np.ndarray,
    answers: np.ndarray,
    ways: RowWays,
    predictors: Sequence[Predictor],
    settings: Settings,
) -> SolvedRows:
    """Solve rows of one output, which all change in one way per attribute, or all do not."""
    p, half_ranges = settings.flip_probability, _each(predictors, "half_range")
    drawn = Drawn.of_rows(ways, p)
    means, covariances = sums.drops(answers, *_moments(sums, values, drawn), half_ranges)
    outcomes = Outcomes(drawn.weights, ways.breaks, means, covariances)
    posed = {
        "predictions": _each(predictors, "scaled_prediction"),
        "origins": _each(predictors, "origin"),
        "k": settings.k,
        "box": settings.box,
    }
    one_way = not (ways.sizes[:, 2:] > 0).any()
    problems = (outcomes.independent if one_way else outcomes.grouped)(p, None, posed)
    changing = outcomes.changing[0] if one_way else outcomes.changing
    best = best_sums(problems, changing, sums.rounding(half_ranges), keep_noise=settings.keep_noise)
    return SolvedRows(sums, values, answers, means, covariances, best)


def _moments(sums: LeafSums, values: np.ndarray, drawn: Drawn) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean output (n,), and its covariances with the outcomes of attributes, (attributes, ways, n)."""
    n_ways = drawn.weights.shape[1] - 1
    means, covariances = np.empty(len(values)), np.empty((sums.n_attributes, n_ways, len(values)))
    step = max(_FEWEST_ROWS, _EDGES_AT_ONCE // max(1, sums.paths.n_edges))
    for start in range(0, len(values), step):
        own = slice(start, start + step)
        part = drawn.take(own)
        parts = sums.weighted(sums.shares(values[own], part), part.weights)
        found = leaf_moments(sums.paths, parts, part.weights, sums.paths.values[:, 0])
        means[own], covariances[..., own] = found
    return means, covariances


def _each(predictors: Sequence[Predictor], name: str) -> Any:
    return np.array([getattr(predictor, name) for predictor in predictors])
