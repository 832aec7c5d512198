"""One flow for drawn, listed and leaf moments: sums that add up, one budget, the same bytes, named errors."""

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.ensemble import GradientBoostingClassifier, RandomForestRegressor
from sklearn.svm import SVC

from anchorline.errors import ParameterError, SetupWarning
from anchorline.explainer import Explainer
from anchorline.result.explanation import Explanation, Verdict
from anchorline.settings import SUCCESSORS, Settings
from anchorline.spaces.hypercube import Hypercube
from anchorline.spaces.table import Table


@pytest.fixture(scope="module")
def boosted():
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    return GradientBoostingClassifier(n_estimators=30, random_state=0).fit(X[:300], y[:300]), X


@pytest.fixture(scope="module")
def explainer(boosted):
    model, X = boosted
    return Explainer(model, Table(X[:300]))


class Counting:
    """A function of rows that counts them."""

    def __init__(self, function):
        self.function, self.n_rows = function, 0

    def __call__(self, rows):
        self.n_rows += len(rows)
        return self.function(rows)


def parity(rows):
    return rows[:, 0] * rows[:, 1] + 0.25 * rows[:, 2]


@pytest.mark.parametrize("row", [300, 333, 401])
def test_sums_add_up_and_hold_what_they_say(explainer, boosted, row):
    model, X = boosted
    e = explainer.explain(X.iloc[row])
    assert e.prediction == pytest.approx(model.predict_proba(X.iloc[[row]]).max(), abs=1e-12)
    assert e.base + e.contributions.sum() == pytest.approx(e.prediction, abs=1e-12)
    assert len({fact.attribute for fact in e.facts}) == len(e.facts) <= 4
    for fact in e.facts:
        value = X.iloc[row][fact.column]
        assert fact.low is None or value >= fact.low
        assert fact.high is None or value < fact.high
    inside = np.ones(300, dtype=bool)
    for fact in e.facts:
        values = X[:300][fact.column]
        inside &= (values >= (-np.inf if fact.low is None else fact.low)).to_numpy()
        inside &= (values < (np.inf if fact.high is None else fact.high)).to_numpy()
    alike = model.predict(X[:300]) == model.predict(X.iloc[[row]])[0]
    assert (e.rows.with_facts, e.rows.alike) == (inside.sum(), (inside & alike).sum())


def test_listed_figures_are_exact():
    """On a small cube every figure follows from all 8 neighbors, which this test lists by itself."""
    x, q = np.array([1, -1, 1]), 2 / (1 + np.e)
    e = Explainer(parity, Hypercube(), threshold=0.0).explain(x, k=3)
    cube = np.array(np.meshgrid(*[[-1, 1]] * 3)).reshape(3, -1).T
    differs = cube != x
    weights = np.where(differs, q / 2, 1 - q / 2).prod(axis=1)
    broken = np.array([differs[:, int(fact.attribute[1:])] for fact in e.facts]).T
    drops = parity(x[None])[0] - parity(cube)
    b = weights @ broken
    root = np.sqrt(weights)[:, None]
    effects = np.linalg.lstsq(root * broken, root[:, 0] * drops, rcond=None)[0]
    np.testing.assert_allclose(e.effects, effects, atol=1e-12)
    np.testing.assert_allclose(e.contributions, effects * b, atol=1e-12)
    stays = (parity(cube) >= 0) == (parity(x[None])[0] >= 0)
    assert e.all.is_exact
    assert e.all.value == pytest.approx(weights @ stays)
    kept = ~broken.any(axis=1)
    assert e.holds_law.value == pytest.approx((weights * stays)[kept].sum() / weights[kept].sum())
    error = weights @ (drops - broken @ effects) ** 2
    assert e.fit.r2 == pytest.approx(1 - error / (weights @ drops**2))
    assert e.queries.source == "listed"


@pytest.mark.parametrize("queries", [32, 100, 999, "auto"])
@pytest.mark.parametrize("d", [3, 12, 40])
def test_every_answer_counts_and_the_number_is_never_exceeded(queries, d):
    model = Counting(lambda rows: np.tanh(rows[:, 0] + 0.5 * rows[:, 1] * rows[:, 2]))
    e = Explainer(model, Hypercube(), threshold=0.0).explain(np.ones(d, dtype=int), queries=queries)
    assert model.n_rows == e.queries.total == 1 + e.queries.searched + e.queries.measured
    assert model.n_rows <= (20_000 if queries == "auto" else queries)


