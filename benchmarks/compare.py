"""Whether planted differences between two models are found and named, and nothing is found where there is none.

Generated models are sums of effects of five columns with one interaction, on 600 rows; each run makes a table and
a model of its own, and compares 80 of its rows. On real tables, the old model is boosting, and the new one is the
old one behind a function that plants the difference. A run finds a planted difference if the attribute, the
decision or the group in which it was planted is named, by limits that hold together at 95%.
"""

import time
import tracemalloc
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from anchorline import Explainer, Table, compare
from anchorline.compare.cohorts import Monitor, _Sums
from anchorline.compare.pairs import label_text
from anchorline.result.comparison import Comparison, Move
from benchmarks.models import fitted_model

Row = dict[str, Any]
Ask = Callable[[Any], np.ndarray]
RUNS, REAL_RUNS = 200, 7  # on generated tables, and on each real one
N_ROWS, N_EXPLAINED, N_REAL = 600, 80, 100
TABLES = (29, 42192, 179)
LOOKS, PER_LOOK, N_BASELINE = 1000, 2, 400
SHIFT = 0.5  # standard deviations of one column, which a monitor has to find
_CLASSES = ["no", "yes"]


class Scorer:
    """A model that answers probabilities of two classes, from columns with weights and one interaction."""

    def __init__(self, weights: np.ndarray, cut: float = 0.0, shift: float = 0.0) -> None:
        self.weights, self.cut, self.shift = weights, cut, shift

    def __call__(self, frame: Any) -> np.ndarray:
        """Return the probabilities of rows."""
        columns = [frame[name].to_numpy() for name in ("a", "b", "c", "d")]
        score = sum(w * column for w, column in zip(self.weights, columns, strict=False))
        score = score + 0.3 * columns[0] * columns[1] - self.cut
        score = score + self.shift * (frame["group"].to_numpy() == "x")
        yes = 1 / (1 + np.exp(-2 * score))
        return np.column_stack([1 - yes, yes])


def _again(model: Scorer) -> Callable[[Any], np.ndarray]:
    """Return the same function in another representation: another order of sums, and half-angles of tanh."""

    def ask(frame: Any) -> np.ndarray:
        score = np.where(frame["group"].to_numpy() == "x", model.shift, 0.0) - model.cut
        for weight, name in reversed(list(zip(model.weights, "abcd", strict=True))):
            score = score + frame[name].to_numpy() * weight
        score = score + 0.3 * frame["b"].to_numpy() * frame["a"].to_numpy()
        yes = (1 + np.tanh(score)) / 2
        return np.column_stack([1 - yes, yes])

    return ask


def _generated(seed: int) -> tuple[Any, np.ndarray, int]:
    """Return a table, weights, and which of the columns the difference is about."""
    import pandas as pd

    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.normal(size=(N_ROWS, 4)), columns=list("abcd"))
    frame["group"] = rng.choice(["x", "y", "z"], N_ROWS)
    weights = rng.choice([-1, 1], 4) * rng.uniform(0.5, 1.5, 4)
    return frame, weights, int(rng.integers(4))


def _named(found: Comparison, kind: str, name: str) -> bool:
    """Return whether a comparison names what was planted."""
    moves = {each.attribute: each.move for each in found.attributes}
    if kind == "attribute dropped":
        return moves[name] is Move.FELL
    if kind == "sign turned":
        return moves[name] is Move.TURNED
    if kind == "threshold moved":
        return found.decisions.low > 0 and any(each.is_more and each.value == name for each in found.parts)
    return any(each.is_more and each.value == name and each.column == "group" for each in found.parts)


def is_silent(found: Comparison) -> bool:
    """Return whether a comparison says that nothing differs."""
    shares = [found.decisions, *([] if found.reasons is None else [found.reasons])]
    return (
        not found.changed and all(share.value == 0 for share in shares) and not any(p.is_more for p in found.parts)
    )


def planted(seed: int, kind: str) -> bool:
    """Compare a generated model with one that differs; return whether that was found and named."""
    frame, weights, j = _generated(seed)
    old, other, name = Scorer(weights), weights.copy(), "abcd"[j]
    if kind == "nothing":
        return is_silent(_compared(old, _again(old), frame))
    if kind == "attribute dropped":
        other[j] = 0.0
        new = Scorer(other)
    elif kind == "sign turned":
        other[j] = -other[j]
        new = Scorer(other)
    elif kind == "threshold moved":
        new, name = Scorer(weights, cut=0.5), "yes"
    else:
        new, name = Scorer(weights, shift=1.0), "x"
    return _named(_compared(old, new, frame), kind, name)


