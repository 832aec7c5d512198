"""Kinds of models."""

import os
from typing import Any

import numpy as np
import pandas as pd

from tests.first_try.kinds import Try, amount, frame, kind, label, numbers, three

SKLEARN = "scikit-learn"
NAMES = ("age", "income")
os.environ.setdefault("KERAS_BACKEND", "torch")  # which Keras reads when it is imported


def of_numbers(model: Any, target: Any = None, **given: Any) -> Try:
    """Fit on the columns of numbers."""
    target = label() if target is None else target
    return Try(model.fit(numbers(), target), numbers(), **{"columns": NAMES, **given})


def of_frame(first: Any, model: Any = None, target: Any = None, **given: Any) -> Try:
    """Fit a pipeline of a ColumnTransformer, whose part for texts is ``first``, and a model."""
    from sklearn.compose import make_column_transformer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    parts = make_column_transformer((StandardScaler(), ["age", "income"]), (first, ["color"]))
    pipeline = make_pipeline(parts, LogisticRegression() if model is None else model)
    return Try(pipeline.fit(frame(), label() if target is None else target), frame(), **given)


def _encoders() -> None:
    from sklearn import impute, pipeline, preprocessing

    hot = preprocessing.OneHotEncoder(sparse_output=False, handle_unknown="ignore")
    for first in (
        hot,
        preprocessing.OneHotEncoder(),
        preprocessing.OrdinalEncoder(),
        preprocessing.TargetEncoder(cv=2),
        preprocessing.OneHotEncoder(drop="first", min_frequency=2),
        pipeline.make_pipeline(impute.SimpleImputer(strategy="most_frequent"), hot),
    ):
        name = type(first).__name__ if first is not hot else "OneHotEncoder, dense"
        name = "SimpleImputer and OneHotEncoder" if name == "Pipeline" else name
        name += ", one category dropped" if getattr(first, "drop", None) else ""
        kind("model", SKLEARN, f"pipeline with {name}")(lambda first=first: of_frame(first))
    from sklearn.experimental import enable_iterative_imputer  # noqa: F401  it is experimental

    iterative = impute.IterativeImputer(random_state=0)
    marking = impute.SimpleImputer(add_indicator=True)
    for imputer in (impute.SimpleImputer(), marking, impute.KNNImputer(), iterative):

        def with_missing(imputer: Any = imputer) -> Try:
            from sklearn.linear_model import LogisticRegression

            holes = numbers().copy()
            holes.iloc[::7, 0] = np.nan
            model = pipeline.make_pipeline(imputer, LogisticRegression()).fit(holes, label())
            return Try(model, holes, columns=NAMES)

        more = " and indicators" if imputer.add_indicator else ""
        kind("model", SKLEARN, f"pipeline with {type(imputer).__name__}{more}")(with_missing)


_encoders()


@kind("model", SKLEARN, "StackingClassifier")
def _() -> Try:
    from sklearn import ensemble, linear_model, tree

    parts = [("a", linear_model.LogisticRegression()), ("b", tree.DecisionTreeClassifier(max_depth=3))]
    return of_numbers(ensemble.StackingClassifier(parts, cv=2))


@kind("model", SKLEARN, "VotingClassifier, soft")
def _() -> Try:
    from sklearn import ensemble, linear_model, tree

    parts = [("a", linear_model.LogisticRegression()), ("b", tree.DecisionTreeClassifier(max_depth=3))]
    return of_numbers(ensemble.VotingClassifier(parts, voting="soft"))


@kind("model", SKLEARN, "VotingClassifier, hard")
def _() -> Try:
    from sklearn import ensemble, linear_model, tree

    parts = [("a", linear_model.LogisticRegression()), ("b", tree.DecisionTreeClassifier(max_depth=3))]
    return of_numbers(ensemble.VotingClassifier(parts, voting="hard"))


