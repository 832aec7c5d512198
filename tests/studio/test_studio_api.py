"""The HTTP interface: every answer equals the library's own."""

import csv
import io
import json
import logging
import re
from decimal import Decimal

import httpx
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from anchorline.changes.result import Changes
from anchorline.errors import InstanceError
from anchorline.explainer import Explainer
from anchorline.render.geometry import bands_of
from anchorline.render.statements import details_of, statements_of
from anchorline.result.rule import Rule
from anchorline.samples import loans
from anchorline.spaces.table import Table
from anchorline.studio import answers
from anchorline.studio.access import StudioLimits
from anchorline.studio.demo import demo_explainer
from anchorline.studio.schemas import ExplainRequest, ReportRequest, RowsRequest, WhatIfRequest
from helpers.sealing import resealed
from helpers.studio import becomes_true, begun, client_of, live, studio_of

QUICK, LEAD = {"queries": 400}, "Model's decision"


@pytest.fixture(scope="module")
def explainer():
    return demo_explainer(400)


@pytest.fixture(scope="module")
def server(explainer):
    with live(explainer, name="loans") as running:
        yield running


def test_an_explanation_is_the_librarys_byte_for_byte(client, explainer):
    expected = explainer.explain(3, k=3, sigma=1.5, seed=7, alternatives=2).to_json().encode()
    body = {"row": 3, "k": 3, "sigma": 1.5, "seed": 7, "alternatives": 2}
    first, second = client.post("/v1/explain", json=body), client.post("/v1/explain", json=body)
    assert first.content == second.content == expected
    assert first.headers["content-type"] == "application/json"
    row = dict(zip(explainer.space.names, explainer.space.at(3).instance, strict=True))
    assert client.post("/v1/explain", json=body | {"row": row}).content == expected
    assert client.post("/v1/explain", json={"row": 3, **QUICK}).text == explainer.explain(3, **QUICK).to_json()


def test_a_class_can_be_chosen(client, explainer):
    for label in ("approved", "declined"):
        other = Explainer(explainer.model, explainer.space, output=label)
        assert client.post("/v1/explain", json={"row": 3, "output": label}).text == other.explain(3).to_json()
    assert client.post("/v1/explain", json={"row": 3, "output": "maybe"}).status_code == 422


def test_the_page_is_told_the_statements_and_numbers_that_add_up(client, explainer):
    for row in range(5):
        e, view = explainer.explain(row), client.post("/page/explain", json={"row": row}).json()
        said = [each.text for each in statements_of(e)]
        assert [view["decision"], view["verdict"]["text"]] == said[:2]
        lines = [view["sum"]["start"], *view["sum"]["facts"]]
        shown = [*([view["same"]] if view["same"] else []), *(line["text"] for line in lines), *view["evidence"]]
        assert view["decision"] == f"Model's decision: {view['headline']}{view['small'].removeprefix(LEAD)}."
        rows = [each.text for each in statements_of(e) if each.kind == "rows"]
        assert sorted([*shown, *rows]) == sorted(said[2:])
        assert view["rows"] == "".join(rows)
        assert [each["text"] for each in view["details"]] == [each.text for each in details_of(e)]
        assert sum(Decimal(line["amount"]) for line in lines) == Decimal(view["sum"]["total"]["amount"])
        assert view["json"] == e.to_json()


def scores(frame):
    """Return the probabilities of three classes; the third class is never the most probable one."""
    a, b = np.asarray(frame["a"], dtype=float), np.asarray(frame["b"], dtype=float)
    raised = np.exp(np.column_stack([a, b - 2, np.full(len(a), -9.0)]))
    return raised / raised.sum(axis=1, keepdims=True)


def service_of(model, frame, **options):
    return studio_of(Explainer(model, Table(frame), **options)).served[""].service


@pytest.fixture(scope="module")
def frame():
    """Integers that float64 cannot represent, and infinities, next to the columns that the model uses."""
    rng = np.random.default_rng(0)
    columns = {"a": rng.normal(size=60), "b": rng.integers(0, 5, 60), "big": rng.integers(2**53, 2**60, 60)}
    return pd.DataFrame(columns | {"far": [1.5, np.inf, -np.inf, np.nan, *rng.normal(size=56)]})


