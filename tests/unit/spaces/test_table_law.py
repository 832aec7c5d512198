"""The law of a table's neighbors, by counting what is drawn: shares, independence, facts, groups, rules, lists."""

import itertools
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from scipy.stats import chi2_contingency, chisquare

from anchorline.errors import InstanceError, ParameterError
from anchorline.explainer import Explainer
from anchorline.laws import Random
from anchorline.spaces.realistic import similar_rows
from anchorline.spaces.table import Table
from helpers.table_facts import all_true, facts_of, keys_of, number_of, true_of

N = 8000
RARE = 1e-4  # a p-value below this does not happen by chance; the seeds are fixed


def people(n=80, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "age": rng.integers(20, 45, n),
            "income": np.where(rng.random(n) < 0.2, np.nan, rng.gamma(3, 900, n).round(-2)),
            "town": rng.choice(np.array(["Lens", "Arras", None], dtype=object), n, p=[0.6, 0.3, 0.1]),
            "member": rng.random(n) < 0.3,
            "since": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 9, n) * 30, "D"),
        }
    )


def drawn(there, q, facts=(), n=N, stream="a"):
    return there.realize(there.draw(n, Random.of(0, there.key, stream), q, facts))


def assert_shares(values, expected):
    """The frequencies of values are those of a distribution, which has all of them."""
    counts = Counter(values)
    assert counts.keys() <= {value for value, chance in expected.items() if chance > 0}
    likely = {value: chance for value, chance in expected.items() if chance > 0}
    rest = [value for value, chance in likely.items() if chance * len(values) < 5]
    observed = [counts[value] for value in likely if value not in rest]
    wanted = [chance * len(values) for value, chance in likely.items() if value not in rest]
    if rest:
        observed.append(sum(counts[value] for value in rest))
        wanted.append(sum(likely[value] for value in rest) * len(values))
    if len(observed) > 1:
        assert chisquare(observed, np.array(wanted) * (sum(observed) / sum(wanted))).pvalue > RARE


def law(frame, columns, own, q):
    """The distribution of some columns that come together: q times their shares, and 1 - q at the own values."""
    shares = Counter(keys_of(frame, columns))
    expected = {value: q * count / len(frame) for value, count in shares.items()}
    expected[own] = expected.get(own, 0.0) + 1 - q
    return expected


@pytest.mark.parametrize("q", [1.0, 0.54, 0.1])
def test_every_value_is_drawn_by_its_share(q):
    frame = people()
    neighbors = drawn(Table(frame).at(3), q)
    for name in frame:
        assert_shares(keys_of(neighbors, [name]), law(frame, [name], keys_of(frame.iloc[[3]], [name])[0], q))


def test_a_row_that_the_table_lacks_keeps_its_own_values():
    frame = people()
    row = {"age": 99, "income": -1.5, "town": "Douai", "member": True, "since": "2031-01-01"}
    there = Table(frame).at(row)
    neighbors = drawn(there, 0.54)
    for name in frame:
        own = keys_of(there.original, [name])[0]
        assert_shares(keys_of(neighbors, [name]), law(frame, [name], own, 0.54))


def test_attributes_are_drawn_independently():
    frame = people()
    neighbors = drawn(Table(frame).at(3), 0.54)
    for first, second in itertools.combinations(["town", "member", "since"], 2):
        counts = pd.crosstab(keys_of(neighbors, [first]), keys_of(neighbors, [second]))
        assert chi2_contingency(counts).pvalue > RARE


def test_with_facts_all_rows_for_which_they_are_true_are_equally_likely():
    frame = people()
    there = Table(frame).at(3)
    facts = [number_of(there, "town", kind="equals")]
    of_age = [j for j, fact in enumerate(facts_of(there)) if fact.column == "age" and fact.kind == "between"]
    facts.append(max(of_age, key=lambda j: there.candidates.ranks[j]))
    neighbors, stated = drawn(there, 0.54, facts), [there.fact(j) for j in facts]
    assert all_true(stated, neighbors).all()
    for fact in stated:
        rows = frame[true_of(fact, frame)]
        assert 1 < len(rows) < len(frame)
        assert_shares(keys_of(neighbors, [fact.column]), law(rows, [fact.column], "", 1.0) | {"": 0.0})
    for name in ("income", "member", "since"):
        assert_shares(keys_of(neighbors, [name]), law(frame, [name], keys_of(frame.iloc[[3]], [name])[0], 0.54))


