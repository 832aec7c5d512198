"""A folder with a table and models, and functions that run the command line in it."""

import os
import subprocess
import sys

import lightgbm
import numpy as np
import pytest
import skops.io
from skl2onnx import convert_sklearn
from skl2onnx.common.data_types import FloatTensorType, Int64TensorType, StringTensorType
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from anchorline.cli import app as application
from anchorline.io import read_table
from helpers.commands import HOSTILE, SCORER


@pytest.fixture(scope="session")
def place(tmp_path_factory):
    """A folder with a table as spreadsheets write it, and models that were trained on it."""
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
    """Return a function that runs a command in the folder, in a new process, and captures both streams."""

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
    """The same without a new process, for many errors that differ only in their messages."""
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
