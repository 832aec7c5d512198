"""Models whose answers are not a sum of trees, or whose trees cannot be read, are refused with a reason."""

import catboost
import lightgbm
import numpy as np
import pandas as pd
import pytest
import xgboost
from skl2onnx import to_onnx
from sklearn.base import TransformerMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import (
    AdaBoostRegressor,
    BaggingRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    StackingRegressor,
    VotingClassifier,
)
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor

import anchorline as al
from anchorline.model.loaders import load_model
from anchorline.model.outputs import NotReadableError, resolve
from anchorline.model.trees import Agreement, Reading, Refusal, agrees, read
from anchorline.model.trees.ensemble import MAX_VALUES, Tree, join

ROWS = np.random.default_rng(0).normal(size=(60, 2))
SCORE = ROWS[:, 0] + ROWS[:, 1] ** 2
LABELS = (SCORE > 1).astype(int)
FOREST = {"n_estimators": 3, "random_state": 0}
CAT = {"iterations": 3, "verbose": 0, "allow_writing_files": False, "thread_count": 1}
UNITS = {"func": np.exp, "inverse_func": np.log}
LIGHT = {"n_estimators": 3, "verbose": -1, "min_child_samples": 2}


def squared(truth, margin):
    return margin - truth, np.ones_like(margin)


class Wrapper:
    """A model of one's own around another one."""

    def __init__(self, model):
        self.model = model

    def predict(self, rows):
        """Answer like the inner model, twice as large."""
        return 2 * self.model.predict(rows)


class Doubled(DecisionTreeRegressor):
    """A tree whose class changes its answers."""

    def predict(self, rows, check_input=True):
        """Answer twice as large."""
        return 2 * super().predict(rows, check_input)


class Mixed(TransformerMixin, Doubled):
    """The same, behind a class of the library."""


class Twice(Pipeline):
    """A pipeline that changes the answers of its model."""

    def predict(self, rows):
        """Answer twice as large."""
        return 2 * super().predict(rows)


class Renamed(DecisionTreeRegressor):
    """A tree that answers like its base class."""