def test_a_fact_that_no_row_of_the_pool_has_keeps_the_own_value():
    there = Table(people()).at({**people().iloc[0].to_dict(), "town": "Douai"})
    neighbors = drawn(there, 1.0, [number_of(there, "town")], n=200)
    assert set(neighbors["town"]) == {"Douai"}
    assert neighbors["age"].nunique() > 5


def test_a_group_takes_its_values_from_one_row():
    frame, together = people(), ["town", "since", "income"]
    there = Table(frame, groups={"place": together}).at(3)
    own = keys_of(frame.iloc[[3]], together)[0]
    assert_shares(keys_of(drawn(there, 0.54), together), law(frame, together, own, 0.54))
    for name in together:
        fact = max(
            (j for j, fact in enumerate(facts_of(there)) if fact.column == name),
            key=lambda j: there.candidates.broken(1.0)[j],
        )
        rows = frame[true_of(there.fact(fact), frame)]
        assert len(rows) < len(frame)
        assert_shares(keys_of(drawn(there, 0.54, [fact]), together), law(rows, together, "", 1.0) | {"": 0.0})


def test_values_come_from_the_reference_and_cuts_from_the_frame():
    frame = people()
    reference = frame[frame["age"] > 30]
    table = Table(frame, reference=reference)
    there = table.at(int(np.flatnonzero(frame["age"] < 25)[0]))
    neighbors = drawn(there, 0.54)
    for name in frame:
        own = keys_of(there.original, [name])[0]
        assert_shares(keys_of(neighbors, [name]), law(reference, [name], own, 0.54))
    assert there.views.edges[0].min() < 25
    assert len(table.examples_with([])) == len(frame)


# --- realistic neighbors --------------------------------------------------------------------------------


def test_realistic_neighbors_have_one_donor():
    frame = people()
    there = Table(frame, neighbors="realistic").at(3)
    donors = there.draw(2000, Random.of(0, there.key, "a"), 0.54)
    assert not there.is_product
    assert all(len(set(each) - {-1}) <= 1 for each in donors.T.tolist())
    assert abs((donors >= 0).mean() - 0.54) < 0.02
    rows = {tuple(row) for row in frame.astype(str).itertuples(index=False)}
    replaced = drawn(there, 1.0).astype(str)
    assert {tuple(row) for row in replaced.itertuples(index=False)} <= rows


def test_realistic_neighbors_follow_the_values_that_they_keep():
    rng = np.random.default_rng(0)
    size = rng.normal(size=600)
    frame = pd.DataFrame({"size": size, "weight": size + rng.normal(size=600) * 0.05})
    there = Table(frame, neighbors="realistic").at({"size": 1.0, "weight": 1.0})
    neighbors = drawn(there, 0.5, n=4000)
    kept = neighbors["size"] == 1.0
    assert (neighbors[kept]["weight"] - 1.0).abs().max() < 0.5
    assert (neighbors[~kept & (neighbors["weight"] == 1.0)]["size"] - 1.0).abs().max() < 0.5


def test_realistic_donors_have_all_facts():
    frame = people(300)
    there = Table(frame, neighbors="realistic").at(3)
    facts = [number_of(there, "town", kind="equals"), number_of(there, "member", kind="equals")]
    stated = [there.fact(j) for j in facts]
    donors = there.draw(2000, Random.of(0, there.key, "a"), 0.54, facts)
    assert all_true(stated, there.realize(donors)).all()
    assert (donors[there.candidates.groups[facts]] >= 0).all()
    true = all_true(stated, pd.concat([rows for rows, _ in Table(frame).examples()]))
    assert true[donors[donors >= 0]].all()


