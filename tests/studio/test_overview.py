"""The summary of many cases and the difference of two groups, over HTTP."""

import contextlib
import threading
import time
from types import SimpleNamespace

import httpx
import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

import anchorline as al
from anchorline.studio import cohort as cohort_module
from anchorline.studio import cohort_service
from anchorline.studio import overview as overview_module
from anchorline.studio.catalog import Catalog
from anchorline.studio.cohort import Cohort
from anchorline.studio.job_queue import JobCanceledError
from anchorline.studio.limits import StudioLimits
from anchorline.studio.overview import comparison_of
from anchorline.studio.problems import Problem
from anchorline.studio.truth import Truth, _histogram
from anchorline.studio.views import page_words
from helpers.studio import HOSTILE, SlowModel, client_of, cohort_explainer, cohort_table, hostile_explainer, live
from helpers.studio import slow_explainer as slow


@pytest.fixture(scope="module")
def server():
    truth = cohort_table()[1]
    with live(cohort_explainer(), name="loans", truth=("approved?", truth)) as running:
        yield running


def whole(client, path="/overview", **body):
    """Ask until the answer is complete, as the page does; return it and all progress before."""
    seen = []
    for _ in range(200):
        response = client.post(path, json=body)
        assert response.status_code == 200, response.text
        answer = response.json()
        seen.append(answer.get("progress"))
        if answer["is_done"]:
            return answer, seen
    raise AssertionError("The summary was never complete.")


@pytest.fixture(scope="module")
def answer(client):
    return whole(client, n_rows=30, k=3)[0]


@pytest.fixture(scope="module")
def many():
    """The same cases, explained by the library."""
    frame, _ = cohort_table()
    chosen = np.sort(np.random.default_rng(0).choice(len(frame), 30, replace=False))
    explainer = al.Explainer(
        cohort_explainer().model, al.Table(frame), classes=["declined", "approved"], output="approved"
    )
    return chosen, explainer.explain_many(frame.iloc[chosen].reset_index(drop=True), k=3)


def test_facts_and_verdicts_are_those_of_the_library(answer, many):
    chosen, explained = many
    summary, expected = answer["summary"], explained.summary()
    assert (answer["found"], answer["n_sampled"], answer["n_explained"]) == (120, 30, 30)
    assert summary["output"] == "P(approved)"
    assert [fact["name"] for fact in summary["facts"]] == [each.name for each in expected.attributes]
    for fact, each in zip(summary["facts"], expected.attributes, strict=True):
        assert (fact["n_rows"], fact["adds"]) == (each.n_rows, each.adds)
    assert {each["name"].upper(): each["count"] for each in summary["verdicts"]} == expected.verdicts
    assert summary["least_trustworthy"][0]["position"] == chosen[expected.least_trustworthy[0][0]]


def test_points_hold_the_values_of_the_cases(answer):
    frame, _ = cohort_table()
    income = next(fact for fact in answer["summary"]["facts"] if fact["key"] == "income")
    assert all(frame["income"][position] == value for position, _, value in income["points"])


def test_rules_are_those_of_the_library(answer, many):
    chosen, explained = many
    expected = explained.rules(share=0.8, max_rules=8)
    assert answer["rules"]["headline"] == expected.headline
    assert [rule["position"] for rule in answer["rules"]["rules"]] == [chosen[rule.row] for rule in expected.rules]


def test_decisions_are_compared_with_the_truth(answer):
    frame, truth = cohort_table()
    scores = cohort_explainer().model(frame)[:, 1]
    decided = np.where(scores > 0.5, "approved", "declined")
    outcomes = answer["outcomes"]
    counts = pd.crosstab(truth, decided).loc[["approved", "declined"], ["approved", "declined"]]
    assert outcomes["confusion"] == {"labels": ["approved", "declined"], "counts": counts.to_numpy().tolist()}
    assert outcomes["right"]["value"] == np.mean(truth == decided)
    assert outcomes["right"]["low"] < outcomes["right"]["value"] < outcomes["right"]["high"]
    bins = outcomes["calibration"]
    assert sum(each["n"] for each in bins) == 120
    high = scores > 0.85
    assert bins[-1]["found"]["value"] == np.mean(truth[high] == "approved")
    histogram = outcomes["scores"]
    assert histogram["label"] == "approved"
    assert sum(histogram["positive"][50:]) == np.sum((truth == "approved") & (scores >= 0.5))
    assert np.array_equal(np.add(histogram["positive"], histogram["negative"]), histogram["all"])