def test_a_report_is_about_the_class_asked_for(frame):
    row = int(scores(frame)[:, 0].argmax())  # A is the most probable class
    service = service_of(scores, frame, classes=["A", "B", "C"])
    for label in ("B", "C", "B"):  # a cached answer must not serve another class
        library = Explainer(scores, Table(frame), classes=["A", "B", "C"], output=label)
        report = service.report(ReportRequest(row=row, k=3, output=label)).decode()
        assert report == library.explain(row, k=3).to_html()


def test_the_class_of_a_view_can_be_asked_for(frame):
    """The page does so to compare two cases; the class of a view is null if the classes have no names."""
    for classes in (["A", "B", "C"], None):
        service = service_of(scores, frame, classes=classes)
        view = json.loads(service.explain_view(ExplainRequest(row=1)))
        again = json.loads(service.explain_view(ExplainRequest(row=1, output=view["class"])))
        assert again["sum"] == view["sum"]


def test_an_explanation_is_verified_as_text_and_as_object(client):
    text = client.post("/v1/explain", json={"row": 3}).text
    for form in (text, json.loads(text)):
        assert client.post("/v1/verify", json={"explanation": form}).json()["outcome"] == "holds"
    forged = client.post("/v1/verify", json={"explanation": text.replace('"k":4', '"k":3')}).json()
    assert not forged["holds"]
    assert client.post("/v1/verify", json={"explanation": {}}).json()["outcome"] == "cannot tell"


def test_rows_are_found_paged_and_sorted(client, explainer):
    frame, _ = loans(400)  # in the order in which the table was given
    whole = client.get("/v1/rows", params={"limit": 200}).json()
    assert (whole["total"], whole["found"], len(whole["rows"])) == (400, 400, 200)
    assert whole["columns"] == list(frame.columns)
    assert [row["position"] for row in whole["rows"]] == list(range(200))
    assert whole["rows"][7]["values"][:3] == [frame["age"][7], frame["income"][7], frame["debt"][7]]
    decided = explainer.model.predict(frame)
    assert [row["answer"] for row in whole["rows"]] == decided[:200].tolist()
    matches = client.get(
        "/v1/rows", params={"search": "DECLINED purpose=car", "limit": 200, "sort": "high"}
    ).json()
    expected = (decided == "declined") & (frame["purpose"] == "car")
    assert matches["found"] == expected.sum() > 10
    values = [row["value"] for row in matches["rows"]]
    assert values == sorted(values, reverse=True)
    part = client.get(
        "/v1/rows", params={"search": "declined purpose=car", "offset": 3, "limit": 2, "sort": "high"}
    )
    assert part.json()["rows"] == matches["rows"][3:5]
    assert client.get("/v1/rows", params={"search": "#17"}).json()["rows"][0]["position"] == 17
    assert client.get("/v1/rows", params={"search": "#400"}).json()["found"] == 0
    assert client.get("/v1/rows", params={"search": "no such words"}).json()["rows"] == []


def test_what_if_asks_the_model_and_the_sum(client, explainer):
    e = explainer.explain(3)
    same = client.post("/v1/what-if", json={"row": 3}).json()
    assert not any(same["is_broken"])
    assert same["prediction"] == same["expected"] == same["original"] == e.prediction
    row = dict(zip(explainer.space.names, e.instance, strict=True))
    for other in range(20, 30):
        changed = dict(zip(explainer.space.names, explainer.space.at(other).instance, strict=True))
        edits = {name: changed[name] for name in ("income", "debt", "owner", "purpose")}
        received = client.post("/v1/what-if", json={"row": 3, "edits": edits}).json()
        columns = explainer.space.at(row | edits).columns
        broken = [not explainer.space.is_true(fact, columns)[0] for fact in e.facts]
        assert received["is_broken"] == broken
        assert received["expected"] == pytest.approx(e.prediction - e.effects[broken].sum(), abs=1e-12)
        column = list(explainer.model.classes_).index(e.output.name)
        answer = explainer.model.predict_proba(explainer.space.at(received["row"]).original)[0, column]
        assert received["prediction"] == answer
        assert received["decision_stays"] == (answer > 0.5) == (received["answer"] == e.output.name)
    for edits in ({"nothing": 1}, {"age": "old"}, {"applied": "soon"}):
        assert client.post("/v1/what-if", json={"row": 3, "edits": edits}).status_code == 422
    assert client.post("/v1/what-if", json={"row": 3, "broken": ["income"]}).status_code == 422


