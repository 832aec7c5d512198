"""The paper's Boolean encoding of a table, as a scikit-learn transformer.

`anchorline.spaces.columns` reads the columns; then each is encoded (`_Levels`, `_Bins`) or dropped.
"""

import numbers
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from anchorline.errors import InstanceError, ParameterError
from anchorline.spaces.columns import (
    CATEGORY,
    Column,
    level_of,
    listed,
    read_column,
    read_columns,
    read_table,
    readable_edges,
    text_of,
    zones_of,
)


class Binarizer(TransformerMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    r"""Encode every attribute of a table as indicators in {-1, +1}.

    .. math:: z_j = +1 \text{ if statement } j \text{ is true of the row, else } -1

    With K = ``n_bins``, the encoding follows the paper's experiments:

    - an attribute with at most K distinct values, of any type, gets one indicator per value;
    - a category with more than K levels gets one indicator per level for the K - 1 most frequent levels (ties are
      broken by the order of their texts), and one for all other levels;
    - a number or date with more than K values gets K left-closed bins :math:`[e_i, e_{i+1})`, the first and
      the last unbounded, where :math:`e_i` is the i/K quantile of the column by
      ``numpy.quantile(method="linear")``;
    - constants, columns with missing values, and numbers whose K + 1 quantiles (including minimum and maximum)
      are not all distinct are dropped.

    So every training row has exactly one +1 per attribute. In new rows, a level that did not occur in fit sets the
    indicator for all other levels if the attribute has one, and none otherwise.

    Edges are rounded for readability, but only so far that they still split the training column as the quantile
    does. If all training values are whole, edges are rounded up to whole numbers: ``age < 37``, not
    ``age < 36.75``. The encoding uses the rounded edges, so that it agrees with the statements. Cost O(n log n)
    per column.

    Parameters
    ----------
    n_bins
        K, at least 2.
    feature_names
        Names of the columns of a plain array. Without names, the columns are called x0, x1, ...

    Attributes
    ----------
    statements_
        For every output column, the statement for +1 and the statement for -1.
    attributes_
        For every output column, the attribute that it encodes.
    dropped_
        The attributes without indicators, each with the reason.
    n_features_in_, feature_names_in_
        As in scikit-learn. The names exist only if the table had names, or ``feature_names`` was given.

    Examples
    --------
    >>> import numpy as np
    >>> table = np.array([[25, 0], [38, 1], [47, 0], [52, 1], [61, 0]])
    >>> encoder = Binarizer(feature_names=["age", "member"]).fit(table)
    >>> encoder.statements_[1]
    ('30 <= age < 40', 'age < 30 or age >= 40')
    >>> encoder.transform([[38, 1]])
    array([[-1.,  1., -1., -1., -1.,  1.]])
    """

    statements_: list[tuple[str, str]]
    n_features_in_: int
    _names: list[str]
    _encodings: "dict[int, _Levels | _Bins]"  # by position in the table that was fitted

    def __init__(self, n_bins: int = 4, feature_names: Sequence[str] | None = None) -> None:
        self.n_bins = n_bins
        self.feature_names = feature_names

    def fit(self, X: Any, y: object = None) -> Self:
        """Choose the indicators for every column of ``X``; ``y`` is ignored."""
        if isinstance(self.n_bins, bool) or not isinstance(self.n_bins, numbers.Integral) or self.n_bins < 2:
            raise ParameterError(f"n_bins is {self.n_bins!r}; it must be an integer of at least 2. Type n_bins=4.")
        table, given = read_table(X, ParameterError)
        names = self._check_names(table.shape, given)
        pairs = zip(read_columns(table, names, ParameterError), zones_of(table), strict=True)
        chosen = [_choose(column, int(self.n_bins), zone) for column, zone in pairs]
        dropped = {name: reason for name, reason in zip(names, chosen, strict=True) if isinstance(reason, str)}
        if len(dropped) == len(names):
            reasons = "; ".join(f"{name!r} {reason}" for name, reason in dropped.items())
            raise ParameterError(f"No column can be encoded: {reasons}. Try a smaller n_bins.")
        self._names, self.dropped_, self.n_features_in_ = names, dropped, len(names)
        self._encodings = {i: each for i, each in enumerate(chosen) if not isinstance(each, str)}
        self.statements_ = self._statements(names)
        self.attributes_ = [names[i] for i, each in self._encodings.items() for _ in range(each.width)]
        self.__dict__.pop("feature_names_in_", None)  # left by an earlier fit on a table that had names
        if given is not None or self.feature_names is not None:
            self.feature_names_in_ = np.array(names, dtype=object)
        return self

    def transform(self, X: Any) -> NDArray[np.float64]:
        """Return encoded rows, float64 in {-1, +1}, (n_rows, n_indicators); columns of frames match by name."""
        check_is_fitted(self)
        table, names = read_table(X, InstanceError)
        where = self._positions(table.shape[1], names)
        encoded = np.full((table.shape[0], len(self.statements_)), -1.0)
        start = 0
        for position, encoding in self._encodings.items():
            name = self._names[position]
            column = read_column(table, where[position], name, InstanceError).as_kind(encoding.kind, name)
            group = encoded[:, start : start + encoding.width]  # a view of `encoded`
            group[encoding.indicators(column.values)] = 1.0
            start += encoding.width
        return encoded

    def get_feature_names_out(self, input_features: Iterable[str] | None = None) -> NDArray[np.object_]:
        """Return the statement for +1 of every output column."""
        check_is_fitted(self)
        names = self._names
        if input_features is not None:
            names = [str(name) for name in input_features]
            fixed = hasattr(self, "feature_names_in_")
            if len(names) != self.n_features_in_ or (fixed and names != self._names):
                raise ParameterError(
                    f"input_features is {listed(names)}; it must be the names in fit: {listed(self._names)}."
                )
        return np.array([true for true, _ in self._statements(names)], dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = tags.input_tags.categorical = True
        tags.input_tags.allow_nan = True  # in fit, which drops columns with missing values and reports them
        return tags

    def _statements(self, names: list[str]) -> list[tuple[str, str]]:
        return [pair for i, encoding in self._encodings.items() for pair in encoding.statements(names[i])]

    def _check_names(self, shape: tuple[int, int], names: list[str] | None) -> list[str]:
        if 0 in shape:
            empty = f"0 {'sample' if shape[0] == 0 else 'feature'}(s) (shape={shape})"
            raise ParameterError(f"The table has {empty} while a minimum of 1 is required.")
        given = None if self.feature_names is None else [str(name) for name in self.feature_names]
        if given is not None and (len(given) != shape[1] or (names or given) != given):
            raise ParameterError(
                f"feature_names is {listed(given)}; the table has {shape[1]} columns: {listed(names or [])}. "
                "Name every column of an array, and omit feature_names for a frame."
            )
        names = names or given or [f"x{position}" for position in range(shape[1])]
        if len(set(names)) < len(names):
            raise ParameterError(f"Column names must differ, but they are {listed(names)}. Rename one column.")
        return names

    def _positions(self, n_columns: int, names: list[str] | None) -> dict[int, int]:
        """Map positions in fit to positions in new rows: by name if both tables have names."""
        if names is None or not hasattr(self, "feature_names_in_"):
            if n_columns != self.n_features_in_:
                needed = f"{self.n_features_in_} features as input, in this order: {listed(self._names)}"
                raise InstanceError(f"X has {n_columns} features, but Binarizer is expecting {needed}.")
            return {position: position for position in self._encodings}
        missing = [self._names[i] for i in self._encodings if self._names[i] not in names]
        extra = [name for name in names if name not in self._names]
        if missing or extra:
            raise InstanceError(
                f"The columns are not those of fit. Missing: {listed(missing)}. Unknown: {listed(extra)}. "
                "Add the missing columns and remove the unknown ones, e.g. `frame.drop(columns=[...])`."
            )
        return {i: names.index(self._names[i]) for i in self._encodings}


@dataclass(frozen=True, slots=True)
class _Levels:
    """One indicator per value, and possibly one for all other values."""

    kind: str
    levels: tuple[Any, ...]
    has_rest: bool
    zone: str = ""

    @property
    def width(self) -> int:
        return len(self.levels) + self.has_rest

    def indicators(self, values: NDArray[Any]) -> NDArray[np.bool_]:
        hits = [values == level for level in self.levels]
        if self.has_rest:
            hits.append(~np.logical_or.reduce(hits))
        return np.column_stack(hits).astype(bool)

    def statements(self, name: str) -> list[tuple[str, str]]:
        texts = [text_of(level, self.kind) + self.zone for level in self.levels]
        if len(set(texts)) < len(texts):
            texts = [level_of(level, self.kind) + self.zone for level in self.levels]
        pairs = [(f"{name} = {text}", f"{name} != {text}") for text in texts]
        if self.has_rest:
            text = "{" + ", ".join(texts) + "}"
            pairs.append((f"{name} not in {text}", f"{name} in {text}"))
        return pairs


@dataclass(frozen=True, slots=True)
class _Bins:
    """Left-closed intervals between the inner ``edges``; the outer two are unbounded."""

    kind: str
    edges: tuple[float, ...]
    texts: tuple[str, ...]

    @property
    def width(self) -> int:
        return len(self.edges) + 1

    def indicators(self, values: NDArray[np.float64]) -> NDArray[np.bool_]:
        bins = np.searchsorted(self.edges, values, side="right")  # right: a value on an edge is above it
        return np.asarray(bins[:, None] == np.arange(self.width))

    def statements(self, name: str) -> list[tuple[str, str]]:
        first, last = self.texts[0], self.texts[-1]
        pairs = [(f"{name} < {first}", f"{name} >= {first}")]
        for low, high in zip(self.texts, self.texts[1:], strict=False):
            pairs.append((f"{low} <= {name} < {high}", f"{name} < {low} or {name} >= {high}"))
        return [*pairs, (f"{name} >= {last}", f"{name} < {last}")]


def _choose(column: Column, n_bins: int, zone: str) -> _Levels | _Bins | str:
    """Return an encoding, or the reason why the column has none."""
    kind, values = column.kind, column.values
    if column.missing.any():
        return f"has missing values in {int(column.missing.sum())} of {values.size} rows"
    levels, counts = np.unique(values, return_counts=True)
    if levels.size == 1:
        return f"is constant: always {text_of(levels[0], kind)}{zone}"
    if levels.size <= n_bins:
        return _Levels(kind, tuple(levels.tolist()), has_rest=False, zone=zone)
    if kind == CATEGORY:
        frequent = np.argsort(-counts, kind="stable")[: n_bins - 1]  # stable: ties keep the order of np.unique
        return _Levels(kind, tuple(levels[frequent].tolist()), has_rest=True)
    return _choose_bins(kind, values, levels, n_bins, zone)


def _choose_bins(kind: str, values: NDArray[Any], levels: NDArray[Any], n_bins: int, zone: str) -> _Bins | str:
    if not np.isfinite(levels).all():
        return "has infinite values"
    quantiles = np.quantile(values, np.linspace(0, 1, n_bins + 1), method="linear")
    if np.unique(quantiles).size < quantiles.size:
        return f"has quantiles that are not all distinct: {', '.join(text_of(q, kind) + zone for q in quantiles)}"
    pairs = readable_edges(quantiles[1:-1], levels, kind)
    return _Bins(kind, tuple(edge for edge, _ in pairs), tuple(text + zone for _, text in pairs))
