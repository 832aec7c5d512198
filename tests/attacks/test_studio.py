"""What a hostile client of the studio got through, point by point; each attack must fail."""

import json
import os
import pathlib
import pty
import socket
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier

import anchorline as al
from anchorline.studio.limits import MAX_ALTERNATIVES, MAX_CHANGES, MAX_COHORT, MAX_FACTS, StudioLimits
from helpers.sealing import resealed
from helpers.studio import becomes_true, live

N_COLUMNS = 40
RNG = np.random.default_rng(0)
WIDE = pd.DataFrame(RNG.normal(size=(1500, N_COLUMNS)), columns=[f"c{j}" for j in range(N_COLUMNS)])
CLASS = np.where(WIDE.iloc[:, :12].sum(axis=1) + RNG.normal(size=1500) > 5, "yes", "no")
MODELS = {
    "forest": RandomForestClassifier(60, min_samples_leaf=3, random_state=0).fit(WIDE, CLASS),
    "boosted": GradientBoostingClassifier(n_estimators=150, max_depth=4, random_state=0).fit(WIDE, CLASS),
}
ROW = int(MODELS["forest"].predict_proba(WIDE)[:, 1].argmin())  # far from the other class, so that nothing turns
SLOWEST = {"row": ROW, "k": MAX_FACTS, "n": MAX_CHANGES}
EXPLAIN = {"row": ROW, "k": MAX_FACTS, "queries": 20_000, "alternatives": MAX_ALTERNATIVES, "sigma": 0.0}
COHORT = {"n_rows": MAX_COHORT, "k": MAX_FACTS, "sigma": 0.0}


def forged_changes(model):
    """Return sealed changes that claim the most expensive settings; whoever verifies them searches again."""
    body = json.loads(al.Explainer(model, WIDE).changes(WIDE.iloc[ROW], k=1, n=1, queries=20_000).to_json())
    body["settings"] |= {"k": MAX_FACTS, "n": MAX_CHANGES, "max_values": 1000, "n_measure": 1000}
    return resealed(body)


ROUTES = {
    "changes": ("/changes", lambda model: SLOWEST),
    "changes of rows": ("/changes", lambda model: SLOWEST | {"examples": "rows"}),
    "page changes": ("/page/changes", lambda model: SLOWEST),
    "explain": ("/explain", lambda model: EXPLAIN),
    "what-if": ("/what-if", lambda model: EXPLAIN | {"edits": {"c0": 1.0}}),
    "report": ("/page/report", lambda model: EXPLAIN),
    "verify": ("/verify", lambda model: {"explanation": forged_changes(model)}),
    "overview": ("/overview", lambda model: COHORT),
    "overview table": ("/overview/table", lambda model: COHORT),
}


def leave(server, path, content, seconds):
    """Send a request, and close the connection after some time."""
    body = json.dumps(content)
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {server.token}\r\n"
    head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}"
    with socket.create_connection(("127.0.0.1", int(server.base.rpartition(":")[2]))) as caller:
        caller.sendall(head.encode())
        time.sleep(seconds)


@pytest.fixture(scope="module", params=MODELS)
def served(request):
    model = MODELS[request.param]
    with live(al.Explainer(model, WIDE), limits=StudioLimits(workers=2)) as running:
        yield running, model


@pytest.mark.parametrize("route", ROUTES)
def test_1_workers_are_free_two_seconds_after_a_client_has_left(served, route):
    server, model = served
    path, content = ROUTES[route]
    body = content(model)
    for seed in (1, 2):  # as many as there are workers
        own = body | {"seed": seed} if "row" in body else body
        leave(server, path, own, 1.5)
    assert becomes_true(lambda: server.studio.jobs.n_running == 0, 2.0), route


@pytest.mark.parametrize("name", MODELS)
def test_1_every_search_for_changes_ends(name):
    """With 40 attributes there are 10^11 sets of 20; the work of a level is limited."""
    calls = []
    changes = al.Explainer(MODELS[name], WIDE).changes(
        WIDE.iloc[ROW], k=4, n=MAX_CHANGES, queries=20_000, check=lambda: calls.append(time.perf_counter())
    )
    assert max(np.diff(calls)) < 1.5
    assert all(level.n_tried <= level.n_total for level in changes.levels)


# 4. The token is printed only if the server made it, and only to a terminal.

COMMAND = [sys.executable, "-m", "anchorline", "serve", "--demo", "--port", "0"]
SECRET = "a-token-that-nobody-prints"


def printed(*, token, terminal):
    """Return what ``anchorline serve`` prints until it is ready."""
    environment = os.environ | {"PYTHONPATH": str(pathlib.Path(al.__file__).parents[1]), "OMP_NUM_THREADS": "1"}
    environment.pop("ANCHORLINE_STUDIO_TOKEN", None)
    environment |= {"ANCHORLINE_STUDIO_TOKEN": token} if token else {}
    ours, theirs = pty.openpty() if terminal else os.pipe()
    process = subprocess.Popen(COMMAND, stdout=theirs, stderr=subprocess.STDOUT, env=environment)
    os.close(theirs)
    text = b""
    try:
        while b"Ctrl-C" not in text:
            part = os.read(ours, 4096)
            assert part, text
            text += part
    finally:
        process.terminate()
        process.wait(10)
        os.close(ours)
    return text.decode()


@pytest.mark.parametrize("terminal", [True, False])
def test_4_a_token_of_the_environment_is_never_printed(terminal):
    text = printed(token=SECRET, terminal=terminal)
    assert SECRET not in text
    assert "token=" not in text
    assert "Open http://127.0.0.1:" in text


def test_4_a_new_token_is_printed_to_a_terminal_only():
    assert "?token=" in printed(token=None, terminal=True)
    text = printed(token=None, terminal=False)
    assert "token=" not in text
    assert "ANCHORLINE_STUDIO_TOKEN" in text