def test_changes_are_those_of_the_library_and_bounded(client, explainer):
    found = Changes.from_json(client.post("/v1/changes", json={"row": 3, "n": 2}).text)
    assert found == explainer.changes(3, n=2, queries=20_000)
    assert found.n_queries <= 20_000
    view = client.post("/page/changes", json={"row": 3, "n": 2}).json()
    assert [option["edits"] for option in view["options"]] == [option.values for option in found]
    shown = [view["headline"], *(option["text"] for option in view["options"]), *view["notes"]]
    assert [line for line in shown if line] == [line.strip() for line in str(found).split("\n")]
    edited = client.post("/v1/what-if", json={"row": 3, "edits": view["options"][0]["edits"]}).json()
    assert edited["decision_stays"] is False
    fixed = view["options"][0]["names"]
    other = client.post("/page/changes", json={"row": 3, "fixed": fixed}).json()
    assert all(not {*option["names"]} & {*fixed} for option in other["options"])
    for wrong in ({"target": "nonsense"}, {"fixed": ["nothing"]}, {"n": 11}, {"queries": 10**9}):
        assert client.post("/v1/changes", json={"row": 3, **wrong}).status_code == 422


def test_rules_are_those_of_the_library_and_bounded(client, explainer):
    body = {"row": 3, "holds": 0.9, "k": 3, "sigma": 1.5, "seed": 2}
    found = Rule.from_json(client.post("/v1/rule", json=body).text)
    assert found == explainer.rule(3, holds=0.9, k=3, sigma=1.5, seed=2)
    assert Rule.from_json(client.post("/v1/rule", json={"row": 3, "queries": 400}).text).queries.total <= 400
    view = client.post("/page/rule", json=body).json()
    head, *rest = statements_of(found)
    assert view["verdict"] == {"code": found.verdict.value, "text": head.text}
    assert view["facts"] == [each.text for each in rest if each.kind == "fact"]
    assert " ".join(view["evidence"]) == " ".join(each.text for each in rest if each.kind != "fact")
    assert [each["text"] for each in view["details"]] == [each.text for each in details_of(found)]
    assert [len(band["parts"]) for band in view["bands"]] == [len(band.parts) for band in bands_of(found)]
    assert view["json"] == found.to_json()
    wrong = ({"holds": 0}, {"holds": 1.01}, {"holds": "0.9"}, {"k": 0}, {"k": 21}, {"within": 0}, {"sigma": 9})
    for each in (
        *wrong,
        {"queries": 10**6},
        {"queries": 31},
        {"time_limit": 1},
        {"output": "no class"},
        {"row": -1},
    ):
        assert client.post("/v1/rule", json={"row": 3, **each}).status_code == 422
    refused = client.post("/v1/rule", json={"row": 3, "within": 2.0})  # decisions have no tolerance
    assert refused.status_code == 422
    assert "within is 2.0" in refused.json()["detail"]


def test_a_rule_is_verified_within_the_limits(client):
    text = client.post("/v1/rule", json={"row": 3}).text
    assert client.post("/v1/verify", json={"explanation": text}).json()["outcome"] == "holds"
    dear = resealed(json.loads(text) | {"settings": json.loads(text)["settings"] | {"k": 21}})
    refused = client.post("/v1/verify", json={"explanation": dear})
    assert refused.status_code == 422
    assert "exceeds the limits of this server (k)" in refused.json()["detail"]


