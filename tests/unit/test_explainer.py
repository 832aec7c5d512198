"""`Explainer.explain`, end to end: anchored, sparse, the best sum there is, honest at limits, in any space."""

import itertools
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression

import anchorline as al
from anchorline.errors import ParameterError, RowError, SetupWarning
from anchorline.facts import Candidates, Fact
from anchorline.spaces.base import Neighborhood, Space

RANGES = [(-1, 1), (0, 1), (1e5, 3e6), (-3, 0), (-273.15, 1e4), (-1e-6, 1e-6), (0, 255)]


def random_model(rng, d, low, high):
    """Smooth, piecewise constant, linear with interactions, or a classifier; outputs in [low, high]."""
    hidden, bias, slopes = rng.normal(size=(d, 6)) / np.sqrt(d), rng.normal(size=6), rng.normal(size=d) / d
    kind = rng.integers(4)

    def unit(z):
        if kind == 0:
            return np.tanh(z @ hidden + bias).mean(axis=1)
        if kind == 1:
            return np.clip(np.round(3 * (z @ slopes)) / 3, -1, 1)
        if kind == 2:
            return np.clip(z @ slopes + 0.3 * z[:, 0] * z[:, -1], -1, 1)
        return np.where(z @ hidden[:, 0] + bias[0] > 0, 1.0, -1.0)

    return lambda z: low + (unit(z) + 1) / 2 * (high - low)


def explained(model, x, **keywords):
    return al.Explainer(model, al.Hypercube()).explain(x, **keywords)


@pytest.mark.parametrize("output_range", RANGES, ids=str)
def test_sums_add_up_and_are_short(output_range):
    for seed in range(12):
        rng = np.random.default_rng([41, seed])
        d, k = int(rng.integers(1, 31)), int(rng.integers(1, 7))
        model, x = random_model(rng, d, *output_range), rng.choice([-1, 1], d)
        sigma, queries = float(rng.choice([0, 0.5, 1, 3])), int(rng.choice([32, 200, 1000]))
        e = explained(model, x, k=k, sigma=sigma, queries=queries, seed=seed)
        assert e.prediction == model(x[None] * 1.0)[0]
        scale = max(1e-300, np.abs([e.prediction, e.base, *e.contributions]).max())
        assert abs(e.base + e.contributions.sum() - e.prediction) <= 1e-12 * scale
        assert len(e.facts) == len({fact.attribute for fact in e.facts}) <= k
        # w.x + w_0 = f(x), and w_j x_j is half of an effect.
        constant = e.prediction - e.effects.sum() / 2
        assert e.coef @ x + constant == pytest.approx(e.prediction, rel=1e-9, abs=1e-9 * scale)
        assert e.queries.total <= queries


@pytest.mark.parametrize("sigma", [0.0, 1.0, 2.0])
def test_the_sum_is_as_good_as_the_best_of_all(sigma):
    """Straight from the definition: all 2^d neighbors with their probabilities, every set of facts.

    Facts that gain less than 1% of the variance are left out, and ties within 1% are broken, so 1% per fact.
    """
    p = 1 / (1 + np.exp(sigma))
    for seed in range(12):
        rng = np.random.default_rng([45, seed])
        d, k = 6, int(rng.integers(1, 5))
        model, x = random_model(rng, d, -1, 1), rng.choice([-1, 1], d)
        flips = np.array(list(itertools.product([0, 1], repeat=d)))
        drops = model(x[None] * 1.0)[0] - model(x * (1 - 2.0 * flips))
        weights = np.prod(np.where(flips, p, 1 - p), axis=1)
        root = np.sqrt(weights)

        def error(chosen, root=root, flips=flips, drops=drops):
            fitted = np.linalg.lstsq(root[:, None] * flips[:, chosen], root * drops, rcond=None)[0]
            return float(np.sum((root * (drops - flips[:, chosen] @ fitted)) ** 2))

        def best_of(n, error=error, d=d):
            return min(error(list(chosen)) for chosen in itertools.combinations(range(d), n))

        best = best_of(k)
        variance = weights @ (drops - weights @ drops) ** 2
        e = explained(model, x, k=k, sigma=sigma)
        assert e.queries.source == "listed"
        assert e.is_proven
        ours = error([int(fact.attribute[1:]) for fact in e.facts])
        assert e.proof.objective == pytest.approx(ours, abs=1e-12)
        assert e.proof.lower_bound <= best_of(len(e.facts)) + 1e-12  # no sum of as many facts is better
        assert best - 1e-12 <= ours <= best + 0.01 * (k + 1) * variance + 1e-12


