"""What a hostile client of the studio got through, point by point; each attack must fail."""

import concurrent.futures
import contextlib
import getpass
import io
import json
import logging
import os
import pathlib
import pty
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time

import httpx
import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier

import anchorline as al
from anchorline.studio import app, job_queue
from anchorline.studio.access import Proxy, StudioLimits
from anchorline.studio.display import Previous
from anchorline.studio.problems import LogFormatter
from anchorline.studio.schemas import MAX_ALTERNATIVES, MAX_CHANGES, MAX_COHORT, MAX_FACTS, MAX_REASONS
from helpers.pages import TIMEOUT, ready, started
from helpers.sealing import resealed
from helpers.studio import (
    HOSTILE,
    SlowModel,
    becomes_true,
    client_of,
    hostile_explainer,
    hostile_frame,
    live,
    slow_explainer,
)

ROOT = pathlib.Path(__file__).parents[2]

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
RULE = {"row": ROW, "k": MAX_FACTS, "queries": 20_000, "sigma": 0.0, "holds": 0.9999}
REASONS = {"row": ROW, "n": MAX_REASONS, "recourse": True, "queries": 20_000}
COHORT = {"n_rows": MAX_COHORT, "k": MAX_FACTS, "sigma": 0.0}


def forged_changes(model):
    """Return sealed changes that claim the most expensive settings; whoever verifies them searches again."""
    body = json.loads(al.Explainer(model, WIDE).changes(WIDE.iloc[ROW], k=1, n=1, queries=20_000).to_json())
    body["settings"] |= {"k": MAX_FACTS, "n": MAX_CHANGES, "max_values": 1000, "n_measure": 1000}
    return resealed(body)


def repeated_names(model):
    """Return sealed changes that hold a column 100,000 times; each name was looked for again and again."""
    body = json.loads(al.Explainer(model, WIDE).changes(WIDE.iloc[ROW], k=1, n=1, queries=20_000).to_json())
    body["settings"]["fixed"] = ["c39"] * 100_000
    return resealed(body)


