r"""The paper's lemmas and theorems as functions of their parameters.

Letters are the paper's: k terms, d coordinates, :math:`\varepsilon` tolerance, :math:`\delta` failure
probability, m samples, B the :math:`L_1` radius. These numbers are not estimates. They hold before any
sample is drawn, and most of them are very conservative.
"""

import math
from dataclasses import dataclass

from anchorline.errors import ParameterError
from anchorline.guarantees.intervals import (
    checked_count,
    checked_delta,
    checked_epsilon,
    checked_positive,
    checked_real,
    checked_sigma,
)

CONDITION_TARGET = 1.25
"""The paper's gamma (Assumption 1), which determines theta = 1/18, rho = 51/152 and the factor 81."""

GAMMA_LIMIT = 39 / 11
"""At gamma = 39/11, beta = (16/9) alpha, and the contraction rate rho reaches 1."""


def relevance_factor(sigma: float, n_literals: int) -> float:
    r"""Return the factor between relevance and fidelity for a support of ``n_literals`` literals.

    .. math:: \mathsf R(w) \le (1 + e^{-\sigma})^{s} \, \mathsf F(w), \qquad s = |\mathrm{support}(w)|

    Lemma "Approximating Relevance via Fidelity", with the number s of literals that can flip instead of k. The
    intercept never flips, so it does not count. The lemma holds for anchored explanations only.

    >>> [round(relevance_factor(sigma, 5), 2) for sigma in (0.0, 1.0, 2.0, 3.0)]
    [32.0, 4.79, 1.89, 1.27]
    """
    sigma = checked_sigma(sigma)
    size = checked_count("n_literals", n_literals, minimum=0)
    try:
        return (1.0 + math.exp(-sigma)) ** size
    except OverflowError:
        return math.inf


def relevance_factor_from_event(event_probability: float) -> float:
    r"""Return the sharpest relevance factor, from the exact probability of the conditioning event.

    .. math:: \mathsf R(w) \le \mathsf F(w) / \mathbb P[A], \qquad A = \{z : w \cdot z = w \cdot x\}

    It is at most :func:`relevance_factor`, and smaller if flipped contributions can cancel.

    >>> relevance_factor_from_event(0.25)
    4.0
    """
    return 1.0 / checked_positive("event_probability", event_probability, 1.0, example=0.25)


def required_samples(k: int, d: int, epsilon: float, delta: float, radius: float | None = None) -> int:
    r"""Return the number of samples after which fidelity on the sample bounds fidelity in the population.

    .. math:: m \ge \frac{(B + 1)^4}{4 \varepsilon^2} \left(16 \ln(2d) + \ln\frac{2}{\delta}\right)

    Theorem "Approximating Relevance via Empirical Fidelity": with probability :math:`1 - \delta`, every
    anchored w with at most k terms and :math:`\|w\|_1 \le B` has
    :math:`\mathsf R(w) \le (1 + e^{-\sigma})^k (\widehat{\mathsf F}(w) + \varepsilon)`.
    ``radius`` is B. The default is k, its value in the box.

    >>> f"{required_samples(k=5, d=100, epsilon=0.1, delta=0.05):.1e}"
    '2.9e+06'
    """
    epsilon = checked_epsilon(epsilon)
    return _rounded_up(_deviation_scale(k, d, delta, radius) / epsilon / epsilon)  # the square can underflow


def achievable_epsilon(n_samples: int, k: int, d: int, delta: float, radius: float | None = None) -> float:
    r"""Return the tolerance that ``n_samples`` samples achieve, the inverse of :func:`required_samples`.

    .. math:: \varepsilon = \frac{(B + 1)^2}{2} \sqrt{\frac{16 \ln(2d) + \ln(2/\delta)}{m}}

    Values above 1 are returned unchanged; :func:`is_vacuous` detects them.

    >>> round(achievable_epsilon(5000, k=5, d=42, delta=0.05), 1)
    2.2
    """
    return math.sqrt(_deviation_scale(k, d, delta, radius) / checked_count("n_samples", n_samples))


