"""Explanations as `shap.Explanation` objects, which SHAP's own plots can draw."""

import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from anchorline.errors import MissingDependencyError, ParameterError
from anchorline.result.explanation import Explanation
from anchorline.result.explanations import Explanations
from anchorline.spaces.base import Literal

_SHARED = ("space", "output", "column", "task")  # parameters that must be equal in all explanations
_MAX_LISTED = 10  # failed rows in an error message


_INTERCEPT = "(intercept)"
_LARGEST_PLAIN = 1e12  # SHAP writes all digits of a number, so larger numbers are passed as texts
_HAIR_SPACE = "\u200a"


class _Cell(NamedTuple):
    """One attribute of one row: its contribution, its value, the value as text, and whether it is a number."""

    contribution: float
    value: Any
    text: str
    is_number: bool

    @property
    def label(self) -> str:
        """The text, protected from SHAP's bar plot, which removes zeros from the end of every text."""
        return self.text + _HAIR_SPACE if self.text.endswith("0") else self.text

    @property
    def display(self) -> Any:
        """The number if SHAP's three decimals are at least as exact as the text, otherwise the text."""
        if self.is_number and abs(self.value) < _LARGEST_PLAIN:
            shown, stated = float(f"{self.value:.3f}"), _parse_number(self.text)
            if isinstance(stated, str) or abs(shown - self.value) <= abs(stated - self.value):
                return float(self.value)
        return self.label


_FIXED = _Cell(0.0, np.nan, "(fixed)", is_number=False)


def to_shap(explanations: Explanation | Iterable[Explanation] | Explanations, *, common_base: bool = False) -> Any:
    """Return one explanation as a `shap.Explanation` of shape (d,), or several as one of shape (n, d).

    ``values`` are the contributions and ``base_values`` is the intercept, so that ``base_values +
    values.sum(-1)`` is the prediction, as in SHAP. The base value is the part of the sum that does not belong to
    any fact, whereas SHAP uses the mean output. ``feature_names`` are the attributes. ``data`` holds their values:
    floats, or texts for categories and dates. ``display_data`` holds the values as SHAP's plots print them, such
    as "41 = age": a float if SHAP writes it correctly, otherwise a text. A text that ends in 0 is followed by a
    hair space, because SHAP's bar plot removes zeros from the end of texts.

    With several rows, every column of ``data`` and ``display_data`` has one type, which SHAP's scatter plot
    requires. If an attribute never changes around one of several rows, its contribution in that row is 0.

    Parameters
    ----------
    explanations
        One explanation, or several that explain the same output on the same table.
    common_base
        Whether several rows get one base value, as ``shap.plots.decision`` and ``force`` require: the mean of the
        intercepts. The feature "(intercept)" then holds how far the row's own intercept is from that mean, so
        that the sums stay the same.

    Returns
    -------
    shap.Explanation
        An object for ``shap.plots.waterfall``, ``bar`` and, with several rows, ``beeswarm``. The rows of an
        `Explanations` object have their positions as ``instance_names``.

    Examples
    --------
    >>> import anchorline as al
    >>> e = al.explain(lambda z: z[:, 0] / 2 + z[:, 1] / 8, [1, -1], k=2, names=["paid", "late"], output="score")
    >>> s = to_shap(e)
    >>> s.values.round(3).tolist(), float(s.base_values), s.display_data.tolist(), s.feature_names
    ([0.5, -0.125], 0.0, ['+1', '-1'], ['paid', 'late'])
    """
    shap = _import_shap()
    is_single = isinstance(explanations, Explanation)
    checked = [explanations] if isinstance(explanations, Explanation) else _check(explanations)
    rows = [_cells_by_attribute(explanation) for explanation in checked]
    bases = np.array([explanation.intercept for explanation in checked])
    # The row with the most attributes comes first: its order is the table's, and it usually has all attributes.
    keys = list(dict.fromkeys(key for row in sorted(rows, key=len, reverse=True) for key in row))
    if common_base and not is_single:
        keys.append((_INTERCEPT, -1))
        bases = _share_base(rows, bases)
    cells = [[row.get(key, _FIXED) for key in keys] for row in rows]
    values = np.array([[cell.contribution for cell in row] for row in cells])
    data, texts = _data_of_row(cells[0]) if is_single else _data_of_rows(cells)
    converted = shap.Explanation(
        values=values[0] if is_single else values,
        base_values=float(bases[0]) if is_single else bases,
        data=data,
        display_data=texts,
        feature_names=[name for name, _ in keys],
        instance_names=_positions(explanations),
    )
    # SHAP's constructor reads a single name as the name of a column, and for several rows as a list of names.
    if is_single:
        converted.output_names = checked[0].output
    return converted


