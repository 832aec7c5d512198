"""Proofs of sums of facts, counted and timed on small tables."""

from benchmarks import proofs


def test_proofs_are_counted_by_table_law_and_number_of_facts(data):
    rows = list(proofs.proofs(data, n_rows=2, sizes=(1, 3)))
    assert [(row["law"], row["k"]) for row in rows[:4]] == [
        ("independent", 1),
        ("independent", 3),
        ("realistic", 1),
        ("realistic", 3),
    ]
    assert len({row["table"] for row in rows}) == 2
    for row in rows:
        assert row["proven"] == 1 or row["law"] == "realistic"
        assert 0 <= row["stated_proven"] <= 1
        assert 0 < row["median_seconds"] <= row["most_seconds"]


def test_wide_tables_are_proven_in_little_memory():
    proof, search = proofs.wide_proofs(dimensions=[40], sizes=[3])
    assert proof["table"] == search["table"] == "40 columns"
    assert proof["proven"] == proof["stated_proven"] == 1
    assert 0 <= search["megabytes"] < 200
