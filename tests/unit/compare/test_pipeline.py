"""The command of the page's workflow, run as a build server runs it."""

import pathlib
import re
import shlex
import xml.etree.ElementTree as ET

import numpy as np
import pytest
import skops.io
from sklearn.linear_model import LogisticRegression

from anchorline.cli.app import run

PAGE = pathlib.Path(__file__).parents[3] / "docs" / "compare.md"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    import pandas as pd

    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age": rng.normal(40, 10, 300), "debt": rng.normal(5, 2, 300)})
    decision = np.where(frame["debt"] + 0.02 * frame["age"] + rng.normal(0, 0.5, 300) < 6, "approved", "declined")
    frame.assign(decision=decision).to_parquet(tmp_path / "train.parquet")
    skops.io.dump(LogisticRegression(C=1.0).fit(frame, decision), tmp_path / "old.skops")
    skops.io.dump(LogisticRegression(C=0.5).fit(frame, decision), tmp_path / "new.skops")
    reversed_ = np.where(decision == "approved", "declined", "approved")
    skops.io.dump(LogisticRegression().fit(frame, reversed_), tmp_path / "wrong.skops")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def command():
    text = re.search(r"run: >-\n((?: {10}.*\n)+)", PAGE.read_text(encoding="utf-8")).group(1)
    return shlex.split(" ".join(line.strip() for line in text.splitlines()))[1:]


def test_the_workflow_passes_for_a_model_that_hardly_differs(folder):
    assert run(command()) == 0
    assert ET.parse(folder / "compare.xml").getroot().get("failures") == "0"


def test_the_workflow_fails_for_a_model_that_decides_differently(folder):
    (folder / "new.skops").write_bytes((folder / "wrong.skops").read_bytes())
    assert run(command()) == 1
    assert ET.parse(folder / "compare.xml").getroot().get("failures") != "0"


def test_an_undecided_gate_has_a_code_of_its_own(folder):
    arguments = [
        "compare",
        "old.skops",
        "new.skops",
        "--data",
        "train.parquet",
        "--target",
        "decision",
        "-n",
        "30",
    ]
    assert run([*arguments, "-n", "30", "--max-decisions", "0.005"]) in (1, 2)


def test_rows_are_compared_with_one_model(folder, capsys):
    import pandas as pd

    later = pd.read_parquet("train.parquet").query("debt > 6")
    later.to_csv("april.csv", index=False)
    arguments = [
        "compare",
        "old.skops",
        "old.skops",
        "--data",
        "train.parquet",
        "--target",
        "decision",
        "-n",
        "40",
    ]
    assert run([*arguments, "--rows", "april.csv", "--output", "declined", "-n", "40"]) == 0
    assert "debt" in capsys.readouterr().out
    assert run(arguments) == 2
    assert "--rows april.csv" in capsys.readouterr().err