ROUTES = {
    "changes": ("/v1/changes", lambda model: SLOWEST),
    "changes of rows": ("/v1/changes", lambda model: SLOWEST | {"examples": "rows"}),
    "page changes": ("/page/changes", lambda model: SLOWEST),
    "explain": ("/v1/explain", lambda model: EXPLAIN),
    "what-if": ("/v1/what-if", lambda model: EXPLAIN | {"edits": {"c0": 1.0}}),
    "report": ("/page/report", lambda model: EXPLAIN),
    "rule": ("/v1/rule", lambda model: RULE),
    "proven rule": ("/v1/rule", lambda model: RULE | {"holds": 1.0}),
    "page rule": ("/page/rule", lambda model: RULE),
    "reasons": ("/v1/reasons", lambda model: REASONS),
    "page reasons": ("/page/reasons", lambda model: REASONS),
    "verify": ("/v1/verify", lambda model: {"explanation": forged_changes(model)}),
    "verify names": ("/v1/verify", lambda model: {"explanation": repeated_names(model)}),
    "overview": ("/v1/overview", lambda model: COHORT),
    "whole rules": ("/v1/whole/rules", lambda model: COHORT),
    "compare": ("/v1/compare", lambda model: {"n": 200}),
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
    explainer = al.Explainer(model, WIDE, output="yes", threshold=0.5)
    reasons = explainer.reason_settings(codes={name: ("R1", name) for name in WIDE})
    choices = {"output": "yes", "threshold": 0.5}
    previous = Previous(
        "before", MODELS["boosted" if request.param == "forest" else "forest"], al.Table(WIDE), choices
    )
    with live(explainer, limits=StudioLimits(workers=2), reasons=reasons, previous=previous) as running:
        yield running, model


@pytest.mark.parametrize("route", ROUTES)
def test_1_workers_are_free_two_seconds_after_a_client_has_left(served, route):
    server, model = served
    path, content = ROUTES[route]
    body = content(model)
    for seed in (1, 2):  # as many as there are workers
        own = body | {"seed": seed} if "row" in body else body
        leave(server, path, own, 1.5)
    with client_of(server, timeout=30) as client:
        for id in [*server.studio.long_jobs._jobs]:  # these go on, unless somebody cancels them
            assert client.delete(f"/v1/jobs/{id}").status_code == 204
    start, end = time.process_time(), time.monotonic() + 60  # of a busy machine, this process gets a part only
    while server.studio.jobs.n_running and time.process_time() - start < 2.0 and time.monotonic() < end:
        time.sleep(0.02)
    assert server.studio.jobs.n_running == 0, route


@pytest.mark.parametrize("name", MODELS)
def test_1_every_search_for_changes_ends(name):
    """With 40 attributes there are 10^11 sets of 20; the work of a level is limited."""
    calls = []
    changes = al.Explainer(MODELS[name], WIDE).changes(
        WIDE.iloc[ROW], k=4, n=MAX_CHANGES, queries=20_000, check=lambda: calls.append(time.process_time())
    )
    assert max(np.diff(calls)) < 1.5
    assert all(level.n_tried <= level.n_total for level in changes.levels)


# 2. Errors are logged with traceback, time and the id of the request; as JSON lines on request.


class Moody:
    """A model that answers, fails or hangs, as a test wants."""

    def __init__(self):
        self.fails, self.goes_on = False, threading.Event()
        self.goes_on.set()

    def __call__(self, rows):
        self.goes_on.wait(60)
        if self.fails:
            raise RuntimeError("the model's own words\n2026-01-01 ERROR forged")
        return np.tanh(np.asarray(rows, dtype=float)[:, 0])


@contextlib.contextmanager
def logged(*, as_json):
    """Yield what the server logs."""
    handler, logger = logging.StreamHandler(io.StringIO()), logging.getLogger("anchorline")
    handler.setFormatter(LogFormatter(as_json=as_json))
    logger.addHandler(handler)
    try:
        yield handler.stream
    finally:
        logger.removeHandler(handler)


def broken(*arguments):
    raise KeyError("a bug")


@pytest.mark.parametrize("status", [500, 502])
@pytest.mark.parametrize("as_json", [False, True])
def test_2_errors_are_logged_with_traceback_time_and_request_id(monkeypatch, status, as_json):
    model = Moody()
    with (
        live(slow_explainer(model)) as server,
        client_of(server, timeout=30) as client,
        logged(as_json=as_json) as log,
    ):
        model.fails = True
        monkeypatch.setattr(server.studio.served[""].service, "rows", broken)
        ask = (client.get, "/v1/rows") if status == 500 else (client.post, "/v1/explain")
        body = {} if status == 500 else {"json": {"row": 1}}
        answer = ask[0](ask[1], headers={"X-Request-ID": "mine-1"}, **body)
        assert (answer.status_code, answer.json()["request_id"]) == (status, "mine-1")
        assert becomes_true(lambda: "mine-1" in log.getvalue())
    said = "a bug" if status == 500 else "the model's own words"
    lines = log.getvalue().splitlines()
    if as_json:
        line = next(line for line in map(json.loads, lines) if line["level"] == "error")
        assert (line["request_id"], line["time"][:3]) == ("mine-1", "202")
        assert line["traceback"].startswith("Traceback (most recent call last)")
        assert said in line["traceback"]
        return
    assert re.match(r"20\d\d-\d\d-\d\dT.* ERROR anchorline.studio: .*mine-1", lines[0])
    assert "  | Traceback (most recent call last):" in lines
    assert any(said in line for line in lines)
    assert not any(line.startswith("2026-01-01 ERROR forged") for line in lines)


MODEL = """
import os, time
import numpy as np
FLAG = {flag!r}

def predict(rows):
    mood = open(FLAG).read() if os.path.exists(FLAG) else ""
    if mood == "fails":
        raise RuntimeError("the model's own words")
    time.sleep(300 if mood == "hangs" else 0)
    return np.tanh(np.asarray(rows, dtype=float)[:, 0])
"""


@contextlib.contextmanager
def process(folder, *options):
    """Run ``anchorline serve`` in a process of its own; yield it, a client, the model's mood and the log."""
    flag, log, token = folder / "flag", folder / "log", "a-token-of-the-attacks"
    (folder / "moody_model.py").write_text(MODEL.format(flag=str(flag)))
    WIDE.iloc[:200, :3].to_csv(folder / "rows.csv", index=False)
    environment = os.environ | {"ANCHORLINE_STUDIO_TOKEN": token, "OMP_NUM_THREADS": "1"}
    environment["PYTHONPATH"] = f"{pathlib.Path(al.__file__).parents[1]}{os.pathsep}{folder}"
    command = [sys.executable, "-m", "anchorline", "serve", "moody_model:predict", "--data", "rows.csv"]
    with log.open("wb") as errors:
        started = subprocess.Popen(
            [*command, "--port", "0", *options],
            cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=errors, text=True,
        )  # fmt: skip
    try:
        base = started.stdout.readline().removeprefix("Open ").strip()
        assert base, log.read_text()
        headers = {"Authorization": f"Bearer {token}"}
        with httpx.Client(base_url=base, headers=headers, timeout=30) as client:
            yield started, client, flag, log
    finally:
        started.kill()
        started.stdout.close()
        started.wait()


def test_2_the_log_of_the_command_is_json_lines(tmp_path):
    with process(tmp_path, "--log-format", "json") as (_, client, flag, log):
        flag.write_text("fails")
        answer = client.post("/v1/explain", json={"row": 1})
        assert answer.status_code == 502
        assert becomes_true(lambda: answer.json()["request_id"] in log.read_text())
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert [line["level"] for line in lines] == ["error"]
    assert "the model's own words" in lines[0]["traceback"]


# 3. Readiness fails if the model does not answer or workers are stuck; liveness does not.


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr(app, "_RECENT", 0.0)
    monkeypatch.setattr(app, "_PATIENCE", 0.5)
    monkeypatch.setattr(job_queue, "_STUCK_SECONDS", 0.5)


def readiness_of(server):
    """Return the status of /ready and its reasons, as a probe without the token sees them; /health is well."""
    assert httpx.get(f"{server.base}/health", headers={"Host": "10.0.0.1"}).json() == {"status": "ok"}
    answer = httpx.get(f"{server.base}/ready", headers={"Host": "10.0.0.1"})
    return answer.status_code, answer.json().get("detail", "")


def test_3_a_server_whose_model_fails_is_not_ready(impatient):
    model = Moody()
    with live(slow_explainer(model)) as server, logged(as_json=False) as log:
        assert readiness_of(server) == (200, "")
        model.fails = True
        assert readiness_of(server) == (503, "The model does not answer.")
        assert "the model's own words" in log.getvalue()
        model.fails = False
        assert readiness_of(server) == (200, "")


def test_3_a_server_whose_workers_are_stuck_is_not_ready(impatient):
    model = Moody()
    with live(slow_explainer(model), limits=StudioLimits(workers=2)) as server, client_of(server) as client:
        model.goes_on.clear()
        try:
            for row in (1, 2):
                with pytest.raises(httpx.ReadTimeout):
                    client.post("/v1/explain", json={"row": row}, timeout=0.5)
            assert becomes_true(lambda: "2 of 2 workers are stuck" in readiness_of(server)[1], 10)
            answer = client.post(
                "/v1/explain", json={"row": 3}, timeout=10
            )  # nobody waits for threads that never end
            assert (answer.status_code, answer.json()["detail"][:25]) == (503, "The model does not answer")
        finally:
            model.goes_on.set()
        assert becomes_true(lambda: readiness_of(server) == (200, ""), 10)
        assert client.post("/v1/explain", json={"row": 3}, timeout=30).status_code == 200


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


# 5. Finished work is not discarded under load.


def ask_all(server, bodies):
    """Send requests at once; return their answers and how long each took."""

    def ask(body):
        start = time.monotonic()
        return client.post("/v1/explain", json=body), time.monotonic() - start

    options = httpx.Limits(max_connections=len(bodies))
    pool = concurrent.futures.ThreadPoolExecutor(len(bodies))
    with client_of(server, timeout=500, limits=options) as client, pool:
        return list(pool.map(ask, bodies))


def test_5_thirty_two_heavy_explains_are_all_answered():
    """Each makes room for the others again and again; before, more than 16 of them ended each other."""
    with live(al.Explainer(MODELS["forest"], WIDE), limits=StudioLimits(workers=2)) as server:
        answers = ask_all(server, [{"row": ROW, "k": MAX_FACTS, "sigma": 0.0, "seed": seed} for seed in range(32)])
        assert [answer.status_code for answer, _ in answers] == [200] * 32
        assert server.studio.metrics.value("anchorline_jobs_total", outcome="done") == 32


def test_5_requests_beyond_the_queue_are_refused_at_once():
    """The queue of 64 holds 64, and nothing that was accepted is refused later."""
    with live(slow_explainer(SlowModel(0.1)), limits=StudioLimits(workers=2, queue=64, timeout=2.0)) as server:
        answers = ask_all(server, [{"row": 1, "seed": seed, "queries": 100} for seed in range(80)])
    refused = [(answer, seconds) for answer, seconds in answers if answer.status_code == 429]
    assert 1 <= len(refused) <= 80 - 66  # fewer if some end before all have arrived
    assert {answer.status_code for answer, _ in answers} == {200, 429}
    assert all(1 <= int(answer.headers["Retry-After"]) <= 60 for answer, _ in refused)
    assert max(seconds for _, seconds in refused) < 0.5 * max(seconds for _, seconds in answers)


# 6. Quotas, the audit log, idle connections, nginx, the end of the process, and the unit file.


def test_6_one_user_cannot_take_all_jobs():
    proxy = Proxy("127.0.0.1", "X-User")
    with live(slow_explainer(SlowModel(0.1)), proxy=proxy) as server, client_of(server, timeout=60) as client:

        def ask(user, k):
            return client.post("/v1/overview", json={"n_rows": 50, "k": k}, headers={"X-User": user})

        assert [ask("mallory", k).status_code for k in (1, 2, 3, 4)] == [202] * 4
        refused = ask("mallory", 5)
        assert (refused.status_code, refused.headers["Retry-After"]) == (429, "5")
        assert "of yours" in refused.json()["detail"]
        assert ask("ann", 5).status_code == 202


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full, the disk that is always full")
def test_6_a_full_audit_disk_is_named_and_nothing_is_answered_unseen(tmp_path):
    """A line that did not fit leaves nothing behind, and writing goes on once there is room."""
    full = live(slow_explainer(SlowModel(0)), audit_log=pathlib.Path("/dev/full"))
    with full as server, logged(as_json=True) as log, client_of(server, timeout=30) as client:
        answer = client.post("/v1/explain", json={"row": 1, "queries": 100})
        assert (answer.status_code, answer.json()["detail"][:31]) == (503, "The audit log cannot be written")
        assert readiness_of(server) == (503, "The audit log cannot be written.")
        line = json.loads(log.getvalue().splitlines()[0])
        assert "/dev/full" in line["message"]
        assert "No space left on device" in line["traceback"]
        assert line["request_id"] == answer.json()["request_id"]
        with (tmp_path / "log").open("ab", buffering=0) as file:
            server.studio.audit._file.close()
            server.studio.audit._file = file
            assert readiness_of(server) == (200, "")
            assert client.post("/v1/explain", json={"row": 1, "queries": 100}).status_code == 200
    lines = (tmp_path / "log").read_text().splitlines()
    assert [json.loads(line)["outcome"] for line in lines] == ["resumed", "answered"]


def test_6_a_line_of_the_audit_log_is_written_whole_or_not_at_all(tmp_path):
    """The disk of this process is full after 40 bytes."""
    program = """
import pathlib, resource, signal, sys
from anchorline.studio.observability import AuditLog
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
log = AuditLog(pathlib.Path(sys.argv[1]))
assert log.resume()
size = pathlib.Path(sys.argv[1]).stat().st_size
resource.setrlimit(resource.RLIMIT_FSIZE, (size + 40, resource.RLIM_INFINITY))
assert not log.resume()
assert not log.resume()
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
assert log.resume()
"""
    environment = os.environ | {"PYTHONPATH": str(pathlib.Path(al.__file__).parents[1])}
    path = tmp_path / "log"
    subprocess.run([sys.executable, "-c", program, path], check=True, env=environment, capture_output=True)
    assert [json.loads(line)["outcome"] for line in path.read_text().splitlines()] == ["resumed", "resumed"]


def test_6_six_hundred_idle_connections_leave_health_answering():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 2048:
        pytest.skip("this process may not open 2,048 files; raise the hard limit: ulimit -Hn 4096")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2048), hard))
    with live(slow_explainer(SlowModel(0))) as server, contextlib.ExitStack() as stack:
        address = ("127.0.0.1", int(server.base.rpartition(":")[2]))
        for number in range(600):
            idle = stack.enter_context(socket.create_connection(address, timeout=10))
            if number % 2:
                idle.sendall(b"GET /health HTTP/1.1\r\nHost: local")  # and never the rest
        for _ in range(5):
            assert httpx.get(f"{server.base}/health", timeout=5).status_code == 200
        with client_of(server, timeout=30) as client:
            assert client.post("/v1/explain", json={"row": 1, "queries": 100}).status_code == 200
        assert len(server.server_state.connections) <= server.studio.limits.concurrency
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def example(language):
    """Return an example of the page about deployment."""
    page = (ROOT / "docs" / "deployment.md").read_text(encoding="utf-8")
    return re.search(rf"```{language}\n(.*?)```", page, re.S)[1]


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


