"""``anchorline rule``: texts, pages, JSON that verifies, and the exit code if facts do not hold often enough."""

import json

import pytest

from anchorline.result.rule import Rule
from helpers.commands import error_line

BASE = ("rule", "scorer:score", "--data=train.csv", "--target", "approved")
ABOVE = ("--threshold", "0.5", "--output-range", "0", "1")
VERIFY = ("scorer:score", "--data=train.csv", "--target", "approved")


def test_the_rule_of_a_row_is_printed(run_here):
    done = run_here(*BASE, *ABOVE, "--row", 3)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Rule for ")
    assert "net income" in done.stdout
    details = run_here(*BASE, *ABOVE, "--row", 3, "--details").stdout
    assert details.startswith(done.stdout.rstrip("\n"))
    assert len(details) > len(done.stdout)
    several = run_here(*BASE, *ABOVE, "--row", 3, "--row", 4)
    assert several.stdout.startswith("Row 3\n")
    assert "\nRow 4\n" in several.stdout


def test_json_has_every_option_and_is_verified(run_here, tmp_path):
    path = tmp_path / "rule.json"
    chosen = ("--holds", 0.9, "-k", 3, "--sigma", 0.5, "--queries", 4000, "--seed", 7, "--confidence", 0.9)
    done = run_here(*BASE, *ABOVE, "--row", 3, *chosen, "--out", path)
    assert done.returncode == 0, done.stderr
    rule = Rule.from_json(path.read_text())
    assert dict(rule.settings) == {
        "holds": 0.9,
        "k": 3,
        "within": None,
        "sigma": 0.5,
        "queries": 4000,
        "seed": 7,
        "confidence": 0.9,
    }
    verified = run_here("verify", path, *VERIFY)
    assert verified.returncode == 0, verified.stdout + verified.stderr
    assert verified.stdout.startswith("The rule holds")
    path.write_text(path.read_text().replace("0", "1", 1))
    assert run_here("verify", path, *VERIFY).returncode == 1


def test_several_rows_are_lines_that_are_verified(run_here, tmp_path):
    path = tmp_path / "rules.jsonl"
    done = run_here(*BASE, *ABOVE, "--row", 3, "--row", 4, "--format", "json", "--queries", 2000)
    assert done.returncode in (0, 6), done.stderr
    assert [json.loads(line)["kind"] for line in done.stdout.splitlines()] == ["rule", "rule"]
    path.write_text(done.stdout)
    verified = run_here("verify", path, *VERIFY)
    assert verified.returncode == 0, verified.stdout + verified.stderr
    assert verified.stdout.startswith("Line 1. The rule holds")
    assert "\nLine 2. The rule holds" in verified.stdout


def test_the_same_command_gives_the_same_bytes_in_a_new_process(run, run_here):
    here = run_here(*BASE, *ABOVE, "--row", 3, "--format", "json").stdout
    assert run(*BASE, *ABOVE, "--row", 3, "--format", "json").stdout == here


def test_pages_and_pictures(run_here, tmp_path):
    page = run_here(*BASE, *ABOVE, "--row", 3, "--format", "html", "--queries", 2000)
    assert page.stdout.startswith("<!DOCTYPE html>")
    done = run_here(*BASE, *ABOVE, "--row", 3, "--row", 4, "--queries", 2000, "--out", tmp_path / "rule-{row}.png")
    assert done.returncode in (0, 6), done.stderr
    assert [path.read_bytes()[:4] for path in sorted(tmp_path.glob("*.png"))] == [b"\x89PNG"] * 2


def test_a_rule_that_does_not_hold_often_enough(run_here):
    done = run_here(*BASE, *ABOVE, "--row", 3, "--holds", "0.9999", "-k", 1, "--format", "json")
    assert done.returncode == 6
    assert json.loads(done.stdout)["verdict"] in ("falls_short", "undecided")
    most = run_here(*BASE, *ABOVE, "--row", 3, "--holds", "none", "-k", 1, "--format", "json")
    assert most.returncode == 0, most.stderr
    assert json.loads(most.stdout)["verdict"] == "measured"


def test_a_number(run_here):
    number = run_here(*BASE, "--row", 3, "--within", 0.2, "--format", "json")
    assert number.returncode in (0, 6), number.stderr
    assert json.loads(number.stdout)["within"] == 0.2


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ((), "Neither --row nor --rows"),
        (("--row=3", "--holds=95"), "--holds is 95.0, but it must be"),
        (("--row=3", "--holds=most"), "--holds is 'most', but it must be a share or none. Type: --holds 0.95"),
        (("--row=3", "--holds=0"), "--holds is 0.0"),
        (("--row=3", "-k", "0"), "-k is 0, but it must be a whole number >= 1. Type -k 4."),
        (("--row=3", "--within=-1"), "--within is -1.0"),
        (("--row=3", "--within=0.1", *ABOVE), "--within is 0.1, but the model returns decisions"),
        (("--row=3", "--queries=10"), "--queries is 10"),
        (("--row=3", "--queries=few"), "--queries is 'few'"),
        (("--row=3", "--confidence=1"), "--confidence is 1.0"),
        (("--row=3", "--sigma=-1"), "--sigma is -1.0"),
        (("--row=3", "--row=4", "--out=rule.html"), "needs one file per row"),
        (("--row=3", "--out=rule.pdf"), "whose format is unknown"),
        (("--row=3", "--text=hello"), "needs no table"),
        (("--row=3", "--hold=0.9"), "No such option: --hold"),
    ],
)
def test_wrong_usage(run_here, more, words):
    assert words in error_line(run_here(*BASE, *more), 2)


def test_a_row_that_is_not_there(run_here):
    assert "9999" in error_line(run_here(*BASE, "--row=9999"), 3)
