"""A user's own rule about rows that can exist: neighbors that break it are drawn again."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from anchorline.errors import InstanceError, ParameterError
from anchorline.spaces.attributes import RandomWords

MAX_ATTEMPTS = 200  # draws of one neighbor's values
ValidRule = Callable[[Any], Any]


def rule_name(valid: ValidRule | None) -> str | None:
    """Return the name of a rule, which the fingerprint contains; raise `ParameterError` if it is not callable."""
    if valid is None:
        return None
    if not callable(valid):
        raise ParameterError(
            f"valid is {valid!r:.60}; it must be a function of a frame of neighbors that returns one boolean per "
            "row. Type, say, valid=lambda rows: rows['fare'] > 0."
        )
    return str(getattr(valid, "__name__", type(valid).__name__))


class Validity:
    """The rule of a table, seen from one row, and how many of its neighbors were drawn, and drawn again.

    Without a rule, every row is valid.
    """

    def __init__(self, valid: ValidRule | None) -> None:
        self.valid, self.n_drawn, self.n_again = valid, 0, 0

    @property
    def redrawn(self) -> float:
        """The share of the neighbors so far whose first values broke the rule."""
        return self.n_again / max(1, self.n_drawn)

    def holds(self, inputs: Any, n_rows: int) -> np.ndarray:
        """Return for which rows the rule holds, (n,); the rule receives a copy, which it may change."""
        if self.valid is None:
            return np.ones(n_rows, dtype=bool)
        mutable = isinstance(inputs, np.ndarray) or hasattr(inputs, "iloc")
        answers = np.asarray(self.valid(inputs.copy() if mutable else inputs))
        if answers.shape != (n_rows,) or answers.dtype != bool:
            raise ParameterError(
                f"valid returned {answers.dtype} of shape {answers.shape} for {n_rows} rows; it must return one "
                "boolean per row. Type, say, valid=lambda rows: rows['fare'] > 0."
            )
        return answers

    def checked_original(self, original: Any) -> Any:
        """Return the explained row; raise `InstanceError` if it breaks the rule itself."""
        if not self.holds(original, 1)[0]:
            raise InstanceError(
                "The row breaks the rule `valid`, so that no neighbor that keeps its values could be valid. "
                "Correct the row or the rule."
            )
        return original

    def drawn(
        self,
        draws: np.ndarray,
        words: RandomWords,
        choose: Callable[[np.ndarray, RandomWords], np.ndarray],
        build: Callable[[np.ndarray], Any],
        names: Sequence[str],
    ) -> tuple[Any, np.ndarray]:
        """Return neighbors with these draws (d, n) for which the rule holds, and the rows of their values, (d, n).

        ``choose`` draws these rows, and ``build`` makes neighbors of them. Draws stay; only values are drawn
        again, at most 200 times. ``names`` are those of the d attributes.
        """
        sources = choose(draws, words)
        inputs, n = build(sources), draws.shape[1]
        broken = np.flatnonzero(~self.holds(inputs, n))
        self.n_drawn, self.n_again = self.n_drawn + n, self.n_again + len(broken)
        if not len(broken):
            return inputs, sources
        for _ in range(MAX_ATTEMPTS):
            sources[:, broken] = choose(draws[:, broken], words)
            broken = broken[~self.holds(build(sources[:, broken]), len(broken))]
            if not len(broken):
                return build(sources), sources
        changed = [name for name, way in zip(names, draws[:, broken[0]], strict=True) if way]
        raise ParameterError(
            f"{len(broken)} of {n} neighbors break the rule `valid` after {MAX_ATTEMPTS} draws of their values; "
            f"one of them changes {', '.join(map(repr, changed[:8]))} and keeps the rest. If these columns are "
            "valid only together with others, group them, e.g. groups=[['class', 'fare']]."
        )
