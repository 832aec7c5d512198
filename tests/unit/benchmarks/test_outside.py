"""What can be checked of the benchmarks that others wrote without their packages."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from anchorline.paper import Evidence, Problem, solve_exact
from benchmarks.outside import __main__ as outside
from benchmarks.outside import facts, page, solvers
from benchmarks.report import write_json

RESULTS = Path(__file__).parents[3] / "benchmarks" / "results"


def test_the_page_is_made_from_the_results(tmp_path):
    for file in RESULTS.glob("outside_*.json"):
        (tmp_path / file.name).write_text(file.read_text(encoding="utf-8"), encoding="utf-8")
    recorded = (RESULTS / "outside.md").read_text(encoding="utf-8")
    assert page.write_page(tmp_path).read_text(encoding="utf-8") == recorded
    assert recorded.count("Where others are better:") == recorded.count("\n## ") > 0


def test_every_requirement_is_pinned():
    files = sorted(page.HERE.glob("requirements-*.txt"))
    assert files == sorted({family.requirements for family in page.FAMILIES.values()})
    for file in files:
        lines = file.read_text(encoding="utf-8").splitlines()
        assert all(re.fullmatch(r"[\w.-]+==[\w.!]+", line) for line in lines), file
        names = [line.partition("==")[0].lower() for line in lines]
        assert len(set(names)) == len(names) > 5
    for family in page.FAMILIES.values():
        text = family.requirements.read_text(encoding="utf-8")
        assert all(f"{name}==" in text for name in family.packages)
        assert (page.HERE / f"{family.name}.py").exists()
        assert family.name in page.SHOWN


def test_a_family_that_cannot_run_is_named_with_its_error(data, tmp_path, monkeypatch, capsys):
    def fail(family):
        raise RuntimeError("ERROR: No matching distribution found for beexai==0.0.6")

    monkeypatch.setattr(outside, "prepared", fail)
    assert outside.main(["--data", str(data), "--out", str(tmp_path), "--only", "beexai", "--quick"]) == 0
    text = (tmp_path / "outside.md").read_text(encoding="utf-8")
    assert "Not measured:\n\n- beexai: `ERROR: No matching distribution found for beexai==0.0.6`" in text
    assert "Where others are better" not in text
    with pytest.raises(SystemExit):
        outside.main(["--data", str(tmp_path), "--quick"])
    with pytest.raises(SystemExit):
        outside.main(["--data", str(data), "--only", "nothing"])
    capsys.readouterr()


def test_the_last_error_of_a_command_is_shown(capsys):
    with pytest.raises(RuntimeError, match=r"^ValueError: the error$"):
        outside.run(["python3", "-c", "raise ValueError('the error')"])
    capsys.readouterr()


def test_losses_are_found_in_the_rows():
    def row(table, method, **figures):
        return {"task": "t", "table": table, "model": "m", "method": method, "rows": 1, "seconds": 1.0} | figures

    metrics = dict.fromkeys(page.BEEXAI, 1.0)
    rows = [row("a", name, queries=10, **metrics) for name in ("anchorline", "anchorline, from zero")]
    rows += [row("a", "LIME", queries=5, **metrics | {"FaithCorr": 2.0, "Infidelity": 3.0})]
    family = page.FAMILIES["beexai"]
    found = page.lose_metrics(page.BEEXAI)(rows, family.why)
    assert [line.split(" (")[0] for line in found[:-1]] == ["FaithCorr"]
    assert "anchorline: 1 of 1" in found[0]
    assert found[-1].startswith("queries: 10 on average, theirs 5")


def test_another_method_that_leaves_less_error_is_named(tmp_path):
    about = {"table": "a", "model": "m", "law": "all rows", "facts": 3, "rows": 2, "stated": 3.0}
    rows = [
        about | {"method": "anchorline", "remaining": 0.5, "pooled": 0.5, "seconds": 1.0},
        about | {"method": "SLISE", "remaining": 0.25, "pooled": 0.5, "seconds": 2.0},
    ]
    write_json(tmp_path, page.FAMILIES["facts"].file, rows)
    text = page.write_page(tmp_path).read_text(encoding="utf-8")
    assert "| all rows | 3 | SLISE | 1 | 3 | 3 | 0.25 | 0.5 | 0.5 | 0.5 | 2 |" in text
    assert "- All rows, 3 facts: SLISE in 1 of 1: " in text
    assert "LORE takes" not in text


def test_facts_of_others_are_read_as_rows():
    table = np.array([[1.0, 0.0], [2.0, 1.0], [3.0, 1.0]])
    assert facts.held(table, "x0 <= 2.0").rows.tolist() == [True, True, False]
    assert facts.held(table, "x1 = 1").rows.tolist() == [False, True, True]
    assert facts.held(table, "x1 != 1").column == 1
    with pytest.raises(ValueError, match="cannot be read"):
        facts.held(table, "age <= 2")


def test_the_problem_of_the_solvers_is_plain_best_subset_selection():
    rng = np.random.default_rng(0)
    flips, drops = rng.random((60, 6)) < 0.4, rng.uniform(-1, 1, size=60)
    evidence = Evidence.from_sample(flips, drops)
    found = solve_exact(solvers.BestSubset(evidence, 3, 0.9, box=None))
    pairs = [
        np.mean((drops - flips[:, pair] @ np.linalg.lstsq(flips[:, pair], drops, rcond=None)[0]) ** 2)
        for pair in ([i, j] for i in range(6) for j in range(i))
    ]
    assert found.objective == pytest.approx(min(pairs), abs=1e-12)
    assert solve_exact(Problem(evidence, 3, 0.9, box=None)).objective <= found.objective + 1e-12


def test_results_hold_no_machine_paths():
    for file in [*RESULTS.glob("outside*")]:
        assert not re.search(r"/(tmp|root|home|work)/", file.read_text(encoding="utf-8")), file
    for file in RESULTS.glob("outside_*.json"):
        assert json.loads(file.read_text(encoding="utf-8"))["rows"]
