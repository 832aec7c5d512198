"""Checks of a model against its table: findings about a setup whose explanations would mislead.

The check functions return findings. `Setup` holds the findings of one explainer and warns about each of them once.
Only `check_answers` queries the model, about at most 512 training rows.
"""

import warnings
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from anchorline.errors import AnchorlineError, SetupWarning
from anchorline.model.decisions import innermost
from anchorline.model.features import ColumnMatch, first_step, transformed_columns
from anchorline.model.outputs import classes_of
from anchorline.model.predictor import Range, ask, split_answer
from anchorline.model.target import Target
from anchorline.search.case import ModelTrees
from anchorline.spaces.base import Finding

MAX_ROWS = 512  # training rows that a check queries
ADVICE = frozenset({"constant-column", "dependent-columns"})  # common, and not a mistake: no warnings
_MIN_ROWS = 50  # with fewer rows, equal answers may be chance
_SURE = 1e-6  # a probability this close to 0 or 1 is saturated
_TARGET_NAMES = frozenset({"label", "labels", "outcome", "response", "target"})
_SHIFT, _RATIO = 2.0, 10.0  # a scaler was fitted on other values: means this many deviations apart, or spreads
_WIDE = 2.0  # a range this many times as wide as the outputs is too wide
_ADVICE = (
    "If you did not expect that, the table may differ from what the model was fitted on: other units, not scaled "
    "or not encoded, or columns in another order. Pass the table that the model was fitted on, or put the "
    "preparation and the model into one pipeline."
)


class Setup:
    """The model and the table of one explainer: findings about them, computed once and reported once.

    ``trees`` are those of the model, if it has any, which are read once, too; ``margin_trees`` are those of its
    margins.
    """

    def __init__(self, model: Any, match: ColumnMatch, space: Any) -> None:
        self._model, self._match, self._space = model, match, space
        self._of_answers: list[Finding] | None = None
        self._reported: set[Finding] = set()
        self.trees = ModelTrees(model, match, space)
        self.margin_trees = ModelTrees(model, match, space)

    @cached_property
    def of_table(self) -> list[Finding]:
        """The findings that need no query."""
        columns = check_columns(self._match, classes_of(self._model), self._space)
        own = self._space.check() if hasattr(self._space, "check") else ()
        return [*columns, *check_scale(self._model, self._match, self._space), *own]

    def of_answers(self, target: Target, given: Range | None, learned: Range | None) -> list[Finding]:
        """Return the findings about the model's answers, which take at most 512 queries, once.

        ``given`` is the range of the output as the user states it, ``learned`` the range on the training table;
        if it is known, nothing is queried.
        """
        if learned is not None:
            self._of_answers = _check_numbers(np.array(learned), given) if self._has_many_rows else []
        elif self._of_answers is None:
            self._of_answers = check_answers(self._space, target, given, is_smooth=_is_smooth(self._model))
        return self._of_answers

    @property
    def known(self) -> list[Finding]:
        """The findings so far, without a query, advice last."""
        return sorted(self.of_table + (self._of_answers or []), key=lambda finding: finding.code in ADVICE)

    @property
    def _has_many_rows(self) -> bool:
        schema = getattr(self._space, "schema", None)
        return schema is not None and schema.n_rows >= _MIN_ROWS

    def report(self, findings: Iterable[Finding], stacklevel: int = 1) -> None:
        """Warn about findings that were not reported before; some are advice, which `Explainer.check` returns."""
        for finding in findings:
            if finding not in self._reported and finding.code not in ADVICE:
                self._reported.add(finding)
                warning = SetupWarning(finding.text, finding.code, finding.columns)
                warnings.warn(warning, stacklevel=stacklevel + 1)


