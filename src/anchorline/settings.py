"""Settings: everything a user may choose for one explanation, checked once, written into it."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypedDict

import numpy as np

from anchorline.errors import BudgetError, ParameterError
from anchorline.optimize import METHODS, Limits
from anchorline.sampling import flip_probability_of

SAMPLINGS = ("auto", "draw", "enumerate")
AUTO_MOST_QUERIES = 200_000  # where `n_samples="auto"` gives up, unless max_queries says otherwise


class Keywords(TypedDict, total=False):
    """What can be typed after the instance in every `explain`."""

    k: int
    sigma: float
    flip_probability: float | None
    n_samples: int | Literal["auto"]
    n_certify: int | None
    tolerance: float
    confidence: float
    max_queries: int | None
    sampling: str
    solver: str
    time_limit: float | None
    node_limit: int | None
    box: float | None
    seed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The parameters of one explanation; see `anchorline.explain` for what they mean."""

    k: int = 5
    flip_probability: float = 0.2689414213699951
    n_samples: int | Literal["auto"] = 5000
    n_certify: int | None = None
    tolerance: float = 0.02
    confidence: float = 0.95
    max_queries: int | None = None
    sampling: str = "auto"
    solver: str = "exact"
    time_limit: float | None = None
    node_limit: int | None = None
    box: float | None = 1.0
    seed: int = 0

    @classmethod
    def of(cls, *, sigma: float = 1.0, flip_probability: float | None = None, **keywords: Any) -> "Settings":
        """Check what the user typed; sigma becomes a flip probability."""
        unknown = set(keywords) - {name for name in cls.__dataclass_fields__ if name != "flip_probability"}
        if unknown:
            raise TypeError(f"explain() got an unexpected keyword {sorted(unknown)[0]!r}.")
        if flip_probability is None:
            flip_probability = flip_probability_of(sigma)
        return cls(flip_probability=flip_probability, **keywords)

    def __post_init__(self) -> None:
        for name, least in (("k", 1), ("seed", 0), ("n_samples", 1)):
            if not (name == "n_samples" and self.n_samples == "auto"):
                _check_whole(name, getattr(self, name), least)
        for name, least in (("n_certify", 0), ("max_queries", 1), ("node_limit", 0)):
            if getattr(self, name) is not None:
                _check_whole(name, getattr(self, name), least)
        for name in ("flip_probability", "tolerance", "confidence"):
            _check_share(name, getattr(self, name))
        _check_optional("time_limit", self.time_limit, 0.0)
        _check_optional("box", self.box, 1e-9)
        for name, known in (("solver", METHODS), ("sampling", SAMPLINGS)):
            if getattr(self, name) not in known:
                raise ParameterError(f"{name} is {getattr(self, name)!r}; needed one of {', '.join(known)}.")
        if self.n_certify == 1:
            raise ParameterError("n_certify is 1; needed 0 (no certificate), or at least 2.")
        self._check_budget()

    def _check_budget(self) -> None:
        """Refuse what cannot fit into max_queries before the model is asked anything."""
        if self.max_queries is None or self.n_samples == "auto":
            return
        needed = 1 + self.n_samples + (self.n_certify or 0)
        if self.sampling == "draw" and needed > self.max_queries:
            raise BudgetError(
                f"{needed} queries needed (x, {self.n_samples} samples, {self.n_certify or 0} to certify), "
                f"max_queries is {self.max_queries}. Lower n_samples or n_certify, or raise max_queries."
            )

    @property
    def n_fresh(self) -> int:
        """Neighbors to certify with: as asked, else as many as searched, as far as max_queries allows."""
        if self.n_certify is not None or self.n_samples == "auto":
            return self.n_certify or 0
        left = self.n_samples if self.max_queries is None else self.max_queries - 1 - self.n_samples
        return min(self.n_samples, left) if left >= 2 else 0

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


def _check_whole(name: str, value: Any, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        also = ", or 'auto'" if name == "n_samples" else ""
        raise ParameterError(f"{name} is {value!r}; needed a whole number >= {least}{also}.")


def _check_share(name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float, np.floating)) or not 0 < value < 1:
        raise ParameterError(f"{name} is {value!r}; needed a number between 0 and 1.")


def _check_optional(name: str, value: Any, least: float) -> None:
    if value is None:
        return
    if not isinstance(value, (int, float, np.number)) or not (math.isfinite(value) and value >= least):
        raise ParameterError(f"{name} is {value!r}; needed a finite number >= {least:g}, or None.")
