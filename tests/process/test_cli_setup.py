"""A table with columns that are not the model's: the command explains, and names --target on standard error."""

import json

from helpers.commands import FEW


def test_a_forgotten_target_is_named_and_never_a_reason(run):
    done = run("explain", "model.onnx", "--data", "train.csv", "--row", 3, *FEW, "--format", "json")
    assert done.returncode == 0
    assert done.stderr.count("\n") == 1
    assert "not fitted on 'approved'" in done.stderr
    assert "--target approved" in done.stderr
    explanation = json.loads(done.stdout)
    assert explanation["fixed"] == {"approved": "the model was not fitted on it"}
    assert "approved" not in [name for name, *_ in explanation["literals"]]


def test_a_batch_warns_once(run, tmp_path):
    out = tmp_path / "why.parquet"
    arguments = ("--model", "model.skops", "--data", "train.csv", "--out", out, "--jobs", 2, *FEW)
    done = run("batch", "train.csv", *arguments)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("--target approved") == 1
