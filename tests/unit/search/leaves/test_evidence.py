"""Sums over leaves equal plain enumeration of all neighbors, weighted by their law."""

import math

import numpy as np
import pytest

import anchorline as al
from anchorline.search.leaves.joining import find_features
from anchorline.search.leaves.row import LeafRow
from anchorline.search.leaves.sums import LeafSums
from anchorline.search.sampling import cancelling_event
from anchorline.spaces.base import Law
from helpers.forests import grow, neighbors

P = 0.3
NAMES = ["a", "b", "c", "d"]
LIMITS = [[1.0, 2.0, 3.0, 4.0], [0.0, 1.0, 2.0], [0.0, 1.0, 2.0, 3.0, 4.0], [-0.5, 0.0, 0.5]]
CUTS = {"a": [2, 4], "b": [1, 2, 3], "c": [1, 3], "d": [0.0]}


def as_floats(inputs):
    return np.asarray(inputs, dtype=np.float64)


def table_of(rng, n=9):
    columns = [rng.integers(0, 6, n), rng.integers(0, 4, n), rng.integers(0, 5, n), rng.normal(size=n).round(1)]
    table = np.column_stack(columns).astype(float)
    table[rng.random(table.shape) < 0.1] = np.nan
    return table


def leaf_row(ensemble, table, row, transform=as_floats):
    """The row as the trees see it, with an output range of length 2."""
    neighborhood = table.at(row)
    n_literals, changes = len(neighborhood.literals), neighborhood.changes
    law = Law.of_literals(n_literals, P) if changes is None else Law.of_changes(changes, n_literals, P)
    sums = LeafSums.of(ensemble, find_features(table, transform))
    values = transform(neighborhood.original)
    answer = float(ensemble.evaluate(values)[0, 0])
    return LeafRow(sums, values, neighborhood.sources, law, answer, 1.0), neighborhood


def enumerated(ensemble, array, row, groups, neighborhood, *, redraw=False):
    """Probabilities, drops and flips of all neighbors."""
    rows = [dict(zip(NAMES, each, strict=True)) for each in array.tolist()]
    own = dict(zip(NAMES, row, strict=True))
    literals = [
        [each.text for each in neighborhood.literals if each.name == name]
        for name in [" and ".join(g) for g in groups]
    ]
    chances, values, flips = zip(*neighbors(rows, own, groups, literals, P, redraw=redraw), strict=True)
    answers = ensemble.evaluate(np.array([[each[name] for name in NAMES] for each in values]))[:, 0]
    at_row = ensemble.evaluate(np.array([[own[name] for name in NAMES]], dtype=float))[0, 0]
    return np.array(chances), (at_row - answers) / 2, np.array(flips, dtype=float).reshape(len(chances), -1)


def check(leaves, neighborhood, chances, drops, flips):
    evidence = leaves.evidence(leaves.drop_square)
    assert chances.sum() == pytest.approx(1, abs=1e-12)
    assert evidence.drop_mean == pytest.approx(chances @ drops, abs=1e-12)
    assert evidence.drop_square == pytest.approx(chances @ drops**2, abs=1e-12)
    assert evidence.flip_means == pytest.approx(chances @ flips, abs=1e-12)
    assert evidence.second_moments == pytest.approx(flips.T @ (flips * chances[:, None]), abs=1e-12)
    assert evidence.cross_moments == pytest.approx(flips.T @ (chances * drops), abs=1e-12)
    assert leaves.explainable <= evidence.drop_square + 1e-12
    for support in ([0], [0, flips.shape[1] - 1]):
        contributions = np.zeros(flips.shape[1])
        contributions[support] = 1.0, *[-1.0] * (len(set(support)) - 1)
        inside = np.abs(flips @ contributions) < 1e-9
        event = cancelling_event(contributions, leaves.law)
        assert event.probability == pytest.approx(chances[inside].sum(), abs=1e-12)
        expected = (chances * drops**2)[inside].sum() / chances[inside].sum()
        assert leaves.drop_square_given(event) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("within", ["keep", "redraw"])
