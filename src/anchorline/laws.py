r"""The law of neighbors.

A neighbor of x keeps each attribute's value with probability 1 - q, and otherwise takes the value of a random row
of the pool; attributes are independent; :math:`q = 2 / (1 + e^\sigma)`. Facts are read off neighbors; they do not
influence how neighbors are drawn.
"""

import hashlib
import math

import numpy as np

from anchorline.errors import ParameterError

_MIN_PROBABILITY = 1e-12  # so that conditional probabilities stay finite at every sigma


def replace_probability(sigma: float) -> float:
    r"""Return the probability that an attribute takes the value of a random row, :math:`q = 2 / (1 + e^\sigma)`.

    Examples
    --------
    >>> replace_probability(0.0), round(replace_probability(1.0), 4)
    (1.0, 0.5379)
    """
    number = isinstance(sigma, (int, float, np.number)) and not isinstance(sigma, bool)
    if not (number and math.isfinite(sigma) and sigma >= 0):
        raise ParameterError(
            f"sigma is {sigma!r}, but it must be a finite number >= 0, where 0 replaces every value and 3 few. "
            "Type sigma=1.0."
        )
    return max(2 * math.exp(-sigma) / (1 + math.exp(-sigma)), _MIN_PROBABILITY)


class Random:
    """Uniform numbers of one batch of a named stream of one row: the same on every machine, in every batch.

    Numbers are taken from raw words of Philox, whose key is BLAKE2b(seed, row, stream) and whose counter starts at
    the batch, so that any batch can be drawn alone.

    Examples
    --------
    >>> first, again = (Random.of(0, b"row", "search", batch=3) for _ in range(2))
    >>> bool((first.uniforms(4) == again.uniforms(4)).all())
    True
    """

    def __init__(self, key: int, batch: int = 0) -> None:
        self._source = np.random.Philox(key=key, counter=batch << 128)

    @classmethod
    def of(cls, seed: int, row: bytes, stream: str, batch: int = 0) -> "Random":
        """Return the numbers of a batch of a named stream of a row."""
        digest = hashlib.blake2b(digest_size=16)
        for part in (str(int(seed)).encode(), row, stream.encode()):
            digest.update(len(part).to_bytes(8, "little"))
            digest.update(part)
        return cls(int.from_bytes(digest.digest(), "little"), batch)

    def uniforms(self, *shape: int) -> np.ndarray:
        """Return the next numbers in [0, 1), with 53 bits each."""
        words = self._source.random_raw(math.prod(shape)).reshape(shape)
        words >>= np.uint64(11)
        return np.asarray(words * 2.0**-53)
