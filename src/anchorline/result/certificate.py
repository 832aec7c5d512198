"""The certificate: what is known about an explanation, by which kind of claim, and the verdict for the reader."""

import math
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from anchorline._links import call
from anchorline.guarantees import Estimate
from anchorline.guarantees.verdicts import Losses, Verdict, among_neighbors, title
from anchorline.optimize.problem import Status
from anchorline.search.sampling import reach_inside, reach_of

__all__ = ["Certificate", "Verdict"]

_ESTIMATES = (
    *("fidelity_error", "relevance_error", "baseline_error"),
    *("stability", "baseline_stability", "typical_change", "baseline_change"),
)
# They follow from the parameters of the explanation and are not recorded.
_DERIVED = ("reach", "learned_range", "same_within", "requested_change", "budget", "known_moments", "unit")
_UNIT = re.compile(r".*\S \[((?![\d ])[\w %°€$£/*^.·-]{1,20}(?<! ))\]", re.DOTALL)
_WHERE_SET = {
    **{"n_left_out": 0, "n_pairs": 0, "pairs_searched": None, "decided": None},
    **{"by_leaves": False, "sampled_because": None, "n_unclear": 0, "keeps_some": False},
}  # not recorded by the first release


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """What is known about an explanation, in three kinds of claim that are never mixed.

    On the sample: ``status``, ``objective`` and ``lower_bound``, which are mean squares on the scale [-1, +1]:
    fidelity errors, or relevance errors if the ``goal`` is "relevance" or "shortest". ``exhaustive`` means that
    the sample was the whole distribution.

    Over all possible neighbors, with all limits holding together at the joint ``confidence``: ``fidelity_error``,
    ``relevance_error`` and ``stability`` (the share of draws in which the output stays the same), measured on
    fresh neighbors, or None if not measured; ``typical_change``, the root of the relevance error in the output's
    own units; and the baselines of all of them, measured without a condition. The confidence of a single estimate
    is higher, because the limits share the failure probability.

    By theorem: ``theorem_epsilon``, the amount that the uniform-convergence theorem adds to the objective at this
    sample size. It is vacuous above 1.

    ``by_leaves`` means that nothing was sampled: every moment is a sum over the leaves of the model's trees, and
    ``n_samples`` is the number of leaves. Unless the fidelity error is exact, ``objective`` and ``lower_bound``
    may then leave out a part of the error that is the same for all sums of facts. ``sampled_because`` says why
    neighbors were sampled although the model has trees.

    ``n_left_out`` counts facts that the search left out, because their effect on the output may be zero, if the
    best of all sums contains such facts. Then the proof is about sums of the other facts. With a ``budget`` such
    facts may be kept, and ``n_unclear`` counts those in the sum. If ``known_moments``, status, objective and lower
    bound are about the error by the known moments of flips and the estimated effects. ``n_facts`` counts the
    literals of the sum, and ``n_pairs`` those of them that are pairs, which count twice in ``n_terms``.
    ``pairs_searched`` are the number of pairs that were candidates and the number of all pairs, or None.
    ``keeps_values`` means that the condition kept the values of the facts, not only the facts. ``keeps_some``
    means that it kept them or moved them to other intervals in which the facts hold. ``decision`` is the kind of
    decision, see `Predictor.decision`, and ``decided`` the class or label that the model decides for.
    ``n_clipped_inside`` counts outputs that were clipped while the condition held; if there are any, the typical
    change understates the true one, while ``stability`` does not depend on clipping. ``answers_checksum`` is a
    random weighted sum of all the model's answers, tied to the parameters. ``reach`` is the probability that a
    draw differs from the case at all, ``learned_range`` whether the output range is that of the predictions on
    the training table, ``same_within`` by how much a number may change and stay the same, and
    ``requested_change`` the largest typical change that was requested (`Explainer.shortest`); these, the budget,
    ``known_moments`` and the ``unit`` of numbers (EUR, if the output is "price [EUR]") follow from the parameters.
    """

    status: Status
    goal: str
    objective: float
    lower_bound: float
    anchoring_residual: float
    n_terms: int
    n_facts: int
    n_samples: int
    n_queries: int
    n_clipped: int
    exhaustive: bool
    fidelity_error: Estimate | None = None
    relevance_error: Estimate | None = None
    baseline_error: Estimate | None = None
    stability: Estimate | None = None
    baseline_stability: Estimate | None = None
    typical_change: Estimate | None = None
    baseline_change: Estimate | None = None
    confidence: float
    event_probability: float | None = None
    event_is_literal: bool | None = None
    keeps_values: bool = False
    keeps_some: bool = False
    decision: str | None = None
    decided: str | None = None
    n_clipped_inside: int = 0
    theorem_epsilon: float | None = None
    answers_checksum: float
    stopped_because: str | None = None
    n_left_out: int = 0
    n_pairs: int = 0
    pairs_searched: tuple[int, int] | None = None
    by_leaves: bool = False
    sampled_because: str | None = None
    n_unclear: int = 0
    reach: float = 1.0
    learned_range: bool = False
    same_within: float | None = None
    requested_change: float | None = None
    budget: int | None = None
    known_moments: bool = False
    unit: str = ""

    @classmethod
    def from_dict(
        cls, values: Mapping[str, Any], parameters: Mapping[str, Any] | None = None, n_literals: int = 0
    ) -> "Certificate":
        """Read the plain values that the JSON holds, and derive the rest from the explanation's parameters."""
        values = {**_WHERE_SET, **values}
        known = {field.name: values[field.name] for field in fields(cls) if field.name not in _DERIVED}
        known |= {} if parameters is None else derived(parameters, n_literals)
        measured = {name: Estimate(**known[name]) for name in _ESTIMATES if known[name] is not None}
        searched = None if known["pairs_searched"] is None else tuple(known["pairs_searched"])
        return cls(**known | measured | {"status": Status[known["status"]], "pairs_searched": searched})

    @property
    def optimality_gap(self) -> float:
        """The largest amount by which the objective may exceed the best sum of at most k terms on this sample."""
        return max(0.0, self.objective - self.lower_bound)

    @property
    def size(self) -> str:
        """What the terms are, in words, such as "4 facts and the starting level"."""
        n, n_pairs = self.n_facts - self.n_pairs, self.n_pairs
        parts = [f"{n} fact{'s' * (n != 1)}"] if n or not n_pairs else []
        parts += [f"{n_pairs} pair{'s' * (n_pairs != 1)} of facts"] if n_pairs else []
        if self.n_terms > self.n_facts + n_pairs:
            parts.append("the starting level")
        if not self.n_facts:
            return "the starting level alone" if self.n_terms else parts[0]
        return f"{', '.join(parts[:-1])} and {parts[-1]}" if len(parts) > 1 else parts[0]

    @property
    def relevance_bound(self) -> float | None:
        """The bound on relevance that follows from fidelity alone: ``min(1, fidelity_error.high / P[A])``."""
        if self.fidelity_error is None or self.event_probability is None:
            return None
        return min(1.0, self.fidelity_error.high / self.event_probability)

    @property
    def losses(self) -> Losses | None:
        """How often the output changes while the facts hold and over all neighbors, by joint limits.

        None if not measured; the first release did not measure it for numbers.
        """
        if self.stability is None or self.baseline_stability is None:
            return None
        held = self.stability if self.n_facts else self.baseline_stability  # one measurement has one figure
        return Losses.from_shares(held, self.baseline_stability, self.reach, self.held_reach)

    @property
    def held_share(self) -> Estimate | None:
        """The share of neighbors in which the output stays while the condition holds.

        ``stability`` also counts the draws that equal the case, which are not neighbors.
        """
        if self.stability is None or not self.n_facts:
            return self.free_share
        return among_neighbors(self.stability, self.held_reach)

    @property
    def free_share(self) -> Estimate | None:
        """The share of all neighbors in which the output stays; draws that equal the case do not count."""
        return None if self.baseline_stability is None else among_neighbors(self.baseline_stability, self.reach)

    @property
    def held_reach(self) -> float:
        """The probability that a draw differs from the case while the condition holds."""
        return reach_inside(self.reach, self.event_probability)

    @property
    def verdict(self) -> Verdict:
        """Whether the facts explain the output.

        The limits hold together, so the verdict adds no failure probability; see docs/guarantees.md. Facts whose
        effect may be zero are not praised.
        """
        verdict = Verdict.UNKNOWN if self.losses is None else self.losses.verdict
        return Verdict.UNDECIDED if self.n_unclear and verdict is Verdict.TRUSTWORTHY else verdict

    @property
    def verdict_title(self) -> str:
        """The verdict in the words that readers see; an open one names what is possible."""
        return title(self.verdict, self.losses)

    def to_dict(self) -> dict[str, Any]:
        """Return the plain values that the JSON holds."""
        values = asdict(self) | {"status": self.status.name}
        unset = [name for name, value in _WHERE_SET.items() if values[name] == value]
        return {name: value for name, value in values.items() if name not in (*_DERIVED, *unset)}

    def details(self) -> str:
        """Return the figures behind the sentences, and the bounds by theory alone."""
        return str(call("certificate.details", self))

    def __str__(self) -> str:
        return str(call("certificate.text", self))


