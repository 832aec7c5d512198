"""The HTTP interface: every answer equals the library's own."""

import json
import logging
import re

import httpx
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import anchorline as al
from anchorline.errors import InstanceError
from anchorline.render import html
from anchorline.samples import loans
from anchorline.studio.app import Studio
from anchorline.studio.demo import demo_explainer
from anchorline.studio.limits import StudioLimits
from anchorline.studio.schemas import ExplainRequest, FrontierRequest, KServeRequest, WhatIfRequest
from anchorline.studio.views import frontier_answer, page_words
from helpers.studio import becomes_true, client_of, live

QUICK = {"n_samples": 400, "n_certify": 400}


@pytest.fixture(scope="module")
def explainer():
    return demo_explainer(400)


@pytest.fixture(scope="module")
def server(explainer):
    with live(explainer, name="loans", limits=StudioLimits(max_samples=2000)) as running:
        yield running


def test_an_explanation_is_the_librarys_byte_for_byte(client, explainer):
    expected = explainer.explain(3, k=4, sigma=1.5, seed=7, alternatives=2, **QUICK).to_json().encode()
    body = {"row": 3, "k": 4, "sigma": 1.5, "seed": 7, "alternatives": 2, **QUICK}
    first, second = client.post("/explain", json=body), client.post("/explain", json=body)
    assert first.content == second.content == expected
    assert first.headers["content-type"] == "application/json"
    row = dict(zip(explainer.space.names, explainer.space.at(3).instance, strict=True))
    assert client.post("/explain", json=body | {"row": row}).content == expected


def test_a_class_can_be_chosen(client, explainer):
    for label in ("approved", "declined"):
        expected = al.Explainer(explainer.model, explainer.space, output=label).explain(3, **QUICK)
        assert client.post("/explain", json={"row": 3, "output": label, **QUICK}).text == expected.to_json()
    assert client.post("/explain", json={"row": 3, "output": "maybe"}).status_code == 422


def scores(frame):
    """Return the probabilities of three classes; the third class is never the most probable one."""
    a, b = np.asarray(frame["a"], dtype=float), np.asarray(frame["b"], dtype=float)
    raised = np.exp(np.column_stack([a, b - 2, np.full(len(a), -9.0)]))
    return raised / raised.sum(axis=1, keepdims=True)


def service_of(model, frame, **options):
    return Studio(al.Explainer(model, al.Table(frame), **options), token=None).service


@pytest.fixture(scope="module")
def frame():
    """Integers that float64 cannot represent, and infinities, next to the columns that the model uses."""
    rng = np.random.default_rng(0)
    columns = {"a": rng.normal(size=60), "b": rng.integers(0, 5, 60), "big": rng.integers(2**53, 2**60, 60)}
    return pd.DataFrame(columns | {"far": [1.5, np.inf, -np.inf, np.nan, *rng.normal(size=56)]})


def test_a_report_and_its_frontier_are_about_the_class_asked_for(frame):
    row = int(scores(frame)[:, 0].argmax())  # A is the most probable class
    for first in ("B", "A", "B"):  # in different orders, because a cached answer must not serve another class
        service = service_of(scores, frame, classes=["A", "B", "C"])
        for label in (first, "C", first):
            library = al.Explainer(scores, al.Table(frame), classes=["A", "B", "C"], output=label)
            expected = library.frontier(row, **QUICK)
            request = FrontierRequest(row=row, output=label, **QUICK)
            assert (
                service.frontier(request) == json.dumps(frontier_answer(expected), separators=(",", ":")).encode()
            )
            explanation = library.explain(row, k=3, **QUICK)
            page = html.page(explanation, expected, library.training_mean(explanation))
            body, footer, rest = page_words(page).rpartition("<footer")
            report = service.report(ExplainRequest(row=row, k=3, output=label, **QUICK)).decode()
            assert report.startswith(f"{body}<section><h2>For the file</h2>")
            assert report.endswith(footer + rest)


def test_the_class_of_a_view_can_be_asked_for(frame):
    """The page does so to compare two cases; the class of a view is null if the classes have no names."""
    for classes in (["A", "B", "C"], None):
        service = service_of(scores, frame, classes=classes)
        view = json.loads(service.explain_view(ExplainRequest(row=1, **QUICK)))
        again = json.loads(service.explain_view(ExplainRequest(row=1, output=view["class"], **QUICK)))
        assert again["sum"] == view["sum"]


