"""Searches by verdict, reason and rule: what is known of explained cases, counted again with the library."""

import numpy as np
import pandas as pd
import pytest

from anchorline.explainer import Explainer
from anchorline.settings import ReasonSettings
from anchorline.spaces.table import Table
from anchorline.studio.display import Display
from helpers.studio import client_of, cohort_explainer, cohort_table, finish, live, loan_scores, studio_of

VERDICTS = ["robust", "explained", "partly explained", "undecided", "not explained"]


@pytest.fixture
def client():
    explainer, truth = cohort_explainer(), ("paid", cohort_table()[1])
    with live(explainer, truth=truth) as running, client_of(running, timeout=30) as opened:
        yield opened


def found(client, search, **query):
    answer = client.get("/v1/rows", params={"search": search, "limit": 200} | query)
    assert answer.status_code == 200, answer.text
    return [row["position"] for row in answer.json()["rows"]], answer.json()


def test_verdicts_and_reasons_are_found_among_explained_cases(client):
    rows, answer = found(client, "verdict=explained")
    assert (rows, answer["notes"]) == ([], [])
    assert answer["explained"] == {"text": "0 of 120 cases are explained.", "asks": "facts", "search": ""}
    summary = finish(client, "/v1/overview", n_rows=40)[0]["summary"]
    for each in summary["verdicts"]:
        assert found(client, f"verdict={each['text']}")[0] == each["cases"]
        assert found(client, f'verdict="{each["text"]}"')[0] == each["cases"]
        others = [position for other in summary["verdicts"] if other is not each for position in other["cases"]]
        assert found(client, f"verdict!={each['text']}")[0] == sorted(others)
    for each in summary["attributes"]:
        rows, answer = found(client, f"reason={each['name'].upper()}")
        assert rows == found(client, f"fact={each['name']}")[0] == sorted(each["cases"])
        text = f"40 of 120 cases are explained; {len(rows)} of them match{'es' if len(rows) == 1 else ''}."
        assert answer["explained"] == {"text": text, "asks": "facts", "search": ""}
    verdict = summary["verdicts"][0]
    frame, truth = cohort_table()
    decided = np.where(loan_scores(frame)[:, 1] > 0.5, "approved", "declined")
    expected = [i for i in verdict["cases"] if decided[i] != truth[i] and frame["age"][i] < 50]
    rows, answer = found(client, f"wrong decisions verdict={verdict['text']} age<50")
    assert rows == expected
    assert answer["explained"]["search"] == "answer=wrong age<50"
    # Other settings are other explanations.
    assert found(client, "verdict!=robust", k=1)[1]["explained"]["text"] == "0 of 120 cases are explained."
    assert found(client, "verdict!=robust", k=4, sigma=1)[1]["explained"]["text"].startswith("40 of 120")


def test_the_cases_that_a_search_leaves_can_be_explained(client):
    search = found(client, "income>60 verdict=robust")[1]["explained"]["search"]
    assert search == "income>60"
    finish(client, "/v1/overview", search=search)
    n = int((cohort_table()[0]["income"] > 60).sum())
    answer = found(client, "income>60 verdict=robust")[1]["explained"]
    assert (answer["text"].split(";")[0], answer["asks"]) == (f"{n} of {n} cases are explained", None)
    assert found(client, "verdict=robust")[1]["explained"]["asks"] == "facts"


def test_a_summary_of_a_verdict_is_about_what_is_known(client):
    assert finish(client, "/v1/overview", search="verdict!=robust")[0]["found"] == 0
    known = finish(client, "/v1/overview", n_rows=20)[0]["summary"]["verdicts"]
    n = sum(each["count"] for each in known if each["code"] != "robust")
    assert finish(client, "/v1/overview", search="verdict!=robust")[0]["found"] == n


def test_rules_of_all_cases_have_numbers(client):
    answer = found(client, "rule=1")[1]["explained"]
    assert answer == {"text": "The rules of all cases are not known yet.", "asks": "rules", "search": ""}
    finish(client, "/v1/whole/rules", search="owner=yes", n_rows=5)
    assert found(client, "rule=1")[1]["explained"]["asks"] == "rules"  # those were the rules of some cases
    answer, _ = finish(client, "/v1/whole/rules", n_rows=20)
    rules = [line for line in answer["lines"] if line["kind"] == "rule"]
    for number, rule in enumerate(rules, start=1):
        rows, answer = found(client, f"rule={number}")
        assert {*rule["cases"], *rule["others"]} <= {*rows}
        assert answer["explained"]["text"] == f"Rule {number} of all cases is for {rule['text']}"
        assert sorted([*rows, *found(client, f"rule!={number}")[0]]) == list(range(120))
    frame = cohort_table()[0]
    rows = found(client, "rule=1 owner=yes")[0]
    assert rows == [i for i in found(client, "rule=1")[0] if frame["owner"][i] == "yes"]
    wrong = {
        f"rule={len(rules) + 1}": f"There is no rule {len(rules) + 1}. The rules of all cases are rule=1 to "
        f"rule={len(rules)}.",
        "rule=0": f"There is no rule 0. The rules of all cases are rule=1 to rule={len(rules)}.",
        "rule=first": "first is not the number of a rule. Type, for example, rule=1.",
        "rule=-1": "-1 is not the number of a rule. Type, for example, rule=1.",
    }
    for search, note in wrong.items():
        rows, answer = found(client, search)
        assert (rows, answer["notes"]) == ([], [note])


