"""An explanation: figures and codes, from which every sentence is derived."""

import enum
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from anchorline.errors import CertificateError
from anchorline.facts import KINDS, Fact
from anchorline.result.frames import frame_of
from anchorline.result.json_format import Displayed, is_plain

_ROUNDING = 1e-9  # of shares and of objectives
_SCALES = (None, "log-odds", "margin")


class Verdict(enum.Enum):
    """Whether the facts explain the prediction; see docs/figures.md for the rule."""

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

    ``r2`` is 1 - mean (t - sum)^2 / mean t^2, of the drops t = f(x) - f(z); ``error`` is the root mean square of
    t - sum, ``baseline`` that of t itself. ``mean_output`` is the mean output of neighbors. ``is_approximate``:
    outputs have no known bounds, so that the limits are approximate.
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
class Choices:
    """The choices of an explainer about its model, in plain values, so that it can be made again.

    ``output`` is the label of a class, a pair of labels, the number of a column, the name of the output, or None.
    The others are keywords of `Explainer`; its threshold is that of the `Output`.
    """

    output: Any = None
    output_scale: str | None = None
    task: str | None = None
    classes: tuple[Any, ...] | None = None
    output_range: tuple[float, float] | None = None
    input: str = "auto"

    def __post_init__(self) -> None:
        if isinstance(self.output, list | tuple) and len(self.output) != 2:
            raise CertificateError(f"The output is {self.output!r:.60}, but a difference is that of two classes.")


@dataclass(frozen=True, slots=True)
class Output:
    """What is explained, and what the model decides.

    ``kind`` is "class" (the class that the model names), "threshold", "label" (labels without scores) or "number".
    ``name`` is the class's label or the output's name, ``unit`` its unit ("USD") or "". ``decision`` is the label
    of the model's decision: the class that it names, or "at or above 0.3" / "below 0.3", or None for numbers.
    ``is_probability``: prediction is the probability of class ``name``. ``classes`` are all labels, ``runner_up``
    the label and score of the second most probable of more than two classes. ``scale`` is "log-odds" or "margin"
    if margins are explained. ``low``, ``high`` and ``spread`` (of the middle 90%) are those of outputs on the
    table, or None. ``choices`` are what the explainer was given about its model.
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
    choices: Choices = Choices()

    def __post_init__(self) -> None:
        if self.scale not in _SCALES:  # it is printed as it is
            raise CertificateError(f"The scale is {self.scale!r:.60}.")


@dataclass(frozen=True, slots=True)
class Proof:
    """What is known about the choice of facts, for the moments of the search.

    ``status`` is "proven" (no sum of as many facts fits better by more than 1% of the variance of the drops),
    "limit" (the search stopped) or "numerical". ``objective`` and ``lower_bound`` are mean squared errors on the
    search's moments; ``variance`` that of the drops. ``n_candidates`` facts were offered: all that are related to
    the output.
    """

    status: str
    objective: float
    lower_bound: float
    variance: float
    n_candidates: int


@dataclass(frozen=True, slots=True)
class Queries:
    """How many rows the model was asked about: ``searched`` to find facts, ``measured`` to measure, and the case.

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
class Explanation(Displayed):
    r"""A short sum of facts that adds up exactly to a prediction, and what was measured about it.

    ``prediction = base + contributions.sum()``; contribution :math:`v_j b_j`, effect :math:`v_j`. Facts are sorted
    by the size of their contributions. ``holds`` is the smaller of ``holds_drawn`` (neighbors with the facts) and
    ``holds_law`` (the law's own neighbors that break none, or None if fewer than 5% break none); None for numbers,
    whose ``fit`` decides. ``all`` is the share of all neighbors that keep the decision, with or without the facts;
    for numbers, that differ from the prediction by at most 2% of ``output.spread`` (not at all, if that is None).
    ``settings`` are what the user chose: k, sigma, queries, seed, alternatives, confidence, time_limit. ``space``
    describes the space: kind ("table", "hypercube", "text", "image", "signal"), fingerprint, noun (what facts are
    called: "facts", "words", ...), neighbors ("independent" or "realistic"), n_rows, n_attributes, and names,
    those of the values of the instance: columns of a table, coordinates, regions; of a table also reference
    (whether values come from other rows), held (columns that never change), together (lists of columns that
    change together) and valid (whether a rule of the user forbids some neighbors). ``findings`` are codes of
    findings about columns that occur in the facts: (code, columns).

    Explanations are equal if all their figures are, and are pickled as JSON.
    """

    _KIND: ClassVar[str] = "explanation"

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

    @property
    def coef(self) -> np.ndarray:
        r"""The paper's w on the hypercube, one number per coordinate: :math:`w_j x_j = v_j / 2`."""
        if self.space.get("kind") != "hypercube":
            raise AttributeError(
                "coef exists only for instances of -1 and +1. Use `effects`, one number per fact."
            )
        places = {name: place for place, name in enumerate(self.space["names"])}
        coef = np.zeros(len(self.instance))
        for fact, effect in zip(self.facts, self.effects.tolist(), strict=True):
            place = places[fact.attribute]
            coef[place] = effect / 2 * self.instance[place]
        return coef

    @property
    def is_proven(self) -> bool:
        """Whether it is proven that no sum of as many facts fits better, by more than 1% of the variance."""
        return self.proof.status == "proven"

    def __repr__(self) -> str:
        facts = f"{len(self.facts)} fact{'s' * (len(self.facts) != 1)}"
        return f"Explanation({self.output.name!r}, prediction={self.prediction:g}, {facts}, {self.verdict.value})"

    def details(self) -> str:
        """Return how we know: what an altered copy is, every figure with its limits, effects and proof."""
        from anchorline.render.text import details_text

        return details_text(self)

    def to_html(self, frontier: Any = None, rule: Any = None) -> str:
        """Return one page without scripts or network; add the `Frontier` of the same row, or its `Rule`."""
        from anchorline.render.report import page

        return page(self, frontier, rule)

    def plot(self, kind: Literal["waterfall", "bars", "regions"] | None = None, ax: Any = None) -> Any:
        """Draw a "waterfall", "bars" or "regions" on ``ax``, or on a new figure of pyplot; return the Axes.

        By default, the regions of an image or a signal are drawn, and a waterfall of every other explanation.
        """
        from anchorline.render.pictures import plot_explanation

        return plot_explanation(self, kind, ax)

    def to_frame(self, backend: Any = "pandas") -> Any:
        """Return a frame of the given backend with fact, column, contribution and effect; the base is last."""
        from anchorline.render.statements import fact_text

        said = [(fact_text(fact, self.space), fact.column) for fact in self.facts]
        figures = zip(self.contributions.tolist(), self.effects.tolist(), strict=True)
        rows = [(*words, *numbers) for words, numbers in zip(said, figures, strict=True)]
        kinds = {"fact": "text", "column": "text", "contribution": "number", "effect": "number"}
        return frame_of(backend, kinds, [*rows, ("(base)", None, self.base, None)])

    def to_shap(self, *, content: bool = False) -> Any:
        """Return a `shap.Explanation`, for SHAP's own plots; its values are the contributions.

        ``content=True`` gives values per word of a text, or per pixel of an image, for ``shap.plots.text`` and
        ``image``.
        """
        from anchorline.compat.shap import to_shap

        return to_shap(self, content=content)

    def _contradictions(self) -> Iterator[str]:
        """Yield what figures of an explanation contradict each other."""
        if not self.contributions.shape == self.effects.shape == (len(self.facts),):
            n_facts, n_effects = len(self.facts), len(self.effects)
            yield f"{len(self.contributions)} contributions and {n_effects} effects for {n_facts} facts."
            return
        # Terms as large as the largest cannot be summed more exactly than its last bits.
        scale = max(map(abs, (self.prediction, self.base, *self.contributions.tolist())))
        residual = abs(self.base + float(self.contributions.sum()) - self.prediction)
        if not residual <= 1e-12 * scale:
            yield f"Base and contributions miss the prediction by {residual:.3g}."
        sizes, effects = np.abs(self.contributions), np.abs(self.effects)
        if not (sizes <= effects * (1 + _ROUNDING)).all() or (self.contributions * self.effects < 0).any():
            yield "A contribution is larger than its effect, or has another sign."
        if (np.diff(sizes) > _ROUNDING * scale).any():
            yield "The facts are not sorted by the size of their contributions."
        yield from contradictory_facts(self.facts)
        for other in self.alternatives:
            yield from contradictory_facts(other.facts)
        yield from contradictory_measures(self, is_least=True)
        fit, proof = self.fit, self.proof
        if fit is not None and not (fit.low <= fit.r2 <= fit.high <= 1 and min(fit.error, fit.baseline) >= 0):
            yield f"R2 is {fit.r2!r} with the limits {fit.low!r} to {fit.high!r}."
        if not proof.lower_bound <= proof.objective + _ROUNDING * max(abs(proof.objective), proof.variance):
            yield f"The lower bound {proof.lower_bound!r} exceeds the objective {proof.objective!r}."


