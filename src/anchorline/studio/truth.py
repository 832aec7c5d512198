"""True outcomes of the cases, given by ``--target``, and how the model's answers compare with them."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from anchorline.errors import ParameterError
from anchorline.guarantees import Estimate, estimate_share
from anchorline.model.predictor import plain_label
from anchorline.render.characters import printable
from anchorline.studio.answers import AnswerTable

MAX_LABELS = 12  # of a confusion matrix
_N_BINS = 10
_N_STEPS = 100  # thresholds that the page offers, besides 0
_ROUNDING = 1e-9  # of a hundredth
_CONFIDENCE = 0.95


class Truth:
    """One outcome per case: the code of a text in ``labels`` (-1 if missing), and a number (NaN if it is none)."""

    def __init__(self, name: str, values: Sequence[Any]) -> None:
        plain = [plain_label(value) for value in (values.tolist() if hasattr(values, "tolist") else values)]
        codes: dict[str, int] = {}
        texts = [None if _is_missing(value) else printable(_text(value)) for value in plain]
        self.name = name
        self.codes = np.array([-1 if text is None else codes.setdefault(text, len(codes)) for text in texts])
        self.labels = list(codes)
        self.numbers = np.array([_number(value) for value in plain], dtype=float)

    def __len__(self) -> int:
        return len(self.codes)

    def labels_like(self, names: Sequence[str]) -> list[str]:
        """Return the labels as the model writes them: 1 becomes 1.0 if a class has that name, and none is 1."""
        longer = {name.removesuffix(".0"): name for name in names if name.endswith(".0")}
        known = {*names}
        return [
            label if label in known or not label.removeprefix("-").isdecimal() else longer.get(label, label)
            for label in self.labels
        ]

    def texts(self, positions: Sequence[int], names: Sequence[str]) -> list[str | None]:
        """Return the outcomes of some cases as texts; ``names`` are those of the model's answers."""
        labels = self.labels_like(names)
        return [None if code < 0 else labels[code] for code in self.codes[list(positions)].tolist()]


def checked_truth(name: str, values: Sequence[Any], n_rows: int) -> Truth:
    """Return the outcomes; raise `ParameterError` unless there is one per case."""
    truth = Truth(name, values)
    if len(truth) != n_rows:
        raise ParameterError(f"The target has {len(truth):,} values for {n_rows:,} cases; each case needs one.")
    return truth


def _is_missing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and np.isnan(value))


