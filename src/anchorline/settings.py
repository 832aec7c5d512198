"""Settings: everything a user may choose for one explanation, checked once, written into it."""

import difflib
import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, TypedDict

import numpy as np

from anchorline.errors import BudgetError, ParameterError
from anchorline.optimize import METHODS, Limits
from anchorline.search.sampling import flip_probability_of

SAMPLINGS = ("auto", "draw", "enumerate")
NODE_LIMIT = 10_000  # of the exact search: seconds to a minute; the paper's tasks need at most 1,600
N_SAMPLES = {
    "fidelity": 5000,
    "relevance": 20_000,
    "shortest": 20_000,
}  # by objective: ratios over a small event need more rows
MAX_FRESH = 10_000  # a stability of 97% is then known to within half a percent; ask for more by n_certify
AUTO_MIN_QUERIES = 16  # below, nothing is left to certify with
_MAX_CONFIDENCE = 1 - 1e-9  # shares of less would round to a confidence of 1
AUTO_MAX_QUERIES = 200_000  # where `n_samples="auto"` gives up, unless max_queries says otherwise


class Keywords(TypedDict, total=False):
    """What can be typed after the instance in every `explain`."""

    k: int
    objective: str
    sigma: float
    flip_probability: float | None
    n_samples: int | Literal["auto"] | None
    n_certify: int | None
    tolerance: float
    confidence: float
    max_queries: int | None
    sampling: str
    solver: str
    time_limit: float | None
    node_limit: int | None
    box: float | None
    alternatives: int
    seed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The parameters of one explanation; see `anchorline.explain` for what they mean."""

    k: int = 5
    objective: str = "fidelity"
    max_relevance_error: float | None = None
    flip_probability: float = 0.2689414213699951
    n_samples: int | Literal["auto"] = 5000
    n_certify: int | None = None
    tolerance: float = 0.02
    confidence: float = 0.95
    max_queries: int | None = None
    sampling: str = "auto"
    solver: str = "exact"
    time_limit: float | None = None
    node_limit: int | None = NODE_LIMIT
    box: float | None = 1.0
    alternatives: int = 0
    seed: int = 0

    @classmethod
    def from_keywords(
        cls, *, sigma: Any = ..., flip_probability: float | None = None, **keywords: Any
    ) -> "Settings":
        """Check what the user typed; sigma becomes a flip probability."""
        known = [*cls.__dataclass_fields__, "sigma"]
        for name in keywords:
            if name not in known:
                near = difflib.get_close_matches(name, known, 1)
                hint = f"Did you mean {near[0]!r}?" if near else f"Known are {', '.join(sorted(known))}."
                raise TypeError(f"explain() got an unexpected keyword {name!r}. {hint}")
        if flip_probability is None:
            flip_probability = flip_probability_of(1.0 if sigma is ... else sigma)
        elif sigma is not ...:
            raise ParameterError(
                f"sigma={sigma!r} and flip_probability={flip_probability!r} say the same: give one."
            )
        if keywords.get("n_samples") is None:
            keywords["n_samples"] = N_SAMPLES.get(keywords.get("objective", "fidelity"), 0)
        return cls(flip_probability=flip_probability, **keywords)

    def __post_init__(self) -> None:
        self._cast()
        for name, known in (("objective", tuple(N_SAMPLES)), ("solver", METHODS), ("sampling", SAMPLINGS)):
            if getattr(self, name) not in known:
                raise ParameterError(f"{name} is {getattr(self, name)!r}; needed one of {', '.join(known)}.")
        for name, least in (("k", 1), ("seed", 0), ("alternatives", 0), ("n_samples", 1)):
            if not (name == "n_samples" and self.n_samples == "auto"):
                _check_whole(name, getattr(self, name), least)
        for name, least in (("n_certify", 0), ("max_queries", 1), ("node_limit", 0)):
            if getattr(self, name) is not None:
                _check_whole(name, getattr(self, name), least)
        for name in ("flip_probability", "tolerance", "confidence"):
            _check_share(name, getattr(self, name))
        if self.confidence > _MAX_CONFIDENCE:
            raise ParameterError(f"confidence is {self.confidence!r}; needed at most 1 - 1e-9: it is shared out.")
        _check_optional("time_limit", self.time_limit, 0.0)
        _check_optional("box", self.box, 1e-9)
        if self.n_certify == 1:
            raise ParameterError("n_certify is 1; needed 0 (no certificate), or at least 2.")
        self._check_together()

    def _cast(self) -> None:
        """NumPy's numbers as Python's: they are written as JSON."""
        for name in self.__dataclass_fields__:
            value = getattr(self, name)
            if isinstance(value, np.generic):
                object.__setattr__(self, name, value.item())

    def _check_together(self) -> None:
        """Refuse what would otherwise be ignored in silence."""
        if (self.objective == "shortest") != (self.max_relevance_error is not None):
            raise ParameterError("max_relevance_error goes with objective='shortest', and is needed there.")
        if self.max_relevance_error is not None:
            _check_share("max_relevance_error", self.max_relevance_error)
        if self.objective != "fidelity" and (self.n_samples == "auto" or self.solver != "exact"):
            raise ParameterError(f"objective={self.objective!r} needs n_samples as a number, and solver='exact'.")
        if self.alternatives and (self.objective != "fidelity" or self.n_samples == "auto"):
            raise ParameterError(
                "alternatives compares fidelity: needed objective='fidelity', n_samples a number."
            )
        if self.n_samples == "auto" and (self.n_certify is not None or self.solver != "exact"):
            raise ParameterError("n_samples='auto' measures until `tolerance`: leave n_certify and solver out.")
        if self.n_samples == "auto" and self.max_queries is not None and self.max_queries < AUTO_MIN_QUERIES:
            raise BudgetError(
                f"max_queries is {self.max_queries}; n_samples='auto' needs at least {AUTO_MIN_QUERIES}. "
                "Raise it, or give n_samples as a number."
            )

    @property
    def n_fresh(self) -> int:
        """Neighbors to certify with: as asked, else as many as searched, within 10,000 and max_queries."""
        if self.n_certify is not None or self.n_samples == "auto":
            return self.n_certify or 0
        most = min(self.n_samples, MAX_FRESH)
        if self.max_queries is not None:
            most = min(most, self.max_queries - 1 - self.n_samples - self.n_choose)
        return most if most >= 2 else 0

    @property
    def n_choose(self) -> int:
        """Neighbors on which sums found by the search are compared."""
        if self.n_samples == "auto":
            return 0  # as many as it takes
        half = -(-self.n_samples // 2)
        return half if self.objective == "relevance" or self.alternatives else 0

    @property
    def certificate_confidence(self) -> float:
        """Of the certificate's limits; alternatives, where asked for, take half of what may fail."""
        return 1 - (1 - self.confidence) / 2 if self.alternatives else self.confidence

    @property
    def limits(self) -> Limits:
        """When the solver stops early."""
        return Limits(self.time_limit, self.node_limit)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Settings":
        """Read `to_dict` again; other keys are left alone."""
        return cls(**{name: values[name] for name in cls.__dataclass_fields__})


