"""Explanation: a short sum that adds up to one prediction, frozen and self-checking."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np

from anchorline._links import call
from anchorline.errors import CertificateError, FormatError, ParameterError
from anchorline.guarantees import Estimate
from anchorline.optimize.problem import Status
from anchorline.result.certificate import Certificate, Verdict
from anchorline.result.frames import frame_in
from anchorline.result.json_format import SCHEMA_VERSION, parsed, sealed
from anchorline.result.verification import Verification
from anchorline.spaces.base import Literal

__all__ = ["Alternative", "Certificate", "Explanation", "Term", "Verdict"]

_PLOTS = ("waterfall", "bars", "alternatives", "regions")


@dataclass(frozen=True, slots=True)
class Term:
    """One summand: a literal and its contribution, in the output's own units."""

    literal: Literal
    contribution: float
    index: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Alternative:
    """Another sum that the evidence cannot distinguish from the explanation, in the output's own units.

    ``excess`` is the amount by which its fidelity error exceeds the explanation's, on rows that found neither.
    """

    support: tuple[int, ...]
    values: tuple[float, ...]
    intercept: float
    objective: float
    excess: Estimate

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Alternative":
        """Read the plain values that the JSON holds."""
        known = {field.name: values[field.name] for field in fields(cls)}
        lists = {name: tuple(known[name]) for name in ("support", "values")}
        return cls(**known | lists | {"excess": Estimate(**known["excess"])})


