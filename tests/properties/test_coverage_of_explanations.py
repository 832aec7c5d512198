"""All limits of an explanation together contain the truth as often as they claim, by simulation of `explain`.

On small laws every neighbor is listed by this test, which shares no code with the library's law. A run is one
explanation with a seed of its own; it misses if any limit of any figure excludes the truth about the facts that it
states, or if its verdict is not true of the true figures. At most 5% of runs may miss. Realistic neighbors cannot
be listed in few lines, so that 60,000 draws stand for all of them.
"""

import functools
import itertools
import math

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom
from sklearn.tree import DecisionTreeRegressor

from anchorline.explainer import Explainer
from anchorline.guarantees.measuring import DECISIONS, NUMBERS
from anchorline.laws import Random
from anchorline.result.explanation import Verdict
from anchorline.settings import Settings
from anchorline.spaces.hypercube import Hypercube
from anchorline.spaces.table import Table

N_RUNS = 400
ALLOWED = int(binom.ppf(0.999, N_RUNS, 0.05))
Q = 2 / (1 + math.e)
RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(
    {
        "age": RNG.choice([20, 25, 31, 40, 52, 60], 40),
        "income": RNG.choice([np.nan, 1.0, 2.0, 3.5, 5.0], 40),
        "town": RNG.choice(["Lens", "Arras", "Lille"], 40),
        "debt": RNG.choice([0.0, 1.0, 2.0, 4.0], 40),
    }
)


def score(rows):
    """A model of the table: an interaction, a missing value that counts, and a category."""
    income = rows["income"].fillna(2.5).to_numpy()
    level = 0.04 * (rows["age"].to_numpy() - 38) + 0.3 * (income - 2.5) * (rows["debt"].to_numpy() < 2)
    return np.tanh(level + 0.4 * (rows["town"] == "Lens").to_numpy() - 0.1 * rows["debt"].to_numpy())


def of_signs(z):
    return np.tanh(0.8 * z[:, 0] + 0.5 * z[:, 1] * z[:, 2] + 0.2 * z[:, 3:].sum(axis=1))


def encoded(rows):
    return np.column_stack([rows["age"], rows["income"].fillna(-1), rows["town"] == "Lens", rows["debt"]]).astype(
        float
    )


def is_true(fact, values):
    """Whether a statement is true of values of its column, by its definition."""
    if fact.kind == "missing":
        return pd.isna(values)
    if fact.kind == "equals":
        return np.asarray([value == fact.value for value in values], dtype=bool)
    numbers = np.asarray(values, dtype=float)
    low, high = (-np.inf if fact.low is None else fact.low), (np.inf if fact.high is None else fact.high)
    return (numbers >= low) & (numbers < high)  # nothing is true of NaN


class Product:
    """All neighbors of a row whose attributes are drawn independently of each other."""

    def __init__(self, pools, own, ask):
        self.pools, self.own, self.ask = pools, own, ask

    def listed(self, facts=()):
        """Probabilities (n,) and columns of all neighbors; with facts, their columns are drawn within them."""
        stated = {fact.column: fact for fact in facts}
        values, chances = [], []
        for name, pool in self.pools.items():
            kept = pool[is_true(stated[name], pool)] if name in stated else pool
            shares = pd.Series(kept).value_counts(normalize=True, dropna=False)
            values.append([*shares.index, self.own[name]])
            chances.append([*shares, 0.0] if name in stated else [*(Q * shares), 1 - Q])
        weights = np.array([math.prod(each) for each in itertools.product(*chances)])
        rows = itertools.product(*values)
        return weights, dict(zip(self.pools, zip(*rows, strict=True), strict=True))

    def answers(self, facts=()):
        weights, columns = self.listed(facts)
        return weights, columns, self.ask(columns)


class Drawn:
    """Very many neighbors of a row of a table, by the table's own law."""

    def __init__(self, table, row, ask):
        self.there, self.ask = table.at(row), ask
        names = range(self.there.candidates.n_facts)
        self.numbers = {self.there.fact(j): j for j in names}

    def answers(self, facts=()):
        n = 60_000
        chosen = [self.numbers[fact] for fact in facts]
        rows = self.there.realize(self.there.draw(n, Random.of(1, b"truth", "truth"), Q, chosen))
        return np.full(n, 1 / n), {name: rows[name].to_numpy() for name in rows}, self.ask(rows)


