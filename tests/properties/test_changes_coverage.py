"""Shares with which changes turn: the intervals cover the share over all training values, by simulation."""

import numpy as np

import anchorline as al
from anchorline.model.predictor import Predictor
from anchorline.model.target import Target
from anchorline.search.changes.candidates import Candidates
from anchorline.search.changes.goal import Goal
from anchorline.search.changes.measure import measure
from anchorline.search.changes.questions import Questions
from anchorline.spaces.choices import choices_at
from anchorline.spaces.wishes import Wishes

RNG = np.random.default_rng(8)
TABLE = np.column_stack([RNG.integers(0, 60, 400), RNG.integers(0, 60, 400)]).astype(float)
ROW = np.array([-1.0, -1.0])


def questions(share):
    """A model that turns at random cells of a grid, with about this share of them; and the true share."""
    turns = np.random.default_rng(int(1000 * share)).random((62, 62)) < share

    def model(rows):
        cells = np.asarray(rows).astype(int) + 1
        return turns[cells[:, 0], cells[:, 1]] * 1.0

    table = al.Table(TABLE)
    neighborhood = table.at(ROW)
    candidates = Candidates.of(choices_at(table, neighborhood), Wishes(), {}, ())
    predictor = Predictor(Target(model, "number"), threshold=0.5)
    turns[0, 0] = False
    predictor.open(neighborhood.original)
    return Questions(candidates, predictor, Goal(">=", 0.5), 10**9), turns


def true_share(asked, turns, chosen):
    """The share over all pairs of training values at least as far away, by counting rows of the table."""
    limits = [
        asked.candidates.choices.attributes[a].numbers[asked.candidates.value[c]] for a, c in enumerate(chosen)
    ]
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
        for key in range(n_repeats):
            estimate = measure(asked, [chosen], [key * 10], n_measure=100, confidence=level)[1][0]
            assert not estimate.exact
            covered += estimate.low <= truth <= estimate.high
        # Clopper-Pearson intervals cover at least as often as promised; three standard errors for the simulation.
        assert covered / n_repeats >= level - 3 * np.sqrt(level * (1 - level) / n_repeats)


def test_small_sets_of_values_are_counted_exactly():
    asked, turns = questions(0.5)
    chosen = chosen_pair(asked, 50)
    estimate = measure(asked, [chosen], [0], n_measure=500, confidence=0.9)[1][0]
    assert estimate.exact
    assert abs(estimate.value - true_share(asked, turns, chosen)) < 1e-12
