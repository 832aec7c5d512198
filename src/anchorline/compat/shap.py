"""Explanations as `shap.Explanation`, which SHAP's own plots draw."""

import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from anchorline.errors import MissingDependencyError, ParameterError
from anchorline.result.explanation import Explanation

_SAME = ("space", "output", "column", "task")  # what explanations side by side must share
_MAX_NAMED = 10  # failed rows told one by one


class _Cell(NamedTuple):
    """One attribute of one row: what it adds, its value, and the value in words."""

    contribution: float
    value: Any
    text: str


_FIXED = _Cell(0.0, np.nan, "(fixed)")


def to_shap(explanations: Explanation | Iterable[Explanation]) -> Any:
    """One explanation as a `shap.Explanation` (d,), or several of the same output as one (n, d).

    ``values`` are the contributions and ``base_values`` the intercept, so ``base_values + values.sum(-1)`` is
    the prediction, as SHAP has it. The base is the part of the sum that belongs to no fact, where SHAP has
    the mean output. ``feature_names`` are the attributes and ``display_data`` their values told in words:
    SHAP's plots print "41 = age". ``data`` are the same as numbers where they are, categories as texts.

    Of several, an attribute that never changes around one of the rows adds nothing there.

    Parameters
    ----------
    explanations
        One, or several that explain the same output on the same table.

    Returns
    -------
    shap.Explanation
        What ``shap.plots.waterfall``, ``bar`` and (of several) ``beeswarm`` draw.

    Examples
    --------
    >>> import anchorline as al
    >>> e = al.explain(lambda z: z[:, 0] / 2 + z[:, 1] / 8, [1, -1], k=2, names=["paid", "late"], output="score")
    >>> s = to_shap(e)
    >>> s.values.round(3).tolist(), float(s.base_values), s.display_data.tolist(), s.feature_names
    ([0.5, -0.125], 0.0, ['+1', '-1'], ['paid', 'late'])
    """
    shap = _shap()
    one = isinstance(explanations, Explanation)
    several = [explanations] if isinstance(explanations, Explanation) else _checked(explanations)
    rows = [_told(explanation) for explanation in several]
    # The fullest row first: its order is the table's, and mostly nothing is left to add.
    keys = list(dict.fromkeys(key for row in sorted(rows, key=len, reverse=True) for key in row))
    cells = [[row.get(key, _FIXED) for key in keys] for row in rows]
    values = np.array([[cell.contribution for cell in row] for row in cells])
    data = _data([[cell.value for cell in row] for row in cells])
    shown = np.array([[cell.text for cell in row] for row in cells], dtype=object)
    intercepts = np.array([explanation.intercept for explanation in several])
    made = shap.Explanation(
        values=values[0] if one else values,
        base_values=float(intercepts[0]) if one else intercepts,
        data=data[0] if one else data,
        display_data=shown[0] if one else shown,
        feature_names=[name for name, _ in keys],
    )
    if one:  # the constructor takes one name for a column of its own; of several, SHAP takes it for a list
        made.output_names = several[0].output
    return made


def _shap() -> Any:
    try:
        with warnings.catch_warnings():
            # Its colours are made by what newer versions of matplotlib are going to drop: no business of a reader.
            warnings.simplefilter("ignore", PendingDeprecationWarning)
            import shap  # noqa: PLC0415  optional, and takes seconds
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "shap":
            raise
        raise MissingDependencyError.for_package("shap", "peers") from error
    return shap


def _checked(explanations: Any) -> list[Explanation]:
    """Explanations that can stand in one matrix: of one space, of one output."""
    several = list(explanations) if isinstance(explanations, Iterable) else []
    failed = [one for one in several if hasattr(one, "error_type")]
    if failed:
        rows = ", ".join(str(one.row) for one in failed[:_MAX_NAMED]) + ", ..." * (len(failed) > _MAX_NAMED)
        raise ParameterError(
            f"{len(failed)} of {len(several)} rows have no explanation (rows {rows}); {failed[0]} Type "
            "to_shap(many.explained) to leave them out."
        )
    if not several or not all(isinstance(explanation, Explanation) for explanation in several):
        raise ParameterError(
            f"Given was {type(explanations).__name__}; needed an Explanation, or a list of at least one."
        )
    first = several[0]
    for other in several[1:]:
        if any(other.parameters.get(key) != first.parameters.get(key) for key in _SAME):
            raise ParameterError(
                f"The explanations speak of {first.output!r} and {other.output!r}, or of different tables; "
                "needed one output of one table. Say which class: Explainer(model, table, output=...)."
            )
        if other.label != first.label:
            raise ParameterError(
                f"The explanations speak of labels {first.label!r} and {other.label!r}; needed one. Explain a "
                "class's probability instead: Explainer(model, table, output=...)."
            )
    return several


def _told(explanation: Explanation) -> dict[tuple[str, int], _Cell]:
    """What stands under every attribute, by its name and, should names repeat, its number among them."""
    values: Sequence[Any] = explanation.instance
    if len(values) != len(explanation.literals):
        # Fixed or grouped columns: the explanation does not say which value is whose, but its literals do.
        values = [...] * len(explanation.literals)
    tell = _sign if str(explanation.parameters.get("space")).startswith("hypercube:") else _cell_text
    seen: Counter[str] = Counter()
    found = {}
    for literal, value, u in zip(explanation.literals, values, explanation.contributions, strict=True):
        text = tell(literal.name, literal.text, literal.held, value)
        known = _number(text) if value is ... else np.nan if value is None else value
        found[literal.name, seen[literal.name]] = _Cell(float(u), known, text)
        seen[literal.name] += 1
    return found


def _sign(name: str, text: str, held: str, value: Any) -> str:
    """The sign of a coordinate, or whether its statement is true."""
    if text in (f"{name} = +1", f"{name} = -1"):
        return text[-2:]
    return "true" if text == name else "false"


def _cell_text(name: str, text: str, held: str, value: Any) -> str:
    """The value of an attribute in words; where its literal tells an interval only, the value itself."""
    for statement, before in ((text, f"{name} = "), (held, f"{name} keeps its value ")):
        if statement.startswith(before):
            return statement.removeprefix(before)
    if text == f"{name} is missing":
        return "missing"
    if value is not ...:
        return f"{value:g}" if isinstance(value, int | float) else str(value).removesuffix("T00:00:00.000000")
    if " and " not in text and text.endswith((" = 1", " = True")):  # of a block of indicators, the one that is on
        return text.removesuffix(" = 1").removesuffix(" = True")
    for sign, other in ((" and ", ", "), (" = ", " "), (" >= ", " \u2265 "), (" <= ", " \u2264 ")):
        text = text.replace(sign, other)  # SHAP's plots take what stands behind the last "=" for the name
    return text


def _number(text: str) -> Any:
    """A told value as a number, if it is one."""
    try:
        return float(text)
    except ValueError:
        return np.nan if text == "missing" else text


def _data(rows: list[list[Any]]) -> np.ndarray:
    """Rows as floats, or as objects where any value is a text."""
    texts = any(isinstance(value, str) for row in rows for value in row)
    return np.array(rows, dtype=object if texts else np.float64)
