"""Explanations as `shap.Explanation` objects, which SHAP's own plots can draw."""

import warnings
from collections.abc import Iterable
from functools import cache
from typing import Any

import numpy as np

from anchorline.errors import MissingDependencyError, ParameterError
from anchorline.render.geometry import picture_of
from anchorline.result.explanation import Explanation
from anchorline.result.explanations import Explanations, Failure
from anchorline.spaces.text import places_of

_BASE = "(base)"
_LARGEST_PLAIN = 1e12  # SHAP writes all digits of a number, so larger numbers are passed as texts
_HAIR_SPACE = "\u200a"


def to_shap(
    explanations: Explanation | Iterable[Explanation] | Explanations,
    *,
    common_base: bool = False,
    content: bool = False,
    codes: bool = False,
) -> Any:
    r"""Return one explanation as a `shap.Explanation` of shape (d,), or several as one of shape (n, d).

    ``base_values + values.sum(-1)`` is the prediction: ``values`` are the contributions :math:`v_j b_j` at the
    columns that the facts are about, and ``base_values`` the base, which are the Shapley values of the sum under
    the law. Columns without a fact have the value 0. ``data`` holds the row's values: floats, or texts for
    categories and dates. ``display_data`` holds what SHAP's plots print, such as "41 = age". Words, regions and
    parts of a signal are features without values. The rows of an `Explanations` object have their positions as
    ``instance_names``.

    ``common_base`` gives several rows one base value, the mean of the bases, as ``shap.plots.decision`` and
    ``force`` require; the feature "(base)" then holds how far the row's own base is from it. ``content`` turns one
    explained text or image into values of its own parts, as ``shap.plots.text`` and ``image`` require: a
    contribution is shared equally by the places of a word, or the pixels of a region. ``data`` are the words with
    what follows them, or the small copy of the image that the explanation records.
    ``codes`` gives ``data`` of numbers only, as ``shap.plots.violin`` and ``cohorts`` require: in place of a text
    its number among the sorted texts of the column, and NaN in place of a missing one.

    Examples
    --------
    >>> from anchorline.explainer import Explainer
    >>> from anchorline.spaces.hypercube import Hypercube
    >>> explainer = Explainer(lambda z: z[:, 0] / 2 + z[:, 1] / 8, Hypercube(["paid", "late"]), output="score")
    >>> s = to_shap(explainer.explain([1, -1], sigma=0))
    >>> s.values.round(3).tolist(), round(float(s.base_values), 9), s.display_data.tolist(), s.feature_names
    ([0.5, -0.125], 0.0, ['+1', '-1'], ['paid', 'late'])
    """
    shap = _import_shap()
    is_single = isinstance(explanations, Explanation)
    checked = [explanations] if isinstance(explanations, Explanation) else _check(explanations)
    if content:
        return _of_content(shap, checked)
    names = list(dict.fromkeys(name for explanation in checked for name in explanation.space["names"]))
    values, bases = np.zeros((len(checked), len(names))), np.array([explanation.base for explanation in checked])
    for row, explanation in zip(values, checked, strict=True):
        for fact, contribution in zip(explanation.facts, explanation.contributions.tolist(), strict=True):
            row[names.index(fact.column)] += contribution
    own = None if checked[0].space["kind"] not in ("table", "hypercube") else [[*e.instance] for e in checked]
    if common_base and not is_single:
        names.append(_BASE)
        values = np.column_stack([values, bases - bases.mean()])
        own = own and [[*row, base] for row, base in zip(own, bases.tolist(), strict=True)]
        bases = np.full(len(bases), bases.mean())
    is_signed = checked[0].space["kind"] == "hypercube"
    data, display = (None, None) if own is None else _data(own, is_single=is_single, is_signed=is_signed)
    if codes and data is not None:
        data = _codes(data)
    records = explanations.records if isinstance(explanations, Explanations) else None
    converted = (shap.Explanation if is_single else _rows_class(shap))(
        values=values[0] if is_single else values,
        base_values=float(bases[0]) if is_single else bases,
        data=data,
        display_data=display,
        feature_names=names,
        instance_names=None if records is None else [str(record["row"]) for record in records],
    )
    # SHAP's constructor reads a single name as the name of a column, and for several rows as a list of names.
    if is_single:
        converted.output_names = checked[0].output.name
    return converted


@cache
def _rows_class(shap: Any) -> Any:
    """Return SHAP's class without its fault that a single row with a name cannot be copied.

    SHAP copies it for every operation after a sum over rows, such as ``S.abs.mean(0).argsort``.
    """

    class Explanation(shap.Explanation):  # type: ignore[misc]
        def __copy__(self) -> Any:
            names = self.instance_names
            own = {name: getattr(self, name) for name in ("base_values", "data", "display_data")}
            own |= {name: getattr(self, name) for name in ("feature_names", "output_names", "clustering")}
            copied = type(self)(self.values, instance_names=None if isinstance(names, str) else names, **own)
            copied.op_history = [*self.op_history]
            return copied

    return Explanation


