"""What `HttpModel` sends to MLflow and Open Inference servers, and how it reads their answers."""

import pickle
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from anchorline import Explainer, Table, errors, verify
from anchorline.model.loaders import HttpLimits
from helpers.model_server import FRAME, METADATA, flaky, mlflow, open_inference


@pytest.mark.parametrize(
    "make", [lambda f: f, pl.from_pandas, pa.Table.from_pandas], ids=["pandas", "polars", "arrow"]
)
def test_mlflow_gets_columns_and_rows(server, load, make):
    server.answer = mlflow
    model = load(f"{server.address}/invocations")
    assert model(make(FRAME)).tolist() == [1.0, 3.0, 5.0]
    split = server.requests[0][3]["dataframe_split"]
    assert split == {"columns": ["a", "n", "town"], "data": [[0.5, 1, "x"], [1.5, 2, "y"], [2.5, 3, None]]}


def test_mlflow_scores_by_label_and_other_shapes(server, load):
    answers = {
        "scores": [{"no": 0.5, "yes": 0.5}] * 3,
        "lists": [[0.25, 0.75]] * 3,
        "labels": ["no", "yes", "no"],
        "named": [{"y": 5.0}] * 3,
    }
    model = load(f"{server.address}/invocations")
    server.answer = lambda request, body: request.reply({"predictions": answers["lists"]})
    np.testing.assert_array_equal(model(FRAME), answers["lists"])
    assert model.classes_ is None
    server.answer = lambda request, body: request.reply({"predictions": answers["scores"]})
    np.testing.assert_array_equal(model(FRAME), [[0.5, 0.5]] * 3)
    assert model.classes_ == ["no", "yes"]
    server.answer = lambda request, body: request.reply(answers["labels"])
    assert model(FRAME).tolist() == answers["labels"]
    server.answer = lambda request, body: request.reply({"predictions": answers["named"]})
    with pytest.raises(
        errors.RemoteModelError, match=r"not all have the same labels: 'no', 'yes', then {'y': 5.0}"
    ):
        model(FRAME)
    model = load(f"{server.address}/invocations")
    assert model(FRAME).tolist() == [5.0] * 3
    assert model.classes_ is None


def by_label(request, body):
    """Answer with two scores per row by label, from the first column; every other row has reverse order."""
    pairs = [[("yes", row[0] / 10), ("no", 1 - row[0] / 10)] for row in body["dataframe_split"]["data"]]
    request.reply({"predictions": [dict(pair[:: -1 if i % 2 else 1]) for i, pair in enumerate(pairs)]})


def test_mlflow_scores_are_ordered_by_their_labels(server, load):
    server.answer = by_label
    model = load(f"{server.address}/invocations", http=HttpLimits(batch_rows=2))
    np.testing.assert_allclose(model(FRAME), [[0.95, 0.05], [0.85, 0.15], [0.75, 0.25]])
    assert model.classes_ == ["no", "yes"]
    flipped = {"no": 0.75, "yes": 0.25}
    server.answer = lambda request, body: request.reply({"predictions": [flipped]})
    np.testing.assert_array_equal(model(FRAME[2:]), [[0.75, 0.25]])
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy(FRAME[2:]), [[0.75, 0.25]])
    copy.close()
    server.answer = lambda request, body: request.reply({"predictions": [flipped | {"perhaps": 0.0}]})
    with pytest.raises(errors.RemoteModelError, match=r"not all have the same labels: 'no', 'yes', then"):
        model(FRAME[2:])


def test_explanations_are_named_after_the_labels_of_an_mlflow_model(server, load):
    server.answer = by_label
    table = Table(pd.DataFrame({"a": np.linspace(0, 10, 40), "b": np.arange(40.0) % 3}))
    patient = HttpLimits(read_timeout=20.0)  # the machine may be busy
    model = load(f"{server.address}/invocations", http=patient)
    assert model.classes_for(table.at(0).original) == ["no", "yes"]
    explainers = [Explainer(model, table, output=output) for output in (None, "yes")]
    explanations = [explainer.explain(3, k=2, queries=200) for explainer in explainers]
    assert [explanation.output.name for explanation in explanations] == ["no", "yes"]
    for explanation in explanations:
        for same_model in (model, load(f"{server.address}/invocations", http=patient)):
            assert verify(explanation.to_json(), same_model, table).holds
    swapped = Explainer(partial(model), table, output="yes", classes=["yes", "no"])
    wrong = swapped.explain(3, k=2, queries=200)
    assert not verify(wrong, model, table).holds


def test_classes_for_queries_an_mlflow_model_once(server, load):
    server.answer = by_label
    model, row = load(f"{server.address}/invocations"), Table(FRAME).at(0).original
    for _ in range(2):
        assert model.classes_for(row) == ["no", "yes"]
        assert [len(body["dataframe_split"]["data"]) for *_, body in server.requests] == [1]
    for output, column in (("no", 0), ("yes", 1)):
        assert Explainer(model, Table(FRAME), output=output).target.column == column
    answered = load(f"{server.address}/invocations")
    answered(FRAME)
    n_requests = len(server.requests)
    assert answered.classes_for(row) == ["no", "yes"]
    assert len(server.requests) == n_requests


