"""Which of a model's numbers is explained: estimators, methods and functions; classes, columns and names."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from anchorline.errors import ParameterError
from anchorline.explainer import Explainer
from anchorline.model.outputs import as_array, classes_of, resolve
from anchorline.model.predictor import output_name
from anchorline.spaces.table import Table

ROWS = np.arange(24.0).reshape(12, 2) % 7
TARGET = np.array(["no", "yes"])[(ROWS[:, 0] > 3).astype(int)]
CLASSIFIER = LogisticRegression().fit(ROWS, TARGET)
REGRESSOR = LinearRegression().fit(ROWS, ROWS[:, 0])
MARGINS = LinearSVC().fit(ROWS, TARGET)


def test_a_classifier_is_asked_for_probabilities():
    asked = resolve(CLASSIFIER)
    assert (asked.task, asked.classes, asked.column, asked.name) == (None, ("no", "yes"), None, None)
    np.testing.assert_array_equal(asked.ask(ROWS), CLASSIFIER.predict_proba(ROWS))
    assert output_name(asked, 1) == "yes"


def test_a_classifier_without_probabilities_is_asked_for_labels():
    asked = resolve(MARGINS)
    assert (asked.task, asked.classes) == ("label", None)
    np.testing.assert_array_equal(asked.ask(ROWS), MARGINS.predict(ROWS))
    assert resolve(CLASSIFIER, task="label").ask(ROWS)[0] in {"no", "yes"}


def test_a_regressor_is_asked_for_numbers():
    asked = resolve(REGRESSOR, output="price")
    assert (asked.task, asked.classes, asked.name, output_name(asked, None)) == ("number", None, "price", "price")
    assert output_name(resolve(REGRESSOR), None) == "f(x)"
    assert output_name(resolve(REGRESSOR, output=1), 1) == "output 1"


def test_a_function_is_asked_as_it_is():
    asked = resolve(np.tanh)
    assert asked.ask is np.tanh
    assert (asked.task, asked.classes, asked.input) == (None, None, "auto")
    assert output_name(asked, 2) == "class 2"


@pytest.mark.parametrize("model", [CLASSIFIER, CLASSIFIER.predict_proba, CLASSIFIER.predict_log_proba])
def test_methods_know_their_classes(model):
    assert resolve(model, output="yes").column == 1
    assert classes_of(model) == ["no", "yes"]


def test_methods_of_ensembles_know_their_classes():
    """An ensemble has a length: an empty one would be taken for nothing."""
    model = RandomForestClassifier(2).fit(ROWS, TARGET)
    assert classes_of(model.predict_proba) == ["no", "yes"]


@pytest.mark.parametrize("method", [CLASSIFIER.predict, CLASSIFIER.decision_function, MARGINS.decision_function])
def test_methods_that_answer_with_one_value_have_no_columns(method):
    asked = resolve(method, output="score")
    assert (asked.classes, asked.column, asked.name) == (None, None, "score")


def test_classes_are_python_values():
    model = LogisticRegression().fit(ROWS, (ROWS[:, 0] > 3).astype(np.int16))
    assert [type(label) for label in classes_of(model)] == [int, int]
    assert [type(label) for label in resolve(np.tanh, classes=np.array(["a", "b"])).classes] == [str, str]


@pytest.mark.parametrize("output", [1, "1", 1.0, True, np.int8(1)])
def test_a_label_by_value_or_text(output):
    asked = resolve(np.tanh, classes=[0, 1], output=output)
    assert asked.column == 1
    assert output_name(asked, 1) == "1"


def test_a_label_is_taken_before_its_text():
    assert resolve(np.tanh, classes=["1", 1.5], output="1.5").column == 1
    assert resolve(np.tanh, classes=[10, 1], output=1).column == 1


def test_a_number_that_is_not_a_label_is_that_of_a_column():
    assert resolve(CLASSIFIER, output=np.int64(1)).column == 1
    asked = resolve(lambda rows: rows, output=0)
    assert (asked.column, asked.name) == (0, None)


BAD = [
    ({"model": CLASSIFIER, "output": "maybe"}, "output is 'maybe'; the model's classes are 'no', 'yes'. Pick one"),
    ({"model": CLASSIFIER, "output": 2}, "output is 2; the model has 2 classes"),
    ({"model": CLASSIFIER, "output": -1}, "output is -1, but it must be the number of a column"),
    ({"model": CLASSIFIER, "output": True}, "output is True"),
    ({"model": CLASSIFIER, "output": "1"}, "output is '1'"),
    (
        {"model": CLASSIFIER, "task": "classification"},
        "task is 'classification', but it must be 'label', 'number' or None",
    ),
    ({"model": CLASSIFIER, "input": "numpy"}, "input is 'numpy', but it must be one of auto, frame, array"),
    (
        {"model": MARGINS, "output": "yes"},
        "output is 'yes', which is a class, but without class scores, only the label predicted",
    ),
    ({"model": CLASSIFIER, "output": "no", "task": "label"}, "output is 'no', which is a class"),
    ({"model": np.tanh, "classes": "yes"}, "classes is 'yes', but it must be a list of labels"),
    ({"model": np.tanh, "classes": 3}, "classes is 3, but it must be a list"),
    ({"model": np.tanh, "classes": ["a", "a"]}, "classes are 'a', 'a', but all labels must differ"),
    (
        {"model": "model.pkl"},
        r"a str, which is not callable.* Load a file first: `anchorline.*load_model\('model.pkl'\)`",
    ),
    ({"model": None}, "predict is a NoneType"),
]


@pytest.mark.parametrize(("arguments", "words"), BAD)
def test_a_bad_question_is_named(arguments, words):
    with pytest.raises(ParameterError, match=words):
        resolve(**arguments)


def test_several_outputs_are_named():
    model = RandomForestClassifier(2).fit(ROWS, np.c_[ROWS[:, 0] > 3, ROWS[:, 1] > 3])
    with pytest.raises(ParameterError, match=r"2 outputs, but one is explained.* type output=0"):
        resolve(model)
    second = resolve(model, output=1)
    assert (second.classes, second.part) == ((False, True), 1)
    assert np.array_equal(second.ask(ROWS)[:, :2], model.predict_proba(ROWS)[1])  # then the named class


# --- arrays ----------------------------------------------------------------------------------------------


def test_estimators_fitted_on_arrays_get_arrays():
    assert resolve(CLASSIFIER).input == resolve(CLASSIFIER.predict_proba).input == "array"
    on_frames = LogisticRegression().fit(pd.DataFrame(ROWS, columns=["a", "b"]), TARGET)
    assert resolve(on_frames).input == "auto"
    assert resolve(CLASSIFIER, input="frame").ask == CLASSIFIER.predict_proba


def test_questions_pickle():
    asked = pickle.loads(pickle.dumps(resolve(CLASSIFIER, output="yes")))
    np.testing.assert_array_equal(asked.ask(pd.DataFrame(ROWS)), CLASSIFIER.predict_proba(ROWS))


def test_frames_as_arrays():
    frame = pd.DataFrame({0: pd.array([1, None], dtype="Int64"), 1: [True, False], 2: np.float32([0.5, 1])})
    expected = [[1.0, 1.0, 0.5], [np.nan, 0.0, 1.0]]
    for one in (frame, pl.from_pandas(frame.set_axis(list("abc"), axis=1))):
        array = as_array(one)
        assert array.dtype == np.float64
        np.testing.assert_array_equal(array, expected)
    mixed = as_array(frame.assign(text=["a", None], nothing=pd.array([True, None], dtype="boolean")))
    assert mixed.dtype == object
    assert mixed[0].tolist() == [1, True, 0.5, "a", True]
    assert np.isnan(mixed[1, 0])
    assert np.isnan(mixed[1, 4])
    assert mixed[1, 3] is None
    assert as_array(ROWS) is ROWS


def test_what_the_user_says_are_labels_are_labels():
    rows = np.random.default_rng(0).normal(size=(60, 2))
    tree = DecisionTreeClassifier(max_depth=2).fit(rows, np.where(rows[:, 0] > 0, "yes", "no"))
    leaf = Explainer(tree.apply, Table(rows), task="label").explain(0, queries=400)
    assert leaf.output.decision == int(tree.apply(rows[:1])[0])


def test_the_decision_at_the_row_is_taken_as_that_of_its_neighbors():
    def certain(rows):
        return np.column_stack([np.full(len(rows), -1e-5), np.full(len(rows), 1.00001)])

    space = Table(np.arange(20.0).reshape(10, 2))
    explainer = Explainer(certain, space, output="a", threshold=0.0, classes=["a", "b"])
    assert explainer.explain(0, k=2, queries=100).all.value == 1.0


def scores(rows):
    high = 1 / (1 + np.exp(-rows[:, 0]))
    return np.column_stack([high / 2, high / 2, 1 - high])


@pytest.mark.parametrize("output", [1, np.int64(1)])
def test_an_output_by_number_is_a_column_and_a_label_where_labels_are_numbers(output):
    space = Table(np.random.default_rng(0).normal(size=(60, 2)))
    e = Explainer(scores, space, output=output).explain(0, queries=100)
    assert e.output.name == "class 1"
    assert e.prediction == pytest.approx(scores(space.at(0).original)[0, 1])
    labeled = Explainer(scores, space, output=output, classes=[3, 2, 1]).explain(0, queries=100)
    assert labeled.output.name == "1"
    assert labeled.prediction == pytest.approx(scores(space.at(0).original)[0, 2])
    named = Explainer(scores, space, output="b", classes=list("abc")).explain(0, queries=100)
    assert named.prediction == e.prediction


@pytest.mark.parametrize(
    ("model", "choices", "words"),
    [
        (scores, {"output": 3}, "output is 3, but the model returns 3 columns, counted from 0"),
        (lambda rows: rows[:, 0], {"output": 1}, "output is 1, but the model returns one value per row. Leave"),
        (scores, {"task": "number"}, "returns 3 numbers per row, but one is explained. Type output=0"),
        (scores, {"output": "a"}, r"output is 'a', but the model returns 3 columns without names.*classes=\["),
        (scores, {"classes": ["a", "b"]}, "2 classes were given, but the model returns 3 columns"),
    ],
)
def test_an_output_that_is_not_there_is_named(model, choices, words):
    explainer = Explainer(model, Table(np.random.default_rng(0).normal(size=(60, 2))), **choices)
    with pytest.raises(ParameterError, match=words) as caught:
        explainer.explain(0, queries=100)
    assert "column=" not in str(caught.value)
    with pytest.raises(ParameterError, match=words):
        explainer.explain(0)


@pytest.mark.parametrize("output", [0, 1])
def test_one_of_several_numbers(output):
    rows = np.random.default_rng(0).normal(size=(60, 2))
    e = Explainer(lambda rows: 3 * rows, Table(rows), output=output, task="number").explain(5)
    assert (e.output.kind, e.output.name) == ("number", f"output {output}")
    assert e.prediction == 3 * rows[5, output]
    assert {fact.attribute for fact in e.facts} == {f"x{output}"}