def check_columns(match: ColumnMatch, classes: Sequence[Any] | None, space: Any) -> list[Finding]:
    """Find columns that are not the model's, in another order than the model's, or like a target."""
    findings = []
    if match.unknown:
        options = " ".join(f"--target {name}" for name in match.unknown[:3])
        findings.append(
            Finding(
                "unknown-columns",
                f"The model was not fitted on {_listed(match.unknown)}, so these columns are held fixed and are "
                f"never reasons. Leave them out of the table (on the command line: {options}).",
                match.unknown,
            )
        )
    if match.is_reordered:
        findings.append(
            Finding(
                "column-order",
                "The table has the columns of the model in another order. The model receives them in its own "
                "order, but if you pass the table to the model yourself, its answers may differ.",
            )
        )
    suspects = () if match.positions is not None else tuple(_like_a_target(classes, space))
    if suspects:
        findings.append(
            Finding(
                "target",
                f"{_listed(suspects)} may be what the model predicts, by name or by values. If so, leave "
                f"{'it' if len(suspects) == 1 else 'them'} out of the table (on the command line: --target "
                f"{suspects[0]}), because {'it is' if len(suspects) == 1 else 'they are'} not a reason.",
                suspects,
            )
        )
    return findings


def _like_a_target(classes: Sequence[Any] | None, space: Any) -> Iterator[str]:
    """Yield the columns that have the name of a target, or exactly the classes as values, if these are texts."""
    labels = {str(label) for label in classes or () if isinstance(label, str)}
    schema = getattr(space, "schema", None)
    for name, column in zip(schema.names, schema.columns, strict=True) if schema is not None else ():
        if name in space.fixed:
            continue
        if name.lower() in _TARGET_NAMES or (len(labels) > 1 and {*column.values[~column.missing]} == labels):
            yield name


def check_scale(model: Any, match: ColumnMatch, space: Any) -> list[Finding]:
    """Find columns whose values are far from those on which the model's own scaler was fitted."""
    schema = getattr(space, "schema", None)
    if schema is None or schema.n_rows < _MIN_ROWS:
        return []
    positions = range(len(schema.names)) if match.positions is None else match.positions
    differing = []
    for j, (center, spread, kind) in _scaled_columns(model, len(positions)):
        column = schema.columns[positions[j]]
        if column.kind not in ("numbers", "booleans") or column.missing.all():
            continue
        own, own_spread = _location(column.values[~column.missing].astype(np.float64), kind)
        is_shifted = abs(own - center) > _SHIFT * spread
        is_stretched = own_spread > 0 and spread > 0 and not 1 / _RATIO <= own_spread / spread <= _RATIO
        if is_shifted or is_stretched:
            name = schema.names[positions[j]]
            differing.append((name, f"{name!r} is around {own:.3g} in the table and {center:.3g} in the scaler"))
    if not differing:
        return []
    shown = "; ".join(text for _, text in differing[:3])
    text = f"The scaler inside the model was fitted on other values: {shown} ({len(differing)} columns). {_ADVICE}"
    return [Finding("scale", text, tuple(name for name, _ in differing))]


def _scaled_columns(model: Any, n_columns: int) -> Iterator[tuple[int, tuple[float, float, str]]]:
    """Yield the columns that a model's first step scales, with the center and spread that it was fitted on."""
    owner = getattr(model, "__self__", None)
    step = first_step(model if owner is None else owner)
    if getattr(step, "n_features_in_", None) != n_columns:
        return
    parts: Any = [(step, list(range(n_columns)))]
    if type(step).__name__ == "ColumnTransformer":
        parts = [(first_step(part), columns) for part, columns in transformed_columns(step)]
    for part, columns in parts:
        centers, spreads, kind = _fitted_location(part)
        if columns is not None and len(columns) == len(centers) == len(spreads):
            numbers = zip(centers.tolist(), spreads.tolist(), strict=True)
            yield from ((j, (*pair, kind)) for j, pair in zip(columns, numbers, strict=True))


def _fitted_location(scaler: Any) -> tuple[np.ndarray, np.ndarray, str]:
    """Return the centers and spreads of a fitted scaler of scikit-learn, and how it measures them."""
    match type(scaler).__name__:
        case "StandardScaler":
            parts = (scaler.mean_, scaler.scale_)
        case "RobustScaler":
            parts = (scaler.center_, scaler.scale_)
        case "MinMaxScaler":
            parts = ((scaler.data_min_ + scaler.data_max_) / 2, (scaler.data_max_ - scaler.data_min_) / 2)
        case _:
            parts = (None, None)
    if parts[0] is None or parts[1] is None:  # fitted without one of the two
        return np.empty(0), np.empty(0), ""
    return parts[0], parts[1], type(scaler).__name__