def _compared(old: Any, new: Any, frame: Any) -> Comparison:
    found = compare(old, new, frame, n=N_EXPLAINED, classes=_CLASSES, groups=["group"])
    assert isinstance(found, Comparison)
    return found


KINDS = ("attribute dropped", "sign turned", "threshold moved", "subgroup changed", "nothing")


def on_generated(runs: int = RUNS) -> Iterator[Row]:
    """Yield, by kind of difference, how often it was found and named."""
    for kind in KINDS:
        start = time.process_time()
        n = sum(planted(seed, kind) for seed in range(runs))
        yield _row("generated", kind, runs, n, N_EXPLAINED, time.process_time() - start)


def _row(table: str, kind: str, runs: int, n: int, n_explained: int, seconds: float) -> Row:
    right = "silent" if kind == "nothing" else "found and named"
    return {
        "table": table,
        "planted": kind,
        "runs": runs,
        "rows_explained": n_explained,
        "right": n,
        "means": right,
        "share": n / runs,
        "processor_seconds_per_run": seconds / runs,
    }


def on_tables(data: Path) -> Iterator[Row]:
    """Yield the same for boosting on real tables, behind functions that plant the difference."""
    for dataset in TABLES:
        name, frame, model = fitted_model(data, dataset, "boosting")
        label = str(model.classes_[1])
        strongest = _strongest(model, frame)
        for kind in KINDS:
            start, n = time.process_time(), 0
            for seed in range(REAL_RUNS):
                new, names = _planted_in(model, frame, strongest, kind)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # about the tables, which are as they are
                    groups = [names[0]] if kind == "subgroup changed" else []
                    classes, old = list(model.classes_), model.predict_proba
                    found = compare(old, new, frame, n=N_REAL, seed=seed, groups=groups, classes=classes)
                assert isinstance(found, Comparison)
                n += _found(found, kind, names, label)
            yield _row(name, kind, REAL_RUNS, n, N_REAL, time.process_time() - start)


def _found(found: Comparison, kind: str, names: tuple[str, str], label: str) -> bool:
    moves = {each.attribute: each.move for each in found.attributes}
    if kind == "nothing":
        return is_silent(found)
    if kind in ("attribute dropped", "sign turned"):  # how it acts instead is not always established
        return moves[names[0]] is not Move.SAME
    if kind == "threshold moved":
        return found.decisions.low > 0 and any(each.is_more and each.value == label for each in found.parts)
    return any(each.is_more and each.value == names[1] for each in found.parts)


def _strongest(model: Any, frame: Any) -> str:
    """Return the column of numbers whose values change the scores most if they are exchanged."""
    rng, base = np.random.default_rng(0), model.predict_proba(frame)[:, 1]
    numbers = [name for name in frame if frame[name].dtype.kind in "if" and frame[name].nunique() > 10]

    def change(name: str) -> float:
        other = frame.copy()
        other[name] = rng.permutation(other[name].to_numpy())
        return float(np.square(model.predict_proba(other)[:, 1] - base).mean())

    return str(max(numbers, key=change))


