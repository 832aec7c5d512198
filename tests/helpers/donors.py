"""Realistic neighbors by their definition in docs/tables.md, in plain Python; shares no code with the library."""

import functools
import itertools
import math
from bisect import bisect_left, bisect_right
from collections import Counter

import numpy as np
import pandas as pd


def grade(value, points):
    """The middle rank of a number among sorted points, in units of 1/1024."""
    return (bisect_left(points, value) + bisect_right(points, value)) * 512 // len(points)


def is_number(value):
    return isinstance(value, int | float)


def is_missing(value):
    return value is None or (isinstance(value, float) and math.isnan(value))


def differences(values, own):
    """The difference of every value of a column from the row's own value, and its mean over all pairs."""
    points = sorted(value for value in values if is_number(value) and not is_missing(value))

    def difference(first, second):
        if is_missing(first) or is_missing(second):
            return 1024**2 if is_missing(first) != is_missing(second) else 0
        if points:
            return (grade(first, points) - grade(second, points)) ** 2
        return 1024**2 if first != second else 0

    n = len(values)
    kinds = {}
    for value in values:
        key = None if is_missing(value) else grade(value, points) if points else value
        kinds.setdefault(key, [value, 0])[1] += 1
    pairs = [(v, c, w, e) for v, c in kinds.values() for w, e in kinds.values()]
    mean = sum(difference(v, w) * c * e for v, c, w, e in pairs) / n**2
    return [difference(value, own) for value in values], mean


def costs(columns, row):
    """The cost (attributes, rows) of every training row, as whole numbers."""
    unit, table = (2**16 - 1) // (6 * len(columns)), []
    for values, own in zip(columns, row, strict=True):
        gaps, mean = differences(values, own)
        table.append([math.floor(min(6.0, gap / mean) * unit) if mean else 0 for gap in gaps])
    return table, unit


def levels_of(values, own):
    """The level of every value of a column, and of one more: itself, if it is a category, missing, or frequent."""
    points = sorted(value for value in values if is_number(value) and not is_missing(value))
    keys = [None if is_missing(v) else grade(v, points) if points else v for v in [*values, own]]
    counts = Counter(keys[:-1])
    levels = [k if k is None or not points or counts[k] >= 0.02 * len(values) else "another number" for k in keys]
    return levels[:-1], levels[-1]


def broken_rules(columns, row):
    """By pair of columns, whether each training row's value in the first is excluded by the row's in the second.

    By the definition in docs/tables.md.
    """
    d, n = len(columns), len(columns[0])
    pairs = [levels_of(values, own) for values, own in zip(columns, row, strict=True)]
    levels, own = [each for each, _ in pairs], [each for _, each in pairs]
    least = least_expected(columns, levels)
    return {
        (a, b): [
            _excludes(levels[b], own[b], levels[a], levels[a][i], least)
            or _excludes_number(levels[b], own[b], columns[a], columns[a][i], least)
            or _excludes_number(levels[a], levels[a][i], columns[b], row[b], least)
            for i in range(n)
        ]
        for a in range(d)
        for b in range(d)
        if a != b
    }


def least_expected(columns, levels):
    """How many rows two levels must be expected to share: 5, and the logarithm of the number of comparisons."""
    n, n_pairs = len(columns[0]), 0
    levels = {a: own for a, own in enumerate(levels) if len(set(own)) > 1}
    for a, b in itertools.combinations(levels, 2):
        first, second = Counter(levels[a]).values(), Counter(levels[b]).values()
        n_pairs += sum(u * w >= 5 * n for u in first for w in second)
    for a, b in itertools.product(levels, range(len(columns))):
        numbers = columns[b]
        if a != b and all(is_number(value) or is_missing(value) for value in numbers):
            present = [u for u, value in zip(levels[a], numbers, strict=True) if not is_missing(value)]
            counts = Counter(present).values()
            n_pairs += sum(u * w >= 5 * len(present) for u, w in itertools.permutations(counts, 2))
    return 5 + math.log(max(1, n_pairs))


@functools.cache
def _counts(levels):
    return Counter(levels)


def _excludes(first, u, second, w, least):
    """Whether level u of the first column and level w of the second exclude each other."""
    with_u = {b for a, b in zip(first, second, strict=True) if a == u}
    with_w = {a for a, b in zip(first, second, strict=True) if b == w}
    several = len(set(first)) > 1 and len(set(second)) > 1
    is_comparable = _counts(tuple(first))[u] * _counts(tuple(second))[w] >= least * len(first)
    decides = any(len(found) == 1 and own != "another number" for own, found in ((u, with_u), (w, with_w)))
    return several and w not in with_u and is_comparable and decides


