"""Compares two models on one table, or one model on two cohorts of rows, with the same neighbors for both.

May import: errors, explainer, facts, guarantees, laws, model, result, search, settings, spaces, verify.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from anchorline.result.comparison import Comparison, Drift


def compare(
    old: Any, new: Any, table: Any, rows: Any = None, *, check: Callable[[], object] | None = None, **keywords: Any
) -> "Comparison | Drift":
    """Return how a new model differs from an old one; or, of one model, how this month's rows differ from last's.

    ``table`` is the training table, or a `Table` of it. Rows are sampled from ``rows``, by default from the table.
    Both models are asked about the same altered copies of the same rows. If ``old`` is ``new``, the rows of
    ``table`` are compared with ``rows``. Keywords are those of `CompareSettings`, and of `Explainer` for both
    models: output, threshold, classes, task, output_range. ``check`` is called in every loop, and may raise.

    Examples
    --------
    >>> import numpy as np
    >>> rows = np.random.default_rng(0).normal(size=(400, 3))
    >>> old, new = (lambda z: z[:, 0] + z[:, 1]), (lambda z: z[:, 0] - z[:, 1])
    >>> found = compare(old, new, rows, n=40, output="score")
    >>> [(each.attribute, each.move.value) for each in found.changed]
    [('x1', 'turned')]
    """
    from anchorline.compare.call import compared  # noqa: PLC0415  heavy

    return compared(old, new, table, rows, check, keywords)