def test_a_report_has_the_rule_that_is_asked_for(client, explainer):
    e, rule = explainer.explain(3), explainer.rule(3, holds=0.9)
    assert client.post("/page/report", json={"row": 3}).text == e.to_html()
    assert client.post("/page/report", json={"row": 3, "holds": 0.9}).text == e.to_html(rule=rule)


@pytest.mark.parametrize(
    ("options", "decide"),
    [
        ({"classes": "ABC"}, lambda rows: scores(rows)[0].argmax()),
        ({"classes": "CBA", "threshold": 0.3}, lambda rows: scores(rows)[0, 0] >= 0.3),
        ({"classes": "ABC", "task": "number", "output": "A"}, lambda rows: None),
        ({"task": "label"}, lambda rows: scores(rows)[0].argmax()),
    ],
    ids=["class", "threshold", "number", "label"],
)
def test_a_decision_stays_as_the_explanation_means_it(frame, options, decide):
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


def test_a_decision_is_the_models_own():
    """Its scores may not determine it, so that both are asked."""

    class Careful:
        classes_ = np.array(["no", "yes"])

        def predict_proba(self, rows):
            high = 1 / (1 + np.exp(-rows[:, 0]))
            return np.column_stack([1 - high, high])

        def predict(self, rows):
            return np.where((rows[:, 0] > 0) & (rows[:, 1] > 0), "yes", "no")

    values = np.random.default_rng(3).normal(size=(60, 2))
    service = service_of(Careful(), values)
    page = json.loads(service.rows(RowsRequest(limit=60)))
    assert [row["answer"] for row in page["rows"]] == Careful().predict(values).tolist()
    row = int(np.argmax(values[:, 0] * (values[:, 1] < 0)))
    assert json.loads(service.explain_view(ExplainRequest(row=row)))["decision"].startswith("Model's decision: no")
    edits = {"x1": 1.0}
    assert json.loads(service.what_if(WhatIfRequest(row=row, edits=edits)))["answer"] == "yes"


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
    page = json.loads(service.rows(RowsRequest(limit=60)))
    assert [row["values"][2] for row in page["rows"]] == [str(n) if n >= 2**53 else n for n in big]
    expected = frame["far"].astype(object).where(frame["far"].notna(), None)
    far = expected.replace({np.inf: "Infinity", -np.inf: "-Infinity"}).tolist()
    assert [row["values"][3] for row in page["rows"]] == far
    assert json.loads(service.rows(RowsRequest(search=f"big={big[7]}", limit=9)))["rows"] == [page["rows"][7]]
    for position in {0, *map(far.index, ("Infinity", "-Infinity", None))}:
        row = dict(zip(page["columns"], page["rows"][position]["values"], strict=True))
        expected = service.explain(ExplainRequest(row=position, **QUICK))
        assert json.loads(expected)["instance"][2] == big[position]
        for values_by_name in (row, row | {"big": big[position]}):
            assert service.explain(ExplainRequest(row=values_by_name, **QUICK)) == expected


def test_edits_are_exact(frame):
    service, big = service_of(scores, frame, classes=["A", "B", "C"]), frame["big"].tolist()
    for edit in (str(big[3] + 1), big[3] + 1):
        edits = {"big": edit, "far": "-Infinity"}
        received = json.loads(service.what_if(WhatIfRequest(row=3, edits=edits, **QUICK)))
        assert (received["row"]["big"], received["row"]["far"]) == (str(big[3] + 1), "-Infinity")
    for edit in ("12", "1e300", "9" * 400, "9" * 5000, "0" * 20):  # not a long integer as a browser writes it
        with pytest.raises(InstanceError, match="'big'"):
            service.what_if(WhatIfRequest(row=3, edits={"big": edit}, **QUICK))


def test_a_report_is_one_page(client, explainer):
    got = client.post("/page/report", json={"row": 3})
    assert got.text == explainer.explain(3).to_html()
    assert "attachment" in got.headers["content-disposition"]


