"""What a user may choose about an explanation, checked once; everything else is derived."""

import inspect
import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, asdict, dataclass, fields
from typing import Any, ClassVar, Literal, Self, TypedDict, TypeVar, get_args

import numpy as np

from anchorline.errors import ParameterError, unknown_keyword
from anchorline.laws import replace_probability

MOST_QUERIES = 20_000  # of queries="auto"
FEWEST_QUERIES = 32  # below this, a number of queries finds and measures nothing

SUCCESSORS = {
    "objective": "`explainer.rule(row)` finds facts that keep the decision",
    "n_samples": "queries= counts all neighbors together",
    "n_certify": "queries= counts all neighbors together",
    "n_choose": "queries= counts all neighbors together",
    "budget": "queries= is that number",
    "max_queries": "queries= is that number",
    "tolerance": "neighbors are drawn until the verdict is decided",
    "sampling": "leaves of trees are read wherever they can be",
    "moments": "known moments are used wherever the law has them",
    "solver": "`anchorline.paper.explain` has solvers",
    "box": "`anchorline.paper.explain` has the box",
    "pairs": "`explainer.rule(row)` finds facts that keep the decision together",
    "keep_noise": "facts without an effect are left out",
    "max_relevance_error": "`explainer.rule(row)` finds facts that keep the decision",
    "flip_probability": "sigma= sets it: a value is replaced with probability 2 / (1 + e^sigma)",
    "node_limit": "the limit of nodes is constant, so that results are the same everywhere",
}


