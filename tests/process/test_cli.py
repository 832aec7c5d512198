"""The command line, run as people run it: as a process, with files, pipes, signals and full disks."""

import json
import os
import pty
import re
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import lightgbm
import numpy as np
import pandas as pd
import pytest
import skops.io
from skl2onnx import convert_sklearn
from skl2onnx.common.data_types import FloatTensorType, Int64TensorType, StringTensorType
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from typer.testing import CliRunner

from anchorline import Explanation
from anchorline.cli import app as application
from anchorline.cli import doctor
from anchorline.cli.app import COMMANDS, app
from anchorline.cli.codes import Code
from anchorline.io import read_table
from anchorline.model.loaders import load_model
from anchorline.result.explanations import Explanations

HOSTILE = ["<script>alert(1)</script>", "[bold]red[/bold]", "\x1b[31mred\x1b[0m"]
FEW = ("--samples", "200", "-k", "3")
SCORER = '''
import os, pathlib, time

def score(rows):
    """A number between 0 and 1."""
    return (rows["net income"].to_numpy() > 0) * 0.6 + (rows["town; or place"] == "Lens").to_numpy() * 0.3

def vote(rows):
    return (score(rows) > 0.5).astype(int)

def slow(rows):
    pathlib.Path(os.environ["STARTED"]).touch()
    time.sleep(0.3)
    return score(rows)

def crawling(rows):
    pathlib.Path(os.environ["STARTED"]).touch()
    time.sleep(60)

def broken(rows):
    raise RuntimeError("no more\\n\\x1b[31mink")

def printing(rows):
    print("asked")
    return score(rows)

def leaving(rows):
    raise SystemExit(0)

def note(rows):
    return rows["note"].astype(str).to_numpy()

def coded(rows):
    code = rows["code"].astype(str)
    return rows["x"] * 0.1 + (code == "22") * 0.3 - (code == "007") * 0.2 + (rows["maybe"] == "true") * 0.4
'''


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with a table as spreadsheets write it, and models of it."""
    folder = tmp_path_factory.mktemp("cli")
    rng = np.random.default_rng(0)
    lines = ['"net income";"town; or place";children;note;approved']
    for i in range(120):
        income, town = rng.normal(), rng.choice(["Arras", "Lens", 'Bully "les" Mines'])
        approved = "yes" if (income > 0) != (town == "Lens") else "no"
        quoted = town.replace('"', '""')
        comma = f"{income:.4f}".replace(".", ",")
        lines.append(f'{comma};"{quoted}";{rng.integers(0, 4)};"{HOSTILE[i % 3]}";{approved}')
    (folder / "train.csv").write_text("\ufeff" + "\r\n".join(lines) + "\r\n", encoding="utf-8")
    (folder / "modules").mkdir()
    (folder / "modules" / "scorer.py").write_text(SCORER)
    frame = read_table(folder / "train.csv", backend="pandas")
    rows, labels = frame.drop(columns="approved"), frame["approved"]
    texts = ["town; or place", "note"]
    columns = [
        ("n", StandardScaler(), ["net income", "children"]),
        ("t", OneHotEncoder(handle_unknown="ignore"), texts),
    ]
    model = make_pipeline(ColumnTransformer(columns), LogisticRegression()).fit(rows, labels)
    skops.io.dump(model, folder / "model.skops")
    kinds = [FloatTensorType, StringTensorType, Int64TensorType, StringTensorType]
    types = [(name, kind([None, 1])) for name, kind in zip(rows, kinds, strict=True)]
    (folder / "model.onnx").write_bytes(convert_sklearn(model, initial_types=types).SerializeToString())
    categories = rows.astype(dict.fromkeys(texts, "category"))
    settings = {"objective": "binary", "verbose": -1, "num_threads": 1, "min_data_in_leaf": 5}
    booster = lightgbm.train(settings, lightgbm.Dataset(categories, (labels == "yes") * 1), 5)
    booster.save_model(folder / "model.txt")
    return folder


@pytest.fixture
def started(tmp_path):
    return tmp_path / "started"


@pytest.fixture
def environment(place, started):
    kept = {name: value for name, value in os.environ.items() if "proxy" not in name.lower()}
    kept = {name: value for name, value in kept.items() if not name.startswith("ANCHORLINE")}
    added = {
        "PYTHONPATH": str(place / "modules"),
        "OMP_NUM_THREADS": "1",
        "COLUMNS": "80",
        "STARTED": str(started),
    }
    return kept | added


@pytest.fixture
def run(place, environment):
    """Run a command in the folder; bytes of both streams, decoded."""

    def command(*arguments, env=(), cwd=place, **keywords):
        return subprocess.run(
            [sys.executable, "-m", "anchorline", *map(str, arguments)],
            capture_output="stdout" not in keywords,
            env={**environment, **dict(env)},
            cwd=cwd,
            timeout=60,
            check=False,
            encoding="utf-8",
            **keywords,
        )

    return command


@pytest.fixture
def run_here(place, monkeypatch, capsys):
    """The same without a process, for errors of one kind that differ in their words only."""
    for name in ("prepare_logging", "prepare_streams"):
        monkeypatch.setattr(f"anchorline.cli.app.{name}", lambda *_: None)
    monkeypatch.setattr("anchorline.cli.app.signal.signal", lambda *_: None)
    monkeypatch.chdir(place)
    monkeypatch.syspath_prepend(place / "modules")

    def command(*arguments):
        monkeypatch.setattr(sys, "argv", ["anchorline", *map(str, arguments)])
        code = application.run()
        out, err = capsys.readouterr()
        return subprocess.CompletedProcess(arguments, code, out, err)

    return command


def explain(model="scorer:score", *more, data="train.csv"):
    return ("explain", model, f"--data={data}", "--target", "approved", *FEW, *more)


def told(done, code):
    """The one line on standard error of a command that failed so."""
    assert done.returncode == code, done.stderr
    assert done.stdout == ""
    assert re.fullmatch(r"anchorline: [^\n\x1b]+\n", done.stderr), done.stderr
    return done.stderr


def wait_for(path, process):
    for _ in range(600):
        if path.exists():
            return
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)
    raise TimeoutError


# --- models ------------------------------------------------------------------------------------------


def test_explain_prints_a_rule_and_a_table(run):
    done = run(*explain("scorer:score", "--row", 3))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("If ")
    assert "Proven best" in done.stdout
    assert "\x1b" not in done.stdout  # no colours where nobody looks


@pytest.mark.parametrize("model", ["model.skops", "model.onnx", "model.txt"])
def test_model_files_are_explained(run, tmp_path, model):
    out = tmp_path / "why.json"
    done = run(*explain(model, "--row", 5, "--out", out))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    explanation = Explanation.from_json(out.read_text().rstrip("\n"))
    assert explanation.parameters["n_samples"] == 200
    assert abs(explanation.intercept + explanation.contributions.sum() - explanation.prediction) < 1e-9
    if model == "model.onnx":
        done = run("verify", out, model, "--data", "train.csv", "--target", "approved")
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.startswith("The explanation holds")


class Endpoint(BaseHTTPRequestHandler):
    """An MLflow server that also fails first, redirects, or says too much."""

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.seen.append(self.headers.get("Authorization"))
        if self.path == "/fails/invocations" and len(self.server.seen) < 3:
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
    server.daemon_threads, server.seen = True, []
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
    assert set(endpoint.seen) == {"Bearer hunter2"}


@pytest.mark.parametrize(
    ("path", "match"),
    [
        ("redirects", "redirects to 'http://elsewhere.example"),
        ("slow", "within 1 s"),
        ("oversized", "more than 67,108,"),
    ],
)
def test_an_http_model_that_fails(run, endpoint, path, match):
    address = f"http://127.0.0.1:{endpoint.server_port}/{path}/invocations"
    assert match in told(run(*explain(address, "--row", 0, "--timeout", 1)), Code.MODEL)


# --- formats and rows --------------------------------------------------------------------------------


def test_several_rows_as_json_lines(run, place, tmp_path):
    done = run(*explain("scorer:score", "--row", 3, "--row", 4, "--format", "json"))
    assert done.returncode == 0, done.stderr
    first, second = (Explanation.from_json(line) for line in done.stdout.splitlines())
    rows = read_table(place / "train.csv", backend="pandas").drop(columns="approved").iloc[[3, 4]]
    rows.to_csv(tmp_path / "rows.csv", index=False)
    done = run(*explain("scorer:score", "--rows", tmp_path / "rows.csv", "--out", tmp_path / "why.json"))
    assert done.returncode == 0, done.stderr
    again = [Explanation.from_json(line) for line in (tmp_path / "why.json").read_text().splitlines()]
    assert [e.to_json() for e in again] == [first.to_json(), second.to_json()]


@pytest.fixture
def mixed(tmp_path):
    """Texts that look like numbers, booleans, dates, categories: as CSV and as Arrow; and rows as CSV."""
    n = 60
    frame = pd.DataFrame({"code": (["007", "22", "33", "A1"] * n)[:n], "x": [i / n for i in range(n)]})
    frame["maybe"] = (["true", None, "false"] * n)[:n]
    frame.to_csv(tmp_path / "train.csv", index=False)
    frame["flag"] = [i % 3 == 0 for i in range(n)]
    frame["day"] = pd.date_range("2018-03-04", periods=n)
    frame["level"] = pd.Categorical(([1, 2, 3] * n)[:n])
    frame.to_feather(tmp_path / "train.feather")
    rows = "code,x,maybe,flag,day,level\n22,0.5,true,true,2018-03-07,1.0\n007,1,true,0,20180309,2\n"
    (tmp_path / "rows.csv").write_text(rows)
    return tmp_path


@pytest.mark.parametrize("data", ["train.csv", "train.feather"])
def test_rows_from_csv_have_the_types_of_the_training_table(run, mixed, data):
    options = ["--data", data, "--output", "score", "--samples", 300]
    done = run("explain", "scorer:coded", *options, "--rows", "rows.csv", "--format", "json", cwd=mixed)
    assert done.returncode == 0, done.stderr
    found = [Explanation.from_json(line) for line in done.stdout.splitlines()]
    assert [e.prediction for e in found] == pytest.approx([0.75, 0.3])
    assert [e.instance[:3] for e in found] == [("22", 0.5, "true"), ("007", 1, "true")]
    if data == "train.feather":
        days = "2018-03-07T00:00:00.000000", "2018-03-09T00:00:00.000000"
        assert [e.instance[3:] for e in found] == [(True, days[0], "1"), (False, days[1], "2")]
    done = run("batch", "rows.csv", "--model", "scorer:coded", *options, "--out", "why.parquet", cwd=mixed)
    assert done.returncode == 0, done.stderr
    assert [*Explanations.from_parquet(mixed / "why.parquet")] == found


def test_pages_and_pictures(run, tmp_path):
    done = run(*explain("scorer:score", "--row", 3, "--row", 4, "--out", tmp_path / "why-{row}.html"))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert sorted(os.listdir(tmp_path)) == ["why-3.html", "why-4.html"]
    assert "<html" in (tmp_path / "why-3.html").read_text()
    done = run(*explain("scorer:score", "--row", 3, "--out", tmp_path / "why.png"))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert (tmp_path / "why.png").read_bytes().startswith(b"\x89PNG")


def test_labels_that_are_no_texts(run, tmp_path):
    pd.DataFrame(np.random.default_rng(0).normal(size=(40, 3))).to_parquet(tmp_path / "train.parquet")
    (tmp_path / "first.py").write_text("def score(rows):\n    return rows['0']\n")
    options = ["--data", "train.parquet", "--row", 0, *FEW]
    done = run("explain", "first:score", *options, cwd=tmp_path, env={"PYTHONPATH": str(tmp_path)})
    assert (done.returncode, done.stderr) == (0, "")


def test_options_reach_the_explanation(run):
    options = ["--fixed", "children", "--group", "place=town; or place,note", "--within", "redraw", "--seed", 7]
    options += [
        "--sigma",
        2,
        "--output",
        "rate",
        "--output-range",
        0,
        1,
        "--threshold",
        0.5,
        "--objective",
        "relevance",
    ]
    done = run(*explain("scorer:score", "--row", 3, "--format", "json", *options))
    assert done.returncode == 0, done.stderr
    explanation = Explanation.from_json(done.stdout.strip())
    assert explanation.output == "rate"
    assert {literal.name for literal in explanation.literals} == {"net income", "place"}
    chosen = {name: explanation.parameters[name] for name in ("seed", "objective", "threshold")}
    assert chosen == {"seed": 7, "objective": "relevance", "threshold": 0.5}
    assert list(explanation.parameters["output_range"]) == [0, 1]


def test_a_class_is_chosen(run, place):
    done = run(*explain("model.onnx", "--row", 3, "--output", "no", "--format", "json"))
    assert done.returncode == 0, done.stderr
    frame = read_table(place / "train.csv", backend="pandas").drop(columns="approved").iloc[[3]]
    assert json.loads(done.stdout)["prediction"] == load_model(place / "model.onnx")(frame)[0, 0]


@pytest.mark.parametrize("out", [None, "frontier.png", "frontier.txt"])
def test_frontier(run, tmp_path, out):
    more = [] if out is None else ["--out", tmp_path / out]
    done = run("frontier", "scorer:score", "--data=train.csv", "--row", 3, "--samples", 200, "-k", 3, *more)
    assert (done.returncode, done.stderr) == (0, "")
    if out == "frontier.png":
        assert (tmp_path / out).read_bytes().startswith(b"\x89PNG")
        return
    text = done.stdout if out is None else (tmp_path / out).read_text()
    assert "relevance error" in text
    assert [line.split()[0] for line in text.splitlines()[1:4]] == ["1", "2", "3"]


def test_demo_writes_pages_only(run, tmp_path):
    done = run("demo", "--out", "report.pdf", cwd=tmp_path)
    assert done.returncode == 2
    assert "ends in .html" in done.stderr
    assert not list(tmp_path.iterdir())


def test_demo_ends_with_a_rule_and_a_report(run, tmp_path):
    done = run("demo", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "If " in done.stdout
    assert "The whole report: report.html\n" in done.stdout
    assert done.stdout.endswith("anchorline serve --demo\n")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "P(malignant)" in page or "P(benign)" in page
    assert os.listdir(tmp_path) == ["report.html"]


def test_doctor(run):
    done = run("doctor")
    assert (done.returncode, done.stderr) == (0, "")
    assert re.search(r"^numpy +[\d.]+ +>= 2\.0 +ok +always needed$", done.stdout, flags=re.MULTILINE)


def test_doctor_says_what_to_type(monkeypatch, capsys):
    real = doctor.metadata.version

    def version(name):
        if name in ("onnx", "xgboost-cpu", "xgboost"):
            raise doctor.metadata.PackageNotFoundError(name)
        return "1.0" if name == "matplotlib" else real(name)

    monkeypatch.setattr(doctor.metadata, "version", version)
    doctor.doctor()
    text = capsys.readouterr().out
    assert re.search(r"^onnx +- +>= \S+ +missing", text, flags=re.MULTILINE)
    assert re.search(r"^matplotlib +1\.0 +>= \S+ +too old", text, flags=re.MULTILINE)
    for extra in ("onnx", "plot", "boosters"):
        assert f"pip install 'anchorline[{extra}]'" in text


def test_help_has_examples_and_exit_codes():
    runner = CliRunner()
    for command in (*COMMANDS, "bench paper", "bench peers"):
        text = runner.invoke(app, [*command.split(), "--help"]).output
        assert f"anchorline {command}" in text.split("Examples:")[1]
        assert "Exit codes:" in text
    text = runner.invoke(app, ["--help"]).output
    assert all(command in text for command in (*COMMANDS, "bench"))
    assert "130  Ctrl-C" in text


def test_completion_and_version(run):
    # The shell that started the tests may be one that typer does not know, such as make's sh.
    done = run("--show-completion", "bash", env={"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"})
    assert done.returncode == 0, done.stderr
    assert "_ANCHORLINE_COMPLETE" in done.stdout
    done = run(env={"_ANCHORLINE_COMPLETE": "complete_bash", "COMP_WORDS": "anchorline fr", "COMP_CWORD": "1"})
    assert done.stdout.split() == ["frontier"]
    assert re.fullmatch(r"anchorline \d+\.\d+\S*\n", run("--version").stdout)


# --- exit codes --------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["explain", "frontier", "verify"])
def test_what_a_model_prints_is_no_result(run, tmp_path, command):
    arguments = explain("scorer:printing", "--row", 3, "--format", "json")
    if command == "frontier":
        arguments = ("frontier", "scorer:printing", "--data=train.csv", "--target=approved", "--row=3", "-k", "2")
    if command == "verify":
        assert run(*explain("scorer:score", "--row", 3, "--out", tmp_path / "why.json")).returncode == 0
        arguments = ("verify", tmp_path / "why.json", "scorer:printing", "--data=train.csv", "--target=approved")
    done = run(*arguments)
    assert done.returncode == 0
    assert set(done.stderr.splitlines()) == {"asked"}
    assert "asked" not in done.stdout
    if command == "explain":
        assert Explanation.from_json(done.stdout).certificate.n_queries > 200


def test_lines_of_json_are_verified_one_by_one(run, tmp_path):
    out = tmp_path / "why.jsonl"
    assert run(*explain("scorer:score", "--row", 3, "--row", 4, "--out", out)).returncode == 0
    check = ("verify", out, "scorer:score", "--data=train.csv", "--target", "approved")
    done = run(*check)
    assert (done.returncode, done.stderr) == (Code.OK, "")
    assert re.fullmatch(r"Line 1\. The explanation holds.*\nLine 2\. The explanation holds.*\n", done.stdout)
    first, second = out.read_text().splitlines()
    out.write_text("\n".join([first, second.replace('"k":3', '"k":4')]))
    done = run(*check)
    assert done.returncode == Code.DOES_NOT_HOLD
    assert "Line 1. The explanation holds" in done.stdout
    assert "Line 2. The explanation does not hold: The SHA-256" in done.stdout
    out.write_text(json.dumps(json.loads(first), indent=2))  # laid out anew, by whatever tool
    assert "Line" not in run(*check).stdout


def test_does_not_hold(run, tmp_path):
    out = tmp_path / "why.json"
    assert run(*explain("scorer:score", "--row", 3, "--out", out)).returncode == 0
    check = ("verify", out, "scorer:score", "--data=train.csv")
    done = run(*check, "--bins", 3, "--target", "approved")
    assert (done.returncode, done.stderr) == (Code.DOES_NOT_HOLD, "")
    assert "made in another space" in done.stdout
    out.write_text(out.read_text().replace('"k":3', '"k":4'))
    done = run(*check, "--target", "approved")
    assert done.returncode == Code.DOES_NOT_HOLD
    assert "The SHA-256 does not fit" in done.stdout


def test_cannot_tell(run, tmp_path):
    out = tmp_path / "why.json"
    assert run(*explain("scorer:score", "--row", 3, "--out", out)).returncode == 0
    done = run("verify", out, "scorer:broken", "--data=train.csv", "--target", "approved")
    assert (done.returncode, done.stderr) == (Code.CANNOT_TELL, "")
    assert "could not be asked" in done.stdout
    assert len(done.stdout.splitlines()) == 1


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        (("explain", "scorer:score", "--data=train.csv", "--frobnicate"), "No such option"),
        (("explain", "scorer:score"), "--data"),
        (explain("scorer:score"), "Say which rows"),
        (explain("scorer:score", "--row", "first"), "Invalid value for '--row'"),
        (explain("scorer:score", "--row", -1), "Invalid value for '--row'"),
        (explain("scorer:score", "--row", 0, "-k", 0), "-k is 0"),
        (explain("scorer:score", "--row", 0, "--bins", 1), "Type --bins 4."),
        (explain("scorer:score", "--row", 0, "--threshold", "nan"), "Type --threshold 0.5."),
        (explain("scorer:score", "--row", 0, "--output-range", 1, 0), "Type --output-range 0 1."),
        (explain("scorer:score", "--row", 0, "--samples", "many"), "--samples is 'many'"),
        (explain("scorer:score", "--row", 0, "--group", "a"), "needed NAME=A,B"),
        (explain("scorer:score", "--row", 0, "--format", "png"), "A picture needs a file"),
        (explain("scorer:score", "--row", 0, "--row", 1, "--out", "a.html"), "'explanation-{row}.html'"),
        (explain("scorer:score", "--row", 0, "--out", "a.pdf"), "'a.pdf'; needed a name that ends in .txt, .json"),
        (
            ("frontier", "scorer:score", "--data=train.csv", "--row=0", "--out=f.json"),
            "ends in .txt, .png; or say",
        ),
        (
            ("frontier", "scorer:score", "--data=train.csv", "--row=0", "--samples=auto"),
            "Invalid value for '--samples'",
        ),
        (("frontier", "scorer:score", "--data=train.csv", "--row=-1"), "Invalid value for '--row'"),
        (
            (
                "batch",
                "train.csv",
                "--model=scorer:score",
                "--data=train.csv",
                "--out=o",
                "--resume",
                "--overwrite",
            ),
            "Got --resume and --overwrite; needed one of them",
        ),
        (("frontier", "scorer:score", "--data=train.csv", "--row=0", "--format=png"), "A picture needs a file"),
        (("paint",), "No such command"),
        (("bench",), "Missing command"),
        (("bench", "paper", "--protocol", "mine"), "Invalid value for '--protocol'"),
        (("bench", "paper", "--workers", 0), "Invalid value for '--workers'"),
        (("bench", "peers"), "Missing option '--data'"),
        ((), "Missing command"),
    ],
)
def test_wrong_usage(run_here, arguments, match):
    assert match in told(run_here(*arguments), Code.USAGE)


def test_wrong_usage_of_the_process(run):
    assert "Say which rows" in told(run(*explain("scorer:score")), Code.USAGE)
    assert "No such command 'paint'" in told(run("paint"), Code.USAGE)


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        (explain("scorer:score", "--row", 0, data="none.csv"), "No such file"),
        (explain("none.onnx", "--row", 0), "No such file"),
        (explain("scorer:none", "--row", 0), "has no 'none'"),
        (explain("scorer:score", "--row", 9999), "rows 0 to 119"),
        (explain("scorer:score", "--row", 0, "--target", "none"), "no column 'none'"),
        (explain("model.txt", "--row", 0, "--target", "note"), "needs the columns 'note'"),
        (("bench", "paper", "--data", "modules"), "The folder 'modules' holds no data set of the paper"),
        (("bench", "peers", "--data", "none"), "Type `--data DIR`"),
        (("verify", "none.json", "scorer:score", "--data=train.csv"), "No such file"),
        (("verify", "train.csv", "scorer:score", "--data=train.csv"), "Not JSON"),
    ],
)
def test_input_that_cannot_be_used(run_here, arguments, match):
    assert match in told(run_here(*arguments), Code.INPUT)


def test_input_that_the_process_cannot_use(run):
    assert "rows 0 to 119" in told(run(*explain("scorer:score", "--row", 9999)), Code.INPUT)


def test_a_model_that_raises(run):
    line = told(run(*explain("scorer:broken", "--row", 0)), Code.MODEL)
    assert "The model raised RuntimeError: no more" in line
    assert "The model raised SystemExit(0)." in told(run(*explain("scorer:leaving", "--row", 0)), Code.MODEL)
    done = run(*explain("scorer:broken", "--row", 0, "--debug"))
    assert done.returncode == Code.MODEL
    assert "Traceback (most recent call last)" in done.stderr
    assert "scorer.py" in done.stderr


def test_a_missing_package(run, tmp_path):
    whys = {"ModuleNotFoundError": "is not installed", "ImportError": "cannot be imported here (no)"}
    for raised, why in whys.items():
        (tmp_path / "onnxruntime.py").write_text(f"raise {raised}('no')")
        line = told(run(*explain("model.onnx", "--row", 0), env={"PYTHONPATH": str(tmp_path)}), Code.MISSING)
        assert f"onnxruntime`, which {why}. Type: pip install" in line
        assert "'anchorline[onnx]'" in line


def test_a_bug_is_called_one(run, tmp_path):
    (tmp_path / "hurt.py").write_text(
        "import anchorline.explainer\n"
        "def score(rows):\n    return 1\n"
        "def fail(*_, **__):\n    raise ZeroDivisionError('oh')\n"
        "anchorline.explainer.Explainer.explain = fail\n"
    )
    line = told(run(*explain("hurt:score", "--row", 0), env={"PYTHONPATH": str(tmp_path)}), Code.BUG)
    assert "This is a bug: ZeroDivisionError: oh" in line


# --- trust -------------------------------------------------------------------------------------------


def test_a_malicious_pickle_is_not_run(run, tmp_path):
    harm = tmp_path / "harm"
    path = tmp_path / "model.pkl"
    path.write_bytes(b"cos\nmkdir\n(V%s\ntR." % os.fsencode(harm))
    assert "--trust-pickle" in told(run(*explain(path, "--row", 0)), Code.INPUT)
    assert not harm.exists()
    done = run(*explain(path, "--row", 0, "--trust-pickle"))  # it is what it seems
    assert done.returncode == Code.INPUT
    assert "runs the code in it" in done.stderr
    assert harm.exists()


def test_an_unlisted_skops_type_is_refused(run, tmp_path):
    from sklearn.preprocessing import FunctionTransformer

    skops.io.dump(make_pipeline(FunctionTransformer(os.path.basename), LogisticRegression()), tmp_path / "m.skops")
    line = told(run(*explain(tmp_path / "m.skops", "--row", 0)), Code.INPUT)
    assert "--trust posixpath.basename" in line


def test_a_module_in_the_working_directory_is_not_run(run, place):
    line = told(
        run(
            *explain("scorer:score", "--row", 0, data="../train.csv"),
            cwd=place / "modules",
            env={"PYTHONPATH": ""},
        ),
        3,
    )
    assert "working directory is not looked in" in line


# --- hostile texts -----------------------------------------------------------------------------------


def test_cell_values_show_as_text_everywhere(run, tmp_path):
    """A model of nothing but the hostile column, explained in every format."""
    rows = [word for row in range(3) for word in ("--row", row)]
    name = "".join(HOSTILE)
    done = run(*explain("scorer:note", *rows, "--output", name))
    assert (done.returncode, done.stderr) == (0, "")
    assert "\x1b" not in done.stdout
    for cell in HOSTILE:
        assert f"note = {cell}".replace("\x1b", "\\x1b") in done.stdout
    assert name.replace("\x1b", "\\x1b") in done.stdout
    done = run(*explain("scorer:note", *rows, "--output", name, "--out", tmp_path / "why-{row}.html"))
    assert (done.returncode, done.stderr) == (0, "")
    for row in range(3):
        page = (tmp_path / f"why-{row}.html").read_text(encoding="utf-8")
        assert "<script" not in page
        assert "\x1b" not in page
        assert "&lt;script&gt;" in page
    done = run("frontier", "scorer:note", "--data=train.csv", "--row", 2, "--samples", 200, "-k", 2)
    assert "note = \\x1b[31mred\\x1b[0m" in done.stdout
    done = run(*explain("scorer:note", *rows, "--format", "json"))
    assert "\x1b" not in done.stdout
    assert [json.loads(line)["label"] for line in done.stdout.splitlines()] == HOSTILE


@pytest.mark.parametrize("name", ["a\nb\x1b[31m[bold]<script>;{row} %s'\"", "-rf"])
def test_hostile_file_names(run, place, tmp_path, name):
    line = told(run(*explain("scorer:score", "--row", 0, data=f"{name}.csv"), cwd=tmp_path), Code.INPUT)
    assert repr(f"{name}.csv") in line
    shutil.copy(place / "train.csv", tmp_path / f"{name}.csv")
    shutil.copy(place / "model.onnx", tmp_path / f"{name}.onnx")
    options = ["--target=approved", *FEW, "--row=0", f"--data={name}.csv", f"--out={name}.json"]
    done = run("explain", *options, "--", f"{name}.onnx", cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    written = f"{name}.json".replace("{row}", "0")
    assert Explanation.from_json((tmp_path / written).read_text().strip())


# --- pipes, signals, disks ---------------------------------------------------------------------------


def test_a_reader_that_goes_away(environment, place):
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "anchorline", *map(str, explain("scorer:score", "--row", 0))]
    done = subprocess.run(
        command, stdout=write, stderr=subprocess.PIPE, env=environment, cwd=place, timeout=60, check=False
    )
    os.close(write)
    assert (done.returncode, done.stderr) == (Code.BROKEN_PIPE, b"")


def test_head(environment, place):
    rows = " ".join(f"--row {i}" for i in range(40))
    words = " ".join(f"'{word}'" for word in explain("scorer:score"))
    script = f"set -o pipefail; {sys.executable} -m anchorline {words} {rows} --format json | head -c 10"
    done = subprocess.run(
        ["bash", "-c", script], capture_output=True, env=environment, cwd=place, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (Code.BROKEN_PIPE, b"")
    assert len(done.stdout) == 10


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, Code.INTERRUPTED), (signal.SIGTERM, Code.TERMINATED)], ids=["int", "term"]
)
def test_signals_leave_nothing_half_written(environment, place, tmp_path, started, number, code):
    out = tmp_path / "out"
    out.mkdir()
    (out / "why.html").write_text("old")
    command = [sys.executable, "-m", "anchorline", *map(str, explain("scorer:crawling", "--row", 0))]
    process = subprocess.Popen(
        [*command, "--out", str(out / "why.html")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
        cwd=place,
        encoding="utf-8",
    )
    wait_for(started, process)
    process.send_signal(number)
    stdout, stderr = process.communicate(timeout=30)
    assert process.returncode == code, stderr
    assert stdout == ""
    assert stderr.count("\n") <= 1
    assert "Traceback" not in stderr
    assert os.listdir(out) == ["why.html"]
    assert (out / "why.html").read_text() == "old"


def test_places_that_cannot_be_written(run, tmp_path):
    (tmp_path / "file").touch()
    for out, match in [
        (tmp_path / "file" / "why.html", "not a folder"),
        ("/proc/why.html", "cannot be written"),
        (tmp_path / "none" / "why.html", "does not exist"),
        ("/dev/full", "the disk is full"),
    ]:
        assert match in told(run(*explain("scorer:score", "--row", 0, "--out", out)), Code.OUTPUT)
    assert os.listdir(tmp_path) == ["file"]


def test_standard_output_as_a_file(run):
    done = run(*explain("scorer:score", "--row", 0, "--format", "json", "--out", "/dev/stdout"))
    assert (done.returncode, done.stderr) == (0, "")
    assert Explanation.from_json(done.stdout.strip())


def test_a_full_standard_output(run):
    with open("/dev/full", "w") as full:
        done = run(*explain("scorer:score", "--row", 0), stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == Code.OUTPUT
    assert done.stderr == "anchorline: Standard output cannot be written: the disk is full.\n"


@pytest.mark.parametrize("arguments", [("--help",), ("explain", "--help"), ("--version",)])
def test_help_that_cannot_be_written(run, arguments):
    with open("/dev/full", "w") as full:
        done = run(*arguments, stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == Code.OUTPUT
    assert done.stderr == "anchorline: Standard output cannot be written: the disk is full.\n"


def test_streams_that_are_closed(environment, place, tmp_path):
    """As by ``>&-``: a result is refused, a file is written, and what is told goes nowhere."""
    command = f"{sys.executable} -m anchorline"
    words = " ".join(f"'{word}'" for word in explain("scorer:printing", "--row", 0))
    refused = (Code.OUTPUT, "anchorline: Standard output cannot be written: it is closed.\n")
    for script, expected in [
        (f"{command} {words} >&-", refused),
        (f"{command} --help >&-", refused),
        (f"{command} {words} --out {tmp_path / 'why.json'} >&-", (Code.OK, "")),
        (f"{command} {words} --out {tmp_path / 'none' / 'why.json'} >&- 2>&-", (Code.OUTPUT, "")),
        (f"{command} {words} --debug --out {tmp_path / 'none' / 'why.json'} 2>/dev/full", (Code.OUTPUT, "")),
    ]:
        done = subprocess.run(
            ["bash", "-c", script],
            capture_output=True,
            env=environment,
            cwd=place,
            timeout=60,
            check=False,
            encoding="utf-8",
        )
        assert (done.returncode, done.stderr.replace("asked\n", "")) == expected
    assert Explanation.from_json((tmp_path / "why.json").read_text().strip())


def test_a_file_that_may_not_grow(run, tmp_path):
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))

    done = run(*explain("scorer:score", "--row", 0, "--out", tmp_path / "why.html"), preexec_fn=limit)
    assert "larger than allowed" in told(done, Code.OUTPUT)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(("options", "match"), [("size=8k", "the disk is full"), ("ro", "the disk is read-only")])
def test_a_disk_that_is_full_or_read_only(environment, place, tmp_path, options, match):
    words = " ".join(f"'{word}'" for word in explain("scorer:score", "--row", 0, "--out", "disk/why.html"))
    mount = f"mount -t tmpfs -o {options} none disk"
    (tmp_path / "disk").mkdir()
    unshare = ["unshare", "--mount", "--map-root-user", "sh", "-c"]
    if subprocess.run([*unshare, mount], cwd=tmp_path, capture_output=True, check=False).returncode:
        pytest.skip("no mount namespaces here")
    script = f"{mount} && {sys.executable} -m anchorline {words}; echo $? $(ls -A disk)"
    done = subprocess.run(
        [*unshare, script.replace("train.csv", str(place / "train.csv"))],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )
    assert done.stdout.split() == [str(int(Code.OUTPUT))]
    assert match in done.stderr
    assert len(done.stderr.splitlines()) == 1


# --- terminals ---------------------------------------------------------------------------------------


def on_a_terminal(command, environment, cwd):
    """Run with both streams on a terminal; what was shown, and the exit code."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(command, stdout=theirs, stderr=theirs, stdin=theirs, env=environment, cwd=cwd)
    os.close(theirs)
    shown = b""
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:  # the other side was closed
            break
        if not part:
            break
        shown += part
    os.close(ours)
    return shown.decode(), process.wait(timeout=60)


