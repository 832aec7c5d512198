"""An explanation: figures and codes, from which every sentence is derived."""

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from anchorline.next.facts import Fact


class Verdict(enum.Enum):
    """Whether the facts explain the prediction; see docs/guarantees.md for the rule."""

    ROBUST = "robust"
    EXPLAINED = "explained"
    PARTLY_EXPLAINED = "partly_explained"
    NOT_EXPLAINED = "not_explained"
    UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True)
class Share:
    """A share of neighbors with its limits; all limits of an explanation hold together. ``n`` were drawn.

    If all neighbors were listed, the share is exact, and ``is_exact`` is true.
    """

    value: float
    low: float
    high: float
    n: int
    is_exact: bool = False


@dataclass(frozen=True, slots=True)
class Fit:
    """How well the sum follows the model over neighbors, in the output's own units.

    ``r2`` is 1 - mean (t - sum)^2 / mean t^2, of the drops t = f(x) - f(z); ``error`` is the root mean square of t - sum,
    ``baseline`` that of t itself. ``mean_output`` is the mean output of the neighbors. ``is_approximate``: outputs have no known bounds, so that the limits are approximate.
    """

    r2: float
    low: float
    high: float
    error: float
    baseline: float
    mean_output: float
    n: int
    is_exact: bool = False
    is_approximate: bool = False


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of the table for which the facts are true, and how many of them the model decides like the instance.

    ``looked_at`` rows of the table were asked about, at most 10,000. ``alike`` is None for numbers.
    """

    with_facts: int
    alike: int | None
    looked_at: int


@dataclass(frozen=True, slots=True)
class Output:
    """What is explained, and what the model decides.

    ``kind`` is "class" (the class that the model names), "threshold", "label" (labels without scores) or "number".
    ``name`` is the class's label or the output's name, ``unit`` its unit ("USD") or "". ``decision`` is the label of the model's decision: the class that it
    names, or "at or above 0.3" / "below 0.3", or None for numbers. ``is_probability``: prediction is the probability
    of class ``name``. ``classes`` are all labels, ``runner_up`` the label and score of the second most probable of more than two classes.
    ``scale`` is "log-odds" or "margin" if margins are explained. ``low``, ``high`` and ``spread`` (of the middle 90%) are those of outputs on the table, or None.
    """

    kind: str
    name: str
    decision: Any = None
    unit: str = ""
    is_probability: bool = False
    threshold: float | None = None
    classes: tuple[Any, ...] | None = None
    runner_up: tuple[Any, float] | None = None
    scale: str | None = None
    low: float | None = None
    high: float | None = None
    spread: float | None = None


@dataclass(frozen=True, slots=True)
class Proof:
    """What is known about the choice of facts, for the moments of the search.

    ``status`` is "proven" (no sum of as many facts fits better by more than 1% of the variance of the drops),
    "limit" (the search stopped) or "numerical". ``objective`` and ``lower_bound`` are mean squared errors on the search's moments;
    ``variance`` that of the drops. ``n_candidates`` facts were considered.
    """

    status: str
    objective: float
    lower_bound: float
    variance: float
    n_candidates: int
    n_nodes: int


@dataclass(frozen=True, slots=True)
class Queries:
    """How many rows the model was asked about. ``searched`` to find the facts, ``measured`` to measure, 1 for the instance.

    ``total`` counts every answer; if scores and `predict` were both asked (``asks_twice``), each counts.
    ``source`` is "drawn", "listed" or "leaves".
    """

    searched: int
    measured: int
    total: int
    asks_twice: bool
    source: str


@dataclass(frozen=True, slots=True)
class Alternative:
    """Another sum that fits within 1% of the variance of the drops: facts, contributions, and its objective."""

    facts: tuple[Fact, ...]
    contributions: tuple[float, ...]
    objective: float


@dataclass(frozen=True, kw_only=True, eq=False)
class Explanation:
    r"""A short sum of facts that adds up exactly to a prediction, and what was measured about it.

    ``prediction = base + contributions.sum()``; contribution :math:`v_j b_j`, effect :math:`v_j`. Facts are sorted by the size of
    their contributions. ``holds`` is the smaller of ``holds_drawn`` (neighbors with these facts) and ``holds_law`` (the law's own
    neighbors that break none, or None if fewer than 5% break none); None for numbers, whose ``fit`` decides.
    ``all`` is the share of all neighbors that keep the decision, with or without the facts.
    ``settings`` are what the user chose: k, sigma, queries, seed, alternatives, confidence, time_limit. ``space`` describes the space: kind, fingerprint, neighbors ("independent"
    or "realistic"), n_rows, n_attributes. ``findings`` are codes of findings about columns that occur in the facts: (code, columns).
    """

    instance: Any
    prediction: float
    base: float
    facts: tuple[Fact, ...]
    contributions: np.ndarray
    effects: np.ndarray
    verdict: Verdict
    holds: Share | None
    holds_drawn: Share | None
    holds_law: Share | None
    all: Share | None
    fit: Fit | None
    rows: Rows | None
    output: Output
    proof: Proof
    queries: Queries
    alternatives: tuple[Alternative, ...]
    findings: tuple[tuple[str, tuple[str, ...]], ...]
    settings: Mapping[str, Any]
    space: Mapping[str, Any]
    versions: Mapping[str, str]
