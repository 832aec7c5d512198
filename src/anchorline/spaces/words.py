"""Random words of 32 bits, from any generator: the same on every machine and version of NumPy."""

import numpy as np


class Words:
    """The words of a generator one after another, none left out, however many are taken at a time.

    Without a generator they are zeros: where nothing is left to chance.

    Examples
    --------
    >>> by_three, at_once = (Words(np.random.default_rng(0)) for _ in range(2))
    >>> [*by_three.take(3), *by_three.take(3)] == [*at_once.take(6)]
    True
    """

    def __init__(self, rng: np.random.Generator | None) -> None:
        self._source = None if rng is None else rng.bit_generator
        self._rest = np.zeros(0, dtype="<u4")

    def take(self, n: int) -> np.ndarray:
        """The next n words, (n,)."""
        if self._source is None:
            return np.zeros(n, dtype="<u4")
        words = self._raw(n - len(self._rest))
        if len(self._rest):
            words = np.concatenate([self._rest, words])
        self._rest = words[n:].copy()  # a view would hold them all
        return words[:n]

    def _raw(self, n: int) -> np.ndarray:
        """At least n new words."""
        assert self._source is not None
        if isinstance(self._source, np.random.MT19937):  # whose raw numbers have 32 bits
            return self._source.random_raw(n).astype("<u4")
        return self._source.random_raw(-(-n // 2)).astype("<u8", copy=False).view("<u4")