def test_realistic_neighbors_keep_facts_that_no_row_has_together():
    frame = pd.DataFrame({"a": list("xxxyyy") * 10, "b": list("uvuvvv") * 10, "c": range(60)})
    there = Table(frame, neighbors="realistic").at({"a": "y", "b": "u", "c": 3})
    neighbors = drawn(there, 1.0, [number_of(there, "a"), number_of(there, "b")], n=300)
    assert set(neighbors["a"]) == {"y"}
    assert set(neighbors["b"]) == {"u"}
    assert neighbors["c"].nunique() > 1


def test_the_nearest_row_is_drawn_ten_times_as_often_as_the_tenth():
    costs = np.random.default_rng(0).permutation(40)[None, :] + 1
    kept, uniforms = np.zeros((1, N), dtype=bool), Random.of(0, b"", "a").uniforms(N)
    chosen = similar_rows(costs.astype(np.int32), np.arange(40), kept, uniforms)
    weights = {int(row): (10 - rank) / 55 for rank, row in enumerate(np.argsort(costs[0])[:10])}
    assert_shares(chosen.tolist(), weights)


def test_the_row_itself_does_not_donate():
    frame = people(200)
    table = Table(frame, neighbors="realistic")
    donors = table.at(3).draw(4000, Random.of(0, b"", "a"), 0.54)
    assert int(table.schema.positions[3]) not in set(donors.reshape(-1).tolist())


# --- a user's rule --------------------------------------------------------------------------------------


def allowed(rows):
    return ~(rows["member"] & (rows["age"] < 30)).to_numpy()


def test_neighbors_that_break_the_rule_are_drawn_again():
    frame = people()
    at = int(np.flatnonzero(allowed(frame))[0])
    there = Table(frame[["age", "member"]], valid=allowed).at(at)
    neighbors = drawn(there, 0.54)
    assert allowed(neighbors).all()
    free = Table(frame[["age", "member"]]).at(at)
    donors, chances = free.listed(0.54, 10_000)
    every = free.realize(donors)
    kept = np.where(allowed(every), chances, 0.0)
    expected = dict(zip(keys_of(every, ["age", "member"]), kept / kept.sum(), strict=True))
    assert_shares(keys_of(neighbors, ["age", "member"]), expected)


def test_no_neighbors_keep_every_rule():
    table = Table(people()[["age", "member"]], valid=lambda rows: np.ones(len(rows), dtype=bool))
    assert drawn(table.at(0), 0.54, n=0).shape == (0, 2)
    number = Explainer(lambda rows: rows["age"].to_numpy() / 7, table)
    assert [fact.column for fact in number.explain(0, queries=300).facts] == ["age"]


@pytest.mark.parametrize("neighbors", ["independent", "realistic"])
def test_a_rule_that_allows_the_row_itself_only_is_named(neighbors):
    """Otherwise every copy is the row, and nothing seems to change the decision."""
    frame = pd.DataFrame({"age": np.arange(80), "member": np.arange(80) % 7})

    def only_row(rows):
        return ((rows["age"] == 3) & (rows["member"] == 3)).to_numpy()

    explainer = Explainer(
        lambda rows: rows["age"].to_numpy() / 7, Table(frame, valid=only_row, neighbors=neighbors)
    )
    with pytest.raises(
        ParameterError, match=r"Only the row itself satisfies the rule `valid`: none of \d+ altered copies"
    ):
        explainer.explain(3)
    with pytest.raises(ParameterError, match=r"Only the row itself satisfies the rule `valid`"):
        explainer.rule(3)
    two = Table(frame, valid=lambda rows: (rows["age"] == rows["member"]).to_numpy(), neighbors=neighbors)
    assert len(drawn(two.at(3), 0.54, n=600)) == 600


def test_a_rule_that_cannot_be_kept_is_named():
    frame = people()[["age", "member"]]
    at = int(np.flatnonzero(~allowed(frame))[0])
    with pytest.raises(InstanceError, match=r"breaks the rule `valid`.*Correct the row"):
        drawn(Table(frame, valid=allowed).at(at), 0.54, n=10)
    own = int(frame["age"].iloc[0])
    with pytest.raises(ParameterError, match=r"neighbors satisfy the rule `valid`.*groups=\["):
        drawn(Table(frame.assign(x=range(80)), valid=lambda rows: (rows["x"] == 0).to_numpy()).at(0), 1.0, n=200)
    with pytest.raises(
        ParameterError, match=r"valid raised KeyError: 'b'\. It must .* the columns 'age', 'member'"
    ):
        drawn(Table(frame, valid=lambda rows: rows["b"] > 0).at(0), 0.5, n=10)
    with pytest.raises(ParameterError, match="valid returned int64 of shape"):
        drawn(Table(frame, valid=lambda rows: (rows["age"] == own).to_numpy().astype(int)).at(0), 0.5, n=10)
    with pytest.raises(ParameterError, match="valid is 'age > 3'; it must be a function"):
        Table(frame, valid="age > 3")


