"""Settings: everything a user may choose for one explanation, checked once and recorded with it."""

import inspect
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, TypedDict

import numpy as np

from anchorline.errors import BudgetError, ParameterError, unknown_keyword
from anchorline.optimize import METHODS, Limits

SAMPLINGS = ("auto", "draw", "enumerate", "leaves")
PAIRS = ("and", "parity")
MOMENTS = ("sample", "known")
_NODES_AND_LITERALS = 2 * 10**7  # the most that the default limit of nodes, times the literals, may be
NODE_LIMIT = 10_000  # of the exact search, which takes seconds to a minute; the paper's tasks need at most 1,600
N_SAMPLES = {
    "fidelity": 5000,
    "relevance": 20_000,
    "shortest": 20_000,
}  # by objective, because ratios over a small event need more rows
MAX_FRESH = 10_000  # gives a stability of 97% to within half a percent; n_certify raises it
AUTO_MIN_QUERIES = 16  # with fewer, no query is left for the certificate
_MIN_PROBABILITY = 1e-300  # beyond sigma = 690 nothing is ever flipped anyway
_MAX_CONFIDENCE = 1 - 1e-9  # when split further, a larger one would round to 1
MIN_BUDGET = 32  # with fewer, search and certificate are not worth their queries
PRAISED = 0.95  # the share of neighbors in which an output must stay for the best verdict; see guarantees/verdicts
AUTO_MAX_QUERIES = 200_000  # `n_samples="auto"` stops here unless max_queries is given


