"""Check somebody else's result: compute every figure again, and measure it once more on fresh neighbors.

May import: changes, errors, explainer, facts, guarantees, model, optimize, result, rules, search, settings,
spaces; and when it is run: cli.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from anchorline.result.verification import Verification


def verify(
    record: Any,
    model: Any,
    space: Any,
    *,
    instance: Any = None,
    seed: int | None = None,
    check: Callable[[], object] | None = None,
) -> "Verification":
    """Compute an explanation, a rule, changes or reasons again, and return whether every figure is as stated.

    No figure is taken from the record: the neighbors are drawn again from the recorded settings, and the model is
    asked again. Numbers that are computed may differ by 1e-9 of their size, because machines round differently,
    and the bound of a proof by 0.1% of the variance, which a search leaves open; facts, counts and codes may not.
    Then the shares and the fit are measured once more on neighbors that nobody could predict, from 5,000 up to
    160,000, until every figure is confirmed or one is contradicted. A rule that is said to hold always is
    contradicted by a single altered copy.

    Parameters
    ----------
    record
        An `Explanation`, a `Rule`, `Changes`, `Reasons`, or the JSON of one as a text.
    model
        The model that the record is about.
    space
        The space, or the training table, which is taken as ``Table(frame)``.
    instance
        Only for images that the record identifies without containing them.
    seed
        Of the fresh neighbors; by default from the system's own randomness.
    check
        Is called in every loop, and may raise to interrupt.

    Examples
    --------
    >>> from anchorline.explainer import Explainer
    >>> from anchorline.spaces.hypercube import Hypercube
    >>> space = Hypercube(["income", "debt", "owner"])
    >>> e = Explainer(lambda z: 0.5 * z[:, 0], space).explain([1, 1, -1])
    >>> verify(e, lambda z: 0.5 * z[:, 0], space).holds
    True
    >>> print(verify(e, lambda z: 0.6 * z[:, 0], space).reasons[0])
    the model answers differently: for this row, prediction is 0.600, but 0.500 is stated
    """
    from anchorline.verify.check import verified  # noqa: PLC0415  heavy

    return verified(record, model, space, instance=instance, seed=seed, check=check)