def test_relevance_can_be_asked_for(client, explainer):
    expected = explainer.explain(2, k=3, objective="relevance", **QUICK)
    got = client.post("/explain", json={"row": 2, "k": 3, "objective": "relevance", **QUICK})
    assert got.text == expected.to_json()


def test_a_frontier_is_the_librarys(client, explainer):
    expected = explainer.frontier(5, ks=[1, 3, 4], sigma=2.0, **QUICK)
    answer = client.post("/frontier", json={"row": 5, "ks": [4, 1, 3], "sigma": 2.0, **QUICK}).json()
    assert [point["k"] for point in answer["points"]] == [1, 3, 4]
    for point, received in zip(expected.points, answer["points"], strict=True):
        assert received["contributions"] == point.contributions.tolist()
        assert received["intercept"] == point.intercept
        assert received["fidelity_error"]["high"] == point.fidelity_error.high
        assert received["status"] == point.status.name
    assert answer["prediction"] == expected.prediction
    assert answer["n_queries"] == expected.n_queries


def test_an_explanation_is_verified_as_text_and_as_object(client):
    text = client.post("/explain", json={"row": 3, **QUICK}).text
    for form in (text, json.loads(text)):
        assert client.post("/verify", json={"explanation": form}).json()["outcome"] == "holds"
    forged = client.post("/verify", json={"explanation": text.replace('"k":5', '"k":4')}).json()
    assert not forged["holds"]
    assert "SHA-256" in forged["reasons"][0]
    assert client.post("/verify", json={"explanation": {}}).json()["outcome"] == "cannot tell"


def test_rows_are_found_paged_and_sorted(client, explainer):
    frame, _ = loans(400)  # in the order in which the table was given
    whole = client.get("/rows", params={"limit": 200}).json()
    assert (whole["total"], whole["found"], len(whole["rows"])) == (400, 400, 200)
    assert whole["columns"] == list(frame.columns)
    assert [row["position"] for row in whole["rows"]] == list(range(200))
    assert whole["rows"][7]["values"][:3] == [frame["age"][7], frame["income"][7], frame["debt"][7]]
    answers = explainer.model.predict(frame)
    assert [row["answer"] for row in whole["rows"]] == answers[:200].tolist()
    matches = client.get("/rows", params={"search": "DECLINED purpose=car", "limit": 200, "sort": "high"}).json()
    expected = (answers == "declined") & (frame["purpose"] == "car")
    assert matches["found"] == expected.sum() > 10
    values = [row["value"] for row in matches["rows"]]
    assert values == sorted(values, reverse=True)
    part = client.get("/rows", params={"search": "declined purpose=car", "offset": 3, "limit": 2, "sort": "high"})
    assert part.json()["rows"] == matches["rows"][3:5]
    assert client.get("/rows", params={"search": "#17"}).json()["rows"][0]["position"] == 17
    assert client.get("/rows", params={"search": "#400"}).json()["found"] == 0
    assert client.get("/rows", params={"search": "no such words"}).json()["rows"] == []


def test_what_if_shows_both_answers(client, explainer):
    e = explainer.explain(3, k=5, **QUICK)
    broken = [term.literal.name for term in e.terms[:2]]
    received = client.post("/what-if", json={"row": 3, "broken": broken, **QUICK}).json()
    contributions = sum(term.contribution for term in e.terms[:2])
    assert received["expected"] == pytest.approx(e.prediction - 2 * contributions, abs=1e-12)
    assert [e.literals[i].name for i, is_broken in enumerate(received["is_broken"]) if is_broken] == sorted(
        broken, key=[literal.name for literal in e.literals].index
    )
    column = list(explainer.model.classes_).index(e.output)
    answer = explainer.model.predict_proba(explainer.space.at(received["row"]).original)[0, column]
    assert received["prediction"] == answer
    assert received["decision_stays"] == (answer > 0.5) == (received["answer"] == e.output)