@pytest.mark.parametrize("literals", ["intervals", "bounds", "thresholds"])
@pytest.mark.parametrize("seed", range(4))
def test_leaf_sums_equal_enumeration(seed, literals, within):
    rng = np.random.default_rng(seed)
    array = table_of(rng)
    ensemble = grow(rng, 4, 4, LIMITS, categories=(2,) if seed % 2 else (), strict=seed > 1)
    row = array[0].tolist()
    if seed == 3:
        row[0], row[3] = math.nan, 99.0  # missing, and unlike all training rows
    table = al.Table(array, names=NAMES, cuts=CUTS, within=within, literals=literals)
    leaves, neighborhood = leaf_row(ensemble, table, row)
    groups = [[name] for name in NAMES]
    check(leaves, neighborhood, *enumerated(ensemble, array, row, groups, neighborhood, redraw=within == "redraw"))


@pytest.mark.parametrize("seed", range(4))
def test_groups_and_fixed_columns_equal_enumeration(seed):
    rng = np.random.default_rng(seed)
    array = table_of(rng)
    ensemble = grow(rng, 4, 5, LIMITS, categories=(1,) if seed % 2 else ())
    row = array[1].tolist()
    row[1], row[2] = 7.0, 8.0  # a combination that no training row has, and a fixed value that none has
    cuts = {name: CUTS[name] for name in "abd"}
    table = al.Table(array, names=NAMES, cuts=cuts, groups={"a and b": ["a", "b"]}, fixed=["c"])
    leaves, neighborhood = leaf_row(ensemble, table, row)
    check(leaves, neighborhood, *enumerated(ensemble, array, row, [["a", "b"], ["d"]], neighborhood))


def test_features_of_an_encoder_are_found_and_their_sums_equal_enumeration():
    rng = np.random.default_rng(5)
    array = np.nan_to_num(table_of(rng, n=12), nan=1.0)

    def one_hot(inputs):
        values = as_floats(inputs)
        return np.column_stack(
            [values[:, 1:2] * 2, *(values[:, [2]] == level for level in range(5)), values[:, 0]]
        )

    ensemble = grow(rng, 5, 4, [[0.0, 2.0, 4.0], *[[0.5]] * 5, LIMITS[0]])
    table = al.Table(array, names=NAMES, cuts=CUTS, literals="intervals")
    leaves, neighborhood = leaf_row(ensemble, table, array[0].tolist(), one_hot)
    rows = [dict(zip(NAMES, each, strict=True)) for each in array.tolist()]
    literals = [[each.text] for each in neighborhood.literals]
    all_of = zip(*neighbors(rows, rows[0], [[name] for name in NAMES], literals, P), strict=True)
    chances, values, flips = (np.array(each) for each in all_of)
    inputs = np.array([[each[name] for name in NAMES] for each in values])
    drops = (ensemble.evaluate(one_hot(array[:1])) - ensemble.evaluate(one_hot(inputs)))[:, 0] / 2
    check(leaves, neighborhood, chances, drops, flips.astype(float))


def test_trees_without_a_test_and_unused_attributes():
    rng = np.random.default_rng(0)
    array = np.nan_to_num(table_of(rng), nan=1.0)
    leaves, _ = leaf_row(
        grow(rng, 3, 0, LIMITS), al.Table(array, names=NAMES, cuts=CUTS, literals="intervals"), array[0].tolist()
    )
    assert leaves.drop_square == leaves.explainable == leaves.evidence().drop_mean == 0
    assert not leaves.has_effect.any()
    leaves, _ = leaf_row(
        grow(rng, 3, 2, LIMITS[:1]),
        al.Table(array, names=NAMES, cuts=CUTS, literals="intervals"),
        array[0].tolist(),
    )
    assert leaves.has_effect.tolist() == [True, False, False, False]
