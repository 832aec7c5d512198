"""The columns of a model are found in a table by name; the others are held fixed and never passed on."""

import lightgbm
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import xgboost
from catboost import CatBoostClassifier
from sklearn.compose import ColumnTransformer, make_column_selector, make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from anchorline.errors import SetupWarning
from anchorline.explainer import Explainer
from anchorline.model.features import DROPPED, OfColumns, match_columns
from anchorline.model.loaders import load_model
from anchorline.result.verification import Outcome
from anchorline.spaces.table import Table
from anchorline.verify import verify

RNG = np.random.default_rng(0)
ROWS = pd.DataFrame(RNG.normal(size=(200, 3)), columns=["income", "total debt", "age"])
SCORE = ROWS["income"] - ROWS["total debt"]
TARGET = np.where(SCORE > 0, "good", "bad")
FULL = ROWS.assign(id=np.arange(200), target=TARGET)[["target", "age", "income", "id", "total debt"]]
FEW = {"k": 3, "queries": 600}


def cat_boost():
    return CatBoostClassifier(iterations=5, verbose=0, thread_count=1, allow_writing_files=False)


ESTIMATORS = {
    "logistic regression": LogisticRegression(),
    "pipeline": make_pipeline(StandardScaler(), LogisticRegression()),
    "search": GridSearchCV(RandomForestClassifier(5, random_state=0), {"max_depth": [2]}, cv=2),
    "xgboost": xgboost.XGBClassifier(n_estimators=5, n_jobs=1),
    "lightgbm": lightgbm.LGBMClassifier(n_estimators=5, n_jobs=1, verbose=-1),
    "catboost": cat_boost(),
}


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.filterwarnings("ignore::anchorline.errors.SetupWarning")
def test_extra_and_reordered_columns_change_nothing_but_what_is_fixed(name):
    model = ESTIMATORS[name].fit(ROWS, (TARGET == "good").astype(int))
    for frame in (FULL, FULL[["age", "income", "total debt"]]):
        explainer = Explainer(model, Table(frame))
        e = explainer.explain(0, **FEW)
        assert e.prediction == model.predict_proba(ROWS[:1])[0, int(e.output.name)]
        assert {*explainer.space.at(0).names} == {*ROWS}
        extra = [column for column in frame if column not in ROWS]
        assert [*explainer.space.at(0).held] == extra


def boosters():
    labels = (TARGET == "good").astype(int)
    underscored = ROWS.rename(columns={"total debt": "total_debt"})
    yield xgboost.XGBClassifier(n_estimators=5, n_jobs=1).fit(ROWS, labels).get_booster()
    yield lightgbm.LGBMClassifier(n_estimators=5, n_jobs=1, verbose=-1).fit(underscored, labels).booster_


@pytest.mark.parametrize("booster", list(boosters()), ids=["xgboost", "lightgbm"])
@pytest.mark.filterwarnings("ignore::anchorline.errors.SetupWarning")
def test_boosters_and_their_files_know_their_columns(booster, tmp_path):
    path = tmp_path / ("model.json" if "xgboost" in type(booster).__module__ else "model.txt")
    booster.save_model(path)
    for model in (booster, load_model(path)):
        assert match_columns(model, list(FULL)).positions == (2, 4, 1)
        explainer = Explainer(model, Table(FULL))
        explainer.explain(0, **FEW)
        assert {*explainer.space.at(0).held} == {"target", "id"}


@pytest.mark.parametrize("convert", [pl.from_pandas, pa.Table.from_pandas, lambda frame: frame])
def test_columns_are_selected_from_every_kind_of_frame(convert):
    frame = convert(FULL)
    chosen = OfColumns(lambda rows: rows, (2, 4))(frame)
    assert type(chosen) is type(frame)
    names = getattr(chosen, "column_names", None) or list(chosen.columns)
    assert names == ["income", "total debt"]
    np.testing.assert_array_equal(OfColumns(lambda rows: rows, (1, 0))(np.eye(2)), np.eye(2)[::-1])


def test_the_columns_that_a_column_transformer_drops_are_held_fixed():
    dropping = make_column_transformer((StandardScaler(), ["income", "total debt"]))
    model = make_pipeline(dropping, LogisticRegression()).fit(FULL, TARGET)
    explainer = Explainer(model, Table(FULL))
    explainer.explain(0, **FEW)
    assert {*explainer.space.at(0).held} == {"target", "age", "id"}
    assert explainer.check() == ()  # it is the model's own choice, so nobody is warned


@pytest.mark.parametrize(
    "columns",
    [[0, 2], slice(0, 3, 2), [True, False, True], ["income", "age"], lambda frame: ["income", "age"], [-1, 0]],
)
def test_columns_of_a_transformer_in_every_form(columns):
    model = ColumnTransformer([("scale", StandardScaler(), columns)]).fit(ROWS)
    assert dict(match_columns(model, list(ROWS)).ignored) == {"total debt": DROPPED}


def test_a_remainder_that_is_passed_on_is_used():
    passing = ColumnTransformer([("scale", StandardScaler(), ["age"])], remainder="passthrough").fit(ROWS)
    assert not match_columns(passing, list(ROWS)).ignored
    selecting = ColumnTransformer([("n", StandardScaler(), make_column_selector(dtype_include=float))]).fit(FULL)
    assert {*match_columns(selecting, list(FULL)).ignored} == {"target", "id"}
    by_number = ColumnTransformer([("scale", StandardScaler(), [0])]).fit(ROWS.to_numpy())
    assert {*match_columns(by_number, ["a", "b", "c"]).ignored} == {"b", "c"}
    assert not match_columns(by_number, ["a", "b"]).ignored


def test_the_options_that_leave_columns_out_are_complete():
    model = LogisticRegression().fit(ROWS, TARGET)
    more = FULL.assign(**{"a b": 0, "c": 1})
    text = next(each.text for each in Explainer(model, more).findings if each.code == "unknown-columns")
    assert "(on the command line, add --target target --target id --target 'a b' --target c)" in text


def test_names_that_are_not_the_table_s_say_nothing():
    model = LogisticRegression().fit(ROWS, TARGET)
    for names in (["a", "b", "c"], ["income", "age"], []):
        match = match_columns(model, names)
        assert (match.positions, dict(match.ignored)) == (None, {})
    assert match_columns(lambda rows: rows, list(FULL)).positions is None
    assert match_columns(model.predict_proba, list(FULL)).unknown == ("target", "id")


def test_a_group_with_a_column_of_the_model_stays_together():
    model = LogisticRegression().fit(ROWS, TARGET)
    table = Table(FULL, groups={"person": ["age", "id"]}, fixed=["target"])
    explainer = Explainer(model, table)
    assert "person" in explainer.space.at(0).names
    assert explainer.space.at(0).held == ("target",)


def test_an_explanation_with_left_out_columns_verifies_with_its_model_only():
    model, table = LogisticRegression().fit(ROWS, TARGET), Table(FULL[["target", *ROWS, "id"]])
    with pytest.warns(SetupWarning, match="not fitted on 'target', 'id'"):
        e = Explainer(model, table).explain(0, **FEW)
    assert verify(e, model, table, seed=1).holds
    nameless = verify(e, lambda rows: model.predict_proba(rows[list(ROWS)]), table, seed=1)
    assert nameless.outcome is Outcome.CANNOT_TELL
    assert nameless.codes == ("no_columns",)
