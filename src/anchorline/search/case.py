"""One case: an instance, the model seen from it, and the settings; and the one loop that queries the model."""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from types import EllipsisType
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from anchorline._version import __version__
from anchorline.errors import ParameterError
from anchorline.model.features import ColumnMatch
from anchorline.model.predictor import Answer, Predictor, batches
from anchorline.model.target import Target
from anchorline.search.sampling import ConditionalFlips, DrawnFlips, Event, Flips, stream_key
from anchorline.settings import Settings
from anchorline.spaces.base import Law, Literal, Neighborhood, Pairs, Space

_WIDE = 1024  # literals from which on counting only the pairs that are read saves time
_WIDE_ROWS = 16  # rows per literal up to which their bits take at most a quarter of the memory of all pairs

if TYPE_CHECKING:  # loaded for models that have trees
    from anchorline.search.leaves.joined import JoinedTrees
    from anchorline.search.leaves.row import LeafRow


class Trees(Protocol):
    """The trees of a model on a table."""

    def row(self, neighborhood: Any, law: Law, predictor: Predictor) -> "LeafRow | str":
        """Return a row as the trees see it, or why its neighbors are sampled."""


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Neighbors of one model call: draws (n, attributes), weights (n,) or None if all are equal, and answers.

    If values decide which literals break, ``draws`` are the outcomes of that decision.
    """

    law: Law
    draws: np.ndarray
    weights: np.ndarray | None
    answer: Answer

    @property
    def flips(self) -> np.ndarray:
        """Which literals the draws break, (n, d) as booleans."""
        return self.law.flips(self.draws)


@dataclass(frozen=True, eq=False)
class Case:
    """What every step of a search needs: where the instance lies, the model as seen from it, and the settings.

    Constructing a case queries nothing. `open` queries the model about the instance and ties the checksum of all
    further answers to the parameters. A case serves one search, because its predictor counts the queries.
    ``space`` is the fingerprint of the space; ``recorded`` are the parameters of an earlier explanation that is to
    be repeated, or None. ``pairs`` are indices of two literals each: the pairs that a sum states. ``trees`` are
    those of the model, the reason why they cannot be used, or None if the model has none. ``warnings`` say what
    makes explanations of this model on this table misleading.
    """

    neighborhood: Neighborhood
    predictor: Predictor
    settings: Settings
    space: str
    recorded: Mapping[str, Any] | None = None
    pairs: tuple[tuple[int, int], ...] = ()
    trees: Trees | str | None = None
    warnings: tuple[str, ...] = ()

    def stating(self, pairs: Sequence[tuple[int, int]]) -> "Case":
        """Return the case with these pairs as further literals; everything else, the counts too, is shared."""
        return replace(self, recorded=self.parameters, pairs=tuple(pairs)) if pairs else self

    @property
    def literals(self) -> tuple[Literal, ...]:
        """The literals of the neighborhood, and then the pairs."""
        return (*self.neighborhood.literals, *self.law.pairs.literals(self.neighborhood.literals))

    def open(self) -> "Case":
        """Query the model about the instance, set the key of the checksum, and return the case itself."""
        self.predictor.open(self.neighborhood.original)
        # Not RFC 8785: explanations sealed before it was adopted must give the same key.
        text = json.dumps(self.parameters, sort_keys=True, separators=(",", ":"), allow_nan=False, default=dict)
        self.predictor.checksum_key = self.stream_key("checksum:" + text)
        return self

    @cached_property
    def parameters(self) -> Mapping[str, Any]:
        """Everything needed to repeat the explanation, in plain values; of an opened case only."""
        if self.recorded is not None:
            return self.recorded
        return (
            self.settings.to_dict()
            | self.predictor.describe()
            | {
                "space": self.space,
                "versions": {"anchorline": __version__, "numpy": np.__version__},
                "texts": texts_digest(self.neighborhood.literals),
            }
            | ({} if self.law.one_to_one else {"n_attributes": self.law.n_attributes})
            | ({"redraws": True} if self.redraws else {})
            | ({"flips_follow": True} if self.flips_follow else {})
            | ({"may_stay": True} if self.may_stay else {})
        )

    @property
    def redraws(self) -> bool:
        """Whether attributes that keep their fact are drawn anew, so that they may have another value."""
        return getattr(self.neighborhood, "within", None) == "redraw"

    @property
    def may_stay(self) -> bool:
        """Whether an attribute that is drawn anew may take the value that it had (``draw="marginal"``)."""
        return getattr(getattr(self.neighborhood, "drawing", None), "draw", None) == "marginal"

    @property
    def flips_follow(self) -> bool:
        """Whether values decide which literals break: draws only say which attributes take a new value."""
        return bool(getattr(self.neighborhood, "flips_follow", False))

    @property
    def n_literals(self) -> int:
        """Number of literals other than pairs."""
        return len(self.neighborhood.literals)

    @property
    def is_wide(self) -> bool:
        """Whether literals are so many that the evidence keeps the flips, and not the sums of all pairs."""
        settings, d = self.settings, self.n_literals
        few_rows = settings.n_samples != "auto" and int(settings.n_samples) <= _WIDE_ROWS * d
        plain = (settings.objective, settings.pairs, settings.moments, settings.solver)
        is_plain = plain == ("fidelity", None, "sample", "exact") and settings.sampling != "enumerate"
        return d >= _WIDE and few_rows and is_plain and self.law.one_to_one and self.trees is None

    @cached_property
    def law(self) -> Law:
        """How the attributes are drawn, and which literals each outcome breaks."""
        p, changes = self.settings.flip_probability, getattr(self.neighborhood, "changes", None)
        law = (
            Law.of_literals(self.n_literals, p) if changes is None else Law.of_changes(changes, self.n_literals, p)
        )
        if not self.pairs:
            return law
        return replace(law, pairs=Pairs(np.array(self.pairs), parity=self.settings.pairs == "parity"))

    @property
    def leaves(self) -> "LeafRow | None":
        """The row as the model's trees see it, if its neighborhood is not sampled; of an opened case only."""
        return None if isinstance(self._leaves, str) else self._leaves

    @property
    def sampled_because(self) -> str | None:
        """Why neighbors are sampled although the model has trees; None if they are not, or if that was asked."""
        return self._leaves if isinstance(self._leaves, str) else None

    @cached_property
    def _leaves(self) -> "LeafRow | str | None":
        trees, settings = self.trees, self.settings
        if settings.sampling not in ("auto", "leaves"):
            return None
        found = trees if trees is None or isinstance(trees, str) else self._sums_of(trees)
        if settings.sampling == "leaves" and (found is None or isinstance(found, str)):
            reason = found or "the model is not a sum of trees on a table that can be read"
            raise ParameterError(f"sampling is 'leaves', but {reason}. Type sampling='auto'.")
        return found

    def _sums_of(self, trees: Trees) -> "LeafRow | str":
        settings = self.settings
        for name, value, usual in (("objective", settings.objective, "fidelity"), ("pairs", settings.pairs, None)):
            if value != usual:
                return f"{name}={value!r} needs the neighbors themselves"
        return trees.row(self.neighborhood, self.law, self.predictor)

    def stream_key(self, name: str) -> int:
        """Return the Philox key of a named stream of this row and seed."""
        return stream_key(self.settings.seed, self.neighborhood.key, name)

    def stream(self, name: str, n_rows: int) -> DrawnFlips:
        """Return the draws of a named stream of this row and seed."""
        return DrawnFlips(self.stream_key(name), n_rows, self.law.ends)

    def stream_inside(self, event: Event, name: str, n_rows: int) -> ConditionalFlips:
        """Return the draws of a named stream of this row and seed, given an event."""
        keys = [self.stream_key(f"{name}/{part}") for part in ("pattern", "within")]
        return ConditionalFlips(self.stream(f"{name}/event", n_rows), event, self.law, *keys)

    def query(self, flips: Flips, start: int = 0) -> Iterator[Batch]:
        """Query the model about the neighbors with these draws, from row ``start`` on, in fixed batches."""
        for first, last in batches(flips.n_rows, start):
            draws, weights = flips.rows(first, last)
            draws, answer = self._answer(draws, flips.generator(first))
            yield Batch(self.law, draws, weights, answer)

    def _answer(self, draws: np.ndarray, rng: np.random.Generator | None) -> tuple[np.ndarray, Answer]:
        """Return how the attributes of a batch change, and the model's answers.

        The model is called as often as the size of the inputs requires.
        """
        n_rows, neighborhood = len(draws), self.neighborhood
        if self.flips_follow:
            inputs, draws = neighborhood.decide(draws, rng)  # type: ignore[attr-defined]  # it has this member
            return draws, self.predictor.answer(inputs, n_rows)
        size = getattr(neighborhood, "rows_per_call", n_rows)
        answers = []
        for first in range(0, n_rows, size):
            part = draws[first : first + size]
            inputs = neighborhood.realize(self.law.as_realized(part), rng)
            answers.append(self.predictor.answer(inputs, len(part)))
            del inputs  # before the next ones are made
        return draws, answers[0] if len(answers) == 1 else _joined(answers)


