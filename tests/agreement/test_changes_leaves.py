"""Changes by the leaves of trees against plain enumeration of all rows that training values make."""

import itertools

import numpy as np
import pandas as pd
import pytest
from catboost import CatBoostRegressor
from lightgbm import LGBMClassifier
from sklearn.compose import make_column_transformer
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier
from xgboost import XGBClassifier

from anchorline.changes.result import Changes
from anchorline.errors import ParameterError
from anchorline.explainer import Explainer

LEVELS = ["p", "q", "r"]
QUIET = {"verbose": 0, "allow_writing_files": False, "thread_count": 1}


def table(seed):
    rng = np.random.default_rng(seed)
    n = 90
    frame = pd.DataFrame(
        {
            "a": rng.integers(0, 7, n) * 1.0,
            "b": rng.integers(0, 5, n),
            "c": np.array(LEVELS, dtype=object)[rng.integers(0, 3, n)],
            "d": np.round(rng.normal(size=n), 1)[rng.integers(0, 6, n)],
            "e": rng.integers(0, 2, n),
        }
    )
    score = (
        frame["a"] * rng.normal() + frame["b"] * rng.normal() + (frame["c"] == "q") * 2 - frame["d"] * frame["e"]
    )
    return frame, score + rng.normal(size=n) * 0.3, rng


def fitted(kind, frame, score):
    """A fitted model, and the names of its targets; None for another decision."""
    encode = make_column_transformer((OneHotEncoder(), ["c"]), remainder="passthrough")
    high, third = (score > score.median()).to_numpy(), np.digitize(score, np.quantile(score, [0.4, 0.8]))
    names = np.array(["low", "middle", "high"], dtype=object)
    model, labels, targets = {
        "tree": (DecisionTreeClassifier(max_depth=4, random_state=0), high, [None]),
        "forest": (RandomForestClassifier(8, max_depth=4, random_state=0), names[third], [None, "high", "low"]),
        "extra": (ExtraTreesClassifier(5, max_depth=5, random_state=0), high, [None]),
        "boosting": (
            HistGradientBoostingClassifier(max_iter=8, min_samples_leaf=4),
            high,
            [None, ">= 0.8", "< 0.1"],
        ),
        "several": (HistGradientBoostingClassifier(max_iter=5, min_samples_leaf=4), names[third], [None, "high"]),
        "gradient": (GradientBoostingClassifier(n_estimators=12, random_state=0), names[third], [None, "low"]),
        "number": (GradientBoostingRegressor(n_estimators=20), score, ["+1.5", "< -4", ">= 5"]),
        "xgboost": (XGBClassifier(n_estimators=8, max_depth=3, n_jobs=1), high.astype(int), [None, ">= 0.8"]),
        "lightgbm": (LGBMClassifier(n_estimators=8, min_child_samples=4, n_jobs=1, verbose=-1), high, [None]),
        "catboost": (CatBoostRegressor(iterations=9, depth=3, **QUIET), score, ["+1.5", ">= 5"]),
    }[kind]
    return make_pipeline(encode, model).fit(frame, labels), targets


def enumerated(frame, row, turned, most):
    """The fewest facts that turn, and the least cost of such a change per set of attributes, by the definition."""
    base, values, distances = frame.iloc[[row]], {}, {}
    for name in frame:
        own = base[name].iloc[0]
        values[name] = [v for v in sorted(set(frame[name])) if v != own]
        if name == "c":
            distances[name] = dict.fromkeys(values[name], 0.5)
        else:
            place = {
                v: ((frame[name] < v).sum() + (frame[name] <= v).sum()) / 2 / len(frame) for v in set(frame[name])
            }
            distances[name] = {v: abs(place[v] - place[own]) for v in values[name]}
    for size in range(1, most + 1):
        best = {}
        for names in itertools.combinations(frame.columns, size):
            combos = list(itertools.product(*(values[name] for name in names)))
            rows = pd.concat([base] * len(combos), ignore_index=True)
            for i, name in enumerate(names):
                rows[name] = pd.Series([combo[i] for combo in combos], dtype=frame[name].dtype)
            costs = [sum(distances[n][v] for n, v in zip(names, combo, strict=True)) for combo in combos]
            reached = [cost for cost, turns in zip(costs, turned(rows), strict=True) if turns]
            if reached:
                best[names] = min(reached)
        if best:
            return size, best
    return None, {}