def show_keywords(function: Callable[..., Any]) -> None:
    """Put every keyword of `Settings`, with its default, into the signature that help() and editors show."""
    signature = inspect.signature(function)
    shown = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
    defaults = {"sigma": 1.0} | {field.name: field.default for field in fields(Settings)}
    defaults |= {"flip_probability": None, "n_samples": None}
    named = {p.name for p in shown} | {"max_relevance_error"}
    shown += [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default)
        for name, default in defaults.items()
        if name not in named
    ]
    function.__signature__ = signature.replace(parameters=shown)  # type: ignore[attr-defined]


def _check_whole(name: str, value: Any, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        also = ", or 'auto'" if name == "n_samples" else ""
        example = {"k": 5, "n_samples": 5000, "seed": 0}.get(name, max(least, 1))
        raise ParameterError(
            f"{name} is {value!r}; needed a whole number >= {least}{also}. Type {name}={example}."
        )


def _check_share(name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < 1:
        raise ParameterError(f"{name} is {value!r}; needed a number between 0 and 1.")


def _check_optional(name: str, value: Any, least: float) -> None:
    if value is None:
        return
    if (
        isinstance(value, bool)
        or not isinstance(value, (int, float))
        or not (math.isfinite(value) and value >= least)
    ):
        raise ParameterError(f"{name} is {value!r}; needed a finite number >= {least:g}, or None.")
