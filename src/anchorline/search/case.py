"""One case: an instance, the model seen from it, and the settings; and the one loop that queries the model."""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from anchorline._version import __version__
from anchorline.model.predictor import Answer, Predictor, batches
from anchorline.search.sampling import DrawnFlips, Flips, stream_key
from anchorline.settings import Settings
from anchorline.spaces.base import Literal, Neighborhood, Space


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Neighbors of one model call: flips (n, d), weights (n,) or None if all weigh the same, and the answers."""

    flips: np.ndarray
    weights: np.ndarray | None
    answer: Answer


@dataclass(frozen=True, eq=False)
class Case:
    """What every step of a search needs: where the instance lies, the model as seen from it, and the settings.

    Constructing a case queries nothing. `open` queries the model about the instance and ties the checksum of all
    further answers to the parameters. A case serves one search, because its predictor counts the queries.
    ``space`` is the fingerprint of the space; ``recorded`` are the parameters of an earlier explanation that is to
    be repeated, or None.
    """

    neighborhood: Neighborhood
    predictor: Predictor
    settings: Settings
    space: str
    recorded: Mapping[str, Any] | None = None

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
        )

    @property
    def n_literals(self) -> int:
        """Number of literals."""
        return len(self.neighborhood.literals)

    def stream_key(self, name: str) -> int:
        """Return the Philox key of a named stream of this row and seed."""
        return stream_key(self.settings.seed, self.neighborhood.key, name)

    def stream(self, name: str, n_rows: int) -> DrawnFlips:
        """Return the flips of a named stream of this row and seed."""
        return DrawnFlips(self.stream_key(name), n_rows, self.n_literals, self.settings.flip_probability)

    def query(self, flips: Flips, start: int = 0) -> Iterator[Batch]:
        """Query the model about the neighbors with these flips, from row ``start`` on, in fixed batches."""
        for first, last in batches(flips.n_rows, start):
            table, weights = flips.rows(first, last)
            inputs = self.neighborhood.realize(table, flips.generator(first))
            yield Batch(table, weights, self.predictor.answer(inputs, last - first))


def open_case(
    space: Space,
    instance: Any,
    predictor: Predictor,
    settings: Settings,
    recorded: Mapping[str, Any] | None = None,
) -> Case:
    """Find the instance in its space and open its case, which takes one query."""
    return Case(space.at(instance), predictor, settings, space.fingerprint, recorded).open()


def texts_digest(literals: Sequence[Literal]) -> str:
    """Return the SHA-256 of the literals' texts; it is part of the parameters, to which the checksum is tied."""
    texts = [(literal.name, literal.text, literal.held) for literal in literals]
    return hashlib.sha256(repr(texts).encode()).hexdigest()