def derived(parameters: Mapping[str, Any], n_literals: int) -> dict[str, Any]:
    """Return the fields of a certificate that follow from the parameters of the explanation."""
    n_attributes = parameters.get("n_attributes", n_literals)  # recorded where attributes have several literals
    return {
        "reach": reach_of(parameters["flip_probability"], n_attributes, bool(parameters.get("redraws", False))),
        "learned_range": bool(parameters.get("learned_range", False)),  # not recorded by early releases
        "same_within": parameters.get("same_within"),
        "requested_change": _requested_change(parameters),
        "budget": parameters.get("budget"),
        "known_moments": parameters.get("moments") == "known",
        "unit": _unit(parameters),
    }


def _unit(parameters: Mapping[str, Any]) -> str:
    """Return the unit in the name of an output that is a number, such as "EUR" in "price [EUR]", or ""."""
    found = _UNIT.fullmatch(str(parameters.get("output", "")))
    is_number = parameters.get("classes") is None and parameters.get("task") != "label"
    return found[1] if found and is_number else ""


def _requested_change(parameters: Mapping[str, Any]) -> float | None:
    """Return the root of the largest relevance error requested, in the units of the output; None without one."""
    error, (low, high) = parameters.get("max_relevance_error"), parameters.get("output_range", (0.0, 0.0))
    return None if error is None else float((high - low) * math.sqrt(error))
