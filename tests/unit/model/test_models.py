"""Models from files and names: real ones answer alike, hostile ones are refused before anything runs."""

import json
import logging
import os
import pickle
import subprocess
import sys
import zipfile
from pathlib import Path

import joblib
import lightgbm
import numpy as np
import onnx
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import skops.io
import xgboost
from onnx import TensorProto, helper, numpy_helper
from skl2onnx import convert_sklearn, to_onnx
from skl2onnx.common.data_types import FloatTensorType, Int64TensorType, StringTensorType
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    StackingClassifier,
    VotingClassifier,
)
from sklearn.feature_selection import SelectFromModel
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from anchorline import errors
from anchorline.model.loaders import KINDS, HttpLimits, load_model
from anchorline.model.loaders.rows import InputRows

rng = np.random.default_rng(0)
N = 150
TABLE = pd.DataFrame(
    {
        "net income": rng.normal(size=N).astype(np.float32),
        "children": rng.integers(0, 5, N),
        "town": rng.choice(["Arras", "Lens", "Béthune"], N),
    }
)
LABELS = np.where((TABLE["net income"] > 0) ^ (TABLE["town"] == "Lens"), "yes", "no")
NUMBERS = TABLE[["net income", "children"]]
COARSE = (TABLE["children"] % 3).to_numpy()


def pipeline(final=None):
    numeric = make_pipeline(SimpleImputer(), StandardScaler())
    columns = [("n", numeric, ["net income", "children"]), ("c", OneHotEncoder(handle_unknown="ignore"), ["town"])]
    final = RandomForestClassifier(5, random_state=0) if final is None else final
    return make_pipeline(ColumnTransformer(columns), final)


@pytest.fixture(scope="module")
def fitted():
    return pipeline().fit(TABLE, LABELS)


def same_in_every_frame(model, expected, table=TABLE, **tolerance):
    """The answers to pandas, Polars and Arrow frames, whose columns are in another order."""
    turned = table[list(reversed(table.columns))]
    plain = turned.assign(**{c: turned[c].astype(object) for c in turned if turned[c].dtype == "category"})
    for frame in (turned, pl.from_pandas(plain), pa.Table.from_pandas(plain, preserve_index=False)):
        np.testing.assert_allclose(model(frame), expected, **tolerance)


# --- ONNX --------------------------------------------------------------------------------------------

TYPES = [
    ("net income", FloatTensorType([None, 1])),
    ("children", Int64TensorType([None, 1])),
    ("town", StringTensorType([None, 1])),
]


@pytest.mark.parametrize("zipmap", [True, False, "columns"])
def test_an_onnx_pipeline_answers_like_its_original(fitted, tmp_path, zipmap):
    path = tmp_path / "model.onnx"
    model = convert_sklearn(fitted, initial_types=TYPES, options={id(fitted): {"zipmap": zipmap}})
    path.write_bytes(model.SerializeToString())
    loaded = load_model(path)
    assert loaded.classes_ == ["no", "yes"]
    same_in_every_frame(loaded, fitted.predict_proba(TABLE), atol=1e-5)
    again = pickle.loads(pickle.dumps(loaded))
    np.testing.assert_array_equal(again(TABLE), loaded(TABLE))


INNER = [("a", LogisticRegression()), ("b", DecisionTreeClassifier(max_depth=2))]


@pytest.mark.parametrize("zipmap", [True, False, "columns"])
@pytest.mark.parametrize("labels", [["c", "a", "b"], [3, 1, 2], ["2", "3", "1"]], ids=str)
@pytest.mark.parametrize(
    "model",
    [
        LogisticRegression(),
        RandomForestClassifier(2, max_depth=2),
        make_pipeline(StandardScaler(), LogisticRegression()),
        BaggingClassifier(DecisionTreeClassifier(max_depth=2), n_estimators=2),
        StackingClassifier(INNER, cv=2),
        VotingClassifier(INNER, voting="soft", flatten_transform=False),
        CalibratedClassifierCV(LogisticRegression(), cv=2),
    ],
    ids=lambda model: type(model).__name__,
)
def test_onnx_classes_are_those_of_the_label_not_of_an_inner_estimator(tmp_path, model, labels, zipmap):
    rows = NUMBERS.to_numpy(np.float32)
    model = model.fit(rows, np.array(labels)[COARSE])
    exported = to_onnx(model, rows[:1], options={id(model): {"zipmap": zipmap}})
    (tmp_path / "model.onnx").write_bytes(exported.SerializeToString())
    loaded = load_model(tmp_path / "model.onnx")
    assert loaded.classes_ == sorted(labels)
    np.testing.assert_allclose(loaded(rows), model.predict_proba(rows), atol=1e-5)