@kind("model", SKLEARN, "CalibratedClassifierCV")
def _() -> Try:
    from sklearn import calibration, svm

    return of_numbers(calibration.CalibratedClassifierCV(svm.LinearSVC(), cv=2))


@kind("model", SKLEARN, "GridSearchCV")
def _() -> Try:
    from sklearn import linear_model, model_selection

    return of_numbers(model_selection.GridSearchCV(linear_model.LogisticRegression(), {"C": [0.1, 1]}, cv=2))


@kind("model", SKLEARN, "TunedThresholdClassifierCV")
def _() -> Try:
    from sklearn import linear_model, model_selection

    model = model_selection.TunedThresholdClassifierCV(linear_model.LogisticRegression(), cv=2)
    return of_numbers(model)


@kind("model", SKLEARN, "FixedThresholdClassifier")
def _() -> Try:
    from sklearn import linear_model, model_selection

    model = model_selection.FixedThresholdClassifier(
        linear_model.LogisticRegression(), threshold=0.3, pos_label="yes"
    )
    return of_numbers(model)


@kind("model", SKLEARN, "SVC with probabilities (CalibratedClassifierCV)")
def _() -> Try:
    from sklearn import calibration, svm

    return of_numbers(calibration.CalibratedClassifierCV(svm.SVC(), cv=2, ensemble=False))


def _simple() -> None:
    from sklearn import (
        ensemble,
        gaussian_process,
        linear_model,
        naive_bayes,
        neighbors,
        neural_network,
        svm,
        tree,
    )

    mlp = {"hidden_layer_sizes": (4,), "solver": "lbfgs", "max_iter": 2000, "random_state": 0, "alpha": 1.0}
    for title, model, target, decisions in (
        ("SVC without probabilities", svm.SVC(), label, ("no", "yes")),
        ("LogisticRegression, three classes", linear_model.LogisticRegression(), three, ("low", "mid", "high")),
        ("RandomForestClassifier", ensemble.RandomForestClassifier(10, random_state=0), label, ("no", "yes")),
        ("GaussianNB", naive_bayes.GaussianNB(), label, ("no", "yes")),
        ("MLPClassifier", neural_network.MLPClassifier(**mlp), label, ("no", "yes")),
        ("KNeighborsClassifier", neighbors.KNeighborsClassifier(), label, ("no", "yes")),
        ("GaussianProcessClassifier", gaussian_process.GaussianProcessClassifier(), label, ("no", "yes")),
        ("RidgeClassifier", linear_model.RidgeClassifier(), label, ("no", "yes")),
        ("Ridge", linear_model.Ridge(), amount, None),
        ("MLPRegressor", neural_network.MLPRegressor(**mlp), amount, None),
        ("KNeighborsRegressor", neighbors.KNeighborsRegressor(), amount, None),
        ("GaussianProcessRegressor", gaussian_process.GaussianProcessRegressor(), amount, None),
        ("DecisionTreeRegressor", tree.DecisionTreeRegressor(max_depth=4), amount, None),
    ):

        def make(model: Any = model, target: Any = target, decisions: Any = decisions) -> Try:
            return of_numbers(model, target(), decisions=decisions)

        kind("model", SKLEARN, title)(make)


_simple()


@kind("model", SKLEARN, "classifier of integer labels")
def _() -> Try:
    from sklearn.linear_model import LogisticRegression

    return of_numbers(LogisticRegression(), (label() == "yes").astype(int), decisions=("class 0", "class 1"))


@kind("model", SKLEARN, "classifier of booleans")
def _() -> Try:
    from sklearn.linear_model import LogisticRegression

    return of_numbers(LogisticRegression(), label() == "yes", decisions=("class False", "class True"))


@kind("model", SKLEARN, "HistGradientBoostingClassifier with categories")
def _() -> Try:
    from sklearn.ensemble import HistGradientBoostingClassifier

    table = frame().astype({"color": "category"})
    model = HistGradientBoostingClassifier(max_iter=10, categorical_features="from_dtype").fit(table, label())
    return Try(model, table)


