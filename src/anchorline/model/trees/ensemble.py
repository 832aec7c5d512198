"""A sum of trees in plain arrays: what every reader of a tree library returns."""

from dataclasses import dataclass

import numpy as np

LEAF = -1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Ensemble:
    r"""A sum of trees, :math:`f(z) = \text{base} + \sum_T v_{\ell_T(z)}`, over numeric features z.

    The nodes of all trees are numbered together. A node with ``feature`` -1 is a leaf. At any other node, a row
    goes left if its feature passes the test of the node, and otherwise right; a missing value (NaN) goes left
    where ``missing_left`` is true. The test is ``value < threshold`` if ``strict``, otherwise
    ``value <= threshold``. Where ``category_set`` is not -1, the test is instead that the value, a whole number,
    is one of ``categories[category_set]``.

    Leaf values include every weight, such as a learning rate, or 1 / number of trees for an average. So the
    answer is always the plain sum.

    Parameters
    ----------
    feature, left, right, category_set
        Whole numbers, (nodes,). ``left`` and ``right`` are numbers of nodes, and are not used at leaves.
    threshold
        (nodes,), not used at leaves and at tests of categories.
    missing_left
        Booleans, (nodes,).
    values
        (nodes, outputs), used at leaves only.
    roots
        Number of the first node of every tree, (trees,).
    base
        What is added to every answer, (outputs,).
    categories
        Sorted whole numbers of each set of categories.
    strict
        Whether a value equal to the threshold goes right.
    dtype
        The type to which the library casts features before it compares them.

    Examples
    --------
    >>> stump = Ensemble(
    ...     feature=np.array([0, -1, -1]), threshold=np.array([0.5, 0, 0]), left=np.array([1, 0, 0]),
    ...     right=np.array([2, 0, 0]), missing_left=np.array([True, False, False]),
    ...     category_set=np.full(3, -1), values=np.array([[0.0], [1.0], [2.0]]), roots=np.array([0]),
    ...     base=np.array([10.0]), categories=(), strict=True, dtype=np.dtype("float64"))
    >>> stump.evaluate(np.array([[0.4], [0.5], [np.nan]])).ravel().tolist()
    [11.0, 12.0, 11.0]
    """

    feature: np.ndarray
    threshold: np.ndarray
    left: np.ndarray
    right: np.ndarray
    missing_left: np.ndarray
    category_set: np.ndarray
    values: np.ndarray
    roots: np.ndarray
    base: np.ndarray
    categories: tuple[np.ndarray, ...]
    strict: bool
    dtype: np.dtype

    @property
    def n_outputs(self) -> int:
        """Number of answers per row."""
        return len(self.base)

    @property
    def n_leaves(self) -> int:
        """Number of leaves of all trees."""
        return int(np.count_nonzero(self.feature == LEAF))

    def passes(self, node: int, values: np.ndarray) -> np.ndarray:
        """Return which values (n,) of its feature go left at a node."""
        values = values.astype(self.dtype).astype(np.float64)
        if self.category_set[node] >= 0:
            passed = np.isin(values, self.categories[self.category_set[node]])
        else:
            limit = self.threshold[node]
            passed = values < limit if self.strict else values <= limit
        return np.where(np.isnan(values), self.missing_left[node], passed)

    def evaluate(self, features: np.ndarray) -> np.ndarray:
        """Return the answers (n, outputs) to rows of features (n, m). Cost: n times the sum of the depths."""
        answers = np.tile(self.base.astype(np.float64), (len(features), 1))
        for root in self.roots.tolist():
            waiting = [(root, np.arange(len(features)))]
            while waiting:
                node, rows = waiting.pop()
                if not len(rows):
                    continue
                if self.feature[node] == LEAF:
                    answers[rows] += self.values[node]
                    continue
                passed = self.passes(node, features[rows, self.feature[node]])
                waiting += [(int(self.left[node]), rows[passed]), (int(self.right[node]), rows[~passed])]
        return answers
