"""Leaf sums of every library and encoder equal enumeration of all neighbors, which the model answers."""

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import (
    BaggingRegressor,
    ExtraTreesRegressor,
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    RandomForestRegressor,
)
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler
from sklearn.tree import DecisionTreeRegressor

import anchorline as al
from anchorline.search.sampling import cancelling_event
from anchorline.settings import Settings
from helpers.forests import neighbors

P, NAMES = 0.3, ["a", "b", "g"]
RNG = np.random.default_rng(3)
FRAME = pd.DataFrame(
    {
        "a": RNG.integers(0, 6, 200).astype(float),
        "b": RNG.choice([0.5, 1.5, 2.5, np.nan], 200),
        "g": RNG.choice(["red", "blue", "green"], 200),
    }
)
TARGET = (FRAME.a * (FRAME.g == "red") + FRAME.b.fillna(4) + RNG.normal(size=200) / 9).to_numpy()
SMALL = FRAME.iloc[:9].reset_index(drop=True)  # the neighborhood is enumerated over these values
CUTS = {"a": [1.5, 3.5], "b": [1.0, 2.0]}


def categorical(frame):
    return frame.astype({"g": pd.CategoricalDtype(["blue", "green", "red"])})


def xgboost():
    from xgboost import XGBRegressor

    return XGBRegressor(n_estimators=6, max_depth=3, n_jobs=1, enable_categorical=True)


def lightgbm():
    from lightgbm import LGBMRegressor

    return LGBMRegressor(n_estimators=6, num_leaves=6, n_jobs=1, verbose=-1, min_data_per_group=5)


def catboost():
    from catboost import CatBoostRegressor

    settings = {"iterations": 6, "depth": 3, "thread_count": 1, "allow_writing_files": False, "verbose": False}
    return CatBoostRegressor(**settings, one_hot_max_size=9, cat_features=["g"])


def encoded(model, encoder):
    imputer = make_pipeline(SimpleImputer(add_indicator=True), StandardScaler())
    return make_pipeline(
        make_column_transformer((encoder, ["g"]), (imputer, ["b"]), remainder="passthrough", sparse_threshold=0),
        model,
    )


NATIVE = {
    "histogram": lambda: HistGradientBoostingRegressor(max_iter=6, max_leaf_nodes=6, random_state=0),
    "xgboost": xgboost,
    "lightgbm": lightgbm,
    "catboost": catboost,
}
ENCODED = {
    "tree": lambda: encoded(DecisionTreeRegressor(max_depth=4, random_state=0), OrdinalEncoder()),
    "forest": lambda: encoded(RandomForestRegressor(5, max_depth=4, random_state=0), OneHotEncoder()),
    "extra trees": lambda: encoded(ExtraTreesRegressor(5, max_depth=4, random_state=0), OrdinalEncoder()),
    "bagged trees": lambda: encoded(BaggingRegressor(DecisionTreeRegressor(max_depth=3), 4), OneHotEncoder()),
    "boosting": lambda: encoded(GradientBoostingRegressor(n_estimators=6, random_state=0), OneHotEncoder()),
    "xgboost, one-hot": lambda: encoded(xgboost(), OneHotEncoder()),
    "lightgbm, ordinal": lambda: encoded(lightgbm(), OrdinalEncoder()),
}
OPTIONS = {
    "intervals": {"literals": "intervals"},
    "bounds": {},
    "redraw": {"within": "redraw"},
    "group": {"groups": {"a and b": ["a", "b"]}},
}


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("kind", NATIVE | ENCODED)
def test_leaf_sums_equal_the_models_answers_to_all_neighbors(kind, options):
    prepare = categorical if kind in NATIVE else pd.DataFrame
    model = (NATIVE | ENCODED)[kind]().fit(prepare(FRAME), TARGET)
    table = al.Table(prepare(SMALL), cuts=CUTS, **OPTIONS[options])
    case = al.Explainer(model, table, output_range=(0, 10)).prepare(2, Settings.from_keywords(flip_probability=P))
    leaves = case.leaves
    assert leaves is not None, case.sampled_because
    rows, literals = SMALL.to_dict("records"), case.neighborhood.literals
    groups = [["a", "b"], ["g"]] if options == "group" else [[name] for name in NAMES]
    texts = [[each.text for each in literals if each.name == " and ".join(group)] for group in groups]
    found = neighbors(rows, rows[2], groups, texts, P, redraw=options == "redraw")
    chances, values, flips = (np.array(each) for each in zip(*found, strict=True))
    inputs = prepare(pd.DataFrame(list(values))[NAMES])
    drops = (model.predict(prepare(SMALL.iloc[2:3]))[0] - model.predict(inputs).astype(np.float64)) / 10
    near = 1e-12 if "xgboost" not in kind else 1e-6  # the model's own sums are float32
    evidence, flips = leaves.evidence(leaves.drop_square), flips.astype(float)
    assert evidence.drop_mean == pytest.approx(chances @ drops, abs=near)
    assert evidence.drop_square == pytest.approx(chances @ drops**2, abs=near)
    assert evidence.second_moments == pytest.approx(flips.T @ (flips * chances[:, None]), abs=1e-12)
    assert evidence.cross_moments == pytest.approx(flips.T @ (chances * drops), abs=near)
    contributions = np.zeros(flips.shape[1])
    contributions[0] = 1.0
    inside = flips[:, 0] == 0
    expected = (chances * drops**2)[inside].sum() / chances[inside].sum()
    assert leaves.drop_square_given(cancelling_event(contributions, case.law)) == pytest.approx(expected, abs=near)
