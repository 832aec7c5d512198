"""A client that a public generator makes from the schema explains, verifies, and lists rows."""

import importlib
import json
import subprocess
import sys

import pytest
from fastapi.openapi.utils import get_openapi  # noqa: F401  the studio's extra is installed

from anchorline.result.json_format import schema
from anchorline.studio.demo import demo_explainer
from helpers.studio import live

QUICK = {"n_samples": 300, "n_certify": 200}


@pytest.fixture(scope="module")
def server():
    with live(demo_explainer(300), name="loans") as running:
        yield running


@pytest.fixture(scope="module")
def generated(client, tmp_path_factory):
    """The package that `openapi-python-client` writes for the schema; warnings fail."""
    pytest.importorskip("openapi_python_client")
    folder = tmp_path_factory.mktemp("generated")
    (folder / "openapi.json").write_text(client.get("/openapi.json").text)
    (folder / "config.yml").write_text("post_hooks: []\n")
    command = [
        sys.executable,
        "-m",
        "openapi_python_client",
        "generate",
        "--path",
        "openapi.json",
        "--meta",
        "none",
    ]
    command += ["--output-path", "studio_client", "--fail-on-warning", "--config", "config.yml"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    sys.path.insert(0, str(folder))
    yield importlib.import_module("studio_client")
    sys.path.remove(str(folder))


def call(generated, server, name, **arguments):
    module = importlib.import_module(f"studio_client.api.programs.{name}")
    with generated.AuthenticatedClient(base_url=server.base, token=server.token, timeout=60) as opened:
        return module.sync(client=opened, **arguments)


def test_a_generated_client_explains_and_verifies(generated, server):
    models = importlib.import_module("studio_client.models")
    explanation = call(generated, server, "explain_explain_post", body=models.ExplainRequest(row=1, k=4, **QUICK))
    content = explanation.to_dict()
    assert content["schema_version"] == 1
    assert len(content["instance"]) == 8
    request = models.VerifyRequest(explanation=json.dumps(content))
    assert call(generated, server, "verify_verify_post", body=request).outcome == "holds"
    frontier = call(
        generated, server, "frontier_frontier_post", body=models.FrontierRequest(row=1, ks=[1, 2], **QUICK)
    )
    assert [point.k for point in frontier.points] == [1, 2]
    summary = call(
        generated, server, "overview_overview_post", body=models.OverviewRequest(search="#1", n_rows=1, k=2)
    )
    assert (summary.found, summary.n_failed, summary.failed) == (1, 0, [])
    rows = call(generated, server, "rows_rows_get", search="income>30000", limit=5)
    assert len(rows.rows) == 5
    assert all(row.values[1] > 30_000 for row in rows.rows)


def test_every_array_of_the_schema_declares_its_items(client):
    def arrays(part):
        if isinstance(part, dict):
            if part.get("type") == "array" and not {"items", "prefixItems"} & part.keys():
                yield part
            for below in part.values():
                yield from arrays(below)
        elif isinstance(part, list):
            for below in part:
                yield from arrays(below)

    assert not list(arrays(client.get("/openapi.json").json()))
    assert not list(arrays(schema()))
    assert not list(arrays(schema("changes")))


def test_kserve_predicts_one_class_in_all_rows(client, server):
    rows = [row["values"] for row in client.get("/rows", params={"limit": 12}).json()["rows"]]
    body = {"instances": rows, "parameters": QUICK | {"n_certify": 0}}
    answer = client.post("/v1/models/loans:explain", json=body).json()
    cases, model = server.studio.catalog.cases, server.studio.explainer.model
    expected = model.predict_proba(next(cases.inputs(cases.stored_at[:12]))[0])
    assert answer["output"] == "declined"
    assert answer["predictions"] == pytest.approx(expected[:, 1].tolist())
    assert {explanation["output"] for explanation in answer["explanations"]} == {"declined"}
    approved = client.post("/v1/models/loans:explain", json=body | {"parameters": {**QUICK, "output": "approved"}})
    assert approved.json()["predictions"] == pytest.approx(expected[:, 0].tolist())


def test_the_documentation_page_asks_no_other_host(client):
    page = client.get("/docs").text + client.get("/static/docs.js").text
    assert "http://" not in page.replace("http://www.w3.org", "")
    assert "https://" not in page


def test_every_metric_says_what_it_means(client):
    lines = client.get("/metrics").text.splitlines()
    named = {line.split()[2] for line in lines if line.startswith("# HELP ") and len(line.split()) > 3}
    typed = {line.split()[2] for line in lines if line.startswith("# TYPE ")}
    assert typed == named
    assert len(typed) >= 9
