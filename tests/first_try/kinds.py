"""The kinds of models and tables that a new user brings: what each is, and what the first call gives."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import pandas as pd

N_ROWS = 120


@dataclass(frozen=True)
class Try:
    """What a user types: ``Explainer(model, table, **keywords).explain(row)``.

    ``decisions`` are the texts that the decision may be; ``columns`` those that facts may be about.
    """

    model: Any
    table: Any
    row: Any = 0
    decisions: tuple[str, ...] | None = ("no", "yes")
    columns: tuple[str, ...] | None = None
    keywords: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Kind:
    """One kind; ``needs`` are the libraries, ``refused`` what its error says, ``notes`` what a notice says."""

    side: str
    group: str
    title: str
    make: Callable[[], Try]
    needs: tuple[str, ...] = ()
    refused: str = ""
    notes: str = ""


KINDS: list[Kind] = []


def kind(
    side: str, group: str, title: str, *needs: str, refused: str = "", notes: str = ""
) -> Callable[[Any], Any]:
    """Register what makes one kind."""

    def register(make: Callable[[], Try]) -> Callable[[], Try]:
        KINDS.append(Kind(side, group, title, make, needs, refused, notes))
        return make

    return register


@cache
def frame() -> pd.DataFrame:
    """Return a table of numbers and texts; do not change it."""
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "age": rng.integers(18, 80, N_ROWS),
            "income": rng.normal(40_000, 9_000, N_ROWS).round(),
            "color": rng.choice(["red", "green", "blue"], N_ROWS),
        }
    )


@cache
def numbers() -> pd.DataFrame:
    """Return the columns of numbers."""
    return frame()[["age", "income"]].astype(float) / [10.0, 10_000.0]


@cache
def label() -> np.ndarray:
    """Return a target of two classes."""
    own = frame()
    return np.where(own["income"] + 400 * own["age"] + 5000 * (own["color"] == "red") > 60_000, "yes", "no")


@cache
def three() -> np.ndarray:
    """Return a target of three classes."""
    return np.array(["low", "mid", "high"])[np.digitize(frame()["income"], [36_000, 44_000])]


@cache
def amount() -> np.ndarray:
    """Return a target of numbers."""
    own = frame()
    return (own["income"] / 1000 + own["age"]).to_numpy()