def test_the_truth_is_listed_with_the_rows(client):
    _, truth = cohort_table()
    rows = client.get("/rows?limit=9").json()["rows"]
    assert [row["truth"] for row in rows] == truth[:9].tolist()
    assert client.get("/page/about").json()["target"] == "approved?"


def test_two_groups_are_compared(client):
    found, _ = whole(client, "/overview/compare", search="owner=yes", other="owner=no", n_rows=16, k=3)
    comparison = found["comparison"]
    by_name = {(each["kind"], each["name"]): each for each in comparison["differences"]}
    assert by_name["adds", "owner"]["first"] > 0.5 > by_name["adds", "owner"]["second"]
    assert by_name["adds", "owner"]["is_clear"]
    assert comparison["differences"][0]["is_clear"]


def test_a_complete_summary_is_kept(server, client, answer):
    before = server.studio.metrics.value("anchorline_model_rows_total")
    again, seen = whole(client, n_rows=30, k=3)
    assert again == answer
    assert len(seen) == 1
    assert server.studio.metrics.value("anchorline_model_rows_total") == before


def test_searches_without_cases_and_wrong_requests(client):
    empty, _ = whole(client, search="income>1000")
    assert (empty["found"], empty["summary"], empty["rules"]) == (0, None, None)
    nothing, _ = whole(client, "/overview/compare", search="income>1000", other="owner=yes", n_rows=2)
    assert nothing["comparison"] is None
    for body in ({"n_rows": 10_000}, {"search": "x" * 300}, {"k": 99}, {"output": "nothing"}, {"extra": 1}):
        response = client.post("/overview", json=body)
        assert (response.status_code, response.headers["content-type"]) == (422, "application/problem+json")


def test_the_schema_describes_the_routes(client):
    paths = client.get("/openapi.json").json()["paths"]
    for path in ("/overview", "/overview/compare"):
        schema = paths[path]["post"]["responses"]["200"]["content"]["application/json"]["schema"]
        assert schema["$ref"].endswith("Answer")


def test_work_has_progress_and_stops_when_nobody_asks():
    """A slow model: the first answer comes within seconds, and others are answered meanwhile."""
    model = SlowModel(0.2)
    with live(slow(model)) as running, client_of(running, timeout=30) as client:
        start = time.monotonic()
        first = client.post("/overview", json={"n_rows": 40}).json()
        assert not first["is_done"]
        assert 0 < first["progress"] < 1
        assert time.monotonic() - start < 10
        asked = {"url": f"{running.base}/overview", "headers": client.headers, "timeout": 30}
        calls = model.calls
        time.sleep(0.5)
        assert model.calls == calls
        other = threading.Thread(target=lambda: httpx.post(**asked, json={"n_rows": 40}))
        other.start()
        assert client.get("/rows?limit=1").status_code == 200
        assert client.post("/overview", json={"n_rows": 40}).json()["n_explained"] >= first["n_explained"]
        other.join()


def test_rows_of_a_canceled_request_are_not_lost(monkeypatch):
    """A canceled request makes rows fail, which the next request explains."""
    explainer = cohort_explainer()
    catalog, calls = Catalog(explainer), []

    def explain(positions):
        calls.append(positions)
        return cohort_module.explain_positions(
            explainer, catalog, positions, {"k": 2, "n_samples": 50, "n_certify": 50}
        )

    cohort = Cohort(catalog, "", 8, explain)
    monkeypatch.setattr(cohort_module, "raise_if_canceled", lambda: (_ for _ in ()).throw(JobCanceledError))
    with pytest.raises(JobCanceledError):
        cohort.step()
    assert (cohort.n_done, len(cohort.explained)) == (0, 0)
    monkeypatch.undo()
    cohort.step(60)
    assert cohort.is_done
    assert [position for position, _ in cohort.explained] == cohort.positions.tolist()
    assert calls[0] == calls[1]


def test_texts_from_data_are_escaped_and_other_targets_named():
    """Markup is text; a target that no answer equals is named, and a wrong number of values is refused."""
    explainer = hostile_explainer()
    with live(explainer, truth=(HOSTILE, ["1"] * 120)) as running, client_of(running, timeout=30) as client:
        found, _ = whole(client, n_rows=6, k=3)
        assert found["outcomes"]["mismatch"][0] == ["1"]
        assert "\u202e" not in found["outcomes"]["target"]
        assert all("\u202e" not in fact["name"] for fact in found["summary"]["facts"])
    with (
        pytest.raises(al.errors.ParameterError, match="2 values for 120 cases"),
        live(explainer, truth=("x", [1, 2])),
    ):
        pass


