r"""What the literals of one attribute can do for a sum, if attributes are independent: seven options each.

An attribute has up to three literals: an interval, a lower and an upper bound. A sum takes none of them or one of
the seven *options*: three single literals, three pairs, all three. Let :math:`\Sigma_T` be the covariance of the
flips of an option T, c their covariances with the drops, b the probabilities of the flips, and

.. math:: Q_T = W_T^\top \Sigma_T^{-1} W_T, \qquad W_T = (c_T, b_T, \mathbf 1)

Attributes are independent, so the matrix of a set of options is the sum of theirs: six numbers per option decide
everything. With starting level, the best sum of a set has, up to a constant, the error

.. math:: V(Q) = -Q_{cc} + \frac{(\bar t - Q_{cb})^2}{1 + Q_{bb}}
          = \max_\eta\ 2 \eta \bar t - \eta^2 - y^\top Q y, \qquad y = (1, \eta, 0)

and without it, if contributions add up to m,

.. math:: V(Q) = \max_{\eta, \mu}\ 2 \eta \bar t - \eta^2 + 2 \mu m - y^\top Q y, \qquad y = (1, \eta, \mu)
"""

import itertools
from dataclasses import dataclass, replace

import numpy as np

MEMBERS = tuple(c for size in (1, 2, 3) for c in itertools.combinations(range(3), size))
SIZES = np.array([len(members) for members in MEMBERS])
HOLDS = np.array([[j in members for members in MEMBERS] for j in range(3)])  # (3, 7)
PAIRS = MEMBERS[3:6]
_DEPENDENT = 1e-9  # a literal of which the others leave a smaller share of its variance depends on them


@dataclass(frozen=True, slots=True, eq=False)
class GroupedProblems:
    """n problems with d independent attributes of up to three literals each: an interval and its two bounds.

    ``chances`` (3, n, d) are the probabilities of the flips, ``both`` (3, n, d) those of two flips at once, in the
    order of `PAIRS`, and ``covariances`` (3, n, d) those with the drops; all are 0 for literals that do not exist.
    ``means`` (n,) and ``squares`` (n,) are those of the drops; ``predictions`` and ``origins`` (n,), ``k`` and
    ``box`` are as in `Problem`.
    """

    chances: np.ndarray
    both: np.ndarray
    covariances: np.ndarray
    means: np.ndarray
    squares: np.ndarray
    predictions: np.ndarray
    origins: np.ndarray
    k: int
    box: float | None

    @property
    def variances(self) -> np.ndarray:
        """The variances of the flips, (3, n, d)."""
        return np.asarray(self.chances * (1 - self.chances))

    @property
    def pair_covariances(self) -> np.ndarray:
        """The covariances of two flips, (3, n, d), in the order of `PAIRS`."""
        return np.stack(
            [own - self.chances[i] * self.chances[j] for own, (i, j) in zip(self.both, PAIRS, strict=True)]
        )

    def take(self, rows: np.ndarray) -> "GroupedProblems":
        """Return some of the problems."""
        wide = {name: getattr(self, name)[:, rows] for name in ("chances", "both", "covariances")}
        each = {name: getattr(self, name)[rows] for name in ("means", "squares", "predictions", "origins")}
        return replace(self, **wide, **each)


