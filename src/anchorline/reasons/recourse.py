"""What another value of one attribute alone would do to a decision."""

from typing import Any

import numpy as np

from anchorline.result.reasons import Recourse
from anchorline.search.case import Case
from anchorline.spaces.rows import plain
from anchorline.spaces.table import TableNeighborhood

MOST_VALUES = 400  # of one attribute that are asked about; more are spread evenly over the reference


def recourse_of(case: Case, attribute: int) -> Recourse:
    """Return whether a value of the reference for one attribute turns the decision of an opened case.

    Every distinct value is asked about, weighted by its share of the reference.
    """
    neighborhood = case.neighborhood
    assert isinstance(neighborhood, TableNeighborhood)
    table = neighborhood.table
    numbers, firsts = table.distinct[attribute]
    weights, tried = np.bincount(numbers) / len(numbers), firsts
    most = min(MOST_VALUES, case.n_left)
    is_complete = len(firsts) <= most
    if not is_complete:
        tried = np.unique((np.arange(most) + 0.5) * (table.n_pool / most)).astype(np.intp)
        weights = np.full(len(tried), 1 / len(tried))
    donors = np.full((len(neighborhood.names), len(tried)), -1, dtype=np.intp)
    donors[attribute] = tried
    stays = case.ask(donors).stays
    assert stays is not None  # there is a threshold
    share = float(weights[~stays].sum()) if not stays.all() else 0.0
    nearest = None if stays.all() else _nearest(neighborhood, attribute, tried[~stays], weights[~stays])
    return Recourse(min(share, 1.0), len(tried), is_complete, nearest)


def _nearest(
    neighborhood: TableNeighborhood, attribute: int, donors: np.ndarray, weights: np.ndarray
) -> tuple[Any, ...]:
    """Return the values of a donor: of numbers and dates the nearest to the own one, else the most frequent."""
    table, own = neighborhood.table, neighborhood.table.attributes[attribute]
    view = int(np.searchsorted(table.views.attributes, attribute))
    column = neighborhood.columns[own.views[0]]
    if len(own.views) == 1 and table.views.ordered[view] and not column.missing[0]:
        ladder = table.views.sorted[view]
        at = ladder.starts[np.searchsorted(ladder.values, float(column.values[0]))]
        chosen = donors[np.argmin(np.where(donors < ladder.n_present, np.abs(donors - at), table.n_pool))]
    else:
        chosen = donors[np.argmax(weights)]
    natives = [table.donated.pick(j, np.array([chosen])) for j in own.positions]
    cells = [table.schema.fields[j].reading(native) for j, native in zip(own.positions, natives, strict=True)]
    return tuple(plain(cell, native) for cell, native in zip(cells, natives, strict=True))