def many_to_shap(many: Explanations, *, common_base: bool = False) -> Any:
    """Return the rows that have an explanation as one `shap.Explanation`; see `to_shap`."""
    if len(many) and not len(many.explained):
        raise ParameterError(
            f"None of the {len(many)} rows has an explanation, but at least one is needed. {many.failures[0]}"
        )
    return to_shap(many.explained, common_base=common_base)


def _share_base(rows: list[dict[tuple[str, int], _Cell]], intercepts: np.ndarray) -> np.ndarray:
    """Add to every row how far its intercept is from the mean, and return the mean, once per row."""
    base = float(np.mean(intercepts))
    for row, intercept in zip(rows, intercepts.tolist(), strict=True):
        row[_INTERCEPT, -1] = _Cell(intercept - base, intercept, f"{intercept:g}", is_number=True)
    return np.full(len(rows), base)


def _positions(explanations: Any) -> list[str] | None:
    """Return the positions of the rows in the batch as texts, which SHAP accepts as names of rows."""
    if not isinstance(explanations, Explanations):
        return None
    return [str(record["row"]) for record in explanations.records]


def _import_shap() -> Any:
    try:
        with warnings.catch_warnings():
            # SHAP's colors use functions that newer versions of matplotlib deprecate, which users cannot change.
            warnings.simplefilter("ignore", PendingDeprecationWarning)
            import shap  # noqa: PLC0415  optional, and slow to import
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "shap":
            raise
        raise MissingDependencyError.for_package("shap", "peers") from error
    return shap


def _check(explanations: Any) -> list[Explanation]:
    """Return the explanations as a list, or raise an error unless all explain one output of one space."""
    items = list(explanations) if isinstance(explanations, Iterable) else []
    failures = [item for item in items if hasattr(item, "error_type")]
    if failures:
        rows = ", ".join(str(failure.row) for failure in failures[:_MAX_LISTED])
        rows += ", ..." * (len(failures) > _MAX_LISTED)
        raise ParameterError(
            f"{len(failures)} of {len(items)} rows have no explanation (rows {rows}). {failures[0]} "
            "Type to_shap(many.explained) to leave them out."
        )
    if not items or not all(isinstance(item, Explanation) for item in items):
        raise ParameterError(
            f"explanations is a {type(explanations).__name__}, but it must be an Explanation, or a list of at "
            "least one Explanation."
        )
    first = items[0]
    for other in items[1:]:
        if any(other.parameters.get(key) != first.parameters.get(key) for key in _SHARED):
            raise ParameterError(
                f"The explanations are of the outputs {first.output!r} and {other.output!r}, or of different "
                "tables, but all must explain one output of one table. Choose a class: "
                f"Explainer(model, table, output={first.output!r})."
            )
        if other.label != first.label:
            raise ParameterError(
                f"The explanations are of the labels {first.label!r} and {other.label!r}, but all must be of one "
                "label. Explain the probability of a class instead: Explainer(model, table, output=...)."
            )
    return items


