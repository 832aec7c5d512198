"""Explanation and Certificate: frozen, self-checking, versioned JSON."""

import enum
import hashlib
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from anchorline.errors import CertificateError, FormatError, ParameterError
from anchorline.guarantees import Estimate
from anchorline.optimize.problem import Status
from anchorline.result.frames import frame_in
from anchorline.result.json_format import SCHEMA_VERSION, parsed, sealed
from anchorline.spaces.base import Literal

if TYPE_CHECKING:
    from anchorline.verify import Verification

_ESTIMATES = (
    *("fidelity_error", "relevance_error", "baseline_error"),
    *("stability", "baseline_stability", "typical_change", "baseline_change"),
)


@dataclass(frozen=True, slots=True)
class Term:
    """One summand: a literal and what it adds, in the output's own units."""

    literal: Literal
    contribution: float
    index: int


class Verdict(enum.Enum):
    """Whether a reader may rely on the reasons; the value of each member is what it means."""

    TRUSTWORTHY = (
        "While the reasons stay, the decision stays in at least 95% of neighbors; a number moves by less than a "
        "tenth of its range."
    )
    WEAK = "The reasons help, but other things decide too; or too few samples were drawn to tell."
    UNRELIABLE = "The output often changes although the reasons stay: do not rely on this explanation."
    UNKNOWN = "Not measured: ask for a certificate (n_certify)."