REFUSED = {
    "boosting of probabilities": (GradientBoostingClassifier(**FOREST), LABELS, "output_scale='margin'"),
    "histograms of probabilities": (HistGradientBoostingClassifier(max_iter=3), LABELS, "output_scale='margin'"),
    "xgboost's probabilities": (xgboost.XGBClassifier(n_estimators=3), LABELS, "output_scale='margin'"),
    "lightgbm's probabilities": (lightgbm.LGBMClassifier(**LIGHT), LABELS, "output_scale='margin'"),
    "first guess": (GradientBoostingRegressor(init=LinearRegression(), **FOREST), SCORE, "another model"),
    "counts": (HistGradientBoostingRegressor(loss="poisson", max_iter=3), LABELS, "(exponential)"),
    "counts of xgboost": (xgboost.XGBRegressor(objective="count:poisson"), LABELS, "(count:poisson)"),
    "counts of lightgbm": (lightgbm.LGBMRegressor(objective="poisson", **LIGHT), LABELS, "(poisson)"),
    "roots of lightgbm": (lightgbm.LGBMRegressor(reg_sqrt=True, **LIGHT), LABELS, "the square of the sum"),
    "linear leaves": (lightgbm.LGBMRegressor(linear_tree=True, **LIGHT), SCORE, "linear models"),
    "linear booster": (xgboost.XGBRegressor(booster="gblinear", n_estimators=3), SCORE, "has no trees"),
    "custom objective": (xgboost.XGBClassifier(objective=squared, n_estimators=3), LABELS, "custom objective"),
    "counts of catboost": (catboost.CatBoostRegressor(loss_function="Poisson", **CAT), LABELS, "(exponential)"),
    "medians": (AdaBoostRegressor(n_estimators=3), SCORE, "AdaBoostRegressor makes answers"),
    "bags of lines": (BaggingRegressor(LinearRegression(), n_estimators=3), SCORE, "not single decision trees"),
    "calibration": (CalibratedClassifierCV(RandomForestClassifier(**FOREST), cv=2), LABELS, "CalibratedClass"),
    "votes": (VotingClassifier([("a", RandomForestClassifier(**FOREST))], voting="soft"), LABELS, "VotingClass"),
    "stacks": (StackingRegressor([("a", RandomForestRegressor(**FOREST))], cv=2), SCORE, "StackingRegressor"),
    "other units": (TransformedTargetRegressor(DecisionTreeRegressor(), **UNITS), SCORE, "transformed"),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", REFUSED)
def test_refusals_say_why(name):
    model, answers, reason = REFUSED[name]
    refusal = read(model.fit(ROWS, answers), resolve(model))
    assert isinstance(refusal, Refusal)
    assert reason in refusal.reason
    assert refusal.reason[0].islower()
    assert not refusal.reason.endswith(".")


def test_other_models_are_sampled():
    forest = RandomForestClassifier(**FOREST)
    calibrated = CalibratedClassifierCV(forest, cv=2).fit(ROWS, LABELS)
    for model, source in ((forest.fit(ROWS, LABELS), "leaves"), (calibrated, "drawn")):
        assert al.Explainer(model, al.Table(ROWS)).explain(0, k=2, queries=100).queries.source == source


def test_labels_and_other_methods_are_refused():
    model = RandomForestClassifier(**FOREST).fit(ROWS, LABELS)
    assert "label" in read(model, resolve(model, task="label")).reason
    assert "label" in read(model.predict, resolve(model.predict, task="number")).reason
    assert "`predict_log_proba`" in read(model.predict_log_proba, resolve(model.predict_log_proba)).reason
    assert isinstance(read(model.predict_proba, resolve(model.predict_proba)), Reading)


def test_statistics_of_categories_are_refused():
    frame = pd.DataFrame({"city": list("abcdef") * 10, "income": ROWS[:, 0]})
    model = catboost.CatBoostRegressor(**CAT, cat_features=["city"]).fit(frame, SCORE + np.arange(60) % 6)
    assert "one_hot_max_size" in read(model, resolve(model)).reason


def test_several_classifications_are_refused():
    model = RandomForestClassifier(**FOREST).fit(ROWS, np.column_stack([LABELS, LABELS]))
    assert "several outputs" in read(model, resolve(lambda rows: rows)).reason


def test_a_search_without_its_best_model_is_refused():
    search = GridSearchCV(DecisionTreeRegressor(), {"max_depth": [1]}, cv=2, refit=False).fit(ROWS, SCORE)
    assert "refit=False" in read(search, resolve(lambda rows: rows)).reason


def test_a_regressor_with_its_own_objective_is_read_because_its_answers_are_sums():
    model = xgboost.XGBRegressor(objective=squared, n_estimators=3).fit(ROWS, SCORE)
    assert agrees(read(model, resolve(model)), model.predict(ROWS), ROWS)


def test_onnx_files_of_trees_are_refused_and_others_say_nothing(tmp_path):
    for number, model in enumerate((DecisionTreeRegressor(max_depth=2), LinearRegression())):
        path = tmp_path / f"{number}.onnx"
        path.write_bytes(to_onnx(model.fit(ROWS, SCORE), ROWS[:1].astype(np.float32)).SerializeToString())
    tree, line = (load_model(tmp_path / f"{number}.onnx") for number in (0, 1))
    assert "ONNX" in read(tree, resolve(tree)).reason
    assert read(line, resolve(line)) is None


def test_models_without_trees_say_nothing():
    for model in (LinearRegression().fit(ROWS, SCORE), lambda rows: rows[:, 0], np.mean):
        assert read(model, resolve(lambda rows: rows)) is None


def test_wrappers_and_subclasses_never_answer_as_the_model_inside():
    tree = DecisionTreeRegressor(max_depth=2).fit(ROWS, SCORE)
    assert "Wrapper" in read(Wrapper(tree), resolve(Wrapper(tree))).reason
    doubled = Doubled(max_depth=2).fit(ROWS, SCORE)
    changed = DecisionTreeRegressor(max_depth=2).fit(ROWS, SCORE)
    changed.predict = lambda rows: 2 * tree.predict(rows)
    mixed = Mixed(max_depth=2).fit(ROWS, SCORE)
    bagged = BaggingRegressor(Doubled(max_depth=2), n_estimators=2, random_state=0).fit(ROWS, SCORE)
    nested = make_pipeline(StandardScaler(), Twice([("tree", DecisionTreeRegressor(max_depth=2))])).fit(
        ROWS, SCORE
    )
    for model in (doubled, make_pipeline(StandardScaler(), doubled), changed, mixed, bagged, nested):
        assert "has a `predict` of its own" in read(model, resolve(lambda rows: rows)).reason
    assert isinstance(read(Renamed(max_depth=2).fit(ROWS, SCORE), resolve(tree)), Reading)
    agreement = agrees(read(tree, resolve(tree)), changed.predict(ROWS), ROWS)
    assert not agreement
    assert agreement.difference > agreement.allowed


def test_answers_of_another_shape_do_not_agree():
    tree = DecisionTreeRegressor(max_depth=2).fit(ROWS, SCORE)
    agreement = agrees(read(tree, resolve(tree)), np.zeros((len(ROWS) - 1, 1)), ROWS)
    assert agreement == Agreement(False, np.inf, 0.0)


def test_a_library_that_changes_its_format_is_refused():
    model = HistGradientBoostingRegressor(max_iter=2).fit(ROWS, SCORE)
    target = resolve(model)
    del model._predictors
    assert "could not be read (AttributeError" in read(model, target).reason


def test_continued_training_in_two_ways_is_refused():
    holes = np.where(ROWS < -0.5, 0.0, ROWS)
    first = lightgbm.LGBMRegressor(zero_as_missing=True, **LIGHT).fit(holes, SCORE)
    model = lightgbm.LGBMRegressor(**LIGHT).fit(holes, SCORE, init_model=first)
    assert "two ways" in read(model, resolve(model)).reason


def test_too_many_values_and_no_trees_are_refused():
    with pytest.raises(NotReadableError, match="no trees"):
        join([], base=np.zeros(1), strict=False, dtype="float64")
    nodes = np.zeros(2)
    leaf = Tree(
        feature=nodes - 1, threshold=nodes, left=nodes, right=nodes, missing_left=nodes, values=nodes, output=0
    )
    with pytest.raises(NotReadableError, match="too many"):
        join([leaf], base=np.zeros(MAX_VALUES), strict=False, dtype="float64")