def _excludes_number(levels, u, numbers, number, least):
    """Whether level u of a column excludes a number of another column."""
    if not is_number(number) or is_missing(number):
        return False
    of = {level: [] for level in levels}
    for level, value in zip(levels, numbers, strict=True):
        if not is_missing(value):
            of[level].append(value)
    own, n = of.get(u, []), sum(map(len, of.values()))
    others = [
        values for w, values in of.items() if own and values and w != u and len(own) * len(values) >= least * n
    ]
    below = any(max(values) < min(own) and number <= max(values) for values in others)
    return below or any(min(values) > max(own) and number >= min(values) for values in others)


def donor_weights(table, unit, ways, draws, broken, settled=(), n_candidates=256):
    """The donors of a neighbor and their probabilities, and the attributes that each of them gives.

    ``table`` and ``unit`` are those of `costs`, and ``broken`` that of `broken_rules`. ``ways[a][i]`` is the way
    in which training row i differs from the row in attribute a, or 0. ``draws[a]`` is the wanted way, or 0.
    ``settled`` are attributes that changed and have their value.
    """
    n, d = len(table[0]), len(table)
    wanted = [a for a in range(d) if draws[a]]
    having = {a: [i for i in range(n) if ways[a][i] == draws[a]] for a in wanted}
    pivots = [(len(having[a]), a, -1, having[a]) for a in wanted]
    at_stake = [(a, b) for a in wanted for b in range(d) if b not in wanted and b not in settled]
    for a, b in at_stake:
        rows = [i for i in having[a] if not broken[a, b][i]]
        if 0 < len(rows) < len(having[a]) / 2:
            pivots.append((len(rows), a, b, rows))
    for _, pivot, other, rows in (min(pivots), min(pivots[: len(wanted)])):

        def rank(i, pivot=pivot):
            same = sum(1 for a in range(d) if not ways[a][i])
            return sum(table[a][i] for a in range(d) if a != pivot) + unit * 3 // 4 * same

        looked_at = sorted(rows, key=lambda i: (rank(i), i))[:n_candidates]
        lacking = {i: sum(1 for a in wanted if ways[a][i] != draws[a]) for i in looked_at}
        if other < 0 or not min(lacking.values()):
            break

    def worth(i):
        return lacking[i], min(3, sum(broken[pair][i] for pair in at_stake))

    alike = [i for i in looked_at if worth(i) == min(map(worth, looked_at))]
    kept = [a for a in range(d) if a not in wanted]
    donors = sorted(alike, key=lambda i: (sum(table[a][i] for a in kept), looked_at.index(i)))[:10]
    total = len(donors) * (len(donors) + 1) / 2
    return {
        i: ((len(donors) - at) / total, [a for a in wanted if ways[a][i] == draws[a]])
        for at, i in enumerate(donors)
    }


def population(table, unit, ways, flip_probability, broken):
    """Every neighbor that can be drawn: its probability, its flips, and the donor of each flipped attribute."""
    d = len(table)
    for flips in itertools.product([False, True], repeat=d):
        n = sum(flips)
        chance = flip_probability**n * (1 - flip_probability) ** (d - n)
        for share, sources in _given(table, unit, ways, flips, {}, broken):
            yield chance * share, flips, sources


def _given(table, unit, ways, wanted, sources, broken):
    """Yield the probabilities and the donors by attribute of all ways to serve the wanted attributes."""
    if not any(wanted):
        yield 1.0, sources
        return
    for donor, (share, given) in donor_weights(table, unit, ways, wanted, broken, tuple(sources)).items():
        rest = [want and a not in given for a, want in enumerate(wanted)]
        for part, more in _given(table, unit, ways, rest, sources | dict.fromkeys(given, donor), broken):
            yield share * part, more


def dependent_frame(n=400, seed=0):
    """Numbers, a category and missing values that all depend on each other; every number occurs once."""
    rng = np.random.default_rng(seed)
    size = rng.normal(size=n)
    frame = pd.DataFrame(
        {
            "size": size,
            "weight": size**3 + 0.1 * rng.normal(size=n),
            "kind": np.array(["small", "middle", "large"], dtype=object)[np.digitize(size, [-0.8, 0.9])],
            "price": np.where(rng.random(n) < 0.1, np.nan, 2 * size + rng.normal(size=n)),
        }
    )
    return frame.sample(frac=1, random_state=seed, ignore_index=True)


