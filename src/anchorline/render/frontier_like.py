"""The attributes that drawings read from a frontier, so that a drawing does not depend on the class."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from anchorline.guarantees import Estimate
    from anchorline.optimize.problem import Status


class FrontierPointLike(Protocol):
    """The attributes that are drawn for one k."""

    @property
    def k(self) -> int:
        """Maximum number of terms."""

    @property
    def status(self) -> "Status":
        """How the search ended."""

    @property
    def objective(self) -> float:
        """The fidelity error on the sample that was searched."""

    @property
    def fidelity_error(self) -> "Estimate | None":
        """The fidelity error measured on fresh neighbors, or None if it was not measured."""

    @property
    def relevance_error(self) -> "Estimate | None":
        """How far the output moves while the facts hold, or None if it was not measured."""


class FrontierLike(Protocol):
    """The attributes that are drawn for a `Frontier`: the points and their common confidence."""

    @property
    def points(self) -> Sequence[FrontierPointLike]:
        """One point per k."""

    @property
    def confidence(self) -> float:
        """The confidence with which all limits hold together."""

    @property
    def warnings(self) -> Sequence[str]:
        """Sentences about conditions that may make the errors look smaller than they are."""
