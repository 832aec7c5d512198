"""Cases that are not training rows: explained against the training table, with their own outcomes."""

import numpy as np
import polars as pl
import pytest

from anchorline.errors import ParameterError
from anchorline.explainer import Explainer
from anchorline.samples import loans
from anchorline.spaces.table import Table
from anchorline.studio.catalog import TableCases
from anchorline.studio.demo import demo_explainer
from helpers.studio import client_of, cohort_explainer, finish, live, studio_of

QUICK = {"queries": 400}


@pytest.fixture(scope="module")
def explainer():
    return demo_explainer(400)


@pytest.fixture(scope="module")
def new():
    """Applications that the model has not seen, with the column of their outcomes."""
    frame, decision = loans(60, seed=9)
    return frame.assign(decision=decision)


@pytest.fixture(scope="module")
def server(explainer, new):
    with live(explainer, cases=new, truth=("decision", new["decision"])) as running:
        yield running


def test_a_case_is_explained_against_the_training_table(client, explainer, new):
    for position in (0, 7, 59):
        row = new.drop(columns="decision").iloc[position].to_dict()
        expected = explainer.explain(row, **QUICK).to_json()
        assert client.post("/v1/explain", json={"row": position, **QUICK}).text == expected
    assert (
        client.post("/v1/rule", json={"row": 7}).text
        == explainer.rule(new.drop(columns="decision").iloc[7]).to_json()
    )


def test_cases_are_listed_searched_and_sorted_with_their_own_answers_and_outcomes(client, explainer, new):
    page = client.get("/v1/rows", params={"limit": 200}).json()
    assert (page["total"], page["columns"]) == (60, list(explainer.space.names))
    answers = explainer.model.predict(new.drop(columns="decision"))
    assert [row["answer"] for row in page["rows"]] == answers.tolist()
    assert [row["truth"] for row in page["rows"]] == new["decision"].tolist()
    found = client.get("/v1/rows", params={"search": "income>40000 purpose=car", "limit": 200}).json()["rows"]
    expected = np.flatnonzero((new["income"] > 40_000) & (new["purpose"] == "car"))
    assert [row["position"] for row in found] == expected.tolist()
    wrong = client.get("/v1/rows", params={"search": "wrong decisions", "limit": 200}).json()
    assert [row["position"] for row in wrong["rows"]] == np.flatnonzero(answers != new["decision"]).tolist()


def test_how_often_decisions_are_right_is_counted_on_the_cases(client, explainer, new):
    answer, _ = finish(client, "/v1/overview", n_rows=5, k=2)
    agree = (explainer.model.predict(new.drop(columns="decision")) == new["decision"]).mean()
    assert answer["outcomes"]["right"]["value"] == pytest.approx(agree)
    assert not answer["outcomes"]["are_training"]
    assert not client.get("/page/about").json()["are_training"]


def test_a_number_that_no_case_has_is_not_found(client):
    for path in ("/v1/explain", "/v1/rule", "/v1/what-if", "/v1/changes", "/page/explain"):
        answer = client.post(path, json={"row": 60})
        assert answer.status_code == 404
        assert answer.json()["detail"] == "No case has the number 60; the numbers are 0 to 59."


def test_rows_of_other_types_become_those_of_the_table():
    """Dictionaries of a CSV file, and frames of another library."""
    frame, _ = loans(20, seed=3)
    space = Table(loans(100)[0])
    expected = TableCases(space, frame)
    others = (pl.from_pandas(frame), [{"extra": 1, **row} for row in frame.to_dict("records")])
    for given in others:
        cases = TableCases(space, given)
        assert [cases.parse_row(i) for i in range(20)] == [expected.parse_row(i) for i in range(20)]
        model_input = next(cases.inputs(np.arange(3)))[0]
        assert list(model_input.dtypes) == list(next(expected.inputs(np.arange(3)))[0].dtypes)


def test_cases_that_do_not_fit_are_refused():
    frame, _ = loans(20)
    space = Table(frame)
    for given in (frame.drop(columns="age"), [{"age": 1}]):
        with pytest.raises(ParameterError, match="lack the columns"):
            TableCases(space, given)
    for given in (frame.iloc[:0], []):
        with pytest.raises(ParameterError, match="at least one row"):
            TableCases(space, given)
    with pytest.raises(ParameterError, match="20 cases"):
        studio_of(Explainer(lambda rows: rows["age"], space, task="number"), cases=frame, truth=("x", [1]))


def test_training_rows_are_said_to_be_training_rows():
    with live(cohort_explainer()) as server, client_of(server) as client:
        assert client.get("/page/about").json()["are_training"]
        assert client.post("/v1/explain", json={"row": 120}).status_code == 404


def test_the_model_alone_answers_a_row(client, explainer, new):
    row = new.drop(columns="decision").iloc[5]
    answer = client.post("/v1/answer", json={"row": 5}).json()
    scores = explainer.model.predict_proba(row.to_frame().T.infer_objects())[0]
    assert answer["answer"] == explainer.model.classes_[scores.argmax()]
    assert answer["value"] == pytest.approx(scores.max())
    assert answer["row"]["income"] == row["income"]
    unseen = client.post("/v1/answer", json={"row": answer["row"] | {"age": 200}}).json()["unseen"]
    assert unseen == {"age": "200 is above every training value (highest: 81)"}


@pytest.mark.parametrize(
    "paste", ['{"age": 33, "owner": true, "other": 1}', "age,owner,other\n33,true,1\n", "owner\tage\nTrue\t33"]
)
def test_a_pasted_row_replaces_the_values_that_it_names(client, paste):
    before = client.post("/v1/answer", json={"row": 5}).json()["row"]
    after = client.post("/v1/answer", json={"row": before, "paste": paste}).json()["row"]
    assert after == before | {"age": 33, "owner": True}
    incomplete = {"row": before | {"age": None}, "paste": paste}
    assert client.post("/v1/answer", json=incomplete).json()["row"] == after


@pytest.mark.parametrize(
    "paste", ["", "{", "x", '{"other": 1}', '{"age": [1]}', "[" * 90_000, "age\n", '{"age": "x"}']
)
def test_what_is_not_a_row_is_refused_when_it_is_pasted(client, paste):
    answer = client.post("/v1/answer", json={"row": 5, "paste": paste})
    assert answer.status_code == 422
    assert "Type " not in answer.json()["detail"]