# --- lists of all neighbors -----------------------------------------------------------------------------


def small():
    return pd.DataFrame(
        {
            "n": [1, 1, 2, 3],
            "x": [0.0, -0.0, np.nan, np.nan],
            "t": ["a", "a", "b", "a"],
            "u": [True, False, False, False],
        }
    )


def enumerated(frame, row, units, q, facts):
    """All neighbors by taking the values of every combination of rows, or the own ones."""
    each = []
    for unit in units:
        stated = [fact for fact in facts if fact.column in unit]
        pool = frame[all_true(stated, frame)] if stated else frame
        keeps = 0.0 if stated else 1 - q
        drawn = [(values, (1 - keeps) / len(pool)) for values in pool[unit].to_numpy(dtype=object).tolist()]
        each.append([*drawn, (row[unit].to_numpy(dtype=object)[0].tolist(), keeps)])
    chances = Counter()
    for chosen in itertools.product(*each):
        key = repr([value for values, _ in chosen for value in values])
        chances[key] += np.prod([chance for _, chance in chosen])
    return {key: chance for key, chance in chances.items() if chance}


@pytest.mark.parametrize("q", [1.0, 0.54])
@pytest.mark.parametrize("groups", [{}, {"both": ["x", "t"]}])
@pytest.mark.parametrize("row", [0, 2, "new"])
def test_listed_neighbors_are_all_of_them_with_their_probabilities(q, groups, row):
    frame = small()
    there = Table(frame, groups=groups).at([7, 0.5, "c", True] if row == "new" else row)
    units = [["n"], ["x", "t"], ["u"]] if groups else [["n"], ["x"], ["t"], ["u"]]
    within = [j for j, fact in enumerate(facts_of(there)) if true_of(fact, frame).any()]
    for facts in ([], within[:1], within[-1:]):
        donors, chances = there.listed(q, 1000, facts)
        stated = [there.fact(j) for j in facts]
        rows = there.realize(donors)
        keys = [repr(each) for each in rows.to_numpy(dtype=object).tolist()]
        expected = enumerated(frame, there.original, units, q, stated)
        assert len(set(keys)) == len(keys)
        assert dict(zip(keys, chances, strict=True)) == pytest.approx(expected)
        assert chances.sum() == pytest.approx(1.0)


def test_probabilities_of_cells_are_those_of_the_list():
    there = Table(small()).at(0)
    donors, chances = there.listed(0.54, 1000)
    totals = np.zeros(there.candidates.n_cells)
    for cells in there.cells(donors):
        np.add.at(totals, cells, chances)
    np.testing.assert_allclose(totals, there.candidates.chances(0.54))


def test_long_lists_are_not_made():
    assert Table(small()).at(0).listed(0.54, 5) is None
    assert Table(people()).at(0).listed(0.54, 4096) is None
    assert Table(small(), neighbors="realistic").at(0).listed(0.54, 4096) is None
    assert Table(small(), valid=lambda rows: (rows["n"] > 0).to_numpy()).at(0).listed(0.54, 4096) is None


def test_a_table_whose_columns_are_all_fixed_has_one_neighbor():
    there = Table(small(), fixed=["n", "x", "t", "u"]).at(0)
    donors, chances = there.listed(0.54, 10)
    assert donors.shape == (0, 1)
    assert chances.tolist() == [1.0]
    assert there.realize(there.draw(3, Random.of(0, b"", "a"), 0.54))["n"].tolist() == [1, 1, 1]
    assert there.candidates.n_facts == there.candidates.n_attributes == 0
