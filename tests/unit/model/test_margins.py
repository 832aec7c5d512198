"""`output_scale="margin"`: the margins of classifiers in their own units, by every library and wrapper."""

import catboost
import lightgbm
import numpy as np
import pandas as pd
import pytest
import xgboost
from sklearn.base import clone
from sklearn.ensemble import (
    AdaBoostClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import FixedThresholdClassifier, GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from anchorline.cli.app import app
from anchorline.errors import ParameterError
from anchorline.explainer import Explainer
from anchorline.model.loaders import load_model
from anchorline.model.outputs import margins_of, resolve
from anchorline.result.explanation import Explanation
from anchorline.result.verification import Outcome
from anchorline.spaces.table import Table
from anchorline.verify import verify

ROWS = pd.DataFrame(np.random.default_rng(0).normal(size=(120, 3)).round(3), columns=["income", "debt", "age"])
SCORE = ROWS.income - ROWS.debt
TWO, THREE = (SCORE > 0).astype(int).to_numpy(), np.digitize(SCORE, [-1, 1])
SMALL = {"n_estimators": 5, "random_state": 0}
QUIET = {"n_estimators": 5, "verbose": -1, "n_jobs": 1}
CAT = {"iterations": 5, "verbose": 0, "allow_writing_files": False, "thread_count": 1}
CHEAP = {"k": 3, "queries": 600}


def sigmoid(margins):
    return 1 / (1 + np.exp(-margins))


BOOSTED = {
    "histograms": HistGradientBoostingClassifier(max_iter=5),
    "boosting": GradientBoostingClassifier(**SMALL),
    "xgboost": xgboost.XGBClassifier(n_estimators=5, n_jobs=1),
    "lightgbm": lightgbm.LGBMClassifier(**QUIET),
    "catboost": catboost.CatBoostClassifier(**CAT),
    "logistic": LogisticRegression(),
    "pipeline": make_pipeline(StandardScaler(), xgboost.XGBClassifier(n_estimators=5, n_jobs=1)),
    "search": GridSearchCV(lightgbm.LGBMClassifier(**QUIET), {"max_depth": [2]}, cv=2),
}


@pytest.mark.parametrize("name", BOOSTED)
def test_the_margin_of_two_classes_is_their_log_odds(name):
    model = clone(BOOSTED[name]).fit(ROWS, TWO)
    margins, called = margins_of(model, model.classes_)
    answers = margins(ROWS)
    assert called == "log-odds"
    assert answers.shape == (len(ROWS), 2)
    assert (answers[:, 0] == -answers[:, 1]).all()
    assert sigmoid(answers[:, 1]) == pytest.approx(model.predict_proba(ROWS)[:, 1], abs=1e-6)


@pytest.mark.parametrize("name", BOOSTED)
def test_the_margins_of_three_classes_are_one_per_class(name):
    model = clone(BOOSTED[name]).fit(ROWS, THREE)
    margins, called = margins_of(model, model.classes_)
    powers = np.exp(margins(ROWS))
    assert called == "margin"
    assert powers / powers.sum(axis=1, keepdims=True) == pytest.approx(model.predict_proba(ROWS), abs=1e-6)


@pytest.mark.parametrize(
    "model",
    [
        GradientBoostingClassifier(loss="exponential", **SMALL),
        lightgbm.LGBMClassifier(sigmoid=2, **QUIET),
        AdaBoostClassifier(n_estimators=5),
        LinearSVC(),
    ],
    ids=lambda model: type(model).__name__,
)
def test_other_margins_are_not_called_log_odds(model):
    assert margins_of(model.fit(ROWS, TWO), model.classes_)[1] == "margin"


def test_files_and_boosters_have_the_margins_of_their_estimators(tmp_path):
    boosted = clone(BOOSTED["xgboost"]).fit(ROWS, TWO)
    light = clone(BOOSTED["lightgbm"]).fit(ROWS, TWO)
    boosted.save_model(tmp_path / "model.json")
    light.booster_.save_model(tmp_path / "model.txt")
    for model, forms in (
        (boosted, (boosted.get_booster(), load_model(tmp_path / "model.json"))),
        (light, (light.booster_, load_model(tmp_path / "model.txt"))),
    ):
        own = resolve(model, output_scale="margin")
        for form in forms:
            target = resolve(form, output_scale="margin")
            assert (target.scale, target.classes) == ("log-odds", (0, 1))
            assert target.ask(ROWS) == pytest.approx(own.ask(ROWS), abs=1e-12)


def explained(model, **choices):
    explainer = Explainer(model, Table(ROWS), output_scale="margin", **choices)
    return explainer, explainer.explain(0, **CHEAP)


def test_explanations_add_up_in_log_odds_and_verify():
    model = HistGradientBoostingClassifier(max_iter=5).fit(ROWS, np.where(TWO, "paid", "declined"))
    explainer, e = explained(model, output="declined")
    margin = model.decision_function(ROWS[:1])[0]
    assert e.prediction == pytest.approx(-margin)
    assert e.base + e.contributions.sum() == pytest.approx(-margin)
    assert (e.output.name, e.output.scale, e.output.is_probability) == ("declined", "log-odds", False)
    assert "log-odds of declined = " in str(e)
    assert e.output.choices.output_scale == "margin"
    on_table = Explainer(model, explainer.space, output="declined", output_scale="margin").explain(0).output
    margins = -model.decision_function(ROWS)  # "auto" asks about the table
    assert (on_table.low, on_table.high) == (margins.min(), margins.max())
    assert verify(e, model, explainer.space).outcome is Outcome.HOLDS
    other = HistGradientBoostingClassifier(max_iter=4).fit(ROWS, np.where(TWO, "paid", "declined"))
    assert verify(e, other, explainer.space).outcome is not Outcome.HOLDS
    assert Explanation.from_json(e.to_json()) == e
    many = explainer.explain_many(ROWS[:2], **CHEAP)
    assert many[0].to_json() == e.to_json()


def test_the_scale_is_recorded_only_where_it_is_set():
    model = HistGradientBoostingClassifier(max_iter=5).fit(ROWS, TWO)
    for scale in (None, "probability"):
        e = Explainer(model, Table(ROWS), output_scale=scale).explain(0, **CHEAP)
        assert e.output.scale is None
        assert e.output.is_probability


def test_the_decision_is_the_one_of_the_model():
    inner = HistGradientBoostingClassifier(max_iter=5)
    model = FixedThresholdClassifier(inner, threshold=0.9, response_method="predict_proba").fit(ROWS, TWO)
    target = resolve(model, output_scale="margin")
    answers = target.ask(ROWS)
    assert answers[:, -1].tolist() == model.predict(ROWS).tolist()
    assert sigmoid(answers[:, 1]) == pytest.approx(model.predict_proba(ROWS)[:, 1])


def test_the_difference_of_two_margins():
    model = HistGradientBoostingClassifier(max_iter=5).fit(ROWS, THREE)
    explainer, e = explained(model, output=(2, 0))
    margins = model.decision_function(ROWS[:1])[0]
    assert e.prediction == pytest.approx(margins[2] - margins[0])
    assert "margin of class 2 minus that of class 0 = " in str(e)
    assert verify(e, model, explainer.space).outcome is Outcome.HOLDS


@pytest.mark.parametrize(
    "model",
    [RandomForestClassifier(**SMALL), LinearRegression(), xgboost.XGBRegressor(n_estimators=2)],
    ids=lambda model: type(model).__name__,
)
def test_models_without_margins_are_refused(model):
    with pytest.raises(ParameterError, match=f"a {type(model).__name__} has no margins of classes"):
        Explainer(model.fit(ROWS, TWO), Table(ROWS), output_scale="margin")


def test_wrong_scales_are_refused():
    model = LogisticRegression().fit(ROWS, TWO)
    with pytest.raises(ParameterError, match="'logit', but it must be 'margin'"):
        Explainer(model, Table(ROWS), output_scale="logit")
    with pytest.raises(ParameterError, match="margins need no task"):
        Explainer(model, Table(ROWS), output_scale="margin", task="label")
    with pytest.raises(ParameterError, match="has no margins"):
        Explainer(model.predict_proba, Table(ROWS), output_scale="margin")


def test_the_command_line_explains_margins(tmp_path, capsys):
    model = xgboost.XGBClassifier(n_estimators=5, n_jobs=1).fit(ROWS, TWO)
    model.save_model(tmp_path / "model.json")
    ROWS.to_csv(tmp_path / "train.csv", index=False)
    command = ["explain", str(tmp_path / "model.json"), "--data", str(tmp_path / "train.csv"), "--row", "4"]
    app([*command, "--output-scale", "margin", "-k", "3", "--queries", "300"], standalone_mode=False)
    assert "log-odds of " in capsys.readouterr().out
