"""The exit code and the one line of every failure of the command line."""

import json
import re

import pytest

from anchorline.cli.codes import Code
from anchorline.result.explanation import Explanation
from helpers.command_lines import explain
from helpers.commands import error_line


@pytest.mark.parametrize("command", ["explain", "frontier", "verify"])
def test_what_a_model_prints_is_no_result(run_here, tmp_path, command):
    arguments = explain("scorer:printing", "--row", 3, "--format", "json")
    if command == "frontier":
        arguments = ("frontier", "scorer:printing", "--data=train.csv", "--target=approved", "--row=3", "-k", "2")
    if command == "verify":
        assert run_here(*explain("scorer:score", "--row", 3, "--out", tmp_path / "why.json")).returncode == 0
        arguments = ("verify", tmp_path / "why.json", "scorer:printing", "--data=train.csv", "--target=approved")
    done = run_here(*arguments)
    assert done.returncode == 0
    assert set(done.stderr.splitlines()) == {"printed by the model"}
    assert "printed by the model" not in done.stdout
    if command == "explain":
        assert Explanation.from_json(done.stdout).queries.total > 200


def test_lines_of_json_are_verified_one_by_one(run_here, tmp_path):
    out = tmp_path / "why.jsonl"
    assert run_here(*explain("scorer:score", "--row", 3, "--row", 4, "--out", out)).returncode == 0
    check = ("verify", out, "scorer:score", "--data=train.csv", "--target", "approved")
    done = run_here(*check)
    assert (done.returncode, done.stderr) == (Code.OK, "")
    assert re.fullmatch(r"Line 1\. The explanation holds.*\nLine 2\. The explanation holds.*\n", done.stdout)
    first, second = out.read_text().splitlines()
    out.write_text("\n".join([first, second.replace('"k":3', '"k":4')]))
    done = run_here(*check)
    assert done.returncode == Code.DOES_NOT_HOLD
    assert "Line 1. The explanation holds" in done.stdout
    assert "Line 2. The explanation does not hold: The SHA-256" in done.stdout
    out.write_text(json.dumps(json.loads(first), indent=2))  # any other layout of the same JSON
    assert "Line" not in run_here(*check).stdout


def test_does_not_hold(run_here, tmp_path):
    out = tmp_path / "why.json"
    assert run_here(*explain("scorer:score", "--row", 3, "--out", out)).returncode == 0
    check = ("verify", out, "scorer:score", "--data=train.csv")
    done = run_here(*check, "--fixed", "note", "--target", "approved")
    assert (done.returncode, done.stderr) == (Code.DOES_NOT_HOLD, "")
    assert "made with a different table" in done.stdout
    out.write_text(out.read_text().replace('"k":3', '"k":4'))
    done = run_here(*check, "--target", "approved")
    assert done.returncode == Code.DOES_NOT_HOLD
    assert "The SHA-256 does not match" in done.stdout


def test_cannot_tell(run_here, tmp_path):
    out = tmp_path / "why.json"
    assert run_here(*explain("scorer:score", "--row", 3, "--out", out)).returncode == 0
    done = run_here("verify", out, "scorer:broken", "--data=train.csv", "--target", "approved")
    assert (done.returncode, done.stderr) == (Code.CANNOT_TELL, "")
    assert "the model could not be asked" in done.stdout
    assert len(done.stdout.splitlines()) == 1


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        (("explain", "scorer:score", "--data=train.csv", "--frobnicate"), "No such option"),
        (("explain", "scorer:score"), "--data"),
        (explain("scorer:score"), "Neither --row nor --rows is given"),
        (explain("scorer:score", "--row", "first"), "Invalid value for '--row'"),
        (explain("scorer:score", "--row", -1), "Invalid value for '--row'"),
        (explain("scorer:score", "--row", 0, "-k", 0), "-k is 0"),
        (explain("scorer:score", "--row", 0, "--queries", 5), "Type --queries 300, or --queries auto."),
        (explain("scorer:score", "--row", 0, "--sigma", -1), "--sigma is -1"),
        (explain("scorer:score", "--row", 0, "--confidence", 2), "Type --confidence 0.95."),
        (explain("scorer:score", "--row", 0, "--cut", "note=3"), "only numbers and dates are cut"),
        (explain("scorer:score", "--row", 0, "--cut", "children"), "must have the form COLUMN=VALUE"),
        (explain("scorer:score", "--row", 0, "--fixed", "age"), "--fixed has 'age'"),
        (explain("scorer:score", "--row", 0, "--threshold", "nan"), "Type --threshold 0.5."),
        (explain("scorer:score", "--row", 0, "--output-range", 1, 0), "Type --output-range 0 1."),
        (explain("scorer:score", "--row", 0, "--queries", "many"), "--queries is 'many'"),
        (
            explain("scorer:score", "--row", 0, "--cut", "children=abc"),
            "--cut children is ['abc']; it must list finite numbers (could not convert string to float: 'abc'). "
            "Type --cut children=30,40.",
        ),
        (explain("scorer:score", "--row", 0, "--group", "a"), "must have the form NAME=A,B"),
        (explain("scorer:score", "--row", 0, "--format", "png"), "a picture needs a file"),
        (explain("scorer:score", "--row", 0, "--row", 1, "--out", "a.html"), "'explanation-{row}.html'"),
        (
            explain("scorer:score", "--row", 0, "--out", "a.pdf"),
            "'a.pdf', whose format is unknown. Type a name that ends in .txt, .json",
        ),
        (
            ("frontier", "scorer:score", "--data=train.csv", "--row=0", "--out=f.json"),
            "ends in .txt, .png, or add --format",
        ),
        (
            ("frontier", "scorer:score", "--data=train.csv", "--row=0", "--queries=3.5"),
            "--queries is '3.5'",
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
            "Both --resume and --overwrite are given, but only one is allowed",
        ),
        (("frontier", "scorer:score", "--data=train.csv", "--row=0", "--format=png"), "a picture needs a file"),
        (("paint",), "No such command"),
        (("bench",), "Missing command"),
        (("bench", "paper", "--protocol", "mine"), "Invalid value for '--protocol'"),
        (("bench", "paper", "--workers", 0), "Invalid value for '--workers'"),
        (("bench", "peers"), "Missing option '--data'"),
        ((), "Missing command"),
    ],
)
def test_wrong_usage(run_here, arguments, match):
    assert match in error_line(run_here(*arguments), Code.USAGE)