@pytest.mark.skipif(
    not (shutil.which("nginx") and shutil.which("openssl")),
    reason="nginx or openssl is missing; get them with: apt-get install nginx-light openssl",
)
def test_6_the_nginx_example_works_on_any_port(tmp_path):
    """The page asks as a browser does: with the origin of its address, which includes the port."""
    host, port = "studio.example.org", free_port()
    certificate = f"openssl req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN={host} -keyout k -out c"
    subprocess.run(certificate.split(), cwd=tmp_path, check=True, capture_output=True)
    (tmp_path / "users").write_text("ann:{PLAIN}her password\n")
    proxy = Proxy("127.0.0.1", "X-Forwarded-User", "/loans")
    log = tmp_path / "audit"
    hosts = frozenset({host})
    with live(slow_explainer(SlowModel(0)), proxy=proxy, allow_hosts=hosts, audit_log=log) as server:
        (tmp_path / "token").write_text(f'proxy_set_header Authorization "Bearer {server.token}";\n')
        site = example("nginx")
        for there, here in {
            "listen 443 ssl": f"listen 127.0.0.1:{port} ssl",
            "/etc/ssl/studio.crt": tmp_path / "c",
            "/etc/ssl/studio.key": tmp_path / "k",
            "/etc/nginx/studio.htpasswd": tmp_path / "users",
            "/etc/nginx/studio-token.conf": tmp_path / "token",
            "http://127.0.0.1:8377": server.base,
        }.items():
            assert there in site
            site = site.replace(there, str(here))
        kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        folders = " ".join(f"{kind}_temp_path {tmp_path / kind};" for kind in kinds)
        whole = f"user {getpass.getuser()}; daemon off; pid {tmp_path / 'pid'}; error_log stderr; events {{}}\n"
        (tmp_path / "conf").write_text(f"{whole}http {{ access_log off; {folders}\n{site}}}\n")
        command = ["nginx", "-p", tmp_path, "-c", tmp_path / "conf"]
        nginx = subprocess.Popen(command, stderr=subprocess.PIPE)
        try:
            assert becomes_true((tmp_path / "pid").exists, 10), nginx.stderr.peek()
            authority = f"{host}:{port}"
            headers = {"Host": authority, "Origin": f"https://{authority}", "Sec-Fetch-Site": "same-origin"}
            base = f"https://127.0.0.1:{port}/loans"
            with httpx.Client(verify=False, auth=("ann", "her password"), timeout=30) as client:
                assert client.get(f"{base}/", headers={"Host": authority}).status_code == 200
                answer = client.post(f"{base}/v1/explain", headers=headers, json={"row": 1, "queries": 100})
                assert answer.status_code == 200, answer.text
                other = headers | {"Origin": f"https://{host}:{port + 1}"}
                assert client.post(f"{base}/v1/explain", headers=other, json={"row": 1}).status_code == 403
            assert httpx.get(f"{base}/", headers={"Host": authority}, verify=False).status_code == 401
        finally:
            nginx.terminate()
            nginx.communicate(timeout=10)
    line = json.loads(log.read_text().splitlines()[-1])
    assert (line["user"], line["route"]) == ("ann", "explain")