def test_more_facts_never_fit_worse():
    rng = np.random.default_rng(43)
    model, x = random_model(rng, 25, -1, 1), rng.choice([-1, 1], 25)
    errors = [explained(model, x, k=k, queries=2000).proof.objective for k in range(1, 8)]
    assert all(more <= fewer + 1e-12 for fewer, more in itertools.pairwise(errors))
    assert errors[-1] < errors[0]


@pytest.mark.parametrize("d", [10, 60])
def test_a_sparse_linear_model_is_found_again(d):
    w = np.zeros(d)
    w[[1, 4, d - 1]] = 0.4, -0.25, 0.15
    rng = np.random.default_rng(47)
    for _ in range(3):
        e = explained(lambda z: z @ w + 0.1, rng.choice([-1, 1], d), k=4)
        np.testing.assert_allclose(e.coef, w, atol=1e-9 if e.queries.source == "listed" else 1e-3)
        assert e.fit.r2 == pytest.approx(1, abs=1e-4)
        assert e.verdict is al.Verdict.EXPLAINED


@pytest.mark.parametrize("value", [0.7, -0.3, 2e5, 0.0])
@pytest.mark.parametrize("d", [1, 3, 20])
def test_a_constant_model_is_its_constant(value, d):
    e = explained(lambda z: np.full(len(z), value), [1] * d, k=3)
    assert e.base == e.prediction == value
    assert e.facts == ()
    assert e.verdict is al.Verdict.ROBUST
    assert al.Explanation.from_json(e.to_json()) == e


@pytest.mark.parametrize("sigma", [1e-3, 5.0, 30.0, 800.0])
def test_extreme_sigmas(sigma):
    for d in (6, 20):
        e = explained(lambda z: np.tanh(0.6 * z[:, 0] - 0.4 * z[:, 2]), [1] * d, sigma=sigma, queries=500)
        assert e.base + e.contributions.sum() == pytest.approx(e.prediction, abs=1e-12)


def test_seeds():
    def smooth(z):
        return np.tanh(0.6 * z[:, 0] - 0.4 * z[:, 2] + 0.3 * z[:, 3] * z[:, 4])

    x = [1, -1] * 10
    first, again, other = (explained(smooth, x, seed=seed, queries=300) for seed in (1, 1, 2))
    assert first.to_json() == again.to_json()
    assert first.contributions.tolist() != other.contributions.tolist()
    np.random.seed(5)  # noqa: NPY002  nobody's seed but ours counts
    assert explained(smooth, x, seed=1, queries=300).to_json() == first.to_json()


def test_an_explainer_is_not_used_up():
    explainer = al.Explainer(lambda z: np.tanh(z[:, 0] + z[:, 1] * z[:, 2]), al.Hypercube())
    first = explainer.explain([1] * 6).to_json()
    explainer.explain([-1] * 6)
    assert explainer.explain([1] * 6).to_json() == first


# --- a space from outside ----------------------------------------------------------------------------


class Words(Space):
    """A space nobody in the package knows: a text is a list of words, which may be there or not."""

    fingerprint = "words:1"
    noun = "words"

    def at(self, instance):
        return WordNeighborhood(tuple(instance.split() if isinstance(instance, str) else instance))


@dataclass(frozen=True)
class WordNeighborhood(Neighborhood):
    names: tuple
    key = b"words"

    @property
    def instance(self):
        return list(self.names)

    @property
    def original(self):
        return [" ".join(self.names)]

    @property
    def candidates(self):
        """One view per word with two cells: absent, present."""
        d = len(self.names)
        every = np.arange(d)
        first = 2 * every + 1
        return Candidates(
            every, 2 * np.arange(d + 1), np.full(2 * d, 0.5), first, every, first, first + 1, np.zeros(d)
        )

    def fact(self, candidate):
        word = self.names[candidate]
        return Fact(attribute=word, column=word, kind="present", value=word)

    def draw(self, n, random, replace_probability, facts=()):
        d = len(self.names)
        donors = np.where(random.uniforms(d, n) < replace_probability, (random.uniforms(d, n) < 0.5) * 1, -1)
        donors[list(facts)] = 1
        return donors

    def realize(self, donors):
        return [" ".join(w for w, v in zip(self.names, z, strict=True) if v != 0) for z in donors.T.tolist()]

    def cells(self, donors, views=None):
        views = np.arange(len(self.names)) if views is None else np.asarray(views)
        return 2 * views[:, None] + (donors[views] != 0)


