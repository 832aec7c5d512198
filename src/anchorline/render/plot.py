"""Plots: one function per picture, drawn on given or new axes; calling a function loads matplotlib."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from anchorline.errors import MissingDependencyError
from anchorline.render.frontier_like import FrontierLike as FrontierLike  # noqa: PLC0414  re-exported
from anchorline.render.frontier_like import FrontierPointLike as FrontierPointLike  # noqa: PLC0414  re-exported
from anchorline.result.neighbors import NeighborSample as NeighborSample  # noqa: PLC0414  re-exported

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from anchorline.result.explanation import Explanation


def waterfall(explanation: "Explanation", ax: "Axes | None" = None) -> "Axes":
    """Draw the sum as steps from the starting level to the prediction, one step per term, largest first.

    The starting level is the intercept, or zero if the sum has no intercept.

    Parameters
    ----------
    explanation
        The explanation to draw.
    ax
        The axes to draw on; None makes a new figure outside pyplot. No figure is shown or closed.

    Returns
    -------
    Axes
        ``ax`` or the new axes, which a notebook displays.

    Examples
    --------
    >>> import anchorline as al
    >>> e = al.explain(lambda z: z[:, 0] / 2 + z[:, 1] / 8, [1, -1], k=2, names=["paid", "late"], output="score")
    >>> ax = waterfall(e)
    >>> ax.get_title(loc="left"), [label.get_text() for label in ax.get_yticklabels()]
    ('score = 0.375', ['paid = +1', 'late = -1', 'score'])
    """
    with _needing_matplotlib():
        from anchorline.render.plots.sums import draw_waterfall  # noqa: PLC0415  heavy
    return draw_waterfall(explanation, ax)


def regions(explanation: "Explanation", ax: "Axes | None" = None) -> "Axes":
    """Draw an image with the regions of the sum outlined and numbered, and beside it these regions alone.

    Regions that add are shaded and have a solid outline; regions that subtract are hatched and have a dashed one.
    Parameters and result are the same as those of `waterfall`.

    Examples
    --------
    >>> import anchorline as al
    >>> import numpy as np
    >>> space = al.Image(segments="grid", n_segments=4, hidden=0)
    >>> left = lambda images: images[:, :, :2].mean(axis=(1, 2)) / 255
    >>> e = al.Explainer(left, space, output="light").explain(np.full((4, 4), 200, dtype=np.uint8), k=3)
    >>> [text.get_text() for text in regions(e).texts][:2]
    ['1', '3']
    """
    with _needing_matplotlib():
        from anchorline.render.plots.regions import draw_regions  # noqa: PLC0415  heavy
    return draw_regions(explanation, ax)


def bars(explanation: "Explanation", ax: "Axes | None" = None) -> "Axes":
    """Draw contributions as bars from a common zero, largest first, then the starting level (the intercept).

    Parameters and result are the same as those of `waterfall`.

    Examples
    --------
    >>> import anchorline as al
    >>> e = al.explain(lambda z: z[:, 0] / 2 + z[:, 1] / 8, [1, -1], k=2, names=["paid", "late"], output="score")
    >>> [round(float(bar.get_width()), 3) for bar in bars(e).patches]
    [0.5, -0.125]
    """
    with _needing_matplotlib():
        from anchorline.render.plots.sums import draw_bars  # noqa: PLC0415  heavy
    return draw_bars(explanation, ax)


def frontier(frontier: FrontierLike, ax: "Axes | None" = None) -> "Axes":
    """Draw fidelity error and relevance error over k, with the bands of their intervals.

    Hollow points were not proved best. If nothing was certified, the error on the sample is drawn instead.

    Examples
    --------
    >>> import anchorline as al
    >>> explainer = al.Explainer(lambda z: z[:, 0] / 2 + z[:, 1] / 8, al.Hypercube(["paid", "late"]))
    >>> ax = frontier(explainer.frontier([1, -1], ks=[1, 2]))
    >>> [int(k) for k in ax.get_xticks()]
    [1, 2]
    """
    with _needing_matplotlib():
        from anchorline.render.plots.curves import draw_frontier  # noqa: PLC0415  heavy
    return draw_frontier(frontier, ax)


def alternatives(explanation: "Explanation", ax: "Axes | None" = None) -> "Axes":
    """Draw the explanation beside its alternatives, which are sums that the evidence cannot distinguish from it.

    There is one column per sum and one row per literal. The label of an alternative shows how far its fidelity
    error exceeds the explanation's.

    Examples
    --------
    >>> import anchorline as al
    >>> e = al.explain(lambda z: z[:, 0] / 2 + z[:, 1] / 8, [1, -1], k=2, names=["paid", "late"], output="score")
    >>> [label.get_text() for label in alternatives(e).get_yticklabels()]
    ['paid = +1', 'late = -1']
    """
    with _needing_matplotlib():
        from anchorline.render.plots.many import draw_alternatives  # noqa: PLC0415  heavy
    return draw_alternatives(explanation, ax)


def neighborhood(sample: NeighborSample, ax: "Axes | None" = None) -> "Axes":
    """Draw how far the output decreases over the number of flips, for the model and for the sum.

    Examples
    --------
    >>> sample = NeighborSample(n_flips=[0, 2], outputs=[0.9, 0.4], sums=[0.9, 0.5], prediction=0.9, output="y")
    >>> [text.get_text() for text in neighborhood(sample).get_legend().get_texts()]
    ['one neighbor', 'mean of the model', 'mean of the sum']
    """
    with _needing_matplotlib():
        from anchorline.render.plots.curves import draw_neighborhood  # noqa: PLC0415  heavy
    return draw_neighborhood(sample, ax)


def summary(explanations: Iterable["Explanation"], ax: "Axes | None" = None) -> "Axes":
    """Draw how often each attribute is a reason in many explanations, with its signs and median contributions.

    Examples
    --------
    >>> import anchorline as al
    >>> explainer = al.Explainer(lambda z: z[:, 0] / 2 + z[:, 1] / 8, al.Hypercube(["paid", "late"]))
    >>> ax = summary([explainer.explain(x, k=2) for x in ([1, 1], [1, -1], [-1, -1])])
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['paid', 'late']
    """
    with _needing_matplotlib():
        from anchorline.render.plots.many import draw_summary  # noqa: PLC0415  heavy
    return draw_summary(list(explanations), ax)


@contextmanager
def _needing_matplotlib() -> Iterator[None]:
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "matplotlib":
            raise
        raise MissingDependencyError.for_package("matplotlib", "plot") from error
