"""What facts hold, of any method: rows of a table for which they are true, and copies drawn by NumPy alone.

Facts of all methods are compared as sets of rows: a fact is a column and the rows of the table for which it is
true. Nothing here uses code of the library's laws.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from anchorline.explainer import Explainer
from anchorline.facts import Fact
from benchmarks.codes import codes_of
from benchmarks.tasks import SEED

REPLACE = 2 / (1 + math.e)  # the law's q at sigma = 1


@dataclass(frozen=True, slots=True, eq=False)
class Held:
    """A fact: the number of its column, and of which rows of the table it is true, booleans (n,)."""

    column: int
    rows: np.ndarray


@dataclass(frozen=True, eq=False)
class Task:
    """A table, as numbers (n, d), a fitted pipeline, and the columns that take their values together."""

    name: str
    kind: str
    frame: Any
    model: Any
    codes: np.ndarray
    together: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, name: str, kind: str, frame: Any, model: Any, explainer: Explainer) -> "Task":
        """Return the task of a fitted pipeline; columns that say the same thing take their values together."""
        places = {column: place for place, column in enumerate(frame)}
        groups = [tuple(places[each] for each in names) for names in together_of(explainer)]
        alone = set(range(frame.shape[1])) - {place for group in groups for place in group}
        return cls(name, kind, frame, model, codes_of(frame), (*groups, *((place,) for place in sorted(alone))))

    @property
    def is_classifier(self) -> bool:
        """Whether the model has classes."""
        return hasattr(self.model, "predict_proba")

    def scores(self, codes: np.ndarray) -> np.ndarray:
        """Return probabilities (n, classes), or numbers (n,)."""
        last = self.model[1:]
        return np.asarray(last.predict_proba(codes) if self.is_classifier else last.predict(codes))

    def outputs(self, codes: np.ndarray, row: int) -> np.ndarray:
        """Return the output that is explained at a row: the probability of its class, or the number."""
        scores = self.scores(codes)
        return scores[:, int(self.scores(self.codes[[row]]).argmax())] if self.is_classifier else scores

    def chosen(self, n_rows: int) -> list[int]:
        """Return numbers of rows to explain, the same at every run."""
        rng = np.random.default_rng(SEED)
        chosen: list[int] = rng.choice(len(self.codes), size=min(n_rows, len(self.codes)), replace=False).tolist()
        return chosen

    def copies(self, donors: np.ndarray) -> np.ndarray:
        """Return the copies (n, d) whose columns come from the rows ``donors`` (groups, n)."""
        copies = np.empty((donors.shape[1], self.codes.shape[1]))
        for group, rows in zip(self.together, donors, strict=True):
            for place in group:
                copies[:, place] = self.codes[rows, place]
        return copies


def together_of(explainer: Explainer) -> list[tuple[str, ...]]:
    """Return the columns of every attribute of a table."""
    return [tuple(attribute.names) for attribute in explainer.space.attributes]  # type: ignore[attr-defined]


def our_facts(facts: Sequence[Fact], frame: Any) -> list[Held]:
    """Return printed facts as rows for which they are true."""
    places = {column: place for place, column in enumerate(frame)}
    return [Held(places[fact.column], is_true(fact, frame[fact.column])) for fact in facts]


def is_true(fact: Fact, values: Any) -> np.ndarray:
    """Return of which values of a column a printed fact is true."""
    match fact.kind:
        case "at_least":
            true = values >= fact.low
        case "below":
            true = values < fact.high
        case "between":
            true = (values >= fact.low) & (values < fact.high)
        case "missing":
            true = values.isna()
        case _:
            true = values.astype(object) == fact.value
    return np.asarray(true.fillna(False), dtype=bool)
