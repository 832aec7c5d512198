"""Metrics of an answer by any method, with the formulas and draws of `anchorline.search.assess`."""

import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from anchorline.guarantees import relevance_factor
from anchorline.search.assess import flipped_sums, measure
from anchorline.search.investigate import gather
from anchorline.search.sampling import MAX_PATTERNS, Event, cancelling_event
from benchmarks.experiments.explainers import Answer, Task
from benchmarks.experiments.protocol import NON_ZERO, VIOLATED

STREAM = "assess"  # fresh neighbors, which the search did not use


@dataclass(eq=False)
class Evaluator:
    """Computes the metrics of answers to one task; draws that several answers need are queried once.

    The draws are those of `anchorline.search.assess.assess` with stream "assess" and the same seed, so the values
    are the same to the last bit.
    """

    task: Task
    n_draws: int
    _fresh_sample: tuple[np.ndarray, np.ndarray] | None = None
    _event_errors: dict[bytes, float] = field(default_factory=dict)

    def row(self, answer: Answer, *, generalization: bool = True) -> dict[str, Any]:
        """Return all metrics of one answer; out-of-sample fidelity costs ``n_draws`` queries, once per task."""
        task, contributions = self.task, _without_negligible(answer.contributions)
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
            row["fidelity"] = fidelity(*self._fresh(), answer.contributions, signed_gap)
        return row | self._relevance(contributions)

    def _relevance(self, contributions: np.ndarray) -> dict[str, Any]:
        """Return the relevance error by the definition and on the support's subcube; NaN for too many literals."""
        if np.count_nonzero(contributions) > MAX_PATTERNS:
            return dict.fromkeys(("relevance", "relevance_subcube", "event_probability", "lemma"), math.nan)
        law = self.task.case.law
        event = cancelling_event(contributions, law)
        unbroken = law.probability_unbroken(np.flatnonzero(contributions).tolist())
        # In the first pattern, no literal is flipped.
        none_flipped = replace(event, patterns=event.patterns[:1], shares=np.ones(1), probability=unbroken)
        return {
            "relevance": self._conditional_error(event, contributions),
            "relevance_subcube": self._conditional_error(none_flipped, contributions),
            "event_probability": event.probability,
            "lemma": relevance_factor(self.task.setting.sigma, self.task.setting.k),
        }

    def _fresh(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the flips and drops of fresh neighbors, which are queried once."""
        if self._fresh_sample is None:
            _, rows = gather(self.task.case, self.task.case.stream(f"{STREAM}/all", self.n_draws), keep=True)
            assert rows is not None  # because of keep=True
            self._fresh_sample = rows.flips, rows.drops
        return self._fresh_sample

    def _conditional_error(self, event: Event, contributions: np.ndarray) -> float:
        """Return the mean squared drop given the event, which is queried once per event."""
        key = event.attributes.tobytes() + event.patterns.tobytes()
        if key not in self._event_errors:
            case = self.task.case
            measured = measure(case, case.stream_inside(event, STREAM, self.n_draws), contributions)
            self._event_errors[key] = float(np.mean(measured.drops**2))
        return self._event_errors[key]


def fidelity(flips: np.ndarray, drops: np.ndarray, contributions: np.ndarray, gap: float) -> float:
    r"""Return the mean of :math:`(t - F u + g/2)^2` over rows, the fidelity error with anchoring gap g."""
    losses = (drops - flipped_sums(flips, contributions) + gap / 2) ** 2
    return float(losses.mean())


def _without_negligible(contributions: np.ndarray) -> np.ndarray:
    """Replace negligible contributions by zero."""
    return np.where(np.abs(contributions) > NON_ZERO, contributions, 0.0)