def is_vacuous(epsilon: float) -> bool:
    r"""Return whether a tolerance guarantees nothing, because errors never exceed 1.

    .. math:: \varepsilon > 1

    A tolerance below 1 can still guarantee nothing about relevance, where it is multiplied by
    :func:`relevance_factor`.

    >>> is_vacuous(achievable_epsilon(5000, k=5, d=42, delta=0.05))
    True
    """
    return not epsilon <= 1.0  # NaN guarantees nothing


def locality_cost(sigma: float) -> float:
    r"""Return the factor by which locality multiplies the samples that restricted convexity needs.

    .. math:: \cosh^4(\sigma / 2)

    >>> [float(f"{locality_cost(sigma):.2g}") for sigma in (1.0, 2.0, 3.0)]
    [1.6, 5.7, 31.0]
    """
    return math.cosh(checked_sigma(sigma) / 2) ** 4


@dataclass(frozen=True, kw_only=True)
class IhtConstants:
    r"""Curvature, step and rate of Algorithm 1 at one concentration; :func:`iht_constants` builds them.

    .. math:: \nu = \tanh(\sigma/2), \quad \lambda = \operatorname{sech}^2(\sigma/2), \quad
              \theta = \frac{\gamma - 1}{2(\gamma + 1)}, \quad \alpha = \lambda(1 - \theta), \quad
              \beta = \lambda(1 + \theta), \quad \eta = 1/\beta, \quad
              \rho = 2(1 - \alpha/\beta) + \tfrac18
    """

    nu: float
    variance: float
    theta: float
    alpha: float
    beta: float
    step: float
    rho: float


def iht_constants(sigma: float, gamma: float = CONDITION_TARGET) -> IhtConstants:
    r"""Compute the constants of Lemma "Orthogonal RSC/RSS" and of the convergence lemma.

    ``gamma`` is the target condition scalar; the contraction rate is below 1 for gamma < 39/11.

    >>> constants = iht_constants(1.0)
    >>> round(constants.rho, 4), round(constants.beta / constants.alpha, 4)
    (0.3355, 1.1176)
    """
    half = checked_sigma(sigma) / 2
    gamma = _checked_gamma(gamma)
    variance = math.cosh(half) ** -2
    theta = (gamma - 1) / (2 * (gamma + 1))
    alpha, beta = variance * (1 - theta), variance * (1 + theta)
    rho = 2 * (1 - (1 - theta) / (1 + theta)) + 1 / 8
    return IhtConstants(
        nu=math.tanh(half), variance=variance, theta=theta, alpha=alpha, beta=beta, step=1 / beta, rho=rho
    )


def iht_step(sigma: float) -> float:
    r"""Return the step of Algorithm 1, which needs no tuning.

    .. math:: \eta = 1/\beta = \tfrac{18}{19} \cosh^2(\sigma/2)

    >>> round(iht_step(1.0), 4)
    1.2046
    """
    return iht_constants(sigma).step


def iht_radius(k: int, sigma: float) -> float:
    r"""Return the largest :math:`L_1` norm of an iterate of Algorithm 1, which has no box.

    .. math:: B = k + 4\sqrt{k/\alpha}

    Lemma "Trajectory Bounds", part (ii).

    >>> round(iht_radius(5, 1.0), 2)
    15.38
    """
    k = checked_count("k", k)
    return k + 4 * math.sqrt(k / iht_constants(sigma).alpha)


def iht_residual_bound(k: int, objective: float = 1.0) -> float:
    r"""Return the largest restricted gradient norm that the reference optimum can have.

    .. math:: \xi \le 2 \sqrt{3k} \sqrt{\widehat{\mathsf F}(\widehat w)} \le 2\sqrt{3k}

    Lemma "Trajectory Bounds", part (i). ``objective`` is the fidelity error of the optimum on the sample.

    >>> round(iht_residual_bound(3), 6)
    6.0
    """
    return 2 * math.sqrt(3 * checked_count("k", k) * checked_real("objective", objective, 0.0, 1.0, example=0.05))