def test_changes_are_those_of_the_library_and_bounded(client, explainer):
    received = client.post("/changes", json={"row": 3, "n": 2})
    found = al.Changes.from_json(received.text)
    assert found == explainer.changes(3, n=2, max_queries=found.parameters["max_queries"])
    assert found.n_queries <= found.parameters["max_queries"] <= 20_000
    view = client.post("/page/changes", json={"row": 3, "n": 2}).json()
    assert [option["edits"] for option in view["options"]] == [option.values for option in found]
    edited = client.post("/what-if", json={"row": 3, "edits": view["options"][0]["edits"], **QUICK}).json()
    assert edited["decision_stays"] is False
    fixed = view["options"][0]["names"]
    other = client.post("/page/changes", json={"row": 3, "fixed": fixed}).json()
    assert all(not {*option["names"]} & {*fixed} for option in other["options"])
    for wrong in ({"target": "nonsense"}, {"fixed": ["nothing"]}, {"n": 11}, {"max_queries": 10**9}):
        assert client.post("/changes", json={"row": 3, **wrong}).status_code == 422


def test_what_if_heeds_edits_and_refuses_nonsense(client):
    same = client.post("/what-if", json={"row": 3, **QUICK}).json()
    assert not any(same["is_broken"])
    assert same["prediction"] == same["expected"] == same["original"]
    edited = client.post("/what-if", json={"row": 3, "edits": {"purpose": "home", "owner": True}, **QUICK}).json()
    assert edited["row"]["purpose"] == "home"
    assert edited["row"]["owner"] is True
    for edits in ({"nothing": 1}, {"age": "old"}, {"applied": "soon"}):
        assert client.post("/what-if", json={"row": 3, "edits": edits}).status_code == 422
    assert client.post("/what-if", json={"row": 3, "broken": ["nothing"]}).status_code == 422


@pytest.mark.parametrize(
    ("options", "decide"),
    [
        ({"classes": "ABC"}, lambda rows: scores(rows)[0].argmax()),
        ({"classes": "CBA", "threshold": 0.3}, lambda rows: scores(rows)[0, 0] >= 0.3),
        ({"classes": "ABC", "task": "number", "column": 0}, lambda rows: None),
        ({"task": "label"}, lambda rows: scores(rows)[0].argmax()),
    ],
    ids=["class", "threshold", "number", "label"],
)
def test_a_decision_stays_as_the_certificate_means_it(frame, options, decide):
    def model(rows):
        return scores(rows).argmax(axis=1) if options.get("task") == "label" else scores(rows)

    classes = list(options["classes"]) if "classes" in options else None
    service = service_of(model, frame, **options | {"classes": classes})
    row, output = int(scores(frame)[:, 0].argmax()), None if classes is None else "C"
    decided = decide(frame.iloc[[row]])
    for edits in ({}, {"a": -3.0, "b": 4}, {"a": -3.0}, {"a": 9.0, "b": 4}, {"b": 1}):
        received = json.loads(service.what_if(WhatIfRequest(row=row, edits=edits, output=output, **QUICK)))
        expected = None if decided is None else decide(frame.iloc[[row]].assign(**edits)) == decided
        assert received["decision_stays"] is (None if expected is None else bool(expected))


LIBRARIES = {
    "pandas": lambda frame: frame,
    "nullable": lambda frame: frame.astype({"b": "Int64", "big": "Int64"}),
    "Polars": lambda frame: pl.from_pandas(frame, nan_to_null=True),
    "Arrow": lambda frame: pa.Table.from_pandas(frame, preserve_index=False),
}


