"""Changes of few facts against plain enumeration of every row that can be put together from training values."""

import hashlib
import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from anchorline.errors import ParameterError
from anchorline.explainer import Explainer
from anchorline.spaces.hypercube import Hypercube
from anchorline.spaces.table import Table

COLORS = ["red", "green", "blue"]


def columns(rng):
    n = int(rng.integers(6, 25))
    return pd.DataFrame(
        {
            "a": rng.integers(0, int(rng.integers(2, 6)), n),
            "b": np.round(rng.normal(size=n), 1)[rng.integers(0, min(n, 4), n)],
            "c": [COLORS[i] for i in rng.integers(0, 3, n)],
            "d": rng.random(n) < 0.5,
            "e": rng.integers(10, 13, n) * 1.0,
        }
    )


def generated(seed):
    """A small table of numbers and categories, a model that decides by a random table of rows, and a row."""
    rng = np.random.default_rng(seed)
    frame = columns(rng)
    while len(Table(frame).attributes) < 5:  # columns that say the same thing would change together
        frame = columns(rng)
    weights, rarity = rng.integers(1, 2**31, 5), float(rng.choice([0.2, 0.05, 0.01, 0.002, 0.0]))
    kind = rng.choice(["hash", "sum", "and"])
    thresholds = rng.normal(size=5)

    def score(row):
        numbers = [float(row[0]), float(row[1]), COLORS.index(row[2]), float(row[3]), float(row[4])]
        if kind == "hash":
            mixed = sum(int(w) * int(10 * v + 7) ** 2 for w, v in zip(weights, numbers, strict=True))
            return 1.0 if (mixed * 2654435761 % 2**32) / 2**32 < rarity else 0.0
        if kind == "sum":
            return float(np.dot(thresholds, numbers))
        return float(numbers[0] >= 2 and numbers[2] == 1 and numbers[3] == 1)

    def model(rows):
        return np.array([score(row) for row in rows.itertuples(index=False)], dtype=np.float64)

    return frame, model, rng


def enumerated(frame, model, row, threshold, allowed):
    """The fewest facts that turn the decision, and the single values that do; straight from the definition."""
    base = frame.iloc[[row]]
    now = model(base)[0] >= threshold
    values = {
        name: [v for v in sorted(set(frame[name])) if v != base[name].iloc[0] and allowed(name, v)]
        for name in frame
    }
    fewest, singles = None, set()
    for size in (1, 2, 3):
        for names in itertools.combinations(frame.columns, size):
            combos = list(itertools.product(*(values[name] for name in names)))
            if not combos:
                continue
            rows = pd.concat([base] * len(combos), ignore_index=True)
            for i, name in enumerate(names):
                rows[name] = pd.Series([combo[i] for combo in combos], dtype=frame[name].dtype)
            turned = (model(rows) >= threshold) != now
            if size == 1:
                singles |= {(names[0], combo[0]) for combo, turns in zip(combos, turned, strict=True) if turns}
            if turned.any():
                fewest = size
        if fewest is not None:
            break
    return fewest, singles


def check(seed, wishes, allowed):
    frame, model, rng = generated(seed)
    threshold, row = float(np.median(model(frame))) + 1e-9, int(rng.integers(len(frame)))
    explainer = Explainer(model, frame, task="number", threshold=threshold)
    fewest, singles = enumerated(frame, model, row, threshold, lambda name, v: allowed(frame, row, name, v))
    if not any(allowed(frame, row, name, v) for name in frame for v in set(frame[name]) - {frame[name].iloc[row]}):
        with pytest.raises(ParameterError, match="No attribute may change"):
            explainer.changes(row, n=3, **wishes)
        return None
    found = explainer.changes(row, n=3, **wishes)
    assert found.fewest == fewest
    assert found.n_proved >= min(3, (fewest or 4) - 1, found.n_attributes)
    now = model(frame.iloc[[row]])[0] >= threshold
    for place, option in enumerate(found):
        changed = pd.DataFrame([found.changed(place)]).astype(frame.dtypes.to_dict())
        assert (model(changed)[0] >= threshold) != now
        assert model(changed)[0] == option.output
        assert all(value in set(frame[name]) for name, value in option.values.items())
        assert all(allowed(frame, row, name, value) for name, value in option.values.items())
        for dropped in option.values:  # every fact is needed
            without = changed.copy()
            without[dropped] = frame[dropped].iloc[[row]].to_numpy()
            assert (model(without)[0] >= threshold) == now
    return frame, row, found, singles


