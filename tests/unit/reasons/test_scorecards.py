"""Reasons of planted scorecards equal both methods of 12 CFR 1002.9(b)(2), comment 5, computed by plain code."""

import itertools

import numpy as np
import pandas as pd
import pytest

import anchorline as al
from helpers.scorecards import Scorecard, below_average, just_passing

N = 200
FEWEST = 0.05  # of the largest shortfall: less is not a principal reason


def cases():
    """A declined applicant per scorecard, with the threshold that declines about half of all applicants."""
    for seed in range(N):
        card = Scorecard(seed)
        scores = card(card.frame)
        threshold = float(np.quantile(scores, 0.5))
        yield seed, card, threshold, int(np.argsort(scores)[len(scores) // (3 + seed % 7)])


def check(found, card, truth, where):
    """Sizes lie within their limits, and reasons and order are those of the truth wherever the limits decide."""
    names = card.frame.columns.tolist()
    by_name = dict(zip(names, truth, strict=True))
    inside = [each.low - 1e-6 <= by_name[each.attribute] <= each.high + 1e-6 for each in found.shortfalls]
    stated = [reason.attribute for reason in found]
    least = FEWEST * max(truth)
    right = [names[j] for j in np.argsort(-truth, kind="stable") if truth[j] >= least][:4]
    if not found.near_ties:
        assert set(stated) == set(right), where
    assert set(right) <= {*stated, *found.near_ties}, where
    for first, second in itertools.pairwise(stated):
        if found.shortfall(first).low > found.shortfall(second).high:
            assert by_name[first] > by_name[second], where
    return all(inside), stated == right


def test_reasons_are_those_of_both_methods_of_the_comment():
    outcomes = []
    for seed, card, threshold, place in cases():
        explainer = al.Explainer(card, card.frame, output="points", threshold=threshold)
        row = card.frame.iloc[[place]]
        for kind, rows in (("all", card.frame), ("near", just_passing(card, threshold))):
            truth = below_average(card, row, rows)
            if max(truth) <= 0:
                continue
            found = explainer.reasons(row, reference=kind)
            assert found.reference.n_rows == len(rows)
            outcomes.append(check(found, card, truth, (seed, kind)))
    inside, same_order = np.mean(outcomes, axis=0)
    assert len(outcomes) > 1.9 * N
    assert inside > 0.97  # all sizes of a list hold together with 95%
    assert same_order > 0.97


def test_an_interaction_is_part_of_the_reasons():
    """Two columns that only count together: each gets what it adds on average over the other, kept or replaced."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.integers(0, 2, (400, 3)), columns=["a", "b", "c"])

    def score(rows):
        return 1.0 * rows["a"].to_numpy() * rows["b"].to_numpy() + 0.1 * rows["c"].to_numpy()

    explainer = al.Explainer(score, frame, output="points", threshold=0.5)
    found = explainer.reasons({"a": 0, "b": 0, "c": 0}, reference="all")
    share_a, share_b, share_c = frame.mean()
    truth = {"a": share_a * share_b / 2, "b": share_b * share_a / 2, "c": 0.1 * share_c}
    for name, value in truth.items():
        assert found.shortfall(name).low <= value <= found.shortfall(name).high


@pytest.mark.parametrize("seed", range(3))
def test_shortfalls_read_from_leaves_are_those_of_all_copies(seed):
    from sklearn.ensemble import RandomForestRegressor

    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"a": rng.integers(0, 3, 60), "b": rng.integers(0, 2, 60), "c": rng.integers(0, 3, 60)})
    target = frame["a"] * frame["b"] - frame["c"] + rng.normal(size=60)
    model = RandomForestRegressor(5, random_state=0).fit(frame, target)
    explainer = al.Explainer(model, frame, output="points", threshold=5.0)
    row = frame.iloc[int(model.predict(frame).argmin())].tolist()
    found = explainer.reasons(row, reference=frame[20:])
    assert found.source == "leaves"
    pools = [frame[20:][name].to_numpy() for name in frame]
    for j, name in enumerate(frame):
        others = [k for k in range(3) if k != j]
        means = []
        for own in (pools[j], [row[j]]):
            total = 0.0
            for keeps in np.ndindex(2, 2):
                values = [[row[k]] if keep else pools[k] for k, keep in zip(others, keeps, strict=True)]
                grid = np.meshgrid(own, *values, indexing="ij")
                rows = pd.DataFrame(
                    {n: g.ravel() for n, g in zip([name, *(frame.columns[k] for k in others)], grid, strict=False)}
                )
                total += model.predict(rows[frame.columns]).mean() / 4
            means.append(total)
        assert found.shortfall(name).value == pytest.approx(means[0] - means[1], abs=1e-9)


def test_seeds_give_the_same_reasons_where_no_tie_is_disclosed():
    card = Scorecard(7)
    threshold = float(np.median(card(card.frame)))
    explainer = al.Explainer(
        lambda rows: np.tanh(card(rows) / 40), card.frame, output="s", threshold=np.tanh(threshold / 40)
    )
    declined = np.flatnonzero(card(card.frame) < threshold)[:10]
    n_same = n_clear = 0
    for place in declined:
        found = [explainer.reasons(card.frame.iloc[place], seed=seed) for seed in range(5)]
        if not any(each.near_ties for each in found):
            n_clear += 1
            n_same += len({frozenset(reason.attribute for reason in each) for each in found}) == 1
    assert n_clear >= 5
    assert n_same >= 0.95 * n_clear