def test_onnx_labels_that_the_graph_does_not_tell(tmp_path):
    """Columns have no labels where the way back from the label leads to none, whatever inner estimators say."""
    rows = NUMBERS.to_numpy(np.float32)
    exported = to_onnx(LogisticRegression().fit(rows, COARSE), rows[:1], options={"zipmap": False})
    for node in exported.graph.node:
        node.output[:] = ["inner" if name == "label" else name for name in node.output]
    exported.graph.node.append(helper.make_node("Neg", ["inner"], ["label"]))
    (tmp_path / "model.onnx").write_bytes(exported.SerializeToString())
    assert load_model(tmp_path / "model.onnx").classes_ is None


def test_an_onnx_pipeline_takes_missing_values(fitted, tmp_path):
    path = tmp_path / "model.onnx"
    path.write_bytes(convert_sklearn(fitted, initial_types=TYPES).SerializeToString())
    holes = TABLE.assign(town=TABLE["town"].where(TABLE["children"] > 1))
    holes.loc[0, "net income"] = np.nan
    expected = fitted.predict_proba(holes.fillna({"town": ""}))
    same_in_every_frame(load_model(path), expected, holes, atol=1e-5)
    with pytest.raises(errors.ModelInputError, match=r"'children' holds nan; the model needs whole numbers"):
        load_model(path)(holes.assign(children=np.nan))


def test_onnx_matrices_numbers_and_integer_classes(tmp_path):
    rows = NUMBERS.to_numpy(np.float32)
    regressor = GradientBoostingRegressor(n_estimators=5).fit(rows, rows @ [1, 2])
    (tmp_path / "r.onnx").write_bytes(to_onnx(regressor, rows[:1]).SerializeToString())
    loaded = load_model(tmp_path / "r.onnx")
    assert loaded.classes_ is None
    np.testing.assert_allclose(loaded(rows), regressor.predict(rows), rtol=1e-4)
    np.testing.assert_array_equal(loaded(NUMBERS), loaded(rows))
    forest = RandomForestClassifier(3, random_state=0).fit(rows, 3 + TABLE["children"] % 3)
    (tmp_path / "c.onnx").write_bytes(to_onnx(forest, rows[:1], options={"zipmap": False}).SerializeToString())
    loaded = load_model(tmp_path / "c.onnx")
    assert loaded.classes_ == [3, 4, 5]
    np.testing.assert_allclose(loaded(rows), forest.predict_proba(rows), atol=1e-5)


def test_onnx_columns_that_do_not_fit(fitted, tmp_path):
    path = tmp_path / "model.onnx"
    path.write_bytes(convert_sklearn(fitted, initial_types=TYPES).SerializeToString())
    model = load_model(path)
    with pytest.raises(errors.ModelInputError, match=r"needs the columns 'town', which the data lack"):
        model(NUMBERS)
    with pytest.raises(errors.ModelInputError, match=r"'children' holds values such as 'x'"):
        model(TABLE.assign(children="x"))
    with pytest.raises(errors.ModelInputError, match=r"needs 3 columns .* and got 2"):
        model(NUMBERS.to_numpy())
    rows = NUMBERS.to_numpy(np.float32)
    matrix = LogisticRegression().fit(rows, LABELS)
    path.write_bytes(to_onnx(matrix, rows[:1]).SerializeToString())
    with pytest.raises(
        errors.ModelInputError, match=r"needs 2 columns and got 3: 'net income', 'children', 'town'"
    ):
        load_model(path)(TABLE)


