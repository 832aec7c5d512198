"""The Boolean encoding of the paper's experiments, as a scikit-learn transformer."""

import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Self

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from anchorline.errors import InstanceError, ParameterError
from anchorline.guarantees.intervals import checked_count


class Binarizer(TransformerMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    r"""Encode every attribute of a table as indicators in {-1, +1}.

    .. math:: z_j = +1 \text{ if statement } j \text{ is true of the row, else } -1

    With K = ``n_bins``:

    - an attribute with at most K distinct values, of any type, gets one indicator per value;
    - a category with more than K levels gets one indicator per level for the K - 1 most frequent levels (ties go
      by the order of their texts), and one for all other levels;
    - a number with more than K values gets K left-closed bins :math:`[e_i, e_{i+1})`, the first and the last
      unbounded, where :math:`e_i` is the i/K quantile of the column by ``numpy.quantile(method="linear")``;
    - constants, columns with missing values, and numbers whose K + 1 quantiles (including minimum and maximum)
      are not all distinct are dropped.

    So every training row has exactly one +1 per attribute. In new rows, a level that did not occur in fit sets the
    indicator for all other levels if the attribute has one, and none otherwise. The table is a pandas, Polars or
    Arrow frame, or a 2-D array, whose columns are then called x0, x1, ... Texts are categories. Columns of new
    frames are found by name. Cost O(n log n) per column.

    Attributes
    ----------
    statements_
        For every output column, the statement for +1 and the statement for -1.
    attributes_
        For every output column, the attribute that it encodes.
    dropped_
        The attributes without indicators, each with the reason.
    n_features_in_, feature_names_in_
        As in scikit-learn. The names exist only if the table had names.

    Examples
    --------
    >>> table = np.array([[25, 0], [38, 1], [47, 0], [52, 1], [61, 0]])
    >>> encoder = Binarizer().fit(table)
    >>> encoder.statements_[1]
    ('38 <= x0 < 47', 'x0 < 38 or x0 >= 47')
    >>> encoder.transform([[38, 1]])
    array([[-1.,  1., -1., -1., -1.,  1.]])
    """

    def __init__(self, n_bins: int = 4) -> None:
        self.n_bins = n_bins

    def fit(self, X: Any, y: object = None) -> Self:
        """Choose the indicators for every column of ``X``; ``y`` is ignored."""
        n_bins = checked_count("n_bins", self.n_bins, minimum=2)
        columns, names = _read(X, ParameterError)
        self._names = names or [f"x{position}" for position in range(len(columns))]
        chosen = [_choose(column, n_bins) for column in columns]
        pairs = list(zip(self._names, chosen, strict=True))
        self.dropped_ = {name: reason for name, reason in pairs if isinstance(reason, str)}
        if len(self.dropped_) == len(pairs):
            reasons = "; ".join(f"{name!r} {reason}" for name, reason in self.dropped_.items())
            raise ParameterError(
                f"No column can be encoded: {reasons}. At least one column must vary, without missing values. "
                "Type a smaller n_bins, or fill missing values."
            )
        self._encodings = {i: each for i, each in enumerate(chosen) if not isinstance(each, str)}
        self.statements_ = [
            pair for i, each in self._encodings.items() for pair in each.statements(self._names[i])
        ]
        self.attributes_ = [self._names[i] for i, each in self._encodings.items() for _ in range(each.width)]
        self.n_features_in_ = len(columns)
        self.__dict__.pop("feature_names_in_", None)  # left by an earlier fit on a table that had names
        if names is not None:
            self.feature_names_in_ = np.array(names, dtype=object)
        return self

    def transform(self, X: Any) -> NDArray[np.float64]:
        """Return encoded rows, float64 in {-1, +1}, (n_rows, n_indicators)."""
        check_is_fitted(self)
        columns, names = _read(X, InstanceError)
        if names is not None and "feature_names_in_" in self.__dict__:
            by_name = dict(zip(names, columns, strict=True))
            missing = [self._names[i] for i in self._encodings if self._names[i] not in by_name]
            if missing:
                raise InstanceError(
                    f"The table lacks the columns {missing}. It must have the columns of fit. Add them."
                )
            columns = [by_name.get(name, np.zeros(0)) for name in self._names]
        elif len(columns) != self.n_features_in_:
            raise InstanceError(
                f"X has {len(columns)} features, but Binarizer is expecting {self.n_features_in_} features as "
                "input. Type the columns of fit, in their order."
            )
        parts = [each.indicators(columns[i], self._names[i]) for i, each in self._encodings.items()]
        return np.where(np.hstack(parts), 1.0, -1.0)

    def get_feature_names_out(self, input_features: Iterable[str] | None = None) -> NDArray[np.object_]:
        """Return the statement for +1 of every output column."""
        check_is_fitted(self)
        names = self._names if input_features is None else [str(name) for name in input_features]
        if len(names) != len(self._names) or ("feature_names_in_" in self.__dict__ and names != self._names):
            raise ParameterError(f"input_features is {names}, but it must be the names in fit: {self._names}.")
        pairs = [pair for i, each in self._encodings.items() for pair in each.statements(names[i])]
        return np.array([true for true, _ in pairs], dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = tags.input_tags.categorical = True
        tags.input_tags.allow_nan = True  # in fit, which drops columns with missing values and reports them
        return tags


@dataclass(frozen=True, slots=True, eq=False)
class _Levels:
    """One indicator per value, and possibly one for all other values."""

    levels: NDArray[Any]
    has_rest: bool

    @property
    def width(self) -> int:
        return len(self.levels) + self.has_rest

    def indicators(self, values: NDArray[Any], name: str) -> NDArray[np.bool_]:
        hits = np.asarray(_complete(values, self.levels.dtype, name)[:, None] == self.levels)
        return np.column_stack([hits, ~hits.any(axis=1)]) if self.has_rest else hits

    def statements(self, name: str) -> list[tuple[str, str]]:
        texts = [_text(level) for level in self.levels]
        pairs = [(f"{name} = {text}", f"{name} != {text}") for text in texts]
        if self.has_rest:
            text = "{" + ", ".join(texts) + "}"
            pairs.append((f"{name} not in {text}", f"{name} in {text}"))
        return pairs


@dataclass(frozen=True, slots=True, eq=False)
class _Bins:
    """Left-closed intervals between the inner ``edges``; the outer two are unbounded."""

    edges: NDArray[np.float64]

    @property
    def width(self) -> int:
        return len(self.edges) + 1

    def indicators(self, values: NDArray[Any], name: str) -> NDArray[np.bool_]:
        bins = np.searchsorted(self.edges, _complete(values, self.edges.dtype, name), side="right")
        return np.asarray(bins[:, None] == np.arange(self.width))

    def statements(self, name: str) -> list[tuple[str, str]]:
        texts = [_text(edge) for edge in self.edges]
        pairs = [(f"{name} < {texts[0]}", f"{name} >= {texts[0]}")]
        for low, high in itertools.pairwise(texts):
            pairs.append((f"{low} <= {name} < {high}", f"{name} < {low} or {name} >= {high}"))
        return [*pairs, (f"{name} >= {texts[-1]}", f"{name} < {texts[-1]}")]


def _choose(values: NDArray[Any], n_bins: int) -> _Levels | _Bins | str:
    """Return an encoding, or the reason why the column has none."""
    missing = int(_missing(values).sum())
    if missing:
        return f"has missing values in {missing} of {len(values)} rows"
    levels, counts = np.unique(values, return_counts=True)
    if len(levels) == 1:
        return f"is constant: always {_text(levels[0])}"
    if len(levels) <= n_bins:
        return _Levels(levels, has_rest=False)
    if values.dtype == object:
        frequent = np.argsort(-counts, kind="stable")[: n_bins - 1]  # stable: ties keep the order of np.unique
        return _Levels(levels[frequent], has_rest=True)
    return _choose_bins(values, n_bins)


def _choose_bins(values: NDArray[np.float64], n_bins: int) -> _Bins | str:
    if not np.isfinite(values).all():
        return "has infinite values"
    quantiles = np.quantile(values, np.linspace(0, 1, n_bins + 1), method="linear")
    if len(np.unique(quantiles)) < len(quantiles):
        return f"has quantiles that are not all distinct: {', '.join(map(_text, quantiles))}"
    return _Bins(quantiles[1:-1])


def _read(table: Any, error: type[Exception]) -> tuple[list[NDArray[Any]], list[str] | None]:
    """Return the columns, float64 or objects (texts, None if missing), and the names of a frame."""
    frame = nw.from_native(table, eager_only=True, pass_through=True)
    names = None
    if isinstance(frame, nw.DataFrame):
        names = [str(name) for name in frame.columns]
        arrays = [_array(series) for series in frame.iter_columns()]
    else:
        # Lists of rows become objects, because NumPy would turn [25, "red"] into two texts.
        array = np.array(table, dtype=object) if isinstance(table, list | tuple) else np.asarray(table)
        if array.ndim != 2:
            raise error(
                f"X is a {type(table).__name__} of shape {array.shape}, but it must be a 2-D array, or a pandas, "
                "Polars or Arrow frame; sparse input is not supported. Reshape your data: type `X.reshape(1, -1)` "
                "for one row, or `X.toarray()` for a sparse matrix."
            )
        arrays = list(array.T)
    shape = (len(arrays[0]) if arrays else 0, len(arrays))
    if 0 in shape:
        raise error(
            f"The table has 0 {'sample' if arrays else 'feature'}(s) (shape={shape}) while a minimum of 1 is "
            "required. Type a table with rows and columns."
        )
    return [_column(values, position, error) for position, values in enumerate(arrays)], names


def _array(series: nw.Series[Any]) -> NDArray[Any]:
    """Return a column of a frame; values of declared categories are texts, numbers included."""
    if not isinstance(series.dtype, nw.Categorical | nw.Enum):
        return series.to_numpy()
    return np.array([None if _is_missing(value) else str(value) for value in series.to_list()], dtype=object)


def _column(values: NDArray[Any], position: int, error: type[Exception]) -> NDArray[Any]:
    """Return numbers and booleans as float64, with NaN for missing values, and texts as objects."""
    if values.dtype.kind in "iufb":
        return values.astype(np.float64)
    present = [value for value in values.tolist() if not _is_missing(value)]
    if present and all(isinstance(value, str) for value in present):
        return np.array([None if _is_missing(value) else value for value in values.tolist()], dtype=object)
    try:
        return np.array([np.nan if _is_missing(value) else float(value) for value in values.tolist()])
    except (TypeError, ValueError):
        kinds = sorted({type(value).__name__ for value in present})
        raise error(
            f"Column {position} holds {', '.join(kinds)}, but it must hold only numbers or only texts. Convert "
            "it, e.g. with `frame.astype({name: str})`."
        ) from None


def _is_missing(value: Any) -> bool:
    return value is None or type(value).__name__ in ("NAType", "NaTType") or value != value  # noqa: PLR0124  NaN


def _missing(values: NDArray[Any]) -> NDArray[np.bool_]:
    return np.array([value is None for value in values]) if values.dtype == object else np.isnan(values)


def _complete(values: NDArray[Any], kind: np.dtype[Any], name: str) -> NDArray[Any]:
    """Return a column of new rows if it is complete and of the type that it had in fit."""
    if values.dtype == kind and not _missing(values).any():
        return values
    found = "missing values" if values.dtype == kind else "texts" if values.dtype == object else "numbers"
    raise InstanceError(
        f"Column {name!r} holds {found}, but every row must have a value of the kind it held in fit, here "
        f"{'a text' if kind.kind == 'O' else 'a number'}. Fill missing values, or convert the column."
    )


def _text(value: Any) -> str:
    """Return a text from which the value can be read back exactly."""
    if isinstance(value, str):
        return value
    number = float(value)
    if 1e-4 <= abs(number) < 1e15:
        return np.format_float_positional(number, trim="-")
    return repr(number).removesuffix(".0")
