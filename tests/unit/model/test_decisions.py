"""The decision is what the model's own `predict` says, also where that is not the most probable class."""

import inspect
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import FixedThresholdClassifier, GridSearchCV, TunedThresholdClassifierCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.utils import all_estimators

from anchorline.errors import PredictorOutputError
from anchorline.explainer import Explainer
from anchorline.model.outputs import MOST_PROBABLE, ByPredict, own_rule, resolve
from anchorline.model.predictor import Questions
from anchorline.spaces.table import Table
from anchorline.verify import verify

RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(RNG.normal(size=(400, 4)), columns=list("abcd"))
SCORE = FRAME["a"] + 0.5 * FRAME["b"] + 0.3 * RNG.normal(size=400)
TARGET = np.where(SCORE > 0, "good", "bad")
THREE = np.array(["high", "low", "middle"])[np.digitize(SCORE, [-0.6, 0.6]) - 1]


class CostSensitive(ClassifierMixin, BaseEstimator):
    """A classifier of one's own, whose `predict` weighs the classes by what a mistake costs; it counts rows."""

    def __init__(self, costs=(1.0, 1.0, 4.0)):
        self.costs = costs

    def fit(self, rows, target):
        self.inner_ = LogisticRegression().fit(rows, target)
        self.classes_ = self.inner_.classes_
        self.n_scored_ = self.n_predicted_ = 0
        return self

    def predict_proba(self, rows):
        self.n_scored_ += len(rows)
        return self.inner_.predict_proba(rows)

    def predict(self, rows):
        self.n_predicted_ += len(rows)
        weights = np.array(self.costs[: len(self.classes_)])
        return self.classes_[(self.inner_.predict_proba(rows) * weights).argmax(axis=1)]


class Whimsical(CostSensitive):
    """Its `predict` does not follow from its scores."""

    def predict(self, rows):
        self.n_predicted_ += len(rows)
        return np.where(np.asarray(rows)[:, 3] > 0.3, "good", "bad")


def fixed(**choices):
    return FixedThresholdClassifier(LogisticRegression(), **choices)


MODELS = {
    "fixed": fixed(threshold=0.8),
    "fixed for the other class": fixed(threshold=0.9, pos_label="bad"),
    "fixed by margins": fixed(threshold=1.5, response_method="decision_function"),
    "automatic": fixed(),
    "tuned": TunedThresholdClassifierCV(LogisticRegression(), scoring="balanced_accuracy", cv=3),
    "in a pipeline": make_pipeline(StandardScaler(), fixed(threshold=0.8)),
    "around a pipeline": FixedThresholdClassifier(
        make_pipeline(StandardScaler(), LogisticRegression()), threshold=0.8
    ),
    "in a search": GridSearchCV(fixed(), {"threshold": [0.8]}, cv=2),
    "frozen": FrozenEstimator(fixed(threshold=0.8).fit(FRAME, TARGET)),
    "costs": CostSensitive(costs=(5.0, 1.0)),
    "whims": Whimsical(),
    "ties": GradientBoostingClassifier(n_estimators=1, max_depth=1, init="zero"),
}


@pytest.mark.parametrize("queries", [400, "auto"])
@pytest.mark.parametrize("name", MODELS)
def test_the_explained_class_is_the_one_that_predict_names(name, queries):
    """With "auto", the table says how `predict` follows from scores; with a number it is asked as well."""
    model = MODELS[name].fit(FRAME, TARGET)
    explainer = Explainer(model, Table(FRAME))
    named = model.predict(FRAME)
    unlike = np.flatnonzero(named != model.classes_[model.predict_proba(FRAME).argmax(axis=1)])
    for row in [0, 1, *unlike[:2].tolist()]:
        e = explainer.explain(row, k=3, queries=queries)
        assert e.output.decision == e.output.name == named[row]
        column = model.classes_.tolist().index(named[row])
        assert e.prediction == pytest.approx(model.predict_proba(FRAME[row : row + 1])[0, column])
        assert e.output.kind == "class"


@pytest.mark.parametrize("name", ["fixed", "tuned", "costs", "whims"])
def test_shares_count_what_predict_says(name):
    """The share of all neighbors that keep the label is the same, whether labels or classes are explained."""
    model = MODELS[name].fit(FRAME, TARGET)
    labels = Explainer(model, Table(FRAME), task="label").explain(3, k=3)
    classes = Explainer(model, Table(FRAME)).explain(3, k=3)
    assert max(labels.all.low, classes.all.low) <= min(labels.all.high, classes.all.high)
    assert classes.all.value == pytest.approx(labels.all.value, abs=0.1)


@pytest.mark.parametrize(("name", "is_once"), [("costs", True), ("whims", False)])
def test_every_answer_is_counted_and_predict_is_asked_only_where_scores_do_not_tell(name, is_once):
    model = MODELS[name].fit(FRAME, TARGET)
    explainer = Explainer(model, Table(FRAME))
    explainer.check()
    assert (model.n_scored_, model.n_predicted_) == (len(FRAME), len(FRAME))
    model.n_scored_ = model.n_predicted_ = 0
    e = explainer.explain(3)
    assert e.queries.total == model.n_scored_ + model.n_predicted_
    assert (model.n_predicted_ == 0) is is_once
    assert e.queries.asks_twice is not is_once


def test_a_number_of_queries_counts_both_answers():
    model = MODELS["costs"].fit(FRAME, TARGET)
    e = Explainer(model, Table(FRAME)).explain(3, queries=401)
    assert model.n_scored_ == model.n_predicted_ == e.queries.total / 2 <= 200
    assert e.rows is None