@kind("model", SKLEARN, "MultiOutputClassifier", refused="output=0")
def _() -> Try:
    from sklearn.multioutput import MultiOutputClassifier
    from sklearn.tree import DecisionTreeClassifier

    model = MultiOutputClassifier(DecisionTreeClassifier(max_depth=2))
    return of_numbers(model, np.column_stack([label(), three()]))


@kind("model", SKLEARN, "MultiOutputClassifier, output=0")
def _() -> Try:
    from sklearn.multioutput import MultiOutputClassifier
    from sklearn.tree import DecisionTreeClassifier

    model = MultiOutputClassifier(DecisionTreeClassifier(max_depth=2))
    return of_numbers(model, np.column_stack([label(), three()]), keywords={"output": 0})


@kind("model", SKLEARN, "multi-output tree classifier, output=1")
def _() -> Try:
    from sklearn.tree import DecisionTreeClassifier

    model, target = DecisionTreeClassifier(max_depth=2), np.column_stack([label(), three()])
    return of_numbers(model, target, keywords={"output": 1}, decisions=("low", "mid", "high"))


@kind("model", SKLEARN, "multi-output regressor", refused="output=0")
def _() -> Try:
    from sklearn.linear_model import Ridge

    return of_numbers(Ridge(), np.column_stack([amount(), -amount()]))


@kind("model", SKLEARN, "multi-output regressor, output=0")
def _() -> Try:
    from sklearn.linear_model import Ridge
    from sklearn.multioutput import MultiOutputRegressor

    target = np.column_stack([amount(), -amount()])
    return of_numbers(MultiOutputRegressor(Ridge()), target, decisions=None, keywords={"output": 0})


@kind("model", SKLEARN, "IsolationForest")
def _() -> Try:
    from sklearn.ensemble import IsolationForest

    model = IsolationForest(n_estimators=10, random_state=0).fit(numbers())
    return Try(model, numbers(), decisions=("class -1", "class 1"), columns=NAMES)


@kind("model", SKLEARN, "OneClassSVM")
def _() -> Try:
    from sklearn.svm import OneClassSVM

    return Try(OneClassSVM().fit(numbers()), numbers(), decisions=("class -1", "class 1"), columns=NAMES)


@kind("model", SKLEARN, "LocalOutlierFactor(novelty=True)")
def _() -> Try:
    from sklearn.neighbors import LocalOutlierFactor

    model = LocalOutlierFactor(novelty=True, contamination=0.1).fit(numbers().to_numpy())
    return Try(model, numbers().to_numpy(), decisions=("class -1", "class 1"), columns=("x0", "x1"))


@kind("model", SKLEARN, "LocalOutlierFactor without novelty", refused="novelty=True")
def _() -> Try:
    from sklearn.neighbors import LocalOutlierFactor

    return Try(LocalOutlierFactor().fit(numbers()), numbers())


@kind("model", SKLEARN, "KMeans", refused="cluster")
def _() -> Try:
    from sklearn.cluster import KMeans

    return Try(KMeans(2, n_init=1).fit(numbers()), numbers())


@kind("model", SKLEARN, "PCA", refused="PCA")
def _() -> Try:
    from sklearn.decomposition import PCA

    return Try(PCA(1).fit(numbers()), numbers())


# ---- boosters


@kind("model", "XGBoost", "XGBClassifier", "xgboost")
def _() -> Try:
    import xgboost

    model = xgboost.XGBClassifier(n_estimators=5, n_jobs=1)
    return of_numbers(model, (label() == "yes").astype(int), decisions=("class 0", "class 1"))


@kind("model", "XGBoost", "XGBClassifier, three classes and early stopping", "xgboost")
def _() -> Try:
    import xgboost

    target = np.unique(three(), return_inverse=True)[1]
    model = xgboost.XGBClassifier(n_estimators=5, n_jobs=1, early_stopping_rounds=2)
    model.fit(numbers(), target, eval_set=[(numbers(), target)], verbose=False)
    return Try(model, numbers(), decisions=("class 0", "class 1", "class 2"), columns=NAMES)