def score(rows):
    """Smooth, in [-1, 1], and strange where size and weight do not belong together."""
    size, weight = rows["size"].to_numpy(), rows["weight"].to_numpy()
    price = rows["price"].fillna(-1.0).to_numpy()
    strange = np.abs(weight - size**3) > 1.5
    return np.where(strange, -1.0, np.tanh(size + 0.3 * price + 0.4 * (rows["kind"] == "large")))


def ways_of(frame, row, cuts):
    """By attribute, the way in which every training row differs from the row: 0, or 1 if it breaks the literal."""
    ways = []
    for name in frame.columns:
        if name in cuts:
            codes = np.where(frame[name].isna(), -1, np.searchsorted(cuts[name], frame[name], side="right"))
            own = -1 if pd.isna(row[name]) else np.searchsorted(cuts[name], row[name], side="right")
        else:
            codes, own = frame[name].to_numpy(), row[name]
        ways.append((codes != own).astype(int).tolist())
    return ways


CUTS = {"size": [-0.7, 0.0, 0.7], "weight": [-0.3, 0.3], "price": [-1.0, 1.0]}


def plain_columns(frame):
    """The columns as lists; missing values are None."""
    return [[None if pd.isna(value) else value for value in frame[name].tolist()] for name in frame.columns]


def ordered_rows(table, frame):
    """The training rows in the table's own order, which breaks ties."""
    return table.schema.natives.rows(np.arange(len(frame)))


def similar_weights(table, unit, ways, wanted, broken, n_donors=10, pool_size=256):
    """The donors of a neighbor in which the wanted attributes are replaced, and their probabilities.

    `neighbors="similar"` by its definition in docs/tables.md; the other arguments are those of `donor_weights`.
    """
    n, d = len(table[0]), len(table)
    total = [sum(table[a][i] for a in range(d)) for i in range(n)]
    breaking = [[i for i in range(n) if ways[a][i]] for a in range(d)]
    each = max(1, min(n_donors, pool_size // 2 // d))
    pool = {
        i for a in range(d) for i in sorted(breaking[a], key=lambda i, a=a: (total[i] - table[a][i], i))[:each]
    }
    others = sorted(
        {i for rows in breaking for i in rows} - pool, key=lambda i: (sum(min(c[i], unit) for c in table), i)
    )
    pool |= set(others[: max(0, pool_size - len(pool))])
    able = [i for i in pool if any(ways[a][i] for a in range(d) if wanted[a])]
    kept = [a for a in range(d) if not wanted[a]]
    at_stake = [(a, b) for a in range(d) for b in kept if wanted[a] and (a, b) in broken]
    n_broken = {i: min(3, sum(broken[pair][i] for pair in at_stake)) for i in able}
    able = [i for i in able if n_broken[i] == min(n_broken.values())]
    best = sorted(able, key=lambda i: (sum(table[a][i] for a in kept), i))[:n_donors]
    weights = len(best) * (len(best) + 1) / 2
    return {i: (len(best) - at) / weights for at, i in enumerate(best)}


def similar_population(table, unit, ways, flip_probability, broken):
    """Every similar neighbor: its probability, its flips, and the donor of each replaced attribute."""
    d = len(table)
    for wanted in itertools.product([False, True], repeat=d):
        n = sum(wanted)
        chance = flip_probability**n * (1 - flip_probability) ** (d - n)
        if not n:
            yield chance, wanted, {}
            continue
        for donor, share in similar_weights(table, unit, ways, wanted, broken).items():
            flips = tuple(bool(want and ways[a][donor]) for a, want in enumerate(wanted))
            yield chance * share, flips, {a: donor for a in range(d) if wanted[a]}


def assert_same_bytes_in_batches(explainer, rows):
    """Check that a row's explanation does not depend on the rows beside it, nor on the number of processes."""
    settings = {"k": 3, "n_samples": 300, "n_certify": 300}
    alone = [explainer.explain(rows.iloc[i], **settings).to_json() for i in range(len(rows))]
    for n_jobs in (1, 2):
        assert [e.to_json() for e in explainer.explain_many(rows, **settings, n_jobs=n_jobs)] == alone
