"""What a check found in the results."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    """Our figure in words, and whether it agrees with the published one; None: nothing to compare with."""

    text: str
    agrees: bool | None

    @property
    def verdict(self) -> str:
        """Agrees, disagrees, or neither."""
        return {True: "agrees", False: "disagrees", None: "-"}[self.agrees]


NOT_MEASURED = Finding("not measured in this run", None)