def _location(values: np.ndarray, kind: str) -> tuple[float, float]:
    """Return center and spread of values, measured as a kind of scaler measures them."""
    if kind == "RobustScaler":
        low, center, high = np.quantile(values, [0.25, 0.5, 0.75])
        return float(center), float(high - low)
    if kind == "MinMaxScaler":
        return float(values.max() + values.min()) / 2, float(values.max() - values.min()) / 2
    mean, deviation = float(values.mean()), float(values.std())
    return mean if abs(mean) > 1e-9 * deviation else 0.0, deviation


def check_answers(
    space: Any, target: Target, output_range: Range | None, *, is_smooth: bool = False
) -> list[Finding]:
    """Query the model about at most 512 training rows and find answers that are all alike, or a range too wide.

    ``is_smooth`` says that the model does not give probabilities of exactly 0 and 1 by its nature, as trees do.
    An error of the model is not a finding: the explanation itself reports it.
    """
    if not hasattr(space, "examples"):
        return []
    try:
        inputs = next(iter(_examples(space)))
        n_rows = len(inputs)
        answers = ask(target.ask, inputs, n_rows, target.task or ("number" if output_range else None))
    except (AnchorlineError, StopIteration):
        return []
    if n_rows < _MIN_ROWS:
        return []
    scores, chosen = split_answer(target, answers)
    if chosen is not None and target.task != "number":
        return _check_classes(target, scores, chosen, is_smooth)
    if target.task == "label" or scores.dtype.kind not in "fiub":
        return _one_label(scores.tolist())
    numbers = scores if scores.ndim == 1 else scores[:, target.column or 0]
    return _check_numbers(numbers.astype(np.float64), output_range)


def _examples(space: Any) -> Iterator[Any]:
    """Return training rows as model inputs, at most 512 where the space can be asked for a number of rows."""
    try:
        rows: Iterator[Any] = space.examples(MAX_ROWS)
    except TypeError:  # a space whose `examples` takes no number
        rows = space.examples()
    return rows


def _is_smooth(model: Any) -> bool:
    """Return whether a model is a linear model or a network of scikit-learn."""
    owner = getattr(model, "__self__", None)
    inner = innermost(model if owner is None else owner)
    return hasattr(inner, "coef_") or hasattr(inner, "coefs_")


def _check_classes(target: Target, scores: np.ndarray, chosen: np.ndarray, is_smooth: bool) -> list[Finding]:
    names = target.classes or tuple(range(scores.shape[1]))
    findings = _one_label([names[column] for column in chosen])
    extreme = np.minimum(np.abs(scores), np.abs(1 - scores)) <= _SURE
    if not findings and extreme.all() and (is_smooth or not np.isin(scores, (0, 1)).all()):
        text = f"On all {len(scores)} training rows that were queried, every probability is within 0.000001 of 0"
        findings.append(Finding("saturated", f"{text} or 1. {_ADVICE}"))
    return findings


def _one_label(labels: list[Any]) -> list[Finding]:
    if len({*map(str, labels)}) > 1:
        return []
    text = f"The model predicts {labels[0]!r} for all {len(labels)} training rows that were queried."
    return [Finding("one-class", f"{text} {_ADVICE}")]


def _check_numbers(numbers: np.ndarray, output_range: Range | None) -> list[Finding]:
    low, high = float(numbers.min()), float(numbers.max())
    if low == high:
        text = f"The model's output is {low:g} for all training rows that were queried."
        return [Finding("constant", f"{text} {_ADVICE}")]
    if output_range is None or output_range[1] - output_range[0] <= _WIDE * (high - low):
        return []
    return [
        Finding(
            "wide-range",
            f"output_range is ({output_range[0]:g}, {output_range[1]:g}), but the outputs for the "
            f"training table lie between {low:g} and {high:g}. Errors are measured relative to the range, so that "
            "a range that is too wide makes every explanation look good. Leave output_range out, or pass the "
            "lowest and highest output.",
        )
    ]


def _listed(names: Sequence[str]) -> str:
    """Return up to eight names for a sentence, and the number of all if there are more."""
    shown = ", ".join(map(repr, names[:8]))
    return f"{shown}, ... ({len(names)} columns)" if len(names) > 8 else shown
