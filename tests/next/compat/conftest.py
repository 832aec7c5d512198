"""Models and rows for the tests of LIME's and SHAP's interfaces."""

import matplotlib as mpl
import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

mpl.use("Agg")


def classifier(data, **keywords):
    return RandomForestClassifier(10, random_state=0, **keywords).fit(data.data, data.target)


@pytest.fixture(scope="session")
def iris():
    data = load_iris()
    return data, classifier(data)


@pytest.fixture(scope="session")
def cancer():
    data = load_breast_cancer()
    return data, classifier(data)


@pytest.fixture(scope="session")
def diabetes():
    data = load_diabetes(scaled=False)
    return data, RandomForestRegressor(10, random_state=0).fit(data.data, data.target)


@pytest.fixture(scope="session")
def mixed():
    """Two columns of numbers and two of categories, coded as integers as LIME needs them."""
    rng = np.random.default_rng(0)
    jobs, sexes = ["nurse", "cook", "pilot"], ["female", "male"]
    rows = np.column_stack(
        [rng.normal(40, 9, 500).round(), rng.integers(0, 3, 500), rng.integers(0, 2, 500), rng.normal(3, 1, 500)]
    )

    def predict_proba(rows):
        p = 1 / (1 + np.exp(5 - rows[:, 0] / 10 - 1.5 * (rows[:, 1] == 1) - 0.5 * rows[:, 2]))
        return np.column_stack([1 - p, p])

    keywords = {
        "feature_names": ["age", "job", "sex", "pay"],
        "class_names": ["no", "yes"],
        "categorical_features": [1, 2],
        "categorical_names": {1: jobs, 2: sexes},
        "random_state": 0,
    }
    return rows, predict_proba, keywords