def test_health_and_metrics(client, server):
    assert httpx.get(f"{server.base}/health").json() == {"status": "ok"}
    assert client.get("/health").json()["rows"] == 400
    assert client.post("/v1/explain", json={"row": 3, **QUICK}).status_code == 200  # to have one to count
    text = client.get("/metrics").text
    assert re.search(r'anchorline_requests_total\{method="POST",route="/v1/explain",status="200"\} \d+', text)
    assert re.search(r'anchorline_model_rows_total\{model=""\} \d+', text)
    assert re.search(r"process_resident_memory_bytes \d+", text)
    buckets = [float(n) for n in re.findall(r'_bucket\{le="[^"]+",route="/v1/explain"\} (\S+)', text)]
    assert len(buckets) == 14
    assert buckets == sorted(buckets)


def test_errors_are_problems_with_the_requests_id(client, caplog):
    with caplog.at_level(logging.INFO, logger="anchorline.studio"):
        got = client.post("/v1/explain", json={"row": 5000}, headers={"X-Request-ID": "mine-42"})
        assert becomes_true(lambda: any("id=mine-42" in record.getMessage() for record in caplog.records))
    assert (got.status_code, got.headers["content-type"]) == (404, "application/problem+json")
    assert got.json()["detail"] == "No case has the number 5000; the numbers are 0 to 399."
    assert got.json()["request_id"] == got.headers["x-request-id"] == "mine-42"
    invalid = client.post("/v1/explain", json={"row": 1, "k": 0}).json()
    assert invalid["errors"][0]["where"] == ["body", "k"]
    assert client.get("/nowhere").json()["status"] == 404
    assert client.get("/v1/explain").json()["status"] == 405
    assert client.post("/v1/explain", json={"row": 1, "queries": 20_001}).status_code == 422


def test_the_schema_has_examples_and_no_outside_reference(client):
    document = client.get("/openapi.json").json()
    text = json.dumps(document)
    assert set(re.findall(r'"\$ref": "([^"]+)"', text)) <= {
        f"#/components/schemas/{name}" for name in document["components"]["schemas"]
    }
    for name in ("ExplainRequest", "VerifyRequest", "WhatIfRequest", "ChangesRequest", "OverviewRequest"):
        assert document["components"]["schemas"][name]["examples"]
    posts = [methods["post"] for methods in document["paths"].values() if "post" in methods]
    assert all("application/problem+json" in post["responses"]["429"]["content"] for post in posts)
    assert all(post["security"] for post in posts)


@pytest.mark.parametrize("kind", ["number", "label"])
def test_numbers_and_labels_are_shown_too(kind):
    table = Table(np.random.default_rng(0).normal(size=(80, 3)), names=["a", "b", "c"])

    def model(rows):
        score = 3 * rows[:, 0] - rows[:, 1]
        return score if kind == "number" else np.where(score > 0, "up", "down")

    with live(Explainer(model, table, output="trend")) as server, client_of(server, timeout=30) as client:
        view = client.post("/page/explain", json={"row": 1}).json()
        assert view["is_number"] == (kind == "number")
        assert bool(view["meters"]) == (kind == "label")
        received = client.post("/v1/what-if", json={"row": 1, "edits": {"a": 5.0}}).json()
        assert received["decision_stays"] is None if kind == "number" else received["prediction"] in (0, 1)
        assert client.get("/v1/rows?sort=high&limit=3").status_code == 200


def test_a_server_of_few_queries_asks_no_more():
    """Neither about the table, nor about one case."""
    asked = []

    def model(rows):
        asked.append(len(rows))
        return np.tanh(rows[:, 0])

    explainer = Explainer(model, Table(np.random.default_rng(0).normal(size=(500, 3))), output="score")
    service = studio_of(explainer, limits=StudioLimits(max_queries=200)).served[""].service
    assert asked == []
    service.explain(ExplainRequest(row=1))
    assert sum(asked) <= 200