def test_numbers_are_compared_with_the_truth():
    frame, _ = cohort_table()
    truth = frame["income"] * 2.0
    explainer = al.Explainer(lambda rows: rows["income"].to_numpy() * 2.0 + 1, al.Table(frame), output="price")
    with live(explainer, truth=("price", truth)) as running, client_of(running, timeout=30) as client:
        found, _ = whole(client, n_rows=5, k=2)
        assert found["outcomes"]["numbers"]["mean_absolute_error"] == pytest.approx(1)
        assert len(found["outcomes"]["numbers"]["tenths"]) == 10
        assert "number" in found["rules"]["headline"]


def test_a_report_is_complete_for_the_file():
    """Case, values, truth, fingerprints, date and other sums, and no advice to programmers."""
    truth = cohort_table()[1]
    with (
        live(cohort_explainer(), name="loans", truth=("decision", truth), fingerprint="sha256:ab12") as running,
        client_of(running, timeout=30) as client,
    ):
        body = {"row": 3, "k": 2, "n_samples": 60, "n_certify": 60, "alternatives": 3}
        page = client.post("/page/report", json=body).text
        view = client.post("/page/explain", json=body).json()
    frame, _ = cohort_table()
    section = page[page.index("For the file") :]
    assert "number 3 of the table" in section
    assert f"<dt>True outcome</dt><dd>{truth[3]}</dd>" in section
    assert "<dd>sha256:ab12</dd>" in section
    assert "table:" in section
    for name in frame:
        assert f"<dt>{name}</dt><dd>{frame[name][3]}</dd>" in section
    assert "n_certify=" not in page.replace('"n_certify"', "")
    assert "Type " not in view["verdict"]["meaning"]


@pytest.mark.parametrize(
    ("typed", "shown"),
    [
        ("Open. Type n_certify=40_000 to measure more neighbors.", "Open. More neighbors would decide it."),
        ("Type a smaller sigma, such as sigma=1.", "Look farther, so that more facts change."),
    ],
)
def test_advice_fits_the_page(typed, shown):
    assert page_words(typed) == shown


@pytest.mark.parametrize(("path", "n_groups"), [("/overview", 1), ("/overview/compare", 2)])
def test_samples_are_limited_in_summaries_too(path, n_groups):
    """Per case at most the search sample, the certificate's sample and a few rows such as the case itself."""
    with (
        live(cohort_explainer(), limits=StudioLimits(max_samples=50)) as running,
        client_of(running, timeout=30) as client,
    ):
        asked = running.studio.metrics.value("anchorline_model_rows_total")
        body = {"search": "owner=yes"} | ({"other": "owner=no"} if n_groups == 2 else {})
        whole(client, path, n_rows=4, k=3, **body)
        asked = running.studio.metrics.value("anchorline_model_rows_total") - asked
    assert 0 < asked <= 120 + n_groups * 4 * 130  # the table itself, and the cases


@pytest.mark.parametrize("kind", [float, int])
def test_classes_that_are_floats_meet_their_outcomes(kind):
    """A model fitted on 0.0 and 1.0 answers so, whether the target holds 0.0 and 1.0 or 0 and 1."""
    frame, truth = cohort_table()
    rows, y = frame[["income", "age"]], (truth == "approved").astype(float)
    explainer = al.Explainer(LogisticRegression().fit(rows, y), al.Table(rows))
    with live(explainer, truth=("paid", y.astype(kind))) as running, client_of(running, timeout=30) as client:
        outcomes = whole(client, n_rows=2, k=2)[0]["outcomes"]
        listed = client.get("/rows?limit=20").json()["rows"]
    assert "mismatch" not in outcomes
    assert outcomes["confusion"]["labels"] == ["0.0", "1.0"]
    assert sum(each["n"] for each in outcomes["calibration"]) == 120
    assert [row["truth"] for row in listed] == [str(value) for value in y[:20]]
    assert {row["answer"] for row in listed} <= {"0.0", "1.0"}


def test_outcomes_are_written_as_the_classes_are():
    truth = Truth("paid", [1.0, 0.0, None, 2.0, "v2"])
    assert truth.texts(range(5), ["0", "1"]) == ["1", "0", None, "2", "v2"]
    assert truth.texts(range(5), ["0.0", "1.0", "v2.0"]) == ["1.0", "0.0", None, "2", "v2"]
    assert truth.texts(range(4), ["1", "1.0"]) == ["1", "0", None, "2"]


