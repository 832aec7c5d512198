"""Codes, errors, prohibited attributes, recourse, the record and its verification."""

import json
import pickle
import re

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier

import anchorline as al
from anchorline.errors import (
    FavorableError,
    FormatError,
    ParameterError,
    ProhibitedError,
    ReasonsError,
    TamperedError,
    UnmappedError,
)
from anchorline.result.codes import Codes
from anchorline.result.verification import Outcome
from anchorline.samples import loans
from helpers.sealing import resealed, with_change

FRAME, DECISION = loans(1000)
FRAME = FRAME[["age", "income", "debt", "employed_years", "purpose", "owner"]]
CODES = {
    "age": {"low": ("R06", "Age below the usual"), "high": ("R07", "Age above the usual")},
    "income": {"low": ("R01", "Income too low"), "high": ("R02", "Income too high")},
    "debt": ("R03", "Debt too high"),
    "employed_years": {"missing": ("R08", "Employment not stated"), "": ("R04", "Employed for too short a time")},
    "purpose": {"= business": ("R09", "Business loans are riskier"), "": ("R10", "Purpose of the loan")},
    "owner": ("R05", "No home of your own"),
}


@pytest.fixture(scope="module")
def model():
    frame = FRAME.assign(purpose=FRAME["purpose"].astype("category"))
    return HistGradientBoostingClassifier(max_iter=30, random_state=0, categorical_features="from_dtype").fit(
        frame, DECISION
    )


@pytest.fixture(scope="module")
def table():
    return al.Table(FRAME.assign(purpose=FRAME["purpose"].astype("category")))


@pytest.fixture(scope="module")
def explainer(model, table):
    return al.Explainer(model, table, output="approved", threshold=0.5)


@pytest.fixture(scope="module")
def declined(model):
    frame = FRAME.assign(purpose=FRAME["purpose"].astype("category"))
    return frame[model.predict_proba(frame)[:, 0] < 0.4]


@pytest.fixture(scope="module")
def found(explainer, declined):
    return explainer.reasons(declined.iloc[0], codes=CODES, reference="near", recourse=True, time="2026-03-04")


class TestCodes:
    def test_forms_are_equal_and_have_one_hash(self, tmp_path):
        codes = Codes.of(CODES)
        (tmp_path / "codes.json").write_text(json.dumps(CODES))
        lines = ["attribute,when,code,text", *(",".join(entry) for entry in codes.entries)]
        (tmp_path / "codes.csv").write_text("\n".join(lines), encoding="utf-8-sig")
        others = [
            Codes.of(str(tmp_path / "codes.json")),
            Codes.of(tmp_path / "codes.csv"),
            Codes.of(codes.entries),
        ]
        assert {each.sha256 for each in others} == {codes.sha256}
        changed = Codes.of(CODES | {"debt": ("R03", "Debt too  high")})
        assert changed.sha256 != codes.sha256

    def test_the_most_special_entry_is_taken(self):
        codes = Codes.of(CODES)
        assert codes.find("purpose", "business", None) == ("R09", "Business loans are riskier")
        assert codes.find("purpose", "car", None) == ("R10", "Purpose of the loan")
        assert codes.find("employed_years", None, None) == ("R08", "Employment not stated")
        assert codes.find("income", 9, "high") == ("R02", "Income too high")
        assert Codes.of({"n": {"= 3": ("a", "b")}}).find("n", 3.0, "low") == ("a", "b")

    @pytest.mark.parametrize(
        ("given", "message"),
        [
            ({"income": "R01"}, "not a code and a text"),
            ({"income": ("R01", "")}, "not two texts"),
            ({"income": {"lower": ("R01", "x")}}, "for 'lower', but they must be"),
            (["income"], "which does not map attributes"),
            ("nowhere.csv", "^codes is 'nowhere.csv', but there is no such file. Pass a CSV file"),
            ("/", "but that is not a file that can be read"),
            ([("a", "", "b", "c"), ("a", "", "d", "e")], "has two codes"),
        ],
    )
    def test_errors_say_what_is_needed(self, given, message):
        with pytest.raises(ParameterError, match=message):
            Codes.of(given)

    def test_a_code_of_an_unknown_attribute_is_an_error(self, explainer, declined):
        with pytest.raises(ParameterError, match="codes for 'salary', but the attributes are 'age'"):
            explainer.reasons(declined.iloc[0], codes={"salary": ("R01", "x")})

    def test_an_error_lists_every_unmapped_attribute(self, explainer, declined, found):
        with pytest.raises(UnmappedError, match="have no code") as caught:
            explainer.reasons(declined.iloc[0], codes={"owner": ("R05", "x")}, reference="near")
        for name in {reason.attribute for reason in found} - {"owner"}:
            assert repr(name) in str(caught.value)
        assert "Attributes without any code: 'age', 'income'" in str(caught.value)
        assert isinstance(pickle.loads(pickle.dumps(caught.value)), UnmappedError)