def _cells_by_attribute(explanation: Explanation) -> dict[tuple[str, int], _Cell]:
    """Return one cell per attribute, by its name and its position among attributes of the same name.

    Contributions of several literals about one attribute, such as two bounds, are added.
    """
    values: Sequence[Any] = explanation.instance
    terms = _terms_by_attribute(explanation)
    if len(values) != len(terms):
        # With fixed or grouped columns, values and literals do not match one to one, so the literals are parsed.
        values = [...] * len(terms)
    is_hypercube = str(explanation.parameters.get("space")).startswith("hypercube:")
    text_of = _sign_text if is_hypercube else _value_text
    n_same_name: Counter[str] = Counter()
    cells = {}
    for (literal, u), value in zip(terms, values, strict=True):
        text = text_of(literal.name, literal.text, literal.held, value)
        cell_value = _parse_number(text) if value is ... else np.nan if value is None else _short_date(value)
        is_flag = is_hypercube or isinstance(value, bool)
        if not isinstance(cell_value, str):
            cell_value = float(cell_value)
        is_number = not (is_flag or isinstance(cell_value, str) or np.isnan(cell_value))
        cells[literal.name, n_same_name[literal.name]] = _Cell(u, cell_value, text, is_number)
        n_same_name[literal.name] += 1
    return cells


def _terms_by_attribute(explanation: Explanation) -> list[tuple[Literal, float]]:
    """Return the first literal of every attribute, and the sum of the contributions of all its literals."""
    terms = list(zip(explanation.literals, explanation.contributions.tolist(), strict=True))
    if "n_attributes" not in explanation.parameters:  # every literal is an attribute, whatever its name
        return terms
    first: dict[str, Literal] = {}
    sums: Counter[str] = Counter()
    for literal, u in terms:
        first.setdefault(literal.name, literal)
        sums[literal.name] += u
    return [(literal, float(sums[name])) for name, literal in first.items()]


def _sign_text(name: str, text: str, held: str, value: Any) -> str:
    """Return the sign of a coordinate, or "true" or "false" if the coordinate has a statement as its name."""
    if text in (f"{name} = +1", f"{name} = -1"):
        return text[-2:]
    return "true" if text == name else "false"


def _value_text(name: str, text: str, held: str, value: Any) -> str:
    """Return the value of an attribute as text, from its literal or, if that is an interval, from the value."""
    for statement, prefix in ((text, f"{name} = "), (held, f"{name} keeps its value ")):
        if statement.startswith(prefix):
            return statement.removeprefix(prefix).partition(" or takes ")[0]
    if text == f"{name} is missing":
        return "missing"
    if value is not ...:
        return f"{value:g}" if isinstance(value, int | float) else str(_short_date(value))
    if " and " not in text and text.endswith((" = 1", " = True")):  # the active column of a one-hot group
        return text.removesuffix(" = 1").removesuffix(" = True")
    for sign, replacement in ((" and ", ", "), (" = ", " "), (" >= ", " \u2265 "), (" <= ", " \u2264 ")):
        text = text.replace(sign, replacement)  # SHAP's plots read the text after the last "=" as the name
    return text


def _short_date(value: Any) -> Any:
    """Return a recorded date without a time of day at midnight; return other values unchanged."""
    return value.removesuffix("T00:00:00.000000") if isinstance(value, str) else value


def _parse_number(text: str) -> Any:
    """Return a text as a number if it is one, NaN for a missing value, else the text."""
    try:
        return float(text)
    except ValueError:
        return np.nan if text == "missing" else text


def _data_of_row(cells: list[_Cell]) -> tuple[np.ndarray, np.ndarray]:
    """Return the values of one row, and the values to display."""
    data = _value_array([cell.value for cell in cells])
    return data, np.array([cell.display for cell in cells], dtype=object)


def _data_of_rows(rows: list[list[_Cell]]) -> tuple[np.ndarray, np.ndarray]:
    """Return the values of several rows, and the values to display, with one type per column.

    A column that holds a text is a column of texts, because SHAP cannot sort texts together with numbers.
    """
    data, display = [], []
    for column in zip(*rows, strict=True):
        has_text = any(isinstance(cell.value, str) for cell in column)
        is_numeric = not has_text and any(cell.is_number for cell in column)
        data.append([cell.text if has_text and not isinstance(cell.value, str) else cell.value for cell in column])
        display.append([cell.value if is_numeric else cell.label for cell in column])
    return _value_array(data).T, np.array(display, dtype=object).T


def _value_array(values: list[Any]) -> np.ndarray:
    """Return an array of floats, or of objects if any value is a text."""
    array = np.array(values, dtype=object)
    has_texts = any(isinstance(value, str) for value in array.flat)
    return array if has_texts else array.astype(np.float64)