@kind("model", "XGBoost", "XGBRegressor with pandas categories and missing values", "xgboost")
def _() -> Try:
    import xgboost

    table = frame().astype({"color": "category", "age": float})
    table.iloc[::9, 0] = np.nan
    model = xgboost.XGBRegressor(n_estimators=5, n_jobs=1, enable_categorical=True).fit(table, amount())
    return Try(model, table, decisions=None)


@kind("model", "XGBoost", "XGBRanker", "xgboost")
def _() -> Try:
    import xgboost

    target = np.unique(three(), return_inverse=True)[1]
    model = xgboost.XGBRanker(n_estimators=5, n_jobs=1).fit(numbers(), target, group=[60, 60])
    return Try(model, numbers(), decisions=None, columns=NAMES)


@kind("model", "XGBoost", "native Booster", "xgboost")
def _() -> Try:
    import xgboost

    matrix = xgboost.DMatrix(numbers(), (label() == "yes").astype(int))
    model = xgboost.train({"objective": "binary:logistic", "nthread": 1}, matrix, 5)
    return Try(model, numbers(), decisions=("class 0", "class 1"), columns=NAMES)


@kind("model", "LightGBM", "LGBMClassifier", "lightgbm")
def _() -> Try:
    import lightgbm

    return of_numbers(lightgbm.LGBMClassifier(n_estimators=5, n_jobs=1, verbose=-1))


@kind("model", "LightGBM", "LGBMClassifier, three classes, categories and missing values", "lightgbm")
def _() -> Try:
    import lightgbm

    table = frame().astype({"color": "category", "age": float})
    table.iloc[::9, 0] = np.nan
    model = lightgbm.LGBMClassifier(n_estimators=5, n_jobs=1, verbose=-1).fit(table, three())
    return Try(model, table, decisions=("low", "mid", "high"))


@kind("model", "LightGBM", "LGBMRegressor with early stopping", "lightgbm")
def _() -> Try:
    import lightgbm

    model = lightgbm.LGBMRegressor(n_estimators=5, n_jobs=1, verbose=-1)
    model.fit(
        numbers(),
        amount(),
        eval_set=[(numbers(), amount())],
        callbacks=[lightgbm.early_stopping(2, verbose=False)],
    )
    return Try(model, numbers(), decisions=None, columns=NAMES)


@kind("model", "LightGBM", "LGBMRanker", "lightgbm")
def _() -> Try:
    import lightgbm

    target = np.unique(three(), return_inverse=True)[1]
    model = lightgbm.LGBMRanker(n_estimators=5, n_jobs=1, verbose=-1).fit(numbers(), target, group=[60, 60])
    return Try(model, numbers(), decisions=None, columns=NAMES)


@kind("model", "LightGBM", "native Booster", "lightgbm")
def _() -> Try:
    import lightgbm

    data = lightgbm.Dataset(numbers(), (label() == "yes").astype(int))
    model = lightgbm.train({"objective": "binary", "num_threads": 1, "verbose": -1}, data, 5)
    return Try(model, numbers(), decisions=("class 0", "class 1"), columns=NAMES)


_CAT = {"iterations": 5, "verbose": False, "allow_writing_files": False, "thread_count": 1}


@kind("model", "CatBoost", "CatBoostClassifier with texts", "catboost")
def _() -> Try:
    import catboost

    return Try(catboost.CatBoostClassifier(**_CAT, cat_features=["color"]).fit(frame(), label()), frame())


@kind("model", "CatBoost", "CatBoostClassifier, three classes", "catboost")
def _() -> Try:
    import catboost

    return of_numbers(catboost.CatBoostClassifier(**_CAT), three(), decisions=("low", "mid", "high"))