@pytest.mark.parametrize(
    ("option", "match"),
    [
        ("--samples", "no option --samples: --queries counts all neighbors together."),
        ("--budget", "--queries is that number."),
        ("--bins", "Add cuts by --cut age=40."),
        ("--objective", "`explainer.rule(row)` finds facts that keep the decision."),
        ("--within", "The law of neighbors no longer depends on how facts are stated."),
        ("--column", "--output takes the name of a class or its number."),
    ],
)
def test_a_removed_option_names_its_successor(run_here, option, match):
    assert match in error_line(run_here(*explain("scorer:score", "--row", 0, option, 5)), Code.USAGE)


def test_wrong_usage_of_the_process(run):
    assert "Neither --row nor --rows is given" in error_line(run(*explain("scorer:score")), Code.USAGE)
    assert "No such command 'paint'" in error_line(run("paint"), Code.USAGE)


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        (explain("scorer:score", "--row", 0, data="none.csv"), "No such file"),
        (explain("none.onnx", "--row", 0), "No such file"),
        (explain("scorer:none", "--row", 0), "has no 'none'"),
        (explain("scorer:score", "--row", 9999), "rows 0 to 119"),
        (explain("scorer:score", "--row", 0, "--target", "none"), "no column 'none'"),
        (explain("model.txt", "--row", 0, "--target", "note"), "lack 'note', which the model needs"),
        (("bench", "paper", "--data", "modules"), "The folder 'modules' holds no data set of the paper"),
        (("bench", "peers", "--data", "none"), "Type `--data DIR`"),
        (("verify", "none.json", "scorer:score", "--data=train.csv"), "No such file"),
        (("verify", "train.csv", "scorer:score", "--data=train.csv"), "not JSON"),
    ],
)
def test_input_that_cannot_be_used(run_here, arguments, match):
    assert match in error_line(run_here(*arguments), Code.INPUT)


def test_a_model_that_raises(run_here, run):
    line = error_line(run_here(*explain("scorer:broken", "--row", 0)), Code.MODEL)
    assert "The model raised RuntimeError: no more" in line
    assert "The model raised SystemExit(0)." in error_line(
        run_here(*explain("scorer:leaving", "--row", 0)), Code.MODEL
    )
    done = run(*explain("scorer:broken", "--row", 0, "--debug"))
    assert done.returncode == Code.MODEL
    assert "Traceback (most recent call last)" in done.stderr
    assert "scorer.py" in done.stderr


def test_a_missing_package(run, tmp_path):
    whys = {"ModuleNotFoundError": "is not installed", "ImportError": "cannot be imported here (no)"}
    for raised, why in whys.items():
        (tmp_path / "onnxruntime.py").write_text(f"raise {raised}('no')")
        line = error_line(run(*explain("model.onnx", "--row", 0), env={"PYTHONPATH": str(tmp_path)}), Code.MISSING)
        assert f"onnxruntime`, which {why}. Type: pip install" in line
        assert "'anchorline[onnx]'" in line


def test_a_bug_is_called_one(run, tmp_path):
    (tmp_path / "hurt.py").write_text(
        "import anchorline.explainer\n"
        "def score(rows):\n    return 1\n"
        "def fail(*_, **__):\n    raise ZeroDivisionError('oh')\n"
        "anchorline.explainer.Explainer.explain = fail\n"
    )
    line = error_line(run(*explain("hurt:score", "--row", 0), env={"PYTHONPATH": str(tmp_path)}), Code.BUG)
    assert "This is a bug in anchorline: ZeroDivisionError: oh" in line
