"""Turns validated requests into answers as bytes; the only module of the studio that computes explanations.

Every method runs in a thread of the job queue.
"""

import contextlib
import json
import logging
from typing import Any

from anchorline.changes.result import Changes
from anchorline.errors import FormatError
from anchorline.explainer import Explainer
from anchorline.render.characters import printable
from anchorline.result.explanation import Explanation
from anchorline.result.rule import Rule
from anchorline.result.verification import Outcome
from anchorline.settings import MOST_QUERIES, RuleSettings, Settings
from anchorline.spaces.table import Table
from anchorline.studio.cache import ObjectCache
from anchorline.studio.catalog import Catalog
from anchorline.studio.cohort import Cohort, CohortCache, progress_of
from anchorline.studio.job_queue import checkpoint
from anchorline.studio.limits import MAX_ALTERNATIVES, MAX_CHANGES, MAX_FACTS, StudioLimits
from anchorline.studio.problems import Problem
from anchorline.studio.schemas import (
    ChangesRequest,
    ExplainRequest,
    OverviewRequest,
    ReportRequest,
    RuleRequest,
    VerifyRequest,
    WhatIfRequest,
)
from anchorline.studio.truth import Truth, outcomes
from anchorline.studio.views import changes_view, explanation_view, rule_view, summary_view, table_of
from anchorline.verify import verify

logger = logging.getLogger("anchorline.studio")
_MAX_EXPLANATIONS = 64  # and rules, in the cache; a few kilobytes each