def onnx_with_external_data(location, in_subgraph=False):
    """y = x + weights, whose weights lie in another file."""
    weights = numpy_helper.from_array(np.ones(1, dtype=np.float32), "w")
    weights.ClearField("raw_data")
    weights.data_location = TensorProto.EXTERNAL
    for key, value in (("location", location), ("offset", "0"), ("length", "4")):
        weights.external_data.add(key=key, value=value)
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [None, 1])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [None, 1])
    if in_subgraph:
        nodes = [
            helper.make_node("Constant", [], ["w"], value=weights),
            helper.make_node("Add", ["x", "w"], ["y"]),
        ]
        graph = helper.make_graph(nodes, "g", [x], [y])
    else:
        graph = helper.make_graph([helper.make_node("Add", ["x", "w"], ["y"])], "g", [x], [y], [weights])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9).SerializeToString()


def test_onnx_external_data_in_its_own_folder_is_read(tmp_path):
    (tmp_path / "weights.bin").write_bytes(np.float32(40).tobytes())
    (tmp_path / "model.onnx").write_bytes(onnx_with_external_data("weights.bin"))
    model = load_model(tmp_path / "model.onnx")
    assert model(np.array([[2.0]])).tolist() == [42.0]
    (tmp_path / "weights.bin").unlink()
    with pytest.raises(errors.ModelFileError, match=r"needs 'weights.bin' beside it"):
        load_model(tmp_path / "model.onnx")


@pytest.mark.parametrize("in_subgraph", [False, True])
@pytest.mark.parametrize(
    "location",
    [
        "../secret.bin",
        "/etc/passwd",
        "a/../../secret.bin",
        "link.bin",
        "folder/secret.bin",
        "C:\\secret",
        "..\\s",
        "",
    ],
)
def test_onnx_external_data_elsewhere_is_refused(tmp_path, location, in_subgraph):
    (tmp_path / "secret.bin").write_bytes(np.float32(1).tobytes())
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "link.bin").symlink_to(tmp_path / "secret.bin")
    (tmp_path / "m" / "folder").symlink_to(tmp_path)
    (tmp_path / "m" / "model.onnx").write_bytes(onnx_with_external_data(location, in_subgraph))
    with pytest.raises(errors.UntrustedError, match="not a plain file in its own folder"):
        load_model(tmp_path / "m" / "model.onnx")


def test_every_location_of_a_tensor_is_looked_at(tmp_path):
    (tmp_path / "w.bin").write_bytes(np.float32(1).tobytes())
    model = onnx.load_model_from_string(onnx_with_external_data("w.bin"))
    model.graph.initializer[0].external_data.add(key="location", value="../secret.bin")
    (tmp_path / "model.onnx").write_bytes(model.SerializeToString())
    with pytest.raises(errors.UntrustedError, match="secret"):
        load_model(tmp_path / "model.onnx")


def test_onnx_memory_addresses_and_custom_operators_are_refused(tmp_path):
    path = tmp_path / "model.onnx"
    path.write_bytes(onnx_with_external_data("*/_ORT_MEM_ADDR_/*"))
    with pytest.raises((errors.UntrustedError, errors.ModelFileError)):
        load_model(path)
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [None, 1])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [None, 1])
    graph = helper.make_graph([helper.make_node("Steal", ["x"], ["y"], domain="evil")], "g", [x], [y])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("evil", 1)], ir_version=9)
    path.write_bytes(model.SerializeToString())
    with pytest.raises(errors.ModelFileError, match="onnxruntime cannot run"):
        load_model(path)


@pytest.mark.parametrize("content", [b"no model at all", b"\x08\x01", b"PK\x03\x04"])
def test_what_is_no_onnx_model(tmp_path, content):
    (tmp_path / "model.onnx").write_bytes(content)
    with pytest.raises(errors.ModelFileError, match="no ONNX model"):
        load_model(tmp_path / "model.onnx")


