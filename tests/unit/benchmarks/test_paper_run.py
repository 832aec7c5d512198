"""Units, plans and stores, and a whole run of the paper's experiments on small generated tables."""

import dataclasses
import json
import re
import types
from urllib.error import URLError

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from anchorline.cli.app import app
from anchorline.errors import MissingDependencyError, OutputFileError, TableFileError
from benchmarks import datasets, needs, tasks
from benchmarks.datasets import PUBLISHED
from benchmarks.experiments import command, explainers, figures, page, protocol, runner, series
from benchmarks.experiments.claims import CLAIMS
from benchmarks.experiments.explainers import METHODS
from benchmarks.experiments.protocol import FULL, Plan, Setting, Unit
from benchmarks.experiments.results import Results
from benchmarks.experiments.runner import Store, run
from helpers.paper_tasks import TINY, unit

CLOCKS = ["seconds", "cpu_seconds", "model_seconds", "sample_seconds"]


def test_a_key_holds_what_determines_the_rows_and_nothing_else():
    keys = [
        unit().key,
        unit(digest="abd").key,
        unit(seed=49).key,
        unit(instance=1).key,
        unit(protocol="code").key,
        unit(group="maple").key,
        unit(scale=dataclasses.replace(TINY, n_draws=600)).key,
    ]
    assert len(set(keys)) == len(keys)
    assert unit(scale=dataclasses.replace(TINY, ks=(1,))).key == unit().key  # a table has no sweep
    assert unit(series="sweep_k", scale=dataclasses.replace(TINY, ks=(1,))).key != unit(series="sweep_k").key


def test_a_new_version_is_measured_anew(monkeypatch):
    before = unit().key
    monkeypatch.setattr(protocol, "VERSION", "other")
    assert unit().key != before


def test_tables_come_before_sweeps_and_every_data_set_before_a_second_instance(data):
    scale = dataclasses.replace(TINY, n_instances=2)
    units = list(Plan.from_data(data, scale, ("paper", "code")))
    order = [each.series for each in units if each.protocol == "paper"]
    assert max(i for i, name in enumerate(order) if name == "table") < order.index("sweep_k")
    core = [(each.instance, each.dataset_id) for each in units if each.group == "core" and each.protocol == "code"]
    assert core == [(0, 42192), (0, 44024), (1, 42192), (1, 44024)]
    assert len({each.key for each in units}) == len(units)
    assert {each.protocol for each in Plan.from_data(data, TINY, ("code",)) if each.series == "table"} == {"code"}


def test_the_full_plan_is_the_papers():
    assert FULL.ks == tuple(range(1, 9))
    assert FULL.sigmas == tuple(np.arange(8) / 4)
    assert FULL.ms == (100, 500, 1000, 5000, 10_000, 50_000, 100_000)
    assert (FULL.n_instances, FULL.n_draws, FULL.n_folds, len(FULL.ids)) == (10, 100_000, 5, 16)
    assert Setting() == Setting(k=5, sigma=1.0, m=5000)
    assert protocol.SWEPT == (42192, 179, 44024, 42352)


def test_scip_and_gurobi_stop_at_their_limits():
    plan = Plan(FULL, ("paper",), {row.id: "x" for row in PUBLISHED})
    ids = {each.dataset_id for each in plan if each.group == "referees"}
    assert ids == {row.id for row in PUBLISHED if row.dimension <= 99}
    assert [explainers.can_solve("scip", d) for d in (69, 70)] == [True, False]
    assert [explainers.can_solve("gurobi", d) for d in (99, 100)] == [True, False]


def test_nothing_to_plan_says_what_to_type(tmp_path):
    with pytest.raises(TableFileError, match="Type `--data DIR`"):
        command.repeat_paper(tmp_path)


def test_a_missing_package_is_named_before_anything_is_measured(data, tmp_path, monkeypatch):
    def version(name):
        if name in ("slise", "gurobipy"):
            raise needs.PackageNotFoundError(name)
        return "1.0"

    monkeypatch.setattr(needs, "version", version)
    with pytest.raises(MissingDependencyError, match=r"`slise and gurobipy`.*anchorline\[gurobi,peers\]"):
        command.repeat_paper(data, cache=tmp_path)


def test_without_a_network_it_is_said_once(tmp_path, monkeypatch):
    def unreachable(**_):
        raise URLError("no network")

    monkeypatch.setattr("sklearn.datasets.fetch_openml", unreachable)
    monkeypatch.setattr(runner, "run_unit", None)
    with pytest.raises(TableFileError, match=r"OpenML 29 .* cannot be fetched: .*no network.* `--data DIR`"):
        command.repeat_paper(None, cache=tmp_path)