@pytest.mark.parametrize("seed", range(60))
def test_the_fewest_facts_are_found_and_every_example_turns(seed):
    result = check(seed, {}, lambda frame, row, name, value: True)
    if result is None:
        return
    frame, row, found, singles = result
    for option in found:
        if len(option.moves) == 1:
            (name, value), own = next(iter(option.values.items())), frame[next(iter(option.values))].iloc[row]
            assert (name, value) in singles
            if name in ("a", "b", "e"):  # no nearer value on that side turns
                side = np.sign(value - own)
                nearer = [v for n, v in singles if n == name and np.sign(v - own) == side]
                assert abs(value - own) == min(abs(v - own) for v in nearer)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    seed=st.integers(1000, 10**6),
    fixed=st.sets(st.sampled_from("abcde"), max_size=4),
    direction=st.dictionaries(st.sampled_from("abe"), st.sampled_from(["up", "down"])),
    most=st.integers(0, 5) | st.none(),
    colors=st.sets(st.sampled_from(COLORS)) | st.none(),
)
def test_no_example_touches_what_is_fixed_or_goes_against_a_wish(seed, fixed, direction, most, colors):
    allowed_values = {} if most is None else {"a": (None, most)}
    if colors is not None:
        colors &= {*generated(seed)[0]["c"]}  # a value that the table does not contain is refused
        allowed_values["c"] = sorted(colors)

    def allowed(frame, row, name, value):
        own, sign = frame[name].iloc[row], {"up": 1, "down": -1}
        if name in fixed or (name == "c" and colors is not None and value not in colors):
            return False
        if name in direction and np.sign(value - own) != sign[direction[name]]:
            return False
        return not (name == "a" and most is not None and value > most)

    check(seed, {"fixed": sorted(fixed), "direction": direction, "allowed": allowed_values}, allowed)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    seed=st.integers(1000, 10**6),
    queries=st.integers(2, 300),
    max_values=st.integers(2, 6),
    n=st.integers(1, 4),
    k=st.integers(1, 4),
    rows=st.booleans(),
)
def test_what_is_said_to_be_proven_is_true_with_few_queries_and_values(seed, queries, max_values, n, k, rows):
    frame, model, rng = generated(seed)
    threshold, row = float(np.median(model(frame))) + 1e-9, int(rng.integers(len(frame)))
    asked = []

    def counting(inputs):
        asked.append(len(inputs))
        return model(inputs)

    explainer = Explainer(counting, frame, task="number", threshold=threshold)
    examples = "rows" if rows else "values"
    found = explainer.changes(row, n=n, k=k, queries=queries, max_values=max_values, examples=examples)
    assert sum(asked) == found.n_queries <= queries
    assert len(found) <= n
    fewest, _ = enumerated(frame, model, row, threshold, lambda name, value: True)
    if rows:
        other = (model(frame) >= threshold) != (model(frame.iloc[[row]])[0] >= threshold)
        differing = (frame != frame.iloc[row]).sum(axis=1)[other]
        fewest = int(differing.min()) if len(differing) else None
    assert found.n_proved < (fewest or 10**6)
    assert found.fewest is None or found.fewest >= (fewest or 4)
    now = model(frame.iloc[[row]])[0] >= threshold
    for place, option in enumerate(found):
        changed = pd.DataFrame([found.changed(place)]).astype(frame.dtypes.to_dict())
        assert (model(changed)[0] >= threshold) != now
        assert len(option.moves) <= k


