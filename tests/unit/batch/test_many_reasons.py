"""Reasons of many rows: the same records as one by one, favorable rows without, and errors before any letter."""

import numpy as np
import pandas as pd
import pytest

import anchorline as al
from anchorline.errors import ParameterError, RowError
from anchorline.result.explanations import REASON_COLUMNS

FRAME = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 3)), columns=["income", "debt", "age"])
CODES = {"income": ("R1", "Income too low"), "debt": ("R2", "Debt too high"), "age": ("R3", "Age")}


def score(rows):
    return rows["income"].to_numpy() - rows["debt"].to_numpy() + 0.1 * rows["age"].to_numpy()


@pytest.fixture(scope="module")
def explainer():
    return al.Explainer(score, FRAME, output="points", threshold=0.0)


@pytest.fixture(scope="module")
def many(explainer):
    return explainer.explain_many(FRAME[:8], queries=400, reasons={"codes": CODES, "reference": "near", "n": 2})


def test_records_are_those_of_single_rows(explainer, many):
    for row in range(8):
        found = many.reasons(row)
        assert (found is None) == (score(FRAME)[row] >= 0)
        if found is not None:
            one = explainer.reasons(FRAME.iloc[row], codes=CODES, reference="near", n=2, queries=400)
            assert found == one
            assert many.to_frame()["reason_codes"][row] == "; ".join(reason.code for reason in one)


def test_processes_shared_calls_and_files_change_nothing(explainer, many, tmp_path):
    keywords = {"queries": 400, "reasons": {"codes": CODES, "reference": "near", "n": 2}}
    for choice in ({"n_jobs": 2}, {"share_calls": True}):
        assert explainer.explain_many(FRAME[:8], **keywords, **choice).records == many.records
    many.to_parquet(tmp_path / "many.parquet")
    assert al.Explanations.from_parquet(tmp_path / "many.parquet").records == many.records
    assert {*REASON_COLUMNS} <= {*many.to_frame().columns}


def test_codes_alone_are_enough(explainer):
    many = explainer.explain_many(FRAME[:4], queries=400, reasons=CODES)
    assert many.to_frame()["reason_codes"].notna().sum() == (score(FRAME)[:4] < 0).sum()
    without = explainer.explain_many(FRAME[:1], queries=400)
    with pytest.raises(ParameterError, match="have no reasons"):
        without.reasons(0)


def test_errors_come_before_any_letter(explainer):
    with pytest.raises(ParameterError, match="codes for 'salary'"):
        explainer.explain_many(FRAME, reasons={"salary": ("R1", "x")})
    with pytest.raises(ParameterError, match="need a threshold"):
        al.Explainer(score, FRAME).explain_many(FRAME, reasons=CODES)
    with pytest.raises(RowError, match="UnmappedError: These reasons have no code"):
        explainer.explain_many(FRAME, queries=400, reasons={"age": ("R3", "Age")})
    kept = explainer.explain_many(FRAME[:4], queries=400, reasons={"age": ("R3", "Age")}, errors="keep")
    assert {failure.error_type for failure in kept.failures} == {"UnmappedError"}
