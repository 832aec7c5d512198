"""`load_model` recognizes kinds of models, and never runs code from a file that is not trusted."""

import json
import logging
import pickle
import subprocess
import sys
from pathlib import Path

import joblib
import numpy as np
import pytest
import skops.io
import xgboost

from anchorline import errors
from anchorline.model.loaders import KINDS, load_model
from helpers.model_tables import COARSE, NUMBERS, TABLE, N


def test_a_function_by_name(tmp_path, monkeypatch):
    (tmp_path / "a_scorer.py").write_text(
        "def score(rows):\n    return rows[:, 0]\nclass Kept:\n    score = score\nnumber = 5\n"
    )
    (tmp_path / "a_broken_scorer.py").write_text("import no_such_thing_at_all\n")
    (tmp_path / "a_raising_scorer.py").write_text("1 / 0\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [p for p in sys.path if p not in ("", str(tmp_path))])
    before = list(sys.path)
    with pytest.raises(
        errors.ModelFileError, match=r"path has no module 'a_scorer'; the working directory is not searched"
    ):
        load_model("a_scorer:score")
    assert sys.path == before
    monkeypatch.syspath_prepend(tmp_path)
    assert load_model("a_scorer:score")(np.ones((2, 1))).tolist() == [1, 1]
    assert load_model("a_scorer:Kept.score")(np.ones((2, 1))).tolist() == [1, 1]
    for name, match in [
        ("a_scorer:none", "has no 'none'"),
        ("a_scorer:number", "holds an object of type int. It must be a function"),
        ("a_broken_scorer:score", "Importing 'a_broken_scorer' failed: No module named 'no_such_thing_at_all'"),
        ("a_raising_scorer:score", "ZeroDivisionError"),
    ]:
        with pytest.raises(errors.ModelFileError, match=match):
            load_model(name)


class Harm:
    """An object that runs code when it is unpickled: it creates a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (Path(self.path),)


@pytest.mark.parametrize(
    "name", ["m.pkl", "m.pickle", "m.joblib", "m.onnx", "m.json", "m.txt", "m.dat", "m.skops"]
)
@pytest.mark.parametrize("protocol", [0, 2, pickle.HIGHEST_PROTOCOL])
def test_a_malicious_pickle_is_not_run(tmp_path, name, protocol):
    path, harm = tmp_path / name, tmp_path / "harm"
    path.write_bytes(pickle.dumps(Harm(harm), protocol))
    with pytest.raises((errors.UntrustedError, errors.ModelFileError)) as raised:
        load_model(path)
    assert not harm.exists()
    if protocol or name.endswith(("kl", "kle", "lib")):
        assert raised.type is errors.UntrustedError
        assert "--trust-pickle" in str(raised.value)
    if name == "m.pkl":  # proves that unpickling would have run the code
        pickle.loads(path.read_bytes())
        assert harm.exists()


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("pickle", "open-inference", "mlflow")])
def test_no_other_kind_unpickles(tmp_path, kind):
    path, harm = tmp_path / "m.pkl", tmp_path / "harm"
    joblib.dump(Harm(harm), path)
    with pytest.raises(errors.AnchorlineError):
        load_model(path, kind=kind)
    assert not harm.exists()


@pytest.mark.parametrize("name", ["m.pkl", "m.joblib", "m.joblib.gz"])
def test_a_trusted_pickle_is_loaded_with_a_warning(fitted, tmp_path, caplog, name):
    joblib.dump(fitted, tmp_path / name)
    with caplog.at_level(logging.WARNING):
        loaded = load_model(tmp_path / name, kind="pickle", trust_pickle=True)
    assert "runs the code in it" in caplog.text
    np.testing.assert_array_equal(loaded.predict(TABLE), fitted.predict(TABLE))


def test_pickles_without_a_model(tmp_path):
    (tmp_path / "m.pkl").write_bytes(pickle.dumps([1, 2]))
    with pytest.raises(errors.ModelFileError, match="holds an object of type list"):
        load_model(tmp_path / "m.pkl", trust_pickle=True)
    (tmp_path / "m.pkl").write_bytes(b"\x80\x04nonsense")
    with pytest.raises(errors.ModelFileError, match="is not a pickle, or it is damaged"):
        load_model(tmp_path / "m.pkl", trust_pickle=True)


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(errors.ModelFileError, match="No such file"):
        load_model(tmp_path / "none.onnx")
    with pytest.raises(errors.ModelFileError, match="is a folder"):
        load_model(tmp_path)
    (tmp_path / "empty.onnx").touch()
    with pytest.raises(errors.ModelFileError, match="is empty"):
        load_model(tmp_path / "empty.onnx")
    (tmp_path / "model.xyz").write_text("what")
    with pytest.raises(
        errors.ModelFileError, match=r"xyz' is unknown. It must be a file that ends in .onnx, .skops"
    ):
        load_model(tmp_path / "model.xyz")
    with pytest.raises(errors.ModelFileError, match="cannot be read"):
        load_model("a\0b.onnx")
    with pytest.raises(errors.ParameterError, match="kind is 'onxx'"):
        load_model("model.onnx", kind="onxx")


def test_files_are_recognized_by_their_first_bytes(fitted, tmp_path):
    skops.io.dump(fitted, tmp_path / "model")
    assert hasattr(load_model(tmp_path / "model"), "predict_proba")
    xgboost.train({"nthread": 1}, xgboost.DMatrix(NUMBERS, COARSE), 1).save_model(tmp_path / "m.ubj")
    (tmp_path / "m.ubj").rename(tmp_path / "booster")
    assert load_model(tmp_path / "booster", kind="xgboost")(NUMBERS).shape == (N,)


def test_a_path_with_a_colon_is_a_file(tmp_path):
    with pytest.raises(errors.ModelFileError, match="cannot be read"):
        load_model(Path("os:system"))
    with pytest.raises(errors.ModelFileError, match="cannot be read"):
        load_model("./os:system")


@pytest.mark.parametrize(
    ("kind", "package", "extra"),
    [
        ("onnx", "onnxruntime", "onnx"),
        ("skops", "skops", "skops"),
        ("xgboost", "xgboost", "boosters"),
        ("lightgbm", "lightgbm", "boosters"),
        ("mlflow", "httpx", "http"),
    ],
)
def test_a_missing_package_is_named_with_its_extra(monkeypatch, tmp_path, kind, package, extra):
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.setitem(sys.modules, f"{package}.io", None)
    with pytest.raises(errors.MissingDependencyError, match=rf"pip install 'anchorline\[{extra}\]'"):
        load_model("http://localhost/invocations", kind=kind)


def test_importing_the_loader_loads_nothing_heavy():
    code = "import anchorline.model.loaders, sys; print(sorted({m.split('.')[0] for m in sys.modules}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    heavy = {
        "onnx",
        "onnxruntime",
        "skops",
        "sklearn",
        "xgboost",
        "lightgbm",
        "httpx",
        "pandas",
        "narwhals",
        "joblib",
    }
    assert not heavy & set(json.loads(done.stdout.replace("'", '"')))
