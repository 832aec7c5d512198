"""Make an explanation again from its own record, and find out why the answers may differ."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from anchorline.explainer import Explainer
from anchorline.model.predictor import plain_label
from anchorline.optimize.problem import Status
from anchorline.result.assemble import assemble
from anchorline.result.certificate import Certificate
from anchorline.result.explanation import Explanation
from anchorline.search.case import Case
from anchorline.search.replay import Found, replay
from anchorline.settings import Settings
from anchorline.verify.compare import CHECKSUM_ROUNDING, ROUNDING

Parameters = Mapping[str, Any]


class Repetition:
    """An explanation, and all that is needed to make it again; ``case`` is its row as the model sees it now."""

    def __init__(self, claimed: Explanation, explainer: Explainer, case: Case, instance: Any) -> None:
        self.claimed, self.explainer, self._predictor = claimed, explainer, case.predictor
        self.instance = instance
        self.now = case.parameters
        self.settings = Settings.from_dict(claimed.parameters)

    def explained(self) -> Explanation:
        """Search and measure again."""
        return self._tried(self._explain)

    def replayed(self) -> Explanation:
        """Ask and measure again for the sum as stated, without a search."""
        return self._tried(self._replay)

    def _explain(self, recorded: Parameters) -> Explanation:
        return self.explainer.explain_with(self.instance, self.settings, recorded)

    def _replay(self, recorded: Parameters) -> Explanation:
        stated = self.claimed.certificate
        found = Found(
            contributions=self.claimed.scaled,
            has_intercept=self.claimed.intercept != 0,
            status=stated.status,
            lower_bound=stated.lower_bound,
            left_facts_out=stated.n_left_out > 0,
            pairs=self.claimed.pairs,
        )
        case = self.explainer.prepare(self.instance, self.settings, recorded)
        return assemble(case, replay(case, found))

    def difference_at_row(self) -> str | None:
        """Return how the model's answer to the row itself differs from the stated one, or None."""
        claimed, predictor = self.claimed, self._predictor
        stated, given = f"{claimed.prediction:.6g}", f"{predictor.prediction:.6g}"
        if predictor.is_label and plain_label(predictor.label) != claimed.label:
            stated, given = repr(claimed.label), repr(plain_label(predictor.label))
        elif abs(claimed.prediction - predictor.prediction) <= ROUNDING * max(
            abs(predictor.prediction), predictor.half_range
        ):
            return None
        return f"it gives {given} for this row, where the explanation states {stated}"

    @property
    def can_be_replayed(self) -> bool:
        """Whether the neighbors that were queried do not depend on the search."""
        return self.settings.n_samples != "auto"

    @property
    def depends_on_clock(self) -> bool:
        """Whether two searches may end differently, because their time is limited."""
        return self.settings.time_limit is not None

    def has_same_answers(self, again: Explanation) -> bool:
        """Whether the model answered as recorded, by the checksum."""
        stated = self.claimed.certificate.answers_checksum
        return abs(again.certificate.answers_checksum - stated) <= CHECKSUM_ROUNDING

    def _tried(self, run: Callable[[Parameters], Explanation]) -> Explanation:
        """Run with the recorded parameters, whose text decides the key of the checksum.

        Other languages write the number 1.0 as 1. If the checksum differs, floats that such a writer may have
        changed are restored: those that the explainer computes itself, then the box too.
        """
        recorded = dict(self.claimed.parameters)
        restored = recorded | {name: self.now[name] for name in ("output_range", "threshold")}
        box = recorded["box"]
        attempts = [recorded, restored, restored | {"box": None if box is None else float(box)}]
        results: list[Explanation] = []
        for i, parameters in enumerate(attempts):
            if repr(parameters) not in map(repr, attempts[:i]):
                results.append(self._as_recorded(run(parameters)))
            if self.has_same_answers(results[-1]):
                return results[-1]
        return results[0]

    def _as_recorded(self, again: Explanation) -> Explanation:
        """Return the explanation without what the first release did not record."""
        stated, certificate = self.claimed.certificate, again.certificate
        decided = None if stated.decided is None else certificate.decided
        mean = None if self.claimed.neighbors_mean is None else again.neighbors_mean
        return replace(again, neighbors_mean=mean, certificate=replace(certificate, decided=decided))

    @property
    def unclear(self) -> list[str]:
        """The columns in which several values read like the row's, so that the record does not tell which."""
        find = getattr(self.explainer.space, "unclear", None)
        return [] if find is None else list(find(self.instance))

    def doubt_about_answers(self, again: Explanation | None) -> str | None:
        """Return why the answers may differ without being another model's, or None.

        The model is queried about the row twice, and about the batches of ``again`` once more.
        """
        original = self.explainer.space.at(self.instance).original
        first, second = (np.asarray(self.explainer.target.ask(original)) for _ in range(2))
        if not bool(np.all(first == second)):
            return "the model gives two answers to the same query"
        if again is not None and self._answers_vary(again):
            return "the model gives different answers to the same batch of queries"
        if self.unclear:
            columns = ", ".join(map(repr, self.unclear))
            return (
                f"in {columns} several values read like the row's, and the record does not show which one it has"
            )
        return None

    def _answers_vary(self, again: Explanation) -> bool:
        """Whether the same queries, asked a second time, have other answers than in ``again``."""
        if not self.depends_on_clock:
            repeated = self._explain(again.parameters)
        elif self.can_be_replayed:
            again, repeated = self._replay(again.parameters), self._replay(again.parameters)
        else:
            return False  # the clock decides what is asked
        return repeated.certificate.answers_checksum != again.certificate.answers_checksum


def confirms_search(claimed: Explanation, again: Explanation) -> bool:
    """Whether a repeated search proves the claims of one that the clock stopped: status, bound, alternatives."""
    stated, proved = claimed.certificate, again.certificate
    is_proved = stated.status is not Status.OPTIMAL or proved.status is Status.OPTIMAL
    same_others = claimed.alternatives == again.alternatives and (
        claimed.alternatives_complete in (None, again.alternatives_complete)
    )
    return is_proved and same_others and stated.lower_bound <= proved.lower_bound + ROUNDING


def refuted_search(stated: Certificate, again: Certificate) -> dict[str, str]:
    """Return the claims about the search that a sum refutes which is better than they allow."""
    better = f"but a sum with a mean square of {again.objective!r} exists"
    refuted = {}
    if again.objective < stated.lower_bound - ROUNDING:
        refuted["certificate.lower_bound"] = (
            f"certificate.lower_bound is stated as {stated.lower_bound!r}, {better}"
        )
    if stated.status is Status.OPTIMAL and again.objective < stated.objective - ROUNDING:
        refuted["certificate.status"] = f"certificate.status is stated as OPTIMAL, {better}"
    return refuted