# A decision that stays in 19 of 20 cases is what most readers call reliable; 4 of 5, what they call a tendency.
TRUSTWORTHY_STABILITY, WEAK_STABILITY = 0.95, 0.80
# A typical change within a tenth of the output range is read as "about the same"; a quarter is another answer.
TRUSTWORTHY_CHANGE, WEAK_CHANGE = 0.10, 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """What is known about an explanation, and how: three kinds of claim, never mixed.

    On the sample: ``status``, ``objective``, ``lower_bound`` (mean squares on the scale [-1, +1]: fidelity
    errors, or relevance errors where the ``goal`` was "relevance" or "shortest"); ``exhaustive`` says that
    the "sample" was the whole distribution. In the population, all limits together with the chosen
    ``confidence``: ``fidelity_error``, ``relevance_error`` and ``stability``, measured on fresh neighbors
    (None: not measured), ``typical_change``, the root of the relevance error in the output's own units, and
    their baselines, under no condition. By theorem: ``theorem_epsilon``, what the uniform-convergence
    theorem adds to the objective at this sample size (vacuous above 1). ``keeps_values``: the condition was
    that the facts' values stay as they are, not only that the facts hold. ``decision``: what is decided, see
    `Predictor.decision`. ``n_clipped_inside``: outputs clipped while the condition held; with any, what was
    measured is less than the truth. ``answers_checksum`` is a random
    weighted sum of all the model's answers, tied to the parameters.
    """

    status: Status
    goal: str
    objective: float
    lower_bound: float
    anchoring_residual: float
    n_terms: int
    n_facts: int
    n_samples: int
    n_queries: int
    n_clipped: int
    exhaustive: bool
    fidelity_error: Estimate | None = None
    relevance_error: Estimate | None = None
    baseline_error: Estimate | None = None
    stability: Estimate | None = None
    baseline_stability: Estimate | None = None
    typical_change: Estimate | None = None
    baseline_change: Estimate | None = None
    confidence: float
    event_probability: float | None = None
    event_is_literal: bool | None = None
    keeps_values: bool = False
    decision: str | None = None
    n_clipped_inside: int = 0
    theorem_epsilon: float | None = None
    answers_checksum: float
    stopped_because: str | None = None

    @property
    def optimality_gap(self) -> float:
        """How far the objective may be above the best of at most k terms on this sample."""
        return max(0.0, self.objective - self.lower_bound)

    @property
    def relevance_bound(self) -> float | None:
        """What fidelity alone says of relevance: ``min(1, fidelity_error.high / P[A])``."""
        if self.fidelity_error is None or self.event_probability is None:
            return None
        return min(1.0, self.fidelity_error.high / self.event_probability)

    @property
    def verdict(self) -> Verdict:
        """Judge by the bad end of the interval to praise, by the good end to condemn.

        The intervals hold together, so the verdict costs no further failure probability.
        """
        if self.relevance_error is None:
            return Verdict.UNKNOWN
        if self.stability is not None:
            best, worst = 1 - self.stability.high, 1 - self.stability.low
            good, bad = 1 - TRUSTWORTHY_STABILITY, 1 - WEAK_STABILITY
        else:
            best, worst = math.sqrt(self.relevance_error.low), math.sqrt(self.relevance_error.high)
            good, bad = TRUSTWORTHY_CHANGE, WEAK_CHANGE
        if best > bad:
            return Verdict.UNRELIABLE
        # Clipped outputs moved further than was measured, unless what counts is a decision on the raw ones.
        understated = self.n_clipped_inside > 0 and self.stability is None
        return Verdict.TRUSTWORTHY if worst <= good and not understated else Verdict.WEAK

    def details(self) -> str:
        """The figures behind the sentences, and what theory alone says."""
        from anchorline.render.text import details_text  # noqa: PLC0415  pictures come after

        return details_text(self)

    def __str__(self) -> str:
        from anchorline.render.text import certificate_text  # noqa: PLC0415  pictures come after

        return certificate_text(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Alternative:
    """Another sum that this much evidence cannot tell from the explanation, in the output's own units.

    ``excess`` is by how much its fidelity error exceeds the explanation's, on rows that found neither.
    """

    support: tuple[int, ...]
    values: tuple[float, ...]
    intercept: float
    objective: float
    excess: Estimate


@dataclass(frozen=True, kw_only=True, eq=False)
class Explanation:
    """A short sum that adds up to one prediction.

    ``intercept + contributions.sum() == prediction``, all in the output's own units; ``contributions``
    is dense, one a literal. Where labels are explained, ``label`` is the one at the instance, and the sum
    adds up to 1 for it (-1 stands for any other). ``fixed`` tells what never changed in any neighbor, and
    why. ``parameters`` holds everything needed to repeat the
    explanation.
    """

    prediction: float
    intercept: float
    contributions: np.ndarray
    literals: tuple[Literal, ...]
    output: str
    label: str | int | float | bool | None = None
    half_range: float
    instance: tuple[Any, ...]
    fixed: Mapping[str, str] = field(default_factory=dict)
    parameters: Mapping[str, Any]
    certificate: Certificate
    alternatives: tuple[Alternative, ...] = ()

    def __post_init__(self) -> None:
        contributions = np.array(self.contributions, dtype=np.float64)
        contributions.setflags(write=False)
        object.__setattr__(self, "contributions", contributions)
        object.__setattr__(self, "parameters", _frozen(self.parameters))
        object.__setattr__(self, "fixed", _frozen(self.fixed))
        if contributions.shape != (len(self.literals),):
            raise CertificateError(f"{len(contributions)} contributions for {len(self.literals)} literals.")
        # Terms of the size of the output range cannot be summed more exactly than its own last bits.
        scale = max(abs(self.prediction), self.half_range)
        residual = abs(self.intercept + contributions.sum() - self.prediction)
        if not residual <= 1e-12 * scale:
            raise CertificateError(f"The terms miss the prediction by {residual:.3g}.")

    def __reduce__(self) -> tuple[Any, ...]:
        return Explanation.from_json, (self.to_json(),)  # exact, and frozen again

    @cached_property
    def terms(self) -> tuple[Term, ...]:
        """The literals that contribute, largest first."""
        support = self.support
        order = support[np.argsort(-np.abs(self.contributions[support]), kind="stable")]
        return tuple(Term(self.literals[j], float(self.contributions[j]), int(j)) for j in order)

    @property
    def support(self) -> np.ndarray:
        """Indices of the literals that contribute."""
        return np.flatnonzero(self.contributions)

    @property
    def scaled(self) -> np.ndarray:
        """Contributions on the scale where the output range is [-1, +1], (d,)."""
        return self.contributions / self.half_range

    @property
    def coef(self) -> np.ndarray:
        """The paper's w: contributions times the signs of the instance (hypercube only)."""
        if not str(self.parameters.get("space", "hypercube:")).startswith("hypercube:"):
            raise AttributeError("coef is for instances of -1 and +1; here are `contributions`, one a literal.")
        return self.contributions * np.array(self.instance, dtype=np.float64)

    @property
    def literal_shares(self) -> dict[str, float]:
        """In which share of the sums that cannot be told apart (this one and `alternatives`) a literal is.

        1 means: in every sum that the evidence allows, among those listed. It is not a probability.
        """
        sums = [self.support.tolist(), *(list(other.support) for other in self.alternatives)]
        counts = Counter(j for support in sums for j in support)
        return {self.literals[j].text: count / len(sums) for j, count in counts.most_common()}

    @property
    def is_degenerate(self) -> bool:
        """Whether the sum is empty: a prediction of zero, explained by nothing."""
        return self.certificate.n_terms == 0

    @property
    def is_proved(self) -> bool:
        """Whether no other sum of at most k terms fits the sample better, by proof."""
        return self.certificate.status is Status.OPTIMAL

    def __str__(self) -> str:
        from anchorline.render.text import explanation_text  # noqa: PLC0415  pictures come after

        return explanation_text(self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Explanation) and self.to_json() == other.to_json()

    def __hash__(self) -> int:
        return hash(self.to_json())

    def as_rule(self) -> str:
        """The support read as a rule: if these facts hold then the output stays, how often or how far."""
        from anchorline.render.text import if_then  # noqa: PLC0415  pictures come after

        return if_then(self)

    def __repr__(self) -> str:
        from anchorline.render.text import printable  # noqa: PLC0415  pictures come after

        return (
            f"Explanation({printable(self.output)} = {self.prediction:g}, {self.certificate.n_terms} terms, "
            f"{self.certificate.status.name})"
        )

    @property
    def verdict(self) -> Verdict:
        """Whether a reader may rely on the reasons."""
        return self.certificate.verdict

    def plot(self, kind: str = "waterfall", ax: Any = None) -> Any:
        """Draw the sum: "waterfall", "bars" or "alternatives"; on ``ax`` or its own; returns the Axes."""
        from anchorline.render import plot  # noqa: PLC0415  pictures come after

        kinds = {"waterfall": plot.waterfall, "bars": plot.bars, "alternatives": plot.alternatives}
        if kind not in kinds:
            raise ParameterError(f"kind is {kind!r}; needed one of {', '.join(kinds)}.")
        return kinds[kind](self, ax)

    def to_html(self, frontier: Any = None) -> str:
        """One self-contained page: no script, no network; also with a `Frontier` of the same instance."""
        from anchorline.render.html import page  # noqa: PLC0415  pictures come after

        return page(self, frontier)

    def _repr_html_(self) -> str:
        from anchorline.render.html import fragment  # noqa: PLC0415  pictures come after

        return fragment(self)

    def verify(self, predict: Any, space: Any = None, *, seed: int | None = None) -> "Verification":
        """Check everything again with the model; see `anchorline.verify.verify`."""
        from anchorline.verify import verify  # noqa: PLC0415  stands above

        return verify(self, predict, space, seed=seed)

    def to_frame(self, backend: Any = "pandas") -> Any:
        """The terms as a frame of the given backend: literal, contribution, index; intercept last."""
        columns: dict[str, list[Any]] = {
            "literal": [term.literal.text for term in self.terms] + ["(intercept)"],
            "contribution": [term.contribution for term in self.terms] + [self.intercept],
            "index": [term.index for term in self.terms] + [-1],
        }
        return frame_in(backend, columns)

    def to_shap(self) -> Any:
        """A `shap.Explanation`, for SHAP's own plots; see `anchorline.compat.shap.to_shap`."""
        from anchorline.compat.shap import to_shap  # noqa: PLC0415  stands above

        return to_shap(self)

    def to_json(self) -> str:
        """Canonical JSON: sorted keys, no NaN, floats that round-trip exactly, one SHA-256 over the rest."""
        body = {
            "schema_version": SCHEMA_VERSION,
            "prediction": self.prediction,
            "intercept": self.intercept,
            "contributions": self.contributions.tolist(),
            "literals": [[literal.name, literal.text, literal.held] for literal in self.literals],
            "output": self.output,
            "label": self.label,
            "half_range": self.half_range,
            "instance": list(self.instance),
            "fixed": self.fixed,
            "parameters": self.parameters,
            "certificate": asdict(self.certificate) | {"status": self.certificate.status.name},
            "alternatives": [asdict(other) for other in self.alternatives],
        }
        return sealed(body)

    @classmethod
    def from_json(cls, text: str) -> "Explanation":
        """Read what `to_json` wrote; `FormatError` if it is anything else or was changed."""
        body = parsed(text)
        try:
            return cls(
                prediction=float(body["prediction"]),
                intercept=float(body["intercept"]),
                contributions=np.array(body["contributions"], dtype=np.float64),
                literals=tuple(Literal(*texts) for texts in body["literals"]),
                output=body["output"],
                label=body["label"],
                half_range=float(body["half_range"]),
                instance=tuple(body["instance"]),
                fixed=body["fixed"],
                parameters=body["parameters"],
                certificate=_certificate(body["certificate"]),
                alternatives=tuple(_alternative(other) for other in body["alternatives"]),
            )
        except CertificateError as error:
            raise FormatError(f"The explanation contradicts itself: {error}") from error
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise FormatError(f"Not an anchorline explanation: {error!r}") from error


def plain_label(label: Any) -> str | int | float | bool | None:
    """A label as JSON can hold it, which has no infinity."""
    told = label is None or isinstance(label, (str, int)) or (isinstance(label, float) and math.isfinite(label))
    return label if told else str(label)


def texts_digest(literals: Sequence[Literal]) -> str:
    """SHA-256 of what the literals say; part of the parameters, which the checksum is tied to."""
    return hashlib.sha256(
        repr([(literal.name, literal.text, literal.held) for literal in literals]).encode()
    ).hexdigest()


def _frozen(value: Any) -> Any:
    """Read-only all the way down."""
    if isinstance(value, Mapping):
        return MappingProxyType({key: _frozen(below) for key, below in value.items()})
    return tuple(_frozen(below) for below in value) if isinstance(value, (list, tuple)) else value


def _certificate(values: Mapping[str, Any]) -> Certificate:
    known = {field.name: values[field.name] for field in fields(Certificate)}
    measured = {name: Estimate(**known[name]) for name in _ESTIMATES if known[name] is not None}
    return Certificate(**known | measured | {"status": Status[known["status"]]})


def _alternative(values: Mapping[str, Any]) -> Alternative:
    known = {field.name: values[field.name] for field in fields(Alternative)}
    lists = {name: tuple(known[name]) for name in ("support", "values")}
    return Alternative(**known | lists | {"excess": Estimate(**known["excess"])})
