"""Reasons over HTTP: the library's own bytes, with the codes of the server, within its limits."""

import json

import pytest
from sklearn.ensemble import HistGradientBoostingClassifier

from anchorline.errors import FavorableError, ParameterError
from anchorline.explainer import Explainer
from anchorline.result.reasons import Reasons
from anchorline.samples import loans
from anchorline.spaces.table import Table
from anchorline.studio.access import StudioLimits
from anchorline.studio.answers import ReasonsAnswer
from anchorline.studio.schemas import ReasonsRequest
from helpers.studio import client_of, live, studio_of

COLUMNS = ["age", "income", "debt", "employed_years", "owner"]
CODES = {
    "income": {"low": ("R01", "Income too low"), "high": ("R02", "Income too high")},
    "debt": ("R03", "Debt too high"),
    "employed_years": ("R04", "Employed for too short a time"),
    "owner": ("R06", "No home of your own"),
    "age": ("R07", "Age"),
}


@pytest.fixture(scope="module")
def explainer():
    frame, decision = loans(500)
    model = HistGradientBoostingClassifier(max_iter=30, random_state=0).fit(frame[COLUMNS], decision)
    return Explainer(model, Table(frame[COLUMNS]), output="approved", threshold=0.5)


def served(explainer, **keywords):
    return live(explainer, reasons=explainer.reason_settings(**keywords))


@pytest.fixture(scope="module")
def server(explainer):
    with served(explainer, codes=CODES, reference="near") as running:
        yield running


@pytest.fixture(scope="module")
def declined(explainer):
    return next(i for i in range(9) if explainer.explain(i, k=2, queries=100).prediction < 0.3)


def test_reasons_are_those_of_the_library(client, explainer, declined):
    body = {"row": declined, "n": 2, "recourse": True, "time": "2026-03-04 12:30", "seed": 3}
    answer = client.post("/v1/reasons", json=body)
    found = explainer.reasons(declined, codes=CODES, reference="near", **{k: body[k] for k in body if k != "row"})
    assert answer.text == found.to_json()
    assert Reasons.from_json(answer.text).letter() == found.letter()
    assert ReasonsAnswer.model_validate_json(answer.text).reasons[0].text == found.letter()[0]
    assert client.post("/v1/verify", json={"explanation": answer.text}).json()["outcome"] == "holds"
    row = dict(zip(COLUMNS, explainer.space.at(declined).instance, strict=True))
    assert client.post("/v1/reasons", json=body | {"row": row}).text == answer.text


def test_the_page_is_told_the_letter_and_whether_there_is_one(client, explainer, declined):
    found = explainer.reasons(declined, codes=CODES, reference="near")
    view = client.post("/page/reasons", json={"row": declined}).json()
    assert [each["text"] for each in view["letter"]] == found.letter()
    assert [each["code"] for each in view["letter"]] == [reason.code for reason in found]
    said = [view["lead"], *(f"{each['amount']}  {each['text']}" for each in view["reasons"]), *view["notes"]]
    assert [line.strip() for line in str(found).split("\n")[1:]] == said
    assert view["json"] == found.to_json()
    for row in range(6):
        is_adverse = client.post("/page/explain", json={"row": row}).json()["is_adverse"]
        problem = client.post("/v1/reasons", json={"row": row})
        assert is_adverse == (problem.status_code == 200)
        if not is_adverse:
            assert problem.json()["type"] == "urn:anchorline:favorable"
            with pytest.raises(FavorableError):
                explainer.reasons(row, codes=CODES)


def test_no_letter_is_written_with_a_prohibited_or_unmapped_reason(explainer, declined):
    first = explainer.reasons(declined, codes=CODES)[0].attribute
    cases = {"prohibited": {"codes": CODES, "prohibited": [first]}}
    cases["unmapped"] = {"codes": {name: code for name, code in CODES.items() if name != first}}
    for kind, keywords in cases.items():
        with served(explainer, **keywords) as server, client_of(server, timeout=30) as client:
            for path in ("/v1/reasons", "/page/reasons"):
                answer = client.post(path, json={"row": declined})
                assert answer.status_code == 422
                assert answer.headers["content-type"] == "application/problem+json"
                problem = answer.json()
                assert problem["type"] == f"urn:anchorline:{kind}"
                assert f"'{first}'" in problem["detail"]
                for python in ("codes=", "check_use", "Type "):  # the reader of a page has no Python
                    assert python not in problem["detail"]


def test_requests_are_refused_beyond_the_limits_and_without_codes(client, explainer):
    for wrong in ({"n": 0}, {"n": 11}, {"codes": {}}, {"prohibited": []}, {"recourse": 1}, {"queries": 10**9}):
        assert client.post("/v1/reasons", json={"row": 1, **wrong}).status_code == 422
    problem = client.post("/v1/reasons", json={"row": 1, "queries": 20_001}).json()
    assert problem["detail"] == "queries is 20001; the maximum on this server is 20000."
    with live(explainer) as plain, client_of(plain) as other:
        assert "--codes" in other.post("/v1/reasons", json={"row": 1}).json()["detail"]
        assert not other.post("/page/explain", json={"row": 1}).json()["is_adverse"]


def test_wrong_codes_are_refused_at_the_start(explainer):
    for wrong in ({"codes": {"incme": ("R1", "Income")}}, {"codes": CODES, "prohibited": ["sex"]}):
        with pytest.raises(ParameterError):
            studio_of(explainer, reasons=explainer.reason_settings(**wrong))


def test_the_budget_of_the_server_bounds_the_queries(explainer, declined):
    settings = explainer.reason_settings(codes=CODES)
    service = studio_of(explainer, limits=StudioLimits(max_queries=900), reasons=settings).served[""].service
    record = json.loads(service.reasons(ReasonsRequest(row=declined)))
    assert record["settings"]["queries"] == 900
    assert record["n_queries"] <= 900


def test_the_audit_log_has_who_asked_for_reasons(explainer, declined, tmp_path):
    log, settings = tmp_path / "audit.jsonl", explainer.reason_settings(codes=CODES)
    with live(explainer, reasons=settings, audit_log=log) as server, client_of(server, timeout=30) as client:
        client.post("/v1/reasons", json={"row": declined})
    (line,) = [json.loads(line) for line in log.read_text().splitlines() if "reasons" in line]
    assert line["outcome"] == "answered"
