"""The command line with hostile texts, pipes, signals, full disks and terminals."""

import json
import os
import pty
import re
import resource
import shutil
import signal
import subprocess
import sys

import pytest

from anchorline.cli.codes import Code
from anchorline.result.explanation import Explanation
from helpers.command_lines import FEW, explain
from helpers.commands import HOSTILE, error_line, wait_for


def test_cell_values_show_as_text_everywhere(run_here, tmp_path):
    """A model of the column with hostile texts alone is explained in every format."""
    rows = [word for row in range(3) for word in ("--row", row)]
    done = run_here(*explain("scorer:note", *rows))
    assert (done.returncode, done.stderr) == (0, "")
    assert "\x1b" not in done.stdout
    for cell in HOSTILE:
        assert f"note = {cell}".replace("\x1b", "\\x1b") in done.stdout
    done = run_here(*explain("scorer:note", *rows, "--out", tmp_path / "why-{row}.html"))
    assert (done.returncode, done.stderr) == (0, "")
    for row in range(3):
        page = (tmp_path / f"why-{row}.html").read_text(encoding="utf-8")
        assert "<script" not in page
        assert "\x1b" not in page
        assert ("&lt;script&gt;" in page) is (row == 0)
    done = run_here("frontier", "scorer:note", "--data=train.csv", "--row", 2, "--queries", 300, "-k", 2)
    assert "note = \\x1b[31mred\\x1b[0m" in done.stdout
    done = run_here(*explain("scorer:note", *rows, "--format", "json"))
    assert "\x1b" not in done.stdout
    assert [json.loads(line)["output"]["decision"] for line in done.stdout.splitlines()] == HOSTILE


@pytest.mark.parametrize("name", ["a\nb\x1b[31m[bold]<script>;{row} %s'\"", "-rf"])
def test_hostile_file_names(run, place, tmp_path, name):
    line = error_line(run(*explain("scorer:score", "--row", 0, data=f"{name}.csv"), cwd=tmp_path), Code.INPUT)
    assert repr(f"{name}.csv") in line
    shutil.copy(place / "train.csv", tmp_path / f"{name}.csv")
    shutil.copy(place / "model.onnx", tmp_path / f"{name}.onnx")
    options = ["--target=approved", *FEW, "--row=0", f"--data={name}.csv", f"--out={name}.json"]
    done = run("explain", *options, "--", f"{name}.onnx", cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    written = f"{name}.json".replace("{row}", "0")
    assert Explanation.from_json((tmp_path / written).read_text().strip())


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
    assert done.returncode == Code.BROKEN_PIPE
    # On a busy machine, one query may take so long that all of them are announced first.
    assert [line for line in done.stderr.splitlines() if b"This takes at most" not in line] == []
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


def test_places_that_cannot_be_written(run_here, tmp_path):
    (tmp_path / "file").touch()
    for out, match in [
        (tmp_path / "file" / "why.html", "not a folder"),
        ("/proc/why.html", "cannot be written"),
        (tmp_path / "none" / "why.html", "does not exist"),
        ("/dev/full", "the disk is full"),
    ]:
        assert match in error_line(run_here(*explain("scorer:score", "--row", 0, "--out", out)), Code.OUTPUT)
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
    """With ``>&-`` a result raises an error, a file is still written, and messages are discarded."""
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
        assert (done.returncode, done.stderr.replace("printed by the model\n", "")) == expected
    assert Explanation.from_json((tmp_path / "why.json").read_text().strip())


def test_a_file_that_may_not_grow(run, tmp_path):
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))

    done = run(*explain("scorer:score", "--row", 0, "--out", tmp_path / "why.html"), preexec_fn=limit)
    assert "larger than allowed" in error_line(done, Code.OUTPUT)
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
    lines = [line for line in done.stderr.splitlines() if "This takes" not in line]  # said on a slow machine
    assert len(lines) == 1


def run_on_terminal(command, environment, cwd):
    """Run a command with both streams on a terminal; return the output and the exit code."""
    parent_end, child_end = pty.openpty()
    process = subprocess.Popen(
        command, stdout=child_end, stderr=child_end, stdin=child_end, env=environment, cwd=cwd
    )
    os.close(child_end)
    output = b""
    while True:
        try:
            part = os.read(parent_end, 65536)
        except OSError:  # the process closed its side
            break
        if not part:
            break
        output += part
    os.close(parent_end)
    return output.decode(), process.wait(timeout=60)


def test_progress_and_colors_on_a_terminal(environment, place):
    settings = environment | {"TERM": "xterm-256color", "COLUMNS": "100"}
    settings.pop("NO_COLOR", None)
    rows = [word for i in range(3) for word in ("--row", str(i))]
    command = [sys.executable, "-m", "anchorline", *map(str, explain("scorer:slow", *rows))]
    output, code = run_on_terminal(command, settings, place)
    assert code == 0, output
    assert "Explaining row" in output
    assert "rows/s" in output
    assert re.search(r"\d:\d\d", output)
    assert "\x1b[38;5;" in output


def test_no_progress_where_nobody_looks(run):
    done = run(*explain("scorer:slow", *[word for i in range(2) for word in ("--row", i)]))
    assert done.returncode == 0
    assert done.stderr == "anchorline: This takes at most 600 queries, about 4 minutes if asked one by one.\n"
    assert "\x1b" not in done.stdout


def test_terminals_without_block_characters(run):
    done = run(*explain("scorer:score", "--row", 0), env={"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"})
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.isascii()