def _joined(answers: Sequence[Answer]) -> Answer:
    """Return the answers to several calls as one."""
    stays = [answer.stays for answer in answers if answer.stays is not None]
    return Answer(
        np.concatenate([answer.drops for answer in answers]),
        np.concatenate(stays) if stays else None,
        np.concatenate([answer.clipped for answer in answers]),
    )


class ModelTrees:
    """The trees of a model on a table, read on first use; the constructor queries nothing."""

    def __init__(self, model: Any, columns: ColumnMatch, space: Space) -> None:
        self._model, self._columns, self._space = model, columns, space
        self._joined: JoinedTrees | str | EllipsisType | None = ...

    def joined(self, target: Target) -> "JoinedTrees | str | None":
        """Return the trees joined with the table, why they cannot be used, or None if the model has none.

        At the first call, the model is queried about at most 512 rows, which no certificate counts.
        """
        if isinstance(self._joined, EllipsisType):
            from anchorline.search.leaves.joined import join_trees  # noqa: PLC0415  for tables only

            self._joined = join_trees(self._model, target, self._columns, self._space)
        return self._joined

    def replace_by(self, reason: str | None) -> None:
        """Sample although the model has trees, for a reason that is recorded, or without one."""
        self._joined = reason

    def usable(self, settings: Settings, target: Target) -> "JoinedTrees | str | None":
        """Return what `joined` does if the settings allow it: under max_queries, only if leaves are demanded."""
        within_budget = settings.max_queries is None or settings.sampling == "leaves"
        wanted = settings.sampling in ("auto", "leaves") and within_budget
        return self.joined(target) if wanted and hasattr(self._space, "schema") else None