def test_directions_are_those_of_better_values(explainer, declined):
    """A text about a value too low is taken if higher values score better, whatever the median."""
    for place in range(8):
        row = declined.iloc[place]
        found = explainer.reasons(row)
        stated = {reason.attribute: found.shortfall(reason.attribute).direction for reason in found}
        assert stated.get("income", "low") == "low"
        assert stated.get("debt", "high") == "high"
        assert stated.get("purpose") is None


def test_the_other_side_may_be_adverse(model, table, declined, found):
    risk = al.Explainer(model, table, output="declined", threshold=0.5)
    with pytest.raises(FavorableError, match="type adverse='above'"):
        risk.reasons(declined.iloc[0])
    other = risk.reasons(declined.iloc[0], adverse="above", reference="near", codes=CODES)
    assert other.reference.n_rows == found.reference.n_rows
    assert other.reference.high < 0.5 <= found.reference.low
    assert other.letter() == found.letter()
    assert [each.value for each in other.shortfalls] == pytest.approx([each.value for each in found.shortfalls])


class TestErrors:
    """Each is one line that says what to do."""

    def test_no_threshold(self, model, table, declined):
        with pytest.raises(ParameterError, match=r"need a threshold.*Type Explainer\(model, table, output="):
            al.Explainer(model, table).reasons(declined.iloc[0])
        with pytest.raises(ParameterError, match="'near' needs a threshold"):
            al.Explainer(model, al.Table(FRAME, reference="near")).explain(FRAME.iloc[0])
        with pytest.raises(ParameterError, match="nothing says which one the threshold is for"):
            al.Explainer(model, table, threshold=0.5).reasons(declined.iloc[0])

    def test_approved(self, explainer, model, declined):
        frame = FRAME.assign(purpose=FRAME["purpose"].astype("category"))
        approved = frame[model.predict_proba(frame)[:, 0] >= 0.5]
        with pytest.raises(FavorableError, match="favorable, so nothing is adverse"):
            explainer.reasons(approved.iloc[0], codes=CODES)
        worse = al.Explainer(lambda rows: rows[:, 0], np.arange(50.0).reshape(-1, 1), output="s", threshold=70)
        with pytest.raises(ReasonsError, match="No attribute is adverse compared with this reference"):
            worse.reasons([60.0])

    def test_empty_reference(self, explainer, model, table, declined):
        with pytest.raises(ParameterError, match="it must have at least one row"):
            explainer.reasons(declined.iloc[0], reference=declined[:0])
        with pytest.raises(ParameterError, match=r"'near' is empty: none of 1,000 rows .* Type another threshold"):
            al.Explainer(model, table, output="approved", threshold=0.9999).reasons(
                declined.iloc[0], reference="near"
            )
        with pytest.raises(ParameterError, match="it must be a frame, 'all' or 'near'"):
            al.Table(FRAME, reference="nearby")
        with pytest.raises(ParameterError, match="reference is 'nearby', but it must be"):
            explainer.reasons(declined.iloc[0], reference="nearby")

    def test_a_fixed_column_cannot_be_hidden(self, model, declined):
        fixed = al.Table(FRAME.assign(purpose=FRAME["purpose"].astype("category")), fixed=["age"])
        with pytest.raises(ParameterError, match="fixed holds 'age', which the model reads"):
            al.Explainer(model, fixed, output="approved", threshold=0.5).reasons(declined.iloc[0])

    def test_a_letter_needs_texts(self, explainer, declined):
        with pytest.raises(ReasonsError, match="without codes"):
            explainer.reasons(declined.iloc[0]).letter()

    @pytest.mark.parametrize(
        ("keywords", "message"),
        [
            ({"n": 0}, "n is 0"),
            ({"adverse": "left"}, "adverse is 'left'"),
            ({"recourse": 1}, "recourse is 1"),
            ({"prohibited": "sex"}, r"Type prohibited=\['sex'\]"),
            ({"prohibited": ["sex"]}, "prohibited holds 'sex', but the columns are age"),
            ({"time": 3}, "time is 3"),
            ({"queries": 40}, "queries are needed to compare 6 attributes"),
        ],
    )
    def test_wrong_keywords(self, explainer, declined, keywords, message):
        with pytest.raises(ParameterError, match=message):
            explainer.reasons(declined.iloc[0], **keywords)

    def test_other_spaces_and_laws(self, declined):
        with pytest.raises(ParameterError, match="attributes of a Table"):
            al.Explainer(lambda z: z[:, 0] / 2, al.Hypercube(["a", "b"]), threshold=0).reasons([-1, 1])