# --- skops -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "final",
    [RandomForestClassifier(5, random_state=0), LogisticRegression(), HistGradientBoostingClassifier(max_iter=5)],
    ids=lambda final: type(final).__name__,
)
def test_a_skops_pipeline_answers_like_its_original(tmp_path, final):
    model = pipeline(final).fit(TABLE, LABELS)
    skops.io.dump(model, tmp_path / "model.skops")
    loaded = load_model(tmp_path / "model.skops")
    np.testing.assert_array_equal(loaded.predict_proba(TABLE), model.predict_proba(TABLE))


def test_skops_models_with_categories_load(tmp_path):
    frame = TABLE.assign(town=TABLE["town"].astype("category"))
    model = HistGradientBoostingClassifier(max_iter=5).fit(frame, LABELS)
    skops.io.dump(model, tmp_path / "model.skops")
    np.testing.assert_array_equal(load_model(tmp_path / "model.skops").predict(frame), model.predict(frame))


def test_an_unlisted_type_is_refused_and_named(tmp_path):
    path = tmp_path / "model.skops"
    skops.io.dump(make_pipeline(FunctionTransformer(os.path.basename), LogisticRegression()), path)
    with pytest.raises(errors.UntrustedError, match=r"posixpath.basename.*--trust posixpath.basename"):
        load_model(path)
    assert hasattr(load_model(path, trust=["posixpath.basename"]), "predict")
    skops.io.dump(KNeighborsClassifier().fit(NUMBERS, LABELS), path)
    with pytest.raises(errors.UntrustedError, match=r"sklearn.neighbors._kd_tree.KDTree"):
        load_model(path)
    with pytest.raises(errors.ParameterError, match=r"Type trust=\['a.B'\]"):
        load_model(path, trust="a.B")


@pytest.mark.parametrize("harm", ["child", "loop", "feature", "columns", "unknown", "tree"])
def test_a_tree_that_points_outside_itself_is_refused(tmp_path, harm):
    forest = RandomForestClassifier(2, random_state=0).fit(NUMBERS, LABELS)
    tree = forest.estimators_[0].tree_
    if harm == "child":
        tree.children_left[0] = 10**6
    elif harm == "loop":
        tree.children_left[0] = 0
    elif harm == "feature":
        tree.feature[0] = 10**6
    elif harm == "columns":
        forest.n_features_in_ = 0
    elif harm == "unknown":
        del forest.n_features_in_
    else:
        forest.estimators_[0].n_features_in_ = 1
    skops.io.dump(forest, tmp_path / "model.skops")
    with pytest.raises(errors.ModelFileError, match="points outside itself"):
        load_model(tmp_path / "model.skops")


@pytest.mark.parametrize(
    "model",
    [
        BaggingClassifier(make_pipeline(StandardScaler(), DecisionTreeClassifier()), 2, max_features=1),
        VotingClassifier([("a", RandomForestClassifier(2)), ("b", HistGradientBoostingClassifier(max_iter=2))]),
        StackingClassifier([("a", GradientBoostingClassifier(n_estimators=2))], cv=2),
        AdaBoostClassifier(n_estimators=2),
        CalibratedClassifierCV(ExtraTreesClassifier(2), cv=2),
        make_pipeline(
            ColumnTransformer([("s", SelectFromModel(DecisionTreeClassifier()), ["net income", "children"])]),
            HistGradientBoostingClassifier(max_iter=2),
        ),
    ],
    ids=lambda model: type(model).__name__,
)
def test_sound_trees_are_not_refused(tmp_path, model):
    model.fit(NUMBERS, LABELS)
    skops.io.dump(model, tmp_path / "model.skops")
    np.testing.assert_array_equal(load_model(tmp_path / "model.skops").predict(NUMBERS), model.predict(NUMBERS))


@pytest.mark.parametrize("field", ["left", "feature_idx"])
def test_a_boosted_tree_that_points_outside_itself_is_refused(tmp_path, field):
    model = HistGradientBoostingClassifier(max_iter=2).fit(NUMBERS, LABELS)
    model._predictors[0][0].nodes[field][0] = 10**6
    skops.io.dump(model, tmp_path / "model.skops")
    with pytest.raises(errors.ModelFileError, match="points outside itself"):
        load_model(tmp_path / "model.skops")


