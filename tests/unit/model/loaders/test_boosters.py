"""Native files of XGBoost and LightGBM answer as the boosters that wrote them."""

import pickle

import lightgbm
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import xgboost

from anchorline import errors
from anchorline.model.loaders import load_model
from helpers.model_tables import CATEGORIES, COARSE, LABELS, NUMBERS, TABLE, N, same_in_every_frame

ASCII = CATEGORIES.assign(town=CATEGORIES["town"].cat.rename_categories({"Béthune": "Bethune"}))


@pytest.mark.parametrize("suffix", [".json", ".ubj"])
@pytest.mark.parametrize(
    ("objective", "target"),
    [
        ("binary:logistic", (LABELS == "yes") * 1),
        ("multi:softprob", COARSE),
        ("multi:softmax", COARSE),
        ("reg:squarederror", COARSE),
    ],
)
def test_a_native_xgboost_file_answers_like_its_original(tmp_path, suffix, objective, target):
    settings = {"objective": objective, "nthread": 1, **({"num_class": 3} if "multi" in objective else {})}
    rows = xgboost.DMatrix(ASCII, target, enable_categorical=True)
    booster = xgboost.train(settings, rows, 5)
    booster.save_model(tmp_path / f"model{suffix}")
    loaded = load_model(tmp_path / f"model{suffix}")
    expected = booster.predict(rows)
    if objective == "binary:logistic":
        assert loaded.classes_ == [0, 1]
        expected = np.column_stack([1 - expected, expected])
    elif "multi" in objective:
        assert loaded.classes_ == [0, 1, 2]
        settings["objective"] = "multi:softprob"
        expected = xgboost.train(settings, rows, 5).predict(rows)
    else:
        assert loaded.classes_ is None
    same_in_every_frame(loaded, expected, ASCII, atol=1e-6)
    same_in_every_frame(pickle.loads(pickle.dumps(loaded)), expected, ASCII, atol=1e-6)


def test_xgboost_columns_that_do_not_fit(tmp_path):
    booster = xgboost.train({"nthread": 1}, xgboost.DMatrix(CATEGORIES, COARSE, enable_categorical=True), 2)
    booster.save_model(tmp_path / "model.json")
    model = load_model(tmp_path / "model.json")
    with pytest.raises(
        errors.ModelInputError, match=r"'children' and lack 'town', 'level', which the model needs"
    ):
        model(NUMBERS)
    with pytest.raises(
        errors.ModelInputError, match=r"'town' holds 'Paris', but it must hold one of the categories .*: 'Arras'"
    ):
        model(CATEGORIES.assign(town="Paris"))
    codes = CATEGORIES.assign(town=CATEGORIES["town"].cat.codes, level=CATEGORIES["level"].cat.codes)
    types = ["float", "int", "c", "c"]
    nameless = xgboost.DMatrix(codes.to_numpy(np.float32), COARSE, feature_types=types)
    xgboost.train({"nthread": 1}, nameless, 2).save_model(tmp_path / "codes.json")
    model = load_model(tmp_path / "codes.json")
    assert model(codes.to_numpy(float)).shape == (N,)
    with pytest.raises(errors.ModelInputError, match=r"does not list the categories that it was trained on"):
        model(CATEGORIES)
    with pytest.raises(errors.ModelInputError, match=r"got 2 columns \(.*\), but it needs 4"):
        model(NUMBERS)


def test_xgboost_categories_beyond_ascii_are_right_or_refused(tmp_path):
    """XGBoost 3.1 and 3.2 damage names beyond ASCII; such a column is refused, and never misread."""
    rows = xgboost.DMatrix(CATEGORIES, COARSE, enable_categorical=True)
    booster = xgboost.train({"nthread": 1}, rows, 2)
    booster.save_model(tmp_path / "model.json")
    try:
        answers = load_model(tmp_path / "model.json")(CATEGORIES)
    except errors.ModelInputError as error:
        if "must hold one of the categories" not in str(error):
            raise
    else:
        np.testing.assert_allclose(answers, booster.predict(rows), atol=1e-6)


def test_xgboost_stops_where_training_did(tmp_path):
    classifier = xgboost.XGBClassifier(n_estimators=30, early_stopping_rounds=2, n_jobs=1, learning_rate=1.0)
    classifier.fit(NUMBERS, LABELS == "yes", eval_set=[(NUMBERS[::-1], LABELS == "yes")], verbose=False)
    assert classifier.best_iteration < 25
    classifier.save_model(tmp_path / "model.json")
    np.testing.assert_allclose(load_model(tmp_path / "model.json")(NUMBERS), classifier.predict_proba(NUMBERS))


