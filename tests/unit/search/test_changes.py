"""The search for changes: targets, refusals, limits of queries and values, costs, and groups."""

import itertools

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.svm import LinearSVC

import anchorline as al
from anchorline.errors import ParameterError
from anchorline.search.changes.rows import _without_copies

RNG = np.random.default_rng(11)
N = 300
FRAME = pd.DataFrame(
    {
        "income": np.round(RNG.lognormal(10, 0.4, N), -2),
        "debt": np.round(RNG.lognormal(8, 0.8, N), -2),
        "age": RNG.integers(18, 80, N),
        "purpose": RNG.choice(["car", "home", "travel"], N),
        "noise": RNG.normal(size=N),
    }
)


def score(frame):
    return 1e-4 * frame["income"].to_numpy() - 3e-4 * frame["debt"].to_numpy() + (frame["purpose"] == "home") * 0.5


def decide(frame):
    return np.where(score(frame) >= 1.2, "approved", "declined")


NUMBERS = al.Explainer(lambda frame: np.asarray(score(frame)), FRAME, task="number", output="score")
LABELS = al.Explainer(decide, FRAME, task="label")
DECLINED = int(np.argsort(score(FRAME))[N // 3])


def test_the_bound_and_the_example_are_the_nearest():
    found = LABELS.changes(DECLINED, n=5)
    by_name = {option.moves[0].name: option for option in found if option.n_facts == 1}
    row = FRAME.iloc[DECLINED]
    assert set(by_name) <= {"income", "debt", "purpose"}  # what the model ignores never appears
    option = by_name["income"]
    needed = row["income"] + (1.2 - score(FRAME)[DECLINED]) / 1e-4
    assert option.values["income"] == FRAME["income"][FRAME["income"] >= needed - 1e-6].min()
    assert option.facts[0].startswith("income >= ")
    assert option.reliability.exact
    assert option.reliability.value == 1


@pytest.mark.parametrize(
    ("target", "reached"),
    [(">= 3", lambda s: s >= 3), ("<0.5", lambda s: s < 0.5), ("+1.5", None), ("-0.5", None), ("> -1e1", None)],
)
def test_numbers_have_limits_and_moves(target, reached):
    now = score(FRAME)[DECLINED]
    if target == "> -1e1":
        with pytest.raises(ParameterError, match="already meets"):
            NUMBERS.changes(DECLINED, target=target)
        return
    found = NUMBERS.changes(DECLINED, target=target)
    assert len(found)
    for place, option in enumerate(found):
        after = float(np.asarray(score(pd.DataFrame([found.changed(place)])))[0])
        assert after == pytest.approx(option.output)
        moved = after - now
        assert reached(after) if reached else moved >= 1.5 - 1e-9 if target == "+1.5" else moved <= -0.5 + 1e-9


def test_classes_by_label_threshold_and_contrast():
    labels = np.array(["a", "b", "c"])[np.digitize(score(FRAME), [0.8, 1.6])]
    model = LogisticRegression().fit(FRAME[["income", "debt"]] / 1e4, labels)
    table = FRAME[["income", "debt"]] / 1e4
    row = int(np.flatnonzero(model.predict(table) == "a")[0])
    for wanted in ("b", "c"):
        found = al.Explainer(model, table).changes(row, target=wanted)
        assert len(found)
        assert {option.label for option in found} == {wanted}
    other = al.Explainer(model, table).changes(row)
    assert {option.label for option in other} <= {"b", "c"}
    limit = al.Explainer(model, table, output="c", threshold=0.6).changes(row)
    assert all(option.output >= 0.6 for option in limit)
    assert limit.goal["kind"] == ">="
    same = al.Explainer(model, table, output="c", threshold=0.6).changes(row, target="c")
    assert [option.facts for option in same] == [option.facts for option in limit]
    contrast = al.Explainer(model, table, output=("c", "a")).changes(row)
    assert all(option.output >= 0 for option in contrast)
    assert contrast.verify(model, table, seed=1).holds


def test_labels_of_estimators():
    target = decide(FRAME)
    table = FRAME[["income", "debt"]] / 1e4
    model = LinearSVC().fit(table, target)
    found = al.Explainer(model, table).changes(DECLINED, target="approved")
    assert {option.label for option in found} == {"approved"}
    with pytest.raises(
        ParameterError, match=r"target is 'aproved'; the model's labels are 'approved', 'declined'"
    ):
        al.Explainer(model, table).changes(DECLINED, target="aproved")


def test_unknown_targets_are_refused():
    model = LogisticRegression().fit(FRAME[["income"]] / 1e4, decide(FRAME))
    with pytest.raises(
        ParameterError,
        match=r"the model's classes are 'approved', 'declined'\. Pick one of them, or type target='>= 300'",
    ):
        al.Explainer(model, FRAME[["income"]] / 1e4).changes(0, target="maybe")
    regressor = LinearRegression().fit(FRAME[["income"]], score(FRAME))
    with pytest.raises(ParameterError, match="without a decision, so target is needed"):
        al.Explainer(regressor, FRAME[["income"]]).changes(0)
    with pytest.raises(ParameterError, match="target is 'high', but the model's output is a number"):
        al.Explainer(regressor, FRAME[["income"]]).changes(0, target="high")


def test_nothing_turns_and_what_was_tried_is_stated():
    constant = al.Explainer(lambda frame: np.full(len(frame), "no"), FRAME[["purpose", "age"]], task="label")
    found = constant.changes(0)
    n_ages, n_purposes = FRAME["age"].nunique() - 1, 2
    assert len(found) == 0
    assert found.fewest is None
    assert found.n_proved == 2
    assert [level.n_tried for level in found.levels] == [n_ages + n_purposes, n_ages * n_purposes]
    text = str(found)
    assert "No change that was tried gives another decision." in text
    assert "Proven: no change of at most 2 facts does it" in text
    assert found.verify(lambda frame: np.full(len(frame), "no"), FRAME[["purpose", "age"]], seed=1).holds


def test_all_attributes_fixed_is_refused():
    with pytest.raises(ParameterError, match="No attribute may change"):
        LABELS.changes(DECLINED, fixed=list(FRAME))
    table = al.Table(FRAME, fixed=list(FRAME))
    with pytest.raises(ParameterError, match="No attribute may change"):
        al.Explainer(decide, table, task="label").changes(DECLINED)


@pytest.mark.parametrize(
    ("wishes", "words"),
    [
        ({"fixed": ["incme"]}, "fixed has 'incme'.*Did you mean 'income'"),
        ({"direction": {"age": "north"}}, "must be 'up' or 'down'"),
        ({"direction": {"purpose": "up"}}, "holds categories"),
        ({"direction": ["age"]}, "direction is .*must map columns"),
        ({"within": {"age": 30}}, "must be a range or a list of values"),
        ({"within": {"age": (1, 2, 3)}}, "tuple of two ends"),
        ({"within": {"age": ("x", 2)}}, "Type a number"),
        ({"cost": {"age": -1}}, "positive numbers"),
        ({"cost": {"agee": 1}}, "Did you mean 'age'"),
        ({"max_facts": 0}, "max_facts is 0"),
        ({"n": 1.5}, "n is 1.5"),
        ({"confidence": 2}, "confidence is 2"),
    ],
)
def test_wrong_wishes_are_refused(wishes, words):
    with pytest.raises(ParameterError, match=words):
        LABELS.changes(DECLINED, **wishes)


def test_a_similar_keyword_is_named():
    with pytest.raises(TypeError, match="Did you mean 'max_facts'"):
        LABELS.changes(DECLINED, max_fact=2)


@pytest.mark.parametrize("most", [2, 5, 17, 60, 200])
def test_the_limit_of_queries_is_hard(most):
    asked = []

    def counting(frame):
        asked.append(len(frame))
        return decide(frame)

    found = al.Explainer(counting, FRAME, task="label").changes(DECLINED, max_queries=most)
    assert sum(asked) == found.n_queries <= most
    assert not found.levels[0].is_exhaustive


def test_few_values_find_the_same_nearest_example():
    all_values = LABELS.changes(DECLINED, n=100, max_values=10_000, max_facts=1)  # more than there are
    few = LABELS.changes(DECLINED, n=1)
    assert few[0].values == all_values[0].values
    assert few.n_queries < all_values.n_queries / 3
    assert all_values.levels[0].is_exhaustive
    assert not few.levels[0].is_exhaustive


def test_no_single_fact_is_ruled_out_by_a_few_values():
    frame = pd.DataFrame({"x": np.repeat(np.arange(500.0), 2), "y": np.arange(1000) % 7})

    def narrow(rows):
        return np.where((rows["x"] == 257) | ((rows["x"] > 450) & (rows["y"] == 3)), "yes", "no")

    found = al.Explainer(narrow, frame, task="label").changes(0, n=1, max_values=1000)
    assert found[0].values == {"x": 257}  # which is not among the first few values
    assert found.levels[0].is_exhaustive


def test_ties_go_to_the_example_nearest_to_a_training_row():
    frame = pd.DataFrame(
        {
            "purpose": ["car", "home", "home", "boat", "boat", "boat"] * 20,
            "size": [1, 1, 2, 9, 9, 9] * 20,
            "rest": np.arange(120) % 4,
        }
    )

    def model(rows):
        return np.where(rows["purpose"] == "car", "no", "yes")

    row = frame.iloc[0]
    found = al.Explainer(model, frame, task="label").changes(row, n=1)
    assert found[0].values == {"purpose": "home"}  # boats are more frequent, but never small
    assert (
        found[0].realism.distance
        < al.Explainer(model, frame, task="label")
        .changes(row, n=1, within={"purpose": ["boat"]})[0]
        .realism.distance
    )


def test_in_tables_of_realistic_neighbors_nearness_to_training_rows_decides():
    plain = LABELS.changes(DECLINED)
    table = al.Table(FRAME, neighbors="realistic")
    real = al.Explainer(decide, table, task="label").changes(DECLINED)
    assert [option.n_facts for option in real] == sorted(option.n_facts for option in real)
    ones = [option.realism.distance for option in real if option.n_facts == 1]
    assert ones == sorted(ones)
    assert real[0].realism.distance <= plain[0].realism.distance
    assert real.verify(decide, table, seed=3).holds


def test_whole_training_rows_by_enumeration():
    rng = np.random.default_rng(4)
    frame = pd.DataFrame(
        {
            "a": rng.integers(0, 5, 200),
            "b": rng.choice(["x", "y", "z"], 200),
            "c": rng.integers(0, 3, 200) * 1.0,
            "d": rng.random(200) < 0.5,
        }
    )
    frame.loc[::9, "c"] = np.nan

    def model(rows):
        return np.where(rows["a"] + 2 * (rows["b"] == "y") + rows["c"].fillna(1) > 5, "yes", "no")

    explainer, decisions = al.Explainer(model, frame, task="label"), model(frame)
    for row in range(0, 60, 3):
        own = frame.iloc[row]
        wishes = {"fixed": ["d"]} if row % 2 else {"direction": {"a": "up"}}
        same = (frame == own) | (frame.isna() & own.isna())
        allowed = same["d"] if row % 2 else frame["a"] >= own["a"]
        turned = (decisions != decisions[row]) & allowed & ~(frame.isna() & ~own.isna()).any(axis=1)
        fewest = (~same).sum(axis=1)[turned].min() if turned.any() else None
        found = explainer.changes(row, examples="rows", **wishes)
        assert found.fewest == fewest
        assert found.n_proved == (len(found.levels) if fewest is None else fewest - 1)
        for place, option in enumerate(found):
            changed = pd.Series(found.changed(place))
            assert ((frame == changed) | (frame.isna() & changed.isna())).all(axis=1).any()
            assert option.label != decisions[row]
        assert found.verify(model, frame, seed=1).holds
        assert al.Changes.from_json(found.to_json()) == found
    assert "Proven: no allowed training row that differs in" in str(explainer.changes(0, examples="rows"))
    with pytest.raises(ParameterError, match="examples is 'row'"):
        explainer.changes(0, examples="row")
    with pytest.raises(ParameterError, match="there is no training table"):
        al.Explainer(lambda z: z[:, 0], al.Hypercube(), task="label").changes([1, 1], examples="rows")


def test_costs_order_the_answers():
    plain = [option.moves[0].name for option in LABELS.changes(DECLINED) if option.n_facts == 1]
    dear = LABELS.changes(DECLINED, cost={plain[0]: 1000.0})
    assert dear[0].moves[0].name == plain[1]
    calls = []

    def price(moves):
        calls.append(moves)
        return float("purpose" not in moves)

    by_function = LABELS.changes(DECLINED, cost=price)
    assert by_function[0].values == {"purpose": "home"}
    assert all(set(move) <= set(FRAME) for move in calls)
    assert "cost function is not recorded" in str(by_function.verify(decide, FRAME, seed=1))
    with pytest.raises(ParameterError, match="finite number"):
        LABELS.changes(DECLINED, cost=lambda moves: float("nan"))


def test_groups_change_together_and_missing_values_are_filled():
    south = FRAME["age"] > 40
    frame = FRAME.assign(city=np.where(south, "Rome", "Oslo"), land=np.where(south, "IT", "NO"))
    frame.loc[::7, "income"] = np.nan

    def model(rows):
        rich = rows["income"].fillna(0) > 20_000
        return np.where(rich & (rows["city"] == "Rome") & (rows["land"] == "IT"), "yes", "no")

    table = al.Table(frame, groups={"place": ["city", "land"]})
    row = int(np.flatnonzero(frame["income"].isna() & (frame["city"] == "Oslo"))[0])
    found = al.Explainer(model, table, task="label").changes(row)
    assert found.fewest == 2
    assert found.n_ruled_out == 1
    assert {"city": "Rome", "land": "IT"}.items() <= found[0].values.items()
    assert found[0].values["income"] > 20_000
    assert found.verify(model, table, seed=2).holds
    assert al.Changes.from_json(found.to_json()) == found
    with pytest.raises(ParameterError, match="groups change as a whole"):
        al.Explainer(model, table, task="label").changes(row, within={"city": ["Rome"]})


def test_dates_move_within_their_range():
    dates = pd.to_datetime("2024-01-01") + pd.to_timedelta(np.arange(60), unit="D")
    frame = pd.DataFrame({"applied": dates, "x": np.arange(60) % 7})

    def model(rows):
        return np.where(rows["applied"] >= pd.Timestamp("2024-02-10"), "late", "early")

    explainer = al.Explainer(model, frame, task="label")
    found = explainer.changes(10)
    assert found[0].facts == ("applied >= 2024-02-10",)
    assert len(explainer.changes(10, within={"applied": (None, "2024-02-01")})) == 0
    later = explainer.changes(10, within={"applied": ("2024-02-20", None)})
    assert later[0].values["applied"].startswith("2024-02-20")


def test_other_tables_give_the_same_bytes():
    polars = pytest.importorskip("polars")

    def model(frame):
        income = np.asarray(frame["income"].to_numpy())
        return np.where(income - 3 * np.asarray(frame["debt"].to_numpy()) > 9000, "yes", "no")

    texts = {
        al.Explainer(model, table, task="label").changes(DECLINED).to_json()
        for table in (FRAME, polars.from_pandas(FRAME))
    }
    assert len(texts) == 1


def test_words_of_a_text_are_taken_away():
    def model(texts):
        return np.array(["bad" if "refund" in text or "broken" in text else "good" for text in texts])

    found = al.Explainer(model, al.Text(), task="label").changes("I want a refund because it is broken")
    assert found[0].facts == ('"refund" is not there', '"broken" is not there')
    assert found.n_proved == 1
    assert "Proven: no change of one fact does it.\n" in str(found)
    assert al.Changes.from_json(found.to_json()) == found
    assert found.verify(model, al.Text(), seed=1).holds
    with pytest.raises(ParameterError, match="not a row of columns"):
        found.changed()


def test_only_values_of_another_row_separate_two_cases():
    approved = int(np.argmax(score(FRAME)))
    found = LABELS.changes(DECLINED, toward=approved, n=10)
    assert len(found)
    for option in found:
        assert all(FRAME[name].iloc[approved] == value for name, value in option.values.items())
    fewest = None
    for size in (3, 2, 1):  # by enumeration
        for names in itertools.combinations(FRAME.columns, size):
            mixed = FRAME.iloc[[DECLINED]].copy()
            for name in names:
                mixed[name] = FRAME[name].iloc[[approved]].to_numpy()
            fewest = size if decide(mixed)[0] == "approved" else fewest
    assert found.fewest == fewest
    assert found.n_proved == fewest - 1
    assert "with values of the other case only" in str(found)
    assert found.verify(decide, FRAME, seed=1).holds
    assert al.Changes.from_json(found.to_json()) == found
    with pytest.raises(ParameterError, match="No attribute may change"):
        LABELS.changes(DECLINED, toward=DECLINED)
    cube = al.Explainer(lambda z: (z[:, :2].sum(axis=1) > 0) * 2 - 1, al.Hypercube(["a", "b", "c"]))
    assert [option.facts for option in cube.changes([1, 1, 1], toward=[-1, 1, -1])] == [("a = -1",)]


def test_rows_of_many_attributes_are_distinct_beyond_exact_products():
    """Numbers of rows in a float would be equal: 3^34 is odd and larger than 2^53."""
    rows = np.full((4, 35), -1)
    rows[:, :] = 2 * np.arange(35)
    rows[0, 1:] = -1
    rows[1, 0] = -1
    rows[1, 1:] += 1
    rows[2] += 1
    assert np.array_equal(_without_copies(rows), np.unique(rows, axis=0))
