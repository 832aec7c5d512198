"""The thresholding step of IHT: projection onto the sparse vectors with a given sum."""

import numpy as np


def project_sparse_sum(values: np.ndarray, k: int, total: float) -> np.ndarray:
    r"""Project onto the vectors with at most ``k`` non-zeros that sum to ``total``.

    .. math:: \min_u \|u - v\|_2 \quad \text{s.t.}\ \|u\|_0 \le k,\ \mathbf 1^\top u = \text{total}

    On a support P the best projection shifts every kept value by the same amount. It keeps
    :math:`\sum_P v_j^2 - (\sum_P v_j - \text{total})^2 / |P|` of the squared norm, which is convex in each
    kept value. Therefore some best support consists of the p largest and the k - p smallest values, and the
    function tries every p. The result is exact for every ``total``, including zero, where greedy selection
    fails. Cost O(d + k log k). Mutates nothing.

    Examples
    --------
    >>> project_sparse_sum(np.array([0.0, 1.0, -1.0]), k=2, total=0.0).tolist()
    [0.0, 1.0, -1.0]
    """
    d = len(values)
    k = min(k, d)
    if 2 * k < d:
        ends = np.argpartition(values, (k, d - k - 1))
        ends = np.concatenate([ends[:k], ends[d - k :]])
    else:
        ends = np.arange(d)
    ends = ends[np.argsort(values[ends], kind="stable")]  # ascending, so the smallest values come first
    ordered = values[ends]
    n_small = np.arange(k + 1)
    sums, squares = np.append(0.0, ordered.cumsum()), np.append(0.0, (ordered**2).cumsum())
    start = len(ends) - (k - n_small)  # position of the first large value
    kept_sum = sums[n_small] + sums[-1] - sums[start]
    kept_square = squares[n_small] + squares[-1] - squares[start]
    best = int(np.argmax(kept_square - (kept_sum - total) ** 2 / k))
    support = np.concatenate([ends[:best], ends[start[best] :]])
    projected = np.zeros(d)
    projected[support] = values[support] - (values[support].sum() - total) / k
    return projected
