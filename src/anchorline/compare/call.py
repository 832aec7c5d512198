"""The arguments of `compare`."""

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

from anchorline.compare.cohorts import compare_cohorts
from anchorline.compare.models import CompareSettings, compare_models
from anchorline.errors import ParameterError, unknown_keyword
from anchorline.explainer import Explainer
from anchorline.result.comparison import Comparison, Drift
from anchorline.spaces.table import Table

_CHOICES = ("output", "output_scale", "task", "classes", "threshold", "output_range", "input")


def compared(
    old: Any, new: Any, table: Any, rows: Any, check: Callable[[], object] | None, keywords: Mapping[str, Any]
) -> Comparison | Drift:
    """Check the arguments of `compare`, and compare models or cohorts."""
    known = [field.name for field in fields(CompareSettings)]
    for name in keywords:
        if name not in known and name not in _CHOICES:
            raise unknown_keyword("compare", name, [*known, *_CHOICES])
    settings = CompareSettings(**{name: value for name, value in keywords.items() if name in known})
    choices = {name: value for name, value in keywords.items() if name in _CHOICES}
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