def test_scores_count_for_the_hundredth_that_they_reach():
    counts = _histogram(np.array([0.29, 0.57, 0.58, 1.0, 0.0, 0.2899, np.nan]), None)["all"]
    assert {i: n for i, n in enumerate(counts) if n} == {0: 1, 28: 1, 29: 1, 57: 1, 58: 1, 100: 1}
    exact = _histogram(np.arange(101) / 100, None)["all"]
    assert exact == [1] * 101


def test_a_cohort_gets_on_although_large_chunks_are_canceled(monkeypatch):
    """It begins with one case, tries one by one what was canceled, and half as many after a slow chunk."""
    explainer = cohort_explainer()
    catalog, sizes = Catalog(explainer), []
    keywords = {"k": 2, "n_samples": 20, "n_certify": 0}

    def explain(positions):
        sizes.append(len(positions))
        if len(positions) > 3:
            raise JobCanceledError
        return cohort_module.explain_positions(explainer, catalog, positions, keywords)

    cohort = Cohort(catalog, "", 20, explain)
    for _ in range(20):
        with contextlib.suppress(JobCanceledError):
            cohort.step(60)
    assert cohort.is_done
    assert sizes[:9] == [1, 2, 4, 1, 1, 1, 1, 2, 4]
    monkeypatch.setattr(cohort_module, "_QUICK_SECONDS", -1.0)
    monkeypatch.setattr(cohort_module, "_STEP_SECONDS", 0.0)
    slow = Cohort(catalog, "", 20, explain)
    slow._chunk = 3
    sizes.clear()
    slow.step(60)
    assert sizes[:3] == [3, 1, 1]


def test_a_case_that_takes_a_requests_time_by_itself_is_left_out_and_named(monkeypatch):
    """Other cases are explained. A request that ends earlier, because its client has left, leaves nothing out."""
    explainer, clock = cohort_explainer(), [0.0]
    catalog = Catalog(explainer)
    monkeypatch.setattr(cohort_module, "running_seconds", lambda: clock[0])

    def explain(positions):
        if 2 in positions:
            clock[0] += 20.0 if clock[0] else 5.0
            raise JobCanceledError
        return cohort_module.explain_positions(
            explainer, catalog, positions, {"k": 2, "n_samples": 20, "n_certify": 0}
        )

    cohort, failed = Cohort(catalog, "#2", 5, explain, case_seconds=10.0), []
    for _ in range(2):
        with pytest.raises(JobCanceledError):
            cohort.step(60)
        failed.append(overview_module.progress_of(cohort)["failed"])
    assert failed == [[], [2]]
    assert cohort.is_done
    assert overview_module.progress_of(cohort)["n_failed"] == 1


def test_summaries_that_are_computed_do_not_displace_each_other(monkeypatch):
    """Before, more cohorts than fit into memory began again with every request, and nobody got a summary."""
    monkeypatch.setattr(cohort_service, "_MAX_COHORTS", 2)
    cache = cohort_service.CohortCache()
    built = {name: SimpleNamespace(is_done=False, is_busy=False, used=0.0) for name in "abcd"}

    def ask(name):
        return cache.get_or_build(name, lambda: built[name])

    assert (ask("a"), ask("b"), ask("a")) == (built["a"], built["b"], built["a"])
    with pytest.raises(Problem, match="2 other summaries") as refused:
        ask("c")
    assert refused.value.headers["Retry-After"] == "5"
    assert list(cache._cohorts) == ["b", "a"]
    built["a"].is_done = True
    assert ask("c") is built["c"]
    assert list(cache._cohorts) == ["b", "c"]
    monkeypatch.setattr(cohort_service, "_IDLE_SECONDS", -1.0)
    built["b"].is_busy = True  # a request goes on with it, however long ago it began
    assert ask("d") is built["d"]
    assert list(cache._cohorts) == ["b", "d"]


def test_differences_are_counted_before_the_list_is_cut(monkeypatch, many):
    """The output is named only if both groups are about the same one."""
    _, explained = many
    pairs = list(enumerate(explained))
    first, second = ([pair for pair in pairs if pair[1].instance[1] == owner] for owner in ("yes", "no"))
    whole_list = comparison_of(first, second)
    n_clear = sum(each["is_clear"] for each in whole_list["differences"])
    assert n_clear > 0
    assert (whole_list["n_clear"], whole_list["output"]) == (n_clear, "P(approved)")
    monkeypatch.setattr(overview_module, "_MAX_FACTS", 0)
    assert (comparison_of(first, second)["n_clear"], comparison_of(first, second)["differences"]) == (n_clear, [])
    other = [(0, cohort_explainer().explain(int(np.argmin(cohort_table()[0]["income"])), k=2))]
    assert comparison_of(first, other)["output"] is None
