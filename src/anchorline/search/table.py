"""The model on the rows of its table: its answers, asked once, and findings about setups that mislead."""

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from anchorline.errors import listed
from anchorline.model.features import ColumnMatch, first_step, transformed_columns
from anchorline.model.outputs import Target, innermost, owner_of
from anchorline.model.predictor import Predictor, Questions, Rule, Scores
from anchorline.spaces.base import Finding, Space
from anchorline.spaces.rows import Schema

_MIDDLE = (0.05, 0.95)  # quantiles between which most outputs lie
ADVICE = frozenset({"constant-column", "dependent-columns"})  # common, and not a mistake: no warnings
_MIN_ROWS = 50  # with fewer rows, equal answers may be chance
_SURE = 1e-6  # a probability this close to 0 or 1 is saturated
_TARGET_NAMES = frozenset({"label", "labels", "outcome", "response", "target"})
_SHIFT, _RATIO = 2.0, 10.0  # a scaler was fitted on other values: means this many deviations apart, or spreads
_ADVICE = (
    "If you did not expect that, the table may differ from what the model was fitted on: other units, not scaled "
    "or not encoded, or columns in another order. Pass the table that the model was fitted on, or put the "
    "preparation and the model into one pipeline."
)


@dataclass(frozen=True, eq=False)
class TableAnswers:
    """The answers to the rows of the table, with the class that the model names where it does.

    ``n_answers`` were asked for, which no explanation counts.
    """

    scores: Scores
    n_answers: int
    _extents: dict[Any, tuple[float, float, float]] = field(default_factory=dict, repr=False)

    @classmethod
    def ask(cls, space: Space, target: Target) -> "TableAnswers | None":
        """Ask the model about the rows; None if the space has none."""
        questions, values, named, classes = Questions(target), list[np.ndarray](), list[np.ndarray](), None
        for inputs, n_rows in space.examples():
            scores = questions.ask(inputs, n_rows)
            values.append(scores.values)
            classes = scores.classes
            if scores.named is not None:
                named.append(scores.named)
        if not values:
            return None
        both = Scores(np.concatenate(values), np.concatenate(named) if named else None, classes)
        return cls(both, questions.n_answers)

    @cached_property
    def rule(self) -> Rule | None:
        """How the named class follows from scores on all rows: the highest, or one threshold; None if it does not.

        A threshold is halfway between the scores of the rows on its two sides.
        """
        values, named = self.scores.values, self.scores.named
        if named is None:
            return None
        if np.array_equal(values.argmax(axis=1), named):
            return Rule()
        if values.shape[1] != 2:
            return None
        ones, zeros = values[named == 1, 1], values[named == 0, 1]
        if not len(ones) or not len(zeros) or not ones.min() > zeros.max():
            return None
        return Rule(1, float((ones.min() + zeros.max()) / 2))

    def outputs(self, predictor: Predictor) -> np.ndarray:
        """Return the explained outputs of the rows, (n,)."""
        return predictor.read(self.scores).outputs

    def alike(self, predictor: Predictor) -> np.ndarray | None:
        """Return which rows the model decides like the instance, (n,); None for numbers."""
        return predictor.read(self.scores).stays

    def extent(self, predictor: Predictor) -> tuple[float, float, float]:
        """Return the lowest and highest output, and the distance of the 5% and 95% quantiles."""
        explained = predictor.column, predictor.label  # on nothing else of an instance do outputs depend
        if explained not in self._extents:
            outputs = self.outputs(predictor)
            low, high = np.quantile(outputs, _MIDDLE, method="inverted_cdf")
            self._extents[explained] = float(outputs.min()), float(outputs.max()), float(high - low)
        return self._extents[explained]


# Setups whose explanations mislead


def check_setup(model: Any, match: ColumnMatch, classes: Sequence[Any] | None, space: Space) -> list[Finding]:
    """Find what needs no answer of the model: its columns, its scaler, and the table itself."""
    found = list(_check_order(match))
    schema = space.schema
    if schema is not None:
        if match.positions is None:
            found += _check_targets(classes, schema, space.fixed)
        if schema.n_rows >= _MIN_ROWS:
            found += _check_scale(model, match, schema)
    return [*found, *space.check()]