@kind("model", "CatBoost", "CatBoostRegressor", "catboost")
def _() -> Try:
    import catboost

    return of_numbers(catboost.CatBoostRegressor(**_CAT), amount(), decisions=None)


@kind("model", "CatBoost", "CatBoostRanker", "catboost")
def _() -> Try:
    import catboost

    model = catboost.CatBoostRanker(**_CAT)
    model.fit(numbers(), np.unique(three(), return_inverse=True)[1], group_id=np.repeat([0, 1], 60))
    return Try(model, numbers(), decisions=None, columns=NAMES)


@kind("model", "CatBoost", "native CatBoost with Logloss", "catboost")
def _() -> Try:
    import catboost

    model = catboost.CatBoost({**_CAT, "loss_function": "Logloss"})
    return of_numbers(model, (label() == "yes").astype(int), decisions=("class 0", "class 1"))


# ---- imbalanced-learn, statsmodels, survival


@kind("model", "imbalanced-learn", "pipeline with RandomOverSampler", "imblearn")
def _() -> Try:
    from imblearn.over_sampling import RandomOverSampler
    from imblearn.pipeline import make_pipeline
    from sklearn.linear_model import LogisticRegression

    return of_numbers(make_pipeline(RandomOverSampler(random_state=0), LogisticRegression()))


@kind("model", "imbalanced-learn", "BalancedRandomForestClassifier", "imblearn")
def _() -> Try:
    from imblearn.ensemble import BalancedRandomForestClassifier

    return of_numbers(BalancedRandomForestClassifier(10, random_state=0))


@kind("model", "statsmodels", "OLS without constant", "statsmodels")
def _() -> Try:
    import statsmodels.api as sm

    return Try(sm.OLS(amount(), numbers()).fit(), numbers(), decisions=None, columns=NAMES)


@kind("model", "statsmodels", "OLS with add_constant", "statsmodels")
def _() -> Try:
    import statsmodels.api as sm

    table = sm.add_constant(numbers())
    return Try(sm.OLS(amount(), table).fit(), table, decisions=None, columns=NAMES)


@kind("model", "statsmodels", "OLS with add_constant, table without it", "statsmodels")
def _() -> Try:
    import statsmodels.api as sm

    model = sm.OLS(amount(), sm.add_constant(numbers())).fit()
    return Try(model, numbers(), decisions=None, columns=NAMES)


@kind("model", "statsmodels", "Logit", "statsmodels")
def _() -> Try:
    import statsmodels.api as sm

    model = sm.Logit((label() == "yes").astype(int), sm.add_constant(numbers())).fit(disp=0)
    return Try(model, sm.add_constant(numbers()), decisions=None, columns=NAMES)


@kind("model", "statsmodels", "GLM", "statsmodels")
def _() -> Try:
    import statsmodels.api as sm

    model = sm.GLM(amount(), numbers(), family=sm.families.Poisson()).fit()
    return Try(model, numbers(), decisions=None, columns=NAMES)


@kind("model", "statsmodels", "formula", "statsmodels")
def _() -> Try:
    import statsmodels.formula.api as smf

    model = smf.ols("amount ~ age + C(color) + np.log(income)", frame().assign(amount=amount())).fit()
    return Try(model, frame(), decisions=None)


def _times() -> pd.DataFrame:
    rng = np.random.default_rng(1)
    time = rng.exponential(np.exp(numbers()["age"] / 4)).round(2) + 0.1
    return numbers().assign(time=time, died=(rng.random(len(time)) < 0.8).astype(int))


@kind("model", "lifelines", "CoxPHFitter", "lifelines")
def _() -> Try:
    from lifelines import CoxPHFitter

    return Try(CoxPHFitter().fit(_times(), "time", "died"), numbers(), decisions=None, columns=NAMES)


@kind("model", "lifelines", "CoxPHFitter on its training frame", "lifelines", notes="time")
def _() -> Try:
    from lifelines import CoxPHFitter

    return Try(CoxPHFitter().fit(_times(), "time", "died"), _times(), decisions=None, columns=NAMES)