def mixed(rng):
    """A table with missing values, dates, a group of columns, and numbers that are read as categories."""
    n = int(rng.integers(8, 25))
    frame = pd.DataFrame(
        {
            "number": np.where(rng.random(n) < 0.2, np.nan, rng.integers(0, 4, n)),
            "level": np.where(rng.random(n) < 0.2, None, rng.choice(["u", "v", "w"], n).astype(object)),
            "date": pd.to_datetime("2024-01-01") + pd.to_timedelta(rng.integers(0, 3, n), unit="D"),
            "first": rng.integers(0, 2, n),
            "second": rng.choice(["x", "y"], n),
            "code": rng.integers(0, 3, n),
        }
    )
    names = {0: "zero", 1: "one", 2: "two"}
    table = Table(frame, groups={"both": ["first", "second"]}, categorical={"code": names})
    return (frame, table) if len(table.attributes) == 5 else mixed(rng)


UNITS = (["number"], ["level"], ["date"], ["first", "second"], ["code"])


@pytest.mark.parametrize("seed", range(30))
def test_missing_values_dates_groups_and_levels_by_enumeration(seed):
    rng = np.random.default_rng(seed)
    (frame, table), share = mixed(rng), float(rng.choice([0.3, 0.1, 0.03, 0.01]))
    row = int(rng.integers(len(frame)))
    own = frame.iloc[[row]]

    def model(rows):
        texts = rows.astype(object).where(rows.notna(), "-").astype(str).agg("|".join, axis=1)
        keys = [hashlib.md5(f"{seed}{text.replace('.0|', '|')}".encode()).digest() for text in texts]
        return np.where(np.array([key[0] + key[1] / 256 for key in keys]) < 256 * share, "yes", "no")

    now, fewest = model(own)[0], None
    rows = [frame[unit].dropna().drop_duplicates() for unit in UNITS]
    values = [
        [each for each in rows[i].itertuples(index=False, name=None) if each != tuple(own[unit].iloc[0])]
        for i, unit in enumerate(UNITS)
    ]
    for size in (3, 2, 1):
        for chosen in itertools.combinations(range(5), size):
            combos = list(itertools.product(*(values[i] for i in chosen)))
            changed = own.loc[own.index.repeat(len(combos))].reset_index(drop=True)
            for place, i in enumerate(chosen):
                for at, name in enumerate(UNITS[i]):
                    changed[name] = pd.Series([combo[place][at] for combo in combos], dtype=frame[name].dtype)
            if combos and (model(changed) != now).any():
                fewest = size
    found = Explainer(model, table, task="label").changes(row, n=5)
    assert found.fewest == fewest
    assert found.n_proved >= min(3, (fewest or 4) - 1, found.n_attributes)
    for place in range(len(found)):
        changed = pd.DataFrame([found.changed(place)], columns=frame.columns).astype(frame.dtypes.to_dict())
        assert model(changed)[0] != now


def test_the_hypercube_by_enumeration():
    rng = np.random.default_rng(5)
    for _ in range(30):
        weights, x = rng.integers(-3, 4, 7), rng.choice([-1, 1], 7)
        limit = int(rng.integers(-6, 7))

        def vote(z, weights=weights, limit=limit):
            return np.where(z @ weights > limit, "yes", "no")

        found = Explainer(vote, Hypercube()).changes(x)
        fewest = None
        for size in (3, 2, 1):
            for places in itertools.combinations(range(7), size):
                z = x.copy()
                z[list(places)] *= -1
                if vote(z[None])[0] != vote(x[None])[0]:
                    fewest = size
        assert found.fewest == fewest
        assert found.n_proved >= (fewest or 4) - 1
        for option in found:
            z = x.copy()
            z[[int(move.attribute[1:]) for move in option.moves]] *= -1
            assert vote(z[None])[0] == option.decision != vote(x[None])[0]
