"""Several models in one server: an address, a page and an interface for each, and limits and tokens in common."""

import concurrent.futures
import json
import re

import httpx
import pytest

from anchorline.errors import ParameterError
from anchorline.studio import app as studio_app
from anchorline.studio.access import Proxy, StudioLimits
from anchorline.studio.app import Studio
from anchorline.studio.display import Display, Model
from helpers.studio import (
    HOSTILE,
    SlowModel,
    client_of,
    cohort_explainer,
    hostile_explainer,
    live,
    slow_explainer,
)


def models():
    return {
        "loans": Model(explainer=cohort_explainer(), name="Car loans", display=Display(names={"age": "Age"})),
        "hostile": Model(explainer=hostile_explainer(), name=HOSTILE),
    }


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    return tmp_path_factory.mktemp("audit") / "log"


@pytest.fixture(scope="module")
def server(log):
    with live(models(), audit_log=log) as running:
        yield running


def test_every_model_has_its_page_and_its_interface(client):
    alone = {}
    for name, model in models().items():
        with live(model) as single, client_of(single, timeout=30) as other:
            alone[name] = other.post("/v1/explain", json={"row": 3, "queries": 200}).content
    for name, expected in alone.items():
        page = client.get(f"/m/{name}/")
        assert page.status_code == 200
        assert re.search(r'<a id="all-models" +href="../../"', page.text)
        assert client.get(f"/m/{name}/static/app.js").status_code == 200
        assert client.post(f"/m/{name}/v1/explain", json={"row": 3, "queries": 200}).content == expected
    assert client.get("/m/loans/page/about").json()["name"] == "Car loans"
    assert client.get("/m/loans/page/about").json()["columns"][2]["label"] == "Age"
    assert client.get("/m/hostile/v1/rows?limit=1").json()["total"] == 120
    described = client.get("/m/loans/openapi.json").json()
    assert described["servers"] == [{"url": "/m/loans"}]
    assert "/v1/explain" in described["paths"]
    assert {*client.get("/openapi.json").json()["paths"]} == {"/health", "/ready", "/metrics"}


def test_equal_requests_about_two_models_have_two_answers(client):
    """They share one cache."""
    same = [client.get(f"/m/{name}/v1/rows?limit=2").json()["columns"] for name in ("loans", "hostile", "loans")]
    assert same[0] == same[2] != same[1]


def test_the_page_at_the_root_lists_the_models(client):
    page = client.get("/")
    assert page.status_code == 200
    assert '<a href="m/loans/">Car loans</a> <span>120 cases</span>' in page.text
    assert "<script>" not in page.text
    assert "&lt;script&gt;" in page.text
    assert "\u202e" not in page.text
    assert client.get("/static/style.css").status_code == 200


@pytest.mark.parametrize(
    "path", ["/v1/rows", "/m/nothing/v1/rows", "/m/nothing/", "/m/loans/metrics", "/m/Loans/"]
)
def test_no_other_address_has_a_model(client, path):
    answer = client.get(path)
    assert (answer.status_code, answer.json()["type"]) == (404, "urn:anchorline:not-found")


def test_one_token_opens_all_models_and_nothing_is_open_without_it(server):
    with httpx.Client(base_url=server.base) as browser:
        for path in ("/m/loans/v1/rows", "/m/loans/openapi.json", "/m/loans/static/app.js", "/m/nothing/v1/rows"):
            assert browser.get(path).status_code == 401
        for path in ("/m/loans/", "/m/nothing/"):  # the same, so that nobody learns which models there are
            assert browser.get(path).status_code == 401
            assert 'action="login"' in browser.get(path).text
            assert browser.get(f"{path}static/style.css").status_code == 200
        link = browser.get("/m/loans/", params={"token": server.token, "case": "3"})
        assert link.headers["location"] == "/m/loans/?case=3"
        assert browser.get("/m/loans").headers["location"] == "/m/loans/"
        assert browser.get("/m/loans/v1/rows").status_code == 200
        assert browser.get("/m/hostile/v1/rows").status_code == 200
        foreign = {"Sec-Fetch-Site": "cross-site"}
        assert browser.get("/m/loans/", headers=foreign).status_code == 200
        assert browser.get("/m/loans/v1/rows", headers=foreign).status_code == 403
    answer = httpx.post(f"{server.base}/m/loans/login", data={"token": server.token})
    assert answer.headers["location"] == "/m/loans/"


