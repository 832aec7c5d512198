"""``anchorline batch`` as a process that is killed, runs out of disk space or gets bad models: no row is lost."""

import contextlib
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from anchorline.batch.parquet import ROWS_PER_GROUP
from anchorline.cli.app import app
from anchorline.result.explanations import Explanations
from helpers import batch_models
from helpers.batch_models import DIES, FAILS, HANGS, people

TESTS = Path(batch_models.__file__).parents[1]
PYTHONPATH = os.pathsep.join(filter(None, [str(TESTS), os.environ.get("PYTHONPATH")]))
ENVIRONMENT = {**os.environ, "PYTHONPATH": PYTHONPATH, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
N_KILLS, N_ROWS = 6, 100


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tables")
    people(120).to_csv(folder / "train.csv", index=False)
    rows = people(N_ROWS, seed=1)
    rows.to_parquet(folder / "rows.parquet")
    rows.loc[4, "age"] = FAILS
    rows.loc[9, "age"] = DIES
    rows.loc[14, "age"] = HANGS
    rows[:20].to_csv(folder / "bad.csv", index=False)
    return folder


def command(tables, out, *more, rows="rows.parquet", model="score", data="train.csv"):
    return [
        *(sys.executable, "-m", "anchorline", "batch", str(tables / rows), "--data", str(tables / data)),
        *("--model", f"helpers.batch_models:{model}", "--out", str(out), "--queries", "60", "-k", "3", *more),
    ]


def run(*arguments, **options):
    return subprocess.run(
        command(*arguments, **options), env=ENVIRONMENT, capture_output=True, text=True, timeout=120, check=False
    )


@pytest.fixture(scope="module")
def undisturbed(tables, tmp_path_factory):
    out = tmp_path_factory.mktemp("undisturbed") / "why.parquet"
    done = run(tables, out)
    assert done.returncode == 0, done.stderr
    assert f"{N_ROWS} of {N_ROWS} rows explained" in done.stderr
    return out.read_bytes()


def contents_of(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def rows_in(parts):
    """Return the number of rows in the parts of a batch that may be running."""
    with contextlib.suppress(FileNotFoundError, StopIteration):
        last = max(parts.glob("*.parquet"), default=None)
        return 0 if last is None else int(last.stem) * ROWS_PER_GROUP + pq.read_metadata(last).num_rows
    return 0


def test_rules_stand_beside_the_explanations(tables, tmp_path, undisturbed):
    out = tmp_path / "why.parquet"
    done = run(tables, out, "--rules", "--jobs", "2")
    assert done.returncode == 0, done.stderr
    many = Explanations.from_parquet(out)
    (tmp_path / "plain.parquet").write_bytes(undisturbed)
    assert [*many] == [*Explanations.from_parquet(tmp_path / "plain.parquet")]
    assert many.rule(0).settings["queries"] == 60
    assert many.rule(0).instance == many[0].instance


def test_killed_at_any_moment_it_ends_with_the_same_bytes(tables, tmp_path):
    whole = tmp_path / "whole.parquet"
    assert run(tables, whole, model="slow_score").returncode == 0
    moments = random.Random(8)
    out, parts = tmp_path / "why.parquet", tmp_path / "why.parquet.parts"
    n_done, orphans = 0, []
    for kill in range(N_KILLS):
        process = subprocess.Popen(
            # The number of workers may change.
            command(tables, out, "--jobs", str(1 + kill % 2), "--resume", model="slow_score"),
            env=ENVIRONMENT,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        # A quarter of the processes is killed at any moment, the others while they explain rows.
        patience = moments.uniform(0, 2.5) if kill % 4 == 0 else 60
        target, end = n_done + moments.randint(1, 7), time.monotonic() + patience
        while time.monotonic() < end and process.poll() is None and rows_in(parts) < target:
            time.sleep(0.005)
        time.sleep(moments.uniform(0, 0.02))
        orphans += psutil.Process(process.pid).children(recursive=True) if process.poll() is None else []
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert rows_in(parts) >= n_done, "a finished row was lost"
        n_done = rows_in(parts)
    assert 0 < n_done <= N_ROWS
    _, alive = psutil.wait_procs(orphans, timeout=10)
    assert not alive, "workers outlived the command"

    done = run(tables, out, "--jobs", "2", "--resume", model="slow_score")
    assert done.returncode == 0, done.stderr
    assert "rows were finished by an earlier run" in done.stderr
    assert out.read_bytes() == whole.read_bytes()
    assert sorted(os.listdir(tmp_path)) == ["whole.parquet", "why.parquet"]
    assert [record["row"] for record in Explanations.from_parquet(out).records] == list(range(N_ROWS))


def test_rows_that_fail_kill_and_hang(tables, tmp_path):
    out = tmp_path / "why.parquet"
    done = run(tables, out, "--row-timeout", "2.5", rows="bad.csv", model="trouble")
    assert done.returncode == 0, done.stderr
    many = Explanations.from_parquet(out)
    assert {f.row: f.error_type for f in many.failures} == {
        4: "PredictorError",
        9: "WorkerError",
        14: "RowTimeout",
    }
    assert len(many.explained) == 17
    texts = ["17 of 20 rows explained", "3 rows failed", "nobody is that old", "restarted", "no row was lost"]
    assert not [text for text in texts if text not in done.stderr]


def test_a_model_that_exits_does_not_end_the_batch(tables, tmp_path):
    out = tmp_path / "why.parquet"
    done = run(tables, out, "--output-range", "-1", "1", rows="bad.csv", model="exits")
    assert done.returncode == 0, done.stderr
    assert "19 of 20 rows explained" in done.stderr
    assert "SystemExit" in Explanations.from_parquet(out).failures[0].error


def test_fail_fast_stops_and_another_batch_is_refused(tables, tmp_path):
    """A batch resumes only with the rows, the training table, the model and the settings it began with."""
    out, parts = tmp_path / "why.parquet", tmp_path / "why.parquet.parts"
    done = run(tables, out, "--fail-fast", rows="bad.csv", model="trouble")
    assert done.returncode == 4
    assert "Row 4 has no explanation" in done.stderr
    assert os.listdir(tmp_path) == ["why.parquet.parts"]
    assert rows_in(parts) == 4

    content, other = contents_of(parts), tmp_path / "other"
    shutil.copytree(tables, other)
    people(120, seed=5).to_csv(other / "train.csv", index=False)
    same = {"rows": "bad.csv", "model": "trouble"}
    refusals = {
        "exists. Continue with resume": command(tables, out, **same),
        "settings k was 3, is 2": command(tables, out, "--resume", "-k", "2", **same),
        "data was": command(tables, out, "--resume", model="trouble"),
        "table was": command(other, out, "--resume", **same),
        "model was": command(tables, out, "--resume", rows="bad.csv"),
    }
    for message, words in refusals.items():
        ended = CliRunner().invoke(app, words[3:])
        assert ended.exit_code == 3
        assert message in " ".join(ended.stderr.split())
    assert contents_of(parts) == content


def invoke(*arguments, **options):
    """Run the command in this process; return the exit code and the message."""
    ended = CliRunner().invoke(app, command(*arguments, **options)[3:])
    return ended.exit_code, " ".join(ended.stderr.split())


def test_what_a_batch_is_made_from_is_not_written_over(tables, tmp_path, monkeypatch):
    shutil.copytree(tables, tmp_path, dirs_exist_ok=True)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    (tmp_path / "link").symlink_to("rows.parquet")
    (tmp_path / "hard").hardlink_to(tmp_path / "train.csv")
    monkeypatch.chdir(tmp_path)
    absolute = str(tmp_path / "rows.parquet")
    for out in (absolute, "rows.parquet", "../" + tmp_path.name + "/train.csv", "link", "hard"):
        for more in ((), ("--overwrite",), ("--resume",)):
            code, message = invoke(tmp_path, out, *more)
            assert code == 2
            assert "which would be lost" in message
    for out in ("why.CSV", "why.pdf", "why.parquet.gz"):
        code, message = invoke(tmp_path, out)
        assert code == 2
        assert "it must be a name that ends in .parquet" in message
    assert not list(tmp_path.glob("why*"))
    assert {path: path.read_bytes() for path in before} == before


def test_a_bad_option_does_not_block_the_corrected_command(tables, tmp_path):
    out = tmp_path / "why.parquet"
    assert invoke(tables, out, "-j", "0")[0] == 2
    message = "anchorline: --out is '', but it must be the name of the file to write, such as why.parquet."
    assert invoke(tables, "", "-j", "1") == (2, message)
    assert os.listdir(tmp_path) == []


def test_a_disk_that_fills_up(tables, undisturbed, tmp_path):
    """The disk has 40 kB, in a mount namespace of its own; after it has grown, the batch continues."""
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        pytest.skip("needs the permission to mount")
    disk, kept = tmp_path / "disk", tmp_path / "kept"
    disk.mkdir()
    batch = " ".join(f"'{word}'" for word in command(tables, disk / "why.parquet"))
    script = f"""
        mount -t tmpfs -o size=40k none {disk} || exit 99
        {batch}; echo "first $?"; ls -A {disk}
        mount -o remount,size=100m none {disk}
        {batch} --resume; echo "second $?"; ls -A {disk}
        cp {disk}/why.parquet {kept}
    """
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", script],
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    if done.returncode == 99 or "unshare" in done.stderr:
        pytest.skip("mounting is not allowed here")
    assert done.stdout.split() == ["first", "5", "why.parquet.parts", "second", "0", "why.parquet"], done.stderr
    assert "the disk is full" in done.stderr
    assert "--resume" in done.stderr
    assert kept.read_bytes() == undisturbed


def test_a_file_that_may_not_grow(tables, undisturbed, tmp_path):
    """The result file cannot be written either and leaves nothing behind; the parts hold the finished rows."""
    out = tmp_path / "why.parquet"
    limit = len(undisturbed) - 1  # the work of the workers is smaller
    done = subprocess.run(
        command(tables, out),
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
    )
    assert done.returncode == 5
    assert "larger than allowed" in done.stderr
    assert os.listdir(tmp_path) == ["why.parquet.parts"]
    assert run(tables, out, "--resume").returncode == 0
    assert out.read_bytes() == undisturbed


@pytest.mark.parametrize(
    ("number", "code", "word"), [(signal.SIGINT, 130, "Interrupted"), (signal.SIGTERM, 143, "Terminated")]
)
def test_signals_leave_the_parts_and_no_workers(tables, tmp_path, number, code, word):
    out, parts = tmp_path / "why.parquet", tmp_path / "why.parquet.parts"
    words = command(tables, out, "--jobs", "2", model="slow_score")
    with subprocess.Popen(words, env=ENVIRONMENT, stderr=subprocess.PIPE, text=True) as process:
        while process.poll() is None and rows_in(parts) < 3:
            time.sleep(0.01)
        workers = psutil.Process(process.pid).children(recursive=True)
        process.send_signal(number)
        _, message = process.communicate(timeout=30)
    assert process.returncode == code
    hint = "Finished rows are kept. Continue with --resume."
    assert message == f"anchorline: {word}; nothing was left half-written. {hint}\n"
    _, alive = psutil.wait_procs(workers, timeout=10)
    assert not alive
    assert rows_in(parts) >= 3


def test_threads_are_told_once_and_without_code(tables, tmp_path):
    done = run(tables, tmp_path / "why.parquet", rows="bad.csv", model="unpackable")
    assert done.returncode == 0
    first, *report = done.stderr.splitlines()
    why = "The model cannot be packed for another process (TypeError: this model holds a connection)."
    assert first == f"anchorline: warning: {why} Threads are used instead."
    assert not [line for line in report if "hreads" in line]
