"""A look at a table before explaining: every trap of the prepared tables is named, and clean tables have none."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_diabetes, load_iris, load_wine

from anchorline.errors import ParameterError
from anchorline.samples import loans
from anchorline.spaces.table import Table

N = 400


def clean(seed=0):
    """Numbers, dates, categories, booleans and missing values that are unrelated."""
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "age": rng.integers(18, 80, size=N),
            "income": np.where(rng.random(N) < 0.05, np.nan, rng.gamma(3, 9000, size=N)),
            "town": rng.choice(["Lens", "Arras", "Lille", "none"], size=N).astype(object),
            "member": rng.random(N) < 0.4,
            "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, size=N), "D"),
            "has_car": (rng.random(N) < 0.5).astype(int),
            "has_house": (rng.random(N) < 0.3).astype(int),
        }
    )


def one_hot():
    return clean().assign(**{f"color_{c}": (np.arange(N) % 3 == i).astype(int) for i, c in enumerate("rgb")})


def one_hot_without_its_first_column():
    return one_hot().drop(columns="color_r")


def noisy_copy():
    return clean().assign(age_in_months=lambda f: 12 * f["age"] + np.arange(N) % 12)


def town_and_country():
    return clean().assign(country=lambda f: f["town"].map({"Lens": "A", "Arras": "A", "Lille": "B", "none": "C"}))


def row_numbers():
    return clean().assign(customer=np.random.default_rng(1).permutation(N))


def names_of_people():
    return clean().assign(person=[f"Person number {chr(97 + i % 26)}{i}" for i in range(N)])


def one_value():
    return clean().assign(country="FR", empty=np.nan)


def numbers_as_texts():
    prices = [f"{1000 + 7 * i:,}" if i % 9 else "?" for i in range(N)]
    return clean().assign(price=np.array(prices, dtype=object)[np.random.default_rng(0).permutation(N)])


def dates_as_texts():
    return clean().assign(seen=lambda f: f["since"].dt.strftime("%d/%m/%Y"))


def question_marks():
    jobs = np.random.default_rng(7).choice(["worker", "clerk", "?"], size=N)
    return clean().assign(job=jobs.astype(object))


def missing_as_numbers():
    rng = np.random.default_rng(0)
    return clean().assign(height=np.where(rng.random(N) < 0.05, -999, rng.normal(170, 9, size=N)))


TRAPS = [
    (one_hot, "indicators", {"color_r", "color_g", "color_b"}),
    (one_hot_without_its_first_column, "indicators", {"color_g", "color_b"}),
    (noisy_copy, "dependent-columns", {"age", "age_in_months"}),
    (town_and_country, "dependent-columns", {"town", "country"}),
    (row_numbers, "id", {"customer"}),
    (names_of_people, "id", {"person"}),
    (one_value, "constant-column", {"country", "empty"}),
    (numbers_as_texts, "lost-type", {"price"}),
    (dates_as_texts, "lost-type", {"seen"}),
    (question_marks, "lost-missing", {"job"}),
    (missing_as_numbers, "lost-missing", {"height"}),
]


@pytest.mark.parametrize(("trap", "code", "columns"), TRAPS, ids=lambda part: getattr(part, "__name__", None))
def test_every_trap_is_named_and_nothing_else(trap, code, columns):
    findings = [f for f in Table(trap()).check() if (f.code, trap) != ("dependent-columns", dates_as_texts)]
    assert [(finding.code, set(finding.columns)) for finding in findings] == [(code, columns)]
    assert all(repr(name) in findings[0].text for name in columns)


@pytest.mark.parametrize("seed", range(5))
def test_clean_tables_have_no_findings(seed):
    rng = np.random.default_rng(100 + seed)  # not the stream of the table, which the checks would notice
    assert Table(clean(seed)).check(target=rng.choice(["yes", "no"], size=N)) == ()
    assert Table(clean(seed)).check(target=rng.normal(size=N)) == ()
    assert Table(clean(seed)[:40]).check() == ()


def test_tables_that_come_with_libraries_have_no_other_finding_than_dependence():
    for load in (load_iris, load_wine, load_diabetes):
        data = load(as_frame=True)
        codes = {finding.code for finding in Table(data.data).check(target=data.target)}
        assert codes <= {"dependent-columns"}
    frame, decision = loans()
    assert Table(frame).check(target=decision) == ()


def test_columns_that_know_the_target_are_named():
    rng = np.random.default_rng(0)
    target = np.where(rng.random(N) < 0.3, "yes", "no")
    noisy = np.where(target == "yes", "late", "early")
    noisy[np.flatnonzero(target == "no")[:2]] = "late"
    frame = clean().assign(same=np.where(target == "yes", 1, 0), after=noisy)
    found = {f.code: f.columns for f in Table(frame, neighbors="realistic").check(target=target)}
    assert found == {"target-copy": ("same",), "target-leak": ("after",)}
    price = rng.gamma(2, 100, size=N)
    frame = clean().assign(price=price, price_with_tax=1.2 * price + rng.normal(size=N) * 0.01)
    found = {f.code: f.columns for f in Table(frame, neighbors="realistic").check(target=price)}
    assert found == {"target-copy": ("price",), "target-leak": ("price_with_tax",)}
    with pytest.raises(ParameterError, match=r"^target has shape"):
        Table(frame).check(target=price[:-1])


def test_columns_that_say_the_same_thing_are_one_attribute_and_no_trap():
    flags = np.random.default_rng(3).random(N) < 0.4
    assert Table(clean().assign(smoker=flags, nonsmoker=~flags)).check() == ()
    assert Table(clean().assign(age_in_months=lambda f: 12 * f["age"])).check() == ()


def test_auto_groups_are_the_ones_that_are_named():
    table = Table(one_hot(), groups="auto")
    assert {name: set(members) for name, members in table.groups.items()} == {
        "color": {"color_r", "color_g", "color_b"}
    }
    assert table.check() == ()
    assert Table(clean(), groups="auto").groups == {}
    same = Table(one_hot(), groups={"color": ["color_r", "color_g", "color_b"]})
    assert table.fingerprint == same.fingerprint


def test_realistic_neighbors_may_have_dependent_columns():
    assert Table(noisy_copy(), neighbors="realistic").check() == ()


def test_columns_that_never_change_are_not_looked_at():
    table = Table(one_value().assign(customer=range(N)), fixed=["country", "empty"]).holding(
        {"customer": "not read"}
    )
    assert table.check() == ()
