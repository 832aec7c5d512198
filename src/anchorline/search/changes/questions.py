"""Asks a model about changed rows, within a hard limit, and judges its answers by the goal."""

from dataclasses import dataclass, field

import numpy as np

from anchorline.model.predictor import Predictor, batches
from anchorline.search.changes.candidates import Candidates
from anchorline.search.changes.goal import Goal, Reply


@dataclass(frozen=True, eq=False)
class Questions:
    """The model seen from one instance, and the goal of the changes.

    ``alone`` remembers for every cell of candidates that were tried alone whether they turn.
    """

    candidates: Candidates
    predictor: Predictor
    goal: Goal
    max_queries: int
    alone: dict[int, bool] = field(default_factory=dict)

    @property
    def left(self) -> int:
        """Number of queries that are left."""
        return self.max_queries - self.predictor.n_queries

    def ask(self, chosen: np.ndarray) -> Reply:
        """Return the replies to changes (n, s), given as candidates; -1 changes nothing.

        Model calls have the fixed boundaries of all model calls, because a model's last bits may depend on them.
        """
        owner, value = np.append(self.candidates.owner, -1), np.append(self.candidates.value, -1)
        parts = []
        for first, last in batches(len(chosen)):
            inputs = self.candidates.choices.realize(owner[chosen[first:last]], value[chosen[first:last]])
            parts.append(self.goal.judge(self.predictor, *self.predictor.query(inputs, last - first)))
        reply = Reply(
            np.concatenate([np.zeros(0, dtype=bool), *(part.reached for part in parts)]),
            np.concatenate([np.zeros(0), *(part.margins for part in parts)]),
            _joined([part.outputs for part in parts]),
            _joined([part.decisions for part in parts]),
        )
        if chosen.shape[1] == 1:
            own = chosen[:, 0]
            cells = self.candidates.cell[own[own >= 0]].tolist()
            self.alone.update(zip(cells, reply.reached[own >= 0].tolist(), strict=True))
        return reply


def _joined(parts: list[np.ndarray | None]) -> np.ndarray | None:
    present = [part for part in parts if part is not None]
    return np.concatenate(present) if present else None