@kind("model", "lifelines", "WeibullAFTFitter", "lifelines")
def _() -> Try:
    from lifelines import WeibullAFTFitter

    return Try(WeibullAFTFitter().fit(_times(), "time", "died"), numbers(), decisions=None, columns=NAMES)


def _sksurv() -> Any:
    from sksurv.util import Surv

    return Surv.from_arrays(_times()["died"].astype(bool), _times()["time"])


@kind("model", "scikit-survival", "CoxPHSurvivalAnalysis", "sksurv")
def _() -> Try:
    from sksurv.linear_model import CoxPHSurvivalAnalysis

    return of_numbers(CoxPHSurvivalAnalysis(), _sksurv(), decisions=None)


@kind("model", "scikit-survival", "RandomSurvivalForest", "sksurv")
def _() -> Try:
    from sksurv.ensemble import RandomSurvivalForest

    return of_numbers(RandomSurvivalForest(5, random_state=0), _sksurv(), decisions=None)


# ---- PyTorch


def _net(n_out: int, *last: Any) -> Any:
    import torch

    torch.manual_seed(0)
    linear = torch.nn.Linear(4, n_out)
    net = torch.nn.Sequential(torch.nn.Linear(2, 4), torch.nn.ReLU(), linear)
    with torch.no_grad():
        linear.bias -= net(torch.as_tensor(numbers().to_numpy(), dtype=torch.float32)).mean(dim=0)
    return torch.nn.Sequential(*net, *last)


@kind("model", "PyTorch", "nn.Module with two logits", "torch", notes="softmax")
def _() -> Try:
    return Try(_net(2), numbers(), decisions=("class 0", "class 1"), columns=NAMES)


@kind("model", "PyTorch", "nn.Module with a softmax", "torch")
def _() -> Try:
    import torch

    return Try(
        _net(3, torch.nn.Softmax(dim=1)), numbers(), decisions=("class 0", "class 1", "class 2"), columns=NAMES
    )


@kind("model", "PyTorch", "nn.Module with one output", "torch")
def _() -> Try:
    return Try(_net(1), numbers(), decisions=None, columns=NAMES)


@kind("model", "PyTorch", "nn.Module in double precision with classes=", "torch", notes="softmax")
def _() -> Try:
    return Try(_net(2).double(), numbers(), columns=NAMES, keywords={"classes": ["no", "yes"]})


@kind("model", "PyTorch", "function that returns a tensor with grad", "torch")
def _() -> Try:
    import torch

    net = _net(1)

    def score(rows: Any) -> Any:
        return net(torch.as_tensor(rows.to_numpy(), dtype=torch.float32))

    return Try(score, numbers(), decisions=None, columns=NAMES)


@kind("model", "PyTorch", "function that returns a tensor", "torch")
def _() -> Try:
    import torch

    net = _net(2, torch.nn.Softmax(dim=1))

    def score(rows: Any) -> Any:
        with torch.no_grad():
            return net(torch.as_tensor(rows, dtype=torch.float32))

    return Try(score, numbers().to_numpy(), decisions=("class 0", "class 1"), columns=("x0", "x1"))


@kind("model", "PyTorch", "nn.Module on a tensor, with a row that is a tensor", "torch", notes="softmax")
def _() -> Try:
    import torch

    table = torch.as_tensor(numbers().to_numpy(), dtype=torch.float32)
    return Try(_net(2), table, table[3], decisions=("class 0", "class 1"), columns=("x0", "x1"))


@kind("model", "PyTorch", "skorch NeuralNetClassifier", "skorch", "torch")
def _() -> Try:
    import torch
    from skorch import NeuralNetClassifier

    net = NeuralNetClassifier(_net(2, torch.nn.Softmax(dim=1)), max_epochs=1, verbose=0, train_split=None)
    net.fit(numbers().to_numpy(np.float32), (label() == "yes").astype(np.int64))
    table = numbers().to_numpy(np.float32)
    return Try(net, table, decisions=("class 0", "class 1"), columns=("x0", "x1"))