def test_a_threshold_is_read_and_costs_no_second_call():
    model = MODELS["fixed for the other class"].fit(FRAME, TARGET)
    target = resolve(model)
    assert not isinstance(target.ask, ByPredict)
    assert target.rule == {"column": 0, "threshold": 0.9}
    e = Explainer(model, Table(FRAME)).explain(0, k=2, queries=600)
    assert not e.queries.asks_twice
    assert verify(e, model, Table(FRAME), seed=1).holds


def test_a_model_that_chooses_otherwise_does_not_verify():
    model = LogisticRegression().fit(FRAME, TARGET)
    strict = FixedThresholdClassifier(FrozenEstimator(model), threshold=0.95).fit(FRAME, TARGET)
    e = Explainer(strict, Table(FRAME), output="good").explain(0, k=2)
    assert not verify(e, model, Table(FRAME), seed=1).holds


def test_a_threshold_of_the_caller_replaces_the_model_s_decision():
    model = MODELS["costs"].fit(FRAME, TARGET)
    explainer = Explainer(model, Table(FRAME), output="good", threshold=0.3)
    assert explainer.target.rule is None
    e = explainer.explain(0, k=2, queries=600)
    assert (e.output.kind, e.output.threshold, e.output.name) == ("threshold", 0.3, "good")
    side = "at or above 0.3" if e.prediction >= 0.3 else "below 0.3"
    assert e.output.decision == side


@pytest.mark.parametrize("model", [SVC(probability=True, random_state=0), CostSensitive()])
def test_three_classes_and_calibrated_margins(model):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # scikit-learn will drop probability=True
        model.fit(FRAME, THREE)
    explainer = Explainer(model, Table(FRAME))
    named = model.predict(FRAME)
    unlike = np.flatnonzero(named != model.classes_[model.predict_proba(FRAME).argmax(axis=1)])
    assert len(unlike)
    e = explainer.explain(int(unlike[0]), k=2)
    assert e.output.decision == named[unlike[0]]
    assert e.queries.asks_twice


def test_predict_replaced_on_the_object_decides():
    model = RandomForestClassifier(3, random_state=0).fit(FRAME, TARGET)
    assert resolve(model).rule is None
    model.predict = lambda rows: np.where(model.predict_proba(rows)[:, 1] > 0.9, "good", "bad")
    assert resolve(model).rule == {"method": "predict"}


def test_a_passed_method_has_the_decision_of_its_estimator():
    model = MODELS["fixed"].fit(FRAME, TARGET)
    assert resolve(model.predict_proba).rule == {"column": 1, "threshold": 0.8}
    assert resolve(model.predict, task="label").rule is None


class Bare:
    """An object with the two methods and no list of classes."""

    def __init__(self, labels):
        self.labels = labels

    def predict_proba(self, rows):
        return np.tile([0.7, 0.3], (len(rows), 1))

    def predict(self, rows):
        return np.array([self.labels] * len(rows))


@pytest.mark.filterwarnings("ignore::anchorline.errors.SetupWarning")  # a model of one class
@pytest.mark.parametrize("queries", [200, "auto"])
def test_labels_without_a_list_of_classes_are_columns_or_refused(queries):
    table = Table(FRAME)
    for labels, name in ((1, "class 1"), (0.25, "class 0"), ([0.7, 0.3], "class 0")):
        assert Explainer(Bare(labels), table).explain(0, k=2, queries=queries).output.name == name
    with pytest.raises(PredictorOutputError, match=r"`predict` returned .*'no'.*Pass classes="):
        Explainer(Bare("no"), table).explain(0, k=2, queries=queries)
    named = Explainer(Bare("no"), table, classes=["yes", "no"])
    assert named.explain(0, k=2, queries=queries).output.name == "no"


def classifiers():
    """Every classifier of scikit-learn that has probabilities and needs no other estimator."""
    for name, kind in all_estimators("classifier"):
        if hasattr(kind, "predict_proba") or name in ("SVC", "NuSVC"):
            needed = [p for p in inspect.signature(kind).parameters.values() if p.default is p.empty]
            if not needed and name != "SelfTrainingClassifier":
                yield name, kind


@pytest.mark.parametrize(("name", "kind"), list(classifiers()))
@pytest.mark.parametrize("n_classes", [2, 3])
def test_every_classifier_of_scikit_learn_decides_as_its_predict(name, kind, n_classes):
    """On a coarse grid with as many rows of each class in places, so that ties occur."""
    rows = np.array([[i % 3, i // 3 % 3, i % 2] for i in range(72)], dtype=float)
    target = np.arange(72) * 7 % 5 % n_classes
    model = kind()
    settings = {"max_iter": 30, "probability": True, "n_estimators": 4, "random_state": 0, "radius": 5.0}
    model.set_params(**{key: value for key, value in settings.items() if key in model.get_params()})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(rows, target)
        if not hasattr(model, "predict_proba"):
            pytest.skip("no probabilities with these settings")
        scores = Questions(resolve(model)).ask(rows, len(rows))
        np.testing.assert_array_equal(model.classes_[scores.named], model.predict(rows))
        np.testing.assert_array_equal(scores.values, model.predict_proba(rows))


def test_common_classifiers_are_queried_once_per_row():
    assert own_rule(RandomForestClassifier()) is None
    assert "RandomForestClassifier" in MOST_PROBABLE
    assert own_rule(MODELS["costs"]) == {"method": "predict"}
