"""Changes to whole training rows: the rows that differ least from the instance and have the wanted decision."""

import numpy as np

from anchorline.errors import ParameterError
from anchorline.search.changes.candidates import Candidates
from anchorline.search.changes.goal import Reply
from anchorline.search.changes.levels import Level
from anchorline.search.changes.questions import Questions
from anchorline.search.changes.settings import ChangeSettings
from anchorline.spaces.choices import TableChoices

_FIRST_BATCH = 64  # doubled from batch to batch
_NOT_ALLOWED = -2


def search_rows(
    questions: Questions, settings: ChangeSettings
) -> tuple[list[tuple[int, ...]], tuple[Level, ...], Reply]:
    """Return the training rows that turn the decision, as changes, and what was tried.

    Rows are asked about in the order in which they are returned: fewest differing attributes first, then cheapest.
    So the first that turns is proven to be the first of all. At most one row per set of attributes is returned.
    """
    candidates = questions.candidates
    rows = differing(candidates)
    n_facts = (rows >= 0).sum(axis=1)
    most = len(candidates.choices.attributes) if settings.max_facts is None else settings.max_facts
    rows, n_facts = rows[(n_facts > 0) & (n_facts <= most)], n_facts[(n_facts > 0) & (n_facts <= most)]
    order = np.lexsort([candidates.cost(rows).round(12), n_facts])
    rows, n_facts = rows[order], n_facts[order]
    at_row, reply = questions.ask_with_instance(rows[:_FIRST_BATCH])
    n_tried, size, found = 0, 2 * _FIRST_BATCH, dict[bytes, tuple[int, ...]]()
    while True:
        for row in rows[n_tried:][: len(reply.reached)][reply.reached]:
            found.setdefault((row >= 0).tobytes(), tuple(row[row >= 0].tolist()))
        n_tried += len(reply.reached)
        batch = rows[n_tried:][: max(0, min(size, questions.left))]
        if not len(batch) or len(found) >= settings.n:
            break
        reply, size = questions.ask(batch), min(2 * size, 4096)
    counts = np.bincount(n_facts, minlength=2)
    tried = np.bincount(n_facts[:n_tried], minlength=len(counts))
    levels = [Level(s, int(tried[s]), int(counts[s]), int(counts[s])) for s in range(1, len(counts))]
    return list(found.values())[: settings.n], tuple(levels), at_row


def differing(candidates: Candidates) -> np.ndarray:
    """Return the training rows as changes (n, attributes), without copies; -1 where they are like the instance.

    Rows with a value that is not allowed, or missing where the instance's is not, are left out.
    """
    choices = candidates.choices
    if not isinstance(choices, TableChoices):
        raise ParameterError("examples is 'rows', but there is no training table. Type examples='values'.")
    columns = []
    for a, (choice, values) in enumerate(zip(choices.attributes, choices.values, strict=True)):
        lookup = np.full(len(values.rows) + 1, -1, dtype=np.intp)  # the last one is that of missing values
        lookup[values.ids[choice.rows]] = _NOT_ALLOWED
        lookup[-1] = -1 if choices.is_missing(a) else _NOT_ALLOWED
        own = np.flatnonzero(candidates.owner == a)
        lookup[values.ids[choice.rows[candidates.value[own]]]] = own
        columns.append(lookup[values.ids])
    rows = np.column_stack(columns)
    rows = rows[(rows != _NOT_ALLOWED).all(axis=1)]
    return _without_copies(rows) if len(rows) else rows


def _without_copies(rows: np.ndarray) -> np.ndarray:
    """Return the distinct rows (n, attributes) of candidates or -1, sorted; by one number per row if it fits."""
    is_own = rows < 0
    lowest = np.where(is_own, rows.max(axis=0), rows).min(axis=0)  # the candidates of an attribute are contiguous
    digits = np.where(is_own, 0, rows - lowest + 1)
    sizes = digits.max(axis=0).astype(np.float64) + 1
    if np.prod(sizes) >= 2.0**53:  # beyond, products of floats are not exact
        return np.unique(rows, axis=0)
    strides = np.append(np.cumprod(sizes[:0:-1])[::-1], 1).astype(np.int64)  # the first attribute counts most
    return np.asarray(rows[np.unique(digits @ strides, return_index=True)[1]])