def test_a_prohibited_attribute_is_never_hidden(explainer, declined, found):
    worst = found[0].attribute
    with pytest.raises(ProhibitedError, match=rf"'{worst}' .shortfall 0.*check_use"):
        explainer.reasons(declined.iloc[0], codes=CODES, reference="near", prohibited=[worst])
    last = found.shortfalls[-1].attribute
    assert (
        explainer.reasons(declined.iloc[0], codes=CODES, reference="near", prohibited=[last]).letter()
        == found.letter()
    )


def test_a_prohibited_member_of_a_group_counts(declined):
    frame = pd.DataFrame({"a": range(20), "b": range(20, 0, -1), "c": [0, 1] * 10})
    table = al.Table(frame, groups={"pair": ["a", "c"]})
    explainer = al.Explainer(lambda rows: rows["c"].to_numpy() * 1.0, table, output="s", threshold=0.5)
    with pytest.raises(ProhibitedError, match="'pair'"):
        explainer.reasons(frame.iloc[0], prohibited=["c"])
    stated = explainer.reasons(frame.iloc[0], codes={"pair": ("R1", "Pair")})
    assert [reason.columns for reason in stated] == [("a", "c")]


def test_recourse_is_that_of_the_model(explainer, model, declined, found):
    row = declined.iloc[[0]]
    for reason in found:
        (column,) = reason.columns
        reference = explainer.referring_to("near", explainer.reason_settings(reference="near")).space
        values = [
            reference.donated.rows(np.arange(reference.n_pool))[column].iloc[i] for i in range(reference.n_pool)
        ]
        changed = pd.concat([row] * len(values), ignore_index=True).astype(row.dtypes)
        changed[column] = pd.Series(values).astype(row[column].dtype)
        turns = model.predict_proba(changed)[:, 0] >= 0.5
        assert reason.recourse.share == pytest.approx(turns.mean())
        assert (reason.recourse.nearest is None) == (not turns.any())
        if reason.recourse.nearest is not None:
            assert reason.recourse.nearest[0] in {value for value, turn in zip(values, turns, strict=True) if turn}


def test_ties_are_settled_by_the_order_of_the_table_and_disclosed():
    frame = pd.DataFrame(np.random.default_rng(0).integers(0, 2, (100, 6)), columns=list("fedcba"))
    frame = pd.concat([frame, 1 - frame], ignore_index=True)  # every column has the mean 1/2
    explainer = al.Explainer(lambda rows: rows.to_numpy().sum(axis=1) / 1.0, frame, output="s", threshold=4)
    for seed in range(3):
        found = explainer.reasons([0] * 6, seed=seed)
        assert {*found.near_ties} >= {reason.attribute for reason in found}
        assert "overlap" in str(found)


def test_near_serves_explain_too(model):
    frame = FRAME.assign(purpose=FRAME["purpose"].astype("category"))
    scores = model.predict_proba(frame)[:, 0]
    explainer = al.Explainer(model, al.Table(frame, reference="near"), output="approved", threshold=0.5)
    low, high = explainer.space.near_scores
    rows = frame[(scores >= 0.5) & (scores <= high)]
    assert low == scores[scores >= 0.5].min()
    assert explainer.space.n_pool == len(rows) >= 100
    other = al.Explainer(model, al.Table(frame, reference=rows), output="approved", threshold=0.5)
    assert explainer.space.fingerprint == other.space.fingerprint
    assert explainer.explain(frame.iloc[1]) == other.explain(frame.iloc[1])


