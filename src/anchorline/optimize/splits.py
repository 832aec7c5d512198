"""The roots into which circuits split the exact search; `anchorline.optimize.groups` says why."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from anchorline.optimize.blocks import blocks_of
from anchorline.optimize.bounds import Centered, Node, Projection, project
from anchorline.optimize.gains import Parts, Whole, factors
from anchorline.optimize.groups import Blocks, Spans
from anchorline.optimize.problem import Variant


@dataclass(frozen=True, eq=False)
class Splits:
    """The roots of all variants, split into sets without circuits and, for every circuit, sets that hold it.

    If the first root is that of the variant with starting level, its bounds need no price of the sum, and only the
    best sum is sought, then the search `is_free`: these bounds also hold for all sets with exact circuits and for
    redundant sets. Those are `left_out`, unless the box changes a fit.
    """

    centered: Centered
    roots: list[Node]
    alone: bool  # whether only the best sum is sought

    @property
    def is_free(self) -> bool:
        """Whether some roots can be left out."""
        first = self.roots[0] if self.alone and self.roots else None
        return first is not None and first.variant.low < first.variant.high and first.multipliers[1] == 0

    def nodes(self) -> Iterator[tuple[float, Node]]:
        """The roots with bounds; 0 is one."""
        groups = self.centered.groups
        assert groups is not None
        for i, root in enumerate(self.roots):
            if self.is_free and not i:
                yield 0.0, replace(root, forbidden=groups.redundant, free=True)
            else:
                yield 0.0, replace(root, forbidden=groups.circuits)
                exact = groups.exact & self.is_free
                yield from self._held(root, groups.circuits[~exact], groups.circuits[exact])

    def left_out(self) -> Iterator[tuple[float, Node]]:
        """The roots that are left out because others bound them, too, with bounds."""
        groups = self.centered.groups
        assert groups is not None
        yield 0.0, replace(self.roots[0], forbidden=groups.circuits)
        for i, root in enumerate(self.roots):
            circuits = groups.circuits[groups.exact] if i else groups.circuits
            yield from self._held(root, circuits, circuits[:0])

    def _held(self, root: Node, circuits: np.ndarray, forbidden: np.ndarray) -> Iterator[tuple[float, Node]]:
        eta = self.roots[0].multipliers[0]  # fits a free sum
        return _with_circuits(self.centered, root, circuits, forbidden, eta)


def with_bounds(
    support: np.ndarray, variant: Variant, free: Variant, sums: np.ndarray
) -> tuple[np.ndarray, Variant] | None:
    """A support and variant of no more terms that fit as well, with bounds instead of intervals; None if none.

    ``sums`` are those of `Groups`. With a free starting level, two bounds span as much as one of them and the
    interval, or as all three. Without one, all three span as much as two bounds and a starting level, which is the
    variant ``free``.
    """
    chosen = np.zeros(1 + max(sums.max(initial=0), support.max(initial=0)), dtype=bool)
    chosen[support] = True  # several times faster than np.isin
    held = chosen[sums]
    changes = held[:, 0] & held[:, 1:].any(axis=1)
    if not changes.any() or not (variant.low < variant.high or held.all(axis=1).any()):
        return None
    return np.union1d(np.setdiff1d(support, sums[changes, 0]), sums[changes, 1:]), free


def split(centered: Centered, node: Node) -> Iterator[tuple[float, Node]]:
    """Split a node that needs a price of the sum by the circuits of its candidates; return bounds and nodes."""
    groups = centered.groups
    if groups is None:
        yield 0.0, node
    elif node.variant.low < node.variant.high:
        yield 0.0, replace(node, forbidden=groups.circuits[:0])
    else:
        yield 0.0, replace(node, forbidden=groups.circuits)
        yield from _with_circuits(centered, node, groups.circuits, groups.circuits[:0], node.multipliers[0])


def _with_circuits(
    centered: Centered, node: Node, circuits: np.ndarray, forbidden: np.ndarray, eta: float
) -> Iterator[tuple[float, Node]]:
    """One node per circuit (c, d), for the sets that hold it and none of the earlier or ``forbidden`` ones."""
    assert centered.groups is not None
    candidates = node.candidates[np.argsort(centered.groups.numbers[node.candidates], kind="stable")]
    sizes = circuits.sum(axis=1)
    circuits = circuits[(sizes <= node.left) & (circuits[:, candidates].sum(axis=1) == sizes)]
    if not len(circuits):
        return
    projection = project(centered, node.chosen, candidates)
    blocks = blocks_of(centered, projection, node.chosen, candidates)
    bounds = _circuit_bounds(projection, blocks, circuits[:, candidates], eta, node.left)
    # The search goes on from the multipliers of these bounds; those of the node fit sets without circuits.
    start = replace(node, multipliers=(eta, 0.0))
    for i, circuit in enumerate(circuits):
        chosen = (*node.chosen, *np.flatnonzero(circuit).tolist())
        without = np.concatenate([forbidden, circuits[:i]])
        child = replace(start, chosen=chosen, candidates=candidates[~circuit[candidates]], forbidden=without)
        yield float(bounds[i]), child


def _circuit_bounds(
    projection: Projection, blocks: Blocks, circuits: np.ndarray, eta: float, r: int
) -> np.ndarray:
    """Bounds (c,) at price 0 of sets of r candidates that hold each of the circuits (c, n), at the root."""
    line = projection.common_line
    if line is not None and line[0] ** 2 < 1:  # a degenerate candidate gains nothing at this price if eta is 0
        eta = 0.0
    y, lost = projection.at(eta, 0.0)
    parts = Parts.of(blocks, y, circuits[:0], r)
    gains, sizes, owners = parts.gains(y, lost, r), circuits.sum(axis=1), blocks.index[circuits.argmax(axis=1)]
    each = factors(blocks.kappa, parts.weights, r)[np.minimum(sizes, 3) - 1, owners]
    whole = Whole(owners, Spans.of(blocks.table[owners], blocks.inner[owners]), each)
    others = gains.others(r, int(sizes.max()))[sizes - 1, owners]
    return np.asarray(projection.base(eta, 0.0, (-np.inf, np.inf)) - whole.gains(y, lost) - others)
