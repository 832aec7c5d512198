"""The answer of a verification: codes and figures, from which its sentences are derived."""

import enum
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from anchorline.result.explanation import Fit, Share, Verdict
from anchorline.result.rule import RuleVerdict

_SHOWN = 5  # reasons in a sentence; all are in `reasons`
_DIFFERING = ("other_model", "differs")  # codes with two values, whose digits must tell them apart

SENTENCES = {
    # It holds.
    "reproduced": "all {stated:,} figures were computed again, and are the same",
    "repeated": "every figure was reproduced",
    "turned": "all examples turned again ({stated})",
    "nothing_turns": "again nothing turns the decision",
    "listed": "the model was asked about every possible altered copy",
    "confirmed": (
        "{found:,} fresh altered copies confirm what was measured: a figure more than 2.5 points outside its "
        "stated limits would have been noticed with a probability of 99.9%"
    ),
    "agreed": "fresh altered copies, which nobody could foresee, agree with every shortfall",
    "codes_by_maker": "the texts come from its maker's codes, whose SHA-256 is {stated}",
    "time_by_maker": "the time was stated by its maker: {stated!r:.60}",
    "no_digest": "it does not identify the model that it was made with",
    "named_by_maker": "names were chosen by its maker: {stated!r:.200}",
    # It does not.
    "tampered": "{detail}",
    "other_space": "it was made with a different table or space, or with different options",
    "other_near": (
        "it was made with a different table, different options or a different model, because "
        "which rows are 'near' depends on its answers"
    ),
    "other_classes": "its classes are {stated}, but the model's are {found}",
    "other_instance": "the instance that was given is not the recorded one",
    "other_model": "the model answers differently: for this row, {where} is {found}, but {stated} is stated",
    "other_answers": "the model answers differently: {detail}",
    "other_example": "the example of change {where} does not give the stated answer",
    "differs": "{where} is stated as {stated:.80}, but is {found:.80}",
    "not_computed": "it cannot be computed again: {detail}",
    "contradicted": (
        "fresh altered copies contradict {where}: stated {stated.low:.3f} to {stated.high:.3f}, measured "
        "{found.low:.3f} to {found.high:.3f}"
    ),
    "counterexample": "{where} is stated as always, but fresh altered copies with the facts change the decision",
    # Nobody can tell.
    "unreadable": "this is not the JSON of a result that can be verified: {detail}",
    "instance_needed": "{detail}",
    "model_failed": "the model could not be asked: {detail}",
    "varies": "the model gives different answers to the same questions",
    "no_leaves": (
        "it was computed from the leaves of a model's trees, which this model does not show; verify with the "
        "fitted model itself"
    ),
    "no_columns": (
        "it is about fewer columns than the table has, and this model does not say which it reads; verify with "
        "the fitted model itself"
    ),
    "cost_function": "every example turned the decision again, but the cost function is not recorded",
    "other_digest": (
        "every figure was reproduced, but it was made with the model {stated}, and whether this is that model "
        "is not known; verify with the fitted model itself"
    ),
    "not_chosen": "fresh altered copies show that {where} is a main reason, which is not stated",
    "no_trees": "every example turned the decision again, but the trees of the model cannot be read",
    "not_confirmed": (
        "fresh altered copies do not confirm {where}: stated {stated.low:.3f} to {stated.high:.3f}, measured "
        "{found.low:.3f} to {found.high:.3f}"
    ),
}
"""What each code of a reason says; ``where`` is the place of a figure in the JSON."""


class Outcome(enum.Enum):
    """Whether a result was confirmed."""

    HOLDS = "holds"
    DOES_NOT_HOLD = "does not hold"
    CANNOT_TELL = "cannot tell"


@dataclass(frozen=True, slots=True)
class Reason:
    """One reason for an outcome: a code of `SENTENCES`, the place of a figure, and its two values.

    ``detail`` is the text of an error, where one is the reason.

    Examples
    --------
    >>> print(Reason("differs", "holds.value", 0.97, 0.91))
    holds.value is stated as 0.970, but is 0.910
    """

    code: str
    where: str = ""
    stated: Any = None
    found: Any = None
    detail: str = ""

    def __str__(self) -> str:
        from anchorline.render.digits import told_apart

        stated, found = self.stated, self.found
        if self.code in _DIFFERING:
            are_numbers = isinstance(stated, float) and isinstance(found, float)
            are_finite = are_numbers and math.isfinite(stated) and math.isfinite(found)
            stated, found = told_apart(stated, found) if are_finite else (repr(stated), repr(found))
        values = {"where": self.where, "stated": stated, "found": found, "detail": self.detail}
        return SENTENCES[self.code].format(**values).removesuffix(".")


@dataclass(frozen=True, slots=True)
class Verification:
    """The outcome of a verification and the reasons for it, most important first.

    ``fresh`` are the shares, and the fit, that the verifier measured on altered copies of its own, and ``verdict``
    is the verdict that these establish; nothing and None if none were needed or asked for. ``subject`` is what was
    verified.

    Examples
    --------
    >>> print(Verification(Outcome.DOES_NOT_HOLD, (Reason("other_space"),)))
    The explanation does not hold: it was made with a different table or space, or with different options.
    """

    outcome: Outcome
    reasons: tuple[Reason, ...]
    fresh: Mapping[str, Share | Fit] = field(default_factory=dict)
    verdict: Verdict | RuleVerdict | None = None
    subject: str = "explanation"

    @property
    def holds(self) -> bool:
        """Whether every claim was confirmed."""
        return self.outcome is Outcome.HOLDS

    @property
    def codes(self) -> tuple[str, ...]:
        """The codes of the reasons."""
        return tuple(reason.code for reason in self.reasons)

    def __str__(self) -> str:
        shown, n_more = "; ".join(map(str, self.reasons[:_SHOWN])), len(self.reasons) - _SHOWN
        more = f"; and {n_more} more" if n_more > 0 else ""
        if self.outcome is Outcome.CANNOT_TELL:
            return f"Whether the {self.subject} holds could not be determined: {shown}{more}."
        return f"The {self.subject} {self.outcome.value}: {shown}{more}."
