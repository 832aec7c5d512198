"""Explanation and Certificate: frozen, self-checking, versioned JSON."""

import enum
import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from anchorline.errors import CertificateError, FormatError
from anchorline.guarantees import Estimate
from anchorline.literals import Literal
from anchorline.optimize.solution import Status

if TYPE_CHECKING:
    from anchorline.verify import Verification

SCHEMA_VERSION = 1
_ESTIMATES = (
    *("fidelity_error", "relevance_error", "baseline_error"),
    *("stability", "baseline_stability", "typical_change", "baseline_change"),
)
MAX_JSON_BYTES = 64 * 2**20


@dataclass(frozen=True, slots=True)
class Term:
    """One summand: a literal and what it adds, in the output's own units."""

    literal: Literal
    contribution: float
    index: int


class Verdict(enum.Enum):
    """Whether a reader may rely on the reasons; the value of each member is what it means."""

    TRUSTWORTHY = "While the facts hold, the output hardly ever changes."
    WEAK = "The facts help, but other things decide too; or too few samples were drawn to tell."
    UNRELIABLE = "The output often changes although the facts hold: do not rely on this explanation."
    UNKNOWN = "Not measured: ask for a certificate (n_certify)."


# A decision that stays in 19 of 20 cases is what most readers call reliable; 4 of 5, what they call a tendency.
TRUSTWORTHY_STABILITY, WEAK_STABILITY = 0.95, 0.80
# A typical change within a tenth of the output range is read as "about the same"; a quarter is another answer.
TRUSTWORTHY_CHANGE, WEAK_CHANGE = 0.10, 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """What is known about an explanation, and how: three kinds of claim, never mixed.

    On the sample: ``status``, ``objective``, ``lower_bound`` (mean squares on the scale [-1, +1]);
    ``exhaustive`` says that the "sample" was the whole distribution. In the population, all limits
    together with the chosen confidence: ``fidelity_error``, ``relevance_error``, ``baseline_error`` and
    ``stability``, measured on fresh neighbors (None: not measured; ``baseline``: under no condition), and
    ``typical_change``, the root of the relevance error in the output's own units. By theorem:
    ``theorem_epsilon``, what the uniform-convergence theorem adds to the objective at this sample size
    (vacuous above 1). ``answers_checksum`` is a random weighted sum of all the model's answers, tied to
    the parameters.
    """

    status: Status
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
    theorem_epsilon: float
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
        return Verdict.TRUSTWORTHY if worst <= good else Verdict.WEAK

    def __str__(self) -> str:
        from anchorline.render.text import certificate_text  # noqa: PLC0415  pictures come after

        return certificate_text(self)


