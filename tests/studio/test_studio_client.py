"""A client that is generated from the description does what the page does."""

import importlib
import json
import sys

import httpx
import pytest
from openapi_python_client import Config, generate
from openapi_python_client.config import ConfigFile, MetaType

from anchorline.studio.demo import demo_explainer
from helpers.studio import becomes_true, live

NAME = "generated_studio_client"


@pytest.fixture(scope="module")
def server():
    with live(demo_explainer(300), name="loans") as running:
        yield running


@pytest.fixture(scope="module")
def generated(server, tmp_path_factory):
    """The package of the generated client, imported, and a client with the token."""
    folder = tmp_path_factory.mktemp("client")
    headers = {"Authorization": f"Bearer {server.token}"}
    (folder / "studio.json").write_bytes(httpx.get(f"{server.base}/openapi.json", headers=headers).content)
    settings = ConfigFile(post_hooks=[], package_name_override=NAME)
    config = Config.from_sources(
        settings, MetaType.NONE, folder / "studio.json", "utf-8", overwrite=True, output_path=folder / NAME
    )
    problems = [each for each in generate(config=config) if each.level.name == "ERROR"]
    assert not problems, [(each.header, each.detail) for each in problems]
    sys.path.insert(0, str(folder))
    try:
        package = importlib.import_module(NAME)
        with package.AuthenticatedClient(base_url=server.base, token=server.token, timeout=60.0) as client:
            yield client
    finally:
        sys.path.remove(str(folder))
        for name in [each for each in sys.modules if each.partition(".")[0] == NAME]:
            del sys.modules[name]


def call(name, client, **arguments):
    """Call an operation; its request is a model of the client."""
    module = importlib.import_module(f"{NAME}.api.programs.{name}")
    return module.sync(client=client, **arguments)


def request(name, **content):
    return getattr(importlib.import_module(f"{NAME}.models"), name).from_dict(content)


def test_a_generated_client_does_the_tasks_of_a_day(generated, server):
    page = call("rows", generated, search="answer=declined", limit=5)
    assert page.found > 0
    case = page.rows[0].position
    explanation = call("explain", generated, body=request("ExplainRequest", row=case))
    assert abs(explanation.base + sum(explanation.contributions) - explanation.prediction) < 1e-9
    rule = call("rule", generated, body=request("RuleRequest", row=case))
    assert rule.facts
    changes = call("changes", generated, body=request("ChangesRequest", row=case, fixed=["age"]))
    assert changes.settings["fixed"] == ["age"]
    row = page.rows[0].values
    new = dict(zip(page.columns, row, strict=True)) | {"income": 140_000.0, "debt": 0}
    answer = call("answer_row", generated, body=request("AnswerRequest", row=new))
    assert answer.answer == "approved"
    turned = call(
        "what_if", generated, body=request("WhatIfRequest", row=case, edits={"income": 140_000.0, "debt": 0})
    )
    assert turned.prediction == pytest.approx(1 - answer.value, abs=1e-9)
    acting = call("whole_acting", generated, body=request("WholeRequest", attribute="income"))
    assert acting.points[0].mean != acting.points[-1].mean
    groups = call("whole_groups", generated, body=request("WholeRequest", attribute="owner"))
    assert {group.text for group in groups.groups} == {"True", "False"}
    held = call("verify", generated, body=request("VerifyRequest", explanation=json.dumps(explanation.to_dict())))
    assert held.outcome in ("holds", "cannot tell", "does not hold")
    assert call("health", generated).status == "ok"


def test_a_generated_client_follows_a_job(generated):
    begun = call("overview", generated, body=request("OverviewRequest", n_rows=5, k=2))
    assert begun.state in ("running", "done")
    assert becomes_true(lambda: call("job", generated, id=begun.id).state == "done", 30)
    result = call("job_result", generated, id=begun.id)
    assert (type(result).__name__, result.n_explained, result.is_done) == ("OverviewAnswer", 5, True)
    assert call("cancel_job", generated, id=begun.id) is None
    assert call("job", generated, id=begun.id).status == 404


def test_a_problem_is_a_model_too(generated):
    problem = call("explain", generated, body=request("ExplainRequest", row=10_000))
    assert (problem.status, problem.type_) == (404, "urn:anchorline:not-found")
