"""How close neighbors are to rows that could exist, by the law that makes them; LIME's rows beside them.

A law is a value of ``Table(neighbors=...)``. All rows that are explained are held out of the training table.
"""

import warnings
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from anchorline.search.sampling import DrawnFlips, stream_key
from anchorline.settings import flip_probability_of
from anchorline.spaces.base import Law
from anchorline.spaces.options import NEIGHBORS
from anchorline.spaces.table import Table
from benchmarks.datasets import available, read_dataset
from benchmarks.tables import RawTask, _LimeOnTable, _with_dates
from benchmarks.tasks import SEED

N_TRAINING = 6000
N_HELD = 300  # rows that are compared with neighbors, and as many that neighbors are made of
N_EXPLAINED, N_EACH = 40, 10  # rows and neighbors of each whose distances are measured
MIN_HELD = 60  # with fewer rows, a discriminator learns nothing
N_FOLDS = 5
P = flip_probability_of(1.0)


@dataclass(frozen=True, eq=False)
class Places:
    """Training rows as numbers (columns, n): places of numbers and dates from 0 to 1, codes of texts."""

    frame: Any
    levels: dict[str, dict[str, int]]
    sorted_numbers: dict[str, np.ndarray]
    numbers: np.ndarray

    @classmethod
    def of(cls, frame: Any) -> "Places":
        """Return the places of a training frame."""
        levels: dict[str, dict[str, int]] = {}
        points: dict[str, np.ndarray] = {}
        for name in frame.columns:
            if frame[name].dtype.kind in "biufM":
                points[name] = np.sort(_floats(frame[name])[~frame[name].isna().to_numpy()])
            else:
                levels[name] = {
                    text: i
                    for i, text in enumerate(sorted(set(frame[name].astype(object).fillna("").astype(str))))
                }
        places = cls(frame, levels, points, np.zeros(0))
        return cls(frame, levels, points, places.coded(frame))

    def coded(self, rows: Any) -> np.ndarray:
        """Return rows as numbers, (columns, n); NaN where they are missing."""
        columns = []
        for name in self.frame.columns:
            if name in self.levels:
                columns.append(
                    rows[name]
                    .astype(object)
                    .fillna("")
                    .astype(str)
                    .map(self.levels[name])
                    .fillna(-1)
                    .to_numpy(float)
                )
                continue
            values, points = _floats(rows[name]), self.sorted_numbers[name]
            sides = [np.searchsorted(points, values, side) for side in ("left", "right")]
            columns.append(np.where(rows[name].isna(), np.nan, sum(sides) / (2 * max(1, len(points)))))
        return np.array(columns)

    def nearest(self, rows: Any) -> np.ndarray:
        """Return the distance of each row to the nearest training row: the mean of its columns' distances.

        Numbers are as far apart as their places, and two categories, or a value and a missing one, 1/2.
        """
        coded, found = self.coded(rows), []
        for first in range(0, coded.shape[1], 50):
            part = coded[:, first : first + 50]
            total = np.zeros((part.shape[1], self.numbers.shape[1]), dtype=np.float32)
            for name, own, column in zip(self.frame.columns, part, self.numbers, strict=True):
                apart = np.abs(column[None] - own[:, None])
                apart = np.where(apart > 0, 0.5, 0.0) if name in self.levels else apart
                both = np.isnan(column)[None] & np.isnan(own)[:, None]
                total += np.where(np.isnan(apart), np.where(both, 0.0, 0.5), apart)
            found.append(total.min(axis=1) / len(coded))
        return np.concatenate(found)


def _floats(column: Any) -> np.ndarray:
    values = column.astype("int64") if column.dtype.kind == "M" else column
    return np.asarray(values.to_numpy(dtype=np.float64))