@dataclass(frozen=True, kw_only=True, eq=False)
class Explanation:
    """A short sum that adds up to one prediction.

    ``intercept + contributions.sum() == prediction``, all in the output's own units; ``contributions``
    is dense, one a literal. ``parameters`` holds everything needed to repeat the explanation.
    """

    prediction: float
    intercept: float
    contributions: np.ndarray
    literals: tuple[Literal, ...]
    output: str
    half_range: float
    instance: tuple[Any, ...]
    parameters: Mapping[str, Any]
    certificate: Certificate

    def __post_init__(self) -> None:
        contributions = np.array(self.contributions, dtype=np.float64)
        contributions.setflags(write=False)
        object.__setattr__(self, "contributions", contributions)
        residual = abs(self.intercept + contributions.sum() - self.prediction)
        if len(self.literals) != len(contributions):
            raise CertificateError(f"{len(contributions)} contributions for {len(self.literals)} literals.")
        if not residual <= 1e-12 * max(1.0, abs(self.prediction)):
            raise CertificateError(f"The terms miss the prediction by {residual:.3g}.")

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
        return self.contributions * np.array(self.instance, dtype=np.float64)

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

    def __repr__(self) -> str:
        return (
            f"Explanation({self.output} = {self.prediction:g}, {self.certificate.n_terms} terms, "
            f"{self.certificate.status.name})"
        )

    @property
    def verdict(self) -> Verdict:
        """Whether a reader may rely on the reasons."""
        return self.certificate.verdict

    def verify(self, predict: Any, space: Any = None) -> "Verification":
        """Check everything again with the model; see `anchorline.verify.verify`."""
        from anchorline.verify import verify  # noqa: PLC0415  stands above

        return verify(self, predict, space)

    def to_frame(self, backend: Any = "pandas") -> Any:
        """The terms as a frame of the given backend: literal, contribution, index; intercept last."""
        import narwhals as nw  # noqa: PLC0415  heavy

        columns = {
            "literal": [term.literal.text for term in self.terms] + ["(intercept)"],
            "contribution": [term.contribution for term in self.terms] + [self.intercept],
            "index": [term.index for term in self.terms] + [-1],
        }
        return nw.from_dict(columns, backend=backend).to_native()

    def to_json(self) -> str:
        """Canonical JSON: sorted keys, no NaN, floats that round-trip exactly, one SHA-256 over the rest."""
        body = {
            "schema_version": SCHEMA_VERSION,
            "prediction": self.prediction,
            "intercept": self.intercept,
            "contributions": self.contributions.tolist(),
            "literals": [[literal.name, literal.text] for literal in self.literals],
            "output": self.output,
            "half_range": self.half_range,
            "instance": list(self.instance),
            "parameters": dict(self.parameters),
            "certificate": asdict(self.certificate) | {"status": self.certificate.status.name},
        }
        return canonical_json(body | {"sha256": _digest(body)})

    @classmethod
    def from_json(cls, text: str) -> "Explanation":
        """Read what `to_json` wrote; `FormatError` if it is anything else or was changed."""
        body = _parsed(text)
        try:
            return cls(
                prediction=float(body["prediction"]),
                intercept=float(body["intercept"]),
                contributions=np.array(body["contributions"], dtype=np.float64),
                literals=tuple(Literal(name, statement) for name, statement in body["literals"]),
                output=body["output"],
                half_range=float(body["half_range"]),
                instance=tuple(body["instance"]),
                parameters=body["parameters"],
                certificate=_certificate(body["certificate"]),
            )
        except CertificateError as error:
            raise FormatError(f"The explanation contradicts itself: {error}") from error
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise FormatError(f"Not an anchorline explanation: {error!r}") from error


def schema() -> dict[str, Any]:
    """The JSON Schema of `Explanation.to_json`, as shipped."""
    from importlib import resources  # noqa: PLC0415  pulls in zipfile and tempfile

    text = resources.files("anchorline").joinpath("schemas/explanation-1.json").read_text(encoding="utf-8")
    parsed: dict[str, Any] = json.loads(text)
    return parsed


def _certificate(values: Mapping[str, Any]) -> Certificate:
    known = {field.name: values[field.name] for field in fields(Certificate)}
    measured = {name: Estimate(**known[name]) for name in _ESTIMATES if known[name] is not None}
    return Certificate(**known | measured | {"status": Status[known["status"]]})


def canonical_json(body: Mapping[str, Any]) -> str:
    """One text for one content: sorted keys, no spaces, no NaN."""
    return json.dumps(body, sort_keys=True, separators=(",", ":"), allow_nan=False, ensure_ascii=False)


def _digest(body: Mapping[str, Any]) -> str:
    return hashlib.sha256(canonical_json(body).encode()).hexdigest()


def _parsed(text: str) -> dict[str, Any]:
    if not isinstance(text, str):
        raise FormatError(f"Got {type(text).__name__}; needed the text that `to_json` returns.")
    if len(text) > MAX_JSON_BYTES:
        raise FormatError(f"The text has {len(text)} characters; at most {MAX_JSON_BYTES} are read.")
    try:
        body = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise FormatError(f"Not JSON: {error}") from error
    if not isinstance(body, dict) or body.get("schema_version") != SCHEMA_VERSION:
        found = body.get("schema_version") if isinstance(body, dict) else type(body).__name__
        raise FormatError(f"schema_version is {found!r}; this release reads {SCHEMA_VERSION}.")
    claimed = body.pop("sha256", None)
    try:
        digest = _digest(body)
    except ValueError as error:
        raise FormatError(f"Not canonical JSON: {error}") from error
    if claimed != digest:
        raise FormatError("The SHA-256 does not fit the text: it was changed or cut.")
    missing = {"certificate", "parameters", "literals"} - set(body)
    if missing or not isinstance(body["certificate"], dict):
        raise FormatError(f"Not an anchorline explanation: {', '.join(sorted(missing)) or 'certificate'} missing.")
    return body