def judge(model, frame, row, target):
    """Whether rows reach the target, by the model's own answers."""
    if target is None:
        own = model.predict(frame.iloc[[row]])[0]
        return lambda rows: model.predict(rows) != own
    if target[0] not in "<>+-":
        return lambda rows: model.predict(rows) == target
    is_classifier = hasattr(model, "predict_proba")
    column = model.predict_proba(frame.iloc[[row]])[0].argmax() if is_classifier else None

    def output(rows):
        return model.predict_proba(rows)[:, column] if is_classifier else model.predict(rows)

    if target[0] in "+-":
        limit = output(frame.iloc[[row]])[0] + float(target)
        return lambda rows: output(rows) >= limit
    limit = float(target.split()[1])
    return lambda rows: output(rows) >= limit if target.startswith(">=") else output(rows) < limit


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")  # LightGBM, inside a pipeline
@pytest.mark.parametrize(
    "kind",
    ["tree", "forest", "extra", "boosting", "several", "gradient", "number", "xgboost", "lightgbm", "catboost"],
)
def test_leaves_find_the_fewest_and_cheapest_facts_and_prove_it(kind):
    frame, score, rng = table(len(kind))
    model, targets = fitted(kind, frame, score)
    explainer, n_found = Explainer(model, frame), 0
    for target in targets:
        for row in rng.choice(len(frame), 2, replace=False).tolist():
            turned = judge(model, frame, row, target)
            if turned(frame.iloc[[row]])[0]:
                with pytest.raises(ParameterError, match="already meets"):
                    explainer.changes(row, target=target)
                continue
            found = explainer.changes(row, target=target, n=100)
            assert all(level.by_leaves for level in found.levels)
            fewest, best = enumerated(frame, row, turned, 3)
            assert found.fewest == fewest
            assert found.n_proved == (fewest or 4) - 1  # proven, not only tried
            cheapest = {}
            for option in found:
                if len(option.moves) == fewest:
                    names = tuple(sorted(move.attribute for move in option.moves))
                    cheapest[names] = min(option.cost, cheapest.get(names, np.inf))
            assert cheapest.keys() == best.keys()
            assert all(cost == pytest.approx(best[names]) for names, cost in cheapest.items())
            for place in range(len(found)):
                assert turned(pd.DataFrame([found.changed(place)]).astype(frame.dtypes.to_dict()))[0]
            n_found += len(found)
    assert n_found > 0


def test_leaves_prove_where_queries_cannot_and_ask_little():
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(rng.normal(size=(600, 6)), columns=list("abcdef"))
    label = (frame["a"] > 0) & (frame["b"] > 0) & (frame["c"] > 0)
    model = HistGradientBoostingClassifier(random_state=0).fit(frame, label)
    row = int(np.flatnonzero((frame[["a", "b", "c"]] < -0.3).all(axis=1))[0])
    explainer = Explainer(model, frame)
    by_leaves = explainer.changes(row, n=1)
    asked = Explainer(lambda rows: 1 * model.predict_proba(rows), frame).changes(row, n=1, queries=5000)
    assert (by_leaves.fewest, asked.fewest) == (3, None)
    assert (by_leaves.n_proved, asked.n_proved) == (2, 0)
    assert by_leaves.n_queries < 500
    proof = "Proven by the leaves of the trees: no change of up to two facts to values in the table does it."
    assert proof in by_leaves.details()
    assert Changes.from_json(by_leaves.to_json()) == by_leaves


def test_a_model_that_differs_from_its_trees_is_asked():
    frame, score, _ = table(1)

    class Nudged(RandomForestRegressor):
        def predict(self, rows):
            return super().predict(rows) + (np.asarray(rows)[:, 0] > 3)

    plain = frame.drop(columns="c")
    model = Nudged(5, max_depth=4, random_state=0).fit(plain, score)
    found = Explainer(model, plain).changes(0, target="+1")
    assert not any(level.by_leaves for level in found.levels)


def test_few_queries_leave_the_trees_alone():
    frame, score, _ = table(2)
    model, _ = fitted("tree", frame, score)
    found = Explainer(model, frame).changes(0, queries=300)
    assert not any(level.by_leaves for level in found.levels)
    assert found.n_queries <= 300
