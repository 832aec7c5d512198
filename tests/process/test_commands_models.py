"""Models on the command line: files, HTTP servers, and files that are not trusted."""

import json
import os
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
import skops.io
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from anchorline.cli.codes import Code
from anchorline.result.explanation import Explanation
from helpers.command_lines import FEW, explain
from helpers.commands import error_line


@pytest.mark.parametrize("model", ["model.skops", "model.onnx", "model.txt"])
def test_model_files_are_explained(run_here, tmp_path, model):
    out = tmp_path / "why.json"
    done = run_here(*explain(model, "--row", 5, "--out", out))
    assert (done.returncode, done.stdout) == (0, "")
    explanation = Explanation.from_json(out.read_text().rstrip("\n"))
    assert explanation.settings["queries"] == 300
    assert abs(explanation.base + explanation.contributions.sum() - explanation.prediction) < 1e-9
    if model == "model.onnx":
        done = run_here("verify", out, model, "--data", "train.csv", "--target", "approved")
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.startswith("The explanation holds")


class Endpoint(BaseHTTPRequestHandler):
    """An MLflow server that can fail twice, redirect, wait, or send an oversized reply."""

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.tokens.append(self.headers.get("Authorization"))
        if self.path == "/fails/invocations" and len(self.server.tokens) < 3:
            return self.reply(b"later", 503)
        if self.path == "/redirects/invocations":
            return self.reply(b"", 307, Location="http://elsewhere.example/invocations")
        if self.path == "/slow/invocations":
            time.sleep(3)
        if self.path == "/oversized/invocations":
            return self.reply(b"x" * (70 * 2**20))
        names, rows = body["dataframe_split"]["columns"], body["dataframe_split"]["data"]
        income = [row[names.index("net income")] for row in rows]
        return self.reply(json.dumps({"predictions": [float(value > 0) for value in income]}).encode())

    def reply(self, raw, status=200, **headers):
        self.send_response(status)
        self.send_header("Content-Length", str(len(raw)))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(raw)

    def log_message(self, *args):
        pass


@pytest.fixture
def endpoint():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Endpoint)
    server.daemon_threads, server.tokens = True, []
    server.handle_error = lambda *_: None
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def test_an_http_model_that_fails_first(run, endpoint):
    address = f"http://127.0.0.1:{endpoint.server_port}/fails/invocations"
    done = run(*explain(address, "--row", 0, "-v"), env={"ANCHORLINE_HTTP_TOKEN": "hunter2"})
    assert done.returncode == 0, done.stderr
    assert "net income" in done.stdout
    assert "answered 503: later; trying again" in done.stderr
    assert "hunter2" not in done.stdout + done.stderr
    assert set(endpoint.tokens) == {"Bearer hunter2"}


@pytest.mark.parametrize(
    ("path", "match"),
    [
        ("redirects", "redirects to 'http://elsewhere.example"),
        ("slow", "within 1 s"),
        ("oversized", "more than 67,108,"),
    ],
)
def test_an_http_model_that_fails(run_here, endpoint, path, match):
    address = f"http://127.0.0.1:{endpoint.server_port}/{path}/invocations"
    assert match in error_line(run_here(*explain(address, "--row", 0, "--timeout", 1)), Code.MODEL)


def test_a_malicious_pickle_is_not_run(run_here, tmp_path, caplog):
    harm = tmp_path / "harm"
    path = tmp_path / "model.pkl"
    path.write_bytes(b"cos\nmkdir\n(V%s\ntR." % os.fsencode(harm))
    assert "--trust-pickle" in error_line(run_here(*explain(path, "--row", 0)), Code.INPUT)
    assert not harm.exists()
    done = run_here(
        *explain(path, "--row", 0, "--trust-pickle")
    )  # with the option, the file is loaded and its code runs
    assert done.returncode == Code.INPUT
    assert "runs the code in it" in caplog.text
    assert harm.exists()


def test_an_unlisted_skops_type_is_refused(run_here, tmp_path):
    from sklearn.preprocessing import FunctionTransformer

    skops.io.dump(make_pipeline(FunctionTransformer(os.path.basename), LogisticRegression()), tmp_path / "m.skops")
    line = error_line(run_here(*explain(tmp_path / "m.skops", "--row", 0)), Code.INPUT)
    assert "--trust posixpath.basename" in line


def test_a_module_in_the_working_directory_is_not_run(run, place):
    line = error_line(
        run(
            *explain("scorer:score", "--row", 0, data="../train.csv"),
            cwd=place / "modules",
            env={"PYTHONPATH": ""},
        ),
        3,
    )
    assert "working directory is not searched" in line


def test_a_forgotten_target_is_named_and_never_a_reason(run):
    done = run("explain", "model.onnx", "--data", "train.csv", "--row", 3, *FEW, "--format", "json")
    assert done.returncode == 0
    assert done.stderr.count("warning:") == 1
    assert "not fitted on 'approved'" in done.stderr
    assert "--target approved" in done.stderr
    assert "approved" not in [fact.column for fact in Explanation.from_json(done.stdout).facts]