_F = TypeVar("_F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Keywords:
    """The keywords of a call, checked once. ``gone`` maps removed ones to what replaces them."""

    gone: ClassVar[Mapping[str, str]] = {}

    @classmethod
    def from_keywords(cls, call: str, **keywords: Any) -> Self:
        """Return the settings of a call; a removed keyword is answered with what replaces it."""
        known = [field.name for field in fields(cls)]
        for name in keywords:
            if name in cls.gone:
                raise TypeError(f"{call}() has no keyword {name!r}: {cls.gone[name]}.")
            if name not in known:
                raise unknown_keyword(call, name, known)
        return cls(**keywords)

    @classmethod
    def texts(cls) -> dict[str, str]:
        """Return what the docstrings of the class and its bases say about each keyword."""
        texts: dict[str, str] = {}
        for base in reversed(cls.__mro__[:-1]):
            texts |= re.findall(r"^(\w+)\n    (.+)$", inspect.cleandoc(base.__doc__ or ""), flags=re.MULTILINE)
        return texts

    def __post_init__(self) -> None:
        for field in fields(self):
            object.__setattr__(self, field.name, plain_number(getattr(self, field.name)))
        self._check()

    def _check(self) -> None:
        """Raise `ParameterError` if a value cannot be meant."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Read the result of `to_dict`; every key must be there, and no other."""
        wrong = {field.name for field in fields(cls)} ^ set(values)
        if wrong:
            raise ParameterError(f"These settings are missing or unexpected: {sorted(wrong)!r}.")
        return cls(**values)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking(Keywords):
    """The keywords of a call that asks about neighbors.

    Parameters
    ----------
    queries
        "auto", or the maximum number of queries to the model, which is never exceeded.
    seed
        Seed of the random neighbors; the same seed gives the same answer.
    confidence
        Confidence with which all limits hold together.
    """

    queries: int | str = "auto"
    seed: int = 0
    confidence: float = 0.95

    def _check(self) -> None:
        if self.queries != "auto":
            checked_count("queries", self.queries, FEWEST_QUERIES, "queries=300, or queries='auto'")
        checked_count("seed", self.seed, 0, "seed=0")
        _check_number("confidence", self.confidence, 0.5, 1.0, "confidence=0.95")


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing(Asking):
    """The keywords of a call that draws neighbors, which `explain` and `rule` share.

    Parameters
    ----------
    k
        Maximum number of facts; None for the space's default.
    sigma
        How close neighbors are: 0 replaces every value, 3 few.
    """

    k: int | None = None
    sigma: float = 1.0

    def _check(self) -> None:
        replace_probability(self.sigma)
        if self.k is not None:
            checked_count("k", self.k, 1, "k=4")
        Asking._check(self)

    @property
    def time_limit(self) -> float | None:
        """Seconds for the proof of a sum."""
        return None

    @property
    def alternatives(self) -> int:
        """How many other sums are listed."""
        return 0

    @property
    def replace_probability(self) -> float:
        """The probability q with which an attribute takes the value of a random row."""
        return replace_probability(self.sigma)

    @property
    def is_auto(self) -> bool:
        """Whether neighbors are drawn until the verdict is decided, and the table may be asked about."""
        return self.queries == "auto"

    @property
    def most_queries(self) -> int:
        """The most answers of the model."""
        return MOST_QUERIES if isinstance(self.queries, str) else self.queries


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings(Drawing):
    """The keywords of `explain`.

    Parameters
    ----------
    alternatives
        How many other sums that fit within 1% are listed.
    time_limit
        Seconds for the proof that no sum fits better.
    """

    gone: ClassVar[Mapping[str, str]] = SUCCESSORS
    alternatives: int = 0
    time_limit: float | None = None

    def _check(self) -> None:
        Drawing._check(self)
        checked_count("alternatives", self.alternatives, 0, "alternatives=3")
        if self.time_limit is not None:
            _check_number("time_limit", self.time_limit, 0.0, math.inf, "time_limit=10, in seconds")


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleSettings(Drawing):
    """The keywords of `rule`.

    Parameters
    ----------
    holds
        The share of altered copies that must keep the decision; 1 asks for a proof, None for the most of k facts.
    k
        Maximum number of facts.
    within
        How much a number may change; None for 10% of the prediction or the spread, whichever is larger.
    """

    holds: float | None = 0.95
    k: int = 4
    within: float | None = None

    def _check(self) -> None:
        checked_count("k", self.k, 1, "k=4")
        if self.holds is not None and (self.holds != 1 or isinstance(self.holds, bool)):
            _check_number("holds", self.holds, 0.0, 1.0, "holds=0.95, or holds=1 for what is proven")
        if self.within is not None:
            _check_number("within", self.within, 0.0, math.inf, "within=10, in units of the output")
        Drawing._check(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReasonSettings(Asking):
    """The keywords of `reasons`.

    Parameters
    ----------
    n
        Maximum number of reasons.
    adverse
        The side of the threshold on which a decision is adverse: "below" or "above".
    reference
        The rows to compare with: "all", "near" (the threshold), or "table" for those from which the table draws.
    prohibited
        Columns or attributes that must never be a reason.
    recourse
        Whether to say what another value of each reason alone would do.
    time
        A text of the caller, for the record.
    codes
        The entries of `Codes`.
    """

    n: int = 4
    adverse: str = "below"
    reference: str = "table"
    prohibited: tuple[str, ...] = ()
    recourse: bool = False
    time: str = ""
    codes: tuple[tuple[str, str, str, str], ...] = ()

    def _check(self) -> None:
        checked_count("n", self.n, 1, "n=4")
        choices = {"adverse": ("below", "above"), "reference": ("all", "near", "table"), "recourse": (True, False)}
        for name, allowed in choices.items():
            value = getattr(self, name)
            if not isinstance(value, type(allowed[0])) or value not in allowed:
                if name == "adverse":
                    raise ParameterError(
                        f"adverse is {value!r}, but it must be 'below' if low scores are adverse, or 'above' if "
                        "high ones are."
                    )
                if name == "reference":
                    raise ParameterError(
                        f"reference is {value!r}, but it must be a frame, 'all' or 'near'. Type reference='near'."
                    )
                many = " or ".join(map(repr, allowed))
                raise ParameterError(f"{name} is {value!r}, but it must be {many}. Type {name}={allowed[0]!r}.")
        if not isinstance(self.time, str):
            raise ParameterError(f"time is {self.time!r}, but it must be a text. Type time='2026-03-04 12:30'.")
        if isinstance(self.prohibited, str):
            raise ParameterError(f"prohibited is {self.prohibited!r}. Type prohibited=[{self.prohibited!r}].")
        if not isinstance(self.prohibited, Iterable):
            raise ParameterError(
                f"prohibited is {self.prohibited!r}, but it must be a list of columns. Type prohibited=['sex']."
            )
        object.__setattr__(self, "prohibited", tuple(dict.fromkeys(map(str, self.prohibited))))
        object.__setattr__(self, "codes", tuple(map(tuple, self.codes)))
        Asking._check(self)

    @property
    def common(self) -> Drawing:
        """The settings of the copies that are asked about: each value is replaced with probability 1/2."""
        return Drawing(sigma=math.log(3), queries=self.queries, seed=self.seed, confidence=self.confidence)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        return asdict(self) | {"prohibited": list(self.prohibited), "codes": [list(each) for each in self.codes]}


class DrawingKeywords(TypedDict, total=False):
    """The types of the keywords of `Drawing`, for type checkers and editors."""

    k: int | None
    sigma: float
    queries: int | Literal["auto"]
    seed: int
    confidence: float


class ExplainKeywords(DrawingKeywords, total=False):
    """The types of the keywords of `Settings`."""

    alternatives: int
    time_limit: float | None


class RuleKeywords(DrawingKeywords, total=False):
    """The types of the keywords of `RuleSettings`."""

    holds: float | None
    within: float | None


class ReasonKeywords(TypedDict, total=False):
    """The types of the keywords of `ReasonSettings` that `reasons` does not name itself."""

    n: int
    adverse: Literal["below", "above"]
    prohibited: Iterable[str]
    recourse: bool
    time: str
    queries: int | Literal["auto"]
    seed: int
    confidence: float


def shows_keywords(settings: type[Keywords]) -> Callable[[_F], _F]:
    """Decorate a function of ``**keywords: Unpack[...]`` so that ``help`` shows each, its default and its line.

    The types are those that the function declares; defaults and texts are those of ``settings``.

    Examples
    --------
    >>> from typing import Unpack
    >>> @shows_keywords(Settings)
    ... def explain(row, **keywords: Unpack[DrawingKeywords]):
    ...     "Explain one row."
    >>> str(inspect.signature(explain))[:34], inspect.getdoc(explain).splitlines()[4:6]
    ('(row, *, k: int | None = None, sig', ['k', "    Maximum number of facts; None for the space's default."])
    """

    def decorate(function: _F) -> _F:
        declared = get_args(function.__annotations__["keywords"])[0].__annotations__
        texts = settings.texts()
        defaults = {
            each.name: each.default if each.default_factory is MISSING else each.default_factory()
            for each in fields(settings)
        }
        own = inspect.signature(function)
        shown = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=defaults[name], annotation=kind)
            for name, kind in declared.items()
        ]
        given = [each for each in own.parameters.values() if each.kind is not each.VAR_KEYWORD]
        function.__signature__ = own.replace(parameters=[*given, *shown])  # type: ignore[attr-defined]
        lines = "\n".join(f"{name}\n    {texts[name]}" for name in declared)
        about, *example = inspect.cleandoc(function.__doc__ or "").partition("\n\nExamples\n")
        function.__doc__ = f"{about}\n\nOther Parameters\n----------------\n{lines}" + "".join(example)
        return function

    return decorate


