"""Shares with which changes turn: the intervals cover the share over all training values, by simulation."""

import numpy as np

from anchorline.changes.candidates import Candidates
from anchorline.changes.find import measured
from anchorline.changes.questions import ChangeQuestions, Goal
from anchorline.changes.settings import ChangeSettings
from anchorline.model.outputs import Target
from anchorline.model.predictor import Predictor, Questions
from anchorline.spaces.table import Table

RNG = np.random.default_rng(8)
TABLE = np.column_stack([RNG.integers(0, 60, 400), RNG.integers(0, 60, 400)]).astype(float)
ROW = np.array([-1.0, -1.0])


def questions(share):
    """A model that turns at random cells of a grid, with about this share of them; and the true share."""
    turns = np.random.default_rng(int(1000 * share)).random((62, 62)) < share

    def model(rows):
        cells = np.asarray(rows).astype(int) + 1
        return turns[cells[:, 0], cells[:, 1]] * 1.0

    table = Table(TABLE)
    neighborhood = table.at(ROW)
    candidates = Candidates.of(neighborhood, ChangeSettings(), None)
    predictor = Predictor(Questions(Target(model, "number")), threshold=0.5)
    turns[0, 0] = False
    predictor.open(neighborhood.original)
    return ChangeQuestions(candidates, predictor, Goal(">=", 0.5), 10**9, 4096, lambda: None), turns


def true_share(asked, turns, chosen):
    """The share over all pairs of training values at least as far away, by counting rows of the table."""
    columns, rows = asked.candidates.case.schema.columns, asked.candidates.rows
    limits = [columns[a].values[rows[c]] for a, c in enumerate(chosen)]
    first, second = (TABLE[TABLE[:, a] >= limit, a].astype(int) + 1 for a, limit in enumerate(limits))
    return turns[np.ix_(first, second)].mean()


def chosen_pair(asked, place):
    owners = asked.candidates.owner
    return tuple(int(np.flatnonzero(owners == a)[place]) for a in (0, 1))


def test_intervals_cover_the_share_of_all_training_values():
    n_repeats, level = 400, 0.9
    for share in (0.03, 0.5, 0.97):
        asked, turns = questions(share)
        chosen = chosen_pair(asked, 5)
        truth, covered = true_share(asked, turns, chosen), 0
        for seed in range(n_repeats):
            wanted = ChangeSettings(n_measure=100, confidence=level, seed=seed)
            estimate = measured(asked, [chosen], wanted, b"row")[0]
            assert not estimate.is_exact
            covered += estimate.low <= truth <= estimate.high
        # Clopper-Pearson intervals cover at least as often as promised; three standard errors for the simulation.
        assert covered / n_repeats >= level - 3 * np.sqrt(level * (1 - level) / n_repeats)


def test_small_sets_of_values_are_counted_exactly():
    asked, turns = questions(0.5)
    chosen = chosen_pair(asked, 50)
    estimate = measured(asked, [chosen], ChangeSettings(n_measure=500, confidence=0.9), b"row")[0]
    assert estimate.is_exact
    assert abs(estimate.value - true_share(asked, turns, chosen)) < 1e-12
