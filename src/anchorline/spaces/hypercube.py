"""The Boolean hypercube {-1, +1}^d, which is the space of the paper."""

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from anchorline.errors import InstanceError, ParameterError, names_similar_keywords
from anchorline.facts import Fact
from anchorline.spaces.base import Space, TwoValued
from anchorline.spaces.columns import array_of

_TABLE_HINT = "For rows of a table, type `anchorline.Explainer(model, table).explain(row)`."
_VALUES_PER_CALL = 2**23  # 64 MB as floats
_ROWS_AT_ONCE = 256  # draws come attribute by attribute; turned row by row in small pieces, they stay in the cache

_Statements = tuple[str, Any, Any]  # the name, and what is stated of +1 and of -1


class Hypercube(Space):
    """Instances in {-1, +1}^d; the pool of every coordinate is {-1, +1}.

    Parameters
    ----------
    names
        One entry per coordinate: a name, or a pair of texts that state what +1 means and what -1 means. Without
        names, the coordinates are called x0, x1, ...

    Examples
    --------
    >>> there = Hypercube([("DTI <= 30%", "DTI > 30%"), "Citizen"]).at([-1, 1])
    >>> there.fact(0).value, there.fact(1).attribute, there.fact(1).value
    ('DTI > 30%', 'Citizen', 1)
    """

    @names_similar_keywords("Hypercube")
    def __init__(self, names: Sequence[str | tuple[str, str]] | None = None) -> None:
        if names is not None and (isinstance(names, str) or not isinstance(names, Iterable)):
            raise ParameterError(
                f"names is {names!r}; it must be a list with one name per coordinate. Type names=['a', 'b']."
            )
        self._statements = None if names is None else tuple(_statements(name) for name in names)
        self.names = tuple(name for name, _, _ in self._statements or ())

    @property
    def fingerprint(self) -> str:
        """The SHA-256 of the names."""
        return "hypercube:" + hashlib.sha256(repr(self._statements).encode()).hexdigest()

    def at(self, instance: Any) -> "HypercubeNeighborhood":
        """Return the neighborhood of a vector of -1 and +1 of the right length; refuse everything else."""
        point = _as_point(instance)
        if point.ndim != 1 or point.size == 0:
            hint = (
                "Explain one row at a time: `x[0]`. To explain all rows, type `explainer.explain_many(x)`."
                if point.ndim == 2 and len(point)
                else "Type `x = [1, -1, 1]`."
            )
            raise InstanceError(
                f"x has shape {point.shape}; it must be one row, of shape (d,) with d >= 1. {hint}"
            )
        if self._statements is not None and len(self._statements) != point.size:
            raise InstanceError(
                f"x has {point.size} values, but there are {len(self._statements)} names; "
                "there must be one name per value."
            )
        wrong = np.flatnonzero(np.abs(point) != 1)
        if wrong.size:
            raise InstanceError(
                f"x[{wrong[0]}] is {point[wrong[0]]:g}; every value must be -1 or +1. {_TABLE_HINT} For a vector "
                "of 0 and 1, type `2 * x - 1`."
            )
        return HypercubeNeighborhood(point, self._statements)


def _as_point(instance: Any) -> np.ndarray:
    """Return the instance as a read-only float64 array of any shape; refuse everything that is not numeric."""
    try:
        given = np.asarray(array_of(instance))
        if given.dtype.kind not in "fiubO":
            raise TypeError(f"{given.dtype} such as {given.flat[0]!r}" if given.size else str(given.dtype))
        point = np.array(given, dtype=np.float64)  # a copy, which the caller cannot change later
    except (TypeError, ValueError) as error:
        raise InstanceError(
            f"x is not numeric ({error}); it must hold the numbers -1 and +1. Type, say, `x = [1, -1, 1]`. "
            f"{_TABLE_HINT}"
        ) from None
    point.setflags(write=False)
    return point


def _statements(name: str | tuple[str, str]) -> _Statements:
    if isinstance(name, str):
        return name, 1, -1
    texts = tuple(name) if isinstance(name, (tuple, list)) else ()
    if len(texts) != 2 or not all(isinstance(text, str) for text in texts):
        raise ParameterError(
            f"A name is {name!r}; it must be a text, or two: one that is true for +1 and one that is true for -1. "
            "Type, say, ('owner', 'renter')."
        )
    return texts[0], texts[0], texts[1]


class HypercubeNeighborhood(TwoValued):
    """A vertex of the hypercube, whose neighbors are all vertices."""

    def __init__(self, point: np.ndarray, statements: Sequence[_Statements] | None) -> None:
        self.point = point
        self._statements = statements or tuple(_statements(f"x{j}") for j in range(point.size))
        self.names = tuple(name for name, _, _ in self._statements)

    def fact(self, candidate: int) -> Fact:
        """Return the sign of a coordinate, or the statement that it makes true."""
        name, true, false = self._statements[candidate]
        return Fact(name, name, "equals", value=true if self.point[candidate] > 0 else false)

    def other(self, attribute: int) -> Any:
        """Return the other sign of a coordinate, or the statement that it makes true."""
        _, true, false = self._statements[attribute]
        return false if self.point[attribute] > 0 else true

    @property
    def rows_per_call(self) -> int:
        """Number of neighbors per call of the model: 4,096 up to d = 2,048, and fewer above, to bound memory."""
        return max(1, min(super().rows_per_call, _VALUES_PER_CALL // self.point.size))

    @property
    def key(self) -> bytes:
        """The signs, one byte each."""
        return b"hypercube:" + self.point.astype(np.int8).tobytes()

    @property
    def original(self) -> np.ndarray:
        """The vertex as one row, (1, d)."""
        return self.point[None].copy()

    @property
    def instance(self) -> list[int]:
        """The signs as plain integers."""
        return [int(sign) for sign in self.point]

    def realize_flips(self, flips: np.ndarray) -> np.ndarray:
        """Return the vertex with flipped signs: float64 (n, d), in row-major order, as models expect it."""
        signs = self.point.astype(np.int8)[:, None]
        by_attribute, neighbors = flips.view(np.int8).T, np.empty(flips.shape)
        for start in range(0, len(neighbors), _ROWS_AT_ONCE):
            rows = slice(start, start + _ROWS_AT_ONCE)
            neighbors[rows] = (by_attribute[:, rows] * (-2 * signs) + signs).T
        return neighbors