def checked_ks(ks: Any) -> tuple[int, ...]:
    """Return numbers of facts, in increasing order."""
    try:
        numbers = sorted({plain_number(k) for k in ks})
    except TypeError:
        raise ParameterError(
            f"ks is {ks!r}, but it must be several numbers of facts. Type ks=[2, 4, 6]."
        ) from None
    if not numbers:
        raise ParameterError("ks is empty, but it must be several numbers of facts. Type ks=[2, 4, 6].")
    for k in numbers:
        checked_count("k", k, 1, "ks=[2, 4, 6]")
    return tuple(numbers)


def plain_number(value: Any) -> Any:
    """Return a number of NumPy as one of Python, which JSON can hold; anything else stays."""
    return value.item() if isinstance(value, np.generic) else value


def checked_count(name: str, value: Any, least: int, example: str) -> None:
    """Raise `ParameterError` unless a value is a whole number of at least ``least``."""
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    if not is_whole or value < least:
        raise ParameterError(f"{name} is {value!r}, but it must be a whole number >= {least}. Type {example}.")


def _check_number(name: str, value: Any, low: float, high: float, example: str) -> None:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not is_number or not low < value < high:
        end = f" and below {high:g}" if math.isfinite(high) else ""
        raise ParameterError(f"{name} is {value!r}, but it must be a number above {low:g}{end}. Type {example}.")