@dataclass(frozen=True, kw_only=True, eq=False)
class Explanation:
    """A short sum that adds up to one prediction.

    ``intercept + contributions.sum() == prediction``, all in the output's own units; ``contributions`` is dense,
    with one number per literal. ``pairs`` says which two literals each of the last literals speaks about, if there
    are pairs; ``parameters["pairs"]`` is their kind. Where labels are explained, ``label`` is the one at the
    instance, and the sum adds up to 1, which stands for that label (-1 stands for any other). ``fixed`` maps each
    attribute that changed in no neighbor to the reason. ``unseen`` maps each attribute whose value no training row
    has to what is new, and ``values`` each attribute whose literals do not state its value to that value.
    ``neighbors_mean`` is the mean output over the neighbors of the search, or None if an early release made the
    explanation. ``redrawn`` is the share of the neighbors that were drawn again, because they broke the table's
    own rule, or None without a rule. ``parameters`` holds everything needed to repeat it.
    ``alternatives_complete`` is False if the list of alternatives ended at the requested number or at a limit, so
    that more sums may be as good, and None if no list was requested, or if an early release made it. ``warnings``
    say what makes explanations of this model on this table misleading, see `Explainer.check`.
    """

    prediction: float
    intercept: float
    contributions: np.ndarray
    literals: tuple[Literal, ...]
    pairs: tuple[tuple[int, int], ...] = ()
    output: str
    label: str | int | float | bool | None = None
    half_range: float
    instance: tuple[Any, ...]
    fixed: Mapping[str, str] = field(default_factory=dict)
    unseen: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, str] = field(default_factory=dict)
    neighbors_mean: float | None = None
    redrawn: float | None = None
    parameters: Mapping[str, Any]
    certificate: Certificate
    alternatives: tuple[Alternative, ...] = ()
    alternatives_complete: bool | None = None
    warnings: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        contributions = np.array(self.contributions, dtype=np.float64)
        contributions.setflags(write=False)
        object.__setattr__(self, "contributions", contributions)
        for name in ("parameters", "fixed", "unseen", "values"):
            object.__setattr__(self, name, _frozen(getattr(self, name)))
        if contributions.shape != (len(self.literals),):
            raise CertificateError(f"{len(contributions)} contributions for {len(self.literals)} literals.")
        # Terms as large as the output range cannot be summed more exactly than the last bits of that range.
        scale = max(abs(self.prediction), self.half_range)
        residual = abs(self.intercept + contributions.sum() - self.prediction)
        if not residual <= 1e-12 * scale:
            raise CertificateError(f"The terms miss the prediction by {residual:.3g}.")

    def __reduce__(self) -> tuple[Any, ...]:
        return Explanation.from_json, (self.to_json(),)  # exact, and frozen when read

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
    def single_literals(self) -> tuple[Literal, ...]:
        """The literals that are not pairs: one or more per attribute."""
        return self.literals[: len(self.literals) - len(self.pairs)]

    @property
    def scaled(self) -> np.ndarray:
        """Contributions on the scale where the output range is [-1, +1], (d,)."""
        return self.contributions / self.half_range

    @property
    def coef(self) -> np.ndarray:
        """The paper's w: contributions times the signs of the instance (hypercube only); products come last."""
        if not str(self.parameters.get("space", "hypercube:")).startswith("hypercube:"):
            raise AttributeError(
                "coef exists only for instances of -1 and +1. Use `contributions`, one number per literal."
            )
        signs = np.array(self.instance, dtype=np.float64)
        if self.pairs and self.parameters["pairs"] != "parity":
            raise AttributeError(
                "coef exists only for sums of coordinates and of their products. Use `contributions`, one number "
                "per literal."
            )
        products = np.array([signs[i] * signs[j] for i, j in self.pairs], dtype=np.float64)
        return np.asarray(self.contributions * np.concatenate([signs, products]))

    @property
    def literal_shares(self) -> dict[str, float]:
        """The share of indistinguishable sums (this one and `alternatives`) that contain each literal.

        1 means that every listed sum that the evidence allows contains the literal. It is not a probability. If
        the list was cut (see `alternatives_complete`), sums that are not listed do not count.
        """
        sums = [self.support.tolist(), *(list(other.support) for other in self.alternatives)]
        counts = Counter(j for support in sums for j in support)
        return {self.literals[j].text: count / len(sums) for j, count in counts.most_common()}

    @property
    def is_degenerate(self) -> bool:
        """Whether the sum is empty, which can happen for a prediction of zero."""
        return self.certificate.n_terms == 0

    @property
    def is_proved(self) -> bool:
        """Whether it is proven that no other sum of at most k terms fits the sample better."""
        return self.certificate.status is Status.OPTIMAL

    def __str__(self) -> str:
        return str(call("explanation.text", self))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Explanation) and self.to_json() == other.to_json()

    def __hash__(self) -> int:
        return hash(self.to_json())

    def explain_itself(self) -> str:
        """Return what the numbers mean: the starting level, the means beside it, and what a neighbor is."""
        return str(call("explanation.legend", self))

    def as_rule(self) -> str:
        """Return the support as a rule: if these facts hold, how often or how closely the output stays."""
        return str(call("explanation.rule", self))

    def __repr__(self) -> str:
        return (
            f"Explanation({call('printable', self.output)} = {self.prediction:g}, "
            f"{self.certificate.size}, {self.certificate.status.name})"
        )

    @property
    def verdict(self) -> Verdict:
        """Whether the facts explain the output; see docs/guarantees.md."""
        return self.certificate.verdict

    def plot(self, kind: str | None = None, ax: Any = None) -> Any:
        """Draw a "waterfall", "bars", "alternatives" or "regions" on ``ax``, or on new Axes; return the Axes.

        By default, the regions of an image are drawn, and a waterfall of every other explanation.
        """
        if kind is None:
            is_image = str(self.parameters.get("space", "")).startswith("image:")
            kind = "regions" if is_image else "waterfall"
        if kind not in _PLOTS:
            raise ParameterError(f"kind is {kind!r}, but it must be one of {', '.join(_PLOTS)}.")
        return call(f"plot.{kind}", self, ax)

    def to_html(self, frontier: Any = None, *, training_mean: float | None = None, changes: Any = None) -> str:
        """Return one self-contained page without script or network; add a `Frontier` or `Changes` of it.

        ``training_mean`` is the mean output over the training table, see `Explainer.training_mean`; the page marks
        it beside the starting level.
        """
        return str(call("explanation.page", self, frontier, training_mean, changes))

    def _repr_html_(self) -> str:
        return str(call("explanation.fragment", self))

    def verify(
        self, predict: Any, space: Any = None, *, instance: Any = None, seed: int | None = None
    ) -> Verification:
        """Check everything again with the model; see `anchorline.verify.verify`."""
        verification: Verification = call("verify", self, predict, space, instance=instance, seed=seed)
        return verification

    def to_frame(self, backend: Any = "pandas") -> Any:
        """Return the terms as a frame of the given backend, with literal, contribution, index; intercept last."""
        columns: dict[str, list[Any]] = {
            "literal": [term.literal.text for term in self.terms] + ["(intercept)"],
            "contribution": [term.contribution for term in self.terms] + [self.intercept],
            "index": [term.index for term in self.terms] + [-1],
        }
        return frame_in(backend, columns)

    def to_shap(self) -> Any:
        """Return a `shap.Explanation`, for SHAP's own plots; see `anchorline.compat.shap.to_shap`."""
        return call("explanation.to_shap", self)

    def to_json(self) -> str:
        """Return JSON with sorted keys, no NaN, floats that round-trip exactly, and a seal.

        The seal is the SHA-256 of all other members in the canonical form of RFC 8785.
        """
        body = {
            "schema_version": SCHEMA_VERSION,
            "prediction": self.prediction,
            "intercept": self.intercept,
            "contributions": self.contributions.tolist(),
            "literals": [[literal.name, literal.text, literal.held] for literal in self.literals],
            **({"pairs": self.pairs} if self.pairs else {}),
            "output": self.output,
            "label": self.label,
            "half_range": self.half_range,
            "instance": list(self.instance),
            "fixed": self.fixed,
            **({"unseen": self.unseen} if self.unseen else {}),
            **({"values": self.values} if self.values else {}),
            **({} if self.redrawn is None else {"redrawn": self.redrawn}),
            **({"warnings": list(self.warnings)} if self.warnings else {}),
            **({} if self.neighbors_mean is None else {"neighbors_mean": self.neighbors_mean}),
            "parameters": self.parameters,
            "certificate": self.certificate.to_dict(),
            "alternatives": [asdict(other) for other in self.alternatives],
        }
        if self.alternatives_complete is not None:
            body["alternatives_complete"] = self.alternatives_complete
        return sealed(body)

    @classmethod
    def from_json(cls, text: str) -> "Explanation":
        """Read what `to_json` wrote; `FormatError` if it is anything else or was changed."""
        body = parsed(text)
        n_literals = len(body["literals"]) - len(body.get("pairs", []))
        try:
            return cls(
                prediction=float(body["prediction"]),
                intercept=float(body["intercept"]),
                contributions=np.array(body["contributions"], dtype=np.float64),
                literals=tuple(Literal(*texts) for texts in body["literals"]),
                pairs=tuple((i, j) for i, j in body.get("pairs", [])),
                output=body["output"],
                label=body["label"],
                half_range=float(body["half_range"]),
                instance=tuple(body["instance"]),
                fixed=body["fixed"],
                unseen=body.get("unseen", {}),
                values=body.get("values", {}),
                redrawn=body.get("redrawn"),
                neighbors_mean=body.get("neighbors_mean"),
                parameters=body["parameters"],
                certificate=Certificate.from_dict(body["certificate"], body["parameters"], n_literals),
                alternatives=tuple(Alternative.from_dict(other) for other in body["alternatives"]),
                alternatives_complete=body.get("alternatives_complete"),
                warnings=tuple(body.get("warnings", ())),
            )
        except CertificateError as error:
            raise FormatError(f"The explanation contradicts itself: {error}") from error
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise FormatError(f"Not an anchorline explanation: {error!r}") from error


def _frozen(value: Any) -> Any:
    """Read-only all the way down."""
    if isinstance(value, Mapping):
        return MappingProxyType({key: _frozen(below) for key, below in value.items()})
    return tuple(_frozen(below) for below in value) if isinstance(value, (list, tuple)) else value