def test_6_a_signal_ends_a_server_with_stuck_jobs_in_five_seconds(tmp_path):
    """The model hangs in both workers, further requests wait, and one has sent half of its body."""
    with process(tmp_path) as (server, client, flag, _):
        flag.write_text("hangs")
        with concurrent.futures.ThreadPoolExecutor(6) as pool:
            asked = [pool.submit(client.post, "/v1/explain", json={"row": row}) for row in range(6)]
            address = ("127.0.0.1", client.base_url.port)
            with socket.create_connection(address) as half:
                half.sendall(b"POST /login HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\ntok")
                time.sleep(1.0)
                assert not any(one.done() for one in asked)
                start = time.monotonic()
                server.send_signal(signal.SIGTERM)
                assert server.wait(10) == 0
                assert time.monotonic() - start < 5
            assert {one.result().status_code for one in asked} == {503}


@pytest.mark.skipif(
    shutil.which("systemd-analyze") is None,
    reason="systemd-analyze is missing; get it with: apt-get install systemd",
)
def test_6_the_unit_file_exposes_little(tmp_path):
    unit = tmp_path / "anchorline-studio.service"
    unit.write_text(example("ini"))
    command = ["systemd-analyze", "security", "--offline=true", "--threshold=30", "--no-pager", unit]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    rated = re.search(r"exposure level for \S+: ([\d.]+)", done.stdout)
    assert rated is not None, done.stdout + done.stderr
    assert float(rated[1]) < 3
    assert done.returncode == 0