def iht_iterations(k: int, sigma: float, epsilon: float, xi: float | None = None) -> int:
    r"""Return the number of iterations after which Algorithm 1 is within its guarantee.

    .. math:: T \ge \frac{1}{\ln(1/\rho)} \ln\frac{\sqrt k + 1}{\vartheta}, \qquad
              \vartheta = \min\left\{\frac{\varepsilon}{2\xi}, \sqrt{\frac{\varepsilon}{2\beta}}\right\}

    ``xi`` is the restricted gradient norm at the optimum. If it is None, its bound :math:`2\sqrt{3k}` gives a
    number that always suffices. At ``xi=0`` the first term is infinite.

    >>> iht_iterations(5, 1.0, 0.01)
    8
    """
    k = checked_count("k", k)
    epsilon = checked_epsilon(epsilon)
    xi = iht_residual_bound(k) if xi is None else checked_real("xi", xi, 0.0, math.inf, example=1.0)
    constants = iht_constants(sigma)
    reach = math.sqrt(epsilon / (2 * constants.beta))
    if xi > 0:
        reach = min(reach, epsilon / (2 * xi))
    return max(0, _rounded_up(math.log((math.sqrt(k) + 1) / reach) / -math.log(constants.rho)))


def iht_mean_tolerance(k: int, sigma: float) -> float:
    r"""Return the tolerance omega that Assumption 1 allows for the mean of the centered literals.

    .. math:: \omega = \frac{\beta}{16 \nu \sqrt{3k}}

    It is infinite at sigma = 0, where the literals are already centered and the condition is void.

    >>> round(iht_mean_tolerance(5, 1.0), 4)
    0.029
    """
    k = checked_count("k", k)
    constants = iht_constants(sigma)
    return constants.beta / (16 * constants.nu * math.sqrt(3 * k)) if constants.nu > 0 else math.inf


def end_to_end_factor(k: int, sigma: float) -> float:
    r"""Return the factor on the fidelity error of the optimum in the end-to-end guarantee of Algorithm 1.

    .. math:: \mathsf R(w_T) \le (1 + e^{-\sigma})^k
              \left((1 + 81 k \cosh^2(\sigma/2)) \, \widehat{\mathsf F}(\widehat w) + \varepsilon\right)

    The theorem assumes that every coordinate flips, including the constant one. With an intercept that never
    flips it does not apply as stated.

    >>> round(end_to_end_factor(5, 1.0))
    516
    """
    cosh = math.cosh(checked_sigma(sigma) / 2)
    return 1 + 81 * checked_count("k", k) * cosh**2


def rsc_required_samples(
    order: int,
    d: int,
    sigma: float,
    delta: float,
    omega: float,
    *,
    c0: float,
    c1: float,
    gamma: float = CONDITION_TARGET,
) -> int:
    r"""Return the number of samples after which restricted convexity and smoothness hold at a given order.

    .. math:: m \ge \max\left\{ c_0 \left(\tfrac{\gamma + 1}{\gamma - 1}\right)^2
              \left(s \ln\tfrac{ed}{s} + \ln\tfrac{2 c_1}{\delta}\right) \cosh^4\tfrac\sigma2, \;
              \frac{2s}{\omega^2} \ln\tfrac{4d}{\delta} \right\}

    Lemma "Orthogonal RSC/RSS". ``c0`` and ``c1`` are absolute constants whose values the paper does not
    give. An order above d is replaced by d, because it gives the same condition.

    >>> rsc_required_samples(15, 42, 1.0, 0.05, 0.029, c0=1.0, c1=1.0)
    289645
    """
    d = checked_count("d", d)
    order = min(checked_count("order", order), d)
    delta = checked_delta(delta)
    if not omega > 0:
        raise ParameterError(
            f"omega is {omega!r}, but it must be a positive number. Type omega=iht_mean_tolerance(k, sigma)."
        )
    gamma = _checked_gamma(gamma)
    c0, c1 = (checked_positive(name, c, example=1.0) for name, c in (("c0", c0), ("c1", c1)))
    complexity = order * math.log(math.e * d / order) + math.log(2 * c1 / delta)
    curvature = c0 * ((gamma + 1) / (gamma - 1)) ** 2 * complexity * locality_cost(sigma)
    return _rounded_up(max(curvature, 2 * order / omega**2 * math.log(4 * d / delta)))