@pytest.mark.parametrize(
    ("search", "note"),
    [
        ("verdict=robst", f"robst is not a verdict. The verdicts are {', '.join(VERDICTS)}."),
        ("verdict>robust", "verdict can be equal (=) or different (!=)."),
        ("verdict=", "verdict= lacks a value."),
        ("reason=incme", "incme is neither a column nor a code. Did you mean income?"),
        ("reason=zzzz", "zzzz is neither a column nor a code. There are income, owner, age."),
        ("rule=\u0663", "\u0663 is not the number of a rule. Type, for example, rule=1."),
    ],
)
def test_what_is_not_possible_is_named(client, search, note):
    rows, answer = found(client, search)
    assert (rows, answer["notes"], answer["explained"]) == ([], [note], None)


def test_names_for_readers_and_codes_stand_for_columns():
    frame = cohort_table()[0]
    explainer = Explainer(
        loan_scores, Table(frame), classes=["declined", "approved"], output="approved", threshold=0.5
    )
    display = Display(names={"income": "Monthly income"}, labels={"declined": "Refused"})
    reasons = explainer.reason_settings(
        codes={"income": ("R1", "Low"), "owner": ("R2", "Rents"), "age": ("R2", "Age")}
    )
    assert isinstance(reasons, ReasonSettings)
    options = {"display": display, "reasons": reasons, "truth": ("paid", cohort_table()[1])}
    with live(explainer, **options) as running, client_of(running, timeout=30) as client:
        summary = finish(client, "/v1/overview", n_rows=30)[0]["summary"]
        of = {each["name"]: {*each["cases"]} for each in summary["attributes"]}
        income = sorted(of["Monthly income"])
        for search in ("reason=income", 'reason="Monthly income"', "reason=r1"):
            assert found(client, search)[0] == income
        text = found(client, "reason=R1")[1]["explained"]["text"]
        assert text.endswith("match. A reason is a fact of the sum here; a letter may state others.")
        assert "letter" not in found(client, "fact=income")[1]["explained"]["text"]
        assert found(client, "reason=R2")[0] == sorted(of.get("owner", set()) | of.get("age", set()))
        both = [i for i in income if frame["income"][i] < 40]
        assert found(client, "Monthly income < 40 reason=R1")[0] == both
        decided = loan_scores(frame)[:, 1] > 0.5
        refused = np.flatnonzero(~decided & (frame["age"] < 30) & (frame["income"] < 40)).tolist()
        for search in ("answer=refused age<30 monthly income<40", 'refused "Monthly income"<40 age < 30'):
            assert found(client, search)[0] == refused
        wrong = decided != (cohort_table()[1] == "approved")
        assert found(client, "wrong decisions age<30")[0] == np.flatnonzero(wrong & (frame["age"] < 30)).tolist()
        low = np.flatnonzero(wrong & (frame["age"] < 40) & (frame["income"] < 50)).tolist()
        for search in ("wrong decisions age<40 monthly income<50", "wrong decisions income<50 age<40"):
            assert found(client, search)[0] == low
        assert low


def test_a_column_of_that_name_comes_first():
    frame = pd.DataFrame({"verdict": ["yes", "no"] * 30, "x": np.arange(60.0)})
    explainer = Explainer(lambda rows: rows["x"].to_numpy(), Table(frame), output="score")
    catalog = studio_of(explainer).served[""].service.catalog
    assert catalog.find("verdict=yes", "position")[0].tolist() == list(range(0, 60, 2))
    assert not catalog.asks_known("verdict=robust")
    assert catalog.asks_known("rule=1")


def test_the_page_is_told_what_may_be_typed(client):
    searches = client.get("/page/about").json()["searches"]
    assert {"wrong decisions", "answer=declined", "verdict=robust", 'verdict="partly explained"'} < {*searches}
    assert {"reason=", "rule=1", "income>", "owner="} < {*searches}
