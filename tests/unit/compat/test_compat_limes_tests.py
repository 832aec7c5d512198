"""LIME's own tests of its tabular explainer, run against ours: all of them pass.

LIME is published as source only, so the installed package contains its tests, ``lime.tests``. They are imported
from there, and only the explainer is replaced. They take their rows from NumPy's global generator, so a test here
sets its seed, which chooses a split of the rows.
"""

import unittest
import warnings

import numpy as np
import pytest
from lime.discretize import EntropyDiscretizer, QuartileDiscretizer

from anchorline.compat import LimeTabularExplainer

theirs = pytest.importorskip(
    "lime.tests.test_lime_tabular", reason="This installation of LIME leaves out LIME's own tests."
)
NAMES = unittest.TestLoader().getTestCaseNames(theirs.TestLimeTabular)


@pytest.fixture
def global_seed():
    """Return the function that seeds NumPy's global generator, whose state is restored afterwards."""
    state = np.random.get_state()  # noqa: NPY002
    yield np.random.seed
    np.random.set_state(state)  # noqa: NPY002


@pytest.mark.parametrize("name", NAMES)
def test_it_passes(name, monkeypatch, global_seed):
    global_seed(1)
    monkeypatch.setattr(theirs, "LimeTabularExplainer", LimeTabularExplainer)
    result = unittest.TestResult()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # "model_regressor has no effect in anchorline"
        theirs.TestLimeTabular(name).run(result)
    assert result.testsRun == 1
    assert not "".join(text for _, text in result.errors + result.failures)


def test_our_own_seed_decides_instead_of_the_discretizers(iris):
    """What LIME's two tests of random states assert, without the discretizers that they pass."""
    data, _ = iris
    predict = lambda rows: np.column_stack([np.sin(rows.sum(axis=1)) ** 2, np.cos(rows.sum(axis=1)) ** 2])  # noqa: E731
    first, again, other = (
        LimeTabularExplainer(data.data, random_state=seed).explain_instance(data.data[0], predict).as_map()
        for seed in (10, 10, 20)
    )
    assert first == again != other


def test_what_is_in_no_fact_has_weight_zero_and_the_weights_still_add_up(iris):
    data, _ = iris
    result = LimeTabularExplainer(data.data, feature_names=list("abcd")).explain_instance(
        data.data[0], lambda rows: np.column_stack([1 - rows[:, 2] / 10, rows[:, 2] / 10])
    )
    (text, weight), *others = result.as_list()
    assert text.startswith("c < ")
    assert others == [("a = 5.1", 0.0), ("b = 3.5", 0.0), ("d = 0.2", 0.0)]
    assert result.intercept[1] + weight == pytest.approx(result.predict_proba[1], abs=1e-12)
    assert [number for number, _ in result.as_map()[1]] == [2, 0, 1, 3]


def test_cut_points_of_a_discretizer_are_offered(iris):
    data, _ = iris
    explainers = {
        name: LimeTabularExplainer(data.data, discretizer=name, training_labels=data.target)
        for name in ("quartile", "decile", "entropy")
    }
    cuts = {name: explainer.table.cuts for name, explainer in explainers.items()}
    assert not cuts["quartile"]
    assert cuts["decile"][2].tolist() == np.unique(np.percentile(data.data[:, 2], range(10, 100, 10))).tolist()
    ours = EntropyDiscretizer(data.data, [], data.feature_names, data.target, random_state=0)
    assert [cuts["entropy"][j].tolist() for j in range(4)] == [
        np.unique(ours.mins[j][1:]).tolist() for j in range(4)
    ]
    given = LimeTabularExplainer(data.data, discretizer=ours)
    assert [given.table.cuts[j].tolist() for j in range(4)] == [cuts["entropy"][j].tolist() for j in range(4)]


def test_rows_with_given_statistics_have_them():
    rng = np.random.default_rng(0)
    rows = np.column_stack([rng.normal(40, 9, 500), rng.integers(0, 3, 500)])
    one = QuartileDiscretizer(rows, [1], ["age", "job"])
    binned = one.discretize(rows)
    found = [np.unique(binned[:, j], return_counts=True) for j in range(2)]
    stats = {
        "means": one.means,
        "stds": one.stds,
        "mins": one.mins,
        "maxs": one.maxs,
        "feature_values": {j: values.tolist() for j, (values, _) in enumerate(found)},
        "feature_frequencies": {j: (counts / 500).tolist() for j, (_, counts) in enumerate(found)},
    }
    explainer = LimeTabularExplainer(
        np.zeros((2, 2)), feature_names=["age", "job"], categorical_features=[1], training_data_stats=stats
    )
    made = explainer._numbers
    assert np.percentile(made[:, 0], [10, 25, 50, 75, 90]) == pytest.approx(
        np.percentile(rows[:, 0], [10, 25, 50, 75, 90]), abs=3.0
    )
    assert explainer.feature_frequencies[1] == pytest.approx(found[1][1] / 500, abs=2e-3)
    assert abs(np.corrcoef(made.T)[0, 1]) < 0.1