class Keywords(TypedDict, total=False):
    """The keywords of every `explain`."""

    k: int
    objective: str
    sigma: float
    flip_probability: float | None
    n_samples: int | Literal["auto"] | None
    n_certify: int | None
    tolerance: float
    confidence: float
    budget: int | None
    max_queries: int | None
    moments: Literal["sample", "known"]
    sampling: str
    solver: str
    time_limit: float | None
    node_limit: int | None
    box: float | None
    alternatives: int
    keep_noise: bool
    pairs: Literal["and", "parity"] | None
    seed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The parameters of one explanation; `anchorline.explain` describes them."""

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
    keep_noise: bool = False
    pairs: Literal["and", "parity"] | None = None
    budget: int | None = None
    moments: Literal["sample", "known"] = "sample"
    seed: int = 0

    @classmethod
    def from_keywords(
        cls, *, sigma: Any = ..., flip_probability: float | None = None, **keywords: Any
    ) -> "Settings":
        """Check the keywords that the user typed; sigma becomes a flip probability, and a budget is split."""
        cls.check_names(keywords)
        keywords = _with_split_budget(keywords)
        if flip_probability is None:
            flip_probability = flip_probability_of(1.0 if sigma is ... else sigma)
        elif sigma is not ...:
            raise ParameterError(
                f"sigma={sigma!r} and flip_probability={flip_probability!r} set the same parameter. Pass "
                "only one of them."
            )
        if keywords.get("n_samples") is None:
            keywords["n_samples"] = N_SAMPLES.get(keywords.get("objective", "fidelity"), 0)
        return cls(flip_probability=flip_probability, **keywords)

    @classmethod
    def check_names(cls, given: Iterable[str], also: Iterable[str] = ()) -> None:
        """Raise `TypeError` for the first keyword that neither the settings have nor ``also`` lists."""
        known = [*cls.__dataclass_fields__, "sigma", *also]
        for name in given:
            if name not in known:
                raise unknown_keyword("explain", name, known)

    def __post_init__(self) -> None:
        self._cast()
        choices = {"objective": tuple(N_SAMPLES), "solver": METHODS, "sampling": SAMPLINGS, "moments": MOMENTS}
        for name, known in choices.items():
            if getattr(self, name) not in known:
                raise ParameterError(
                    f"{name} is {getattr(self, name)!r}, but it must be one of {', '.join(known)}."
                )
        for name, least in (("k", 1), ("seed", 0), ("alternatives", 0), ("n_samples", 1)):
            if not (name == "n_samples" and self.n_samples == "auto"):
                _check_whole(name, getattr(self, name), least)
        for name, least in (("n_certify", 0), ("max_queries", 1), ("node_limit", 0), ("budget", MIN_BUDGET)):
            if getattr(self, name) is not None:
                _check_whole(name, getattr(self, name), least)
        for name in ("flip_probability", "tolerance", "confidence"):
            _check_share(name, getattr(self, name))
        if self.confidence > _MAX_CONFIDENCE:
            raise ParameterError(
                f"confidence is {self.confidence!r}, but it must be at most 1 - 1e-9, because several limits "
                "share it."
            )
        if not isinstance(self.keep_noise, bool):
            raise ParameterError(f"keep_noise is {self.keep_noise!r}, but it must be True or False.")
        _check_optional("time_limit", self.time_limit, 0.0)
        _check_optional("box", self.box, 1e-9)
        if self.n_certify == 1:
            raise ParameterError("n_certify is 1, but it must be 0, which skips the certificate, or at least 2.")
        self._check_together()
        if self.pairs is not None:
            self._check_pairs()
        if self.moments == "known":
            self._check_moments()

    def _cast(self) -> None:
        """Convert NumPy's numbers to Python's, because settings are written as JSON."""
        for name in self.__dataclass_fields__:
            value = getattr(self, name)
            if isinstance(value, np.generic):
                object.__setattr__(self, name, value.item())

    def _check_together(self) -> None:
        """Raise for combinations that would otherwise be ignored in silence."""
        if (self.objective == "shortest") != (self.max_relevance_error is not None):
            raise ParameterError("max_relevance_error is needed with objective='shortest', and only there.")
        if self.max_relevance_error is not None:
            _check_share("max_relevance_error", self.max_relevance_error)
        if self.objective != "fidelity" and (self.n_samples == "auto" or self.solver != "exact"):
            raise ParameterError(f"objective={self.objective!r} needs a number for n_samples, and solver='exact'.")
        if self.alternatives and (self.objective != "fidelity" or self.n_samples == "auto"):
            raise ParameterError(
                "alternatives compares fidelity errors, so it needs objective='fidelity' and a number for "
                "n_samples."
            )
        if self.n_samples == "auto" and (self.n_certify is not None or self.solver != "exact"):
            raise ParameterError(
                "n_samples='auto' measures until `tolerance` is reached. Leave n_certify and solver out."
            )
        if self.n_samples == "auto" and self.max_queries is not None and self.max_queries < AUTO_MIN_QUERIES:
            raise BudgetError(
                f"max_queries is {self.max_queries}; n_samples='auto' needs at least {AUTO_MIN_QUERIES}. "
                "Raise max_queries, or pass a number for n_samples."
            )

    def _check_pairs(self) -> None:
        """Raise for an unknown kind of pairs, and for what the search with pairs cannot do."""
        if self.pairs not in PAIRS:
            raise ParameterError(
                f"pairs is {self.pairs!r}, but it must be 'and', 'parity' or None. Type pairs='and'."
            )
        needed = {"objective": "fidelity", "solver": "exact", "alternatives": 0}
        for name, value in needed.items():
            if getattr(self, name) != value:
                raise ParameterError(
                    f"pairs={self.pairs!r} was given with {name}={getattr(self, name)!r}, but pairs need "
                    f"{name}={value!r}. Leave out {name} or pairs."
                )
        if self.n_samples == "auto":
            raise ParameterError(
                f"pairs={self.pairs!r} was given with n_samples='auto', but pairs need a number. "
                "Type, for example, n_samples=5000."
            )
        if self.k == 1:
            raise ParameterError(
                f"pairs={self.pairs!r} was given with k=1, but a pair counts as two terms. Type k=5."
            )

    def _check_moments(self) -> None:
        """Raise for searches that need the rows themselves, or other moments than those of single flips."""
        if self.objective != "fidelity" or self.pairs is not None or self.n_samples == "auto":
            raise ParameterError(
                "moments='known' was given with an objective other than 'fidelity', with pairs, or with "
                "n_samples='auto', which need the sample itself. Leave out moments."
            )

    @property
    def needs_rows(self) -> bool:
        """Whether sums over the search sample do not suffice: for a choice, pairs, or what a budget measures."""
        return self.objective != "fidelity" or self.pairs is not None or self.budget is not None

    @property
    def n_wide(self) -> int:
        """Number of fresh neighbors that are drawn freely; in the others, the facts hold.

        With a budget they are fewer, because the search sample also shows how often the output stays anyway.
        """
        return self.n_fresh // 2 if self.budget is None else max(1, self.n_fresh // 4)

    @property
    def n_fresh(self) -> int:
        """Number of neighbors to certify with, by default as many as searched, within 10,000 and max_queries."""
        if self.n_certify is not None or self.n_samples == "auto":
            return self.n_certify or 0
        most = min(self.n_samples, MAX_FRESH)
        if self.max_queries is not None:
            most = min(most, self.max_queries - 1 - self.n_samples - self.n_choose)
        return most if most >= 2 else 0

    @property
    def n_fresh_without_search(self) -> int:
        """Number of neighbors to certify with if the search takes none."""
        if self.n_certify is not None:
            return self.n_certify
        most = MAX_FRESH if self.n_samples == "auto" else min(self.n_samples, MAX_FRESH)
        most = most if self.max_queries is None else min(most, self.max_queries - 1)
        return most if most >= 2 else 0

    @property
    def n_choose(self) -> int:
        """Number of neighbors on which the sums that the search found are compared."""
        if self.n_samples == "auto":
            return 0  # not fixed: neighbors are drawn until the comparison is clear
        half = -(-self.n_samples // 2)
        return half if self.objective == "relevance" or self.alternatives else 0

    @property
    def certificate_confidence(self) -> float:
        """Confidence of the certificate's limits; alternatives take half of the failure probability."""
        return 1 - (1 - self.confidence) / 2 if self.alternatives else self.confidence

    def nodes_for(self, n_literals: int) -> int | None:
        """Return the limit of nodes; the default falls above 2,000 literals, because a node then takes longer.

        Examples
        --------
        >>> Settings().nodes_for(20), Settings().nodes_for(10_000), Settings(node_limit=50_000).nodes_for(10_000)
        (10000, 2000, 50000)
        """
        if self.node_limit != NODE_LIMIT:
            return self.node_limit
        return min(NODE_LIMIT, _NODES_AND_LITERALS // max(1, n_literals))

    @property
    def limits(self) -> Limits:
        """The limits at which the solver stops early."""
        return Limits(self.time_limit, self.node_limit)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON; what the first release did not have only if it is asked for."""
        values = {
            name: getattr(self, name) for name in self.__dataclass_fields__
        }  # asdict takes ten times as long
        return {name: value for name, value in values.items() if _ADDED.get(name, ...) != value}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Settings":
        """Read the result of `to_dict`; other keys are ignored. The first release always kept noise."""
        values = {"keep_noise": True, **_ADDED, **values}
        return cls(**{name: values[name] for name in cls.__dataclass_fields__})


_ADDED = {"pairs": None, "budget": None, "moments": "sample"}  # recorded if they have another value


def _with_split_budget(keywords: dict[str, Any]) -> dict[str, Any]:
    """Return the keywords with a budget split between search and certificate.

    With so few rows, the moments of flips are taken as known where the search allows it.
    """
    budget = keywords.get("budget")
    if budget is None:
        return keywords
    _check_whole("budget", budget, MIN_BUDGET)
    for name in ("n_samples", "n_certify", "max_queries"):
        if keywords.get(name) is not None:
            raise ParameterError(
                f"budget={budget} and {name}={keywords[name]!r} were given, but the budget sets {name}. Pass "
                "only one of them."
            )
    if keywords.get("sampling") == "leaves":
        raise ParameterError(
            "sampling is 'leaves', but reading trees takes queries that no budget counts. Leave out budget."
        )
    objective, pairs = keywords.get("objective", "fidelity"), keywords.get("pairs")
    chooses = objective == "relevance" or bool(keywords.get("alternatives"))
    n_samples, n_certify = split_budget(budget, keywords.get("confidence", 0.95), chooses=chooses)
    split = {"n_samples": n_samples, "n_certify": n_certify, "max_queries": budget}
    known = objective == "fidelity" and pairs is None
    return {"moments": "known" if known else "sample", **keywords, **split}


def split_budget(budget: int, confidence: float = 0.95, *, chooses: bool = False) -> tuple[int, int]:
    r"""Return how many of the queries search and how many certify; one query is about the instance itself.

    The certificate takes half if that may be enough to praise: if the output stays in all n neighbors in which
    the facts hold (three of four), its share is above 95% from :math:`n = \ln(\delta/10) / \ln 0.95` on.
    Otherwise no split decides, and the certificate takes a quarter. If sums are compared on further neighbors
    (``chooses``), the search shares its part with them, two to one.

    Examples
    --------
    >>> split_budget(300), split_budget(128), split_budget(300, chooses=True)
    ((150, 149), (96, 31), (100, 149))
    """
    needed = 4 / 3 * math.log((1 - confidence) / 10) / math.log(PRAISED)
    half, quarter = (budget - 1) // 2, (budget - 1) // 4
    n_certify = half if half >= needed else quarter
    rest = budget - 1 - n_certify
    return (2 * rest // 3 if chooses else rest), n_certify


def check_budget(settings: Settings, n_rows: int, exhaustive: bool) -> None:
    """Raise `BudgetError` before the first query if the work cannot fit into max_queries."""
    n_more = 0 if exhaustive else settings.n_choose + (settings.n_certify or 0)
    if settings.max_queries is not None and 1 + n_rows + n_more > settings.max_queries:
        raise BudgetError(
            f"{1 + n_rows + n_more} queries are needed (1 for x, {n_rows} to search, {n_more} to choose and to "
            f"certify), but max_queries is {settings.max_queries}. Lower n_samples or n_certify, or raise "
            "max_queries."
        )


def flip_probability_of(sigma: float) -> float:
    r"""Return the probability that a literal is flipped at concentration sigma, :math:`p = 1 / (1 + e^\sigma)`.

    Examples
    --------
    >>> flip_probability_of(0.0), round(flip_probability_of(1.0), 4)
    (0.5, 0.2689)
    """
    number = isinstance(sigma, (int, float, np.number)) and not isinstance(sigma, bool)
    if not (number and math.isfinite(sigma) and sigma >= 0):
        raise ParameterError(
            f"sigma is {sigma!r}, but it must be a finite number >= 0, where 0 is uniform and 3 is very local. "
            "Type sigma=1.0."
        )
    return max(math.exp(-sigma) / (1 + math.exp(-sigma)), _MIN_PROBABILITY)


def show_keywords(function: Callable[..., Any]) -> None:
    """Add every keyword of `Settings`, with its default, to the signature that help() and editors show."""
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
        example = {"k": 5, "n_samples": 5000, "seed": 0, "budget": 300}.get(name, max(least, 1))
        raise ParameterError(
            f"{name} is {value!r}, but it must be a whole number >= {least}{also}. Type {name}={example}."
        )


def _check_share(name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < 1:
        raise ParameterError(f"{name} is {value!r}, but it must be a number between 0 and 1.")


def _check_optional(name: str, value: Any, least: float) -> None:
    if value is None:
        return
    if (
        isinstance(value, bool)
        or not isinstance(value, (int, float))
        or not (math.isfinite(value) and value >= least)
    ):
        raise ParameterError(f"{name} is {value!r}, but it must be a finite number >= {least:g}, or None.")