def _of_content(shap: Any, explanations: list[Explanation]) -> Any:
    """Return a text with values per unit (n,), or an image with values per pixel (1, h, w, 1)."""
    explanation, kind = explanations[0], explanations[0].space["kind"]
    if len(explanations) > 1 or kind not in ("text", "image"):
        raise ParameterError(
            "content=True takes one explanation of a text or an image. Type e.to_shap(content=True)."
        )
    contributions, picture = explanation.contributions.tolist(), picture_of(explanation)
    if picture is None:
        units, between = explanation.instance[1::2], explanation.instance[2::2]
        tokens = [unit + after for unit, after in zip(units, between, strict=True)]
        tokens[0] = explanation.instance[0] + tokens[0]
        values, data = np.zeros(len(tokens)), np.array(tokens, dtype=object)
        for fact, contribution in zip(explanation.facts, contributions, strict=True):
            places = places_of(explanation.instance, fact)
            values[places] += contribution / len(places)
    else:
        of_pixels = np.zeros(picture.rgb.shape[:2])
        for region in picture.regions:
            of_pixels[region.mask] = contributions[region.fact] / region.mask.sum()
        values, data = of_pixels[None, :, :, None], picture.rgb[None] / 255.0
    base = explanation.base if picture is None else np.array([explanation.base])
    converted = shap.Explanation(values=values, base_values=base, data=data)
    name = explanation.output.name
    converted.output_names = name if picture is None else [name]  # the constructor would take it for an axis
    return converted


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
    """Return the explanations as a list, or raise an error unless all explain one output in one space."""
    items = list(explanations) if isinstance(explanations, Iterable) else []
    failures = [item for item in items if isinstance(item, Failure)]
    if failures:
        raise ParameterError(
            f"{len(failures)} of {len(items)} rows have no explanation. {failures[0]} Type "
            "to_shap(many.explained) to leave them out."
        )
    if not items or not all(isinstance(item, Explanation) for item in items):
        raise ParameterError(
            f"explanations is a {type(explanations).__name__}, but it must be an Explanation, or a list of at "
            "least one Explanation."
        )
    first = items[0]
    for other in items[1:]:
        if _explained(other) != _explained(first):
            raise ParameterError(
                f"The explanations are of the outputs {first.output.name!r} and {other.output.name!r}, or of "
                "different tables, but all must explain one output of one table. Choose a class: "
                f"Explainer(model, table, output={first.output.name!r})."
            )
        if other.output.kind == "label" and other.output.decision != first.output.decision:
            raise ParameterError(
                f"The explanations are of the labels {first.output.decision!r} and {other.output.decision!r}, but "
                "all must be of one label. Explain a class's probability: Explainer(model, table, output=...)."
            )
    return items


def _explained(explanation: Explanation) -> tuple[Any, ...]:
    """Return what must be the same for explanations to be compared; a label is its own output."""
    output, fingerprint = explanation.output, explanation.space["fingerprint"]
    name = None if output.kind == "label" else output.name
    return fingerprint, output.kind, name, output.scale, output.is_probability


def _data(rows: list[list[Any]], *, is_single: bool, is_signed: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return the values of rows, and the values to display; with several rows, one type per column.

    A column that holds a text is a column of texts, because SHAP cannot sort texts together with numbers.
    """
    data, display = [], []
    for column in zip(*rows, strict=True):
        texts = [_text(value, is_signed=is_signed) for value in column]
        values: list[Any] = [
            np.nan if value is None else _short_date(value) if isinstance(value, str) else float(value)
            for value in column
        ]
        has_text = any(isinstance(value, str) for value in values)
        are_numbers = any(_is_number(value) for value in column) and not (has_text or is_signed)
        data.append(texts if has_text else values)
        if is_single and are_numbers:
            display.append([_short(value, text) for value, text in zip(values, texts, strict=True)])
        else:
            display.append(values if are_numbers else [_protected(text) for text in texts])
    shown = np.array(display, dtype=object).T
    array = np.array(data, dtype=object).T
    if not any(isinstance(value, str) for value in array.flat):
        array = array.astype(np.float64)
    return (array[0], shown[0]) if is_single else (array, shown)


def _codes(data: np.ndarray) -> np.ndarray:
    """Return numbers (n, d) or (d,) in place of texts, which sort as they do; "missing" is NaN."""
    columns = np.atleast_2d(data).T
    numbers = np.full(columns.shape, np.nan)
    for column, own in zip(columns, numbers, strict=True):
        texts = sorted({value for value in column if isinstance(value, str) and value != "missing"})
        for i, value in enumerate(column):
            if value != "missing":
                own[i] = texts.index(value) if isinstance(value, str) else value
    return numbers.T.reshape(data.shape)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _text(value: Any, *, is_signed: bool = False) -> str:
    """Return a value of the instance as text."""
    if value is None:
        return "missing"
    if is_signed and isinstance(value, int):
        return f"{value:+d}"
    return f"{value:g}" if _is_number(value) else _short_date(str(value))


def _short_date(text: str) -> str:
    """Return a recorded date without a time of day at midnight; return other texts unchanged."""
    return text.removesuffix("T00:00:00.000000")


def _short(value: float, text: str) -> Any:
    """Return the number if SHAP's three decimals are at least as exact as its text, otherwise the text."""
    is_exact = abs(float(f"{value:.3f}") - value) <= abs(float(text) - value)
    return value if abs(value) < _LARGEST_PLAIN and is_exact else _protected(text)


def _protected(text: str) -> str:
    """Return a text that SHAP's bar plot, which removes zeros from the end of every text, leaves whole."""
    return text + _HAIR_SPACE if text.endswith("0") else text