def realism(data: Path, tables: Collection[str] = ()) -> Iterator[dict[str, Any]]:
    """Yield one row per raw table: distances and discriminators of every law, and of LIME's rows."""
    for row in available(data, tables):
        frame = _with_dates(read_dataset(data, row.id)).frame.sample(frac=1, random_state=SEED, ignore_index=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield {"table": row.name} | compare_realism(frame)


def compare_realism(frame: Any) -> dict[str, Any]:
    """Return how real the neighbors of held-out rows of a frame are."""
    n_held = min(N_HELD, len(frame) // 5)
    real, cases = frame.iloc[:n_held], frame.iloc[n_held : 2 * n_held]
    train = frame.iloc[2 * n_held : 2 * n_held + N_TRAINING].reset_index(drop=True)
    places = Places.of(train)
    own = places.nearest(frame.iloc[: 2 * n_held])
    n_numbers = sum(kind.kind in "iuf" for kind in frame.dtypes)
    found: dict[str, Any] = {"attributes": frame.shape[1], "numbers": n_numbers, "training_rows": len(train)}
    aucs: dict[str, tuple[float | None, float | None]] = {}
    for law in NEIGHBORS:
        table = Table(train, neighbors=law, groups="auto")
        near = places.nearest(_made(table, cases.iloc[:N_EXPLAINED], N_EACH))
        found[f"{law}_median_ratio"] = _ratio(np.median(near), np.median(own))
        found[f"{law}_mean_ratio"] = _ratio(near.mean(), own.mean())
        aucs[law] = _auc(places, real, _made(table, cases, 2)) if n_held >= MIN_HELD else (None, None)
    aucs["lime"] = _auc(places, real, lime_rows(train, cases, 2)) if n_held >= MIN_HELD else (None, None)
    found |= {f"{name}_auc": value for name, (value, _) in aucs.items()}
    return found | {f"{name}_auc_error": error for name, (_, error) in aucs.items()}


def _ratio(value: float, own: float) -> float | None:
    return float(value / own) if own > 0 else None


def _made(table: Table, rows: Any, n_each: int) -> Any:
    """Return neighbors of every row, in the order of the rows."""
    import pandas as pd

    return pd.concat([made_up(table, rows.iloc[i], n_each, i) for i in range(len(rows))], ignore_index=True)


def made_up(table: Table, row: Any, n: int, seed: int) -> Any:
    """Return n neighbors of a row, as the table's law makes them."""
    here = table.at(row)
    return here.realize(_draws(here, n, seed), np.random.default_rng([SEED, seed]))


def _draws(here: Any, n: int, seed: int) -> np.ndarray:
    """Return which attributes change in n neighbors, and how, (n, d)."""
    n_literals, changes = len(here.literals), here.changes
    law = Law.of_literals(n_literals, P) if changes is None else Law.of_changes(changes, n_literals, P)
    draws, _ = DrawnFlips(stream_key(seed, here.key, "made up"), n, law.ends).rows(0, n)
    return law.as_realized(draws)


def lime_rows(train: Any, rows: Any, n_each: int) -> Any:
    """Return the rows that LIME makes up around each row with its default settings, as the model receives them."""
    import pandas as pd

    lime = _LimeOnTable(RawTask("", train, None, (), True))
    lime._explainer.feature_selection = "none"  # only its rows count, which it makes before it selects features
    made: list[np.ndarray] = []

    def answer(coded: np.ndarray) -> np.ndarray:
        made.append(coded[1:])  # the first one is the row itself
        return np.full((len(coded), 2), 0.5)

    coded = lime._coded(rows)
    for row in np.where(np.isnan(coded), lime._fill, coded):
        lime._explainer.explain_instance(row, answer, num_features=1, num_samples=n_each + 1, labels=(0,))
    return pd.DataFrame(lime.decoded(np.concatenate(made)))


def _auc(places: Places, real: Any, made: Any) -> tuple[float, float]:
    """Return the area under the curve of a discriminator by cross-validation, and its standard error.

    Rows that are made of one case are in the same fold, and count together in the error, which is that of the
    tested rows. Where there is nothing to learn, cross-validation gives areas somewhat below 1/2.
    """
    from sklearn.ensemble import HistGradientBoostingClassifier

    n_each = len(made) // len(real)
    values = [places.coded(rows).T for rows in (real, made)]
    cases = [np.arange(len(real)), np.repeat(np.arange(len(real)), n_each)]
    folds = np.random.default_rng(SEED).permutation(len(real)) % N_FOLDS
    above: list[np.ndarray] = []
    below: list[np.ndarray] = []
    for fold in range(N_FOLDS):
        learned, tested = ([folds[each] != fold for each in cases], [folds[each] == fold for each in cases])
        rows = np.concatenate([part[which] for part, which in zip(values, learned, strict=True)])
        is_real = np.repeat([1, 0], [which.sum() for which in learned])
        model = HistGradientBoostingClassifier(max_iter=50, random_state=SEED).fit(rows, is_real)
        pairs = zip(values, tested, strict=True)
        first, second = (model.predict_proba(part[which])[:, 1] for part, which in pairs)
        wins = (first[:, None] > second) + 0.5 * (first[:, None] == second)
        above.append(wins.mean(axis=1))
        below.append(wins.mean(axis=0).reshape(-1, n_each).mean(axis=1))
    parts = [np.concatenate(each) for each in (above, below)]
    return float(parts[0].mean()), float(np.sqrt(sum(part.var(ddof=1) / len(part) for part in parts)))


def ships(n: int, seed: int = SEED) -> Any:
    """Return people on a ship: whoever is crew pays no fare, and class, age and sex decide other columns."""
    import pandas as pd

    rng = np.random.default_rng(seed)
    classes = rng.choice(["crew", "1st", "2nd", "3rd"], n, p=[0.4, 0.15, 0.13, 0.32])
    level = pd.Series(classes).map({"crew": 0.0, "1st": 60.0, "2nd": 20.0, "3rd": 9.0}).to_numpy()
    sex = np.where(rng.random(n) < np.where(classes == "crew", 0.95, 0.6), "male", "female")
    age = np.where(classes == "crew", rng.normal(33, 8, n), rng.gamma(4, 7.5, n)).clip(1, 75).round()
    age = np.where(classes == "crew", age.clip(16), age)
    relatives = np.where(classes == "crew", 0, rng.poisson(0.8, n))
    return pd.DataFrame(
        {
            "class": classes,
            "fare": np.where(classes == "crew", 0.0, (level * rng.lognormal(0, 0.4, n)).clip(3).round(2)),
            "deck": _decks(classes),
            "sex": sex,
            "age": age,
            "title": _titles(sex, age),
            "relatives": relatives.astype(float),
            "alone": np.where(relatives == 0, "yes", "no"),
            "port": rng.choice(["north", "south", "west"], n, p=[0.7, 0.2, 0.1]),
        }
    )


def _decks(classes: np.ndarray) -> np.ndarray:
    return np.select([classes == "crew", classes == "1st"], ["service", "upper"], "lower")


def _titles(sex: np.ndarray, age: np.ndarray) -> np.ndarray:
    return np.where(sex == "female", "Ms", np.where(age < 13, "Master", "Mr"))


def broken_rules(rows: Any) -> dict[str, np.ndarray]:
    """Return by rule which rows break it; no row of `ships` does."""
    classes, sex, age = (rows[name].to_numpy() for name in ("class", "sex", "age"))
    return {
        "fare": (rows["fare"].to_numpy() > 0) == (classes == "crew"),
        "deck": rows["deck"].to_numpy() != _decks(classes),
        "title": rows["title"].to_numpy() != _titles(sex, age),
        "alone": (rows["relatives"].to_numpy() == 0) != (rows["alone"].to_numpy() == "yes"),
        "crew": (classes == "crew") & ((rows["relatives"].to_numpy() > 0) | (age < 16)),
    }


def rules(n_training: int = 1500, n_rows: int = 40, n_each: int = 50) -> Iterator[dict[str, Any]]:
    """Yield one row per law: the share of neighbors that break a rule which all training rows obey.

    A donor allows a neighbor to keep all rules if it is a training row that breaks the drawn facts (of similar
    neighbors, at least one of them), and the instance keeps all rules when it takes the drawn attributes from it.
    """
    train, cases = ships(n_training), ships(n_rows, SEED + 1)
    groups = [["class", "fare", "deck"], ["sex", "age", "title"], ["relatives", "alone"]]
    for grouped in (False, True):
        for law in NEIGHBORS:
            options = {"groups": groups if grouped else ()}
            found = [_broken(law, options, train, cases.iloc[i], n_each, i) for i in range(n_rows)]
            shares = {name: float(np.mean([each[name] for each in found])) for name in found[0]}
            yield {"neighbors": law, "grouped": "yes" if grouped else "no"} | shares


def _broken(law: str, options: dict[str, Any], train: Any, case: Any, n_each: int, seed: int) -> dict[str, float]:
    """Return the shares of the neighbors of one row that break rules: each, any, and where a donor allows none."""
    made = made_up(_table(train, law, options), case, n_each, seed)
    broken = broken_rules(made)
    any_rule = np.any(list(broken.values()), axis=0)
    here = _table(train, law, options).at(case)
    draws, names = _draws(here, n_each, seed), [here.attributes[i].name for i in here._breakable]
    columns = [[train.columns[j] for j in here.attributes[i].positions] for i in here._breakable]
    assert len(names) == draws.shape[1]
    ways: Any = _table(train, "realistic", options).at(case)._sources.ways
    rows = _table(train, "realistic", options).schema.natives.rows(np.arange(len(train)))
    is_allowed = [_is_allowed(law, each, ways, rows, case, columns) for each in draws]
    shares = {"any_rule": any_rule, **broken, "where_donors_allow": any_rule & is_allowed}
    shares["where_none_does"] = any_rule & ~np.array(is_allowed)
    return {name: float(which.mean()) for name, which in shares.items()}


def _is_allowed(
    law: str, drawn: np.ndarray, ways: np.ndarray, rows: Any, case: Any, columns: list[list[str]]
) -> bool:
    """Return whether a training row breaks what is drawn (d,) and keeps all rules in the attributes it gives."""
    changes = np.flatnonzero(drawn)
    broken = ways[changes] != 0 if law == "similar" else ways[changes] == drawn[changes, None]
    donors = rows[broken.any(axis=0) if law == "similar" else broken.all(axis=0)].copy()
    given = {name for i in changes for name in columns[i]}
    for name in donors.columns:
        if name not in given:
            donors[name] = case[name]
    return len(donors) > 0 and not np.any(list(broken_rules(donors).values()), axis=0).all()


_TABLES: dict[tuple[int, str, str], tuple[Any, Table]] = {}


def _table(train: Any, law: str, options: dict[str, Any]) -> Table:
    """Return the table of a frame, made once; the frame is kept, so that its identity is not used again."""
    key = id(train), law, str(options)
    if key not in _TABLES:
        _TABLES[key] = train, Table(train, neighbors=law, **options)
    return _TABLES[key][1]
