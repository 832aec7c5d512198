"""Arguments in the wrong order, of the wrong kind or with a misspelled name: the message says what to type."""

import inspect

import numpy as np
import pandas as pd
import pytest

import anchorline as al
from anchorline.errors import ParameterError
from anchorline.result.verification import Outcome

FRAME = pd.DataFrame({"age": np.arange(20, 60), "debt": np.arange(40) % 7})
CHEAP = {"k": 2, "queries": 400}


def model(frame):
    return np.tanh((np.asarray(frame["age"]) - 40) / 10 - np.asarray(frame["debt"]) / 7)


class Fitted:
    def predict(self, frame):
        return model(frame)


def explainer():
    return al.Explainer(model, al.Table(FRAME), output_range=(-1, 1))


# --- the order of arguments --------------------------------------------------------------------------


@pytest.mark.parametrize("space", [al.Table(FRAME), FRAME, FRAME.to_numpy(), al.Hypercube()])
@pytest.mark.parametrize("predict", [model, Fitted()])
def test_a_table_before_the_model_is_named(space, predict):
    with pytest.raises(
        ParameterError, match=r"first argument is of type (Table|DataFrame|ndarray|Hypercube).*"
    ) as caught:
        al.Explainer(space, predict)
    assert "the model must come first" in str(caught.value)
    assert "Type Explainer(model, table)." in str(caught.value)


@pytest.mark.parametrize("missing", [(), (model,)])
def test_an_explainer_without_a_table_says_what_to_type(missing):
    with pytest.raises(TypeError, match=r"needs a model and the table .* Type Explainer\(model, table\)\.$"):
        al.Explainer(*missing)
    assert al.Explainer(space=FRAME, model=model).model is model
    with pytest.raises(ParameterError, match=r"The table is None; .* Type Explainer\(model, table\)\.$"):
        al.Explainer(model, None)


@pytest.mark.parametrize("labels", [np.arange(40) % 2, list(range(40))])
def test_labels_are_not_a_table(labels):
    with pytest.raises(ParameterError, match=r"shape \(40,\), as labels are; .* all columns that the model takes"):
        al.Explainer(model, labels)


def test_the_name_of_a_file_is_not_its_text():
    answer = al.verify("why.json", model, FRAME)
    assert answer.outcome is Outcome.CANNOT_TELL
    assert "Type verify(Path('why.json').read_text(), model, table)." in str(answer)


def test_a_model_that_has_a_shape_is_a_model():
    predict = Fitted()
    predict.shape = (3, 1)
    assert al.Explainer(predict, FRAME).model is predict


def test_verify_names_the_order_of_its_arguments():
    e = explainer().explain(3, **CHEAP)
    for swapped in (e, e.to_json()):
        with pytest.raises(ParameterError, match=r"first comes an Explanation.*verify\(explanation, model, table"):
            al.verify(model, swapped, FRAME)
    with pytest.raises(ParameterError, match=r"first argument is of type dict.*first comes an Explanation"):
        al.verify({}, model, FRAME)
    with pytest.raises(ParameterError, match="second of type Explanation"):
        al.verify(e.to_json(), e, FRAME)


def test_verify_takes_a_bare_frame_as_a_table():
    e = explainer().explain(3, **CHEAP)
    assert al.verify(e, model, FRAME, seed=0).outcome is Outcome.HOLDS
    assert al.verify(e, model, FRAME[:30], seed=0).outcome is Outcome.DOES_NOT_HOLD
    with pytest.raises(ParameterError, match=r"anchorline.io.read_table"):
        al.verify(e, model, "train.csv")


# --- misspelled keywords -----------------------------------------------------------------------------

MISSPELLED = [
    (lambda: al.Table(FRAME, group={}), r"Table\(\) got an unexpected keyword 'group'. Did you mean 'groups'\?"),
    (lambda: al.Table(FRAME, Fixed=["age"]), r"'Fixed'. Did you mean 'fixed'\?"),
    (
        lambda: al.Table(FRAME, zzz=1),
        r"'zzz'. The keywords are categorical, cuts, fixed, frame, groups, names, neighbors, reference, valid",
    ),
    (
        lambda: al.Explainer(model, FRAME, outputs="a"),
        r"Explainer\(\) got an .* 'outputs'. Did you mean 'output'\?",
    ),
    (lambda: al.Explainer(model, FRAME, Threshold=0.5), r"Did you mean 'threshold'\?"),
    (lambda: explainer().explain(3, K=4), r"explain\(\) got an unexpected keyword 'K'. Did you mean 'k'\?"),
    (lambda: explainer().explain(3, Query=4), r"Did you mean 'queries'\?"),
    (lambda: explainer().explain_many(FRAME[:2], K=4), r"Did you mean 'k'\?"),
    (lambda: explainer().explain(3, Seed=1), r"Did you mean 'seed'\?"),
    (lambda: explainer().frontier(3, Seed=1), r"Did you mean 'seed'\?"),
    (lambda: explainer().copies(3, Seed=1), r"Did you mean 'seed'\?"),
    (lambda: explainer().cost(3, Seed=1), r"Did you mean 'seed'\?"),
    (lambda: explainer().changes(3, Seed=1), r"Did you mean 'seed'\?"),
    (lambda: al.Explainer(model, FRAME, treshold=1), r"Did you mean 'threshold'\?"),
]


@pytest.mark.parametrize(("call", "message"), MISSPELLED)
def test_a_misspelled_keyword_is_a_type_error_that_names_the_right_one(call, message):
    with pytest.raises(TypeError, match=message):
        call()


GONE = [
    (lambda: explainer().explain(3, objective="relevance"), r"explainer\.rule\(row\)` finds facts"),
    (lambda: explainer().explain(3, max_relevance_error=0.1), r"explainer\.rule\(row\)` finds facts"),
    (lambda: explainer().explain(3, pairs=True), r"explainer\.rule\(row\)` finds facts"),
    (lambda: explainer().explain(3, flip_probability=0.2), r"sigma= .* probability 2 / \(1 \+ e\^sigma\)"),
    (lambda: al.Explainer(model, FRAME, column=1), "no longer has the keyword 'column'. output= takes the name"),
    (lambda: al.Explainer(model, FRAME, same_within=0.1), "within 2% of the spread on the table. Leave it out"),
    (lambda: al.Explainer(model, FRAME, training_mean=1), "e.fit.mean_output"),
    (lambda: al.explain, r"Explainer\(model, table\).explain\(row\)`, or `anchorline.paper.explain"),
    (lambda: al.Certificate, r"no attribute 'Certificate'. Use the figures of an explanation"),
    (lambda: al.Binarizer, "Use `anchorline.paper.Binarizer`"),
    (lambda: al.zzz, "no attribute 'zzz'$"),
]


@pytest.mark.parametrize(("call", "message"), GONE)
def test_what_is_gone_names_its_successor(call, message):
    with pytest.raises((TypeError, AttributeError), match=message):
        call()


def test_signatures_show_the_keywords():
    assert "groups" in inspect.signature(al.Table).parameters
    assert "threshold" in inspect.signature(al.Explainer).parameters
    assert not [p for p in inspect.signature(al.Explainer).parameters.values() if p.kind is p.VAR_KEYWORD]