class TestRecord:
    def test_the_same_seed_gives_the_same_bytes(self, explainer, declined, found):
        again = explainer.reasons(
            declined.iloc[0], codes=CODES, reference="near", recourse=True, time="2026-03-04"
        )
        assert again.to_json() == found.to_json()
        assert al.Reasons.from_json(found.to_json()) == found == pickle.loads(pickle.dumps(found))

    def test_text_page_and_view(self, found):
        text, page = str(found), found.to_html()
        for reason in found:
            assert reason.text in text
            assert reason.text in page
            assert reason.code in found._repr_html_()
        assert found.codes_sha256 in found.details()
        assert found.model in page
        assert "<script" not in page
        assert found.to_frame()["code"].tolist() == [reason.code for reason in found]

    def test_data_cannot_become_markup(self):
        frame = pd.DataFrame({"<b>x</b>": range(40), "y": [0, 1] * 20})
        explainer = al.Explainer(
            lambda rows: rows.iloc[:, 0].to_numpy() / 1.0, frame, output="<i>s</i>", threshold=20
        )
        codes = {"<b>x</b>": ("<u>", "<script>alert(1)</script>")}
        found = explainer.reasons(frame.iloc[3], codes=codes, recourse=True)
        for html in (found.to_html(), found._repr_html_()):
            for markup in ("<b>x", "<i>s", "<u>", "<script"):
                assert markup not in html

    def test_verify_repeats_it(self, found, model, table):
        answer = al.verify(found.to_json(), model, table, seed=1)
        assert answer.holds, answer
        assert answer.codes == ("repeated", "agreed", "codes_by_maker", "time_by_maker")

    @pytest.mark.parametrize(
        ("place", "change"),
        [
            ("reasons[0].attribute", lambda name: "owner" if name != "owner" else "age"),
            ("reasons[0].text", lambda text: "You are too young"),
            ("reasons[0].code", lambda code: "R99"),
            ("reasons[0].values[0]", lambda value: 1),
            ("reasons[0].recourse.share", lambda share: 0.999),
            ("shortfalls[0].value", lambda value: value + 1e-4),
            ("shortfalls[1].direction", lambda value: "high" if value != "high" else "low"),
            ("near_ties", lambda ties: ["age", "owner"]),
            ("reference.n_rows", lambda n: n + 1),
            ("reference.high", lambda high: high + 0.01),
            ("codes_sha256", lambda text: text[::-1]),
            ("model", lambda text: text[::-1]),
            ("source", lambda source: "leaves"),
            ("n_queries", lambda n: n + 1),
            ("prediction", lambda value: value - 0.01),
            ("output.threshold", lambda value: 0.45),
            ("settings.n", lambda n: 1),
            ("settings.adverse", lambda side: "above"),
            ("settings.reference", lambda kind: "all"),
            ("settings.seed", lambda seed: 1),
            ("settings.confidence", lambda value: 0.6),
            ("settings.queries", lambda value: 3000),
            ("settings.recourse", lambda value: False),
            ("settings.codes[0][3]", lambda text: "Other text"),
            ("space.fingerprint", lambda text: text[::-1]),
        ],
    )
    def test_no_change_survives(self, found, model, table, place, change):
        answer = al.verify(with_change(found, place, change), model, table, seed=1)
        assert answer.outcome is not Outcome.HOLDS, answer

    def test_added_and_removed_keys_are_refused(self, found, model, table):
        body = json.loads(found.to_json())
        for below in (body, body["settings"], body["reasons"][0], body["shortfalls"][0], body["reference"]):
            below["audited"] = "yes"
            text = resealed(body)
            del below["audited"]
            assert al.verify(text, model, table, seed=1).outcome is not Outcome.HOLDS
        for key in sorted(body.keys() - {"sha256"}):
            assert (
                al.verify(resealed({k: v for k, v in body.items() if k != key}), model, table).outcome
                is not Outcome.HOLDS
            )
        for key in sorted(body["settings"]):
            other = body | {"settings": {k: v for k, v in body["settings"].items() if k != key}}
            assert al.verify(resealed(other), model, table, seed=1).outcome is not Outcome.HOLDS
        with pytest.raises(TamperedError):
            al.Reasons.from_json(found.to_json().replace("Income", "income"))
        with pytest.raises(FormatError):
            al.Reasons.from_json(resealed(body | {"kind": "rule"}))

    def test_another_model_or_table(self, found, model, table):
        frame = table.schema.natives.rows(np.arange(1000))
        assert al.verify(found, model, al.Table(frame[:900])).codes == ("other_near",)
        other = HistGradientBoostingClassifier(max_iter=31, random_state=0, categorical_features="from_dtype")
        other.fit(FRAME.assign(purpose=FRAME["purpose"].astype("category")), DECISION)
        assert al.verify(found, other, table).outcome is Outcome.DOES_NOT_HOLD

    def test_a_chosen_seed_is_noticed(self, explainer, declined, model, table, found):
        """A maker who hides a reason states other limits, which fresh copies contradict."""
        body = json.loads(found.to_json())
        hidden = body["shortfalls"][0] | {"value": -0.1, "low": -0.11, "high": -0.09}
        body["shortfalls"] = [*body["shortfalls"][1:], hidden]
        body["reasons"] = body["reasons"][1:]
        assert al.verify(resealed(body), model, table, seed=1).outcome is Outcome.DOES_NOT_HOLD

    def test_a_reference_frame_must_be_given(self, explainer, declined, model, table):
        frame = table.schema.natives.rows(np.arange(1000))
        rows = frame[frame["income"] > 50_000]
        found = explainer.reasons(declined.iloc[0], codes=CODES, reference=rows)
        assert not al.verify(found, model, table).holds
        assert al.verify(found, model, al.Table(frame, reference=rows), seed=1).holds

    def test_leaves_need_the_fitted_model(self):
        frame = FRAME[["age", "income", "debt"]]
        forest = RandomForestClassifier(10, random_state=0).fit(frame, DECISION)
        explainer = al.Explainer(forest, frame, output="approved", threshold=0.5)
        row = frame[forest.predict_proba(frame)[:, 0] < 0.3].iloc[0]
        found = explainer.reasons(row)
        assert found.source == "leaves"
        assert al.verify(found, forest, frame).holds
        drawn = explainer.without_trees().reasons(row)
        assert drawn.source == "drawn"
        assert al.verify(drawn, forest, frame, seed=1).holds
        for each in found.shortfalls:
            assert drawn.shortfall(each.attribute).low <= each.value <= drawn.shortfall(each.attribute).high


