"""Asks a model about changed rows, within a hard limit, and judges its answers by the goal."""

from dataclasses import dataclass, field

import numpy as np

from anchorline.errors import ParameterError
from anchorline.model.predictor import Predictor, batches
from anchorline.search.changes.candidates import Candidates
from anchorline.search.changes.goal import Goal, Reply


@dataclass(frozen=True, eq=False)
class Questions:
    """The model seen from one instance, and the goal of the changes.

    ``alone`` remembers for every cell of candidates that were tried alone the replies, and which of them it is.
    ``turned`` remembers the same for every change of several facts that turns.
    """

    candidates: Candidates
    predictor: Predictor
    goal: Goal
    max_queries: int
    alone: dict[int, tuple[Reply, int]] = field(default_factory=dict)
    turned: dict[tuple[int, ...], tuple[Reply, int]] = field(default_factory=dict)

    @property
    def left(self) -> int:
        """Number of queries that are left."""
        return self.max_queries - self.predictor.n_queries

    def ask_with_instance(self, chosen: np.ndarray) -> tuple[Reply, Reply]:
        """Return the reply to the instance itself, and those to changes, as many as queries are left for."""
        chosen = chosen[: max(0, self.left - 1)]
        reply = self.ask(np.concatenate([np.full((1, chosen.shape[1]), -1), chosen]))
        if reply.reached[0]:
            raise ParameterError(
                "The row already meets the target, so nothing has to change. Pick another target, or leave it out."
            )
        return reply.part(slice(0, 1)), reply.part(slice(1, None))

    def ask(self, chosen: np.ndarray) -> Reply:
        """Return the replies to changes (n, s), given as candidates; -1 changes nothing.

        Model calls have the fixed boundaries of all model calls, because a model's last bits may depend on them.
        """
        owner, value = np.append(self.candidates.owner, -1), np.append(self.candidates.value, -1)
        parts = []
        for first, last in batches(len(chosen)):
            inputs = self.candidates.choices.realize(owner[chosen[first:last]], value[chosen[first:last]])
            parts.append(self.goal.judge(self.predictor, *self.predictor.query(inputs, last - first)))
        reply = parts[0].joined(*parts[1:]) if parts else Reply(np.zeros(0, dtype=bool), np.zeros(0), None, None)
        self._remember(chosen, reply)
        return reply

    def _remember(self, chosen: np.ndarray, reply: Reply) -> None:
        if chosen.shape[1] == 1:
            places = np.flatnonzero(chosen[:, 0] >= 0)
            cells = self.candidates.cell[chosen[places, 0]].tolist()
            self.alone.update((cell, (reply, i)) for cell, i in zip(cells, places.tolist(), strict=True))
            return
        for i in np.flatnonzero(reply.reached).tolist():
            self.turned[tuple(sorted(chosen[i][chosen[i] >= 0].tolist()))] = reply, i

    def known(self, change: tuple[int, ...]) -> Reply | None:
        """Return the reply to a change that turned, or to a single fact that was tried; None if there is none."""
        single = self.alone.get(int(self.candidates.cell[change[0]])) if len(change) == 1 else None
        remembered = single or self.turned.get(tuple(sorted(change)))
        return None if remembered is None else remembered[0].part(slice(remembered[1], remembered[1] + 1))