def _text(value: Any) -> str:
    """Return a label as text; 1.0, which a column with missing values holds instead of 1, is 1."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _number(value: Any) -> float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number else float("nan")


def outcomes(table: AnswerTable, rows: np.ndarray, column: int | None, truth: Truth | None) -> dict[str, Any]:
    """Return what the model decides in these cases, and how often it is right if the truth is known.

    ``column`` is the class whose scores are shown, if the answers have classes.
    """
    codes, levels = table.codes[rows], table.levels
    content: dict[str, Any] = {"n": len(rows), "target": None if truth is None else printable(truth.name)}
    if not levels:
        return content | {"numbers": _numbers(table.values[rows], None if truth is None else truth.numbers[rows])}
    counts = np.bincount(codes[codes >= 0], minlength=len(levels))
    content["decisions"] = [
        {"label": levels[i], "count": int(counts[i])} for i in np.argsort(-counts, kind="stable")
    ]
    scores = None if column is None else table.scores(column)
    is_true = None
    if truth is not None:
        labels = truth.labels_like(table.names)
        content |= _confusion(codes, levels, truth.codes[rows], labels)
    if scores is not None:
        name = class_text(table, column)
        if truth is not None and name in labels:
            is_true = np.where(truth.codes[rows] < 0, -1, truth.codes[rows] == labels.index(name))
            content["calibration"] = _calibration(scores[rows], is_true)
        content["scores"] = {"label": name} | _histogram(scores[rows], is_true)
    return content


def class_text(table: AnswerTable, column: int | None) -> str:
    """Return the name of a class as the page shows it."""
    return printable(table.class_name(column or 0))


def _confusion(codes: np.ndarray, levels: list[str], actual: np.ndarray, labels: list[str]) -> dict[str, Any]:
    """Return how often each decision meets each outcome, and how often they agree.

    ``codes`` are the decisions as codes of ``levels``, ``actual`` the outcomes as codes of ``labels``.
    """
    names = sorted({*levels, *labels})
    if not {*levels} & {*labels}:
        return {"mismatch": [labels[:5], levels[:5]]}
    index = {name: i for i, name in enumerate(names)}
    known = (actual >= 0) & (codes >= 0)
    actual = np.array([index[label] for label in labels])[actual[known]]
    decided = np.array([index[level] for level in levels])[codes[known]]
    content: dict[str, Any] = {"n_true": int(known.sum())}
    if known.any():
        content["right"] = share(int((actual == decided).sum()), int(known.sum()), _CONFIDENCE)
    if len(names) <= MAX_LABELS:
        counts = np.zeros((len(names), len(names)), dtype=int)
        np.add.at(counts, (actual, decided), 1)
        content["confusion"] = {"labels": names, "counts": counts.tolist()}
    return content


def _calibration(scores: np.ndarray, is_true: np.ndarray) -> list[dict[str, Any]]:
    """Return the share of true outcomes per tenth of the score; the limits of all tenths hold together."""
    known = (is_true >= 0) & np.isfinite(scores)
    bins = np.clip((scores * _N_BINS).astype(int), 0, _N_BINS - 1)
    content = []
    for i in range(_N_BINS):
        chosen = known & (bins == i)
        if chosen.any():
            found = share(int(is_true[chosen].sum()), int(chosen.sum()), 1 - (1 - _CONFIDENCE) / _N_BINS)
            content.append({"score": float(scores[chosen].mean()), "n": int(chosen.sum()), "found": found})
    return content


def _histogram(scores: np.ndarray, is_true: np.ndarray | None) -> dict[str, Any]:
    """Return how many cases have each hundredth of the score: all, and those whose outcome is and is not true.

    There are 101, from 0 to 1. A score counts for the last one that it reaches: 0.29 for 29, although
    0.29 * 100 is slightly less.
    """
    finite = np.isfinite(scores)
    bins = np.clip(np.floor(np.where(finite, scores, 0) * _N_STEPS + _ROUNDING), 0, _N_STEPS).astype(int)
    chosen = {"all": finite}
    if is_true is not None:
        chosen |= {"positive": finite & (is_true == 1), "negative": finite & (is_true == 0)}
    return {name: np.bincount(bins[rows], minlength=_N_STEPS + 1).tolist() for name, rows in chosen.items()}


def _numbers(values: np.ndarray, actual: np.ndarray | None) -> dict[str, Any]:
    """Return the distribution of numbers, and how far they are from the true ones."""
    content: dict[str, Any] = {"mean": _plain(np.mean(values)) if len(values) else None}
    known = np.isfinite(values) & (np.isfinite(actual) if actual is not None else False)
    if actual is None or not known.any():
        return content
    errors = values[known] - actual[known]
    order = np.argsort(values[known], kind="stable")
    tenths = [part for part in np.array_split(order, _N_BINS) if len(part)]
    content["mean_absolute_error"] = _plain(np.abs(errors).mean())
    content["root_mean_square_error"] = _plain(np.sqrt(np.mean(errors**2)))
    content["tenths"] = [
        {
            "predicted": _plain(values[known][part].mean()),
            "actual": _plain(actual[known][part].mean()),
            "n": len(part),
        }
        for part in tenths
    ]
    return content


def share(n_events: int, n_rows: int, confidence: float) -> dict[str, float]:
    """Return a share with its limits."""
    found: Estimate = estimate_share(n_events, n_rows, confidence)
    return {"value": found.value, "low": found.low, "high": found.high}


def _plain(number: Any) -> float | None:
    return float(number) if np.isfinite(number) else None