# ---- Keras


def _keras(*last: Any) -> Any:
    import keras

    keras.utils.set_random_seed(0)
    return keras.Sequential([keras.Input((2,)), keras.layers.Dense(4, activation="relu"), *last])


@kind("model", "Keras", "Sequential with a softmax", "keras", "torch")
def _() -> Try:
    import keras

    model = _keras(keras.layers.Dense(2, activation="softmax"))
    model.compile(optimizer=keras.optimizers.Adam(0.05), loss="sparse_categorical_crossentropy")
    model.fit(numbers().to_numpy(), (label() == "yes").astype(int), epochs=20, verbose=0)
    return Try(model, numbers(), decisions=("class 0", "class 1"), columns=NAMES)


@kind("model", "Keras", "Sequential with a sigmoid", "keras", "torch")
def _() -> Try:
    import keras

    model = _keras(keras.layers.Dense(1, activation="sigmoid"))
    return Try(model, numbers(), decisions=None, columns=NAMES)


@kind("model", "Keras", "Sequential with one number", "keras", "torch")
def _() -> Try:
    import keras

    return Try(_keras(keras.layers.Dense(1)), numbers().to_numpy(), decisions=None, columns=("x0", "x1"))


# ---- functions


def _p(rows: Any) -> np.ndarray:
    rows = np.asarray(rows, dtype=float)
    return 1 / (1 + np.exp(-(rows[:, 0] + rows[:, 1] - 9)))


def _function(title: str, answer: Any, *needs: str, decisions: Any = None, **keywords: Any) -> None:
    def make() -> Try:
        return Try(answer, numbers(), decisions=decisions, columns=NAMES, keywords=keywords)

    kind("model", "functions", title, *needs)(make)


def _both(rows: Any) -> dict[str, np.ndarray]:
    return {"no": 1 - _p(rows), "yes": _p(rows)}


def _polars(rows: Any) -> Any:
    import polars

    return polars.DataFrame(_both(rows))


_function("list of numbers", lambda rows: _p(rows).tolist())
_function("pandas Series", lambda rows: pd.Series(_p(rows), index=rows.index))
_function(
    "pandas frame", lambda rows: pd.DataFrame({"no": 1 - _p(rows), "yes": _p(rows)}), decisions=("no", "yes")
)
_function("Polars frame", _polars, "polars", decisions=("no", "yes"))
_function("dict of columns", _both, decisions=("no", "yes"))
_function("list of dicts", lambda rows: [{"no": 1 - p, "yes": p} for p in _p(rows)], decisions=("no", "yes"))
_function("0/1 integers", lambda rows: (_p(rows) > 0.5).astype(int), decisions=("class 0", "class 1"))
_function("booleans", lambda rows: _p(rows) > 0.5, decisions=("class False", "class True"))
_function(
    "0/1 integers with classes=",
    lambda rows: (_p(rows) > 0.5).astype(int),
    decisions=("no", "yes"),
    classes=["no", "yes"],
)
_function("texts", lambda rows: np.where(_p(rows) > 0.5, "yes", "no"), decisions=("no", "yes"))
_function(
    "probabilities", lambda rows: np.column_stack([1 - _p(rows), _p(rows)]), decisions=("class 0", "class 1")
)


# ---- classes of other libraries, and of one's own


class AutoGluonLike:
    """Answers with frames of probabilities, whose columns are the labels."""

    class_labels = ("no", "yes")

    def predict(self, data: pd.DataFrame) -> pd.Series:
        return pd.Series(np.where(_p(data) > 0.5, "yes", "no"), index=data.index)

    def predict_proba(self, data: pd.DataFrame) -> pd.DataFrame:
        return pd.DataFrame({"no": 1 - _p(data), "yes": _p(data)}, index=data.index)