@dataclass(frozen=True, slots=True, eq=False)
class Options:
    """The matrices of all options: ``terms`` (6, 7, n, d) are cc, cb, bb, c1, b1 and 11.

    ``possible`` (7, n, d) says which options there are. Three literals that are linearly dependent are not one:
    they span no more than two of them do, and their free sum is what the starting level gives. ``unclear`` (n,)
    are problems in which rounding decides about that.
    """

    terms: np.ndarray
    possible: np.ndarray
    unclear: np.ndarray

    @classmethod
    def of(cls, problems: GroupedProblems, allowed: np.ndarray) -> "Options":
        """Return the options of ``allowed`` (3, n, d) literals, by the method of Gram and Schmidt."""
        v, r = problems.variances, problems.pair_covariances
        exists = allowed & (v > 0)
        v = np.where(exists, v, 1.0)
        w = np.stack([problems.covariances, problems.chances, np.ones(v.shape)])  # (3, literals, n, d)
        terms, possible = (
            np.empty((6, len(MEMBERS), *v.shape[1:])),
            np.empty((len(MEMBERS), *v.shape[1:]), dtype=bool),
        )
        terms[:, :3], possible[:3] = _products(w, v), exists
        rests, left, unclear = [], [], np.zeros(v.shape[1:], dtype=bool)
        for number, (i, j) in enumerate(PAIRS):
            rest, own = w[:, j] - (r[number] / v[i]) * w[:, i], v[j] - r[number] ** 2 / v[i]
            both, clear = exists[i] & exists[j], own > _DEPENDENT * v[j]
            possible[3 + number], own = both & clear, np.where(clear, own, 1.0)
            unclear |= both & ~clear
            terms[:, 3 + number] = terms[:, i] + _products(rest, own)
            rests.append(rest)
            left.append(own)
        # The third literal, after what the first and the second explain of it.
        across = r[2] - r[0] * r[1] / v[0]
        rest, own = rests[1] - (across / left[0]) * rests[0], v[2] - r[1] ** 2 / v[0] - across**2 / left[0]
        both, clear = exists.all(axis=0) & possible[3], own > _DEPENDENT * v[2]
        possible[6] = both & clear
        terms[:, 6] = terms[:, 3] + _products(rest, np.where(clear, own, 1.0))
        unclear |= both & ~clear & (problems.both[2] > 0)
        return cls(terms, possible, np.asarray(unclear.any(axis=1)))

    def take(self, rows: np.ndarray) -> "Options":
        """Return the options of some of the problems."""
        return Options(self.terms[:, :, rows], self.possible[:, rows], self.unclear[rows])

    def without_twins(self) -> "Options":
        """Return the options without pairs that span the same as the two bounds do; for sums that are free."""
        twins = self.possible[3:6].all(axis=0) & ~self.possible[6]
        possible = self.possible.copy()
        possible[3:5] &= ~twins
        return Options(self.terms, possible, self.unclear)

    def gains(self, eta: np.ndarray, mu: np.ndarray) -> np.ndarray:
        """Return y'Qy of every option, (7, n, d), or -inf; ``eta`` and ``mu`` (n,) are multipliers."""
        cc, cb, bb, c1, b1, ones = self.terms
        eta, mu = eta[:, None], mu[:, None]
        total = cc + 2 * eta * cb
        total += eta**2 * bb
        if mu.any():
            total += 2 * mu * c1
            total += 2 * eta * mu * b1
            total += mu**2 * ones
        total[~self.possible] = -np.inf
        return np.asarray(total)


def _products(w: np.ndarray, variances: np.ndarray) -> np.ndarray:
    """Return the six products of three vectors ``w`` (3, ...), divided by variances (...)."""
    c, b, one = w
    products = np.stack([c * c, c * b, b * b, c * one, b * one, one * one])
    products /= variances
    return products


@dataclass(frozen=True, slots=True, eq=False)
class Sums:
    """How sums of one variant are valued: ``means`` (n,) of the drops, ``totals`` (n,) of the contributions.

    ``totals`` is None with starting level.
    """

    means: np.ndarray
    totals: np.ndarray | None
    budget: int

    def take(self, rows: np.ndarray) -> "Sums":
        """Return the variant of some of the problems, which may be repeated."""
        return Sums(self.means[rows], None if self.totals is None else self.totals[rows], self.budget)

    def values(self, q: np.ndarray) -> np.ndarray:
        """Return V of matrices ``q`` (6, ..., n)."""
        return self.solved(q)[0]

    def solved(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return V of matrices ``q`` (6, ..., n), and the multipliers eta and mu that attain it."""
        first, spread = self.means - q[1], 1 + q[2]
        if self.totals is None:
            eta = first / spread
            return first * eta - q[0], eta, np.zeros_like(eta)
        second = self.totals - q[3]
        determinant = spread * q[5] - q[4] ** 2
        empty = determinant <= 0
        determinant = np.where(empty, 1.0, determinant)
        eta = (first * q[5] - second * q[4]) / determinant
        mu = (second * spread - first * q[4]) / determinant
        values = first * eta + second * mu - q[0]
        return np.where(empty, np.inf, values), np.where(empty, 0.0, eta), np.where(empty, 0.0, mu)

    def constants(self, eta: np.ndarray, mu: np.ndarray) -> np.ndarray:
        """Return what the bound of all sets is at multipliers (n,), before the gains are taken off."""
        constant = 2 * eta * self.means - eta**2
        return np.asarray(constant if self.totals is None else constant + 2 * mu * self.totals)
