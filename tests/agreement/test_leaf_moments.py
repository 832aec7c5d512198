"""Moments from leaves equal those of all neighbors, listed plainly and answered by the model: every library."""

import itertools
import pickle

import catboost
import lightgbm
import numpy as np
import pandas as pd
import pytest
import xgboost
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA
from sklearn.ensemble import (
    BaggingRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor, ExtraTreeRegressor

from anchorline.explainer import Explainer
from anchorline.optimize.moments import exact
from anchorline.search.trees import ModelTrees
from anchorline.settings import Settings
from anchorline.spaces.table import Table

RNG = np.random.default_rng(3)
N = 200
FRAME = pd.DataFrame(
    {
        "a": RNG.integers(0, 6, N) + RNG.integers(0, 3, N) * 1e-8,  # some values are equal in float32 only
        "b": RNG.choice([0.5, 1.5, 2.5, np.nan], N),
        "g": pd.Categorical(RNG.choice(["red", "blue", "green"], N)),
        "d": RNG.normal(size=N).round(2),
    }
)
SCORE = (FRAME.a * (FRAME.g == "red") + FRAME.b.fillna(4) - FRAME.d + RNG.normal(size=N) / 9).to_numpy()
TWO, THREE = np.where(SCORE > 3.5, 1, 0), np.digitize(SCORE, [2.5, 4.5])
POOL = FRAME.iloc[:6].reset_index(drop=True)  # values are drawn from these rows
BOOSTED = {"n_estimators": 6, "random_state": 0}
XGB = {"n_estimators": 6, "max_depth": 3, "n_jobs": 1, "enable_categorical": True}
LGBM = {"n_estimators": 6, "num_leaves": 6, "n_jobs": 1, "verbose": -1, "min_data_per_group": 5}
CAT = {"iterations": 6, "depth": 3, "thread_count": 1, "allow_writing_files": False, "verbose": False}
CAT |= {"one_hot_max_size": 9, "cat_features": ["g"]}
HIST = {"max_iter": 6, "max_leaf_nodes": 6, "random_state": 0}
FOREST = {"n_estimators": 5, "max_depth": 5, "random_state": 0}


def encoded(model, encoder=None):
    imputer = make_pipeline(SimpleImputer(add_indicator=True), StandardScaler())
    columns = make_column_transformer(
        (encoder or OneHotEncoder(), ["g"]), (imputer, ["b"]), remainder="passthrough", sparse_threshold=0
    )
    return make_pipeline(columns, model)


NUMBER = {
    "tree": lambda: encoded(DecisionTreeRegressor(max_depth=5, random_state=0), OrdinalEncoder()),
    "extra tree": lambda: encoded(ExtraTreeRegressor(max_depth=5, random_state=0)),
    "forest": lambda: encoded(RandomForestRegressor(**FOREST)),
    "extra trees": lambda: encoded(ExtraTreesRegressor(**FOREST), OrdinalEncoder()),
    "bagged trees": lambda: encoded(BaggingRegressor(DecisionTreeRegressor(max_depth=3), 4, random_state=0)),
    "boosting": lambda: encoded(GradientBoostingRegressor(**BOOSTED)),
    "histogram": lambda: HistGradientBoostingRegressor(**HIST, categorical_features="from_dtype"),
    "xgboost": lambda: xgboost.XGBRegressor(**XGB),
    "xgboost, one-hot": lambda: encoded(xgboost.XGBRegressor(**XGB)),
    "xgboost forest": lambda: xgboost.XGBRegressor(**XGB | {"n_estimators": 1, "num_parallel_tree": 5}),
    "lightgbm": lambda: lightgbm.LGBMRegressor(**LGBM),
    "lightgbm, ordinal": lambda: encoded(lightgbm.LGBMRegressor(**LGBM), OrdinalEncoder()),
    "lightgbm forest": lambda: lightgbm.LGBMRegressor(**LGBM, boosting_type="rf", subsample=0.7, subsample_freq=1),
    "catboost": lambda: catboost.CatBoostRegressor(**CAT),
}
PROBABILITY = {
    "tree": lambda: encoded(DecisionTreeClassifier(max_depth=5, random_state=0)),
    "forest": lambda: encoded(RandomForestClassifier(**FOREST)),
    "extra trees": lambda: encoded(ExtraTreesClassifier(**FOREST), OrdinalEncoder()),
}
MARGIN = {
    "boosting": lambda: encoded(GradientBoostingClassifier(**BOOSTED)),
    "histogram": lambda: HistGradientBoostingClassifier(**HIST, categorical_features="from_dtype"),
    "xgboost": lambda: xgboost.XGBClassifier(**XGB),
    "lightgbm": lambda: lightgbm.LGBMClassifier(**LGBM),
    "catboost": lambda: catboost.CatBoostClassifier(**CAT),
}
OPTIONS = {
    "plain": {},
    "cuts": {"cuts": {"a": [1.5, 3.5], "d": [0.1]}},
    "group": {"groups": {"pair": ["a", "g"]}},
    "fixed": {"fixed": ["b"]},
    "reference": {"reference": POOL.iloc[[1, 3, 4]]},
}


def margins(model, frame, column):
    """The model's own margin of a class; of two classes, that of the first is the negative."""
    inner = model[-1] if hasattr(model, "steps") else model
    if isinstance(inner, xgboost.XGBClassifier):
        found = model.predict(frame, output_margin=True)
    elif isinstance(inner, lightgbm.LGBMClassifier):
        found = model.predict_proba(frame, raw_score=True)
    elif isinstance(inner, catboost.CatBoostClassifier):
        found = model.predict(frame, prediction_type="RawFormulaVal")
    else:
        found = model.decision_function(frame)
    found = np.asarray(found, dtype=np.float64)
    return found[:, column] if found.ndim == 2 else found if column == 1 else -found


def is_true(fact, value):
    """Whether a fact is true of a value of its column, from what it says."""
    if pd.isna(value):
        return fact.kind == "missing"
    if fact.kind == "equals":
        return value == fact.value
    low = -np.inf if fact.low is None else fact.low
    return fact.kind != "missing" and low <= value < (np.inf if fact.high is None else fact.high)


def listed(row, pool, groups, q):
    """All neighbors with their probabilities: each group keeps its values, or takes those of a row of the pool."""
    each = []
    for names in groups:
        own = [({name: row[name] for name in names}, 1 - q)]
        each.append([*own, *(({name: other[name] for name in names}, q / len(pool)) for other in pool)])
    for parts in itertools.product(*each):
        values = dict(row)
        chance = 1.0
        for part, p in parts:
            values |= part
            chance *= p
        yield values, chance


def framed(rows, like):
    frame = pd.DataFrame(rows)[list(like.columns)]
    return frame.astype(like.dtypes.to_dict())


def leaves_of(explainer, row, settings=None, **keywords):
    """The case of a row, and what its leaves give; None if they give nothing."""
    case = explainer.case(row, settings or Settings(**keywords))
    case.predictor.open(case.neighborhood.original)
    answers = explainer.table_answers(ask=case.settings.is_auto)
    return case, ModelTrees(explainer.model, explainer.columns, explainer.space).moments(case, answers)


def check(explainer, own, pool, answer, groups, *, sigma=1.0, near=1e-12, n_trees=2):
    """Compare the moments of all facts about a row, a frame, with those of all its neighbors."""
    case, leaves = leaves_of(explainer, own, sigma=sigma)
    assert leaves is not None
    q, candidates = case.settings.replace_probability, case.neighborhood.candidates
    moments = exact(candidates, candidates.chances(q), *leaves())
    row = own.to_dict("records")[0]
    rows, chances = zip(*listed(row, pool.to_dict("records"), groups, q), strict=True)
    chances = np.array(chances)
    drops = answer(own)[0] - answer(framed(rows, own))
    mean = chances @ drops
    assert moments.mean == pytest.approx(mean, abs=near)
    assert candidates.n_facts > 0
    for j in range(candidates.n_facts):
        fact = case.neighborhood.fact(j)
        assert is_true(fact, row[fact.column])
        flips = np.array([not is_true(fact, each[fact.column]) for each in rows])
        assert moments.b[j] == pytest.approx(chances @ flips, abs=1e-12)
        assert moments.c[j] == pytest.approx(chances @ (flips * drops) - (chances @ flips) * mean, abs=near)
    variance = chances @ (drops - mean) ** 2
    assert moments.variance == pytest.approx(variance, abs=near, rel=1e-9 if n_trees == 1 else 0.3)


def rounding(kind):
    return 1e-5 if "xgboost" in kind else 1e-11  # XGBoost's own sums are float32


@pytest.fixture(scope="module")
def fitted():
    """Models by kind, each fitted once."""
    known = {}

    def fit(kind, makers, target):
        if (kind, id(makers)) not in known:
            known[kind, id(makers)] = makers[kind]().fit(FRAME, target)
        return known[kind, id(makers)]

    return fit


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("kind", NUMBER)
def test_numbers_of_every_library(fitted, kind, options):
    model = fitted(kind, NUMBER, SCORE)
    explainer = Explainer(model, Table(POOL, **OPTIONS[options]))
    groups = {"group": [["a", "g"], ["b"], ["d"]], "fixed": [["a"], ["g"], ["d"]]}.get(
        options, [[c] for c in POOL]
    )
    pool = OPTIONS[options].get("reference", POOL)
    row = 2 if options in ("plain", "group") else 150  # of the pool, or with values that it lacks
    check(
        explainer,
        FRAME.iloc[[row]],
        pool,
        lambda rows: np.asarray(model.predict(rows), dtype=np.float64),
        groups,
        near=rounding(kind),
        n_trees=1 if kind in ("tree", "extra tree") else 6,
    )


@pytest.mark.parametrize("sigma", [0.0, 3.0, 12.0])
@pytest.mark.parametrize("kind", ["tree", "histogram", "lightgbm"])
def test_every_sigma_and_a_row_that_lacks_a_value(fitted, kind, sigma):
    model = fitted(kind, NUMBER, SCORE)
    row = int(np.flatnonzero(FRAME.b.isna())[-1])
    explainer = Explainer(model, Table(POOL))
    answer = lambda rows: np.asarray(model.predict(rows), dtype=np.float64)  # noqa: E731
    check(explainer, FRAME.iloc[[row]], POOL, answer, [[c] for c in POOL], sigma=sigma, near=1e-11)


@pytest.mark.parametrize("target", [TWO, THREE], ids=["two", "three"])
@pytest.mark.parametrize("kind", PROBABILITY)
def test_probabilities_of_averages(kind, target):
    model = PROBABILITY[kind]().fit(FRAME, target)
    for row in (2, 150):
        own = FRAME.iloc[[row]]
        column = int(model.predict_proba(own)[0].argmax())
        answer = lambda rows, column=column: model.predict_proba(rows)[:, column]  # noqa: E731
        check(Explainer(model, Table(POOL)), own, POOL, answer, [[c] for c in POOL], n_trees=1 + (kind != "tree"))


@pytest.mark.parametrize("target", [TWO, THREE], ids=["two", "three"])
@pytest.mark.parametrize("kind", MARGIN)
def test_margins_of_boosted_classifiers(kind, target):
    model = MARGIN[kind]().fit(FRAME, target)
    for column in (0, 1):
        label = model.classes_[column]
        explainer = Explainer(model, Table(POOL), output=label, output_scale="margin")
        answer = lambda rows, column=column: margins(model, rows, column)  # noqa: E731
        check(explainer, FRAME.iloc[[2]], POOL, answer, [[c] for c in POOL], near=rounding(kind))


def test_the_difference_of_two_classes():
    model = PROBABILITY["forest"]().fit(FRAME, THREE)
    explainer = Explainer(model, Table(POOL), output=(2, 0))
    answer = lambda rows: model.predict_proba(rows) @ [-1.0, 0.0, 1.0]  # noqa: E731
    check(explainer, FRAME.iloc[[2]], POOL, answer, [[c] for c in POOL])


def test_columns_in_another_order_and_columns_that_the_model_lacks():
    model = lightgbm.LGBMRegressor(**LGBM).fit(FRAME[["d", "g", "a"]], SCORE)
    answer = lambda rows: model.predict(rows[["d", "g", "a"]])  # noqa: E731
    check(Explainer(model, Table(POOL)), FRAME.iloc[[2]], POOL, answer, [["a"], ["g"], ["d"]], near=1e-11)


def test_columns_that_say_the_same_thing_are_one_attribute():
    pool = POOL.assign(twin=-2 * POOL.d)
    frame = FRAME.assign(twin=-2 * FRAME.d)
    model = ExtraTreesRegressor(**FOREST).fit(frame[["a", "d", "twin"]], SCORE)
    small = pool[["a", "d", "twin"]]
    check(
        Explainer(model, Table(small)),
        frame[["a", "d", "twin"]].iloc[[2]],
        small,
        model.predict,
        [["a"], ["d", "twin"]],
    )


def test_numbers_between_two_values_of_float32():
    step = np.spacing(np.float32(1.0)) / 4
    values = 1.0 + step * RNG.integers(0, 12, (80, 3))
    frame = pd.DataFrame(values, columns=list("abc"))
    model = RandomForestRegressor(n_estimators=4, random_state=0).fit(
        frame, values.sum(axis=1) * 1e7 + RNG.normal(size=80)
    )
    pool = frame.iloc[:9].reset_index(drop=True)
    check(Explainer(model, Table(pool)), pool.iloc[[4]], pool, model.predict, [["a"], ["b"], ["c"]], near=1e-9)


@pytest.mark.parametrize("kind", MARGIN)
def test_probabilities_of_boosted_classifiers_are_drawn(kind):
    model = MARGIN[kind]().fit(FRAME, TWO)
    assert leaves_of(Explainer(model, Table(FRAME)), FRAME.iloc[[2]])[1] is None
    assert Explainer(model, Table(FRAME)).explain(2).queries.source == "drawn"


def test_what_is_no_sum_over_leaves_is_left_to_drawing(fitted):
    model, row = fitted("forest", NUMBER, SCORE), FRAME.iloc[[2]]
    assert leaves_of(Explainer(model, Table(FRAME)), row)[1] is not None
    assert leaves_of(Explainer(model, Table(FRAME, neighbors="realistic")), row)[1] is None
    assert (
        leaves_of(Explainer(model, Table(FRAME, valid=lambda rows: (rows["a"] >= 0).to_numpy())), row)[1] is None
    )
    assert leaves_of(Explainer(model.predict, Table(FRAME)), row)[1] is not None
    assert leaves_of(Explainer(lambda rows: model.predict(rows) + 0, Table(FRAME)), row)[1] is None
    numbers = FRAME[["a", "d"]]
    for other in (make_pipeline(PCA(), RandomForestRegressor(**FOREST)), LinearRegression()):
        assert leaves_of(Explainer(other.fit(numbers, SCORE), Table(numbers)), numbers.iloc[[2]])[1] is None
    label = PROBABILITY["forest"]().fit(FRAME, TWO)
    assert leaves_of(Explainer(label, Table(FRAME), task="label"), row)[1] is None


def test_a_value_that_no_row_has_in_a_constant_column_is_left_to_drawing():
    frame = pd.DataFrame({"a": FRAME.a, "c": np.where(np.arange(N) < 100, 0.0, 1.0)})
    model = RandomForestRegressor(**FOREST).fit(frame, SCORE + 3 * frame.c)
    explainer = Explainer(model, Table(frame.iloc[:100]))
    assert leaves_of(explainer, frame.iloc[[5]])[1] is not None
    assert leaves_of(explainer, frame.iloc[[150]])[1] is None


@pytest.mark.parametrize("queries", ["auto", 400])
def test_trees_that_answer_unlike_their_model_are_not_used(fitted, monkeypatch, queries):
    model = fitted("forest", NUMBER, SCORE)
    explainer = Explainer(model, Table(FRAME))
    assert leaves_of(explainer, FRAME.iloc[[2]], queries=queries)[1] is not None
    own = model[-1].predict(model[:-1].transform(FRAME.iloc[[2]]))[0]
    monkeypatch.setattr(type(model[-1]), "predict", lambda self, rows: np.where(rows[:, -1] > 0, own, own + 1e-3))
    other = Explainer(model, Table(FRAME))
    assert leaves_of(other, FRAME.iloc[[2]], queries=queries)[1] is None


def test_a_number_of_queries_is_never_exceeded_and_counts_the_comparison(fitted):
    model = fitted("xgboost", NUMBER, SCORE)
    case, leaves = leaves_of(Explainer(model, Table(FRAME)), FRAME.iloc[[2]], queries=100)
    assert leaves is not None
    assert case.predictor.questions.n_answers == 1 + 99 // 8
    e = Explainer(model, Table(FRAME)).explain(2, queries=100)
    assert (e.queries.source, e.queries.total <= 100) == ("leaves", True)


def test_trees_are_read_again_elsewhere(fitted):
    model = fitted("lightgbm", NUMBER, SCORE)
    explainer = Explainer(model, Table(FRAME))
    case = leaves_of(explainer, FRAME.iloc[[7]])[0]
    trees, answers = ModelTrees(model, explainer.columns, explainer.space), explainer.table_answers()
    cells, mean, variance = trees.moments(case, answers)()
    others = pickle.loads(pickle.dumps(trees)).moments(case, answers)()
    assert (cells.tobytes(), mean, variance) == (others[0].tobytes(), *others[1:])