class TestUse:
    @staticmethod
    def enumerated(predict, frame, column):
        """Whether each decision changes with some value of the column in the frame."""
        own = predict(frame)
        changed = np.zeros(len(frame), dtype=bool)
        for value in frame[column].unique():
            changed |= predict(frame.assign(**{column: value})) != own
        return int(changed.sum())

    @pytest.mark.parametrize("column", ["age", "owner", "income"])
    @pytest.mark.parametrize("kind", ["boosting", "forest", "function"])
    def test_it_is_that_of_enumeration(self, column, kind):
        frame = FRAME[["age", "income", "owner"]][:150].reset_index(drop=True)
        target = np.where(frame["income"] + 9000 * frame["owner"] > 42_000, "yes", "no")
        fitted = {
            "boosting": HistGradientBoostingClassifier(max_iter=5, min_samples_leaf=5),
            "forest": RandomForestClassifier(5, random_state=0),
        }.get(kind, RandomForestClassifier(3, random_state=1))
        fitted.fit(frame, target)

        def predict(rows):
            return fitted.predict_proba(rows)[:, 1] >= 0.4

        given = (lambda rows: fitted.predict_proba(rows)[:, 1]) if kind == "function" else fitted
        choice = {} if kind == "function" else {"output": "yes"}
        use = al.check_use(given, frame, column, threshold=0.4, **choice)
        assert use.is_exact
        assert use.by_trees == (kind != "function")
        assert use.n_changed == self.enumerated(predict, frame, column)
        fixed = al.check_use(given, al.Table(frame, fixed=[column]), column, threshold=0.4, **choice)
        assert fixed.n_changed == use.n_changed
        assert str(use.n_changed) in str(use) or "none" in str(use)

    def test_planted_and_removed(self):
        rng = np.random.default_rng(0)
        frame = pd.DataFrame({"x": rng.normal(size=300), "sex": rng.integers(0, 2, 300)})
        planted = HistGradientBoostingClassifier(max_iter=20).fit(frame, frame["x"] + 0.8 * frame["sex"] > 0.5)
        removed = HistGradientBoostingClassifier(max_iter=20).fit(frame[["x"]], frame["x"] > 0.5)
        assert al.check_use(planted, frame, "sex").is_used
        gone = al.check_use(removed, frame[["x"]].assign(sex=frame["sex"]), "sex")
        assert (gone.is_used, gone.is_exact) == (False, True)
        assert "none of 300 decisions" in str(gone)

    def test_few_queries_are_not_exact(self):
        rows = np.arange(400.0).reshape(200, 2)
        use = al.check_use(lambda rows: rows[:, 0] * 0.0, al.Table(rows), "x0", queries=1000, threshold=1)
        assert (use.is_exact, use.n_tried, use.n_values) == (False, 5, 200)
        assert "not exact" in str(use)
        with pytest.raises(ParameterError, match="is not a column or a group"):
            al.check_use(lambda rows: rows[:, 0], al.Table(rows), "sex")
        with pytest.raises(ParameterError, match="column of a table"):
            al.check_use(lambda z: z[:, 0], al.Hypercube(["a"]), "a")