def contradictory_facts(facts: Iterable[Fact]) -> Iterator[str]:
    """Yield which facts have other bounds than their kind says, or bounds and values that cannot be compared."""
    for fact in facts:
        stated, values = (fact.low is not None, fact.high is not None), (fact.low, fact.high, fact.value)
        alike = not any(stated) or len({isinstance(each, str) for each in values if each is not None}) == 1
        if stated != KINDS.get(fact.kind) or not all(map(is_plain, values)) or not alike:
            yield f"A fact about {fact.column!r} is of kind {fact.kind!r} with bounds {fact.low!r}, {fact.high!r}."


def contradictory_measures(result: Any, *, is_least: bool) -> Iterator[str]:
    """Yield what shares and rows contradict; with ``is_least``, ``holds`` must be the smaller share."""
    for name in ("holds", "holds_drawn", "holds_law", "all"):
        share = getattr(result, name)
        if share is not None and not (0 <= share.low <= share.value <= share.high <= 1 and share.n >= 0):
            yield f"{name} is {share.value!r} with the limits {share.low!r} to {share.high!r}."
    rows = result.rows
    if rows is not None and not 0 <= (rows.alike or 0) <= rows.with_facts <= rows.looked_at:
        yield f"{rows.alike} of {rows.with_facts} rows with the facts, of {rows.looked_at}."
    both = [share.value for share in (result.holds_drawn, result.holds_law) if share is not None]
    is_said = result.holds is not None
    if is_least and (is_said != bool(both) or (is_said and abs(result.holds.value - min(both)) > _ROUNDING)):
        yield "holds is not the smaller of holds_drawn and holds_law."
