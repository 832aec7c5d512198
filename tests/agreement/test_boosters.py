"""One boosted model gives one explanation: as classifier, as booster, from its file, and on the command line."""

import catboost
import lightgbm
import numpy as np
import pytest
import xgboost

import anchorline as al
from anchorline.cli.app import app
from anchorline.io import read_table
from anchorline.model.loaders import load_model

N_ROWS = 200


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a table of numbers, and the two columns that models learn from it."""
    folder, rng = tmp_path_factory.mktemp("boosters"), np.random.default_rng(0)
    rows = rng.normal(size=(N_ROWS, 3)).round(3)
    lines = ["income,debt,age", *(",".join(map(str, row)) for row in rows.tolist())]
    (folder / "train.csv").write_text("\n".join(lines) + "\n")
    return folder


def targets(frame):
    score = frame["income"] - frame["debt"] + 0.3 * frame["age"]
    return {"two": (score > 0).astype(int), "three": np.digitize(score, [-0.8, 0.8]), "number": score}


def xgboost_forms(folder, frame, target, kind):
    estimator = xgboost.XGBRegressor if kind == "number" else xgboost.XGBClassifier
    model = estimator(n_estimators=8, n_jobs=1).fit(frame, target)
    for suffix in ("json", "ubj"):
        model.save_model(folder / f"{kind}.{suffix}")
    return model, model.get_booster(), [folder / f"{kind}.json", folder / f"{kind}.ubj"]


def lightgbm_forms(folder, frame, target, kind):
    estimator = lightgbm.LGBMRegressor if kind == "number" else lightgbm.LGBMClassifier
    model = estimator(n_estimators=8, n_jobs=1, verbose=-1).fit(frame, target)
    model.booster_.save_model(folder / f"{kind}.txt")
    return model, model.booster_, [folder / f"{kind}.txt"]


@pytest.mark.parametrize("make_forms", [xgboost_forms, lightgbm_forms])
@pytest.mark.parametrize("kind", ["two", "three", "number"])
def test_every_form_gives_the_same_explanation(folder, make_forms, kind):
    frame = read_table(folder / "train.csv", backend="pandas")
    model, booster, files = make_forms(folder, frame, targets(frame)[kind], kind)
    others = [booster, *(load_model(file) for file in files)]
    for row in (0, 1, 2):
        e, *again = (al.Explainer(form, al.Table(frame)).explain(row, k=3) for form in (model, *others))
        if kind == "number":  # only the recorded task differs, because a booster does not say that it regresses
            assert {(other.output.name, other.prediction, *other.contributions) for other in again} == {
                (e.output.name, e.prediction, *e.contributions)
            }
        else:
            assert e.output.name == str(model.predict(frame[row : row + 1])[0])
            assert {other.to_json() for other in again} == {e.to_json()}


@pytest.mark.parametrize("make_forms", [xgboost_forms, lightgbm_forms])
def test_the_command_line_explains_the_same_output(folder, make_forms, capsys):
    frame = read_table(folder / "train.csv")
    pandas = read_table(folder / "train.csv", backend="pandas")
    _, booster, (file, *_) = make_forms(folder, pandas, targets(pandas)["two"], "two")
    e = al.Explainer(booster, al.Table(frame)).explain(4, k=3)
    command = ["explain", str(file), "--data", str(folder / "train.csv"), "--row", "4"]
    app([*command, "-k", "3", "--format", "json"], standalone_mode=False)
    assert capsys.readouterr().out.strip() == e.to_json()


def test_catboost_explains_the_predicted_class_in_every_form(folder):
    frame = read_table(folder / "train.csv", backend="pandas")
    target = np.where(targets(frame)["two"], "good", "bad")
    settings = {"iterations": 8, "verbose": 0, "thread_count": 1, "allow_writing_files": False}
    model = catboost.CatBoostClassifier(**settings).fit(frame, target)
    model.save_model(folder / "model.cbm")
    booster = catboost.CatBoost().load_model(folder / "model.cbm")
    for row in (0, 1):
        e, other = (al.Explainer(m, al.Table(frame)).explain(row, k=3) for m in (model, booster))
        assert (e.output.name, e.to_json()) == (model.predict(frame[row : row + 1])[0], other.to_json())


def test_catboost_decides_by_its_own_threshold(folder):
    frame = read_table(folder / "train.csv", backend="pandas")
    settings = {"iterations": 8, "verbose": 0, "thread_count": 1, "allow_writing_files": False}
    model = catboost.CatBoostClassifier(**settings).fit(frame, targets(frame)["two"])
    model.set_probability_threshold(0.9)
    unlike = np.flatnonzero(model.predict(frame) != model.predict_proba(frame).argmax(axis=1))
    e = al.Explainer(model, al.Table(frame)).explain(int(unlike[0]), k=3)
    assert e.output.name == "0"
