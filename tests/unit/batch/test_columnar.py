"""Rows of trees that are solved together: the same bytes as one by one, assembled when they are looked at."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import anchorline as al
from anchorline.batch import columnar
from anchorline.result.records import PendingRow

KEYWORDS = {"k": 4, "n_certify": 0}
pytestmark = pytest.mark.filterwarnings("ignore::anchorline.errors.SetupWarning")


def table(n=300):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(n, 5)).round(2), columns=list("abcde"))
    frame["f"] = rng.integers(0, 3, size=n)
    target = frame.a + frame.b * (frame.f == 1) + np.sin(frame.c) + rng.normal(size=n) / 10
    return frame, target


def intervals(frame, **options):
    return al.Table(frame, **({"literals": "intervals"} | options))


def forest(frame, target, **options):
    return RandomForestRegressor(8, max_depth=4, random_state=0, **options).fit(frame, target)


def with_categories():
    frame, target = table()
    frame["g"] = np.array(["red", "green", "blue"])[frame.f]
    frame.loc[::7, "g"] = "rare" + frame.index[::7].astype(str)
    encoder = ColumnTransformer([("g", OneHotEncoder(handle_unknown="ignore"), ["g"])], remainder="passthrough")
    return make_pipeline(encoder, forest(np.zeros((2, 1)), [0, 1])).fit(frame, target), frame, {}


def with_missing(**options):
    frame, target = table()
    frame.loc[::5, "a"] = np.nan
    model = HistGradientBoostingRegressor(max_iter=8, random_state=0).fit(frame, target)
    return model, frame, options


def of_classes():
    frame, target = table()
    classes = np.where(target > 0.5, "high", np.where(target > -0.5, "middle", "low"))
    return RandomForestClassifier(8, max_depth=4, random_state=0).fit(frame, classes), frame, {}


def of_margins():
    frame, target = table()
    model = HistGradientBoostingClassifier(max_iter=8, random_state=0).fit(frame, target > 0)
    return al.Explainer(model, intervals(frame), output_scale="margin"), frame, {}


def plain(**options):
    frame, target = table()
    return forest(frame, target), frame, options


def only_categories():
    frame, target = table()
    frame = (frame.round() % 3).astype(int).astype(str)
    model = make_pipeline(OneHotEncoder(), forest(np.zeros((2, 1)), [0, 1])).fit(frame, target)
    return model, frame, {"literals": "bounds"}


def of_array():
    frame, target = table()
    values = frame.to_numpy()
    return forest(values, target), values, {}


def of_polars():
    frame, target = table()
    return forest(frame, target), pl.from_pandas(frame), {}


SETTINGS = {
    "plain": plain,
    "redraw": lambda: plain(within="redraw"),
    "group": lambda: plain(groups={"pair": ["a", "f"]}),
    "fixed": lambda: plain(fixed=["b"]),
    "marginal": lambda: plain(draw="marginal"),
    "bounds": lambda: plain(literals="bounds"),
    "bounds, redraw": lambda: plain(literals="bounds", within="redraw"),
    "bounds, group": lambda: plain(literals="bounds", groups={"pair": ["a", "f"]}),
    "bounds, marginal": lambda: plain(literals="bounds", draw="marginal"),
    "bounds, missing": lambda: with_missing(literals="bounds"),
    "bounds, no numbers": only_categories,
    "categories": with_categories,
    "missing": with_missing,
    "classes": of_classes,
    "margins": of_margins,
    "array": of_array,
    "polars": of_polars,
}


def explainer_and_rows(name):
    model, frame, options = SETTINGS[name]()
    explainer = model if isinstance(model, al.Explainer) else al.Explainer(model, intervals(frame, **options))
    return explainer, frame[:15]


@pytest.mark.parametrize("name", SETTINGS)
def test_same_bytes_as_one_by_one(name):
    explainer, rows = explainer_and_rows(name)
    many = explainer.explain_many(rows, **KEYWORDS)
    n_pending = sum(isinstance(held, PendingRow) for held in many._held)
    assert n_pending > 10  # a few are left to the exact solver
    alone = [explainer.explain(i, **KEYWORDS).to_json() for i in range(len(many))]
    assert [e.to_json() for e in many] == alone
    assert all(e.certificate.by_leaves and e.is_proved and e.certificate.n_queries == 1 for e in many)


@pytest.mark.parametrize("name", ["plain", "bounds"])
@pytest.mark.parametrize("settings", [{"k": 1}, {"k": 9}, {"sigma": 3.0}, {"keep_noise": True}, {"box": None}])
def test_same_bytes_with_other_settings(settings, name):
    explainer, rows = explainer_and_rows(name)
    chosen = KEYWORDS | settings
    many = explainer.explain_many(rows, **chosen)
    assert [e.to_json() for e in many] == [explainer.explain(i, **chosen).to_json() for i in range(len(many))]


@pytest.mark.parametrize("literals", ["intervals", "bounds"])
def test_facts_without_effect_are_left_out(literals):
    frame, target = table()
    model = forest(frame * [1, 1, 0, 0, 0, 0], target)  # two of six columns are used
    explainer = al.Explainer(model, al.Table(frame, literals=literals))
    many = explainer.explain_many(frame[:10], k=6, n_certify=0)
    assert [e.to_json() for e in many] == [explainer.explain(i, k=6, n_certify=0).to_json() for i in range(10)]
    left_out = {e.certificate.n_left_out for e in many}
    assert left_out == {4} if literals == "intervals" else max(left_out) >= 4


@pytest.mark.parametrize("name", ["plain", "bounds"])
def test_equals_other_engines(name):
    explainer, rows = explainer_and_rows(name)
    here = explainer.explain_many(rows, **KEYWORDS)
    assert explainer.explain_many(rows, n_jobs=2, **KEYWORDS).records == here.records
    assert explainer.explain_many(rows, share_calls=True, **KEYWORDS).records == here.records


def test_rows_are_assembled_when_they_are_looked_at(monkeypatch):
    explainer, rows = explainer_and_rows("plain")
    built = []
    original = columnar.assemble
    monkeypatch.setattr(columnar, "assemble", lambda *args: built.append(1) or original(*args))
    many = explainer.explain_many(rows, **KEYWORDS)
    assert len(many) == 15
    assert not many.failures
    assert len(many[3:5].explained) == 2
    assert repr(many) == "Explanations(15 rows explained, 0 failed)"
    assert not built
    assert many[3] is many[3]
    assert len(built) == 1
    assert pickle.loads(pickle.dumps(many)) == many
    assert many.to_frame()["explanation"][3] == many[3].to_json()


def test_later_changes_of_the_frame_do_not_matter():
    explainer, rows = explainer_and_rows("plain")
    rows = rows.copy()
    many, expected = explainer.explain_many(rows, **KEYWORDS), explainer.explain(7, **KEYWORDS)
    rows.loc[:, :] = 0
    assert many[7] == expected


def test_rows_that_cannot_be_read_fail_alone():
    explainer, rows = explainer_and_rows("plain")
    rows = rows.astype(object)
    rows.iloc[4, 0] = "many"
    many = explainer.explain_many(rows, errors="keep", **KEYWORDS)
    assert [failure.row for failure in many.failures] == [4]
    assert many[5].to_json() == explainer.explain(5, **KEYWORDS).to_json()


def test_answers_that_depend_on_the_batch_are_not_taken_together():
    class Moody(RandomForestRegressor):
        def predict(self, X):
            return super().predict(X) * (1 + 1e-12 * (len(X) > 1))

    frame, target = table()
    explainer = al.Explainer(Moody(5, max_depth=3, random_state=0).fit(frame, target), intervals(frame))
    many = explainer.explain_many(frame[:5], **KEYWORDS)
    assert not any(isinstance(held, PendingRow) for held in many._held)


def test_thresholds_are_solved_one_by_one():
    frame, target = table()
    thresholds = al.Table(frame, literals="thresholds")
    many = al.Explainer(forest(frame, target), thresholds).explain_many(frame[:3], **KEYWORDS)
    assert not any(isinstance(held, PendingRow) for held in many._held)


def test_the_default_table_is_solved_together():
    frame, target = table()
    explainer = al.Explainer(forest(frame, target), al.Table(frame))
    many = explainer.explain_many(frame[:60], **KEYWORDS)
    assert sum(isinstance(held, PendingRow) for held in many._held) > 55
    assert any(">=" in term.literal.text for e in many[:5] for term in e.terms)


def test_certificates_and_samples_are_made_one_by_one():
    explainer, rows = explainer_and_rows("plain")
    for settings in ({"n_certify": 100}, {"sampling": "draw", "n_samples": 100, "n_certify": 0}):
        many = explainer.explain_many(rows[:2], k=3, **settings)
        assert not any(isinstance(held, PendingRow) for held in many._held)
