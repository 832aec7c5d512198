"""``anchorline reasons``: letters, pages, records that verify, and favorable rows."""

import json

import pytest

from anchorline.io import read_table
from anchorline.result.reasons import Reasons
from helpers.commands import error_line

BASE = (
    "reasons",
    "model.skops",
    "--data=train.csv",
    "--target",
    "approved",
    "--output",
    "yes",
    "--threshold",
    "0.5",
)
VERIFY = ("model.skops", "--data=train.csv", "--target", "approved")
CODES = """attribute,when,code,text
net income,low,R01,Income too low
net income,high,R02,Income too high
town; or place,,R03,Place of residence
children,,R04,Number of children
note,,R05,Note
"""


@pytest.fixture
def codes(tmp_path):
    path = tmp_path / "codes.csv"
    path.write_text(CODES)
    return path


@pytest.fixture(scope="module")
def declined(place):
    return read_table(place / "train.csv", backend="pandas")["approved"].tolist().index("no")


def test_a_letter_a_page_and_a_record_that_verifies(run_here, tmp_path, codes, declined):
    near = ("--row", declined, "--codes", codes, "--reference", "near")
    letter = run_here(*BASE, *near, "--letter")
    assert letter.returncode == 0, letter.stderr
    assert {*letter.stdout.splitlines()} <= {line.split(",")[-1] for line in CODES.splitlines()}
    details = run_here(*BASE, *near, "--details", "--recourse").stdout
    assert "that pass most narrowly" in details
    page, record = tmp_path / "file.html", tmp_path / "reasons.json"
    assert run_here(*BASE, *near, "--out", page).returncode == 0
    assert letter.stdout.splitlines()[0] in page.read_text()
    assert f"Row {declined}" in page.read_text()
    assert run_here(*BASE, *near, "--time", "2026-03-04", "--out", record).returncode == 0
    assert Reasons.from_json(record.read_text()).settings["time"] == "2026-03-04"
    verified = run_here("verify", record, *VERIFY)
    assert verified.returncode == 0, verified.stdout + verified.stderr
    assert verified.stdout.startswith("The list of reasons holds")
    record.write_text(record.read_text().replace("Income", "income"))
    assert run_here("verify", record, *VERIFY).returncode == 1


def test_favorable_rows_are_skipped(run_here, codes, declined):
    several = [part for row in range(8) for part in ("--row", row)]
    done = run_here(*BASE, *several, "--codes", codes, "--format", "json")
    assert done.returncode == 0, done.stderr
    records = [json.loads(line) for line in done.stdout.splitlines()]
    assert 0 < len(records) < 8
    assert all(record["prediction"] < 0.5 for record in records)
    assert done.stderr.count("is favorable") == 8 - len(records)


def test_errors_are_one_line_in_the_words_of_the_command(run_here, codes, declined):
    unmapped = run_here(*BASE, "--row", declined, "--codes", codes, "-n", 1, "--prohibited", "note")
    assert "prohibited" in error_line(unmapped, 6)
    codes.write_text("attribute,code,text\nchildren,R1,Children\n")
    unmapped = error_line(run_here(*BASE, "--row", declined, "--codes", codes), 6)
    assert "have no code" in unmapped
    assert "R01,Text of the letter in --codes" in unmapped
    several = run_here(*BASE, "--row", declined, "--row", declined + 1, "--codes", codes)
    assert f"Row {declined}: " in error_line(several, 6)
    assert "--codes FILE" in error_line(run_here(*BASE, "--row", declined, "--letter"), 2)
    none = run_here(*BASE[:5], "--row", declined)
    assert "Type --output yes --threshold 0.5." in error_line(none, 2)


def test_batch_adds_columns(run_here, tmp_path, codes):
    out = tmp_path / "why.parquet"
    command = ("batch", "train.csv", "--model", "model.skops", "--data", "train.csv", "--target", "approved")
    done = run_here(*command, *BASE[5:], "--codes", codes, "--reference", "near", "--queries", 300, "--out", out)
    assert done.returncode == 0, done.stderr
    frame = read_table(out, backend="pandas")
    assert frame["reasons"].notna().any()
    assert frame["reasons"].isna().any()  # favorable decisions
    assert ((frame["prediction"] < 0.5) == frame["reasons"].notna()).all()