@pytest.mark.parametrize("library", LIBRARIES)
def test_values_are_the_tables_own_and_come_back(frame, library):
    if library == "Arrow":  # Table does not read Arrow tables with integers beyond 2^53
        frame = frame.assign(big=frame["big"] // 2**10)
    service, big = service_of(scores, LIBRARIES[library](frame), classes=["A", "B", "C"]), frame["big"].tolist()
    page = json.loads(service.rows("", "position", 0, 60))
    assert [row["values"][2] for row in page["rows"]] == [str(n) if n >= 2**53 else n for n in big]
    expected = frame["far"].astype(object).where(frame["far"].notna(), None)
    far = expected.replace({np.inf: "Infinity", -np.inf: "-Infinity"}).tolist()
    assert [row["values"][3] for row in page["rows"]] == far
    assert json.loads(service.rows(f"big={big[7]}", "position", 0, 9))["rows"] == [page["rows"][7]]
    for position in {0, *map(far.index, ("Infinity", "-Infinity", None))}:
        values = page["rows"][position]["values"]
        row = dict(zip(page["columns"], values, strict=True))
        expected = service.explain(ExplainRequest(row=position, **QUICK))
        assert json.loads(expected)["instance"][2] == big[position]
        for values_by_name in (row, row | {"big": big[position]}):
            assert service.explain(ExplainRequest(row=values_by_name, **QUICK)) == expected
        kserve = json.loads(service.kserve(KServeRequest(instances=[values, row], parameters=QUICK)))
        last = json.loads(service.explain(ExplainRequest(row=position, output="C", **QUICK)))
        assert kserve["explanations"] == [last] * 2


def test_a_typical_value_is_a_training_rows_and_edits_are_exact(frame):
    service, big = service_of(scores, frame, classes=["A", "B", "C"]), frame["big"].tolist()
    received = json.loads(service.what_if(WhatIfRequest(row=3, broken=["big"], **QUICK)))
    assert int(received["row"]["big"]) in set(big) - {big[3]}
    for edit in (str(big[3] + 1), big[3] + 1):
        edits = {"big": edit, "far": "-Infinity"}
        received = json.loads(service.what_if(WhatIfRequest(row=3, edits=edits, **QUICK)))
        assert (received["row"]["big"], received["row"]["far"]) == (str(big[3] + 1), "-Infinity")
    for edit in (
        "12",
        "1e300",
        "9" * 400,
        "9" * 5000,
        "0" * 20,
    ):  # not the text of an integer that a browser cannot represent
        with pytest.raises(InstanceError, match="'big'"):
            service.what_if(WhatIfRequest(row=3, edits={"big": edit}, **QUICK))


def test_texts_of_digits_stay_texts_where_the_column_holds_texts(frame):
    service = service_of(scores, frame.assign(big=frame["big"].astype(str)), classes=["A", "B", "C"])
    row = json.loads(service.rows("", "position", 5, 1))["rows"][0]["values"]
    kserve = json.loads(service.kserve(KServeRequest(instances=[row], parameters=QUICK)))
    last = json.loads(service.explain(ExplainRequest(row=5, output="C", **QUICK)))
    assert kserve["explanations"] == [last]
    with pytest.raises(InstanceError, match="5 values"):
        service.kserve(KServeRequest(instances=[[*row, "9" * 20]], parameters=QUICK))


def test_kserve_explains_instances_in_order(client, explainer):
    rows = [explainer.space.at(i).instance for i in (4, 9)]
    body = {"instances": [rows[0], dict(zip(explainer.space.names, rows[1], strict=True))], "parameters": QUICK}
    got = client.post("/v1/models/loans:explain", json=body)
    last = al.Explainer(explainer.model, explainer.space, output="declined")
    expected = [last.explain(i, **QUICK) for i in (4, 9)]  # of the last class in all rows
    assert got.json()["output"] == "declined"
    assert got.json()["predictions"] == [e.prediction for e in expected]
    assert all(e.to_json() in got.text for e in expected)
    assert client.get("/v1/models").json() == {"models": ["loans"]}
    assert client.get("/v1/models/loans").json() == {"name": "loans", "ready": True}
    assert client.post("/v1/models/other:explain", json=body).status_code == 404


def test_the_page_is_told_numbers_that_add_up(client):
    for path, terms in (("/page/explain", {"k": 5}), ("/page/frontier", {"ks": [5]})):
        view = client.post(path, json={"row": 3, **terms, **QUICK}).json()
        printed = view["sum"] if "sum" in view else view["points"][0]["sum"]
        parts = [term["number"] for term in printed["terms"]]
        parts += [printed["intercept"]["number"]] if printed["intercept"] else []
        assert sum(round(1000 * float(part)) for part in parts) == round(1000 * float(printed["total"]["number"]))


def test_a_report_is_one_page(client):
    got = client.post("/page/report", json={"row": 3, **QUICK})
    assert got.text.startswith("<!DOCTYPE html>")
    assert "attachment" in got.headers["content-disposition"]
    assert "How many" in got.text
    for part in ("For the file", "number 3 of the table", "loans", "Fingerprint of the data", "table:"):
        assert part in got.text
    assert client.get("/page/about").json()["fingerprint"] in got.text


def test_health_and_metrics(client, server):
    assert httpx.get(f"{server.base}/health").json() == {"status": "ok"}
    assert client.get("/health").json()["rows"] == 400
    assert client.post("/explain", json={"row": 3, **QUICK}).status_code == 200  # to have one to count
    text = client.get("/metrics").text
    assert re.search(r'anchorline_requests_total\{method="POST",route="/explain",status="200"\} \d+', text)
    assert re.search(r"anchorline_model_rows_total \d+", text)
    assert re.search(r"process_resident_memory_bytes \d+", text)
    buckets = [float(n) for n in re.findall(r'_bucket\{le="[^"]+",route="/explain"\} (\S+)', text)]
    assert len(buckets) == 14
    assert buckets == sorted(buckets)


def test_errors_are_problems_with_the_requests_id(client, caplog):
    with caplog.at_level(logging.INFO, logger="anchorline.studio"):
        got = client.post("/explain", json={"row": 5000}, headers={"X-Request-ID": "mine-42"})
        assert becomes_true(lambda: any("id=mine-42" in record.getMessage() for record in caplog.records))
    assert (got.status_code, got.headers["content-type"]) == (422, "application/problem+json")
    assert got.json()["detail"] == "Row 5000 does not exist; the table has rows 0 to 399."
    assert got.json()["request_id"] == got.headers["x-request-id"] == "mine-42"
    invalid = client.post("/explain", json={"row": 1, "k": 0}).json()
    assert invalid["errors"][0]["where"] == ["body", "k"]
    assert client.get("/nowhere").json()["status"] == 404
    assert client.get("/explain").json()["status"] == 405
    assert client.post("/explain", json={"row": 1, "n_samples": 2001}).status_code == 422


def test_the_schema_has_examples_and_no_outside_reference(client):
    document = client.get("/openapi.json").json()
    text = json.dumps(document)
    assert set(re.findall(r'"\$ref": "([^"]+)"', text)) <= {
        f"#/components/schemas/{name}" for name in document["components"]["schemas"]
    }
    for name in ("ExplainRequest", "FrontierRequest", "VerifyRequest", "WhatIfRequest", "KServeRequest"):
        assert document["components"]["schemas"][name]["examples"]
    posts = [methods["post"] for methods in document["paths"].values() if "post" in methods]
    assert all("application/problem+json" in post["responses"]["429"]["content"] for post in posts)
    assert all(post["security"] for post in posts)


@pytest.mark.parametrize("kind", ["number", "label"])
def test_numbers_and_labels_are_shown_too(kind):
    rng = np.random.default_rng(0)
    table = al.Table(rng.normal(size=(80, 3)), names=["a", "b", "c"])

    def model(rows):
        score = 3 * rows[:, 0] - rows[:, 1]
        return score if kind == "number" else np.where(score > 0, "up", "down")

    with live(al.Explainer(model, table, output="trend")) as server, client_of(server, timeout=30) as client:
        view = client.post("/page/explain", json={"row": 1, **QUICK}).json()
        assert view["verdict"]["name"] != "unknown"
        stays = "the output stays within " if kind == "number" else 'the label stays "'
        assert view["gauges"][0]["kind"] == "stability"
        assert view["gauges"][0]["claim"].startswith(stays)
        trained = model(table.schema.natives.rows(np.arange(80)))
        mean = trained.mean() if kind == "number" else np.where(trained == view["label"], 1, -1).mean()
        assert view["training_mean"] == pytest.approx(mean)
        assert "over the neighbors (dashed line), " in view["legend"][1]
        assert view["legend"][1].endswith("over the training table (dotted line).")
        received = client.post("/what-if", json={"row": 1, "broken": ["a"], **QUICK}).json()
        assert received["decision_stays"] is None if kind == "number" else received["prediction"] in (-1, 1)
        assert client.get("/rows?sort=high&limit=3").status_code == 200


def test_clipped_outputs_are_named_with_what_to_type():
    """The largest of few training rows has neighbors beyond all training outputs; the page names the option."""
    values = np.random.default_rng(0).normal(size=(40, 6))
    explainer = al.Explainer(lambda rows: 100 * rows.sum(axis=1), al.Table(values), output="cost")
    service, row = Studio(explainer, token=None).service, int(values.sum(axis=1).argmax())
    view = json.loads(service.explain_view(ExplainRequest(row=row, sigma=0, **QUICK)))
    certificate = json.loads(view["json"])["certificate"]
    assert certificate["n_clipped"] > 0.01 * certificate["n_queries"]
    assert "beyond those on the training table and clipped" in view["clipping"]
    assert "--output-range LOWEST HIGHEST" in view["clipping"]
    report = service.report(ExplainRequest(row=row, sigma=0, **QUICK)).decode()
    assert "--output-range LOWEST HIGHEST" in report  # the same words
    assert "output_range=(" not in report
    assert view["goal"] is None
