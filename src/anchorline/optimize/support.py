"""Scoring one support: the small box-constrained least squares every solver ends with."""

import numpy as np

from anchorline.errors import NumericalError

_RCOND = 1e-12  # singular values below this share of the largest are noise of the moments
_SLACK = 1e-12  # how far outside a bound still counts as on it
_STEEP = 1e-12  # a multiplier of the wrong sign but smaller than this gains nothing


def fit_support(
    second: np.ndarray, cross: np.ndarray, low: float, high: float, box: float | None
) -> np.ndarray | None:
    r"""Contributions of one support, or None where nothing is feasible.

    .. math:: \min_u u^\top G u - 2 h^\top u \quad\text{s.t.}\quad
              \text{low} \le \mathbf 1^\top u \le \text{high},\ |u_j| \le \text{box}

    ``second`` is G (s, s) and ``cross`` is h (s,), both uncentred and restricted to the support;
    G may be singular. Least squares, unless that leaves the box. Mutates nothing.
    """
    unit = float(second.diagonal().max(initial=0.0)) or 1.0  # rare flips make small moments, not degenerate ones
    second, cross, pinned = second / unit, cross / unit, np.zeros(len(cross))
    fitted = _stationary(second, cross, pinned, low if low == high else None)
    if fitted is not None and low != high and not low - _SLACK <= fitted.sum() <= high + _SLACK:
        fitted = _stationary(second, cross, pinned, low if fitted.sum() < low else high)
    if fitted is None or (box is not None and np.abs(fitted).max(initial=0.0) > box + _SLACK):
        return _active_set(second, cross, low, high, box)
    return fitted


def _stationary(
    second: np.ndarray, cross: np.ndarray, pinned: np.ndarray, total: float | None
) -> np.ndarray | None:
    """Minimum with the non-zero entries of ``pinned`` held, and the sum too where a total is given."""
    solution = pinned.copy()
    free = np.flatnonzero(pinned == 0)
    target = cross[free] - second[free] @ solution
    gram = second[free[:, None], free]
    if total is None:
        solution[free] = np.linalg.lstsq(gram, target, rcond=_RCOND)[0]
        return solution
    left = total - solution.sum()
    if not len(free):
        return solution if abs(left) <= _SLACK else None
    system = np.ones((len(free) + 1, len(free) + 1))  # bordered by the sum
    system[:-1, :-1], system[-1, -1] = gram, 0.0
    solution[free] = np.linalg.lstsq(system, np.append(target, left), rcond=_RCOND)[0][:-1]
    return solution


def _active_set(
    second: np.ndarray, cross: np.ndarray, low: float, high: float, box: float | None
) -> np.ndarray | None:
    """Walk from minimum to minimum, holding the bounds met and letting go of those that hold back.

    ``sides`` says for each literal, then for the sum, which bound is held (-1, 0, +1). Every step
    goes to the minimum with the held bounds, or to the first new bound on the way. Letting go of the
    bound of least index (Bland's rule) keeps it from cycling.
    """
    size = len(cross)
    if box is None or low > size * box + _SLACK or high < -size * box - _SLACK or not size:
        return None
    point = np.full(size, np.clip(0.0, low, high) / size)
    sides = np.zeros(size + 1, dtype=np.int8)
    sides[size] = 1 if low == high else 0
    for _ in range(100 * (size + 1)):
        total = None if not sides[size] else (high if sides[size] > 0 else low)
        goal = _stationary(second, cross, sides[:size] * box, total)
        step = point * 0 if goal is None else goal - point
        share, met = _first_bound(point, step, sides, low, high, box)
        point = point + share * step
        if met is not None:
            sides[met[0]] = met[1]
            continue
        loose = _held_back(second @ point - cross, sides, low == high)
        if loose is None:
            return np.asarray(np.clip(point, -box, box))
        sides[loose] = 0
    raise NumericalError(f"The fit of {size} literals inside the box {box} does not settle.")


def _first_bound(
    point: np.ndarray, step: np.ndarray, sides: np.ndarray, low: float, high: float, box: float
) -> tuple[float, tuple[int, int] | None]:
    """Share of the step up to the first bound that is not held yet, and that bound (index, side)."""
    values = np.append(point, point.sum())
    moves = np.append(step, step.sum())
    lows, highs = np.full(len(values), -box), np.full(len(values), box)
    lows[-1], highs[-1] = low, high
    room = np.where(moves > 0, highs - values, values - lows)
    over = (np.abs(moves) > room + _SLACK) & (sides == 0)
    if not over.any():
        return 1.0, None
    shares = np.where(over, np.maximum(room, 0.0) / np.where(over, np.abs(moves), 1.0), np.inf)
    first = int(np.argmin(shares))
    return float(shares[first]), (first, 1 if moves[first] > 0 else -1)


def _held_back(gradient: np.ndarray, sides: np.ndarray, equality: bool) -> int | None:
    """Index of the first held bound that the objective pulls away from, None at the optimum."""
    size = len(gradient)
    held = sides[:size] != 0
    price = 0.0
    if sides[size]:
        if not held.all():
            price = -float(gradient[~held].mean())
        else:  # any price between what the literals at their lower and upper bounds ask for
            least = (-gradient[sides[:size] < 0]).max(initial=-np.inf)
            most = (-gradient[sides[:size] > 0]).min(initial=np.inf)
            price = float(np.clip(0.0, min(least, most), max(least, most)))
    pull = np.append((gradient + price) * sides[:size], -price * sides[size])
    if equality:
        pull[size] = 0.0
    wrong = np.flatnonzero(pull > _STEEP)
    return int(wrong[0]) if len(wrong) else None