def mlserver(outputs):
    """Return a handler that answers as MLServer: with labels, unless the request names another output."""

    def answer(request, body):
        if body is None:
            return request.reply(METADATA | {"outputs": outputs})
        n, d = body["inputs"][0]["shape"]
        p = [body["inputs"][0]["data"][i * d] / 10 for i in range(n)]
        if [part["name"] for part in body.get("outputs", [])] == ["predict_proba"]:
            output = {"name": "predict_proba", "shape": [n, 2], "data": [v for x in p for v in (1 - x, x)]}
            return request.reply({"outputs": [output | {"datatype": "FP64"}]})
        labels = {"name": "predict", "shape": [n, 1], "datatype": "INT64", "data": [int(x > 0.5) for x in p]}
        return request.reply({"outputs": [labels]})

    return answer


PREDICT = {"name": "predict", "datatype": "INT64", "shape": [-1]}
PROBABILITIES = {"name": "predict_proba", "datatype": "FP64", "shape": [-1, 2]}
NAMES = {"class_names": ["no", "yes"]}


def test_probabilities_are_requested_where_the_metadata_list_them(server, load):
    server.answer = mlserver([PREDICT, PROBABILITIES])
    model = load(f"{server.address}/v2/models/m/infer", http=HttpLimits(batch_rows=2))
    np.testing.assert_allclose(model(FRAME[["a", "n"]]), [[0.95, 0.05], [0.85, 0.15], [0.75, 0.25]])
    bodies = [body for method, *_, body in server.requests if method == "POST"]
    assert [body["outputs"] for body in bodies] == [[{"name": "predict_proba"}]] * 2
    assert model.classes_ is None
    server.requests.clear()
    server.answer = mlserver([PREDICT])
    assert load(f"{server.address}/v2/models/m/infer")(FRAME[["a", "n"]]).tolist() == [0, 0, 0]
    assert "outputs" not in server.requests[-1][3]


@pytest.mark.parametrize("outputs", [[], None, "predict_proba", [None, 3, {"shape": [-1, 2]}]], ids=str)
def test_probabilities_are_tried_where_the_metadata_list_no_outputs(server, load, outputs):
    """MLServer's metadata list no outputs unless its operator declares them, and its answers hold "predict"."""
    server.answer = mlserver(outputs)
    model = load(f"{server.address}/v2/models/m/infer", http=HttpLimits(batch_rows=2, max_queries=5))
    np.testing.assert_allclose(model(FRAME[["a", "n"]]), [[0.95, 0.05], [0.85, 0.15], [0.75, 0.25]])
    named = [body.get("outputs") for method, *_, body in server.requests if method == "POST"]
    assert named == [None, [{"name": "predict_proba"}], [{"name": "predict_proba"}]]
    with pytest.raises(errors.BudgetError, match=r"to 6; its max_queries is 5"):  # the repeated batch was counted
        model(FRAME[:1])


def test_a_server_without_probabilities_is_asked_for_them_once(server, load):
    """MLServer refuses "predict_proba" of a regressor with status 400."""

    def regressor(request, body):
        if body is None:
            return request.reply({"name": "m", "inputs": [], "outputs": []})
        if "outputs" in body:
            return request.reply({"error": "models do not support 'predict_proba"}, 400)
        n = body["inputs"][0]["shape"][0]
        output = {"name": "predict", "shape": [n, 1], "datatype": "FP64", "data": [7.5] * n}
        return request.reply({"outputs": [output]})

    server.answer = regressor
    model = load(f"{server.address}/v2/models/m/infer")
    for _ in range(2):
        assert model(FRAME[["a", "n"]]).tolist() == [7.5, 7.5, 7.5]
    assert [body.get("outputs") for *_, body in server.requests if body].count([{"name": "predict_proba"}]) == 1
    copy = pickle.loads(pickle.dumps(model))
    assert copy(FRAME[["a", "n"]]).tolist() == [7.5, 7.5, 7.5]
    assert "outputs" not in server.requests[-1][3]
    copy.close()


def test_other_outputs_are_taken_as_they_are(server, load):
    """A server that ignores the names in a request answers with the same output, and is not asked twice."""
    labels = {"outputs": [{"name": "predict", "shape": [3], "datatype": "INT64", "data": [1, 0, 1]}]}
    server.answer = lambda request, body: request.reply({} if body is None else labels)
    model = load(f"{server.address}/v2/models/m/infer")
    for n_requests in (3, 4):  # metadata, labels, an attempt; labels
        assert model(FRAME[["a", "n"]]).tolist() == [1, 0, 1]
        assert len(server.requests) == n_requests


