"""The answer of a verification."""

import enum
from dataclasses import dataclass


class Outcome(enum.Enum):
    """Whether an explanation was confirmed."""

    HOLDS = "holds"
    DOES_NOT_HOLD = "does not hold"
    CANNOT_TELL = "cannot tell"


@dataclass(frozen=True, slots=True)
class Verification:
    """The outcome of a verification and the reasons for it, most important first."""

    outcome: Outcome
    reasons: tuple[str, ...]

    @property
    def holds(self) -> bool:
        """Whether every claim of the explanation was confirmed."""
        return self.outcome is Outcome.HOLDS

    def __str__(self) -> str:
        reasons = "; ".join(self.reasons).removesuffix(".")
        if self.outcome is Outcome.CANNOT_TELL:
            return f"Whether the explanation holds could not be determined: {reasons}."
        return f"The explanation {self.outcome.value}: {reasons}."