def iht_required_samples(
    k: int, d: int, sigma: float, epsilon: float, delta: float, *, c0: float, c1: float
) -> int:
    r"""Return the number of samples that the end-to-end guarantee of Algorithm 1 needs.

    .. math:: m \ge \frac{(B + 1)^4}{\varepsilon^2} \left(16 \ln(2d) + \ln\frac4\delta\right),
              \qquad B = k + 4\sqrt{k/\alpha}

    and at least :func:`rsc_required_samples` at order 3k with failure probability :math:`\delta/2`. The
    first condition is :func:`required_samples` at radius B, :math:`\varepsilon/2` and :math:`\delta/2`.

    >>> f"{iht_required_samples(5, 42, 1.0, 0.01, 0.05, c0=1.0, c1=1.0):.1e}"
    '5.4e+10'
    """
    epsilon = checked_epsilon(epsilon)
    delta = checked_delta(delta)
    uniform = required_samples(k, d, epsilon / 2, delta / 2, iht_radius(k, sigma))
    return max(uniform, _iht_regular_samples(k, d, sigma, delta, c0=c0, c1=c1))


def iht_achievable_epsilon(
    n_samples: int, k: int, d: int, sigma: float, delta: float, *, c0: float, c1: float
) -> float:
    r"""Return the tolerance that ``n_samples`` samples achieve in the end-to-end guarantee of Algorithm 1.

    .. math:: \varepsilon = (B + 1)^2 \sqrt{\frac{16 \ln(2d) + \ln(4/\delta)}{m}}

    It is infinite if the sample is too small for restricted convexity, because nothing is guaranteed then.

    >>> round(iht_achievable_epsilon(10**11, 5, 42, 1.0, 0.05, c0=1.0, c1=1.0), 4)
    0.0074
    """
    delta = checked_delta(delta)
    if checked_count("n_samples", n_samples) < _iht_regular_samples(k, d, sigma, delta, c0=c0, c1=c1):
        return math.inf
    return 2 * achievable_epsilon(n_samples, k, d, delta / 2, iht_radius(k, sigma))


def _iht_regular_samples(k: int, d: int, sigma: float, delta: float, *, c0: float, c1: float) -> int:
    """Return the number of samples after which Assumption 1 holds with failure probability delta / 2."""
    omega = iht_mean_tolerance(k, sigma)
    return rsc_required_samples(3 * k, d, sigma, delta / 2, omega, c0=c0, c1=c1)


def _deviation_scale(k: int, d: int, delta: float, radius: float | None) -> float:
    """Return m epsilon^2 of the uniform-convergence theorem."""
    k, d = checked_count("k", k), checked_count("d", d)
    delta = checked_delta(delta)
    radius = float(k) if radius is None else checked_real("radius", radius, 1.0, math.inf, example=5.0)
    return (radius + 1) ** 4 / 4 * (16 * math.log(2 * d) + math.log(2 / delta))


def _checked_gamma(gamma: float) -> float:
    """Return the target condition scalar, or raise ``ParameterError`` if the iteration would not contract."""
    if not 1.0 < gamma < GAMMA_LIMIT:
        raise ParameterError(f"gamma is {gamma!r}, but it must be between 1 and 39/11. Type gamma=1.25.")
    return gamma


def _rounded_up(count: float) -> int:
    """Return ``count`` rounded up to an integer, or raise ``ParameterError`` if it is not finite."""
    if not math.isfinite(count):
        raise ParameterError(
            f"The bound requires {count} samples, but the number must be finite. Type a larger epsilon."
        )
    return math.ceil(count)
