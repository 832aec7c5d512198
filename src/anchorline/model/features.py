"""The columns that a model was fitted on, found in a table by their names, and the columns that it ignores."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from anchorline.model.outputs import Asking, owner_of

NOT_FITTED = "the model was not fitted on it"
DROPPED = "the model drops it"
_NAMES_IN = {"catboost": "feature_names_", "lightgbm": "feature_name", "xgboost": "feature_names"}  # of boosters


@dataclass(frozen=True, slots=True)
class ColumnMatch:
    """How the columns of a table correspond to those of a model.

    ``positions`` are the positions of the model's columns in the table, in the model's order; None if the model
    lists no columns, or not those of the table. ``ignored`` maps the columns that cannot change the model's
    answers to the reasons.
    """

    names: tuple[str, ...]
    positions: tuple[int, ...] | None = None
    ignored: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_reordered(self) -> bool:
        """Whether the table has the model's columns in another order."""
        return self.positions is not None and list(self.positions) != sorted(self.positions)

    @property
    def unknown(self) -> tuple[str, ...]:
        """The columns of the table that the model was not fitted on."""
        return tuple(name for name, reason in self.ignored.items() if reason == NOT_FITTED)

    def selecting(self, ask: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """Return what to call with rows of the table, so that the model gets its own columns in its own order."""
        same = self.positions is None or self.positions == tuple(range(len(self.names)))
        return ask if same else OfColumns(ask, self.positions or ())


@dataclass(frozen=True, slots=True)
class OfColumns(Asking):
    """A model that takes some columns of a table, callable on the whole table."""

    positions: tuple[int, ...]

    def __call__(self, inputs: Any) -> Any:
        """Return the model's answer to its own columns of the table."""
        if isinstance(inputs, np.ndarray):
            return self.ask(np.ascontiguousarray(inputs[:, self.positions]))
        import narwhals as nw  # noqa: PLC0415  heavy

        return self.ask(nw.from_native(inputs, eager_only=True)[:, list(self.positions)].to_native())


def match_columns(model: Any, names: Sequence[str]) -> ColumnMatch:
    """Find the columns of a model in a table with these column names; nothing is queried."""
    estimator, table = owner_of(model), tuple(names)
    fitted = _fitted_names(estimator)
    observed = {getattr(estimator, "duration_col", None), getattr(estimator, "event_col", None)} - {None}
    if observed:  # a survival model of lifelines does not receive its own target
        fitted = [name for name in table if name not in observed]
    positions = None if fitted is None else _positions(fitted, table)
    own = range(len(table)) if positions is None else positions
    is_clear = fitted is None or positions is not None
    dropped = {table[own[j]] for j in _dropped(estimator, len(own))} if is_clear else set()
    reasons = {name: NOT_FITTED for j, name in enumerate(table) if positions is not None and j not in positions}
    return ColumnMatch(table, positions, reasons | {name: DROPPED for name in table if name in dropped})


def _fitted_names(estimator: Any) -> list[str] | None:
    """Return the names of the columns that a model was fitted on, in order, or None if it has none."""
    library = type(estimator).__module__.partition(".")[0]
    names = getattr(estimator, _NAMES_IN.get(library, ""), None)
    names = getattr(estimator, "feature_names_in_", None) if names is None else names
    names = names() if callable(names) else names
    if not isinstance(names, list | tuple | np.ndarray) or not len(names):
        return None
    return [str(name) for name in names]


def _positions(fitted: Sequence[str], table: Sequence[str]) -> tuple[int, ...] | None:
    """Return where the table has the columns that a model was fitted on; None unless it has all of them.

    LightGBM and the exporters of ONNX files replace some characters of a name by underscores.
    """
    exact = {name: j for j, name in enumerate(table)}
    if not all(name in exact for name in fitted):
        exact = {_identifier(name): j for j, name in enumerate(table)}
        fitted = [_identifier(name) for name in fitted]
        if len(exact) < len(table) or not all(name in exact for name in fitted):
            return None
    positions = tuple(exact[name] for name in fitted)
    return positions if len(set(positions)) == len(positions) else None


def _identifier(name: str) -> str:
    return re.sub(r"\W", "_", name)


def _dropped(estimator: Any, n_columns: int) -> set[int]:
    """Return the numbers of the columns that the model's ColumnTransformer drops, among those it was fitted on."""
    step = first_step(estimator)
    if type(step).__name__ != "ColumnTransformer" or getattr(step, "n_features_in_", -1) != n_columns:
        return set()
    used: set[int] = set()
    for _, columns in transformed_columns(step):
        if columns is None:
            return set()  # not understood, so nothing is taken for dropped
        used |= {*columns}
    return set(range(n_columns)) - used


def first_step(estimator: Any) -> Any:
    """Return the step of a model that receives the table: of a pipeline, a search, or a threshold classifier."""
    if not type(estimator).__module__.startswith("sklearn."):
        return estimator
    inner = getattr(estimator, "best_estimator_", getattr(estimator, "estimator_", None))
    if type(estimator).__name__ == "Pipeline":
        inner = estimator.steps[0][1]
    return estimator if inner is None or inner is estimator else first_step(inner)


def transformed_columns(transformer: Any) -> Iterator[tuple[Any, list[int] | None]]:
    """Yield the parts of a ColumnTransformer that keep columns, with the columns' numbers (None: unknown)."""
    numbers = getattr(transformer, "_transformer_to_input_indices", {})  # by which it selects the columns itself
    for name, part, _ in transformer.transformers_:
        if not isinstance(part, str) or part != "drop":
            yield part, [int(number) for number in numbers[name]] if name in numbers else None
