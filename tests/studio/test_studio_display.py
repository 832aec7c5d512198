"""Names for readers, units, and columns that nobody can change."""

import numpy as np
import pytest

from anchorline.errors import ParameterError
from anchorline.explainer import Explainer
from anchorline.spaces.table import Table
from anchorline.studio.display import Display
from helpers.studio import HOSTILE, client_of, cohort_explainer, cohort_table, live, loan_scores, studio_of

NAMES = Display(
    names={"income": "Yearly income", "owner": "Owns a home"},
    units={"income": "USD"},
    labels={"0": "declined", "1": "approved"},
    immutable=["owner"],
)


@pytest.fixture(scope="module")
def server():
    frame, decided = cohort_table()
    explainer = Explainer(loan_scores, Table(frame), classes=[0, 1])
    with live(explainer, display=NAMES, truth=("paid", (decided == "approved").astype(int))) as running:
        yield running


def texts_of(content):
    if isinstance(content, str):
        yield content
    elif isinstance(content, dict | list):
        for each in content.values() if isinstance(content, dict) else content:
            yield from texts_of(each)


def test_texts_have_the_names_of_readers_and_records_their_own(client):
    view = client.post("/page/explain", json={"row": 3}).json()
    record = view.pop("json")
    for fact in view["sum"]["facts"]:
        del fact["attribute"], fact["column"]  # by which the page finds the control
    said = " ".join(texts_of(view))
    assert "Yearly income" in said
    assert "USD" in said
    assert not [
        word for word in ("income <", "owner =", "class 0", "class 1") if word in said.replace("Yearly i", "")
    ]
    assert view["headline"] in ("declined", "approved")
    assert record == client.post("/v1/explain", json={"row": 3}).text
    assert "Yearly" not in record
    assert client.post("/v1/verify", json={"explanation": record}).json()["holds"]
    rule = client.post("/page/rule", json={"row": 3}).json()
    assert "Yearly" not in rule.pop("json")
    assert "Yearly income" in " ".join(texts_of(rule)) or "Owns a home" in " ".join(texts_of(rule))
    assert "Yearly income" in client.post("/page/report", json={"row": 3}).text


def test_classes_are_asked_for_and_found_by_the_names_of_readers(client):
    about = client.get("/page/about").json()
    assert about["classes"] == ["declined", "approved"]
    assert [column["label"] for column in about["columns"]] == ["Yearly income", "Owns a home", "age"]
    by_name, by_label = (client.post("/v1/explain", json={"row": 3, "output": name}) for name in ("approved", "1"))
    assert by_name.content == by_label.content
    rows = client.get("/v1/rows", params={"search": 'answer=approved "yearly income">40', "limit": 200}).json()[
        "rows"
    ]
    again = client.get("/v1/rows", params={"search": "answer=approved income>40", "limit": 200}).json()["rows"]
    assert rows == again
    assert {row["answer"] for row in rows} == {"approved"}
    assert {row["truth"] for row in rows} == {"approved", "declined"}
    assert client.get("/v1/rows", params={"search": "wrong decisions"}).json()["found"] > 0


def test_nothing_that_nobody_can_change_is_proposed(client):
    frame, _ = cohort_table()
    answers = loan_scores(frame)[:, 1]
    turned = (
        int(np.flatnonzero((answers < 0.5) & (frame["income"] > 45))[0])
        if ((answers < 0.5) & (frame["income"] > 45)).any()
        else int(np.flatnonzero(answers < 0.5)[0])
    )
    changes = client.post("/v1/changes", json={"row": turned, "target": "approved"}).json()
    assert "owner" not in str(changes.get("changes", changes.get("options")))
    assert client.get("/page/about").json()["immutable"] == ["Owns a home"]


def test_names_that_do_not_exist_or_are_used_twice_are_refused():
    for wrong in (
        {"names": {"x": "y"}},
        {"labels": {"x": "y"}},
        {"names": {"age": "income"}},
        {"immutable": ["x"]},
    ):
        with pytest.raises(ParameterError, match=next(iter(wrong))):
            studio_of(cohort_explainer(), display=Display(**wrong))


def test_markup_in_names_stays_text():
    display = Display(names={"income": HOSTILE}, units={"income": HOSTILE}, labels={"approved": HOSTILE})
    with live(cohort_explainer(), display=display) as server, client_of(server) as client:
        report = client.post("/page/report", json={"row": 3}).text
        assert "<script" not in report
        assert "<img" not in report
        about = client.get("/page/about").text
        assert "\\u001b" not in about