# 7. Nobody without the token takes the event loop's time.


def answered(server, head, body=b""):
    """Return the status of the answer to a request."""
    address = ("127.0.0.1", int(server.base.rpartition(":")[2]))
    with socket.create_connection(address, timeout=30) as caller:
        with contextlib.suppress(OSError):  # the server may close before it has read all
            caller.sendall(f"{head}\r\nHost: localhost\r\n\r\n".encode() + body)
        return int(caller.recv(100).split()[1])


def test_7_a_login_is_as_short_as_a_token():
    """A megabyte of fields, which needs no token, took the event loop a tenth of a second and more."""
    with live(slow_explainer(SlowModel(0))) as server:
        form = "POST /login HTTP/1.1\r\nContent-Type: application/x-www-form-urlencoded"
        fields = b"a=b&" * 200_000
        assert answered(server, f"{form}\r\nContent-Length: {len(fields)}", fields) == 413
        parts = b"".join(b"%x\r\n%s\r\n" % (4000, fields[:4000]) for _ in range(2))
        assert answered(server, f"{form}\r\nTransfer-Encoding: chunked", parts + b"0\r\n\r\n") == 413
        token = f"token={server.token}".encode()
        assert answered(server, f"{form}\r\nContent-Length: {len(token)}", token) == 303
        assert answered(server, f"{form}\r\nContent-Length: 7", b"token=x") == 401