def open_case(
    space: Space,
    instance: Any,
    predictor: Predictor,
    settings: Settings,
    recorded: Mapping[str, Any] | None = None,
    trees: ModelTrees | None = None,
) -> Case:
    """Find the instance in its space and open its case, which takes one query."""
    usable = None if trees is None else trees.usable(settings, predictor.target)
    neighborhood = space.at(instance)
    if settings.budget is not None and getattr(neighborhood, "flips_follow", False):
        settings = replace(settings, moments="sample")  # which a budget only prefers
    return Case(neighborhood, predictor, settings, space.fingerprint, recorded, trees=usable).open()


def flips_not_independent(given: str) -> ParameterError:
    """Return the error for something that needs independent flips, where values decide which literals break."""
    return ParameterError(
        f"{given}, which needs flips that are drawn independently; with neighbors='similar' they follow from the "
        "values. Type neighbors='realistic', or explain with objective='fidelity' and without pairs."
    )


def check_flips(case: Case) -> None:
    """Raise `ParameterError` if values decide which literals break, and the settings need independent flips."""
    settings = case.settings
    for name, usual in (("objective", "fidelity"), ("pairs", None), ("moments", "sample")):
        if case.flips_follow and (value := getattr(settings, name)) != usual:
            raise flips_not_independent(f"{name} is {value!r}")


def texts_digest(literals: Sequence[Literal]) -> str:
    """Return the SHA-256 of the literals' texts; it is part of the parameters, to which the checksum is tied."""
    texts = [(literal.name, literal.text, literal.held) for literal in literals]
    return hashlib.sha256(repr(texts).encode()).hexdigest()