def test_progress_and_colours_on_a_terminal(environment, place):
    settings = environment | {"TERM": "xterm-256color", "COLUMNS": "100"}
    settings.pop("NO_COLOR", None)
    rows = [word for i in range(3) for word in ("--row", str(i))]
    command = [sys.executable, "-m", "anchorline", *map(str, explain("scorer:slow", *rows))]
    shown, code = on_a_terminal(command, settings, place)
    assert code == 0, shown
    assert "Explaining row" in shown
    assert "rows/s" in shown
    assert re.search(r"\d:\d\d", shown)
    assert "\x1b[38;5;" in shown


def test_no_progress_where_nobody_looks(run):
    done = run(*explain("scorer:slow", *[word for i in range(2) for word in ("--row", i)]))
    assert (done.returncode, done.stderr) == (0, "")
    assert "\x1b" not in done.stdout


def test_terminals_without_block_characters(run):
    done = run(*explain("scorer:score", "--row", 0), env={"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"})
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.isascii()


# --- benchmarks --------------------------------------------------------------------------------------


def test_bench_paper_has_a_second_door(environment, place):
    """``python -m benchmarks paper`` is the same command, with the same errors."""
    command = [sys.executable, "-m", "benchmarks", "paper", "--data", "none"]
    done = subprocess.run(
        command, env=environment, cwd=place, capture_output=True, text=True, check=False, timeout=60
    )
    assert "The folder 'none' holds no data set of the paper" in told(done, Code.INPUT)


def test_what_a_benchmark_needs_is_loaded_when_it_runs():
    script = "import sys, anchorline.cli.app\nprint(*sorted({name.split('.')[0] for name in sys.modules}))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    assert not {"sklearn", "pandas", "matplotlib", "lime", "shap", "joblib"} & set(done.stdout.split())


@pytest.mark.parametrize("command", [("bench", "paper"), ("bench", "peers")])
def test_a_package_that_a_benchmark_lacks(run_here, monkeypatch, command):
    from benchmarks import needs

    def version(name):
        raise needs.PackageNotFoundError(name)

    monkeypatch.setattr(needs, "version", version)
    line = told(run_here(*command, "--data", "none"), Code.MISSING)
    assert re.search(r"needs `pandas and .*lime.*Type: pip install 'anchorline\[bench,.*peers.*\]'", line)
