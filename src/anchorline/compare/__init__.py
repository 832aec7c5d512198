"""Compares two models on one table, or one model on two cohorts of rows, with the same neighbors for both.

May import: errors, explainer, facts, guarantees, laws, model, result, search, settings, spaces, verify.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack

if TYPE_CHECKING:
    from anchorline.result.comparison import Comparison, Drift


class CompareKeywords(TypedDict, total=False):
    """The types of the keywords of `compare`: those of `CompareSettings`, and some of `Explainer`."""

    n: int
    groups: Iterable[str]
    within: float | None
    rules: int
    max_decisions: float | None
    max_reasons: float | None
    protect: Iterable[str]
    sigma: float
    seed: int
    confidence: float
    output: Any
    output_scale: Literal["margin", "probability"] | None
    task: Literal["label", "number"] | None
    classes: Sequence[Any] | None
    threshold: float | None
    output_range: tuple[float, float] | None
    input: Literal["auto", "array", "frame"]


def compare(
    old: Any,
    new: Any,
    table: Any,
    rows: Any = None,
    *,
    check: Callable[[], object] | None = None,
    **keywords: Unpack[CompareKeywords],
) -> "Comparison | Drift":
    """Return how a new model differs from an old one; or, of one model, how this month's rows differ from last's.

    ``table`` is the training table, or a `Table` of it. Rows are sampled from ``rows``, by default from the table.
    Both models are asked about the same altered copies of the same rows. If ``old`` is ``new``, the rows of
    ``table`` are compared with ``rows``. ``check`` is called in every loop, and may raise.

    Other Parameters
    ----------------
    n
        Rows that are explained (200); up to five times as many if a gate needs them.
    groups
        Columns by whose values decisions are compared.
    within
        How much a number may differ and still count as the same decision; by default 10% of the spread of outputs.
    rules
        Of how many rows the old rule is tried on the new model (0, at most 50).
    max_decisions, max_reasons
        Gates: the most of the rows that may be decided differently, and of the old explanations that may be
        refuted.
    protect
        Attributes whose effect must not rise by more than 5% of the spread.
    sigma, seed, confidence
        As of `Explainer.explain`.
    output, output_scale, task, classes, threshold, output_range, input
        As of `Explainer`, for both models.

    Examples
    --------
    >>> import numpy as np
    >>> rows = np.random.default_rng(0).normal(size=(400, 3))
    >>> old, new = (lambda z: z[:, 0] + z[:, 1]), (lambda z: z[:, 0] - z[:, 1])
    >>> found = compare(old, new, rows, n=40, output="score")
    >>> [(each.attribute, each.move.value) for each in found.changed]
    [('x1', 'turned')]
    """
    from anchorline.compare.cohorts import compare_cohorts  # noqa: PLC0415  heavy
    from anchorline.compare.models import CompareSettings, compare_models  # noqa: PLC0415
    from anchorline.errors import ParameterError, unknown_keyword  # noqa: PLC0415
    from anchorline.explainer import Explainer  # noqa: PLC0415
    from anchorline.spaces.table import Table  # noqa: PLC0415

    given, own = dict[str, Any](keywords), {field.name for field in fields(CompareSettings)}
    for name in given:
        if name not in CompareKeywords.__annotations__:
            raise unknown_keyword("compare", name, list(CompareKeywords.__annotations__))
    settings = CompareSettings(**{name: value for name, value in given.items() if name in own})
    choices = {name: value for name, value in given.items() if name not in own}
    if isinstance(old, Explainer) or isinstance(new, Explainer):
        raise ParameterError("compare takes models. Type compare(old, new, table), with output= if you need it.")
    if rows is None and (isinstance(table, Table) or old is new):
        what = "compare(model, model, last_month, this_month)" if old is new else "compare(old, new, table, frame)"
        raise ParameterError(f"There are no rows to compare. Type {what}.")
    space = table if isinstance(table, Table) else Table(table)
    if old is new:
        if isinstance(table, Table):
            raise ParameterError(
                "The rows before must be a frame. Type compare(model, model, last_month, this_month)."
            )
        return compare_cohorts(Explainer(old, space, **choices), table, rows, settings, check)
    return compare_models(old, new, space, table if rows is None else rows, settings, choices, check)
