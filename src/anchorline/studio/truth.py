"""True outcomes of the cases, given by ``--target``, and how the model's answers compare with them."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from anchorline.errors import ParameterError
from anchorline.guarantees.intervals import binomial_interval
from anchorline.model.outputs import plain_label
from anchorline.render.characters import printable
from anchorline.studio.answers import AnswerTable

MAX_LABELS = 12  # of a confusion matrix
_CONFIDENCE = 0.95


class Truth:
    """One outcome per case: the code of a text in ``labels`` (-1 if missing), and a number (NaN if it is none)."""

    def __init__(self, name: str, values: Sequence[Any], n_rows: int) -> None:
        plain = [plain_label(value) for value in (values.tolist() if hasattr(values, "tolist") else values)]
        if len(plain) != n_rows:
            raise ParameterError(
                f"The target has {len(plain):,} values for {n_rows:,} cases; each case needs one."
            )
        codes: dict[str, int] = {}
        texts = [None if _is_missing(value) else printable(_text(value)) for value in plain]
        self.name = name
        self.codes = np.array([-1 if text is None else codes.setdefault(text, len(codes)) for text in texts])
        self.labels = list(codes)
        self.numbers = np.array([_number(value) for value in plain], dtype=float)

    def labels_like(self, names: Sequence[str]) -> list[str]:
        """Return the labels as the model writes them: 1 becomes 1.0 if a class has that name, and none is 1."""
        longer = {name.removesuffix(".0"): name for name in names if name.endswith(".0")}
        return [
            label if label in names or not label.removeprefix("-").isdecimal() else longer.get(label, label)
            for label in self.labels
        ]

    def texts(self, positions: Sequence[int], names: Sequence[str]) -> list[str | None]:
        """Return the outcomes of some cases as texts; ``names`` are those of the model's answers."""
        labels = self.labels_like(names)
        return [None if code < 0 else labels[code] for code in self.codes[list(positions)].tolist()]


def _is_missing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and np.isnan(value))


def _text(value: Any) -> str:
    """Return a label as text; 1.0, which a column with missing values holds instead of 1, is 1."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _number(value: Any) -> float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number else float("nan")


def outcomes(table: AnswerTable, rows: np.ndarray, truth: Truth | None) -> dict[str, Any]:
    """Return what the model decides in these cases, and how often it is right if the truth is known."""
    codes, levels = table.codes[rows], table.levels
    content: dict[str, Any] = {"n": len(rows), "target": None if truth is None else printable(truth.name)}
    if not levels:
        return content | {"numbers": _numbers(table.values[rows], None if truth is None else truth.numbers[rows])}
    counts = np.bincount(codes[codes >= 0], minlength=len(levels))
    content["decisions"] = [
        {"label": levels[i], "count": int(counts[i])} for i in np.argsort(-counts, kind="stable")
    ]
    if truth is None:
        return content
    return content | _confusion(codes, levels, truth.codes[rows], truth.labels_like(table.names))


def _confusion(codes: np.ndarray, levels: list[str], actual: np.ndarray, labels: list[str]) -> dict[str, Any]:
    """Return how often each decision meets each outcome, and how often they agree.

    ``codes`` are the decisions as codes of ``levels``, ``actual`` the outcomes as codes of ``labels``.
    """
    names = sorted({*levels, *labels})
    if not {*levels} & {*labels}:
        return {"mismatch": [labels[:5], levels[:5]]}
    known = (actual >= 0) & (codes >= 0)
    places = [np.array([names.index(label) for label in each]) for each in (labels, levels)]
    found, decided = places[0][actual[known]], places[1][codes[known]]
    n, right = int(known.sum()), int((found == decided).sum())
    content: dict[str, Any] = {"n_true": n}
    if n:
        limits = binomial_interval(right, n, _CONFIDENCE)
        content["right"] = {"value": right / n, "low": limits.low, "high": limits.high}
    if len(names) <= MAX_LABELS:
        counts = np.zeros((len(names), len(names)), dtype=int)
        np.add.at(counts, (found, decided), 1)
        content["confusion"] = {"labels": names, "counts": counts.tolist()}
    return content


def _numbers(values: np.ndarray, actual: np.ndarray | None) -> dict[str, Any]:
    """Return the mean of numbers, and how far they are from the true ones."""
    content = {"mean": float(values.mean()) if len(values) else None}
    known = np.isfinite(values) & (np.isfinite(actual) if actual is not None else False)
    if actual is not None and known.any():
        content["mean_absolute_error"] = float(np.abs(values[known] - actual[known]).mean())
    return content
