"""The comparison with LIME and KernelSHAP: equal queries, ratios and a page, with small models."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from anchorline.cli.app import app
from anchorline.errors import ParameterError
from anchorline.explainer import Explainer
from anchorline.spaces.hypercube import Hypercube
from benchmarks import peers, tasks
from benchmarks.__main__ import main
from benchmarks.report import SECTIONS
from benchmarks.tasks import Benchmark


def bent(z):
    return np.tanh(0.9 * z[:, 0] + 0.7 * z[:, 1] - 0.5 * z[:, 2] * z[:, 3] + 0.1 * z[:, 4:].sum(axis=1))


def benchmark(predict=bent, d=10):
    instances = np.where(np.arange(2 * d).reshape(2, d) % 3, 1.0, -1.0)
    return Benchmark("made", d, predict, instances, tuple(f"z{j}" for j in range(d)))


@pytest.fixture(scope="module")
def row():
    (result,) = peers.race_peers([benchmark()], n_queries=1000, n_instances=2)
    return result


def test_all_sides_ask_the_same(row):
    assert 900 <= row["queries"] <= 1000  # different numbers of queries would raise an error
    assert (row["instances"], row["seed"], row["d"]) == (2, 48, 10)


def test_ratios_are_theirs_over_ours(row):
    for name in ("lime", "shap"):
        assert row[f"{name}_overhead_ratio"] > 0
        assert row[f"{name}_end_to_end_ratio"] > 0
        assert row[f"{name}_relevance_ratio"] > 0
    assert row["our_relevance_error"] > 0


def test_sides_that_ask_differently_are_refused():
    runs = {
        name: [peers.TimedExplanation(1.0, 1.0, n, 0.1)] for name, n in (("ours", 10), ("lime", 11), ("shap", 10))
    }
    with pytest.raises(AssertionError, match="same number of queries"):
        peers._row(benchmark(), runs, 48)


def test_a_perfect_explanation_has_no_ratio():
    runs = {name: [peers.TimedExplanation(1.0, 1.0, 10, 0.0)] for name in ("ours", "lime", "shap")}
    assert peers._row(benchmark(), runs, 48)["lime_relevance_ratio"] is None


def test_too_few_queries_for_kernel_shap():
    with pytest.raises(ParameterError, match="at least 100"):
        next(peers.race_peers([benchmark()], n_queries=99))


def test_the_command_writes_its_section(tmp_path, monkeypatch):
    (tmp_path / "29-made.csv.gz").touch()
    monkeypatch.setattr(peers, "load_benchmarks", lambda data, cache: iter([benchmark()]))
    few = ["--queries", "200", "--instances", "1"]
    done = CliRunner().invoke(app, ["bench", "peers", "--data", str(tmp_path), "--out", str(tmp_path), *few])
    assert done.exit_code == 0, done.output
    written = json.loads((tmp_path / "peers.json").read_text())
    assert written["rows"][0]["benchmark"] == "made"
    assert SECTIONS["peers"].title in (tmp_path / "README.md").read_text()
    assert "shap_overhead_ratio" in done.output


def test_a_stopwatch_is_asked_itself():
    watch = tasks.Stopwatch(bent)
    e = Explainer(watch, Hypercube()).explain([1] * 10, queries=500)
    assert watch.n_rows == e.queries.total


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--data", "nowhere"], "The folder 'nowhere' holds no data set of the paper"),
        (["--data", ".", "--only", "nosuch"], "invalid choice: 'nosuch'"),
    ],
)
def test_the_benchmarks_say_what_is_wrong_before_they_measure(arguments, message, capsys):
    with pytest.raises(SystemExit):
        main(arguments)
    assert message in capsys.readouterr().err