def test_a_value_is_neither_too_low_nor_too_high_if_only_missing_ones_are_better():
    frame = pd.DataFrame({"years": [1.0, 2.0, 3.0, None] * 25, "other": [0.0, 1.0] * 50})

    def score(rows):
        return rows["years"].isna().to_numpy() * 1.0

    codes = {"years": {"low": ("R1", "Too few"), "": ("R2", "Years")}, "other": ("R3", "Other")}
    found = al.Explainer(score, frame, output="s", threshold=0.5).reasons(
        {"years": 2.0, "other": 0.0}, codes=codes
    )
    assert found.letter() == ["Years"]
    assert found.shortfall("years").direction is None
    assert found.shortfall("years").value == pytest.approx(0.25)


def twins():
    """Points of two columns that say the same thing, and of a third."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"A4": rng.integers(0, 9, 200), "A9": rng.integers(0, 9, 200)})
    frame.insert(1, "A5", frame["A4"] * 10)
    explainer = al.Explainer(
        lambda rows: rows["A4"].to_numpy() + 0.1 * rows["A5"].to_numpy() + rows["A9"].to_numpy(),
        frame,
        output="s",
        threshold=20,
    )
    return frame, explainer, {"A4": 1, "A5": 10, "A9": 2}


class TestColumnsThatSayTheSame:
    def test_a_code_of_either_counts(self):
        _, explainer, row = twins()
        for name in ("A4", "A5"):
            found = explainer.reasons(row, codes={name: {"low": ("R4", "Too few")}, "A9": ("R9", "Nine")})
            assert {*found.letter()} == {"Too few", "Nine"}
        with pytest.raises(ParameterError, match=r"'A4', 'A5' say the same thing .* Keep one of them"):
            explainer.reasons(row, codes={"A4": ("R4", "Four"), "A5": ("R5", "Five"), "A9": ("R9", "Nine")})

    def test_errors_name_both(self):
        _, explainer, row = twins()
        with pytest.raises(ProhibitedError, match="would be one of them: 'A4' with 'A5' "):
            explainer.reasons(row, prohibited=["A5"])
        with pytest.raises(UnmappedError, match=r"'A4' with 'A5' \(low\).* one reason, .*codes={'A4': \('R01'"):
            explainer.reasons(row, codes={"A9": ("R9", "Nine")})
        with pytest.raises(UnmappedError, match=r"codes={'A4': {'low': \('R01'"):
            explainer.reasons(row, codes={"A9": ("R9", "Nine"), "A5": {"high": ("R4", "Many")}})

    def test_use_names_both(self):
        _, explainer, _ = twins()
        assert str(explainer.check_use("A5")).startswith("A5 with A4 change ")
        assert str(explainer.check_use("A9")).startswith("A9 changes ")


def test_a_code_of_a_member_of_a_group_is_an_error():
    frame = pd.DataFrame({"a": range(20), "c": [0, 1] * 10, "d": [0, 1, 1, 0] * 5})
    table = al.Table(frame, groups={"pair": ["a", "c"]})
    explainer = al.Explainer(lambda rows: rows["c"].to_numpy() * 1.0, table, output="s", threshold=0.5)
    with pytest.raises(ParameterError, match="codes for 'c', but the attributes are 'pair', 'd'"):
        explainer.reasons(frame.iloc[0], codes={"c": ("R1", "C")})


def test_codes_from_a_frame_and_from_a_file_with_semicolons(tmp_path):
    frame = pd.DataFrame(
        {
            "attribute": ["age", "age"],
            "when": ["low", None],
            "code": ["R1", "R2"],
            "text": ["Too young", "Age"],
        }
    )
    assert Codes.of(frame) == Codes.of({"age": {"low": ("R1", "Too young"), "": ("R2", "Age")}})
    assert Codes.of(frame[1:].drop(columns="when")) == Codes.of({"age": ("R2", "Age")})
    frame.to_csv(tmp_path / "codes.csv", sep=";", index=False)
    with pytest.raises(ParameterError, match=r"'attribute;when;code;text', but it must .* separated by commas"):
        Codes.of(tmp_path / "codes.csv")
    with pytest.raises(ParameterError, match="codes is a frame with the columns 'code', 'text', but"):
        Codes.of(frame[["code", "text"]])


def test_a_number_of_queries_is_used_until_the_choice_is_clear():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(400, 3)), columns=list("abc"))

    def score(rows):
        a, b, c = (rows[name].to_numpy() for name in "abc")
        return a + b + c + a * b * c

    explainer = al.Explainer(score, frame, output="s", threshold=0)
    row = {"a": -1.0, "b": -1.0, "c": -1.0}
    found = [explainer.reasons(row, n=1, queries=queries) for queries in (3000, 100_000)]
    assert [each.n_queries > 0.9 * limit for each, limit in zip(found, (3000, 100_000), strict=True)] == [True] * 2
    assert all(each.near_ties for each in found)
    assert found[1].shortfalls[0].n > found[0].shortfalls[0].n


def test_a_tie_of_a_prohibited_attribute_is_said_to_be_one():
    frame = pd.DataFrame(np.random.default_rng(0).integers(0, 2, (100, 3)), columns=list("abc"))
    frame = pd.concat([frame, 1 - frame], ignore_index=True)
    explainer = al.Explainer(lambda rows: rows.to_numpy().sum(axis=1) / 1.0, frame, output="s", threshold=2)
    with pytest.raises(ProhibitedError, match="would be, or could be, one of them: 'c'"):
        explainer.reasons([0] * 3, n=2, prohibited=["c"])


def test_a_cut_record_is_still_called_one_of_reasons(found, model, table):
    assert str(al.verify(found.to_json()[:-20], model, table)).startswith("Whether the list of reasons holds")
    assert str(al.verify(found.to_json().replace("Income", "income"), model, table)).startswith(
        "The list of reasons does not hold"
    )


def test_words_of_errors(explainer, model, table, declined):
    with pytest.raises(ParameterError, match="'below' if low scores are adverse, or 'above' if high ones are"):
        explainer.reasons(declined.iloc[0], adverse="high")
    with pytest.raises(ParameterError, match=r"it must be a frame, 'all' or 'near'. Type reference='near'"):
        explainer.reasons(declined.iloc[0], reference="nearest")
    renamed = HistGradientBoostingClassifier(max_iter=2).fit(
        FRAME[["age", "debt"]], np.where(DECISION == "approved", "yes", "no")
    )
    with pytest.raises(
        ParameterError,
        match=r"output='yes', threshold=0\.5\)\. If 'yes' is not the favorable class, name .*: 'no'\.",
    ):
        al.Explainer(renamed, FRAME[["age", "debt"]]).reasons(0)


class TestWordsOfTheAnswer:
    def test_the_decision_has_one_name_on_every_scale_and_the_threshold_is_stated(self, model, table, declined):
        for scale, threshold in (("probability", 0.5), ("margin", 0.0)):
            explainer = al.Explainer(model, table, output="approved", output_scale=scale, threshold=threshold)
            decision, *_ = str(explainer.reasons(declined.iloc[0])).splitlines()
            assert decision.startswith("Model's decision: declined, ")
            assert decision.endswith((" (threshold 0.50).", " (threshold 0.00)."))

    def test_the_page_names_the_case_and_says_everything_once(self, found):
        page = found.to_html("<Case> 4711")
        assert "&lt;Case&gt; 4711" in page
        assert ">Shortfalls<" in page
        assert ">Effects<" not in page
        assert page.count("A shortfall says how much") == 1
        assert page.count("Close:") == found.details().count("Close:") == (1 if found.near_ties else 0)

    def test_recourse_is_a_condition(self, found):
        for reason in found:
            if reason.recourse.nearest is not None:
                assert f"With {reason.attribute} = " in str(found)
                assert "alone, the decision would turn, as it would with" in str(found)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"prohibited": None}, r"prohibited is None, .* Type prohibited=\['sex'\]"),
        ({"prohibited": 5}, r"prohibited is 5, .* Type prohibited=\['sex'\]"),
        ({"reference": 5}, r"reference is of type int, .* Type reference=frame\["),
        ({"reference": [1, 2]}, r"reference is of type list, .* Type reference=frame\["),
        ({"reference": np.ones(3, dtype=bool)}, r"reference is of type ndarray and of shape \(3,\), .* Type"),
        ({"reference": FRAME.iloc[0]}, r"reference is of type Series and of shape \(\d+,\), .* Type"),
        ({"codes": {}}, "The codes are empty. Type codes="),
    ],
)
def test_wrong_arguments_are_answered_by_one_line_that_says_what_to_type(explainer, declined, given, message):
    with pytest.raises(ParameterError, match=message) as caught:
        explainer.reasons(declined.iloc[0], **given)
    assert "\n" not in str(caught.value)


def test_labels_have_no_reasons(model, table):
    explainer = al.Explainer(model.predict, table, task="label")
    with pytest.raises(ParameterError, match="the model returns labels"):
        explainer.reasons(0)
    with pytest.raises(ParameterError, match=r"threshold=0\.5\)\. The model must return scores, not labels\.$"):
        al.Explainer(lambda rows: np.full(len(rows), "no"), table).reasons(0)
    with pytest.raises(
        ParameterError, match=r"If 'declined' is not the adverse class, name that instead: 'approved'"
    ):
        al.Explainer(model, table).reasons(0, adverse="above")


def test_wrong_arguments_of_check_use(explainer, model, table):
    with pytest.raises(ParameterError, match=r"attribute is \['age'\], .* Type check_use\(model, table, 'age'\)"):
        al.check_use(model, table, ["age"])
    with pytest.raises(ParameterError, match=r"is an Explainer, .* Type explainer.check_use\('age'\)"):
        al.check_use(explainer, table, "age")


def test_prohibited_columns_are_recorded_once(explainer, declined, model, table):
    found = explainer.reasons(declined.iloc[0], reference="near", prohibited=["owner"] * 3)
    assert found.settings["prohibited"] == ("owner",)
    repeated = with_change(found, "settings.prohibited", lambda names: names * 100_000)
    assert not al.verify(repeated, model, table, seed=1).holds


def test_a_threshold_beside_a_tiny_probability_is_printed_plainly():
    rows = np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0], [0.0, 0.0]] * 30)
    tiny = lambda rows: np.where(rows.sum(axis=1) > 0, 0.6, 1e-9)  # noqa: E731
    explainer = al.Explainer(
        lambda rows: np.column_stack([1 - tiny(rows), tiny(rows)]), al.Table(rows), output=1, threshold=0.5
    )
    assert "(threshold 0.5)" in str(explainer.reasons(rows[3], reference="near"))


def test_dates_have_no_midnight_and_are_earlier_or_later():
    days = pd.date_range("1990-01-01", periods=200, freq="17D")
    frame = pd.DataFrame({"opened": days, "debt": np.arange(200) % 20})
    score = lambda rows: 1 - (rows["opened"] - days[0]).dt.days / 5000 - rows["debt"] / 100  # noqa: E731
    explainer = al.Explainer(score, frame, output="points", threshold=0.6)
    found = explainer.reasons(frame.iloc[-1], reference="near", recourse=True)
    for text in (str(found), found.to_html()):
        assert f"{days[-1]:%Y-%m-%d}" in text
        assert "T00:00" not in text
    assert "With opened = 199" in str(found)
    assert "earlier dates are better" in found.details()
    assert "lower values are better" in found.details()


def test_the_numbers_of_one_line_have_as_many_decimals(found):
    lines = [line for line in found.details().splitlines() if "(limits " in line]
    numbers = [re.findall(r"-?\d+\.\d+", line) for line in lines]
    assert all(len({len(number.partition(".")[2]) for number in each}) == 1 for each in numbers)