@pytest.mark.parametrize("path", ["/login", "/v1/explain"])
def test_7_a_body_has_a_limited_number_of_chunks(path):
    """A body of single bytes took the event loop seconds, also of those who have no token."""
    with live(slow_explainer(SlowModel(0))) as server:
        head = f"POST {path} HTTP/1.1\r\nTransfer-Encoding: chunked"
        single, start = b"1\r\n \r\n", time.process_time()
        assert answered(server, head, single * 200_000 + b"0\r\n\r\n") == 400
        assert time.process_time() - start < 0.5
        assert answered(server, head, single * 900 + b"0\r\n\r\n") in (401, 415)
        with client_of(server, timeout=30) as client:
            content = (part.encode() for part in ('{"row":', "1,", '"queries": 100}'))
            headers = {"Content-Type": "application/json"}
            assert client.post("/v1/explain", content=content, headers=headers).status_code == 200


def test_7_half_a_body_keeps_no_connection_from_others():
    """Logins that never arrive, sent by anybody, took every connection for ten seconds; and again."""
    limits = StudioLimits(concurrency=40)
    with live(slow_explainer(SlowModel(0)), limits=limits) as server, contextlib.ExitStack() as stack:
        address = ("127.0.0.1", int(server.base.rpartition(":")[2]))
        head = b"POST /login HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-www-form-urlencoded\r\n"
        for _ in range(60):
            slow = stack.enter_context(socket.create_connection(address, timeout=10))
            slow.sendall(head + b"Content-Length: 100\r\n\r\ntok")
        for _ in range(3):
            assert httpx.get(f"{server.base}/health", timeout=5).status_code == 200
        with client_of(server, timeout=30) as client:
            assert client.post("/v1/explain", json={"row": 1, "queries": 100}).status_code == 200


def test_7_whoever_verifies_is_seen_with_the_case(tmp_path):
    """A forged explanation of any values is answered with the model's prediction, and no line said for which."""
    with (
        live(slow_explainer(SlowModel(0)), audit_log=tmp_path / "log") as server,
        client_of(server, timeout=60) as client,
    ):
        made = client.post("/v1/explain", json={"row": 1, "queries": 100}).json()
        for instance in ([1.0, 2.0, 3.0], [4.0, 5.0, 6.0]):
            forged = resealed(made | {"instance": instance, "prediction": made["base"]})
            assert client.post("/v1/verify", json={"explanation": forged}).status_code == 200
    _, *lines = (tmp_path / "log").read_text().splitlines()  # after that of the server
    cases = [json.loads(line)["case"] for line in lines]
    assert cases[0] == 1
    assert all(str(case).startswith("sha256:") for case in cases[1:])
    assert len({*cases}) == 3