def test_a_model_whose_scores_decide_is_asked_once():
    X, y = load_iris(return_X_y=True, as_frame=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # new versions of scikit-learn advise another class
        model = SVC(probability=True, random_state=0).fit(X.to_numpy(), y)
    explainer = Explainer(model, Table(X))
    e = explainer.explain(70)
    agree = np.array_equal(model.predict_proba(X.to_numpy()).argmax(axis=1), model.predict(X.to_numpy()))
    assert e.queries.asks_twice is not agree
    per_row = 2 if e.queries.asks_twice else 1
    assert e.queries.total == per_row * (1 + e.queries.searched + e.queries.measured)
    few = Explainer(model, Table(X)).explain(70, queries=400)
    assert few.queries.asks_twice  # the table was not asked about, so nothing is known
    assert few.rows is None
    assert few.queries.total <= 400


def test_a_row_is_asked_about_with_the_first_copies_if_the_model_is_known_to_work(boosted):
    model, X = boosted
    sizes = []

    def ask(rows):
        sizes.append(len(rows))
        return model.predict_proba(rows)

    explainer = Explainer(ask, Table(X[:300]), classes=["malignant", "benign"])
    e = explainer.explain(X.iloc[333])
    assert sizes[:2] == [300, 2001]
    assert e.queries.total == sum(sizes[1:]) == 1 + e.queries.searched + e.queries.measured
    assert e.prediction == pytest.approx(model.predict_proba(X.iloc[[333]]).max(), abs=1e-12)
    sizes.clear()
    explainer.explain(X.iloc[333], queries=1000)  # the answers about the table are not used
    assert sizes[0] == 1


def test_copies_of_the_search_count_among_all_copies(explainer, boosted):
    _, X = boosted
    e = explainer.explain(X.iloc[333])
    assert e.queries.source == "drawn"
    assert e.all.n >= e.queries.searched + e.fit.n
    assert e.fit.n < e.queries.searched


def test_leaves_and_drawing_find_the_same_sum():
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    model = RandomForestRegressor(10, max_depth=4, random_state=0).fit(X, y)
    by_leaves = Explainer(model, Table(X), output="y").explain(5)
    drawn = Explainer(Counting(model.predict), Table(X), output="y").explain(5)
    assert (by_leaves.queries.source, drawn.queries.source) == ("leaves", "drawn")
    assert by_leaves.queries.searched == 0
    same = {fact.attribute for fact in by_leaves.facts} & {fact.attribute for fact in drawn.facts}
    assert len(same) >= len(by_leaves.facts) - 1
    assert by_leaves.contributions[0] == pytest.approx(drawn.contributions[0], rel=0.2)


def test_same_seed_same_bytes_whatever_was_explained_before(boosted):
    model, X = boosted
    first = Explainer(model, Table(X[:300])).explain(X.iloc[310], seed=3, alternatives=2)
    other = Explainer(model, Table(X[:300].sample(frac=1, random_state=1)))
    other.explain(X.iloc[311])
    assert other.explain(X.iloc[310], seed=3, alternatives=2).to_json() == first.to_json()
    assert other.explain(X.iloc[310], seed=4, alternatives=2).to_json() != first.to_json()
    assert Explanation.from_json(first.to_json()) == first


@pytest.mark.parametrize("name", sorted(SUCCESSORS))
def test_removed_keywords_name_their_successor(explainer, name):
    with pytest.raises(TypeError) as caught:
        explainer.explain(0, **{name: 1})
    assert str(caught.value) == f"explain() has no keyword {name!r}: {SUCCESSORS[name]}."


@pytest.mark.parametrize(
    "wrong",
    [
        {"k": 0},
        {"k": True},
        {"sigma": -1},
        {"queries": 31},
        {"queries": "all"},
        {"confidence": 1.0},
        {"seed": -1},
        {"time_limit": 0},
        {"alternatives": 1.5},
    ],
)
def test_wrong_settings_are_named(explainer, wrong):
    with pytest.raises(ParameterError, match=next(iter(wrong))):
        explainer.explain(0, **wrong)


def test_a_search_can_be_stopped(explainer):
    class Stopped(Exception):
        pass

    calls = []

    def check():
        calls.append(1)
        if len(calls) > 2:
            raise Stopped

    with pytest.raises(Stopped):
        explainer.explain(0, check=check)


def test_findings_are_warned_about_once():
    X = load_iris(as_frame=True).data
    explainer = Explainer(lambda rows: 0.0 * rows[:, 0], Table(X.to_numpy()))
    with pytest.warns(SetupWarning, match="output is 0.0 for all 150"):
        e = explainer.explain(0)
    assert e.verdict is Verdict.ROBUST
    assert e.facts == ()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        explainer.explain(1)


def test_copies_are_a_frame_with_outputs(explainer, boosted):
    model, X = boosted
    copies = explainer.copies(X.iloc[300], n=50)
    assert list(copies.columns[:-2]) == list(X.columns)
    label = model.predict(X.iloc[[300]])[0]
    np.testing.assert_allclose(copies[str(label)], model.predict_proba(copies[X.columns])[:, label])
    assert (copies["same decision"] == (model.predict(copies[X.columns]) == label)).all()
    polars = pytest.importorskip("polars")
    table = Table(polars.from_pandas(X[:300]))
    made = Explainer(lambda rows: rows["mean area"].to_numpy() * 1.0, table, output="y").copies(0, n=5)
    assert made["y"].to_list() == made["mean area"].to_list()


def test_frontier_never_gets_worse(explainer, boosted):
    frontier = explainer.frontier(boosted[1].iloc[300], ks=[1, 2, 4, 6])
    assert [point.k for point in frontier.points] == [1, 2, 4, 6]
    assert np.all(np.diff(frontier.r2) >= -0.01)
    best = explainer.explain(boosted[1].iloc[300], k=6)
    assert frontier.points[-1].facts == best.facts


def test_cost_is_an_upper_limit(explainer):
    assert explainer.cost(0).n_queries == 20_000
    assert explainer.cost(0, queries=500).n_queries == 500
    model = Counting(parity)
    cube = Explainer(model, Hypercube())
    most = cube.cost([1, 1, 1]).n_queries
    assert model.n_rows == 1
    cube.explain([1, 1, 1])
    assert model.n_rows - 1 <= most < 32


def test_settings_round_trip():
    settings = Settings(k=3, queries=500)
    assert Settings.from_dict(settings.to_dict()) == settings
    with pytest.raises(ParameterError, match="missing or unexpected"):
        Settings.from_dict({"k": 3})
