"""Check somebody else's explanation: recompute what can be recomputed, measure the rest on fresh neighbors.

May import: explainer, result, search, settings, guarantees, optimize, model, spaces, errors.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from anchorline.result.changes import Changes
    from anchorline.result.explanation import Explanation
    from anchorline.result.verification import Outcome, Verification

__all__ = ["Outcome", "Verification", "verify"]


def verify(
    explanation: "Explanation | Changes | str",
    predict: Callable[[Any], Any],
    space: Any = None,
    *,
    instance: Any = None,
    seed: int | None = None,
) -> "Verification":
    """Recompute an explanation (or its JSON) with the model and return whether it holds.

    The result of `Explainer.changes`, or its JSON, is verified by `anchorline.verify.changes.verify_changes`.

    The flips are drawn again from the recorded seed, the model is queried again, and every number is compared:
    answers (by their checksum), sums, objective, bound and estimates to 1e-9. Then fidelity, relevance, stability,
    their baselines and the verdict are measured once more on neighbors that nobody could predict: they are drawn
    from ``seed``, by default from the system's own randomness. Their number is doubled, from 5,000 up to 40,000
    (or the number that the maker measured with), until every figure is confirmed or one is contradicted.
    ``space`` is needed to check the literals' texts against the space itself, and for every space except the
    hypercube. A bare training frame is taken as ``Table(frame)``. ``instance`` is needed where the explanation
    identifies its instance without containing it, which is so for large images.

    Examples
    --------
    >>> import anchorline as al
    >>> model = lambda z: 0.5 * z[:, 0]
    >>> e = al.explain(model, [1, 1, -1], k=2)
    >>> print(e.verify(model))
    The explanation holds: every figure was reproduced, and every neighbor there is was queried.
    >>> e.verify(lambda z: 0.6 * z[:, 0]).reasons
    ('the model answers differently: it gives 0.6 for this row, where the explanation states 0.5',)
    """
    from anchorline.verify.check import check  # noqa: PLC0415 (`import anchorline` imports this module)

    return check(explanation, predict, space, instance=instance, seed=seed)


def __getattr__(name: str) -> Any:
    if name in __all__:
        from anchorline.result import verification  # noqa: PLC0415

        return getattr(verification, name)
    raise AttributeError(f"module 'anchorline.verify' has no attribute {name!r}")