class H2OLike:
    """Answers with a frame: the label, and a column of probabilities per class."""

    def predict(self, data: pd.DataFrame) -> pd.DataFrame:
        p = _p(data)
        return pd.DataFrame({"predict": np.where(p > 0.5, "yes", "no"), "no": 1 - p, "yes": p})


class TabPFNLike:
    """A slow classifier of arrays."""

    classes_ = np.array(["no", "yes"])

    def fit(self, X: Any, y: Any) -> "TabPFNLike":
        return self

    def predict(self, X: Any) -> np.ndarray:
        return self.classes_[self.predict_proba(X).argmax(axis=1)]

    def predict_proba(self, X: Any) -> np.ndarray:
        return np.column_stack([1 - _p(X), _p(X)])


class FrameOnly:
    """Takes pandas frames only."""

    def predict(self, rows: pd.DataFrame) -> pd.Series:
        assert isinstance(rows, pd.DataFrame)
        return rows["age"] + rows["income"]


class PolarsOnly:
    """Takes Polars frames only."""

    def predict(self, rows: Any) -> Any:
        import polars

        assert isinstance(rows, polars.DataFrame)
        return rows["age"] + rows["income"]


@kind("model", "other classes", "AutoGluon-like")
def _() -> Try:
    return Try(AutoGluonLike(), numbers(), columns=NAMES)


@kind("model", "other classes", "H2O-like")
def _() -> Try:
    return Try(H2OLike(), numbers(), columns=NAMES)


@kind("model", "other classes", "TabPFN-like")
def _() -> Try:
    return Try(TabPFNLike(), numbers(), columns=NAMES)


@kind("model", "other classes", "class that takes pandas frames only")
def _() -> Try:
    return Try(FrameOnly(), numbers(), decisions=None, columns=NAMES)


@kind("model", "other classes", "class that takes Polars frames only", "polars")
def _() -> Try:
    import polars

    table = polars.DataFrame({name: numbers()[name].to_numpy() for name in NAMES})
    return Try(PolarsOnly(), table, decisions=None, columns=NAMES)


# ---- files


def _onnx(**options: Any) -> Any:
    from skl2onnx import to_onnx
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression().fit(numbers().to_numpy(np.float32), label())
    return to_onnx(model, numbers().to_numpy(np.float32)[:1], options=options or None)


@kind("model", "files", "ONNX InferenceSession", "onnxruntime", "skl2onnx")
def _() -> Try:
    import onnxruntime

    session = onnxruntime.InferenceSession(_onnx(zipmap=False).SerializeToString())
    return Try(session, numbers(), columns=NAMES)


@kind("model", "files", "ONNX InferenceSession with ZipMap", "onnxruntime", "skl2onnx")
def _() -> Try:
    import onnxruntime

    return Try(onnxruntime.InferenceSession(_onnx().SerializeToString()), numbers(), columns=NAMES)


@kind("model", "files", "ONNX file of several inputs", "onnxruntime", "skl2onnx", "onnx")
def _() -> Try:
    import tempfile

    from skl2onnx import to_onnx
    from skl2onnx.common.data_types import FloatTensorType, StringTensorType

    from anchorline.model.loaders import load_model

    inputs = [(n, FloatTensorType([None, 1])) for n in ("age", "income")] + [
        ("color", StringTensorType([None, 1]))
    ]
    from sklearn.preprocessing import OneHotEncoder

    fitted = of_frame(OneHotEncoder(sparse_output=False)).model
    with tempfile.NamedTemporaryFile(suffix=".onnx") as file:
        file.write(to_onnx(fitted, initial_types=inputs, options={"zipmap": False}).SerializeToString())
        file.flush()
        model = load_model(file.name)
    return Try(model, frame())


@kind("model", "files", "path of a model file", refused="load_model")
def _() -> Try:
    return Try("model.onnx", numbers())
