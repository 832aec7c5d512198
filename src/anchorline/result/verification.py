"""The answer of a verification."""

import enum
from dataclasses import dataclass

from anchorline.result.certificate import Certificate, Verdict


class Outcome(enum.Enum):
    """Whether an explanation was confirmed."""

    HOLDS = "holds"
    DOES_NOT_HOLD = "does not hold"
    CANNOT_TELL = "cannot tell"


@dataclass(frozen=True, slots=True)
class Verification:
    """The outcome of a verification and the reasons for it, most important first.

    ``fresh`` is the certificate with the figures that the verifier measured on neighbors of its own, in place of
    those that the maker stated. It is None if nothing was measured, for example because the model answers
    differently. ``subject`` is what was verified.
    """

    outcome: Outcome
    reasons: tuple[str, ...]
    fresh: Certificate | None = None
    subject: str = "explanation"

    @property
    def holds(self) -> bool:
        """Whether every claim of the explanation was confirmed."""
        return self.outcome is Outcome.HOLDS

    @property
    def verdict(self) -> Verdict | None:
        """The verdict that the verifier's own neighbors support, or None if nothing was measured."""
        return None if self.fresh is None else self.fresh.verdict

    def __str__(self) -> str:
        reasons = "; ".join(self.reasons).removesuffix(".")
        if self.outcome is Outcome.CANNOT_TELL:
            return f"Whether the {self.subject} holds could not be determined: {reasons}."
        return f"The {self.subject} {self.outcome.value}: {reasons}."
