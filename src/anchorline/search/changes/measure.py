"""How reliably changes turn a decision: over all training values that meet their bounds, counted or drawn."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from anchorline.guarantees import Estimate, estimate_share, exact_estimate
from anchorline.search.changes.candidates import Candidates
from anchorline.search.changes.goal import Reply
from anchorline.search.changes.questions import Questions

Change = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Plan:
    """Combinations of values (m, s) that show how reliably a change turns.

    ``weights`` (m,) are their shares of all training values that meet the bounds, None if they are draws.
    """

    combinations: np.ndarray
    weights: np.ndarray | None

    @classmethod
    def of(cls, candidates: Candidates, change: Change, n_measure: int, key: int) -> "Plan":
        """Return all combinations, if there are at most ``n_measure``, and otherwise as many draws."""
        values = [candidates.beyond(candidate) for candidate in change]
        cells = [candidates.distinct(each) for each in values]
        if math.prod(map(len, cells)) > n_measure:
            drawn = [_draw(candidates, own, n_measure, (key + k) % 2**128) for k, own in enumerate(values)]
            return cls(np.column_stack(drawn), None)
        weights = [_weights(candidates, own, each) for own, each in zip(cells, values, strict=True)]
        grids = np.meshgrid(*cells, indexing="ij")
        shares = np.prod(np.meshgrid(*weights, indexing="ij"), axis=0).ravel()
        return cls(np.column_stack([grid.ravel() for grid in grids]), shares)

    def estimate(self, reached: np.ndarray, confidence: float) -> Estimate:
        """Return the share of the values with which the change turns, given where it does, (m,)."""
        if self.weights is None:
            return estimate_share(int(reached.sum()), len(reached), confidence)
        share = 1.0 if reached.all() else float(self.weights[reached].sum())
        return exact_estimate(min(1.0, share), len(reached))


def measure(
    questions: Questions, changes: Sequence[Change], keys: Sequence[int], *, n_measure: int, confidence: float
) -> tuple[Reply, list[Estimate | None]]:
    r"""Return the replies to changes, and estimate with which share of values that meet its bounds it turns.

    .. math:: \sum_{v \in B} \prod_k \frac{c_k(v_k)}{C_k}\,[\text{the decision turns at } v],
              \qquad B = B_1 \times \cdots \times B_s

    where :math:`B_k` are the training values that meet bound k, and :math:`c_k(v)` of :math:`C_k` training rows
    that do have the value v. If B has at most ``n_measure`` members, all are tried. Otherwise the values are drawn
    independently, and the interval is a binomial one. All changes are asked about together, and nothing twice. The
    share is None where too few queries are left. There must be a query per change that was not asked about yet.
    """
    plans = [
        Plan.of(questions.candidates, change, n_measure, key) for change, key in zip(changes, keys, strict=True)
    ]
    unknown = [_unknown(questions, plan.combinations) for plan in plans]
    n_examples = sum(questions.known(change) is None for change in changes)
    is_affordable = np.cumsum([len(rows) for rows in unknown]) <= questions.left - n_examples
    unknown = [rows if fits else rows[:0] for rows, fits in zip(unknown, is_affordable, strict=True)]
    examples, reply = ask_examples(questions, changes, unknown)
    turned = np.split(reply.reached, np.cumsum([len(rows) for rows in unknown])[:-1])
    shares = [
        plan.estimate(_reached(questions, plan.combinations, rows, turns), confidence) if fits else None
        for plan, rows, turns, fits in zip(plans, unknown, turned, is_affordable, strict=True)
    ]
    return examples, shares


def ask_examples(
    questions: Questions, changes: Sequence[Change], others: Sequence[np.ndarray] = ()
) -> tuple[Reply, Reply]:
    """Return the replies to changes, and to other combinations of values, in one call; nothing is asked twice."""
    known = [questions.known(change) for change in changes]
    new = [
        np.array([change], dtype=np.intp) for change, reply in zip(changes, known, strict=True) if reply is None
    ]
    reply = questions.ask(_padded([*new, *others]))
    places = iter(range(len(new)))
    examples = [reply.part(slice(i := next(places), i + 1)) if each is None else each for each in known]
    return examples[0].joined(*examples[1:]), reply.part(slice(len(new), None))


def _unknown(questions: Questions, combinations: np.ndarray) -> np.ndarray:
    """Return the distinguishable combinations, without single facts that were tried already."""
    cells = questions.candidates.cell[combinations]
    rows = combinations[np.sort(np.unique(cells, axis=0, return_index=True)[1])]
    if rows.shape[1] > 1:
        return np.asarray(rows)
    return np.asarray(
        rows[[cell not in questions.alone for cell in questions.candidates.cell[rows[:, 0]].tolist()]]
    )


def _padded(parts: Sequence[np.ndarray]) -> np.ndarray:
    """Return changes of several lengths as one array; -1 changes nothing."""
    width = max((part.shape[1] for part in parts), default=1)
    parts = [np.zeros((0, width), dtype=np.intp), *parts]
    return np.concatenate(
        [np.pad(part, ((0, 0), (0, width - part.shape[1])), constant_values=-1) for part in parts]
    )


def _reached(questions: Questions, combinations: np.ndarray, asked: np.ndarray, turned: np.ndarray) -> np.ndarray:
    """Return which combinations turn, (n,), given the answers and what is known of single facts."""
    cell = questions.candidates.cell
    known = dict(zip(map(tuple, cell[asked].tolist()), turned.tolist(), strict=True))
    keys = [tuple(row) for row in cell[combinations].tolist()]
    replies = [None if key in known else questions.alone[key[0]] for key in keys]
    return np.array(
        [
            known[key] if each is None else each[0].reached[each[1]]
            for key, each in zip(keys, replies, strict=True)
        ],
        dtype=bool,
    )


def _weights(candidates: Candidates, cells: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return the share of the training rows of some values that is in every cell."""
    by_cell = {int(cell): 0.0 for cell in candidates.cell[cells]}
    for cell, count in zip(candidates.cell[values].tolist(), candidates.counts[values].tolist(), strict=True):
        by_cell[cell] += count
    weights = np.array([by_cell[int(cell)] for cell in candidates.cell[cells]])
    return np.asarray(weights / weights.sum())


def _draw(candidates: Candidates, values: np.ndarray, n: int, key: int) -> np.ndarray:
    """Draw values with the frequencies that they have in the training table."""
    ends = np.cumsum(candidates.counts[values])
    words = np.random.Philox(key=key).random_raw(n)
    return np.asarray(values[np.searchsorted(ends, (words >> 11) * 2.0**-53 * ends[-1], side="right")])
