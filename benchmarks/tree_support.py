"""Which explainers of trees can explain native categories, missing values and one-hot pipelines, and add up."""

import contextlib
import importlib.util
import io
import os
import re
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from anchorline.explainer import Explainer
from anchorline.spaces.table import Table
from benchmarks.tasks import SEED

N_ROWS = 400
N_EXPLAINED = 20
SMALL: dict[str, Any] = {"n_estimators": 20, "random_state": SEED, "n_jobs": 1}
TOLERANCE = 1e-4  # of the range of the predictions: far above the rounding of float32, far below a wrong branch


@dataclass(frozen=True)
class Form:
    """One way to hand a model to an explainer: the model, the training table, and what to call this way."""

    model: Any
    frame: Any
    note: str = ""


def tree_support() -> Iterator[dict[str, Any]]:
    """Yield one row per library and kind of input: what each explainer does with it."""
    for kind, library, forms in _cases():
        yield {
            "input": kind,
            "model": library,
            "anchorline": _ours(forms[0]),
            **{name: _outcome(name, total, forms) for name, total in PEERS.items()},
        }


def _cases() -> Iterator[tuple[str, str, list[Form]]]:
    """Yield the kind of input, the library, and the forms in which its model can be explained, best one first."""
    for kind, frame in _tables().items():
        truth = _target(frame)
        for library, model in _models(kind).items():
            fitted = model.fit(frame, truth)
            yield kind, library, [Form(fitted, frame), *_numeric_forms(kind, fitted, frame)]


def _numeric_forms(kind: str, fitted: Any, frame: Any) -> list[Form]:
    """Return the forms for explainers that take numbers only: codes of categories, or the last step alone."""
    if kind == "native categories":
        codes = frame.assign(city=frame["city"].cat.codes.astype(float))
        return [Form(fitted, codes, "from codes")]
    if kind == "one-hot pipeline":
        encoded = fitted[:-1].transform(frame).astype(float)
        return [Form(fitted[-1], encoded, "per encoded column")]
    return []


def _tables() -> dict[str, Any]:
    import pandas as pd

    rng = np.random.default_rng(SEED)
    numbers = {"income": rng.normal(size=N_ROWS), "age": rng.normal(size=N_ROWS).round(1)}
    frame = pd.DataFrame(numbers)
    city = rng.choice(list("abcdefgh"), N_ROWS)
    holes = frame.mask(rng.random(frame.shape) < 0.2)
    return {
        "native categories": frame.assign(city=pd.Categorical(city)),
        "missing values": holes.assign(debt=rng.normal(size=N_ROWS)),
        "one-hot pipeline": frame.assign(city=city),
    }


def _target(frame: Any) -> np.ndarray:
    third = frame["city"].isin(["a", "c", "d"]) if "city" in frame else frame["debt"] > 0
    return np.asarray(frame["income"].fillna(1.0) + 2.0 * third * (frame["age"].fillna(0.0) > 0))


def _models(kind: str) -> dict[str, Any]:
    """Return an unfitted model per library; forests of scikit-learn have no native categories."""
    from lightgbm import LGBMRegressor
    from sklearn.compose import make_column_transformer
    from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder
    from xgboost import XGBRegressor

    models = {
        "XGBoost": XGBRegressor(enable_categorical=kind == "native categories", **SMALL),
        "LightGBM": LGBMRegressor(verbose=-1, min_data_per_group=5, **SMALL),
        "histogram boosting": HistGradientBoostingRegressor(max_iter=20, random_state=SEED),
        "forest": RandomForestRegressor(**SMALL),
    }
    if kind == "native categories":
        del models["forest"]
    if kind != "one-hot pipeline":
        return models
    encoder = OneHotEncoder(sparse_output=False)
    return {
        name: make_pipeline(
            make_column_transformer((encoder, ["city"]), remainder="passthrough").set_output(transform="pandas"),
            model,
        )
        for name, model in models.items()
    }


def _ours(form: Form) -> str:
    """Return whether our sums add up and come from the leaves of the model, or why neighbors are sampled."""
    explainer = Explainer(form.model, Table(form.frame))
    expected = np.asarray(form.model.predict(form.frame.iloc[:N_EXPLAINED]), dtype=float)
    for row, prediction in enumerate(expected.tolist()):
        e = explainer.explain(row, k=3, queries=400)
        if e.queries.source != "leaves":
            return "draws neighbors"
        if abs(e.base + e.contributions.sum() - prediction) > TOLERANCE * np.ptp(expected):
            return "does not add up"
    return "adds up"


def _outcome(name: str, total: Callable[[Form, Any], np.ndarray], forms: list[Form]) -> str:
    """Return what an explainer does: adds up to the predictions, is off by a share of their range, or refuses."""
    if importlib.util.find_spec(name) is None:
        return "not installed"
    failure = ""
    for form in forms:
        rows = form.frame.iloc[:N_EXPLAINED]
        try:
            with _silence():
                found = np.asarray(total(form, rows), dtype=float).ravel()
        except (Exception, SystemExit) as error:  # whatever a peer raises is its refusal
            failure = f"refuses ({type(error).__name__}: {_quoted(error)})"
            continue
        expected = np.asarray(forms[0].model.predict(forms[0].frame.iloc[:N_EXPLAINED]), dtype=float)
        share = float(np.abs(found - expected).max() / np.ptp(expected))
        verdict = "adds up" if share <= TOLERANCE else f"off by {100 * share:.0f}% of the range"
        return f"{verdict}, {form.note}" if form.note else verdict
    return failure


def _quoted(error: BaseException) -> str:
    """Return the beginning of an error's text without times and lists, which differ from run to run."""
    text = re.sub(r"^\[[\d:]+\] ", "", " ".join(str(error).split()))
    return text.partition("{")[0][:90].strip()


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """Keep what peers print and warn about out of the results; some write below Python's own streams."""
    with open(os.devnull, "w") as nothing, warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        with contextlib.redirect_stderr(nothing):
            yield


def _by_shap(form: Form, rows: Any) -> np.ndarray:
    """Base value plus Shapley values against background rows, which TreeExplainer calls interventional."""
    import shap

    explainer = shap.TreeExplainer(form.model, form.frame.iloc[-100:], feature_perturbation="interventional")
    return np.asarray(explainer.expected_value + explainer.shap_values(rows, check_additivity=False).sum(axis=1))


def _by_shapiq(form: Form, rows: Any) -> np.ndarray:
    """Base value plus Shapley values, path-dependent, which is all that shapiq's TreeExplainer computes."""
    import shapiq

    explainer = shapiq.TreeExplainer(form.model, max_order=1, min_order=0, index="SV")
    values = rows.to_numpy() if form.note or "city" not in rows else rows
    each = values if isinstance(values, np.ndarray) else [values.iloc[i] for i in range(len(values))]
    found = [explainer.explain(row) for row in each]
    return np.array([one.baseline_value + sum(one.get_n_order(1).values) for one in found])


def _by_woodelf(form: Form, rows: Any) -> np.ndarray:
    """Base value plus Shapley values against background rows."""
    import woodelf

    background = form.frame.iloc[-100:]
    explainer = woodelf.WoodelfExplainer(form.model, background)
    values = np.asarray(explainer.shap_values(rows, verbose=False), dtype=float).reshape(len(rows), -1)
    return np.asarray(form.model.predict(background).mean() + values.sum(axis=1))


PEERS: dict[str, Callable[[Form, Any], np.ndarray]] = {
    "shap": _by_shap,
    "shapiq": _by_shapiq,
    "woodelf": _by_woodelf,
}
