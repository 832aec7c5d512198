"""The claims of the paper, the experiments that support the reasons, and the format of tables."""

import pathlib

import numpy as np
import pandas as pd

from benchmarks import datasets
from benchmarks.experiments import page, probes, protocol
from benchmarks.experiments.claims import CLAIMS, Finding, bootstrap_interval
from benchmarks.experiments.page import REASONS
from benchmarks.experiments.protocol import Setting
from benchmarks.experiments.results import Results
from benchmarks.experiments.tables import Table


def results_of(**curves):
    """Return results with only a sweep over m; each curve is a list of values at m = 100, 1000 and 10000."""
    rows = [
        {
            "series": "sweep_m",
            "protocol": "paper",
            "dataset_id": i,
            "instance": 0,
            "method": name,
            "m": m,
            "relevance": value,
        }
        for name, values in curves.items()
        for i in protocol.SWEPT
        for m, value in zip((100, 1000, 10_000), values, strict=True)
    ]
    return Results.from_rows(rows)


def check(name, results):
    return next(claim for claim in CLAIMS if claim.name == name).check(results, "paper")


def test_a_plateau_is_where_the_curve_stays():
    flat = results_of(exact=[0.2, 0.101, 0.1])
    late = "; from m = 1000 within {} of the last value"
    assert check("plateaus", flat) == Finding("1000 / 1000 / 1000 / 1000" + late.format("1.0%"), True)
    falling = Finding("10000 / 10000 / 10000 / 10000" + late.format("100.0%"), False)
    assert check("plateaus", results_of(exact=[0.3, 0.2, 0.1])) == falling


def test_few_samples_of_ours_against_many_of_limes():
    wins = results_of(exact=[0.1, 0.1, 0.1], iht=[0.1, 0.1, 0.1], lime=[0.3, 0.3, 0.2])
    assert check("hundred", wins).agrees
    loses = check("hundred", results_of(exact=[0.25, 0.1, 0.1], iht=[0.1, 0.1, 0.1], lime=[0.3, 0.3, 0.2]))
    assert not loses.agrees
    assert "COMPAS 0.2500 compared with 0.2000, +0.0500" in loses.text


def test_what_was_not_measured_is_no_verdict():
    assert check("monotone", results_of(exact=[1, 1, 1])).agrees is None
    assert page.verdict_of({"paper": Finding("", None)}) == "-"


def test_verdicts_join_the_protocols():
    yes, no = Finding("", True), Finding("", False)
    assert page.verdict_of({"paper": yes, "code": yes}) == "agrees"
    assert page.verdict_of({"paper": yes, "code": no}) == "in part"
    assert page.verdict_of({"paper": no}) == "disagrees"


def test_claims_have_names_of_their_own_and_reasons_belong_to_them():
    names = [claim.name for claim in CLAIMS]
    assert len(set(names)) == len(names)
    assert set(REASONS) <= set(names)
    assert all(claim.agrees_if for claim in CLAIMS)


def test_every_claim_that_disagrees_on_the_committed_page_has_its_reason():
    committed = pathlib.Path(__file__).parents[3] / "benchmarks" / "paper" / "results.parquet"
    results = Results(pd.read_parquet(committed))
    assert results.protocols == ["paper", "code"]
    for claim in CLAIMS:
        disagrees = page.verdict_of(page.findings_of(claim, results)) in ("disagrees", "in part")
        assert disagrees == (claim.name in REASONS), claim.name


def test_instances_drawn_again_move_a_figure_by_as_much_as_they_differ():
    assert bootstrap_interval([np.full((10, 2), 3.0)], lambda means: means[0, 0]) == "3.0 to 3.0"
    low, high = bootstrap_interval([np.array([[0.0], [10.0]] * 5)], lambda means: means[0, 0]).split(" to ")
    assert 1 <= float(low) <= 3
    assert 7 <= float(high) <= 9


def test_adult_is_coded_as_openml_has_it():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({name: rng.integers(1, 90, size=400) for name in probes.CODED} | {"sex": "F"})
    frame["capital-gain"] *= rng.random(400) > 0.9
    coded = probes.coded_adult(datasets.Dataset(179, "Adult", "classification", frame, np.zeros(400))).frame
    assert [coded[name].nunique() for name in frame] == [5, 6, 5, 5, 1]
    assert (coded["capital-gain"][frame["capital-gain"] == 0] == "bin 0").all()
    assert frame["age"].dtype.kind == "i"  # the caller's table is unchanged


def test_probes_are_measured_and_told(task):
    made = probes.Probe("COMPAS", task.benchmark, "code", 7, [Setting(k=3, m=500)], ("exact", "lime"))
    rows = pd.DataFrame(made.rows())
    assert set(rows["method"]) == {"exact", "lime"}
    assert (rows["network"] == 7).all()
    points = [(k, 1.0) for k in (1, 5)] + [(5, sigma) for sigma in (0.0, 1.75)]
    adult = pd.DataFrame(
        {
            "probe": "coded Adult",
            "protocol": "code",
            "d": 42,
            "k": k,
            "sigma": s,
            "method": m,
            "relevance": 0.4 - s / 7,
        }
        for k, s in points
        for m in ("exact", "iht")
    )
    nomao = pd.concat([rows.assign(probe="Nomao", instance=i) for i in range(5)])
    first, second = probes.summary(pd.concat([adult, rows, rows.assign(protocol="paper"), nomao]))
    fall = "by protocol code, the relevance error falls by a factor of 2.7 from sigma = 0 to 1.75"
    assert f"d = 42 (published: 42); {fall}" in first
    assert "largest increase from one k to the next is exact 0.0000, iht 0.0000" in first
    assert "over 1 networks" in second
    assert "By protocol paper, with 1 seeds" in second


def test_latex_is_escaped():
    table = Table("t", "50% of a_b", "x ± y", ("A", "B"), (("1 & 2", "3"),))
    text = table.to_latex()
    assert r"50\% of a\_b" in text
    assert r"1 \& 2 & 3 \\" in text
    assert r"$\pm$" in text
