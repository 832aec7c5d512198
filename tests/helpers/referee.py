"""The best sum in rational numbers: every support, every pattern of bounds. Shares no code with anchorline."""

import itertools
from fractions import Fraction

import numpy as np


class Referee:
    """A problem in rational numbers, computed from its rows; every answer is exact.

    Drops and weights are whole numbers inside, in units that are powers of 2, because these are fast.
    """

    def __init__(self, flips, drops, weights, k, prediction, box, origin):
        """Read the rows; ``box`` may be None."""
        flips = np.asarray(flips, dtype=bool)
        self.d, self.k = flips.shape[1], k
        w, _ = _whole_numbers(weights)
        t, self.unit = _whole_numbers(drops)
        wt = [a * b for a, b in zip(w, t, strict=True)]
        self.whole, self.squares = sum(w), sum(a * b for a, b in zip(wt, t, strict=True))
        self.cross = [sum(wt[i] for i in np.flatnonzero(flips[:, j])) for j in range(self.d)]
        self.second = [[0] * self.d for _ in range(self.d)]
        for i, j in itertools.combinations_with_replacement(range(self.d), 2):
            both = np.flatnonzero(flips[:, i] & flips[:, j])
            self.second[i][j] = self.second[j][i] = sum(w[row] for row in both)
        self.prediction, self.origin, self.box = (
            None if number is None else Fraction(float(number)) / self.unit for number in (prediction, origin, box)
        )

    @property
    def square(self):
        """The exact mean of t^2."""
        return self._mean(Fraction(0))

    def objective(self, contributions):
        """Return the exact mean of (t - F u)^2."""
        support = [j for j in range(self.d) if contributions[j] != 0]
        return self._mean(self._curve(support, [Fraction(float(contributions[j])) / self.unit for j in support]))

    def _mean(self, curve):
        return (self.squares + curve) * self.unit**2 / self.whole

    def best(self):
        """Return the best objective over all supports, with and without intercept; None if none is feasible."""
        total, interval, best = self.prediction - self.origin, (None, None), None
        if self.box is not None:
            interval = (self.prediction - self.box, self.prediction + self.box)
        for size, (low, high) in ((min(self.k - 1, self.d), interval), (min(self.k, self.d), (total, total))):
            supports = list(itertools.combinations(range(self.d), size))
            fits = [(self._unboxed(support, low, high), support) for support in supports]
            for value, support in sorted((fit for fit in fits if fit[0] is not None), key=lambda fit: fit[0]):
                if best is not None and value >= best:
                    break
                boxed = value if self.box is None else self._boxed(support, low, high)
                if boxed is not None and (best is None or boxed < best):
                    best = boxed
        return None if best is None else self._mean(best)

    def _curve(self, support, u):
        return sum(
            (
                u[i] * (sum(self.second[a][b] * u[j] for j, b in enumerate(support)) - 2 * self.cross[a])
                for i, a in enumerate(support)
            ),
            Fraction(0),
        )

    def _unboxed(self, support, low, high):
        """Smallest u'Gu - 2 h'u without the box on contributions; None if the sum cannot be reached."""
        totals = [low] if low is not None and low == high else [None, low, high]
        values = []
        for total in totals if low is not None else [None]:
            u = self._stationary(support, [0] * len(support), total, unique=False)
            if u is not None and (low is None or low <= sum(u) <= high):
                values.append(self._curve(support, u))
                if total is None:
                    break
        if not values and low is not None and low != high:  # some other minimizer has a feasible sum
            u = self._stationary(support, [0] * len(support), None, unique=False)
            return None if u is None else self._curve(support, u)
        return min(values, default=None)

    def _boxed(self, support, low, high):
        """Smallest value inside the box: some minimizer is the only one for its pattern of active bounds."""
        best = None
        for sides in itertools.product((0, -1, 1), repeat=len(support)):
            for total in (low,) if low == high else (None, low, high):
                u = self._stationary(support, sides, total, unique=True)
                if u is None or not low <= sum(u) <= high or any(abs(value) > self.box for value in u):
                    continue
                value = self._curve(support, u)
                best = value if best is None or value < best else best
        return best

    def _stationary(self, support, sides, total, *, unique):
        """The minimum with values held at the box where a side is given, and with a given sum; None if none.

        ``unique`` asks for None also where the minimum is not unique.
        """
        free = [i for i, side in enumerate(sides) if side == 0]
        u = [side * self.box if side else Fraction(0) for side in sides]
        if not free:
            return u if total is None or sum(u) == total else None
        system = []
        for i in free:
            row = [self.second[support[i]][support[j]] for j in free]
            held = sum((self.second[support[i]][b] * u[j] for j, b in enumerate(support)), Fraction(0))
            system.append([*row, *([] if total is None else [1]), self.cross[support[i]] - held])
        if total is not None:
            system.append([1] * len(free) + [0, total - sum(u)])
        solution = _solve(system, unique=unique)
        if solution is None:
            return None
        for i, value in zip(free, solution, strict=False):
            u[i] = value
        return u


def _whole_numbers(values):
    """Return floats as whole numbers, and their unit."""
    exact = [Fraction(float(value)) for value in values]
    unit = Fraction(1, max(value.denominator for value in exact))
    return [int(value / unit) for value in exact], unit


def _solve(system, *, unique):
    """Solve a linear system in place; free unknowns are 0, or None is returned if ``unique`` is asked for."""
    n, pivots = len(system[0]) - 1, []
    for column in range(n):
        rank = len(pivots)
        row = next((i for i in range(rank, len(system)) if system[i][column] != 0), None)
        if row is None:
            if unique:
                return None
            continue
        system[rank], system[row] = system[row], system[rank]
        head = [Fraction(value) / system[rank][column] for value in system[rank]]
        system[rank] = head
        for i in range(len(system)):
            if i != rank and (factor := system[i][column]) != 0:
                system[i] = [a - factor * b for a, b in zip(system[i], head, strict=True)]
        pivots.append(column)
    if any(row[-1] != 0 for row in system[len(pivots) :]):
        return None
    solution = [Fraction(0)] * n
    for i, column in enumerate(pivots):
        solution[column] = system[i][-1]
    return solution
