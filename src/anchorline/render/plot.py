"""Plots: one function a picture, each on the given axes or on its own; matplotlib is loaded when one is called."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from anchorline.errors import MissingDependencyError
from anchorline.result.neighbors import NeighborSample as NeighborSample  # noqa: PLC0414  what is drawn

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from anchorline.guarantees import Estimate
    from anchorline.optimize.problem import Status
    from anchorline.result.explanation import Explanation


class FrontierPointLike(Protocol):
    """What is drawn of one k."""

    @property
    def k(self) -> int:
        """Most terms allowed."""

    @property
    def status(self) -> "Status":
        """How the search ended."""

    @property
    def objective(self) -> float:
        """The fidelity error on the sample that was searched."""

    @property
    def fidelity_error(self) -> "Estimate | None":
        """The same, measured on fresh neighbors."""

    @property
    def relevance_error(self) -> "Estimate | None":
        """How far the output moves while the facts hold."""


class FrontierLike(Protocol):
    """What is drawn of a `Frontier`: the points and their common confidence."""

    @property
    def points(self) -> Sequence[FrontierPointLike]:
        """One a k."""

    @property
    def confidence(self) -> float:
        """With which all limits hold together."""

    @property
    def warnings(self) -> Sequence[str]:
        """What may make the errors look smaller than they are."""


def waterfall(explanation: "Explanation", ax: "Axes | None" = None) -> "Axes":
    """Steps from the intercept (or from zero, if there is none) to the prediction, one a term, largest first.

    Parameters
    ----------
    explanation
        What to draw.
    ax
        Where; None makes a figure of its own, which pyplot does not know. Nothing is ever shown or closed.

    Returns
    -------
    Axes
        ``ax``, or the new ones; a notebook shows them.

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


def bars(explanation: "Explanation", ax: "Axes | None" = None) -> "Axes":
    """Contributions as bars from a common zero, largest first, then the intercept.

    Parameters and result are those of `waterfall`.

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
    """Fidelity error and relevance error over k, with the band of their intervals.

    Hollow points were not proved best. Where nothing was certified, the error on the sample is drawn.

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
    """The explanation beside the sums that its evidence cannot tell from it: which literals, which contributions.

    One column a sum and one row a literal; under each alternative, by how much its fidelity error exceeds
    the explanation's.

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
    """The fall of the output against the number of flips, for the model and for the sum.

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
    """Which attributes decide many predictions: how often each is a reason, with which sign and typical size.

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