@pytest.mark.parametrize("objective", ["binary", "multiclass", "regression"])
def test_a_native_lightgbm_file_answers_like_its_original(tmp_path, objective, capfd):
    target = {"binary": (LABELS == "yes") * 1, "multiclass": COARSE, "regression": COARSE}[objective]
    settings = {"objective": objective, "verbose": -1, "num_threads": 1, "min_data_in_leaf": 5, "cat_smooth": 1}
    settings |= {"num_class": 3} if objective == "multiclass" else {}
    booster = lightgbm.train(settings, lightgbm.Dataset(CATEGORIES, target), 5)
    booster.save_model(tmp_path / "model.txt")
    loaded = load_model(tmp_path / "model.txt")
    expected = booster.predict(CATEGORIES)
    if objective == "binary":
        expected = np.column_stack([1 - expected, expected])
    assert loaded.classes_ == {"binary": [0, 1], "multiclass": [0, 1, 2], "regression": None}[objective]
    same_in_every_frame(loaded, expected, CATEGORIES, rtol=1e-12)
    unknown = CATEGORIES.assign(town="Paris")
    missing = CATEGORIES.assign(town=pd.Categorical([None] * N, categories=CATEGORIES["town"].cat.categories))
    np.testing.assert_array_equal(loaded(unknown), loaded(missing))
    assert capfd.readouterr().out == ""


def train_and_save(table, path, **choices):
    """Train a LightGBM model on all columns, save it, and return its answers to the table."""
    target = TABLE["net income"] + sum(pd.factorize(table[name])[0] for name in table)
    settings = {"verbose": -1, "num_threads": 1, "min_data_in_leaf": 2, "cat_smooth": 1, "min_data_per_group": 1}
    booster = lightgbm.train(settings, lightgbm.Dataset(table, target, **choices), 5)
    booster.save_model(path)
    return booster.predict(table)


def test_a_missing_category_stays_missing(tmp_path):
    """This holds for Arrow too, whose own arrays hold another category in place of a missing one."""
    holes = CATEGORIES.assign(town=CATEGORIES["town"].where(TABLE["children"] > 1))[["town", "net income"]]
    expected = train_and_save(holes, tmp_path / "model.txt")
    model, arrow = load_model(tmp_path / "model.txt"), pa.Table.from_pandas(holes)
    assert pa.types.is_dictionary(arrow.schema.field("town").type)
    np.testing.assert_array_equal(model(holes), expected)
    np.testing.assert_array_equal(model(arrow), expected)
    first = int(np.flatnonzero(holes["town"].isna())[0])
    np.testing.assert_array_equal(model(arrow.slice(first, 1)), expected[first : first + 1])


def test_lightgbm_categories_next_to_columns_without_them(tmp_path):
    path, steps = tmp_path / "model.txt", ["small", "middle", "large"]
    codes = CATEGORIES[["children", "town"]]
    expected = train_and_save(codes, path, categorical_feature=["children", "town"])
    np.testing.assert_array_equal(load_model(path)(codes), expected)
    ordered = codes.assign(size=pd.Categorical(np.array(steps)[COARSE], categories=steps, ordered=True))
    expected = train_and_save(ordered, path)
    np.testing.assert_array_equal(load_model(path)(ordered), expected)
    train_and_save(codes.assign(children=COARSE), path, categorical_feature=["children", "town"])
    with pytest.raises(errors.ModelFileError, match=r"cannot be inferred.*without categorical_feature"):
        load_model(path)
    path.write_text(path.read_text().replace('[["Arras"', '[5, ["Arras"'))
    with pytest.raises(errors.ModelFileError, match="damaged list of categories"):
        load_model(path)


def test_lightgbm_categories_are_those_of_the_columns_that_are_categories(tmp_path):
    """The file names only the column in ``categorical_feature``, although the list belongs to the other one."""
    path, codes = tmp_path / "model.txt", np.arange(len(COARSE)) % 3
    frame = pd.DataFrame({"c": pd.Categorical(3 * COARSE), "j": codes})
    expected = train_and_save(frame, path, categorical_feature=["j"])
    for rows in (frame, pa.Table.from_pandas(frame)):
        np.testing.assert_array_equal(load_model(path)(rows), expected)


def test_lightgbm_files_that_do_not_fit(tmp_path):
    path = tmp_path / "model.txt"
    settings = {"verbose": -1, "num_threads": 1}
    booster = lightgbm.train(settings, lightgbm.Dataset(NUMBERS.to_numpy(np.float64), COARSE), 2)
    booster.save_model(path)
    model = load_model(path)
    np.testing.assert_array_equal(model(NUMBERS), booster.predict(NUMBERS.to_numpy(np.float64)))
    with pytest.raises(errors.ModelInputError, match=r"got 3 columns \(.*\), but it needs 2"):
        model(TABLE)
    text = path.read_text()
    path.write_text(text[: text.index("end of trees")])
    with pytest.raises(errors.ModelFileError, match="cut off"):
        load_model(path)
    path.write_text("hello\n")
    with pytest.raises(errors.ModelFileError, match="is not a LightGBM model"):
        load_model(path)


def test_files_that_are_not_xgboost_models(tmp_path):
    for content in ('{"learner": 5}', '{"a": 1}', "[]"):
        (tmp_path / "model.json").write_text(content)
        with pytest.raises(errors.ModelFileError, match="XGBoost"):
            load_model(tmp_path / "model.json")
