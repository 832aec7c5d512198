"""The trees that are read from a model answer like the model itself: every library, encoder and kind of value."""

import catboost
import lightgbm
import numpy as np
import pandas as pd
import pytest
import xgboost
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.ensemble import (
    BaggingClassifier,
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
from sklearn.model_selection import FixedThresholdClassifier, GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor, ExtraTreeRegressor

from anchorline.model.loaders import load_model
from anchorline.model.outputs import resolve
from anchorline.model.trees import Reading, agrees, read

N_ROWS = 240
SMALL = {"n_estimators": 6, "random_state": 0}
QUIET = {"n_estimators": 6, "verbose": -1, "n_jobs": 1, "min_child_samples": 5}


def compared(reading, ask, rows):
    """Compare trees with the answers of their model to some rows."""
    return agrees(reading, ask(rows), rows)


def table():
    """A number with missing values, a number with few values, and a category."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"income": rng.normal(size=N_ROWS), "age": rng.normal(size=N_ROWS).round(1)})
    frame["city"] = pd.Categorical(rng.choice(list("pqrstu"), N_ROWS))
    frame.loc[::7, "income"] = np.nan
    return frame


TABLE = table()
NUMBERS = TABLE[["income", "age"]]
FULL = NUMBERS.fillna(0.0)
SCORE = (FULL.income + TABLE.city.cat.codes * 0.5 + FULL.age**2).to_numpy()
TWO, THREE = np.where(SCORE > 1.5, "good", "bad"), np.digitize(SCORE, [1.0, 2.5])
SPARSE_ZEROS = FULL.mask(np.random.default_rng(1).random(FULL.shape) < 0.3, 0.0)


def at_thresholds(frame, ensemble):
    """Rows with numbers at the thresholds of the trees, and next to them in float64 and in float32."""
    rows = []
    for j, name in enumerate(frame.columns):
        limits = np.unique(ensemble.threshold[(ensemble.feature == j) & (ensemble.category_set < 0)])
        limits = limits[np.abs(limits) < 1e38][:60]
        single = limits.astype(np.float32)
        beside = [np.nextafter(limits, -np.inf), np.nextafter(limits, np.inf), limits, single.astype(float)]
        beside += [np.nextafter(single, np.float32(end)).astype(float) for end in (-np.inf, np.inf)]
        for values in beside:
            part = frame.iloc[np.arange(len(values)) % len(frame)].copy()
            part[name] = values
            rows.append(part)
    return pd.concat(rows, ignore_index=True)


def reading_of(model, rows):
    """Read a model and check that it agrees on the rows."""
    target = resolve(model)
    reading = read(model, target)
    assert isinstance(reading, Reading), reading
    agreement = compared(reading, target.ask, rows)
    assert agreement
    assert agreement.allowed < 1e-4
    return reading, target


SCIKIT = {
    "tree": DecisionTreeRegressor(max_depth=4),
    "random tree": ExtraTreeRegressor(max_depth=4, random_state=0),
    "forest": RandomForestRegressor(**SMALL),
    "random trees": ExtraTreesRegressor(**SMALL),
    "boosting": GradientBoostingRegressor(**SMALL),
    "boosting from zero": GradientBoostingRegressor(init="zero", **SMALL),
    "boosting of quantiles": GradientBoostingRegressor(loss="quantile", **SMALL),
    "histograms": HistGradientBoostingRegressor(max_iter=6),
    "histograms with constraints": HistGradientBoostingRegressor(max_iter=6, monotonic_cst=[1, 0]),
    "early stopping": HistGradientBoostingRegressor(max_iter=50, early_stopping=True, n_iter_no_change=2),
    "bags of columns": BaggingRegressor(DecisionTreeRegressor(max_depth=3), max_features=1, **SMALL),
}


@pytest.mark.parametrize("name", SCIKIT)
def test_trees_of_scikit_learn(name):
    model = SCIKIT[name].fit(FULL, SCORE)
    reading, target = reading_of(model, FULL)
    assert compared(reading, target.ask, at_thresholds(FULL, reading.ensemble))


@pytest.mark.parametrize("labels", [TWO, THREE], ids=["two", "three"])
@pytest.mark.parametrize(
    "model",
    [
        DecisionTreeClassifier(max_depth=4),
        RandomForestClassifier(**SMALL),
        ExtraTreesClassifier(**SMALL),
        BaggingClassifier(**SMALL),
    ],
    ids=lambda model: type(model).__name__,
)
def test_probabilities_of_forests(model, labels):
    reading, target = reading_of(model.fit(FULL, labels), FULL)
    assert (reading.scale, reading.n_columns) == ("probability", len(set(labels)))
    last = reading.column(reading.n_columns - 1).evaluate(reading.transform(FULL))
    assert last.ravel() == pytest.approx(target.ask(FULL)[:, reading.n_columns - 1], abs=1e-12)


def test_the_difference_of_two_classes_is_a_sum_of_trees_too():
    model = RandomForestClassifier(**SMALL).fit(FULL, THREE)
    target = resolve(model, output=(2, 0))
    reading = read(model, target)
    assert compared(reading, target.ask, FULL)
    scores = model.predict_proba(FULL)
    assert reading.evaluate(FULL).ravel() == pytest.approx(scores[:, 2] - scores[:, 0], abs=1e-12)


XGBOOST = {
    "plain": {},
    "dart": {"booster": "dart", "rate_drop": 0.5},
    "forests": {"num_parallel_tree": 3, "subsample": 0.5},
    "pruned": {"gamma": 5.0},
    "absolute error": {"objective": "reg:absoluteerror"},
    "given base": {"base_score": -3.0},
    "zero is missing": {"missing": 0.0},
    "constraints": {"monotone_constraints": "(1,0)"},
}


@pytest.mark.filterwarnings("ignore:.*booster=dart")  # deprecated in 3.4
@pytest.mark.parametrize("name", XGBOOST)
def test_trees_of_xgboost(name):
    model = xgboost.XGBRegressor(n_estimators=6, n_jobs=1, **XGBOOST[name]).fit(SPARSE_ZEROS, SCORE)
    reading, target = reading_of(model, SPARSE_ZEROS)
    assert compared(reading, target.ask, at_thresholds(SPARSE_ZEROS, reading.ensemble))


LIGHTGBM = {
    "plain": {},
    "dart": {"boosting_type": "dart", "drop_rate": 0.5},
    "forest": {"boosting_type": "rf", "bagging_freq": 1, "bagging_fraction": 0.5},
    "zero is missing": {"zero_as_missing": True},
    "nothing is missing": {"use_missing": False},
    "quantiles": {"objective": "quantile"},
    "constant": {"min_child_samples": 1000},
}


@pytest.mark.parametrize("name", LIGHTGBM)
def test_trees_of_lightgbm(name):
    model = lightgbm.LGBMRegressor(**{**QUIET, **LIGHTGBM[name]}).fit(SPARSE_ZEROS, SCORE)
    reading, target = reading_of(model, SPARSE_ZEROS)
    if (reading.ensemble.feature >= 0).any():
        assert compared(reading, target.ask, at_thresholds(SPARSE_ZEROS, reading.ensemble))
    holes = SPARSE_ZEROS.mask(np.random.default_rng(2).random(FULL.shape) < 0.3)
    assert compared(reading, target.ask, holes)


CAT = {"iterations": 6, "depth": 3, "verbose": 0, "allow_writing_files": False, "thread_count": 1}
CATBOOST = {
    "oblivious": {},
    "depth by depth": {"grow_policy": "Depthwise"},
    "leaf by leaf": {"grow_policy": "Lossguide"},
    "missing values are largest": {"nan_mode": "Max"},
    "absolute error": {"loss_function": "MAE"},
    "constant": {"depth": 1, "min_data_in_leaf": 1000, "grow_policy": "Depthwise"},
}


@pytest.mark.parametrize("name", CATBOOST)
def test_trees_of_catboost(name):
    model = catboost.CatBoostRegressor(**{**CAT, **CATBOOST[name]}).fit(NUMBERS, SCORE)
    reading, target = reading_of(model, NUMBERS)
    if name != "constant":
        assert compared(reading, target.ask, at_thresholds(NUMBERS, reading.ensemble))


def test_single_categories_of_catboost(tmp_path):
    frame = TABLE.assign(city=TABLE.city.astype(str), floor=np.arange(N_ROWS) % 3)
    model = catboost.CatBoostRegressor(**CAT, one_hot_max_size=9, cat_features=["city", "floor"])
    reading, target = reading_of(model.fit(frame, SCORE), frame)
    assert reading.ensemble.categories
    assert compared(reading, target.ask, frame.assign(city=["p", "new"] * (N_ROWS // 2), floor=7))
    model.save_model(tmp_path / "model.cbm")
    loaded = catboost.CatBoost().load_model(tmp_path / "model.cbm")
    assert compared(read(loaded, resolve(loaded)), loaded.predict, frame)


WITH_MISSING = {
    "tree": DecisionTreeRegressor(max_depth=4),
    "forest": RandomForestRegressor(**SMALL),
    "histograms": HistGradientBoostingRegressor(max_iter=6),
    "xgboost": xgboost.XGBRegressor(n_estimators=6, n_jobs=1),
    "lightgbm": lightgbm.LGBMRegressor(**QUIET),
}


@pytest.mark.parametrize("name", WITH_MISSING)
def test_missing_values_at_fit_and_only_at_predict(name):
    holes = NUMBERS.mask(np.random.default_rng(3).random(NUMBERS.shape) < 0.4)
    for training in (NUMBERS, FULL):
        reading, target = reading_of(WITH_MISSING[name].fit(training, SCORE), training)
        assert compared(reading, target.ask, holes)


NATIVE = {
    "histograms": HistGradientBoostingRegressor(max_iter=6, categorical_features="from_dtype"),
    "xgboost one-hot": xgboost.XGBRegressor(
        n_estimators=6, n_jobs=1, enable_categorical=True, max_cat_to_onehot=10
    ),
    "xgboost partitions": xgboost.XGBRegressor(
        n_estimators=6, n_jobs=1, enable_categorical=True, max_cat_to_onehot=1
    ),
    "lightgbm": lightgbm.LGBMRegressor(**QUIET, min_data_per_group=5, cat_smooth=1),
}


@pytest.mark.parametrize("name", NATIVE)
def test_native_categories(name):
    reading, target = reading_of(NATIVE[name].fit(TABLE, SCORE), TABLE)
    assert reading.ensemble.categories
    rng, missing = np.random.default_rng(4), TABLE.copy()
    missing["city"] = TABLE.city.mask(rng.random(N_ROWS) < 0.5)
    missing["income"] = rng.permutation(TABLE.income)
    assert compared(reading, target.ask, missing)


@pytest.mark.parametrize("name", ["histograms", "lightgbm"])
def test_unseen_categories(name):
    reading, target = reading_of(NATIVE[name].fit(TABLE, SCORE), TABLE)
    unseen = TABLE.assign(city=pd.Categorical(["new", "p", None, "other"] * (N_ROWS // 4)))
    assert compared(reading, target.ask, unseen)


def test_categories_given_as_codes():
    codes = np.column_stack([FULL.to_numpy(), TABLE.city.cat.codes])
    histograms = HistGradientBoostingRegressor(max_iter=6, categorical_features=[2]).fit(codes, SCORE)
    boosted = xgboost.XGBRegressor(
        n_estimators=6, n_jobs=1, enable_categorical=True, feature_types=["q", "q", "c"]
    )
    light = lightgbm.LGBMRegressor(**QUIET, min_data_per_group=5).fit(codes, SCORE, categorical_feature=[2])
    for model in (histograms, boosted.fit(codes, SCORE), light):
        reading, target = reading_of(model, codes)
        assert reading.ensemble.categories
        if model is not boosted:  # XGBoost refuses categories below zero
            shift = 0.6 if model is light else 9.0  # LightGBM cuts categories to whole numbers
            strange = np.concatenate([codes - [0, 0, 2], codes + np.array([0, 0, shift])])
            assert compared(reading, target.ask, strange)


def encoded(final, encoder, **kwargs):
    parts = (encoder, ["city"]), (make_pipeline(SimpleImputer(), StandardScaler()), ["income"])
    return make_pipeline(make_column_transformer(*parts, remainder="passthrough", **kwargs), final)


@pytest.mark.parametrize("encoder", [OneHotEncoder(), OneHotEncoder(drop="first"), OrdinalEncoder()], ids=str)
@pytest.mark.parametrize(
    "final",
    [
        RandomForestRegressor(**SMALL),
        GradientBoostingRegressor(**SMALL),
        HistGradientBoostingRegressor(max_iter=6),
        xgboost.XGBRegressor(n_estimators=6, n_jobs=1),
        lightgbm.LGBMRegressor(**QUIET),
    ],
    ids=lambda final: type(final).__name__,
)
def test_pipelines_with_encoders(final, encoder):
    model = encoded(final, encoder)
    if isinstance(final, lightgbm.LGBMRegressor):
        model[0].set_output(transform="pandas")
        encoder = encoder.set_params(sparse_output=False) if isinstance(encoder, OneHotEncoder) else encoder
    reading_of(model.fit(TABLE, SCORE), TABLE)


@pytest.mark.parametrize(
    "final", [RandomForestRegressor(**SMALL), xgboost.XGBRegressor(n_estimators=6, n_jobs=1)], ids=str
)
def test_sparse_matrices_between_the_steps(final):
    model = encoded(final, OneHotEncoder(sparse_output=True), sparse_threshold=1.0).fit(TABLE, SCORE)
    assert hasattr(model[0].transform(TABLE), "tocoo")
    reading_of(model, TABLE)


def test_wrappers_that_pass_answers_on():
    forest = RandomForestClassifier(**SMALL)
    search = GridSearchCV(
        make_pipeline(StandardScaler(), forest), {"randomforestclassifier__max_depth": [2]}, cv=2
    )
    reading_of(search.fit(FULL, TWO), FULL)
    threshold = FixedThresholdClassifier(forest, threshold=0.7, pos_label="good").fit(FULL, TWO)
    assert reading_of(threshold, FULL)[0].scale == "probability"


@pytest.mark.filterwarnings("ignore:.*eval_set.*")
def test_early_stopping_uses_the_best_iteration():
    fit, rest = slice(0, 160), slice(160, None)
    boosted = xgboost.XGBRegressor(n_estimators=60, early_stopping_rounds=4, n_jobs=1)
    boosted.fit(TABLE[["age"]][fit], SCORE[fit], eval_set=[(TABLE[["age"]][rest], SCORE[rest])], verbose=False)
    light = lightgbm.LGBMRegressor(**{**QUIET, "n_estimators": 60})
    stop = lightgbm.early_stopping(4, verbose=False)
    light.fit(TABLE[["age"]][fit], SCORE[fit], eval_set=[(TABLE[["age"]][rest], SCORE[rest])], callbacks=[stop])
    assert boosted.best_iteration < 55
    assert light.best_iteration_ < 55
    for model, n_best in ((boosted, boosted.best_iteration + 1), (light, light.best_iteration_)):
        for form in (model, model.get_booster() if model is boosted else model.booster_):
            assert len(reading_of(form, TABLE[["age"]])[0].ensemble.roots) == n_best


@pytest.mark.parametrize("strategy", ["one_output_per_tree", "multi_output_tree"])
def test_several_numbers_per_row(strategy):
    if strategy == "multi_output_tree" and tuple(map(int, xgboost.__version__.split(".")[:2])) < (3, 2):
        pytest.skip("this XGBoost stores leaves of several numbers in a format that is not read")
    both = np.column_stack([SCORE, -2 * SCORE])
    model = xgboost.XGBRegressor(n_estimators=6, n_jobs=1, multi_strategy=strategy).fit(FULL, both)
    assert reading_of(model, FULL)[0].n_columns == 2
    reading, target = reading_of(RandomForestRegressor(**SMALL).fit(FULL, both), FULL)
    second = reading.column(1).evaluate(reading.transform(FULL)).ravel()
    assert second == pytest.approx(target.ask(FULL)[:, 1])


def test_files_and_boosters(tmp_path):
    boosted = xgboost.XGBRegressor(n_estimators=6, n_jobs=1, enable_categorical=True).fit(TABLE, SCORE)
    light = lightgbm.LGBMRegressor(**QUIET, min_data_per_group=5).fit(TABLE, SCORE)
    boosted.save_model(tmp_path / "model.json")
    boosted.save_model(tmp_path / "model.ubj")
    light.booster_.save_model(tmp_path / "model.txt")
    for form in (boosted.get_booster(), light.booster_, *map(load_model, sorted(tmp_path.iterdir()))):
        reading, _ = reading_of(form, TABLE)
        assert reading.ensemble.categories


CLASSIFIERS = {
    "histograms": HistGradientBoostingClassifier(max_iter=6),
    "boosting": GradientBoostingClassifier(**SMALL),
    "xgboost": xgboost.XGBClassifier(n_estimators=6, n_jobs=1),
    "xgboost forest": xgboost.XGBClassifier(n_estimators=1, num_parallel_tree=6, subsample=0.8, n_jobs=1),
    "lightgbm": lightgbm.LGBMClassifier(**QUIET),
    "lightgbm one by one": lightgbm.LGBMClassifier(objective="multiclassova", num_class=3, **QUIET),
    "catboost": catboost.CatBoostClassifier(**CAT),
    "pipeline": make_pipeline(StandardScaler(), HistGradientBoostingClassifier(max_iter=6)),
}


@pytest.mark.parametrize("name", CLASSIFIERS)
@pytest.mark.parametrize("labels", [(THREE > 0).astype(int), THREE], ids=["two", "three"])
def test_margins_of_boosted_classifiers(name, labels):
    if "one by one" in name and len(set(labels)) == 2:
        pytest.skip("three classes only")
    model = clone(CLASSIFIERS[name]).fit(FULL, labels)
    target = resolve(model, output_scale="margin")
    reading = read(model, target)
    assert (reading.scale, reading.n_columns) == ("margin", len(set(labels)))
    answers = target.ask(FULL)
    assert compared(reading, target.ask, FULL)
    for column in range(reading.n_columns):
        one = reading.column(column)
        assert one.evaluate(reading.transform(FULL)).ravel() == pytest.approx(answers[:, column], abs=1e-5)
        assert len(one.roots) <= 6
