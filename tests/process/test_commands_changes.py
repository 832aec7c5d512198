"""``anchorline changes``: texts, JSON that verifies, wishes, and the exit code if nothing turns."""

import json

import pytest

from helpers.commands import error_line

BASE = ("changes", "scorer:score", "--data=train.csv", "--target", "approved")
ABOVE = ("--threshold", "0.5", "--output-range", "0", "1")


def test_the_changes_of_a_row_are_printed(run_here):
    done = run_here(*BASE, *ABOVE, "--row", 3)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("The model's output falls below 0.5 with one change: net income ")
    assert "Tried: " not in done.stdout
    details = run_here(*BASE, *ABOVE, "--row", 3, "--details").stdout
    assert details.startswith(done.stdout)
    assert "Tried: " in details
    several = run_here(*BASE, *ABOVE, "--row", 3, "--row", 4, "-n", 1)
    assert several.stdout.startswith("Row 3\n")
    assert "\nRow 4\n" in several.stdout


def test_json_is_verified(run_here, tmp_path):
    path = tmp_path / "changes.json"
    done = run_here(*BASE, *ABOVE, "--row", 3, "--out", path)
    assert done.returncode == 0, done.stderr
    assert json.loads(path.read_text())["kind"] == "changes"
    verified = run_here("verify", path, "scorer:score", "--data=train.csv", "--target", "approved")
    assert verified.returncode == 0, verified.stdout + verified.stderr
    assert verified.stdout.startswith("The list of changes holds")
    path.write_text(path.read_text().replace("0", "1", 1))
    assert run_here("verify", path, "scorer:score", "--data=train.csv", "--target", "approved").returncode == 1


def test_wishes_and_goals(run_here):
    kept = run_here(
        *BASE, *ABOVE, "--row", 3, "--fixed", "town; or place", "--cost", "children=3", "--format", "json"
    )
    body = json.loads(kept.stdout)
    assert all(move["attribute"] != "town; or place" for option in body["options"] for move in option["moves"])
    nothing = run_here(*BASE, "--row", 3, "--goal", ">= 0.95", "-k", 2)
    assert nothing.returncode == 6
    assert (
        "No change of up to two facts to values in the table makes the model's output reach 0.95."
        in nothing.stdout
    )
    page = run_here(
        *BASE, *ABOVE, "--row", 3, "--format", "html", "--allow", "net income=-9..9", "--allow", "children=1,2"
    )
    assert page.stdout.startswith("<!DOCTYPE html>")


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (
            ("--row=3", "--goal=>= 0"),
            "The row already meets --goal, so nothing has to change. Pick another --goal, or leave it out.",
        ),
        (
            ("--row=3", "--goal=approved"),
            "but the model's output is a number. Type --goal '>=",
        ),
        (("--row=3",), "for a move. Or type --threshold NUMBER."),
        (("--row=3", "--allow=children"), "must have the form COLUMN=VALUE"),
        (("--row=3", "--cost=children=x"), "must be a number"),
        ((), "Neither --row nor --rows"),
        (("--row=3", "--direction=town; or place=up", *ABOVE), "holds categories"),
    ],
)
def test_wrong_usage(run_here, more, words):
    assert words in error_line(run_here(*BASE, *more), 2)
