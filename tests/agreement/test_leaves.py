"""Explanations from the leaves of trees: libraries, encoders, draws, seeds, JSON, verification."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_diabetes
from sklearn.ensemble import (
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, PolynomialFeatures, StandardScaler

import anchorline as al
from anchorline.errors import ParameterError
from anchorline.search.investigate import gather
from anchorline.search.leaves import row
from anchorline.settings import Settings

RNG = np.random.default_rng(0)
N = 400
FRAME = pd.DataFrame(
    {
        "age": RNG.integers(18, 80, N).astype(float),
        "income": RNG.gamma(3.0, 20.0, N).round(1),
        "color": RNG.choice(["blue", "green", "red", "white"], N, p=[0.5, 0.3, 0.15, 0.05]),
        "member": RNG.random(N) < 0.4,
        "rooms": RNG.integers(1, 6, N),
    }
)
FRAME.loc[RNG.random(N) < 0.1, "income"] = np.nan
PRICE = (
    FRAME.age * (1 + FRAME.member)
    + 30 * (FRAME.color == "red")
    + 0.5 * FRAME.income.fillna(80) * (FRAME.rooms > 2)
    + RNG.normal(size=N)
).to_numpy()
CATEGORICAL = FRAME.astype({"color": "category"})
NUMBERS = FRAME[["age", "income", "rooms", "member"]].astype(float)


def encoder():
    return make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["color"]),
        (make_pipeline(SimpleImputer(add_indicator=True), StandardScaler()), ["age", "income"]),
        (OrdinalEncoder(), ["member"]),
        remainder="passthrough",
        sparse_threshold=0,
    )


def xgboost(**options):
    from xgboost import XGBRegressor

    return XGBRegressor(n_estimators=8, max_depth=3, n_jobs=1, enable_categorical=True, **options)


def lightgbm(**options):
    from lightgbm import LGBMRegressor

    return LGBMRegressor(n_estimators=8, num_leaves=7, n_jobs=1, verbose=-1, min_data_per_group=5, **options)


def catboost(**options):
    from catboost import CatBoostRegressor

    settings = {"iterations": 8, "depth": 3, "thread_count": 1, "random_seed": 0, "allow_writing_files": False}
    return CatBoostRegressor(**settings, verbose=False, **options)


MODELS = {
    "histogram, categories": lambda: HistGradientBoostingRegressor(
        max_iter=8, max_leaf_nodes=7, categorical_features="from_dtype", random_state=0
    ).fit(CATEGORICAL, PRICE),
    "forest, one-hot": lambda: make_pipeline(encoder(), RandomForestRegressor(8, max_depth=4, random_state=0)).fit(
        FRAME, PRICE
    ),
    "extra trees, numbers": lambda: ExtraTreesRegressor(8, max_depth=4, random_state=0).fit(
        NUMBERS.fillna(0.0).to_numpy(), PRICE
    ),
    "xgboost, categories": lambda: xgboost().fit(CATEGORICAL, PRICE),
    "lightgbm, categories": lambda: lightgbm().fit(CATEGORICAL, PRICE),
    "xgboost, numbers": lambda: xgboost(booster="dart").fit(NUMBERS, PRICE),
}
ALSO_DRAWN = {
    "catboost, numbers": lambda: catboost().fit(NUMBERS, PRICE),
    "catboost, categories": lambda: catboost(one_hot_max_size=10, cat_features=["color"]).fit(CATEGORICAL, PRICE),
}
TABLES = {"one-hot": FRAME, "categories": CATEGORICAL, "numbers": NUMBERS}


class Function:
    """A model that does not show its trees."""

    def __init__(self, predict):
        self.predict_rows = predict

    def __call__(self, rows):
        return self.predict_rows(rows)


def explained(kind, **options):
    frame = TABLES[kind.rpartition(", ")[2]]
    frame = frame.fillna(0.0).to_numpy() if kind.startswith("extra") else frame
    model = (MODELS | ALSO_DRAWN)[kind]()
    return al.Explainer(model, al.Table(frame, **options), output="price"), model


@pytest.mark.parametrize("options", [{"literals": "intervals"}, {"literals": "bounds"}, {"draw": "marginal"}])
@pytest.mark.parametrize("kind", MODELS | ALSO_DRAWN)
def test_draws_agree_with_the_leaves_of_every_library(kind, options):
    explainer, _ = explained(kind, **options)
    case = explainer.prepare(3, Settings.from_keywords())
    assert case.sampled_because is None
    leaves = case.leaves
    case.predictor.largest = leaves.largest_output  # draws are not clipped, as leaves are not
    n = 200_000
    drawn, _ = gather(case, case.stream("test", n))
    exact = leaves.evidence(leaves.drop_square)
    scale = np.sqrt(exact.drop_square)
    assert abs(drawn.drop_mean - exact.drop_mean) < 5 * scale / np.sqrt(n)
    spread = np.sqrt(exact.flip_means * exact.drop_square)  # a bound on the spread of F t, for |t| about its mean
    assert (np.abs(drawn.cross_moments - exact.cross_moments) < 8 * spread / np.sqrt(n)).all()
    assert drawn.drop_square == pytest.approx(exact.drop_square, rel=0.05)
    assert np.abs(drawn.second_moments - exact.second_moments).max() < 6 / np.sqrt(n)


@pytest.mark.parametrize(
    "model",
    [RandomForestRegressor(50, max_leaf_nodes=31, random_state=0), HistGradientBoostingRegressor(max_iter=50)],
)
def test_draws_agree_with_the_leaves_of_real_models_within_their_error(model):
    """Patients with diabetes: every moment of 200,000 draws is within five standard errors of the leaf sums."""
    frame, target = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    case = al.Explainer(model.fit(frame, target), al.Table(frame)).prepare(3, Settings.from_keywords())
    assert case.sampled_because is None
    leaves, n = case.leaves, 200_000
    case.predictor.largest = leaves.largest_output  # draws are not clipped, as leaves are not
    _, rows = gather(case, case.stream("test", n), keep=True)
    exact, flips, drops = leaves.evidence(leaves.drop_square), rows.flips.astype(float), rows.drops

    def is_within(products, moment):
        return abs(products.mean() - moment) < 5 * products.std() / np.sqrt(n) + 1e-9

    assert is_within(drops, exact.drop_mean)
    assert is_within(drops**2, exact.drop_square)
    for j, (share, cross) in enumerate(zip(exact.flip_means, exact.cross_moments, strict=True)):
        assert is_within(flips[:, j], share)
        assert is_within(flips[:, j] * drops, cross)


def test_outputs_beyond_the_given_range_are_clipped_and_therefore_sampled():
    explainer, model = explained("extra trees, numbers")
    outputs = model.predict(NUMBERS.to_numpy())
    low, high = np.quantile(outputs, [0.2, 0.8])
    row = int(np.argsort(outputs)[N // 2])
    for given, reason in (((low, high), "beyond output_range"), ((outputs.min() - 1, outputs.max() + 1), None)):
        other = al.Explainer(model, explainer.space, output_range=given)
        certificate = other.explain(row, n_samples=100, n_certify=0).certificate
        assert certificate.by_leaves == (reason is None)
        assert (reason or "") in (certificate.sampled_because or "")


@pytest.mark.parametrize("kind", MODELS)
def test_one_query_finds_the_sum_and_fresh_draws_confirm_its_errors(kind):
    explainer, model = explained(kind)
    e = explainer.explain(5, k=3)
    certificate = e.certificate
    assert (certificate.by_leaves, certificate.n_queries, certificate.status) == (True, 5001, al.Status.OPTIMAL)
    assert not certificate.stability.exact  # how often a number stays is measured
    assert explainer.explain(5, k=3, n_certify=0).certificate.n_queries == 1
    assert "over all neighbors, computed from the model's trees." in str(e)
    drawn = explainer.assess(5, e.contributions, n_fresh=20_000)
    for name in ("fidelity_error", "relevance_error", "baseline_error"):
        exact, sampled = getattr(certificate, name), getattr(drawn, name)
        assert exact.exact
        assert exact.low == exact.value == exact.high
        assert exact.method == "leaves"
        assert sampled.low <= exact.value <= sampled.high or drawn.n_clipped
    again = al.Explanation.from_json(e.to_json())
    assert again == e
    assert again.certificate == certificate
    assert al.verify(e, model, explainer.space, seed=0).holds


def test_the_seed_does_not_matter():
    explainer, _ = explained("histogram, categories")
    texts = {explainer.explain(7, seed=seed).to_frame().to_csv() for seed in range(3)}
    assert len(texts) == 1
    assert set(explainer.repeat(7, n_seeds=3).values()) == {1.0}


@pytest.mark.parametrize("kind", ["histogram, categories", "forest, one-hot"])
def test_frontiers_are_exact_and_sample_nothing(kind, monkeypatch):
    explainer, _ = explained(kind)
    frontier = explainer.frontier(7, ks=[1, 3, 5])
    assert frontier.n_queries == 1
    for point in frontier.points:
        e = explainer.explain(7, k=point.k, keep_noise=True)
        assert point.status is al.Status.OPTIMAL
        assert point.objective == pytest.approx(e.certificate.objective, rel=1e-9)
        assert point.contributions == pytest.approx(e.contributions, abs=1e-9)
        assert point.fidelity_error.value == pytest.approx(e.certificate.fidelity_error.value, rel=1e-9)
        assert point.relevance_error.value == pytest.approx(e.certificate.relevance_error.value, rel=1e-9)
        assert point.relevance_error.exact
    monkeypatch.setattr(row, "MAX_PAIRS", 0)
    measured = explainer.frontier(7, ks=[1, 3, 5], n_certify=4000)
    assert measured.n_queries == 4001
    for point, exact in zip(measured.points, frontier.points, strict=True):
        assert point.contributions == pytest.approx(exact.contributions, abs=1e-9)
        assert point.fidelity_error.low <= exact.fidelity_error.value <= point.fidelity_error.high
    assert explainer.frontier(7, ks=[2], n_certify=0).points[0].fidelity_error is None


def test_alternatives_are_ties_and_their_excess_is_exact():
    explainer, _ = explained("histogram, categories")
    e = explainer.explain(7, k=3, alternatives=3)
    assert e.alternatives_complete is True
    assert all(other.excess.exact for other in e.alternatives)


def test_forests_measure_decisions_on_fresh_neighbors_and_the_rest_on_leaves():
    model = RandomForestClassifier(10, max_depth=4, random_state=0).fit(NUMBERS.fillna(0), PRICE.mean() < PRICE)
    explainer = al.Explainer(model, al.Table(NUMBERS.fillna(0)))
    certificate = explainer.explain(2, n_certify=1000).certificate
    assert certificate.n_queries == 1001
    assert certificate.by_leaves
    assert certificate.relevance_error.exact
    assert not certificate.stability.exact
    assert certificate.stability.confidence == pytest.approx(0.975)
    assert explainer.explain(2, n_certify=0).certificate.n_queries == 1


def test_relevance_is_exact_where_all_neighbors_are_too_many_pairs(monkeypatch):
    explainer, model = explained("histogram, categories")
    exact = explainer.explain(5, k=3).certificate
    monkeypatch.setattr(row, "n_pairs", lambda paths, chances: int(np.count_nonzero(chances > 0)))
    n_edges = explainer.prepare(5, Settings.from_keywords()).leaves.sums.paths.n_edges
    monkeypatch.setattr(row, "MAX_PAIRS", n_edges - 1)
    e = explainer.explain(5, k=3)
    certificate = e.certificate
    assert certificate.relevance_error == exact.relevance_error
    assert not certificate.fidelity_error.exact
    assert certificate.fidelity_error.low <= exact.fidelity_error.value <= certificate.fidelity_error.high
    assert certificate.stability.confidence == pytest.approx(1 - 0.05 / 4)
    assert al.verify(e, model, explainer.space, seed=0).holds
    monkeypatch.setattr(row, "MAX_PAIRS", 0)
    assert not explainer.explain(5, k=3).certificate.relevance_error.exact


def test_without_certificate_the_same_sum_is_found():
    explainer, model = explained("forest, one-hot")
    with_figures, without = (explainer.explain(1, n_certify=n) for n in (None, 0))
    assert with_figures.contributions == pytest.approx(without.contributions, abs=1e-9)
    assert without.certificate.objective <= with_figures.certificate.objective
    assert al.verify(without, model, explainer.space).holds


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_many_rows_have_the_bytes_of_single_rows(n_jobs):
    explainer, _ = explained("histogram, categories")
    many = explainer.explain_many(CATEGORICAL.iloc[:6], n_jobs=n_jobs, k=3)
    single = [explainer.explain(CATEGORICAL.iloc[i], k=3).to_json() for i in range(6)]
    assert [e.to_json() for e in many] == single


def test_tampered_figures_models_and_tables_are_caught():
    explainer, model = explained("xgboost, numbers")
    text = explainer.explain(4, k=3).to_json()
    other = xgboost(learning_rate=0.2).fit(NUMBERS, PRICE)
    assert not al.verify(text, other, explainer.space, seed=0).holds
    changed = NUMBERS.copy()
    changed.loc[0, "age"] += 1
    assert not al.verify(text, model, al.Table(changed), seed=0).holds
    lambda_only = al.verify(text, Function(model.predict), explainer.space, seed=0)
    assert lambda_only.outcome.value == "cannot tell"
    assert "leaves" in lambda_only.reasons[0]


def test_what_was_sampled_is_verified_by_sampling():
    explainer, model = explained("xgboost, numbers")
    e = al.Explainer(Function(model.predict), explainer.space, output="price", task="number").explain(4)
    assert not e.certificate.by_leaves
    assert e.certificate.sampled_because is None
    assert al.verify(e, Function(model.predict), explainer.space, seed=0).holds


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (GradientBoostingClassifier(n_estimators=3).fit(NUMBERS.fillna(0), PRICE > 70), "not a sum of trees"),
        (
            make_pipeline(PolynomialFeatures(2), RandomForestRegressor(3, random_state=0)).fit(
                NUMBERS.fillna(0), PRICE
            ),
            "",
        ),
    ],
)
def test_the_reason_for_sampling_is_recorded(model, reason):
    explainer = al.Explainer(model, al.Table(NUMBERS.fillna(0)))
    e = explainer.explain(0, n_samples=100, n_certify=0)
    assert not e.certificate.by_leaves
    assert reason in e.certificate.sampled_because
    assert json.loads(e.to_json())["certificate"]["sampled_because"] == e.certificate.sampled_because
    assert al.Explanation.from_json(e.to_json()) == e
    assert explainer.explain(0, n_samples=100, n_certify=0, sampling="draw").certificate.sampled_because is None
    with pytest.raises(ParameterError, match="sampling is 'leaves', but"):
        explainer.explain(0, sampling="leaves")


def test_realistic_neighbors_and_other_objectives_are_sampled():
    model = MODELS["xgboost, numbers"]()
    realistic = al.Explainer(model, al.Table(NUMBERS.fillna(0), neighbors="realistic"))
    assert "drawn together" in realistic.explain(0, n_samples=100, n_certify=0).certificate.sampled_because
    explainer = al.Explainer(model, al.Table(NUMBERS))
    relevance = explainer.explain(0, objective="relevance", n_samples=200, n_certify=0)
    assert "objective='relevance'" in relevance.certificate.sampled_because
