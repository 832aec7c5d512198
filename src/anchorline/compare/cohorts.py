r"""How the reasons of one model differ between two cohorts of rows, at once or as rows come in.

The effect of an attribute on a row is what its value adds there (`pairs`). Its mean over a cohort says what the
attribute adds to the average output of these rows, compared with values of the rows before. If the model is a sum
over attributes, the differences of all means add up to that of the average output exactly.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from anchorline.compare.models import FEWEST_ROWS, CompareSettings, read_rows, shuffled
from anchorline.compare.pairs import halves
from anchorline.errors import ParameterError
from anchorline.explainer import Explainer
from anchorline.guarantees.limits import mean_width
from anchorline.result.comparison import Amount, AttributeDrift, Drift
from anchorline.result.explanation import Output
from anchorline.search.assemble import VERSIONS
from anchorline.spaces.table import TableRows

Check = Callable[[], object] | None
_TUNED_FOR = 500  # rows, after which a monitor's limits are narrowest
_N_COPIES = 256  # per row; noise of a row's effects averages out over rows


def compare_cohorts(
    explainer: Explainer, before: Any, after: Any, settings: CompareSettings, check: Check = None
) -> Drift:
    """Compare the effects of attributes on n rows of each of two frames; values are drawn from the first."""
    own: dict[str, Any] = {
        "n": settings.n,
        "sigma": settings.sigma,
        "seed": settings.seed,
        "confidence": settings.confidence,
    }
    monitor = Monitor(explainer, before, **own, check=check)
    rows = read_rows(monitor.explainer.space, after)
    chosen = shuffled(rows, settings.n, settings.seed, "after")
    monitor.add(rows, chosen)
    drift = monitor.drift_at(len(chosen))
    assert drift is not None
    return drift


class Monitor:
    """Watches the reasons of a model on rows that come in, and says when they differ from those of a baseline.

    ``update`` takes the next rows, ``drift`` is what is known so far. All limits hold together and at every look,
    so that one may look after every batch and stop at the first alarm: with ``confidence``, there is no false one,
    ever. The limits are approximate, as those of means are, and start at 30 rows.

    Parameters
    ----------
    explainer
        The model with the table whose values are drawn; a classifier needs an ``output``, unless it has two
        classes.
    baseline
        Rows of which ``n`` are taken as those to compare with.

    Examples
    --------
    >>> from anchorline.spaces.table import Table
    >>> rng = np.random.default_rng(0)
    >>> before, after = rng.normal(size=(500, 2)), rng.normal(size=(200, 2)) + [1.0, 0.0]
    >>> monitor = Monitor(Explainer(lambda z: z[:, 0] + z[:, 1], Table(before), output="score"), before)
    >>> [each.attribute for each in monitor.update(after).drifted]
    ['x0']
    """

    def __init__(
        self,
        explainer: Explainer,
        baseline: Any,
        *,
        n: int = 400,
        confidence: float = 0.95,
        sigma: float = 1.0,
        seed: int = 0,
        check: Check = None,
    ) -> None:
        self.explainer, self.confidence, self.check = _of_one_class(explainer), confidence, check
        self._settings = CompareSettings(n=n, sigma=sigma, seed=seed, confidence=confidence).common
        rows = read_rows(explainer.space, baseline)
        chosen = shuffled(rows, n, seed, "before")
        self._output: Output | None = None
        self._before, self._after = _Sums(), _Sums()
        self._before.add(self.figures(rows, chosen))

    def update(self, frame: Any) -> Drift | None:
        """Take the next rows, which may be none, and return what is known so far; None before 30 rows."""
        if len(frame):
            rows = read_rows(self.explainer.space, frame)
            self.add(rows, np.arange(len(rows)))
        return self.drift

    def add(self, rows: TableRows, chosen: np.ndarray) -> None:
        """Take some rows that were read."""
        self._after.add(self.figures(rows, chosen, self._after.n))

    def figures(self, rows: TableRows, chosen: np.ndarray, n_before: int = 0) -> np.ndarray:
        """Return the output and the effects of all attributes per row, (rows, 1 + attributes).

        Each row gets copies of its own, by how many came before it: otherwise noise of equal rows would add up.
        """
        figures = []
        for place, number in enumerate(chosen.tolist(), start=n_before):
            if self.check is not None:
                self.check()
            case = self.explainer.case(rows.at(number), self._settings)
            predictor = case.predictor
            predictor.open(case.neighborhood.original)
            if predictor.is_label:
                raise ParameterError(
                    "The model returns labels, which have no average. Pass a function that returns scores, such "
                    "as predict_proba."
                )
            donors = case.draw("compare/cohort", place, _N_COPIES)
            effects = halves(donors, case.ask(donors).drops).mean(axis=0)
            figures.append([predictor.prediction, *effects])
            self._output = predictor.output
        return np.array(figures)

    @property
    def drift(self) -> Drift | None:
        """What is known so far, with limits that hold at every look; None before 30 rows."""
        return self.drift_at(_TUNED_FOR)

    def drift_at(self, n: int) -> Drift | None:
        """Return what is known so far, with limits that are narrowest after n rows; n is chosen beforehand."""
        before, after = self._before, self._after
        if after.n < FEWEST_ROWS:
            return None
        failure = (1 - self.confidence) / (2 * len(before.mean))
        width = before.width(failure, before.n) + after.width(failure, n)
        changes = [
            Amount(value, value - by, value + by)
            for value, by in zip((after.mean - before.mean).tolist(), width.tolist(), strict=True)
        ]
        real = [change.low > 0 or change.high < 0 for change in changes]
        names = self.explainer.space.at(0).names
        attributes = [
            AttributeDrift(name, float(before.mean[j]), float(after.mean[j]), changes[j], real[j])
            for j, name in enumerate(names, start=1)
        ]
        attributes.sort(key=lambda each: (not each.is_real, -abs(each.change.value), each.attribute))
        assert self._output is not None
        output = replace(self._output, decision=None, runner_up=None)
        return Drift(
            output=output,
            n_before=before.n,
            n_after=after.n,
            before=float(before.mean[0]),
            after=float(after.mean[0]),
            change=changes[0],
            is_real=real[0],
            attributes=tuple(attributes),
            settings={"sigma": self._settings.sigma, "seed": self._settings.seed, "confidence": self.confidence},
            space=self.explainer.space.describe(self.explainer.space.at(0)),
            versions=VERSIONS,
        )


class _Sums:
    """Sums over rows from which means and limits follow, in constant memory."""

    def __init__(self) -> None:
        self.n = 0
        self.mean: np.ndarray = np.zeros(1)
        self._scatter: np.ndarray = np.zeros(1)

    def add(self, figures: np.ndarray) -> None:
        """Add rows (n, m), by Chan's update of mean and scatter."""
        n, mean = len(figures), figures.mean(axis=0)
        scatter, distance, total = ((figures - mean) ** 2).sum(axis=0), mean - self.mean, self.n + n
        self._scatter = self._scatter + scatter + distance**2 * self.n * n / total
        self.mean = self.mean + distance * n / total
        self.n = total

    def width(self, failure: float, tuned_for: int) -> np.ndarray:
        """Return by how much the means may be off; see `mean_width`."""
        return mean_width(np.sqrt(self._scatter / (self.n - 1)), self.n, failure, tuned_for)


def _of_one_class(explainer: Explainer) -> Explainer:
    """Return the explainer of one class for all rows: the given one, or the second of two."""
    if explainer.target.column is not None or explainer.threshold is not None or explainer.target.task is not None:
        return explainer
    classes = explainer.target.classes
    if classes is None:
        return explainer
    if len(classes) > 2:
        raise ParameterError(
            f"The model has {len(classes)} classes, but one output is compared between rows. Type, say, "
            f"output={str(classes[0])!r}."
        )
    return explainer.explaining(1)
