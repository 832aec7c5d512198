"""Release 0.1, for comparisons: it runs in a child process with an environment of its own.

``ANCHORLINE_01`` names the Python executable of an environment in which commit 1f6deb0 is installed. Without it,
comparisons leave out the columns of 0.1.
"""

import functools
import importlib
import sys
import sysconfig
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import joblib
import numpy as np

from benchmarks.child import Child, python_of, serve

VARIABLE = "ANCHORLINE_01"


@dataclass(frozen=True, slots=True)
class OldExplanation:
    """What 0.1 said about a row: facts as (column, text), largest contribution first; processor time and memory.

    ``search_seconds``: those without drawing and the model, if ``n_samples`` was a number; see `_time_search`.
    ``megabytes``: by how much the process grew beyond its largest size before. ``stays``: the lower limit of the
    share of neighbors with these facts that keep the decision, or None if it was not measured.
    """

    facts: tuple[tuple[str, str], ...]
    verdict: str
    seconds: float
    search_seconds: float
    megabytes: float
    stays: float | None


def python_of_01() -> str | None:
    """Return the Python executable of 0.1's environment, or None, after a line that says so."""
    return python_of(VARIABLE, "0.1")


class Release01(Child):
    """A child process that explains rows of a frame with release 0.1; use it in a `with` statement."""

    def __init__(self, python: str, model: Any, frame: Any, **keywords: Any) -> None:
        packages = sysconfig.get_path("purelib")  # libraries of models that 0.1's environment may lack
        super().__init__(python, "benchmarks.release01", (model, frame, keywords), packages)

    def __enter__(self) -> "Release01":
        return self

    def explain(self, row: int, **keywords: Any) -> OldExplanation:
        """Explain a row of the frame, by its number."""
        return self._explanation("explain", row, keywords)

    def shortest(self, row: int, **keywords: Any) -> OldExplanation:
        """Return the shortest rule about a row of the frame; the verdict is "infeasible" if there is none."""
        return self._explanation("shortest", row, keywords)

    def _explanation(self, call: str, row: int, keywords: dict[str, Any]) -> OldExplanation:
        found = self.ask(call=call, row=row, keywords=keywords)
        facts = tuple((column, text) for column, text in found.pop("facts"))
        return OldExplanation(facts, **found)


def rows_with(column: str, text: str, values: Any) -> np.ndarray:
    """Return of which values of a column a fact of 0.1 is true as it reads: booleans (n,).

    Examples
    --------
    >>> import pandas as pd
    >>> ages = pd.Series([3.0, 15.0, 40.0, None])
    >>> rows_with("age", "5 <= age < 22", ages).tolist(), rows_with("age", "age is missing", ages).tolist()
    ([False, True, False, False], [False, False, False, True])
    """
    before, _, after = text.partition(column)
    after = after.strip()
    if after in ("is missing", "is not missing"):
        return np.asarray(values.isna() == (after == "is missing"))
    if after.endswith("rare values"):  # "is one of 3 rare values"
        rare = values.astype(object).value_counts().index[-int(after.split()[3]) :]
        return np.asarray(values.astype(object).isin(rare))
    sign, _, right = after.partition(" ")
    if sign == "=":
        if values.dtype == "category" or values.dtype.kind not in "biuf":
            return np.asarray(values.astype(object).astype(str) == right)
        return np.asarray(values == _number(right))
    true = np.ones(len(values), dtype=bool)
    if before:
        true &= np.asarray(values >= _number(before.removesuffix(" <= ")))
    if sign:
        compare = {"<": np.less, "<=": np.less_equal, ">=": np.greater_equal, ">": np.greater}[sign]
        true &= np.asarray(compare(values.to_numpy(dtype=float), _number(right)))
    return true


def largest_size() -> float:
    """Return the most memory that this process has used, in megabytes."""
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _number(text: str) -> float:
    return float({"True": "1", "False": "0"}.get(text, text).replace(",", ""))


def main(file: str, packages: str) -> None:
    """Answer requests about the model and frame of a file; runs in 0.1's environment."""

    def start() -> Callable[[dict[str, Any]], dict[str, Any]]:
        sys.path.append(packages)
        import anchorline

        model, frame, choices = joblib.load(file)
        explainer, searched = anchorline.Explainer(model, anchorline.Table(frame), **choices), _time_search()
        return lambda request: _answer(explainer, searched, **request)

    serve(start)


def _time_search() -> list[float]:
    """Return a list to which 0.1 adds the seconds of each phase of a search in which it neither draws nor asks.

    These are the statistics of a sample, the problem that they pose, and the choice of facts with its proof.
    """
    investigate = importlib.import_module("anchorline.search.investigate")
    evidence = importlib.import_module("anchorline.optimize.evidence").Evidence
    wide = importlib.import_module("anchorline.optimize.wide").WideEvidence
    seconds: list[float] = []

    def timed(call: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(call)
        def wrapper(*values: Any, **keywords: Any) -> Any:
            start = time.process_time()
            answer = call(*values, **keywords)
            seconds.append(time.process_time() - start)
            return answer

        return wrapper

    for name in ("pose", "_choose"):
        setattr(investigate, name, timed(getattr(investigate, name)))
    evidence.from_sample, wide.from_sample = timed(evidence.from_sample), timed(wide.from_sample)
    evidence.mapped = timed(evidence.mapped)
    return seconds


def _answer(
    explainer: Any, searched: list[float], call: str, row: int, keywords: dict[str, Any]
) -> dict[str, Any]:
    """Return what 0.1 says about a row; an error of the kind "nothing found" is an answer without a verdict."""
    from anchorline import errors

    searched.clear()
    begin, size = time.process_time(), largest_size()
    try:
        explanation = getattr(explainer, call)(row, **keywords)
    except errors.InfeasibleError:
        explanation = None
    answer: dict[str, Any] = {"seconds": time.process_time() - begin, "megabytes": largest_size() - size}
    answer["search_seconds"] = sum(searched)
    if explanation is None:
        return answer | {"facts": [], "verdict": "infeasible", "stays": None}
    verdict, stays = explanation.certificate.verdict, explanation.certificate.stability
    answer["facts"] = [(term.literal.name, term.literal.text) for term in explanation.terms]
    answer["verdict"] = verdict.name.lower() if verdict else ""
    return answer | {"stays": None if stays is None else stays.low}


if __name__ == "__main__":
    main(*sys.argv[1:])
