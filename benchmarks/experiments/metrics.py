"""What anyone's answer is worth, by the formulas and draws of `anchorline.search.assess`: one code for all."""

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from anchorline.guarantees import relevance_factor
from anchorline.search.assess import flipped_sums, measure
from anchorline.search.investigate import gather
from anchorline.search.sampling import (
    MAX_PATTERNS,
    ConditionalFlips,
    Event,
    cancelling_event,
)
from benchmarks.experiments.explainers import Answer, Task
from benchmarks.experiments.protocol import NON_ZERO, VIOLATED

STREAM = "assess"  # fresh neighbors: none of them was searched


@dataclass(eq=False)
class Meter:
    """Measures answers on one task; draws that several answers need are asked once.

    The draws are those of `anchorline.search.assess.assess` with stream "assess" and the same seed, so the
    figures are the same to the last bit.
    """

    task: Task
    n_draws: int
    _everywhere: tuple[np.ndarray, np.ndarray] | None = None
    _inside: dict[bytes, float] = field(default_factory=dict)

    def row(self, answer: Answer, *, generalization: bool = True) -> dict[str, Any]:
        """All metrics of one answer; out-of-sample fidelity costs ``n_draws`` queries once a task."""
        task, contributions = self.task, _pruned(answer.contributions)
        signed_gap = answer.intercept + float(answer.contributions.sum()) - task.prediction
        n_literals = int(np.count_nonzero(contributions))
        row: dict[str, Any] = {
            "prediction": task.prediction,
            "n_literals": n_literals,
            "n_terms": n_literals + int(abs(answer.intercept) > NON_ZERO),
            "anchoring_gap": abs(signed_gap),
            "violated": bool(abs(signed_gap) > VIOLATED),
            "largest": float(max(np.abs(answer.contributions).max(initial=0.0), abs(answer.intercept))),
            "intercept": answer.intercept,
            "empirical_fidelity": fidelity(task.flips, task.rows.drops, answer.contributions, signed_gap),
            "status": answer.status,
            "lower_bound": answer.lower_bound,
            "n_nodes": answer.n_nodes,
            "support": " ".join(map(str, np.flatnonzero(contributions))) if n_literals <= MAX_PATTERNS else "",
        }
        if generalization:
            row["fidelity"] = fidelity(*self._wide(), answer.contributions, signed_gap)
        return row | self._relevance(contributions)

    def _relevance(self, contributions: np.ndarray) -> dict[str, Any]:
        """By the definition, and on the subcube of the support; not for sums nobody could hold in mind."""
        if np.count_nonzero(contributions) > MAX_PATTERNS:
            return dict.fromkeys(("relevance", "relevance_subcube", "event_probability", "lemma"), math.nan)
        p = self.task.case.settings.flip_probability
        event = cancelling_event(contributions, p)
        none_flipped = Event(
            event.support, event.patterns[:1], np.ones(1), (1 - p) ** len(event.support)
        )  # the first pattern is "nothing flipped"
        return {
            "relevance": self._within(event, contributions),
            "relevance_subcube": self._within(none_flipped, contributions),
            "event_probability": event.probability,
            "lemma": relevance_factor(self.task.setting.sigma, self.task.setting.k),
        }

    def _wide(self) -> tuple[np.ndarray, np.ndarray]:
        """Flips and drops of fresh neighbors, asked once."""
        if self._everywhere is None:
            _, rows = gather(self.task.case, self.task.case.stream(f"{STREAM}/all", self.n_draws), keep=True)
            assert rows is not None  # kept
            self._everywhere = rows.flips, rows.drops
        return self._everywhere

    def _within(self, event: Event, contributions: np.ndarray) -> float:
        """Mean squared drop given the event; asked once for every event."""
        name = event.support.tobytes() + event.patterns.tobytes()
        if name not in self._inside:
            case = self.task.case
            free, key = case.stream(f"{STREAM}/event", self.n_draws), case.stream_key(f"{STREAM}/pattern")
            measured = measure(case, ConditionalFlips(free, event, key), contributions)
            self._inside[name] = float(np.mean(measured.drops**2))
        return self._inside[name]


def fidelity(flips: np.ndarray, drops: np.ndarray, contributions: np.ndarray, gap: float) -> float:
    r"""Mean of :math:`(t - F u + g/2)^2` over rows: the fidelity error, anchored (g = 0) or not."""
    losses = (drops - flipped_sums(flips, contributions) + gap / 2) ** 2
    return float(losses.mean())


def _pruned(contributions: np.ndarray) -> np.ndarray:
    """The contributions that count; the others are zero."""
    return np.where(np.abs(contributions) > NON_ZERO, contributions, 0.0)