class ExplanationService:
    """Answers every kind of request; except for `verify`, an answer depends on its request only."""

    def __init__(
        self, explainer: Explainer, model: Any, catalog: Catalog, limits: StudioLimits, truth: Truth | None
    ) -> None:
        self._explainer, self._model, self._catalog, self._limits = explainer, model, catalog, limits
        self.truth, self._explanations, self._cohorts = truth, ObjectCache(_MAX_EXPLANATIONS), CohortCache()

    def explain(self, request: ExplainRequest) -> bytes:
        """Return the sealed JSON of the explanation."""
        return self._explanation(request).to_json().encode()

    def explain_view(self, request: ExplainRequest) -> bytes:
        """Return the explanation in the form that the page shows."""
        return _json(explanation_view(self._explanation(request)))

    def report(self, request: ReportRequest) -> bytes:
        """Return the explanation as one self-contained HTML page, with the rule beside it if it is wanted."""
        shared = request.model_dump(include={"row", "holds", "sigma", "queries", "seed", "output"})
        rule = None if request.holds is None else self._rule(RuleRequest(**shared))
        return self._explanation(request).to_html(rule=rule).encode()

    def rule(self, request: RuleRequest) -> bytes:
        """Return the sealed JSON of the rule."""
        return self._rule(request).to_json().encode()

    def rule_view(self, request: RuleRequest) -> bytes:
        """Return the rule in the form that the page shows."""
        return _json(rule_view(self._rule(request)))

    def verify(self, request: VerifyRequest) -> bytes:
        """Return whether an explanation, a rule, or changes hold, measured on fresh copies.

        Raises `Problem` 422 if the settings exceed the limits of this server.
        """
        record = request.explanation
        text = record if isinstance(record, str) else json.dumps(record)
        self._check_effort(text)
        try:
            result = verify(text, self._model, self._explainer.space, check=checkpoint)
            outcome, reasons = result.outcome, [printable(str(reason))[:500] for reason in result.reasons[:20]]
        except Exception:  # a forged explanation can cause any error
            logger.exception("an explanation could not be recomputed")
            outcome, reasons = Outcome.CANNOT_TELL, ["it could not be recomputed"]
        return _json({"outcome": outcome.value, "holds": outcome is Outcome.HOLDS, "reasons": reasons})

    def what_if(self, request: WhatIfRequest) -> bytes:
        """Return the model's answer to the changed row, and the value that the explanation's sum predicts."""
        explainer, row = self.explainer_for(request.output), self._catalog.parse_row(request.row)
        explanation, case = self._explanation(request), explainer.case(row, self._settings(request))
        case.predictor.open(case.neighborhood.original)
        changed = self._catalog.cases.change(case.neighborhood, explanation.facts, request.edits, request.broken)
        effects = zip(explanation.effects.tolist(), changed.is_broken, strict=True)
        answer = case.predictor.answer(changed.original, 1)
        content = {
            "row": changed.values,
            "is_broken": list(changed.is_broken),
            "answer": self._catalog.answer_table.readable(self._catalog.ask(changed.original)).texts[0],
            "prediction": float(answer.outputs[0]),
            "expected": explanation.prediction - sum(effect for effect, is_broken in effects if is_broken),
            "original": explanation.prediction,
            "decision_stays": None if answer.stays is None else bool(answer.stays[0]),
        }
        return _json(content)

    def changes(self, request: ChangesRequest) -> bytes:
        """Return the sealed JSON of the changes that turn the decision."""
        return self._changes(request).to_json().encode()

    def changes_view(self, request: ChangesRequest) -> bytes:
        """Return the changes in the form that the page shows."""
        return _json(changes_view(self._changes(request)))

    def _changes(self, request: ChangesRequest) -> Changes:
        keywords = request.model_dump(exclude={"row", "output"}) | {"queries": self._limits.max_queries}
        row = self._catalog.parse_row(request.row)
        return self.explainer_for(request.output).changes(row, check=checkpoint, **keywords)

    def rows(self, search: str, sort: str, offset: int, limit: int, output: str | None = None) -> bytes:
        """Return one page of the rows that match a search, with the model's answers."""
        matches, progress = self._catalog.find(search, sort, output)
        page = matches[offset : offset + limit].tolist()
        answers = self._catalog.answer_table.at(page)
        parts = zip(page, self._catalog.values(page), answers.texts, answers.values, strict=True)
        rows = [dict(zip(("position", "values", "answer", "value"), part, strict=True)) for part in parts]
        if self.truth is not None:
            truths = self.truth.texts(page, self._catalog.answer_table.names)
            rows = [row | {"truth": text} for row, text in zip(rows, truths, strict=True)]
        counts = {"total": self._catalog.n_rows, "found": len(matches), "offset": offset, "progress": progress}
        return _json(counts | {"columns": self._catalog.names, "rows": rows})

    def overview(self, request: OverviewRequest, user: str | None = None) -> bytes:
        """Go on with the cases that match a search, and return their summary as far as it is known."""
        cohort = self._cohort(request, user)
        cohort.step()
        content = progress_of(cohort) | {"summary": None, "outcomes": None}
        if cohort.explained:
            content["summary"] = summary_view([*cohort.explained])
        if cohort.found is not None and cohort.n_answered == len(cohort.answered):
            content["outcomes"] = outcomes(self._catalog.answer_table, cohort.answered, self.truth)
        return _json(content)

    def overview_table(self, request: OverviewRequest, user: str | None = None) -> bytes:
        """Go on with the cases that match a search, and return CSV of those that are explained so far."""
        cohort = self._cohort(request, user)
        cohort.step()
        return table_of([*cohort.explained])

    def explainer_for(self, output: str | None) -> Explainer:
        """Return an explainer of the class labeled ``output``, or the server's own if it is None."""
        if output is None:
            return self._explainer
        labels = [str(label) for label in self._explainer.target.classes or ()]
        if not labels:
            raise Problem(422, f"output is {output!r}, but the model has no named classes. Omit output.")
        if output not in labels:
            raise Problem(
                422, f"output is {output!r}; it must be one of the model's classes: {', '.join(labels)}."
            )
        return self._explainer.explaining(labels.index(output))

    def _settings(self, request: Any) -> Settings:
        given = request.model_dump(include={"k", "sigma", "seed", "alternatives"})
        return Settings(queries=self._queries(getattr(request, "queries", None)), **given)

    def _queries(self, wanted: int | None) -> int | str:
        """Return how many answers may be asked for; raise `Problem` 422 if the server allows fewer."""
        most = self._limits.max_queries
        if wanted is None:
            return "auto" if most >= MOST_QUERIES else most
        if wanted > most:
            raise Problem(422, f"queries is {wanted}; the maximum on this server is {most}.")
        return wanted

    def _explanation(self, request: ExplainRequest) -> Explanation:
        row, settings = self._catalog.parse_row(request.row), self._settings(request)
        explainer = self.explainer_for(request.output)
        # 0.0 and -0.0, which a model may distinguish, stay different in JSON.
        key = json.dumps({"row": row, "output": request.output, **settings.to_dict()}, sort_keys=True)
        return self._explanations.get_or_build(key, lambda: explainer.explain_with(row, settings, checkpoint))

    def _rule(self, request: RuleRequest) -> Rule:
        row, explainer = self._catalog.parse_row(request.row), self.explainer_for(request.output)
        given = request.model_dump(exclude={"row", "output", "queries"})
        settings = RuleSettings(queries=self._queries(request.queries), **given)
        key = json.dumps({"rule of": row, "output": request.output, **settings.to_dict()}, sort_keys=True)
        return self._explanations.get_or_build(key, lambda: explainer.rule_with(row, settings, checkpoint))

    def _cohort(self, request: OverviewRequest, user: str | None) -> Cohort:
        """Return the cohort of a search; of two classes the last is explained, so that signs are comparable."""
        target, output = self._explainer.target, request.output
        if output is None and target.column is None and target.classes is not None and len(target.classes) == 2:
            output = str(target.classes[-1])
        explainer, settings = self.explainer_for(output), self._settings(request)
        if not isinstance(explainer.space, Table):
            raise Problem(422, "The cases are not rows of a table, so that no summary of many cases exists.")
        key = json.dumps(request.model_dump(), sort_keys=True)

        def build() -> Cohort:
            def explain(position: int) -> Explanation:
                return explainer.explain_with(position, settings, checkpoint)

            return Cohort(self._catalog, request.search, request.n_rows, explain, self._limits.timeout / 2)

        return self._cohorts.get_or_build(key, user, build)

    def _check_effort(self, text: str) -> None:
        """Raise `Problem` 422 if the settings exceed the limits, because anybody can seal an explanation."""
        settings: Any = {}
        bounds: dict[str, int] = {}
        with contextlib.suppress(FormatError):  # `verify` reports what is wrong with the format
            settings, bounds = (
                Explanation.from_json(text).settings,
                {"k": MAX_FACTS, "alternatives": MAX_ALTERNATIVES},
            )
        with contextlib.suppress(FormatError):
            settings = Changes.from_json(text).settings
            bounds = {"k": MAX_FACTS, "n": MAX_CHANGES, "max_values": 1000, "n_measure": 1000}
        with contextlib.suppress(FormatError):
            settings, bounds = Rule.from_json(text).settings, {"k": MAX_FACTS}
        asked = {name: settings[name] for name in (*bounds, "queries") if settings.get(name) is not None}
        asked |= {"queries": MOST_QUERIES} if asked.get("queries") == "auto" else {}
        bounds["queries"] = self._limits.max_queries
        excessive = [name for name, value in asked.items() if type(value) is not int or value > bounds[name]]
        if excessive:
            detail = f"Recomputing the explanation exceeds the limits of this server ({', '.join(excessive)})."
            raise Problem(422, f"{detail} Verify it with `anchorline verify` instead.")


def _json(content: dict[str, Any]) -> bytes:
    return json.dumps(content, allow_nan=False, separators=(",", ":")).encode()