@pytest.mark.parametrize("member", ["parameters", "tags"])
def test_class_names_come_from_the_metadata(server, load, member):
    server.answer = mlserver([PREDICT, PROBABILITIES | {member: NAMES}])
    table = Table(pd.DataFrame({"a": np.linspace(0, 10, 40), "n": np.arange(40.0) % 3}))
    model = load(f"{server.address}/v2/models/m/infer")
    explanation = Explainer(model, table, output="yes").explain(3, k=2, queries=200)
    assert (explanation.output.name, model.classes_) == ("yes", ["no", "yes"])
    assert [method for method, *_ in server.requests].count("GET") == 1
    again = load(f"{server.address}/v2/models/m/infer")
    again(table.at(0).original)
    assert again.classes_ == ["no", "yes"]
    assert verify(explanation.to_json(), again, table).holds


@pytest.mark.parametrize(
    "change",
    [
        {"shape": [-1, 3], "parameters": NAMES},
        {"shape": [-1, -1], "parameters": NAMES},
        {"shape": None, "parameters": NAMES},
        {"parameters": {"classes": ["no", "no"]}},
        {"parameters": {"classes": [0, 1]}},
        {"parameters": {"classes": "no"}},
        {"parameters": {"content_type": "np"}},
        {"parameters": ["classes"], "tags": ["no", "yes"]},
    ],
    ids=str,
)
def test_doubtful_class_names_are_not_used(server, load, change):
    server.answer = mlserver([PROBABILITIES | change])
    model = load(f"{server.address}/v2/models/m/infer")
    assert model.classes_for(FRAME) is None
    assert model(FRAME[["a", "n"]]).shape == (3, 2)
    assert model.classes_ is None


def test_classes_for_returns_none_without_labels(server, load):
    server.answer = mlflow
    assert load(f"{server.address}/invocations").classes_for(FRAME) is None
    server.answer = flaky(*[400] * 20)
    assert load(f"{server.address}/invocations").classes_for(FRAME) is None
    server.answer = flaky(*[503] * 20)
    with pytest.raises(errors.RemoteModelError, match="tried 5 times"):
        load(f"{server.address}/invocations").classes_for(FRAME)


def test_rows_go_in_batches_of_fixed_size(server, load):
    server.answer = mlflow
    model = load(f"{server.address}/invocations", http=HttpLimits(batch_rows=4))
    rows = np.arange(20.0).reshape(10, 2)
    assert model(rows).tolist() == (2 * rows[:, 0]).tolist()
    assert [len(body["dataframe_split"]["data"]) for *_, body in server.requests] == [4, 4, 2]
    assert server.requests[0][3]["dataframe_split"]["columns"] == ["x0", "x1"]


@pytest.mark.parametrize("path", ["/v2/models/m/infer", "/v2/models/m", "/v2/models/m/versions/2/infer"])
def test_open_inference_matrix(server, load, path):
    server.answer = open_inference(METADATA)
    model = load(f"{server.address}{path}")
    np.testing.assert_allclose(model(FRAME[["a", "n"]]), [[0.95, 0.05], [0.85, 0.15], [0.75, 0.25]])
    (get, about, *_), (post, infer, _, body) = server.requests
    assert (get, post) == ("GET", "POST")
    assert infer == f"{about}/infer"
    tensor = {"name": "rows", "shape": [3, 2], "datatype": "FP32", "data": [0.5, 1.0, 1.5, 2.0, 2.5, 3.0]}
    assert body == {"inputs": [tensor]}
    with pytest.raises(errors.ModelInputError, match=r"got 3 columns \(.*\), but it needs 2"):
        model(FRAME)


@pytest.mark.parametrize("metadata", ["named", "none"])
def test_open_inference_columns(server, load, metadata):
    kinds = {"a": "FP64", "n": "INT64", "town": "BYTES"}
    inputs = [{"name": name, "datatype": kind, "shape": [-1, 1]} for name, kind in kinds.items()]
    server.answer = open_inference({"inputs": inputs} if metadata == "named" else None)
    model = load(f"{server.address}/v2/models/m/infer")
    reordered = FRAME[["town", "n", "a"]] if metadata == "named" else FRAME
    assert model(reordered).shape == (3, 2)
    sent = {part["name"]: part for part in server.requests[-1][3]["inputs"]}
    assert {name: part["datatype"] for name, part in sent.items()} == kinds
    assert sent["town"]["data"] == ["x", "y", None]
    assert sent["n"]["shape"] == [3, 1]
    if metadata == "named":
        with pytest.raises(errors.ModelInputError, match="lack 'town', which the model needs"):
            model(FRAME[["a", "n"]])


def test_open_inference_without_metadata(server, load):
    """A server without metadata is queried anyway; a server that is down is given up once, not twice."""
    server.answer = open_inference(None)
    assert load(f"{server.address}/v2/models/m/infer")(FRAME[["a", "n"]]).shape == (3, 2)
    server.requests.clear()
    server.answer = flaky(*[503] * 20)
    with pytest.raises(errors.RemoteModelError, match="tried 5 times"):
        load(f"{server.address}/v2/models/m/infer")(FRAME)
    assert {method for method, *_ in server.requests} == {"GET"}
