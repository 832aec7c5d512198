"""One case: an instance, the model seen from it, and the settings; and the one place that asks about neighbors."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from anchorline.errors import PredictorOutputError
from anchorline.laws import Random
from anchorline.model.predictor import Answer, Predictor, batches
from anchorline.settings import Drawing
from anchorline.spaces.base import Neighborhood

_LAST_BITS = 1e-14  # of an output; a model may add in another order in another batch
_SMALLEST, _LARGEST = 1e-70, 1e70  # differences of outputs whose fourth powers are still numbers of a computer
_ROUNDING = 1e-12  # of an output, within which a number stays
_MOST_LISTED = 4096  # neighbors that are listed rather than drawn
_DRAWN_AT_ONCE = 4096  # neighbors of the law among which those that break no fact are sought, at most
_SPARE = 1.2  # times as many as are needed on average


@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """Neighbors, as donors (attributes, n), and the model's answers: drops f(x) - f(z) (n,), and what stays.

    ``weights`` (n,) are probabilities if all neighbors are listed, otherwise None.
    """

    donors: np.ndarray
    drops: np.ndarray
    stays: np.ndarray | None
    weights: np.ndarray | None = None

    @property
    def decisions(self) -> np.ndarray:
        """Which of them keep the decision, (n,), where something is decided."""
        assert self.stays is not None  # only numbers have no decision
        return self.stays

    def part(self, first: int, last: int) -> "Asked":
        """Return some of them."""
        stays = None if self.stays is None else self.stays[first:last]
        return Asked(self.donors[:, first:last], self.drops[first:last], stays)

    def joined(self, more: "Asked") -> "Asked":
        """Return these and more neighbors."""
        has_stays = self.stays is not None and more.stays is not None
        stays = np.append(self.decisions, more.decisions) if has_stays else None
        return Asked(np.hstack([self.donors, more.donors]), np.append(self.drops, more.drops), stays)


@dataclass(frozen=True, eq=False)
class Case:
    """What every step needs. ``check`` is called in every loop, and may raise to interrupt the search.

    A number stays if it changes by at most ``within``; without it, numbers neither stay nor change.
    """

    neighborhood: Neighborhood
    predictor: Predictor
    settings: Drawing
    k: int
    check: Callable[[], object] | None = None
    within: float | None = None

    @cached_property
    def replace_probability(self) -> float:
        """The probability q with which an attribute takes the value of a random row."""
        return self.settings.replace_probability

    @property
    def n_left(self) -> int:
        """How many more neighbors may be asked about."""
        return self.predictor.questions.rows_left

    @property
    def n_asked(self) -> int:
        """How many neighbors were asked about; the instance is not one."""
        questions = self.predictor.questions
        return questions.n_answers // questions.per_row - 1

    def random(self, stream: str, batch: int) -> Random:
        """Return the random numbers of a batch of a stream of this row and seed."""
        return Random.of(self.settings.seed, self.neighborhood.key, stream, batch)

    def draw(self, stream: str, batch: int, n: int, facts: Sequence[int] = ()) -> np.ndarray:
        """Return the donors of n neighbors of a stream, which have the facts."""
        return self.neighborhood.draw(n, self.random(stream, batch), self.replace_probability, facts)

    def draw_unbroken(
        self, stream: str, batch: int, n: int, facts: Sequence[int], share: float | None
    ) -> np.ndarray:
        """Return the donors of n neighbors of the law that break no fact; the model is not asked about the others.

        ``share`` is that of such neighbors, if it is known. Fewer are returned if they are rarer than 1 in 100.
        """
        size = _DRAWN_AT_ONCE if share is None else min(_DRAWN_AT_ONCE, int(_SPARE * n / share) + 1)
        found, n_found, n_drawn = list[np.ndarray](), 0, 0
        while n_found < n and n_drawn <= 100 * n:
            if self.check is not None:
                self.check()
            donors = self.draw(f"{stream}/{len(found)}", batch, size)
            found.append(donors[:, ~self.neighborhood.flips(donors, facts).any(axis=0)])
            n_found, n_drawn = n_found + found[-1].shape[1], n_drawn + size
        return np.hstack(found)[:, :n]

    def listed(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Return all neighbors, as donors and probabilities, if half of the queries suffice; None otherwise."""
        most = min(_MOST_LISTED, self.n_left // 2)  # those with the facts are listed, too, and are no more
        return self.neighborhood.listed(self.replace_probability, most)

    def ask(self, donors: np.ndarray, weights: np.ndarray | None = None) -> Asked:
        """Ask the model about the neighbors with these donors, in calls of a fixed size.

        If the model was not asked about the instance yet, the instance comes first: it is a neighbor that keeps
        every value. That saves a call, and many models are slow to be called.
        """
        n_before = int(not self.predictor.is_open)
        every, answers = donors, list[Answer]()
        if n_before:
            every = np.hstack([np.full((len(donors), n_before), -1, dtype=donors.dtype), donors])
        for first, last in batches(every.shape[1], self.neighborhood.rows_per_call):
            if self.check is not None:
                self.check()
            inputs = self.neighborhood.realize(every[:, first:last])
            scores = self.predictor.questions.ask(inputs, last - first)
            if not self.predictor.is_open:
                self.predictor.open_with(scores.part(slice(0, n_before)))
                scores = scores.part(slice(n_before, None))
            answers.append(self.predictor.read(scores))
        drops = self._drops(np.concatenate([np.zeros(0), *(answer.outputs for answer in answers)]))
        if self.predictor.output.kind == "number":
            return Asked(donors, drops, None if self.within is None else self.is_within(drops), weights)
        stays = [answer.stays for answer in answers if answer.stays is not None]
        return Asked(donors, drops, np.concatenate([np.zeros(0, dtype=bool), *stays]), weights)

    def is_within(self, drops: np.ndarray) -> np.ndarray:
        """Return which numbers stay, by how much they differ from the prediction: 0.3 stays within 0.1 of 0.4."""
        assert self.within is not None  # only then do numbers stay
        return np.asarray(np.abs(drops) <= self.within + _ROUNDING * abs(self.predictor.prediction))

    def _drops(self, outputs: np.ndarray) -> np.ndarray:
        """Return f(x) - f(z), which is 0 if only the last bits of outputs differ."""
        with np.errstate(over="ignore"):
            drops = self.predictor.prediction - outputs
        size = np.maximum(np.abs(outputs), abs(self.predictor.prediction))
        drops = np.where(np.abs(drops) <= _LAST_BITS * size, 0.0, drops)
        low, high = self.predictor.output_range or (0.0, 0.0)
        if high - low >= 1:  # outputs near to an end of such a range, as saturated probabilities, are equal
            drops = np.where(np.abs(drops) < _SMALLEST, 0.0, drops)
        largest = float(np.abs(drops).max(initial=0.0))
        if largest > _LARGEST or 0 < largest < _SMALLEST:
            raise PredictorOutputError(
                f"The outputs of altered copies differ from that of the row by at most {largest:.3g}, and squares "
                f"of such numbers are not computed exactly. The largest difference must be between {_SMALLEST:g} "
                f"and {_LARGEST:g}, or 0. Give the output another unit: `lambda rows: predict(rows) / 1e100`."
            )
        return drops
