"""What was tried of the changes of one number of facts."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Level:
    """What was tried of the changes of ``n_facts`` facts: ``n_tried`` of ``n_total`` combinations of values.

    ``n_grid`` is the number of combinations of the values that were tried alone. Combinations that contain a
    change that turns by itself do not count. ``by_leaves`` says that the leaves of the model's trees decided them,
    and that values that the trees cannot distinguish count as one.
    """

    n_facts: int
    n_tried: int
    n_grid: int
    n_total: int
    by_leaves: bool = False

    @property
    def is_complete(self) -> bool:
        """Whether all combinations of the values that were tried alone were tried."""
        return self.n_tried >= self.n_grid

    @property
    def is_exhaustive(self) -> bool:
        """Whether all combinations of allowed training values were tried."""
        return self.n_tried >= self.n_total
