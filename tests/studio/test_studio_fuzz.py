"""Generated requests, valid and invalid: no status of 500 or more, and every status is one of the schema."""

import hypothesis
import pytest
import schemathesis
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi import checks

from anchorline.studio.access import StudioLimits
from anchorline.studio.demo import demo_explainer
from helpers.studio import SlowModel, becomes_true, client_of, live, slow_explainer, studio_of

CHECKS = [
    not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
]
# The schema does not depend on the served model.
EXAMPLES = 10
SETTINGS = hypothesis.settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(hypothesis.HealthCheck),
    phases=[hypothesis.Phase.explicit, hypothesis.Phase.generate],
)
SCHEMA = schemathesis.openapi.from_dict(studio_of(slow_explainer(SlowModel(0))).app.apps[""].openapi())
OPERATIONS = {result.ok().label: result.ok() for result in SCHEMA.get_all_operations()}


@pytest.fixture(scope="module")
def server():
    with live(demo_explainer(200), limits=StudioLimits(max_queries=120, timeout=20)) as running:
        yield running


def test_all_operations_are_known():
    assert {"POST /v1/explain", "POST /v1/verify", "GET /v1/rows"} <= set(OPERATIONS)


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE], ids=["fitting", "odd"])
@pytest.mark.parametrize("label", OPERATIONS)
def test_no_request_breaks_it(server, label, mode):
    headers = {"Authorization": f"Bearer {server.token}"}

    @SETTINGS
    @hypothesis.given(case=OPERATIONS[label].as_strategy(generation_mode=mode))
    def ask(case):
        case.call_and_validate(base_url=server.base, headers=headers, checks=CHECKS)

    try:
        ask()
    except hypothesis.errors.Unsatisfiable:
        assert mode is GenerationMode.NEGATIVE  # the operation has no parameter that could be invalid
    with client_of(server) as client:
        for id in [*server.studio.long_jobs._jobs]:  # which go on by themselves
            client.delete(f"/v1/jobs/{id}")
    assert becomes_true(lambda: server.studio.jobs.n_waiting == 0)


NUMBERS = st.one_of(st.none(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.booleans())
TEXTS = st.one_of(st.none(), st.text(max_size=20), st.sampled_from(["car", "home", "north", "", "nan", "None"]))
ROWS = st.fixed_dictionaries(
    {
        "age": st.one_of(st.integers(-(10**6), 10**6), NUMBERS),
        "income": NUMBERS,
        "debt": st.one_of(st.integers(-(2**63), 2**63 - 1), NUMBERS),
        "employed_years": NUMBERS,
        "purpose": TEXTS,
        "owner": st.booleans(),
        "applied": st.one_of(st.dates().map(str), st.datetimes().map(str), TEXTS),
        "branch": st.one_of(TEXTS, NUMBERS),
    }
)
CHOICES = st.fixed_dictionaries(
    {
        "k": st.integers(1, 20),
        "sigma": st.floats(0, 8),
        "queries": st.integers(32, 120),
        "alternatives": st.integers(0, 10),
        "seed": st.integers(0, 2**53 - 1),
    }
)


@hypothesis.settings(SETTINGS, max_examples=2 * EXAMPLES)
@hypothesis.given(row=st.one_of(st.integers(0, 199), ROWS), choices=CHOICES, edits=ROWS)
def test_odd_rows_are_explained_or_refused(server, row, choices, edits):
    with client_of(server) as client:
        got = client.post("/v1/explain", json={"row": row, **choices}, timeout=30)
        assert got.status_code in (200, 422), got.text
        if got.status_code == 200:
            verified = client.post("/v1/verify", json={"explanation": got.text}, timeout=30)
            assert verified.json()["outcome"] in (
                "holds",
                "cannot tell",
            )  # intervals can miss the truth
            changed = {"row": row, "edits": edits, **choices}
            assert client.post("/v1/what-if", json=changed, timeout=30).status_code in (200, 422)
            assert client.post("/page/explain", json={"row": row, **choices}, timeout=30).status_code == 200