def test_a_report_on_nothing_is_none(data, tmp_path, capsys):
    assert not command.repeat_paper(data, cache=tmp_path / "cache", out=tmp_path / "out", report_only=True)
    assert "Nothing is measured yet" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_folder_that_cannot_be_written_is_told(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(OutputFileError, match="not a folder"):
        Store(tmp_path / "file").write(unit(), [])


def test_a_stopped_run_goes_on_where_it_was(data, tmp_path, monkeypatch, capsys):
    units = [unit(instance=i) for i in range(4)]
    store, started = Store(tmp_path), []

    def work(each, *_):
        started.append(each.instance)
        if len(started) == 3:
            raise KeyboardInterrupt
        return [{"instance": each.instance, "seed": 48}]

    monkeypatch.setattr(runner, "run_unit", work)
    with pytest.raises(KeyboardInterrupt):
        run(units, store, data, tmp_path, workers=1)
    assert [store.has(each) for each in units] == [True, True, False, False]
    (tmp_path / f"{units[3].key}.123.tmp").write_text('{"rows": [')  # the file that a kill during a write leaves
    assert run(units, store, data, tmp_path, workers=1) == {}
    assert started == [0, 1, 2, 2, 3]
    assert [row["instance"] for row in store.rows(units)] == [0, 1, 2, 3]
    log = capsys.readouterr().err
    assert "2 of 4 units were finished before." in log
    assert re.search(r"\[2/2\] \d+ units/min, \d+ s left: table core paper COMPAS #3", log)


def test_a_unit_that_fails_is_told_and_tried_again(data, tmp_path, monkeypatch, capsys):
    def work(each, *_):
        if each.instance == 0:
            raise ValueError("no luck")
        return [{"seed": 48}]

    monkeypatch.setattr(runner, "run_unit", work)
    units = [unit(instance=i) for i in range(2)]
    assert list(run(units, Store(tmp_path), data, tmp_path, workers=1).values()) == ["ValueError: no luck"]
    assert [Store(tmp_path).has(each) for each in units] == [False, True]
    assert "FAILED: ValueError: no luck" in capsys.readouterr().err


@pytest.fixture
def openml(monkeypatch):
    """Replace scikit-learn's fetch, because tests do not use the network; return the list of fetched ids."""
    fetched = []

    def fetch(data_id, as_frame, parser):
        fetched.append(data_id)
        rng = np.random.default_rng(1)
        frame = pd.DataFrame({"a": rng.normal(size=60), "b": pd.Categorical(rng.choice(["x", "y"], size=60))})
        regression = datasets.published(data_id).kind == "regression"
        labels = pd.Series(rng.normal(size=60)) if regression else pd.Series(pd.Categorical(frame["a"] > 0))
        return types.SimpleNamespace(data=frame, target=labels)

    monkeypatch.setattr("sklearn.datasets.fetch_openml", fetch)
    return fetched


def test_without_a_directory_tables_come_from_openml(openml):
    dataset = datasets.load_dataset(None, 29)
    assert openml == [29]
    assert dataset.frame["b"].dtype == object
    assert set(dataset.target) == {"True", "False"}
    assert datasets.load_dataset(None, 44024).target.dtype == float
    assert datasets.source_digest(None, 29) == "openml29"
    assert len(datasets.available(None)) == 16


def test_a_unit_runs_on_a_fetched_table(openml, tmp_path):
    fold = Unit("folds", "model", "paper", 29, 0, "openml29", TINY)
    (row,) = series.run_unit(fold, None, tmp_path)
    assert 0 <= row["loss"] <= 1
    assert (row["n_rows"], row["n_raw"], row["n_numeric"], row["n_categorical"]) == (60, 2, 1, 1)


def test_protocol_code_trains_on_the_whole_table(data):
    dataset = datasets.read_dataset(data, 42192)
    _, rows, _ = tasks.encode_dataset(dataset)
    whole = tasks._train(dataset, 48, "code")
    assert {tuple(x) for x in whole["instances"]} <= {tuple(x) for x in rows}
    assert whole["model"].coefs_[0].tolist() != tasks._train(dataset, 48)["model"].coefs_[0].tolist()


def test_an_interrupt_keeps_no_half_trained_network(data, tmp_path, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("sklearn.neural_network._multilayer_perceptron.MLPClassifier._backprop", interrupted)
    with pytest.raises(KeyboardInterrupt):
        tasks.load_benchmark(data, 42192, cache=tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.fixture(scope="module")
def runs(data, tmp_path_factory):
    """Two independent runs on two data sets, as pairs of frame and folder; only the first draws figures."""
    finished = []
    for name in ("first", "again"):
        folder = tmp_path_factory.mktemp(name)
        arguments = ["bench", "paper", "--data", str(data), "--quick", "--protocol", "paper", "--workers", "1"]
        folders = ["--out", str(folder / "out"), "--cache", str(folder / "cache")]
        series._benchmark.cache_clear()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(command, "QUICK", TINY)
            if name == "again":
                patch.setattr(command, "draw_all", lambda *_: [])
            done = CliRunner().invoke(app, [*arguments, *folders])
        assert done.exit_code == 0, done.output
        finished.append((pd.read_parquet(folder / "out" / "results.parquet"), folder / "out"))
    return finished


def test_the_same_numbers_come_out_twice(runs):
    first, again = (frame.drop(columns=CLOCKS) for frame, _ in runs)
    pd.testing.assert_frame_equal(first, again, check_exact=True)
    assert set(first["dataset_id"]) == {42192, 44024}
    assert set(first["series"]) == {"table", "folds", "sweep_k", "sweep_sigma", "sweep_m", "convergence"}
    assert set(first["seed"]) == {48}


def test_tables_and_figures_twice_the_same(runs):
    drawn = []
    for frame, out in runs:
        with figures._style():
            figures._save(figures.sweep(Results(frame), "paper", "sweep_k"), out / "again")
        drawn.append((out / "again.svg").read_bytes())
    assert drawn[0] == drawn[1]
    (_, first), (_, again) = runs
    for name in ("tables/table-1.md", "tables/table-2-paper.tex", "tables/table-3-paper.md"):
        assert (first / name).read_text() == (again / name).read_text()


def test_every_figure_and_table_is_there(runs):
    _, out = runs[0]
    drawn = {file.name for file in (out / "figures").iterdir()}
    for name in page.FIGURES:
        stem = name if name == "anytime" else f"{name}-paper"
        assert {f"{stem}.svg", f"{stem}.png"} <= drawn
    for name in ("table-1", "table-2-paper", "table-3-paper", "admissibility-paper", "runtime-paper"):
        assert (out / "tables" / f"{name}.md").exists()
        assert r"\toprule" in (out / "tables" / f"{name}.tex").read_text()
    assert (out / "table.csv").exists()
    assert "    anchorline bench paper --data DIR --quick\n" in (out / "README.md").read_text()


def test_the_page_has_every_claim_and_names_what_is_missing(runs):
    text = (runs[0][1] / "paper.md").read_text()
    for claim in CLAIMS:
        assert f"| {claim.statement.replace('|', chr(92) + '|')} |" in text
    assert "Cancer Drug Resp. Meth. (OpenML 46139)" in text
    assert "Missing, and not replaced by made-up data" in text
    table = (runs[0][1] / "tables" / "table-1.md").read_text()
    assert re.search(r"Cancer Drug Resp\. Meth\. \| 46139 \| missing", table)
    choices = (runs[0][1] / "README.md").read_text()
    assert all(choice in choices for choice in (*page.DATA, *page.CHOICES))
    for target in re.findall(r"\]\(([^)#]+)\)", text):
        assert (runs[0][1] / target).exists(), target


def test_a_second_command_measures_nothing_again(runs, data, monkeypatch):
    monkeypatch.setattr(command, "QUICK", TINY)
    monkeypatch.setattr(runner, "run_unit", None)
    folder = runs[0][1].parent
    monkeypatch.setattr(command, "report", lambda *_: True)
    assert command.repeat_paper(data, quick=True, protocol="paper", cache=folder / "cache")


def test_metrics_of_every_method_are_in_the_results(runs):
    frame, _ = runs[0]
    table = frame[frame["series"] == "table"]
    assert set(table["method"]) == (set(METHODS) | {"shap anchored", "slise anchored"})
    exact = table[table["method"] == "exact"]
    assert (exact["status"] == "OPTIMAL").all()
    assert not exact["violated"].any()


def test_store_files_are_plain_json(tmp_path):
    store = Store(tmp_path)
    store.write(unit(), [{"a": 1.5}])
    (file,) = tmp_path.iterdir()
    assert json.loads(file.read_text())["rows"] == [{"a": 1.5}]
