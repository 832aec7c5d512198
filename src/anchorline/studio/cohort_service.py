"""Answers the requests about many cases; every method runs in a thread of the job queue."""

import json
import threading
import time
from collections.abc import Callable
from typing import Any

from anchorline.explainer import Explainer
from anchorline.settings import N_SAMPLES
from anchorline.spaces.table import Table
from anchorline.studio.catalog import Catalog
from anchorline.studio.cohort import Cohort, explain_positions
from anchorline.studio.limits import StudioLimits
from anchorline.studio.overview import comparison_of, progress_of, rules_of, summary_of, with_values
from anchorline.studio.problems import Problem
from anchorline.studio.schemas import CompareRequest, OverviewRequest
from anchorline.studio.truth import Truth, outcomes

_MAX_COHORTS = 12  # in memory; each holds a few hundred explanations
_IDLE_SECONDS = 10.0  # the page asks about an unfinished cohort several times in this time


class CohortCache:
    """The cohorts that were asked for last; safe to use from several threads.

    A cohort that is neither finished nor idle is never dropped, because cohorts that displace each other in turns
    would all begin again and again.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._cohorts: dict[str, Cohort] = {}  # the one that was asked for first comes first

    def get_or_build(self, key: str, build: Callable[[], Cohort]) -> Cohort:
        """Return the cohort stored under ``key``, or store a new one; raise `Problem` 429 if there is no room."""
        with self._lock:
            cohort = self._cohorts.pop(key, None)
            if cohort is None:
                self._make_room()
                cohort = build()
            cohort.used = time.monotonic()
            self._cohorts[key] = cohort
            return cohort

    def _make_room(self) -> None:
        if len(self._cohorts) < _MAX_COHORTS:
            return
        for key, cohort in self._cohorts.items():
            is_idle = not cohort.is_busy and time.monotonic() - cohort.used > _IDLE_SECONDS
            if cohort.is_done or is_idle:
                del self._cohorts[key]
                return
        detail = f"{_MAX_COHORTS} other summaries are computed at the moment. Try again later."
        raise Problem(429, detail, headers={"Retry-After": "5"})


class CohortService:
    """The cohorts that were asked for last, and their summaries.

    ``explainer_for(output)`` returns the explainer of a class.
    """

    def __init__(
        self,
        explainer_for: Callable[[str | None], Explainer],
        catalog: Catalog,
        truth: Truth | None,
        limits: StudioLimits,
    ) -> None:
        self._explainer_for, self._catalog, self._truth = explainer_for, catalog, truth
        self._n_samples = min(limits.max_samples, N_SAMPLES["fidelity"])  # at most as many certify
        self._case_seconds = limits.timeout / 2
        self._cohorts = CohortCache()

    def overview(self, request: OverviewRequest) -> bytes:
        """Go on with a cohort, and return its summary."""
        cohort, explainer = self._cohort(request, request.search)
        cohort.step()
        content = progress_of(cohort) | {"summary": None, "rules": None, "outcomes": None}
        if cohort.explained:
            content["summary"] = self._kept(cohort, "summary", lambda: self._summary(cohort))
        if cohort.is_done and cohort.explained:
            content["rules"] = self._kept(cohort, "rules", lambda: rules_of(cohort.explained, explainer.space))
        if cohort.found is not None and cohort.n_answered == len(cohort.answered):
            content["outcomes"] = self._kept(cohort, "outcomes", lambda: self._outcomes(cohort, explainer))
        return _json(content)

    def compare(self, request: CompareRequest) -> bytes:
        """Go on with two cohorts, and return their differences when both are explained."""
        first, _ = self._cohort(request, request.search)
        second, _ = self._cohort(request, request.other)
        for cohort in (first, second):
            cohort.step()
        content: dict[str, Any] = {"first": progress_of(first), "second": progress_of(second), "comparison": None}
        is_done = content["is_done"] = first.is_done and second.is_done
        if is_done and first.explained and second.explained:
            content["comparison"] = comparison_of(first.explained, second.explained)
        return _json(content)

    def _kept(self, cohort: Cohort, name: str, compute: Callable[[], Any]) -> Any:
        """Return what was computed before, or compute it, and keep it if the cohort is complete."""
        if name in cohort.kept:
            return cohort.kept[name]
        content = compute()
        if cohort.is_done:
            cohort.kept[name] = content
        return content

    def _summary(self, cohort: Cohort) -> dict[str, Any]:
        catalog, explained = self._catalog, [*cohort.explained]
        content = summary_of(explained)
        cells = lambda j, rows: catalog.cases.cells(j, catalog.cases.stored_at[rows].tolist())  # noqa: E731
        with_values(content["facts"], catalog.names, cells)
        return content

    def _outcomes(self, cohort: Cohort, explainer: Explainer) -> dict[str, Any]:
        return outcomes(self._catalog.answer_table, cohort.answered, explainer.target.column, self._truth)

    def _cohort(self, request: Any, search: str) -> tuple[Cohort, Explainer]:
        """Return the cohort of a search, and the explainer of its class."""
        explainer = self._explainer_for(self._output(request.output))
        if not isinstance(explainer.space, Table):
            raise Problem(422, "The cases are not rows of a table, so that no summary of many cases exists.")
        keywords = {"k": request.k, "sigma": request.sigma, "n_samples": self._n_samples}
        key = json.dumps([search, request.n_rows, request.output, keywords], sort_keys=True)

        def build() -> Cohort:
            def explain(positions: list[int]) -> Any:
                return explain_positions(explainer, self._catalog, positions, keywords)

            return Cohort(self._catalog, search, request.n_rows, explain, self._case_seconds)

        return self._cohorts.get_or_build(key, build), explainer

    def _output(self, output: str | None) -> str | None:
        """Return the class to explain; of two classes the last one, so that directions are comparable."""
        target = self._explainer_for(None).target
        if output is None and target.column is None and target.classes is not None and len(target.classes) == 2:
            return str(target.classes[-1])
        return output


def _json(content: dict[str, Any]) -> bytes:
    return json.dumps(content, allow_nan=False, separators=(",", ":")).encode()