def _check_order(match: ColumnMatch) -> Iterator[Finding]:
    if match.unknown:
        yield Finding(
            "unknown-columns",
            f"The model was not fitted on {listed(match.unknown)}, so these columns are held fixed and are never "
            f"facts. Leave them out of the table (on the command line, add {_targets(match.unknown)}).",
            match.unknown,
        )
    if match.is_reordered:
        yield Finding(
            "column-order",
            "The table has the columns of the model in another order. The model receives them in its own order, "
            "but if you pass the table to the model yourself, its answers may differ.",
        )


def _check_targets(classes: Sequence[Any] | None, schema: Schema, fixed: Sequence[str]) -> Iterator[Finding]:
    """Find columns that have the name of a target, or exactly the classes as values, if these are texts."""
    labels = {str(label) for label in classes or () if isinstance(label, str)}
    suspects = tuple(
        name
        for name, column in zip(schema.names, schema.columns, strict=True)
        if name not in fixed
        and (name.lower() in _TARGET_NAMES or (len(labels) > 1 and {*column.values[~column.missing]} == labels))
    )
    if suspects:
        it, is_not = ("it", "it is") if len(suspects) == 1 else ("them", "they are")
        yield Finding(
            "target",
            f"{listed(suspects)} may be what the model predicts, by name or by values. If so, leave {it} out of "
            f"the table (on the command line, add {_targets(suspects)}), because {is_not} not a reason.",
            suspects,
        )


def _check_scale(model: Any, match: ColumnMatch, schema: Schema) -> Iterator[Finding]:
    """Find columns whose values are far from those on which the model's own scaler was fitted."""
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
    if differing:
        shown = "; ".join(text for _, text in differing[:3])
        text = f"The scaler inside the model was fitted on other values: {shown} ({len(differing)} columns)."
        yield Finding("scale", f"{text} {_ADVICE}", tuple(name for name, _ in differing))


def _scaled_columns(model: Any, n_columns: int) -> Iterator[tuple[int, tuple[float, float, str]]]:
    """Yield the columns that a model's first step scales, with the center and spread that it was fitted on."""
    step = first_step(owner_of(model))
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


def check_answers(model: Any, answers: TableAnswers, *, are_numbers: bool = False) -> Iterator[Finding]:
    """Find answers to rows of the table that are all alike, or probabilities that are all 0 or 1."""
    values, named = answers.scores.values, answers.scores.named
    n_rows = len(values)
    if n_rows < _MIN_ROWS:
        return
    if named is None:
        if len({*values.tolist()}) == 1:
            text = f"The model's output is {values[0]} for all {n_rows:,} training rows that were asked about."
            yield Finding("constant", f"{text} {_ADVICE}")
        return
    if are_numbers:
        return
    if len(np.unique(named)) == 1:
        text = f"The model predicts the same class for all {n_rows:,} training rows that were asked about."
        yield Finding("one-class", f"{text} {_ADVICE}")
        return
    extreme = np.minimum(np.abs(values), np.abs(1 - values)) <= _SURE
    if extreme.all() and (_is_smooth(model) or not np.isin(values, (0, 1)).all()):
        text = f"On all {n_rows:,} training rows that were asked about, every probability is within 0.000001 of 0"
        yield Finding("saturated", f"{text} or 1. {_ADVICE}")


def _is_smooth(model: Any) -> bool:
    """Return whether a model is a linear model or a network, whose probabilities are never 0 and 1."""
    inner = innermost(owner_of(model))
    return hasattr(inner, "coef_") or hasattr(inner, "coefs_")


def _targets(names: Sequence[str]) -> str:
    """Return the options that leave up to eight columns out."""
    return " ".join([*(f"--target {shlex.quote(name)}" for name in names[:8]), *["..."] * (len(names) > 8)])
