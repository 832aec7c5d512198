"""LIME's own tests of its tabular explainer, run against ours: they pass except for the documented differences.

LIME is published as source only, so the installed package contains its tests, ``lime.tests``. They are imported
from there, and only the explainer is replaced. They take their rows from NumPy's global generator, so a test here
sets its seed, which chooses a split of the rows.
"""

import pathlib
import re
import unittest
import warnings

import numpy as np
import pytest

from anchorline.compat import LimeTabularExplainer

theirs = pytest.importorskip(
    "lime.tests.test_lime_tabular", reason="This installation of LIME leaves out LIME's own tests."
)
NAMES = unittest.TestLoader().getTestCaseNames(theirs.TestLimeTabular)
PAGE = pathlib.Path(__file__).parents[3] / "docs" / "coming-from-lime.md"

# The documented differences: LIME's test, and what it meets here.
DIFFERENCES = {
    "testFeatureNamesAndCategoricalFeats": "has no attribute 'categorical_features'",
    "testFeatureValues": "has no attribute 'feature_values'",
    "test_lime_explainer_entropy_discretizer": "ParameterError: discretizer is 'entropy'",
    "test_lime_explainer_good_regressor_synthetic_data": "AssertionError: 10 != ",  # facts of no gain are left out
    "test_lime_explainer_sparse_synthetic_data": "AssertionError: 10 != ",
    "test_lime_explainer_with_data_stats": "ParameterError: training_data_stats was given",
    "test_lime_tabular_explainer_equal_random_state": "ParameterError: discretizer is <lime.discretize",
    "test_lime_tabular_explainer_not_equal_random_state": "ParameterError: discretizer is <lime.discretize",
}


@pytest.fixture
def global_seed():
    """Return the function that seeds NumPy's global generator, whose state is restored afterwards."""
    state = np.random.get_state()  # noqa: NPY002
    yield np.random.seed
    np.random.set_state(state)  # noqa: NPY002


@pytest.mark.parametrize("name", NAMES)
def test_it_passes_or_is_a_documented_difference(name, monkeypatch, global_seed):
    global_seed(1)
    monkeypatch.setattr(theirs, "LimeTabularExplainer", LimeTabularExplainer)
    result = unittest.TestResult()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # "model_regressor has no effect in anchorline"
        theirs.TestLimeTabular(name).run(result)
    assert result.testsRun == 1
    errors = "".join(text for _, text in result.errors + result.failures)
    assert bool(errors) == (name in DIFFERENCES), errors
    assert DIFFERENCES.get(name, "") in errors


def test_our_own_seed_decides_instead_of_the_discretizers(iris):
    """What LIME's two tests of random states assert, without the discretizers that they pass."""
    data, _ = iris
    predict = lambda rows: np.column_stack([np.sin(rows.sum(axis=1)) ** 2, np.cos(rows.sum(axis=1)) ** 2])  # noqa: E731
    first, again, other = (
        LimeTabularExplainer(data.data, random_state=seed).explain_instance(data.data[0], predict).as_map()
        for seed in (10, 10, 20)
    )
    assert first == again != other


def test_the_page_lists_exactly_these_differences():
    text = PAGE.read_text(encoding="utf-8")
    if "`k=n + 1`" in text:
        pytest.skip("the page of 0.1")
    section = text.partition("## LIME's own tests")[2].partition("\n## ")[0]
    assert sorted(re.findall(r"`(test\w+)`", section)) == sorted(DIFFERENCES)
    assert set(DIFFERENCES) <= set(NAMES)