def test_what_is_no_skops_file(tmp_path):
    path = tmp_path / "model.skops"
    path.write_bytes(b"tree\n")
    with pytest.raises(errors.ModelFileError, match="no skops file"):
        load_model(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.txt", "a")
    with pytest.raises(errors.ModelFileError, match=r"no schema.json"):
        load_model(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("schema.json", '{"__class__": "list"}')
    with pytest.raises(errors.ModelFileError, match="damaged"):
        load_model(path)
    skops.io.dump([1, 2], path)
    with pytest.raises(errors.ModelFileError, match="holds a list"):
        load_model(path)


# --- XGBoost and LightGBM ----------------------------------------------------------------------------

CATEGORIES = TABLE.assign(town=TABLE["town"].astype("category"), level=pd.Categorical(TABLE["children"] * 10))
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
    with pytest.raises(errors.ModelInputError, match=r"needs the columns 'town', 'level', which the data lack"):
        model(NUMBERS)
    with pytest.raises(errors.ModelInputError, match=r"'town' holds 'Paris', which the model does not know"):
        model(CATEGORIES.assign(town="Paris"))
    codes = CATEGORIES.assign(town=CATEGORIES["town"].cat.codes, level=CATEGORIES["level"].cat.codes)
    types = ["float", "int", "c", "c"]
    nameless = xgboost.DMatrix(codes.to_numpy(np.float32), COARSE, feature_types=types)
    xgboost.train({"nthread": 1}, nameless, 2).save_model(tmp_path / "codes.json")
    model = load_model(tmp_path / "codes.json")
    assert model(codes.to_numpy(float)).shape == (N,)
    with pytest.raises(errors.ModelInputError, match=r"does not say which it was trained on"):
        model(CATEGORIES)
    with pytest.raises(errors.ModelInputError, match=r"needs 4 columns and got 2"):
        model(NUMBERS)


def test_xgboost_categories_beyond_ascii_are_right_or_refused(tmp_path):
    """XGBoost 3.1 and 3.2 store such names damaged; then the column is refused, not misread."""
    rows = xgboost.DMatrix(CATEGORIES, COARSE, enable_categorical=True)
    booster = xgboost.train({"nthread": 1}, rows, 2)
    booster.save_model(tmp_path / "model.json")
    try:
        answers = load_model(tmp_path / "model.json")(CATEGORIES)
    except errors.ModelInputError as error:
        if "which the model does not know" not in str(error):
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


def trained_on(table, path, **choices):
    """A LightGBM model of all columns, saved; what it answers to the table."""
    target = TABLE["net income"] + sum(pd.factorize(table[name])[0] for name in table)
    settings = {"verbose": -1, "num_threads": 1, "min_data_in_leaf": 2, "cat_smooth": 1, "min_data_per_group": 1}
    booster = lightgbm.train(settings, lightgbm.Dataset(table, target, **choices), 5)
    booster.save_model(path)
    return booster.predict(table)


def test_a_missing_category_stays_missing(tmp_path):
    """Also in Arrow, whose own arrays would have another category there."""
    holes = CATEGORIES.assign(town=CATEGORIES["town"].where(TABLE["children"] > 1))[["town", "net income"]]
    expected = trained_on(holes, tmp_path / "model.txt")
    model, arrow = load_model(tmp_path / "model.txt"), pa.Table.from_pandas(holes)
    assert pa.types.is_dictionary(arrow.schema.field("town").type)
    np.testing.assert_array_equal(model(holes), expected)
    np.testing.assert_array_equal(model(arrow), expected)
    first = int(np.flatnonzero(holes["town"].isna())[0])
    np.testing.assert_array_equal(model(arrow.slice(first, 1)), expected[first : first + 1])


def test_lightgbm_categories_beside_columns_that_have_none(tmp_path):
    path, steps = tmp_path / "model.txt", ["small", "middle", "large"]
    codes = CATEGORIES[["children", "town"]]
    expected = trained_on(codes, path, categorical_feature=["children", "town"])
    np.testing.assert_array_equal(load_model(path)(codes), expected)
    ordered = codes.assign(size=pd.Categorical(np.array(steps)[COARSE], categories=steps, ordered=True))
    expected = trained_on(ordered, path)
    np.testing.assert_array_equal(load_model(path)(ordered), expected)
    trained_on(codes.assign(children=COARSE), path, categorical_feature=["children", "town"])
    with pytest.raises(errors.ModelFileError, match=r"cannot be told which.*without categorical_feature"):
        load_model(path)
    path.write_text(path.read_text().replace('[["Arras"', '[5, ["Arras"'))
    with pytest.raises(errors.ModelFileError, match="damaged list of categories"):
        load_model(path)


def test_lightgbm_categories_are_those_of_the_columns_that_are_categories(tmp_path):
    """The file names only the column that was asked for, though the list is the other's."""
    path, codes = tmp_path / "model.txt", np.arange(len(COARSE)) % 3
    frame = pd.DataFrame({"c": pd.Categorical(3 * COARSE), "j": codes})
    expected = trained_on(frame, path, categorical_feature=["j"])
    for rows in (frame, pa.Table.from_pandas(frame)):
        np.testing.assert_array_equal(load_model(path)(rows), expected)


def test_lightgbm_files_that_do_not_fit(tmp_path):
    path = tmp_path / "model.txt"
    settings = {"verbose": -1, "num_threads": 1}
    booster = lightgbm.train(settings, lightgbm.Dataset(NUMBERS.to_numpy(np.float64), COARSE), 2)
    booster.save_model(path)
    model = load_model(path)
    np.testing.assert_array_equal(model(NUMBERS), booster.predict(NUMBERS.to_numpy(np.float64)))
    with pytest.raises(errors.ModelInputError, match="needs 2 columns and got 3"):
        model(TABLE)
    text = path.read_text()
    path.write_text(text[: text.index("end of trees")])
    with pytest.raises(errors.ModelFileError, match="cut off"):
        load_model(path)
    path.write_text("hello\n")
    with pytest.raises(errors.ModelFileError, match="no LightGBM model"):
        load_model(path)


def test_what_is_no_xgboost_file(tmp_path):
    for content in ('{"learner": 5}', '{"a": 1}', "[]"):
        (tmp_path / "model.json").write_text(content)
        with pytest.raises(errors.ModelFileError, match="XGBoost"):
            load_model(tmp_path / "model.json")


# --- rows ----------------------------------------------------------------------------------------------


def test_columns_named_by_whole_numbers():
    for n_rows in (1, 2, 5):
        frame = pd.DataFrame(np.arange(3.0 * n_rows).reshape(n_rows, 3), columns=[2, 0, 1])
        rows = InputRows(frame)
        assert (rows.names, rows.n_rows) == (["2", "0", "1"], n_rows)
        np.testing.assert_array_equal(np.column_stack([rows.numbers(j) for j in range(3)]), frame)


@pytest.mark.parametrize("make", [lambda f: f, pl.from_pandas, pa.Table.from_pandas, pd.DataFrame.to_numpy])
@pytest.mark.parametrize("kind", ["datetime64[ns]", "datetime64[us]", "timedelta64[ns]", "timedelta64[us]"])
@pytest.mark.parametrize("missing", [False, True])
def test_dates_are_no_numbers(make, kind, missing):
    rows = InputRows(make(pd.DataFrame({"day": np.array([10**15, "NaT" if missing else 10**16], dtype=kind)})))
    for read in (rows.numbers, rows.integers):
        with pytest.raises(
            errors.ModelInputError, match=r"holds values such as .*([Dd]ate|[Tt]ime).*needs numbers there"
        ):
            read(0)


@pytest.mark.parametrize("make", [pd.DataFrame, pl.from_pandas, pa.Table.from_pandas])
def test_what_a_date_is_told_as_depends_on_no_other_row(make):
    whole = pd.DataFrame({"day": pd.to_datetime(["2020-01-01"] * 3).tz_localize("Europe/Paris")})
    holed = whole.assign(day=whole["day"].where([True, True, False]))
    assert InputRows(make(whole)).texts(0)[:2] == InputRows(make(holed)).texts(0)[:2]


@pytest.mark.parametrize("values", [np.array([2**63 + 5], np.uint64), [1e19], [-1e19], [2.0**63], [np.inf]])
def test_whole_numbers_that_do_not_fit(values):
    with pytest.raises(errors.ModelInputError, match=r"'n' holds .*beyond 64 bits"):
        InputRows(pd.DataFrame({"n": values})).integers(0)


@pytest.mark.parametrize("values", [[2**63 - 1, -(2**63)], np.array([2**63 - 1], np.uint64), [True], [-(2.0**63)]])
def test_whole_numbers_that_fit(values):
    assert InputRows(pd.DataFrame({"n": values})).integers(0).tolist() == [int(value) for value in values]


# --- module:function ---------------------------------------------------------------------------------


def test_a_function_by_name(tmp_path, monkeypatch):
    (tmp_path / "a_scorer.py").write_text(
        "def score(rows):\n    return rows[:, 0]\nclass Kept:\n    score = score\nnumber = 5\n"
    )
    (tmp_path / "a_broken_scorer.py").write_text("import no_such_thing_at_all\n")
    (tmp_path / "a_raising_scorer.py").write_text("1 / 0\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [p for p in sys.path if p not in ("", str(tmp_path))])
    before = list(sys.path)
    with pytest.raises(
        errors.ModelFileError, match=r"no module 'a_scorer' on the path. The working directory is not"
    ):
        load_model("a_scorer:score")
    assert sys.path == before
    monkeypatch.syspath_prepend(tmp_path)
    assert load_model("a_scorer:score")(np.ones((2, 1))).tolist() == [1, 1]
    assert load_model("a_scorer:Kept.score")(np.ones((2, 1))).tolist() == [1, 1]
    for name, match in [
        ("a_scorer:none", "has no 'none'"),
        ("a_scorer:number", "is a int; needed a function"),
        ("a_broken_scorer:score", "Importing 'a_broken_scorer' failed: No module named 'no_such_thing_at_all'"),
        ("a_raising_scorer:score", "ZeroDivisionError"),
    ]:
        with pytest.raises(errors.ModelFileError, match=match):
            load_model(name)


# --- pickles -----------------------------------------------------------------------------------------


class Harm:
    """Runs code when it is unpickled: writes a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (Path(self.path),)


@pytest.mark.parametrize(
    "name", ["m.pkl", "m.pickle", "m.joblib", "m.onnx", "m.json", "m.txt", "m.dat", "m.skops"]
)
@pytest.mark.parametrize("protocol", [0, 2, pickle.HIGHEST_PROTOCOL])
def test_a_malicious_pickle_is_not_run(tmp_path, name, protocol):
    path, harm = tmp_path / name, tmp_path / "harm"
    path.write_bytes(pickle.dumps(Harm(harm), protocol))
    with pytest.raises((errors.UntrustedError, errors.ModelFileError)) as raised:
        load_model(path)
    assert not harm.exists()
    if protocol or name.endswith(("kl", "kle", "lib")):
        assert raised.type is errors.UntrustedError
        assert "--trust-pickle" in str(raised.value)
    if name == "m.pkl":  # so that this test is known to look at the right thing
        pickle.loads(path.read_bytes())
        assert harm.exists()


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("pickle", "open-inference", "mlflow")])
def test_no_other_kind_unpickles(tmp_path, kind):
    path, harm = tmp_path / "m.pkl", tmp_path / "harm"
    joblib.dump(Harm(harm), path)
    with pytest.raises(errors.AnchorlineError):
        load_model(path, kind=kind)
    assert not harm.exists()


@pytest.mark.parametrize("name", ["m.pkl", "m.joblib", "m.joblib.gz"])
def test_a_trusted_pickle_is_loaded_with_a_warning(fitted, tmp_path, caplog, name):
    joblib.dump(fitted, tmp_path / name)
    with caplog.at_level(logging.WARNING):
        loaded = load_model(tmp_path / name, kind="pickle", trust_pickle=True)
    assert "runs the code in it" in caplog.text
    np.testing.assert_array_equal(loaded.predict(TABLE), fitted.predict(TABLE))


def test_pickles_that_hold_no_model(tmp_path):
    (tmp_path / "m.pkl").write_bytes(pickle.dumps([1, 2]))
    with pytest.raises(errors.ModelFileError, match="holds a list"):
        load_model(tmp_path / "m.pkl", trust_pickle=True)
    (tmp_path / "m.pkl").write_bytes(b"\x80\x04nonsense")
    with pytest.raises(errors.ModelFileError, match="Unpickling"):
        load_model(tmp_path / "m.pkl", trust_pickle=True)


# --- telling kinds apart -----------------------------------------------------------------------------


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(errors.ModelFileError, match="No such file"):
        load_model(tmp_path / "none.onnx")
    with pytest.raises(errors.ModelFileError, match="is a folder"):
        load_model(tmp_path)
    (tmp_path / "empty.onnx").touch()
    with pytest.raises(errors.ModelFileError, match="is empty"):
        load_model(tmp_path / "empty.onnx")
    (tmp_path / "model.xyz").write_text("what")
    with pytest.raises(errors.ModelFileError, match=r"no model that is known by its name: needed .onnx, .skops"):
        load_model(tmp_path / "model.xyz")
    with pytest.raises(errors.ModelFileError, match="cannot be read"):
        load_model("a\0b.onnx")
    with pytest.raises(errors.ParameterError, match="kind is 'onxx'"):
        load_model("model.onnx", kind="onxx")


def test_files_are_known_by_their_first_bytes_too(fitted, tmp_path):
    skops.io.dump(fitted, tmp_path / "model")
    assert hasattr(load_model(tmp_path / "model"), "predict_proba")
    xgboost.train({"nthread": 1}, xgboost.DMatrix(NUMBERS, COARSE), 1).save_model(tmp_path / "m.ubj")
    (tmp_path / "m.ubj").rename(tmp_path / "booster")
    assert load_model(tmp_path / "booster", kind="xgboost")(NUMBERS).shape == (N,)


def test_a_path_with_a_colon_is_a_file(tmp_path):
    with pytest.raises(errors.ModelFileError, match="cannot be read"):
        load_model(Path("os:system"))
    with pytest.raises(errors.ModelFileError, match="cannot be read"):
        load_model("./os:system")


@pytest.mark.parametrize(
    ("kind", "package", "extra"),
    [
        ("onnx", "onnxruntime", "onnx"),
        ("skops", "skops", "skops"),
        ("xgboost", "xgboost", "boosters"),
        ("lightgbm", "lightgbm", "boosters"),
        ("mlflow", "httpx", "http"),
    ],
)
def test_a_missing_package_is_named_with_its_extra(monkeypatch, tmp_path, kind, package, extra):
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.setitem(sys.modules, f"{package}.io", None)
    with pytest.raises(errors.MissingDependencyError, match=rf"pip install 'anchorline\[{extra}\]'"):
        load_model("http://localhost/invocations", kind=kind)


def test_importing_the_loader_loads_nothing_heavy():
    code = "import anchorline.model.loaders, sys; print(sorted({m.split('.')[0] for m in sys.modules}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    heavy = {
        "onnx",
        "onnxruntime",
        "skops",
        "sklearn",
        "xgboost",
        "lightgbm",
        "httpx",
        "pandas",
        "narwhals",
        "joblib",
    }
    assert not heavy & set(json.loads(done.stdout.replace("'", '"')))


def test_limits_are_numbers():
    with pytest.raises(errors.ParameterError, match="batch_rows is 0"):
        HttpLimits(batch_rows=0)
    with pytest.raises(errors.ParameterError, match="read_timeout is None"):
        HttpLimits(read_timeout=None)
    assert HttpLimits(max_retries=0).max_retries == 0


def test_reprs_name_the_file(tmp_path):
    (tmp_path / "w.bin").write_bytes(np.float32(1).tobytes())
    (tmp_path / "model.onnx").write_bytes(onnx_with_external_data("w.bin"))
    assert "model.onnx" in repr(load_model(tmp_path / "model.onnx"))