def _planted_in(
    model: Any, frame: Any, name: str, kind: str
) -> tuple[Callable[[Any], np.ndarray], tuple[str, str]]:
    """Return a model with a planted difference, and the names of what it is about."""
    values = np.sort(frame[name].dropna().to_numpy())
    middle = float(values[len(values) // 2])
    ask = model.predict_proba
    if kind == "nothing":
        return (lambda rows: np.array(ask(rows.copy()).tolist())), (name, "")
    if kind == "attribute dropped":
        return (lambda rows: ask(rows.assign(**{name: middle}))), (name, "")
    if kind == "sign turned":

        def mirrored(rows: Any) -> np.ndarray:
            places = np.searchsorted(values, np.nan_to_num(rows[name].to_numpy(dtype=float), nan=middle))
            own = values[np.clip(len(values) - 1 - places, 0, len(values) - 1)]
            return np.asarray(ask(rows.assign(**{name: own.astype(frame[name].dtype)})))

        return mirrored, (name, "")
    if kind == "threshold moved":
        return (lambda rows: _shifted(ask(rows), 0.2)), (name, "")
    few = [each for each in frame if 2 <= frame[each].nunique() <= 8]
    texts = [each for each in few if frame[each].dtype == "category"] or few
    group = max(texts, key=lambda each: -abs(float((frame[each] == frame[each].mode()[0]).mean()) - 0.5))
    value = frame[group].mode()[0]

    def in_group(rows: Any) -> np.ndarray:
        scores = ask(rows)
        inside = (rows[group] == value).to_numpy()
        return np.asarray(np.where(inside[:, None], scores[:, ::-1], scores))

    return in_group, (str(group), label_text(value))


def _shifted(scores: np.ndarray, by: float) -> np.ndarray:
    """Return scores of which the second needs to be larger to be named."""
    yes = np.where(scores[:, 1] < 0.5 + by, 0.5 * scores[:, 1] / (0.5 + by), 0.5 + (scores[:, 1] - 0.5 - by))
    return np.column_stack([1 - yes, yes])


def costs(data: Path) -> Iterator[Row]:
    """Yield the time beside two runs of `explain_many`, and the memory for four times as many rows."""
    from anchorline.batch.local import explain_many  # noqa: F401  both are loaded before they are timed

    name, frame, model = fitted_model(data, 179, "boosting")
    _, _, other = fitted_model(data, 179, "forest")
    part = frame.iloc[:200]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ratios = []
        for _ in range(3):
            start = time.process_time()
            compare(model, other, Table(frame), part, n=200)
            ours = time.process_time() - start
            start = time.process_time()
            for each in (model, other):
                Explainer(each, Table(frame)).explain_many(part)
            ratios.append(ours / (time.process_time() - start))
        peaks = []
        for n in (50, 200):
            tracemalloc.start()
            compare(model, other, Table(frame), part, n=n)
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
    yield {"table": name, "what": "time, beside explain_many of both models", "ratio": float(np.median(ratios))}
    yield {"table": name, "what": "memory for 200 rows, beside 50", "ratio": peaks[1] / peaks[0]}


def monitoring(runs: int = RUNS) -> Iterator[Row]:
    """Yield how often a monitor raises a false alarm within 1,000 looks, and after how many rows it sees a shift.

    Effects of 4,000 rows are computed once; each run draws a baseline and its looks from them.
    """
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(8000, 3))
    model = Explainer(lambda z: z[:, 0] + z[:, 1] * z[:, 2] + np.exp(z[:, 1]), Table(rows[:4000]), output="score")
    shifted = rows[4000:] + np.array([SHIFT, 0, 0])
    figures = {name: _figures(model, part) for name, part in (("same", rows[4000:]), ("shifted", shifted))}
    for name, before in figures.items():
        alarms, delays = 0, []
        for run in range(runs):
            rng = np.random.default_rng(run)
            at = _alarm_after(figures["same"], before, rng)
            alarms += at is not None
            delays.append(np.inf if at is None else at)
        yield {
            "table": "generated",
            "what": f"monitor, {name} rows",
            "runs": runs,
            "looks": LOOKS,
            "alarms": alarms / runs,
            "median_rows": float(np.median(delays)) if alarms > runs / 2 else None,
            "fixed_size": _fixed_size(figures["same"], before) if name == "shifted" else None,
        }


def _figures(explainer: Explainer, rows: np.ndarray) -> np.ndarray:
    monitor = Monitor(explainer, rows[:30], n=30)
    from anchorline.compare.models import read_rows

    return monitor.figures(read_rows(explainer.space, rows), np.arange(len(rows)))


def _alarm_after(same: np.ndarray, rows: np.ndarray, rng: np.random.Generator) -> int | None:
    before, after = _Sums(), _Sums()
    before.add(same[rng.integers(len(same), size=N_BASELINE)])
    drawn = rows[rng.integers(len(rows), size=LOOKS * PER_LOOK)]
    failure = 0.05 / (2 * same.shape[1])
    for look in range(LOOKS):
        after.add(drawn[look * PER_LOOK : (look + 1) * PER_LOOK])
        if after.n >= 30:
            width = before.width(failure, N_BASELINE) + after.width(failure, 500)
            if (np.abs(after.mean - before.mean) > width).any():
                return after.n
    return None


def _fixed_size(same: np.ndarray, rows: np.ndarray) -> int:
    """Return how many rows a z-test with one look needs to find the shift in 95% of cases, Bonferroni as ours."""
    from scipy.stats import norm

    gap, variance = rows.mean(axis=0) - same.mean(axis=0), same.var(axis=0)
    z = norm.ppf(1 - 0.025 / same.shape[1]) + norm.ppf(0.95)
    needed = variance / np.maximum((gap / z) ** 2 - variance / N_BASELINE, 1e-12)
    return int(np.ceil(needed.min()))


def compare_section(data: Path) -> Iterator[Row]:
    """Yield all rows of the section."""
    yield from on_generated()
    yield from monitoring()
    yield from costs(data)
    yield from on_tables(data)