def test_a_space_from_outside():
    def angry(texts):
        assert isinstance(texts, list)
        return [0.6 * ("refund" in text) + 0.2 * ("now" in text) - 0.1 for text in texts]

    e = al.Explainer(angry, Words(), output="anger").explain("please refund me now", k=3, sigma=0)
    assert [fact.attribute for fact in e.facts] == ["refund", "now"]
    assert e.effects.tolist() == pytest.approx([0.6, 0.2], abs=1e-3)
    assert e.contributions.tolist() == pytest.approx([0.3, 0.1], abs=1e-3)
    assert al.Explanation.from_json(e.to_json()).to_json() == e.to_json()
    assert "refund" in str(e)
    assert "all of its values replaced by random ones" in e.details()
    assert "table" not in e.details()
    assert al.verify(e, angry, Words(), seed=0).holds


STUCK = pd.DataFrame({"a": [1.0, 2.0, 3.0] * 20, "b": ["x"] * 60})


@pytest.mark.parametrize("neighbors", ["independent", "realistic"])
@pytest.mark.parametrize(
    "options",
    [{"fixed": ["a", "b"]}, {"fixed": ["a"]}, {"frame": STUCK[:1]}, {"reference": STUCK[:1]}],
)
def test_a_row_that_cannot_change_is_refused(options, neighbors):
    table = al.Table(**{"frame": STUCK, "neighbors": neighbors} | options)
    explainer = al.Explainer(lambda rows: 0.1 * rows["a"].to_numpy(), table)
    for call in (explainer.explain, explainer.frontier, explainer.copies, explainer.cost):
        with pytest.raises(ParameterError, match=r"copy would equal the row.* must be .*Type a shorter fixed="):
            call(0)
    assert [each.error_type for each in explainer.explain_many(STUCK[:1], errors="keep").failures] == [
        "ParameterError"
    ]
    with pytest.raises(RowError, match=r"Row 0 has no explanation\. ParameterError: Every altered copy"):
        explainer.explain_many(STUCK[:1])


def test_columns_that_the_model_never_reads_cannot_change_it():
    model = LinearRegression().fit(STUCK[["a"]], STUCK["a"])
    with pytest.raises(ParameterError, match="is not read by the model"):
        al.Explainer(model, al.Table(STUCK.assign(c=range(60)), fixed=["a"])).explain(0)


def test_a_row_that_can_change_a_little_is_explained():
    constant = al.Explainer(lambda rows: np.full(len(rows), 0.3), al.Table(STUCK, fixed=["b"]))
    with pytest.warns(SetupWarning, match="for all 60 training rows"):
        assert constant.explain(0).verdict is al.Verdict.ROBUST
    other = al.Explainer(lambda rows: 0.1 * rows["a"].to_numpy(), STUCK[:1])
    assert [fact.column for fact in other.explain({"a": 5.0, "b": "x"}).facts] == ["a"]


def test_details_say_which_columns_are_exempt_from_the_law():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({name: rng.normal(size=80) for name in ("a", "b", "c", "d", "e")}).assign(
        f=lambda x: -x.e
    )
    model = LinearRegression().fit(frame.drop(columns="b"), frame["a"] + frame["e"])
    table = al.Table(frame, fixed=["a"], groups=[["c", "d"]], valid=lambda rows: rows["c"] < 9)
    explainer = al.Explainer(model, table)
    with pytest.warns(SetupWarning, match="not fitted on 'b'"):
        e = explainer.explain(0, queries=300)
    for text in (e.details(), e.to_html()):
        assert "Never altered: a and b. Altered together: c and d; e and f. Copies that the given rule" in text
    assert "Never" not in str(e)
    assert al.verify(e.to_json(), model, table, seed=0).holds
