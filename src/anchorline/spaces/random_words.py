"""A stream of random 32-bit words that does not depend on how many are taken at a time."""

import numpy as np


class RandomWords:
    """The consecutive 32-bit words of a generator; no word is skipped, however many are taken at a time.

    Without a generator all words are zero. This is used when there is only one value to choose from.

    Examples
    --------
    >>> by_three, at_once = (RandomWords(np.random.default_rng(0)) for _ in range(2))
    >>> [*by_three.take(3), *by_three.take(3)] == [*at_once.take(6)]
    True
    """

    def __init__(self, rng: np.random.Generator | None) -> None:
        self._source = None if rng is None else rng.bit_generator
        self._rest = np.zeros(0, dtype="<u4")

    def take(self, n: int) -> np.ndarray:
        """Return the next n words, (n,)."""
        if self._source is None:
            return np.zeros(n, dtype="<u4")
        words = self._raw(n - len(self._rest))
        if len(self._rest):
            words = np.concatenate([self._rest, words])
        self._rest = words[n:].copy()  # a view would keep all words in memory
        return words[:n]

    def _raw(self, n: int) -> np.ndarray:
        """Return at least n new words."""
        assert self._source is not None
        if isinstance(self._source, np.random.MT19937):  # its raw numbers have 32 bits
            return self._source.random_raw(n).astype("<u4")
        return self._source.random_raw(-(-n // 2)).astype("<u8", copy=False).view("<u4")
