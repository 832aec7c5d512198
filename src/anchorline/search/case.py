"""One case: an instance, the model seen from it, and the settings; and the one place that asks about neighbors."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from anchorline.errors import PredictorOutputError
from anchorline.laws import Random
from anchorline.model.predictor import Answer, Predictor, batches
from anchorline.settings import Settings
from anchorline.spaces.base import Neighborhood

_LAST_BITS = 1e-14  # of an output; a model may add in another order in another batch
_SMALLEST, _LARGEST = 1e-70, 1e70  # differences of outputs whose fourth powers are still numbers of a computer


@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """Neighbors, as donors (attributes, n), and the model's answers: drops f(x) - f(z) (n,), and what stays.

    ``weights`` (n,) are probabilities if all neighbors are listed, otherwise None.
    """

    donors: np.ndarray
    drops: np.ndarray
    stays: np.ndarray | None
    weights: np.ndarray | None = None

    def part(self, first: int, last: int) -> "Asked":
        """Return some of them."""
        stays = None if self.stays is None else self.stays[first:last]
        return Asked(self.donors[:, first:last], self.drops[first:last], stays)


@dataclass(frozen=True, eq=False)
class Case:
    """What every step needs. ``check`` is called in every loop, and may raise to interrupt the search."""

    neighborhood: Neighborhood
    predictor: Predictor
    settings: Settings
    k: int
    check: Callable[[], object] | None = None

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
        q = self.settings.replace_probability
        return self.neighborhood.draw(n, self.random(stream, batch), q, facts)

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
        outputs = np.concatenate([np.zeros(0), *(answer.outputs for answer in answers)])
        stays = [answer.stays for answer in answers if answer.stays is not None]
        decided = self.predictor.output.kind != "number"
        return Asked(
            donors,
            self._drops(outputs),
            np.concatenate([np.zeros(0, dtype=bool), *stays]) if decided else None,
            weights,
        )

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
