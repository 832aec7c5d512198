"""One model, two cohorts: the attributes behind a difference, and alarms that are never false for long."""

import numpy as np
import pytest

import anchorline as al
from anchorline.errors import ParameterError
from anchorline.render import comparisons
from benchmarks import compare as planted


def score(rows):
    return rows[:, 0] + 0.5 * rows[:, 1]


def test_differences_of_an_additive_model_add_up_to_that_of_its_average():
    rng = np.random.default_rng(0)
    before, after = rng.normal(size=(400, 3)), rng.normal(size=(400, 3)) + np.array([1.0, 0.0, 2.0])
    drift = al.compare(score, score, before, after, n=200, output="score")
    assert [each.attribute for each in drift.drifted] == ["x0"]
    assert drift.is_real
    total = sum(each.change.value for each in drift.attributes)
    assert total == pytest.approx(drift.change.value, abs=0.1)
    assert drift.change.low < 1.0 < drift.change.high
    assert type(drift).from_json(drift.to_json()) == drift
    assert "x0" in str(drift)
    assert "<h1>" in drift.to_html()


def test_a_monitor_adds_up_batches_and_knows_nothing_before_30_rows():
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(300, 2))
    explainer = al.Explainer(score, al.Table(rows), output="score")
    one, many = (al.Monitor(explainer, rows, n=60) for _ in range(2))
    later = rng.normal(size=(60, 2)) + np.array([2.0, 0.0])
    assert one.update(later[:20]) is None
    whole, parts = many.update(later), [one.update(later[20:40]), one.update(later[40:])]
    assert parts[-1].change.value == pytest.approx(whole.change.value)
    assert parts[-1].change.low == pytest.approx(whole.change.low)
    assert whole.is_real
    assert one.update(later[:0]).n_after == 60  # an empty batch changes nothing


def test_false_alarms_in_a_thousand_looks_are_rare_and_a_shift_is_seen_soon():
    same, shifted = planted.monitoring(runs=40)
    assert same["alarms"] <= 0.05
    assert shifted["alarms"] == 1.0
    assert shifted["median_rows"] <= 3 * shifted["fixed_size"]


def test_models_without_an_average_are_refused():
    rows = np.random.default_rng(0).normal(size=(100, 2))
    with pytest.raises(ParameterError, match="no average"):
        al.compare(labels, labels, rows, rows, n=30, task="label")
    with pytest.raises(ParameterError, match="at least 30"):
        al.compare(score, score, rows, rows[:10], n=30)
    with pytest.raises(ParameterError, match="but one output is compared"):
        al.compare(three, three, rows, rows, n=30, classes=["a", "b", "c"])


def labels(rows):
    return np.where(rows[:, 0] > 0, "yes", "no")


def three(rows):
    return np.column_stack([rows[:, 0] > 0, rows[:, 0] < -1, (rows[:, 0] <= 0) & (rows[:, 0] >= -1)]).astype(float)


def test_numbers_of_one_line_have_one_number_of_decimals_and_zero_no_sign():
    assert comparisons._signed(0.4, 0.013, -0.3) == ("+0.40", "+0.01", "-0.30")
    assert comparisons._signed(1.2, -1e-6, 0.0) == ("+1.200", "0.000", "0.000")
