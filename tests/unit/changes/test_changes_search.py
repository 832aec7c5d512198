"""The search for changes: targets, refusals, limits of queries and values, costs, and groups."""

import itertools

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from anchorline.changes.result import Changes
from anchorline.changes.search import _without_copies
from anchorline.errors import ParameterError, SetupWarning
from anchorline.explainer import Explainer
from anchorline.spaces.hypercube import Hypercube
from anchorline.spaces.table import Table
from anchorline.spaces.text import Text
from anchorline.verify.check import verify_changes

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


def verified(changes, explainer, seed=1):
    """Whether changes hold for the model and the space of an explainer."""
    return verify_changes(changes, explainer, changes.instance, seed)


def score(frame):
    return 1e-4 * frame["income"].to_numpy() - 3e-4 * frame["debt"].to_numpy() + (frame["purpose"] == "home") * 0.5


def decide(frame):
    return np.where(score(frame) >= 1.2, "approved", "declined")


NUMBERS = Explainer(lambda frame: np.asarray(score(frame)), FRAME, task="number", output="score")
LABELS = Explainer(decide, FRAME, task="label")
DECLINED = int(np.argsort(score(FRAME))[N // 3])


def test_the_bound_and_the_example_are_the_nearest():
    found = LABELS.changes(DECLINED, n=5)
    by_name = {option.moves[0].attribute: option for option in found if len(option.moves) == 1}
    row = FRAME.iloc[DECLINED]
    assert set(by_name) <= {"income", "debt", "purpose"}  # what the model ignores never appears
    option = by_name["income"]
    needed = row["income"] + (1.2 - score(FRAME)[DECLINED]) / 1e-4
    assert option.values["income"] == FRAME["income"][FRAME["income"] >= needed - 1e-6].min()
    bound = option.moves[0].bound
    below = FRAME["income"][FRAME["income"] < option.values["income"]].max()
    assert (bound.kind, bound.column, bound.high, bound.value) == (
        "at_least",
        "income",
        None,
        option.values["income"],
    )
    assert max(below, row["income"]) < bound.low <= option.values["income"]
    assert option.share.is_exact
    assert option.share.value == 1


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
        found = Explainer(model, table).changes(row, target=wanted)
        assert len(found)
        assert {option.decision for option in found} == {wanted}
    other = Explainer(model, table).changes(row)
    assert {option.decision for option in other} <= {"b", "c"}
    limit = Explainer(model, table, output="c", threshold=0.6).changes(row)
    assert all(option.output >= 0.6 for option in limit)
    assert limit.goal["kind"] == ">="
    same = Explainer(model, table, output="c", threshold=0.6).changes(row, target="c")
    assert [option.moves for option in same] == [option.moves for option in limit]
    against = Explainer(model, table, output=("c", "a"))
    contrast = against.changes(row)
    assert all(option.output >= 0 for option in contrast)
    assert verified(contrast, against).holds


def test_labels_of_estimators():
    target = decide(FRAME)
    table = FRAME[["income", "debt"]] / 1e4
    model = LinearSVC().fit(table, target)
    found = Explainer(model, table).changes(DECLINED, target="approved")
    assert {option.decision for option in found} == {"approved"}
    with pytest.raises(
        ParameterError, match=r"target is 'aproved'; the model's labels are 'approved', 'declined'"
    ):
        Explainer(model, table).changes(DECLINED, target="aproved")


def test_unknown_targets_are_refused():
    model = LogisticRegression().fit(FRAME[["income"]] / 1e4, decide(FRAME))
    with pytest.raises(
        ParameterError,
        match=r"the model's classes are 'approved', 'declined'\. Pick one of them, or type target='>= 300'",
    ):
        Explainer(model, FRAME[["income"]] / 1e4).changes(0, target="maybe")
    regressor = LinearRegression().fit(FRAME[["income"]], score(FRAME))
    with pytest.raises(ParameterError, match="without a decision, so target is needed"):
        Explainer(regressor, FRAME[["income"]]).changes(0)
    with pytest.raises(ParameterError, match="target is 'high', but the model's output is a number"):
        Explainer(regressor, FRAME[["income"]]).changes(0, target="high")


def test_nothing_turns_and_what_was_tried_is_stated():
    constant = Explainer(lambda frame: np.full(len(frame), "no"), FRAME[["purpose", "age"]], task="label")
    found = constant.changes(0)
    n_ages, n_purposes = FRAME["age"].nunique() - 1, 2
    assert len(found) == 0
    assert found.fewest is None
    assert found.n_proved == 2
    assert [level.n_tried for level in found.levels] == [n_ages + n_purposes, n_ages * n_purposes]
    assert str(found) == "No change of up to three facts to values in the table changes the model's decision."
    assert "Proven: no change of up to two facts to values in the table does it." in found.details()
    assert verified(found, constant).holds
    assert "again nothing turns" in str(verified(found, constant))


def test_all_attributes_fixed_is_refused():
    with pytest.raises(ParameterError, match="No attribute may change"):
        LABELS.changes(DECLINED, fixed=list(FRAME))
    table = Table(FRAME, fixed=list(FRAME))
    with pytest.raises(ParameterError, match="No attribute may change"):
        Explainer(decide, table, task="label").changes(DECLINED)


@pytest.mark.parametrize(
    ("wishes", "words"),
    [
        ({"fixed": ["incme"]}, "fixed has 'incme'.*Did you mean 'income'"),
        ({"direction": {"age": "north"}}, "must be 'up' or 'down'"),
        ({"direction": {"purpose": "up"}}, "holds categories"),
        ({"direction": ["age"]}, "direction is .*must map columns"),
        ({"allowed": {"age": 30}}, "must be a range or a list of values"),
        ({"allowed": {"age": (1, 2, 3)}}, "tuple of two ends"),
        ({"allowed": {"age": ("x", 2)}}, "Type a number"),
        ({"cost": {"age": -1}}, "positive numbers"),
        ({"cost": {"agee": 1}}, "Did you mean 'age'"),
        ({"k": 0}, "k is 0"),
        ({"n": 1.5}, "n is 1.5"),
        ({"confidence": 2}, "confidence is 2"),
    ],
)
def test_wrong_wishes_are_refused(wishes, words):
    with pytest.raises(ParameterError, match=words):
        LABELS.changes(DECLINED, **wishes)


def test_a_similar_keyword_is_named():
    with pytest.raises(TypeError, match="Did you mean 'allowed'"):
        LABELS.changes(DECLINED, alowed={})


@pytest.mark.parametrize(
    ("removed", "successor"),
    [
        ({"max_queries": 100}, "queries= is that number"),
        ({"max_facts": 2}, "k= is that number"),
        ({"within": {}}, "allowed= takes"),
        ({"search": "leaves"}, "leaves of trees decide"),
    ],
)
def test_a_removed_keyword_names_its_successor(removed, successor):
    with pytest.raises(TypeError, match=successor) as error:
        LABELS.changes(DECLINED, **removed)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("most", [2, 5, 17, 60, 200])
def test_the_limit_of_queries_is_hard(most):
    asked = []

    def counting(frame):
        asked.append(len(frame))
        return decide(frame)

    found = Explainer(counting, FRAME, task="label").changes(DECLINED, queries=most)
    assert sum(asked) == found.n_queries <= most
    assert not found.levels[0].is_exhaustive


def test_few_values_find_the_same_nearest_example():
    all_values = LABELS.changes(DECLINED, n=100, max_values=10_000, k=1)  # more than there are
    few = LABELS.changes(DECLINED, n=1)
    assert few[0].values == all_values[0].values
    assert few.n_queries < all_values.n_queries / 3
    assert all_values.levels[0].is_exhaustive
    assert not few.levels[0].is_exhaustive


def test_no_single_fact_is_ruled_out_by_a_few_values():
    frame = pd.DataFrame({"x": np.repeat(np.arange(500.0), 2), "y": np.arange(1000) % 7})

    def narrow(rows):
        return np.where((rows["x"] == 257) | ((rows["x"] > 450) & (rows["y"] == 3)), "yes", "no")

    found = Explainer(narrow, frame, task="label").changes(0, n=1, max_values=1000)
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
    found = Explainer(model, frame, task="label").changes(row, n=1)
    assert found[0].values == {"purpose": "home"}  # boats are more frequent, but never small
    assert (
        found[0].realism.distance
        < Explainer(model, frame, task="label")
        .changes(row, n=1, allowed={"purpose": ["boat"]})[0]
        .realism.distance
    )


def test_in_tables_of_realistic_neighbors_nearness_to_training_rows_decides():
    plain = LABELS.changes(DECLINED)
    table = Table(FRAME, neighbors="realistic")
    explainer = Explainer(decide, table, task="label")
    real = explainer.changes(DECLINED)
    assert [len(option.moves) for option in real] == sorted(len(option.moves) for option in real)
    ones = [option.realism.distance for option in real if len(option.moves) == 1]
    assert ones == sorted(ones)
    assert real[0].realism.distance <= plain[0].realism.distance
    assert verified(real, explainer).holds


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

    explainer, decisions = Explainer(model, frame, task="label"), model(frame)
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
            assert option.decision != decisions[row]
        assert verified(found, explainer).holds
        assert Changes.from_json(found.to_json()) == found
    assert "Proven: no allowed row of the table that differs in" in explainer.changes(0, examples="rows").details()
    with pytest.raises(ParameterError, match="examples is 'row'"):
        explainer.changes(0, examples="row")
    with pytest.raises(ParameterError, match="there is no training table"):
        Explainer(lambda z: z[:, 0], Hypercube(), task="label").changes([1, 1], examples="rows")


def test_costs_order_the_answers():
    plain = [option.moves[0].attribute for option in LABELS.changes(DECLINED) if len(option.moves) == 1]
    dear = LABELS.changes(DECLINED, cost={plain[0]: 1000.0})
    assert dear[0].moves[0].attribute == plain[1]
    calls = []

    def price(moves):
        calls.append(moves)
        return float("purpose" not in moves)

    by_function = LABELS.changes(DECLINED, cost=price)
    assert by_function[0].values == {"purpose": "home"}
    assert all(set(move) <= set(FRAME) for move in calls)
    assert "cost function is not recorded" in str(verified(by_function, LABELS))
    with pytest.raises(ParameterError, match="finite number"):
        LABELS.changes(DECLINED, cost=lambda moves: float("nan"))


def test_groups_change_together_and_missing_values_are_filled():
    south = FRAME["age"] > 40
    frame = FRAME.assign(city=np.where(south, "Rome", "Oslo"), land=np.where(south, "IT", "NO"))
    frame.loc[::7, "income"] = np.nan

    def model(rows):
        rich = rows["income"].fillna(0) > 20_000
        return np.where(rich & (rows["city"] == "Rome") & (rows["land"] == "IT"), "yes", "no")

    table = Table(frame, groups={"place": ["city", "land"]})
    row = int(np.flatnonzero(frame["income"].isna() & (frame["city"] == "Oslo"))[0])
    explainer = Explainer(model, table, task="label")
    found = explainer.changes(row)
    assert found.fewest == 2
    assert found.n_ruled_out == 1
    assert {"city": "Rome", "land": "IT"}.items() <= found[0].values.items()
    assert found[0].values["income"] > 20_000
    assert verified(found, explainer).holds
    assert Changes.from_json(found.to_json()) == found
    with pytest.raises(ParameterError, match="groups change as a whole"):
        explainer.changes(row, allowed={"city": ["Rome"]})


@pytest.mark.parametrize("dtype", [object, "str", "category"])
def test_a_missing_category_is_never_offered(dtype):
    levels = np.array(["u", "v", "w", None] * 10, dtype=object)
    frame = pd.DataFrame({"cat": pd.Series(levels, dtype=dtype), "x": np.arange(40.0) % 9})
    explainer = Explainer(lambda rows: np.where(rows["cat"].isna(), "yes", "no"), frame, task="label")
    found = explainer.changes({"cat": "u", "x": 3.0})
    assert not len(found)
    assert found.levels[0].n_total == 2 + 8  # two other categories, eight other numbers
    assert explainer.changes({"cat": None, "x": 3.0})[0].values["cat"] in ("u", "v", "w")


def test_dates_move_within_their_range():
    dates = pd.to_datetime("2024-01-01") + pd.to_timedelta(np.arange(60), unit="D")
    frame = pd.DataFrame({"applied": dates, "x": np.arange(60) % 7})

    def model(rows):
        return np.where(rows["applied"] >= pd.Timestamp("2024-02-10"), "late", "early")

    explainer = Explainer(model, frame, task="label")
    found = explainer.changes(10)
    assert found[0].moves[0].bound.low == "2024-02-10"
    assert str(found).startswith(
        "The model's decision becomes late with one change: applied 2024-02-10 instead of"
    )
    assert len(explainer.changes(10, allowed={"applied": (None, "2024-02-01")})) == 0
    later = explainer.changes(10, allowed={"applied": ("2024-02-20", None)})
    assert later[0].values["applied"].startswith("2024-02-20")


def test_other_tables_give_the_same_bytes():
    polars = pytest.importorskip("polars")

    def model(frame):
        income = np.asarray(frame["income"].to_numpy())
        return np.where(income - 3 * np.asarray(frame["debt"].to_numpy()) > 9000, "yes", "no")

    texts = {
        Explainer(model, table, task="label").changes(DECLINED).to_json()
        for table in (FRAME, polars.from_pandas(FRAME))
    }
    assert len(texts) == 1


def test_words_of_a_text_are_taken_away():
    def model(texts):
        return np.array(["bad" if "refund" in text or "broken" in text else "good" for text in texts])

    explainer = Explainer(model, Text(), task="label")
    found = explainer.changes("I want a refund because it is broken")
    assert str(found) == (
        'The model\'s decision becomes good with two changes: without "refund" and "broken".\n'
        "No single change does it."
    )
    assert found.n_proved == 1
    assert Changes.from_json(found.to_json()) == found
    assert verified(found, explainer).holds
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
    assert "Only values of the other case were allowed." in found.details()
    assert verified(found, LABELS).holds
    assert Changes.from_json(found.to_json()) == found
    with pytest.raises(ParameterError, match="No attribute may change"):
        LABELS.changes(DECLINED, toward=DECLINED)
    cube = Explainer(lambda z: (z[:, :2].sum(axis=1) > 0) * 2 - 1, Hypercube(["a", "b", "c"]))
    assert [option.values for option in cube.changes([1, 1, 1], toward=[-1, 1, -1])] == [{"a": -1}]


def test_rows_of_many_attributes_are_distinct_beyond_exact_products():
    """Numbers of rows in a float would be equal: 3^34 is odd and larger than 2^53."""
    rows = np.full((4, 35), -1)
    rows[:, :] = 2 * np.arange(35)
    rows[0, 1:] = -1
    rows[1, 0] = -1
    rows[1, 1:] += 1
    rows[2] += 1
    assert np.array_equal(_without_copies(rows), np.unique(rows, axis=0))


def test_a_rule_of_the_table_is_never_broken():
    def affordable(rows):
        return np.asarray((rows["purpose"] != "home") | (rows["income"] > 30_000))

    free = LABELS.changes(DECLINED, n=10)
    table = Table(FRAME[affordable(FRAME)], valid=affordable)
    explainer = Explainer(decide, table, task="label")
    ruled = explainer.changes(FRAME.iloc[DECLINED], n=10)
    assert {"purpose": "home"} in [option.values for option in free]
    assert len(ruled)
    assert all(affordable(pd.DataFrame([ruled.changed(place)]))[0] for place in range(len(ruled)))
    assert verified(ruled, explainer).holds


def test_levels_are_printed_by_their_names_and_recorded_by_their_values():
    frame = pd.DataFrame({"sex": np.arange(60) % 2, "age": np.arange(60) % 41 + 20})
    table = Table(frame, categorical={"sex": {0: "female", 1: "male"}})
    explainer = Explainer(lambda rows: np.where(rows["sex"] == 1, "yes", "no"), table, task="label")
    found = explainer.changes({"sex": 0, "age": 30})
    assert str(found) == "The model's decision becomes yes with one change: sex male instead of female."
    assert found.changed() == {"sex": 1, "age": 30}
    assert Changes.from_json(found.to_json()) == found
    assert len(explainer.changes({"sex": 0, "age": 30}, allowed={"sex": ["male"]}))
    with pytest.raises(ParameterError, match="holds categories"):
        explainer.changes({"sex": 0, "age": 30}, direction={"sex": "up"})


def test_columns_that_say_the_same_change_together():
    years = np.arange(80) % 50 + 18
    frame = pd.DataFrame({"years": years, "months": 12 * years, "other": np.arange(80) % 7})
    explainer = Explainer(lambda rows: np.where(rows["months"] >= 480, "old", "young"), frame, task="label")
    found = explainer.changes({"years": 30, "months": 360, "other": 1}, n=1)
    assert found[0].values == {"years": 40, "months": 480}
    assert found[0].moves[0].distance == pytest.approx(np.mean((years > 30) & (years < 40)) + 0.025)
    assert "years 40 instead of 30 and months 480 instead of 360" in str(found)


def test_only_the_indicators_that_change_are_printed():
    colors = np.array(["red", "green", "blue"])[np.arange(90) % 3]
    frame = pd.get_dummies(pd.Series(colors), prefix="color", dtype=int).assign(size=np.arange(90) % 11)
    table = Table(frame, groups={"color": ["color_blue", "color_green", "color_red"]})
    explainer = Explainer(lambda rows: np.where(rows["color_blue"] == 1, "yes", "no"), table, task="label")
    found = explainer.changes(0)
    assert found.changed() | {"size": 0} == {"color_blue": 1, "color_green": 0, "color_red": 0, "size": 0}
    assert "color_green" not in str(found)


def test_a_model_whose_scores_do_not_decide_is_asked_twice_and_both_count():
    asked = []

    class Late(LogisticRegression):
        def predict(self, rows):
            asked.append(len(rows))
            return np.where(self.predict_proba(rows)[:, 1] >= 0.8, "yes", "no")

        def predict_proba(self, rows):
            asked.append(len(rows))
            return super().predict_proba(rows)

    table = FRAME[["income", "debt"]].to_numpy() / 1e4
    explainer = Explainer(Late().fit(table, np.where(score(FRAME) > 1.2, "yes", "no")), Table(table))
    inside = asked.copy()
    asked.clear()
    found = explainer.changes(table[DECLINED], queries=400)
    own = sum(asked) - len(inside)
    assert found.n_queries <= 400
    assert own >= found.n_queries  # `predict` of this class asks `predict_proba` again, which is its own matter
    assert all(option.output >= 0.8 or found.output.name == "no" for option in found)
    assert {option.decision for option in found} <= {"yes"}


def test_a_row_and_a_change_need_their_queries():
    table = (FRAME[["income", "debt"]] / 1e4).to_numpy()

    class Early(LogisticRegression):
        def predict(self, rows):
            return np.where(self.predict_proba(rows)[:, 1] >= 0.3, "yes", "no")

    explainer = Explainer(Early().fit(table, np.where(score(FRAME) > 1.2, "yes", "no")), Table(table))
    with pytest.raises(ParameterError, match=r"queries is 3, .* take 4\. Type queries=1000"):
        explainer.changes(table[DECLINED], queries=3)
    with pytest.raises(ParameterError, match=r"queries is 1, .* >= 2\. Type queries=1000"):
        explainer.changes(table[DECLINED], queries=1)
    assert explainer.changes(table[DECLINED], queries=4).n_queries <= 4


@pytest.mark.parametrize("space", ["values", "rows", "leaves", "several"])
def test_a_check_interrupts_the_search(space):
    class StopError(Exception):
        pass

    calls = []

    def stop():
        calls.append(1)
        if len(calls) == 2:
            raise StopError

    model = DecisionTreeClassifier(max_depth=5, random_state=0).fit(FRAME[["income", "debt"]], decide(FRAME))
    explainer = Explainer(model, FRAME[["income", "debt"]]) if space == "leaves" else LABELS
    wishes = {"rows": {"examples": "rows"}, "several": {"fixed": ["income", "debt"], "n": 50}}.get(space, {})
    with pytest.raises(StopError):
        explainer.changes(DECLINED, check=stop, **wishes)


def test_the_same_seed_gives_the_same_bytes_and_another_seed_the_same_changes():
    def rough(rows):
        return np.where(score(rows) + np.sin(rows["age"] * 7) * 0.4 >= 1.2, "yes", "no")

    explainer = Explainer(rough, FRAME, task="label")
    first, again = (explainer.changes(DECLINED, n_measure=20, seed=5) for _ in range(2))
    assert (
        first.to_json()
        == again.to_json()
        == Explainer(rough, FRAME, task="label").changes(DECLINED, n_measure=20, seed=5).to_json()
    )
    other = explainer.changes(DECLINED, n_measure=20, seed=6)
    assert [option.moves for option in other] == [option.moves for option in first]
    assert [option.share for option in other] != [option.share for option in first]
    shuffled = FRAME.sample(frac=1, random_state=3)
    row = FRAME.iloc[DECLINED].to_dict()
    assert explainer.changes(row).to_json() == Explainer(rough, shuffled, task="label").changes(row).to_json()


def test_a_setup_that_misleads_is_warned_about_once():
    frame = FRAME.assign(income=FRAME["income"].astype(int).astype(str))  # numbers as texts
    explainer = Explainer(lambda rows: np.where(rows["age"] > 40, "yes", "no"), frame, task="label")
    with pytest.warns(SetupWarning, match="income"):
        explainer.changes(0)
    explainer.changes(1)  # warnings are errors