@pytest.mark.parametrize("target", [">= 1e999", "< -1e999", "+1e309", "-1e309"])
def test_7_an_infinite_target_is_refused(target):
    """It was searched for; then the answer could not be written, so that the client saw an internal error."""
    with live(slow_explainer(SlowModel(0))) as server, client_of(server, timeout=30) as client:
        answer = client.post("/v1/changes", json={"row": 1, "target": target, "k": 1, "n": 1})
        assert answer.status_code == 422
        assert "target" in answer.json()["detail"]


def test_7_hostile_names_stay_text_in_the_page():
    """Markup as every name that reaches the page: of the model, columns, categories, classes and codes."""
    explainer = hostile_explainer()
    explainer = al.Explainer(
        explainer.model, explainer.space, classes=["<b>no</b>", HOSTILE], output=HOSTILE, threshold=0.5
    )
    scores, seen = explainer.model(hostile_frame())[:, 1], []
    reasons = explainer.reason_settings(
        codes={name: (HOSTILE[:20], f"{HOSTILE} {name}") for name in hostile_frame()}
    )
    truth = (HOSTILE, np.where(scores > 0.4, HOSTILE, "<b>no</b>"))
    with live(explainer, name=HOSTILE, truth=truth, reasons=reasons) as server, started() as browser:
        page = browser.new_page()
        page.set_default_timeout(TIMEOUT)
        page.on("dialog", lambda dialog: (seen.append(dialog.message), dialog.dismiss()))
        page.on("request", lambda request: seen.append(request.url))
        page.on("pageerror", lambda error: seen.append(str(error)))
        page.goto(f"{server.base}/?case={scores.argmin()}&token={server.token}")
        ready(page)
        page.wait_for_selector("#reasons tr.fact")
        for button, shown in (("#changes-find", "#changes details"), ("#rule-find", "#rule .verdict")):
            page.click(button)
            page.wait_for_selector(shown)
        page.fill("#search", "<script>")
        page.click("#view")
        page.wait_for_selector("#overview h2:has-text('Which facts matter?')")
        assert page.locator("body script, main img, [onerror], [onload], img[src=x]").count() == 0
        assert "broken" not in page.title()
    assert [each for each in seen if not each.startswith((f"{server.base}/", "data:", "blob:"))] == []


def test_7_a_column_without_values_is_no_internal_error():
    """How it acts, and which groups it has, are questions that any client may ask."""
    frame = pd.DataFrame({"x": RNG.normal(size=80), "none": np.full(80, np.nan), "few": [1.0, *[np.nan] * 79]})

    def score(rows):
        high = 1 / (1 + np.exp(-rows["x"].to_numpy()))
        return np.column_stack([1 - high, high])

    explainer = al.Explainer(score, frame, classes=["no", "yes"])
    with live(explainer) as server, client_of(server, timeout=30) as client:
        for column, acting in (("none", 422), ("few", 200), ("x", 200)):
            for question, status in (("acting", acting), ("groups", 200)):
                answer = client.post(f"/v1/whole/{question}", json={"attribute": column, "search": ""})
                assert answer.status_code == status, (column, question, answer.text)


@pytest.mark.parametrize(
    "value", ["1e999", "-1e999", "NaN", "Infinity", "[1]", '{"a": 1}', '"1e999"', "9" * 400, "9" * 5000]
)
def test_7_a_pasted_value_is_a_finite_value_or_refused(value):
    """What is pasted is a text within the body, which no check of the body has seen."""
    explainer = slow_explainer(SlowModel(0))
    first, second, _ = explainer.space.names
    with live(explainer) as server, client_of(server, timeout=30) as client:
        for paste in (f'{{"{first}": {value}}}', f'{{"{first}": 1, "{first}": 2}}'):
            answer = client.post("/v1/answer", json={"row": 1, "paste": paste})
            assert answer.status_code == 422, (paste[:40], answer.text)
        answer = client.post("/v1/answer", json={"row": 1, "paste": f"{first},{second}\n{value},1"})
        assert answer.status_code in (200, 422), answer.text  # a table may hold infinity