def test_texts_in_csv_are_not_computed():
    frame = pd.DataFrame({"=1+1": np.arange(40.0) % 7, "b": np.arange(40.0)})
    explainer = Explainer(lambda rows: np.asarray(rows.iloc[:, 0] > 3, dtype=float), Table(frame), output="@sum")
    with live(explainer) as server, client_of(server, timeout=30) as client:
        job = begun(client, "/v1/overview", n_rows=3)
        assert becomes_true(lambda: client.get(job).json()["state"] == "done", 20)
        text = client.get(f"{job}/result?format=csv").text
    rows = list(csv.DictReader(io.StringIO(text)))
    assert len(rows) == 3
    for row in rows:
        assert row["output"] == "'@sum"
        assert row["facts"].startswith("'=1+1 ")
        float(row["prediction"])


def test_operations_have_short_names_and_answers_have_types(client):
    document = client.get("/openapi.json").json()
    operations = {}
    for path, methods in document["paths"].items():
        operations |= {operation["operationId"]: (path, operation) for operation in methods.values()}
    assert len(operations) == sum(map(len, document["paths"].values()))
    assert {"explain", "what_if", "rows", "page_explain", "health"} <= {*operations}
    assert all(re.fullmatch("[a-z_]+", name) for name in operations)
    typed = {name for name, (path, _) in operations.items() if path.startswith("/v1/")}
    for name in typed - {"job_events", "job_result", "cancel_job", "close_file"}:
        given = operations[name][1]["responses"]
        code = "202" if name in ("overview", "whole_rules", "compare") else "200"
        schema = given[code]["content"]["application/json"]["schema"]
        assert schema["$ref"].startswith("#/components/schemas/")
        assert "202" in given or name in ("rows", "job", "open_file")
    assert "200" not in operations["overview"][1]["responses"]


@pytest.mark.parametrize(
    ("path", "body", "answer"),
    [
        ("explain", {"row": 3}, answers.ExplanationAnswer),
        ("rule", {"row": 3}, answers.RuleAnswer),
        ("changes", {"row": 3}, answers.ChangesAnswer),
        ("what-if", {"row": 3, "edits": {"age": 30}}, answers.WhatIfAnswer),
        ("answer", {"row": 3}, answers.ModelAnswer),
        ("rows", None, answers.RowsAnswer),
        ("overview", {"n_rows": 3, "k": 2}, answers.OverviewAnswer),
        ("whole/rules", {"n_rows": 2}, answers.CoveringAnswer),
        ("whole/acting", {"attribute": "age"}, answers.ActingAnswer),
        ("whole/groups", {"attribute": "age"}, answers.GroupsAnswer),
    ],
)
def test_answers_are_what_the_description_says(client, path, body, answer):
    got = client.get(f"/v1/{path}") if body is None else client.post(f"/v1/{path}", json=body)
    if got.status_code == 202:
        answers.JobAnswer.model_validate_json(got.content)
        job = got.headers["location"]
        assert becomes_true(lambda: answers.JobAnswer.model_validate(client.get(job).json()).state == "done", 20)
        got = client.get(f"{job}/result")
    answer.model_validate_json(got.content)  # which allows no other members


def test_problems_have_stable_types(client):
    for path, body, kind in (
        ("/v1/explain", {"row": 5000}, "not-found"),
        ("/v1/explain", {"row": 1, "k": 0}, "invalid"),
        ("/nowhere", {}, "not-found"),
        ("/v1/rows", {}, "method"),
        ("/v1/reasons", {"row": 1}, "no-codes"),
    ):
        assert client.post(path, json=body).json()["type"] == f"urn:anchorline:{kind}"


def test_the_list_of_explanations_is_a_parquet_file_too(client):
    job = begun(client, "/v1/overview", n_rows=4, k=2)
    assert becomes_true(lambda: client.get(job).json()["state"] == "done", 20)
    got = client.get(f"{job}/result?format=parquet")
    assert got.headers["content-disposition"] == 'attachment; filename="explanations.parquet"'
    frame = pd.read_parquet(io.BytesIO(got.content))
    text = pd.read_csv(io.StringIO(client.get(f"{job}/result?format=csv").text))
    assert len(frame) == 4
    assert frame.columns.tolist() == text.columns.tolist()
    assert frame["prediction"].tolist() == pytest.approx(text["prediction"].tolist(), rel=1e-12)