def truths(law, outputs_at_x, threshold):
    """Return a function of facts and effects that computes every true figure."""
    weights, columns, outputs = law.answers()
    drops = outputs_at_x - outputs
    at_x = None if threshold is None else outputs_at_x >= threshold

    @functools.cache
    def share_with(facts):
        inside_weights, _, answers = law.answers(facts)
        return inside_weights @ ((answers >= threshold) == at_x) / inside_weights.sum()

    def figures(e):
        flips = np.array([~is_true(fact, np.asarray(columns[fact.column])) for fact in e.facts])
        sums = e.effects @ flips if len(e.facts) else np.zeros(len(drops))
        found = {"fit": 1 - weights @ (drops - sums) ** 2 / (weights @ drops**2)}
        if threshold is not None:
            stays, kept = (outputs >= threshold) == at_x, ~flips.any(axis=0) if len(e.facts) else weights > 0
            found |= {"all": weights @ stays, "holds_law": (weights * stays)[kept].sum() / weights[kept].sum()}
            found |= {"holds_drawn": share_with(e.facts)}
        return found

    return figures


def is_within(figure, truth, slack):
    return figure is None or figure.low - slack <= truth <= figure.high + slack


def is_wrong(e, true):
    """Whether the verdict is not true of the true figures."""
    if e.verdict is Verdict.UNDECIDED:
        return False
    if e.output.kind == "number":
        return e.verdict is not Verdict.ROBUST and not NUMBERS[e.verdict](lambda _: 0.0, lambda _: true["fit"])
    holds = min(share for name, share in true.items() if name.startswith("holds") and getattr(e, name) is not None)
    return not DECISIONS[e.verdict](lambda _: true["all"], lambda _: holds)


def check(explainer, row, figures, source="drawn", slack=1e-9):
    missed, wrong, verdicts = 0, 0, set()
    for seed in range(N_RUNS):
        e = explainer.explain_with(row, Settings(k=2, queries=400, seed=seed))
        assert e.queries.source == source
        true = figures(e)
        missed += not all(is_within(getattr(e, name), truth, slack) for name, truth in true.items())
        wrong += is_wrong(e, true)
        verdicts.add(e.verdict)
    assert missed <= ALLOWED
    assert wrong <= ALLOWED
    return verdicts


@pytest.mark.parametrize("threshold", [0.0, 0.9, None])
def test_on_the_hypercube(threshold):
    d = 9
    pools = {f"x{j}": np.array([-1.0, 1.0]) for j in range(d)}
    law = Product(pools, dict.fromkeys(pools, 1.0), lambda columns: of_signs(np.column_stack([*columns.values()])))
    explainer = Explainer(of_signs, Hypercube(), threshold=threshold, output_range=(-1, 1))
    check(explainer, [1] * d, truths(law, of_signs(np.ones((1, d)))[0], threshold))


@pytest.mark.parametrize("row", [0, 7])
@pytest.mark.parametrize("threshold", [0.0, None])
def test_on_a_table(row, threshold):
    own = FRAME.iloc[row]
    pools = {name: FRAME[name].to_numpy() for name in FRAME}
    law = Product(pools, dict(own), lambda columns: score(pd.DataFrame(columns)))
    explainer = Explainer(score, Table(FRAME), threshold=threshold, output_range=(-1, 1))
    check(explainer, row, truths(law, score(FRAME.iloc[[row]])[0], threshold))


def test_with_leaves_of_a_tree():
    frame = pd.DataFrame(encoded(FRAME), columns=["age", "income", "lens", "debt"])
    tree = DecisionTreeRegressor(max_depth=5, random_state=0).fit(frame, score(FRAME))
    pools, own = {name: frame[name].to_numpy() for name in frame}, frame.iloc[3]
    law = Product(pools, dict(own), lambda columns: tree.predict(pd.DataFrame(columns)))
    explainer = Explainer(tree, Table(frame), threshold=0.0, output_range=(-1, 1))
    check(explainer, 3, truths(law, tree.predict(frame[3:4])[0], 0.0), source="leaves")


@pytest.mark.parametrize("row", [0, 7])
def test_with_realistic_neighbors(row):
    """The truth is itself drawn, so that it may be off by 0.006, three standard errors."""
    table = Table(FRAME, neighbors="realistic")
    explainer = Explainer(score, table, threshold=0.0, output_range=(-1, 1))
    figures = truths(Drawn(table, row, score), score(FRAME.iloc[[row]])[0], 0.0)
    check(explainer, row, figures, slack=0.006)
