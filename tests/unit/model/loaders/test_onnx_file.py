"""ONNX models answer as their originals do; files that reach outside their folder are refused."""

import pickle

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from skl2onnx import convert_sklearn, to_onnx
from skl2onnx.common.data_types import FloatTensorType, Int64TensorType, StringTensorType
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import (
    BaggingClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
    StackingClassifier,
    VotingClassifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

import anchorline as al
from anchorline import errors
from anchorline.cli.serve import _digest
from anchorline.model.loaders import load_model
from helpers.model_tables import COARSE, LABELS, NUMBERS, TABLE, same_in_every_frame

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


def test_onnx_labels_that_the_graph_does_not_hold(tmp_path):
    """Labels of inner estimators do not count: columns have no labels if the path back from the label has none."""
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
    with pytest.raises(
        errors.ModelInputError, match=r"have the columns .*'children' and lack 'town', which the model needs"
    ):
        model(NUMBERS)
    with pytest.raises(errors.ModelInputError, match=r"'children' holds 'x'; the model needs numbers there"):
        model(TABLE.assign(children="x"))
    with pytest.raises(
        errors.ModelInputError, match=r"got 2 columns, but it needs 3: 'net_income', 'children', 'town'"
    ):
        model(NUMBERS.to_numpy())
    rows = NUMBERS.to_numpy(np.float32)
    matrix = LogisticRegression().fit(rows, LABELS)
    path.write_bytes(to_onnx(matrix, rows[:1]).SerializeToString())
    with pytest.raises(
        errors.ModelInputError, match=r"got 3 columns \('net income', 'children', 'town'\), but it needs 2"
    ):
        load_model(path)(TABLE)


def onnx_with_external_data(location, in_subgraph=False):
    """Return a model y = x + weights, whose weights are in another file."""
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
    path = str(tmp_path / "model.onnx")
    served = al.Explainer(model, al.Table(np.arange(8.0).reshape(-1, 1)), output="y").model
    assert _digest(path, served) is None  # the file says nothing about the weights
    assert _digest(path, None).startswith("sha256:")
    (tmp_path / "weights.bin").unlink()
    with pytest.raises(errors.ModelFileError, match=r"needs the file 'weights.bin' in its folder"):
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


def test_every_location_of_a_tensor_is_checked(tmp_path):
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
def test_files_that_are_not_onnx_models(tmp_path, content):
    (tmp_path / "model.onnx").write_bytes(content)
    with pytest.raises(errors.ModelFileError, match="is not an ONNX model"):
        load_model(tmp_path / "model.onnx")


def test_reprs_name_the_file(tmp_path):
    (tmp_path / "w.bin").write_bytes(np.float32(1).tobytes())
    (tmp_path / "model.onnx").write_bytes(onnx_with_external_data("w.bin"))
    assert "model.onnx" in repr(load_model(tmp_path / "model.onnx"))