def test_a_proxy_with_a_prefix():
    with live(models(), proxy=Proxy("127.0.0.1", None, "/studio")) as running, client_of(running) as client:
        assert client.get("/studio/m/loans").headers["location"] == "/studio/m/loans/"
        assert client.get("/studio/m/loans/v1/rows").status_code == 200
        assert client.get("/m/loans/openapi.json").json()["servers"] == [{"url": "/studio/m/loans"}]
        assert client.get("/studio").headers["location"] == "/studio/"


def test_health_metrics_and_the_audit_log_tell_about_all_models(client, log):
    health = client.get("/health").json()
    assert health["models"] == {"loans": 120, "hostile": 120}
    assert client.get("/ready").json() == {"status": "ready"}
    for name in ("loans", "hostile"):
        client.post(f"/m/{name}/v1/answer", json={"row": 5}, headers={"X-Request-ID": f"of-{name}"})
    text = client.get("/metrics").text
    for name in ("loans", "hostile"):
        assert re.search(rf'anchorline_model_rows_total\{{model="{name}"\}} [1-9]', text)
        assert f'method="POST",route="/m/{name}/v1/answer",status="200"' in text
    client.get("/m/another/static/style.css")
    assert "another" not in client.get("/metrics").text
    lines = {line.get("request_id"): line for line in map(json.loads, log.read_text().splitlines())}
    assert lines[None] == {
        "time": lines[None]["time"],
        "route": "server",
        "models": {"loans": None, "hostile": None},
    }
    assert (lines["of-loans"]["model"], lines["of-hostile"]["model"]) == ("loans", "hostile")


def test_a_model_that_fails_makes_the_server_unready_and_is_named(monkeypatch):
    monkeypatch.setattr(studio_app, "_RECENT", 0.0)
    model = SlowModel(0)
    both = {"loans": models()["loans"], "slow": Model(explainer=slow_explainer(model))}
    with live(both) as running, client_of(running, timeout=30) as client:
        assert client.get("/ready").status_code == 200
        monkeypatch.setattr(SlowModel, "__call__", lambda self, rows: 1 / 0)
        answer = client.get("/ready")
        assert (answer.status_code, answer.json()["detail"]) == (503, "The model 'slow' does not answer.")
        assert client.post("/m/slow/v1/explain", json={"row": 1}).status_code == 502
        assert client.post("/m/loans/v1/explain", json={"row": 1}).status_code == 200


def test_limits_hold_for_all_models_together():
    limits = StudioLimits(queue=1, workers=1)
    slow = {name: Model(explainer=slow_explainer(SlowModel(0.3))) for name in ("a", "b")}
    with live(slow, limits=limits) as running, client_of(running, timeout=30) as client:

        def ask(seed):
            body = {"row": 1, "seed": seed, "queries": 200}
            return client.post(f"/m/{'ab'[seed % 2]}/v1/explain", json=body).status_code

        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            codes = [*pool.map(ask, range(8))]
    assert {*codes} == {200, 429}


@pytest.mark.parametrize("name", ["", "Loans", "a b", "a/b", "-a", "a--b", "\u00e4", "a" * 41, "a\n", ".."])
def test_names_that_no_address_can_have_are_refused(name):
    with pytest.raises(ParameterError, match="part of an address"):
        Studio({name: models()["loans"], "other": models()["loans"]}, token=None)


def test_what_is_wrong_with_one_of_several_models_names_it():
    wrong = Model(explainer=cohort_explainer(), display=Display(immutable=["height"]))
    with pytest.raises(ParameterError, match="Model 'new': immutable has 'height'"):
        Studio({"old": models()["loans"], "new": wrong}, token=None)
    with pytest.raises(ParameterError, match="no model"):
        Studio({}, token=None)
