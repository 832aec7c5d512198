"""A model that is fed wrongly is noticed: one class, constant, saturated, other scales, wide ranges, targets."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, RobustScaler, StandardScaler

import anchorline as al
from anchorline.errors import SetupWarning
from anchorline.search.checks import MAX_ROWS

RNG = np.random.default_rng(0)
RAW = pd.DataFrame(
    {"radius": RNG.normal(14, 3, 600), "area": RNG.gamma(2, 300, 600), "texture": RNG.normal(0.1, 0.02, 600)}
)
TARGET = np.where(RAW["radius"] + RNG.normal(size=600) > 13, "malignant", "benign")
SCALED = (RAW - RAW.mean()) / RAW.std()
FEW = {"k": 3, "n_samples": 200, "n_certify": 200}


def codes(explainer, **choices):
    return [finding.code for finding in explainer.check(**choices)]


def test_a_model_fitted_on_scaled_data_is_noticed_on_raw_data():
    """All predictions are one class, so that no facts are needed to hold it."""
    model = LogisticRegression().fit(SCALED, TARGET)
    explainer = al.Explainer(model, al.Table(RAW))
    with pytest.warns(SetupWarning, match=r"predicts 'malignant' for all 512 .*not scaled") as caught:
        e = explainer.explain(0, **FEW)
    assert [(warning.message.code, warning.filename) for warning in caught] == [("one-class", __file__)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert explainer.explain(0, **FEW) == e  # once per explainer, and the same bytes
    quiet = al.Explainer(model, al.Table(RAW))
    assert codes(quiet) == ["one-class"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert quiet.explain(0, **FEW) == e  # whoever has called `check` knows


def test_a_well_fed_model_has_no_findings():
    for model in (
        make_pipeline(StandardScaler(), LogisticRegression()),
        RandomForestClassifier(5, random_state=0),
    ):
        assert codes(al.Explainer(model.fit(RAW, TARGET), al.Table(RAW))) == []
    assert codes(al.Explainer(LinearRegression().fit(RAW, RAW["area"] / 2), al.Table(RAW))) == []


@pytest.mark.parametrize("scaler", [StandardScaler(), MinMaxScaler(), RobustScaler()])
def test_a_scaler_that_was_fitted_on_other_values_is_noticed_without_a_query(scaler):
    model = make_pipeline(scaler, LogisticRegression()).fit(RAW, TARGET)
    assert codes(al.Explainer(model, al.Table(SCALED)), query=False) == ["scale"]
    assert codes(al.Explainer(model, al.Table(RAW[:300])), query=False) == []
    model = make_pipeline(
        make_column_transformer((scaler, ["area"]), remainder="passthrough"), LogisticRegression()
    )
    (finding,) = al.Explainer(model.fit(SCALED, TARGET), al.Table(RAW)).check(query=False)
    assert (finding.code, finding.columns) == ("scale", ("area",))
    assert "'area' is around" in finding.text


def test_columns_in_another_order_are_noticed_by_their_values_or_by_their_names():
    swapped = RAW[["texture", "radius", "area"]]
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(RAW.to_numpy(), TARGET)
    assert "scale" in codes(al.Explainer(model, al.Table(swapped.to_numpy())))
    named = make_pipeline(StandardScaler(), LogisticRegression()).fit(RAW, TARGET)
    assert codes(al.Explainer(named, al.Table(swapped))) == ["column-order"]


def test_constant_and_saturated_answers_are_noticed():
    table = al.Table(RAW)
    assert codes(al.Explainer(lambda rows: np.full(len(rows), 0.5), table)) == ["constant"]
    assert codes(al.Explainer(lambda rows: np.full(len(rows), "yes"), table, task="label")) == ["one-class"]

    def saturated(rows):
        odds = np.exp(-40 * np.sign(rows["radius"] - 14))
        return np.column_stack([1 / (1 + odds), odds / (1 + odds)])

    assert codes(al.Explainer(saturated, table)) == ["saturated"]
    shifted = SCALED * 1e6 - 1e3
    assert codes(al.Explainer(LogisticRegression().fit(SCALED, TARGET), al.Table(shifted))) == ["saturated"]
    trees = RandomForestClassifier(1, random_state=0).fit(RAW, TARGET)  # answers of exactly 0 and 1 are usual
    assert codes(al.Explainer(trees, table)) == []


def test_a_range_that_is_far_wider_than_the_outputs_is_noticed():
    def area(rows):
        return rows["area"].to_numpy()

    table, width = al.Table(RAW), float(np.ptp(RAW["area"]))
    (finding,) = al.Explainer(area, table, output_range=(-5 * width, 5 * width)).check()
    assert finding.code == "wide-range"
    assert "makes every explanation look good" in finding.text
    assert codes(al.Explainer(area, table, output_range=(0, 1.5 * width))) == []


def test_columns_that_are_not_the_model_s_are_named():
    frame = RAW.assign(target=TARGET, case=np.arange(600))
    with pytest.warns(
        SetupWarning, match=r"not fitted on 'target', 'case'.*--target target --target case"
    ) as caught:
        al.Explainer(RandomForestClassifier(3).fit(RAW, TARGET), al.Table(frame)).explain(0, **FEW)
    assert caught[0].message.columns == ("target", "case")


@pytest.mark.parametrize("name", ["diagnosis", "Outcome"])
def test_a_column_like_a_target_is_named_if_the_model_lists_no_columns(name):
    """By its values, which are the classes, or by its name."""
    values = TARGET if name == "diagnosis" else np.sin(np.arange(600.0))
    model = LogisticRegression().fit(SCALED.to_numpy(), TARGET)

    class Served:
        classes_ = ("benign", "malignant")

        def __call__(self, rows):
            return model.predict_proba(rows[list(SCALED)].to_numpy())

    (finding,) = al.Explainer(Served(), al.Table(SCALED.assign(**{name: values}))).check(query=False)
    assert (finding.code, finding.columns) == ("target", (name,))
    assert f"--target {name}" in finding.text
    assert codes(al.Explainer(Served(), al.Table(SCALED.assign(**{name: values}), fixed=[name]))) == []


class Counting:
    """A constant model that counts its queries."""

    n_rows = 0

    def __call__(self, rows):
        self.n_rows += len(rows)
        return np.full(len(rows), 0.5)


def test_queries_of_the_checks_are_few_uncounted_and_not_made_under_a_limit():
    model = Counting()
    explainer = al.Explainer(model, al.Table(RAW), output_range=(0.4, 0.6))
    e = explainer.explain(0, max_queries=500, **FEW)
    assert model.n_rows == e.certificate.n_queries
    with pytest.warns(SetupWarning, match="output is 0.5 for all"):
        again = explainer.explain(0, **FEW)
    assert model.n_rows == 2 * e.certificate.n_queries + MAX_ROWS
    assert again.certificate.n_queries == e.certificate.n_queries
    assert codes(explainer) == ["constant"]
    assert model.n_rows == 2 * e.certificate.n_queries + MAX_ROWS


def test_a_model_that_fails_on_training_rows_has_no_findings():
    def model(rows):
        if len(rows) == MAX_ROWS:
            raise ValueError("too many rows")
        return rows["area"].to_numpy() / 1e4

    assert codes(al.Explainer(model, al.Table(RAW), output_range=(0, 1))) == []
    assert codes(al.Explainer(lambda z: z[:, 0], al.Hypercube())) == []


@pytest.mark.parametrize("how", [{}, {"n_jobs": 2}, {"share_calls": True}])
def test_a_batch_warns_once_and_not_per_row_or_worker(how):
    model = LogisticRegression().fit(SCALED, TARGET)
    explainer = al.Explainer(model, al.Table(RAW))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        explainer.explain_many(RAW[:6], **how, **FEW)
    assert [warning.message.code for warning in caught if warning.category is SetupWarning] == ["one-class"]


def test_a_warning_pickles_with_its_code_and_columns():
    again = pickle.loads(pickle.dumps(SetupWarning("text", "scale", ("area",))))
    assert (str(again), again.code, again.columns) == ("text", "scale", ("area",))
