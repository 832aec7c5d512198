"""Turns validated requests into answers as bytes; the only module of the studio that computes explanations.

Every method runs in a thread of the job queue.
"""

import contextlib
import copy
import json
import logging
from dataclasses import replace
from typing import Any

import numpy as np

from anchorline.errors import FormatError
from anchorline.explainer import Explainer
from anchorline.model.predictor import plain_label
from anchorline.render import html
from anchorline.render.characters import printable
from anchorline.result.assemble import assemble_frontier
from anchorline.result.assemble_changes import changes_of
from anchorline.result.changes import Changes
from anchorline.result.explanation import Explanation
from anchorline.result.frontier import Frontier
from anchorline.result.verification import Outcome, Verification
from anchorline.search.case import Case
from anchorline.search.leaves.tracing import trace_sums
from anchorline.settings import N_SAMPLES, NODE_LIMIT, Settings
from anchorline.spaces.table import Table
from anchorline.studio.cache import ObjectCache
from anchorline.studio.catalog import Catalog
from anchorline.studio.evidence import About, filed
from anchorline.studio.limits import MAX_ALTERNATIVES, MAX_TERMS, StudioLimits
from anchorline.studio.problems import Problem
from anchorline.studio.schemas import (
    ChangesRequest,
    ExplainRequest,
    FrontierRequest,
    KServeRequest,
    VerifyRequest,
    WhatIfRequest,
)
from anchorline.studio.search_time import SearchTooLongError, limited_search
from anchorline.studio.truth import Truth
from anchorline.studio.views import changes_view, explanation_view, frontier_answer, frontier_view, page_words
from anchorline.verify import verify

logger = logging.getLogger("anchorline.studio")
_KEYWORDS = ("k", "sigma", "n_samples", "n_certify", "seed", "alternatives", "objective")
_SEARCH_SHARE = 0.25  # of the time limit; a search that takes longer is repeated once, and the rest measures
_LISTED = 4  # other sums that the page and a report list
_MAX_EXPLANATIONS = 64  # in the cache; a few kilobytes each
_MAX_PREPARED = 4  # neighborhoods in the cache; each holds a copy of the table


class ExplanationService:
    """Answers every kind of request; except for `verify`, an answer depends on its request only."""

    def __init__(
        self,
        explainer: Explainer,
        model: Any,
        catalog: Catalog,
        limits: StudioLimits,
        name: str = "model",
        truth: Truth | None = None,
        fingerprint: str | None = None,
    ) -> None:
        self._explainer, self._model, self._catalog, self._limits = explainer, model, catalog, limits
        self._name, self.truth, self.fingerprint = name, truth, fingerprint
        self._explanations, self._prepared = ObjectCache(_MAX_EXPLANATIONS), ObjectCache(_MAX_PREPARED)
        self._means = ObjectCache(_MAX_EXPLANATIONS)
        self._search_seconds = limits.timeout * _SEARCH_SHARE

    def explain(self, request: ExplainRequest) -> bytes:
        """Return the sealed JSON of the explanation."""
        return self._explanation(request).to_json().encode()

    def explain_view(self, request: ExplainRequest) -> bytes:
        """Return the explanation in the form that the page shows."""
        explanation = self._explanation(request)
        return _json(explanation_view(explanation, self._training_mean(explanation)))

    def frontier(self, request: FrontierRequest) -> bytes:
        """Return the whole frontier."""
        return _json(frontier_answer(self._frontier(request)))

    def frontier_view(self, request: FrontierRequest) -> bytes:
        """Return the frontier in the form that the page shows."""
        return _json(frontier_view(self._frontier(request)))

    def report(self, request: ExplainRequest) -> bytes:
        """Return the explanation with its frontier as one self-contained HTML page, and what a file needs."""
        explanation = self._explanation(request)
        shared = request.model_dump(include=set(FrontierRequest.model_fields))
        frontier = self._frontier(FrontierRequest(**shared))
        page = html.page(explanation, frontier, self._training_mean(explanation))
        listed = self._explanation(request.model_copy(update={"alternatives": request.alternatives or _LISTED}))
        row, names = self._catalog.parse_row(request.row), self._catalog.names
        labels = self._catalog.answer_table.names
        truth = self.truth.texts([row], labels)[0] if self.truth is not None and isinstance(row, int) else None
        is_table = isinstance(self._explainer.space, Table)  # a text or an image is in the report already
        values = dict(zip(names, explanation.instance, strict=True)) if is_table else {}
        about = About(self._name, self.fingerprint, request.row, values, truth)
        return page_words(filed(page, explanation, listed, about)).encode()

    def kserve(self, request: KServeRequest) -> bytes:
        """Return predictions and explanations (each one its sealed JSON) in the order of the instances.

        All of them are about one class: the requested one, the server's own choice, or the last one of the model.
        """
        target, output = self._explainer.target, request.parameters.output
        if output is None and target.classes is not None and target.column is None:
            output = str(target.classes[-1])
        keywords, explainer = self._keywords(request.parameters), self.explainer_for(output)
        rows = [self._catalog.parse_row(instance) for instance in request.instances]
        settings, seconds = Settings.from_keywords(**keywords), self._search_seconds / len(rows)
        explanations = [_explained(explainer, row, settings, seconds) for row in rows]
        predictions = json.dumps([explanation.prediction for explanation in explanations])
        texts = ",".join(explanation.to_json() for explanation in explanations)
        return f'{{"predictions":{predictions},"output":{json.dumps(output)},"explanations":[{texts}]}}'.encode()

    def verify(self, request: VerifyRequest) -> bytes:
        """Return whether an explanation holds, measured on a fresh sample.

        Raises `Problem` 422 if the explanation's parameters exceed the limits of this server.
        """
        explanation = request.explanation
        text = explanation if isinstance(explanation, str) else json.dumps(explanation)
        with contextlib.suppress(FormatError):  # `verify` reports what is wrong with the format
            self._check_effort(Explanation.from_json(text))
        try:
            result = verify(text, self._model, self._explainer.space)
        except Exception:  # a forged explanation can cause any error
            logger.exception("an explanation could not be recomputed")
            result = Verification(Outcome.CANNOT_TELL, ("it could not be recomputed",))
        reasons = [printable(reason)[:500] for reason in result.reasons[:20]]
        verdict = None if result.verdict is None else result.verdict.name.lower()
        content = {"outcome": result.outcome.value, "holds": result.holds, "reasons": reasons, "verdict": verdict}
        return _json(content)

    def what_if(self, request: WhatIfRequest) -> bytes:
        """Return the model's answer to the changed row, and the value that the explanation's sum predicts."""
        case = self._prepare(request)
        predictor, explanation = case.predictor, self._explanation(request)
        changed = self._catalog.cases.change(case.neighborhood, request.broken, request.edits)
        broken_sum = float(explanation.contributions[np.array(changed.is_broken)].sum())
        answer, stays = self._catalog.ask(changed.original), predictor.answer(changed.original, 1).stays
        content = {
            "row": changed.values,
            "literals": [_printable(changed.texts.get(literal.name)) for literal in explanation.literals],
            "is_broken": list(changed.is_broken),
            "answer": self._catalog.answer_table.readable(answer).texts[0],
            "prediction": _explained_number(answer, explanation),
            "expected": explanation.prediction - 2 * broken_sum,
            "original": explanation.prediction,
            "decision_stays": None if stays is None or predictor.decision == "number" else bool(stays[0]),
        }
        return _json(content)

    def changes(self, request: ChangesRequest) -> bytes:
        """Return the sealed JSON of the changes that turn the decision."""
        return self._changes(request).to_json().encode()

    def changes_view(self, request: ChangesRequest) -> bytes:
        """Return the changes in the form that the page shows."""
        return _json(changes_view(self._changes(request)))

    def _changes(self, request: ChangesRequest) -> Changes:
        keywords = request.model_dump(exclude={"row", "output"}) | {"max_queries": self._limits.max_samples}
        keywords["toward"] = None if request.toward is None else self._catalog.parse_row(request.toward)
        return changes_of(self.explainer_for(request.output), self._catalog.parse_row(request.row), **keywords)

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

    def _keywords(self, request: Any) -> dict[str, Any]:
        """Return the keywords of `Explainer.explain`; the default sample size is reduced to the server's limit."""
        keywords = {name: value for name, value in request.model_dump().items() if name in _KEYWORDS}
        max_samples = self._limits.max_samples
        if keywords["n_samples"] is None:
            keywords["n_samples"] = min(max_samples, N_SAMPLES[keywords.get("objective", "fidelity")])
        for name in ("n_samples", "n_certify"):
            if (keywords[name] or 0) > max_samples:
                raise Problem(422, f"{name} is {keywords[name]}; the maximum on this server is {max_samples}.")
        return keywords

    def _explanation(self, request: Any) -> Explanation:
        keywords, explainer = self._keywords(request), self.explainer_for(request.output)
        row = self._catalog.parse_row(request.row)
        key = _key({"row": row, "output": request.output, **keywords})
        settings = Settings.from_keywords(**keywords)
        seconds = self._search_seconds
        return self._explanations.get_or_build(key, lambda: _explained(explainer, row, settings, seconds))

    def _training_mean(self, explanation: Explanation) -> float | None:
        """Return the mean of the explained output over the training table, which is queried once per output.

        Texts and images have no training table.
        """
        if not hasattr(self._explainer.space, "examples"):
            return None
        key = _key({"column": explanation.parameters["column"], "label": explanation.label})
        mean: float = self._means.get_or_build(key, lambda: self._explainer.training_mean(explanation))
        return mean

    def explainer_for(self, output: str | None) -> Explainer:
        """Return an explainer of the class labeled ``output``, or the server's own if it is None."""
        if output is None:
            return self._explainer
        target, explainer = self._explainer.target, copy.copy(self._explainer)
        labels = [str(label) for label in target.classes or ()]
        if not labels:
            raise Problem(422, f"output is {output!r}, but the model has no named classes. Omit output.")
        if output not in labels:
            raise Problem(
                422, f"output is {output!r}; it must be one of the model's classes: {', '.join(labels)}."
            )
        explainer.target = replace(target, column=labels.index(output), name=None)
        return explainer

    def _frontier(self, request: FrontierRequest) -> Frontier:
        """Return the same as `Explainer.frontier`, but with the cached neighborhood of a recent row."""
        case = self._prepare(request)
        with limited_search(self._search_seconds, keep_best=True):
            return assemble_frontier(case, trace_sums(case, request.ks))

    def _prepare(self, request: Any) -> Case:
        """Return the opened case of the row, for the requested class."""
        row, explainer = self._catalog.parse_row(request.row), self.explainer_for(request.output)
        settings = Settings.from_keywords(**self._keywords(request))
        case: Case = self._prepared.get_or_build(
            _key({"row": row, "output": request.output}), lambda: explainer.prepare(row, settings)
        )
        # A copy, because a predictor counts its queries.
        return replace(case, predictor=copy.copy(case.predictor), settings=settings)

    def _check_effort(self, explanation: Explanation) -> None:
        """Raise `Problem` 422 if the parameters exceed the limits, because anybody can seal an explanation."""
        parameters, max_samples = explanation.parameters, self._limits.max_samples
        bounds = {
            "n_samples": max_samples,
            "k": MAX_TERMS,
            "alternatives": MAX_ALTERNATIVES,
            "node_limit": NODE_LIMIT,
        }
        excessive = [name for name, bound in bounds.items() if not _is_within(parameters[name], bound)]
        if parameters["n_certify"] is not None and not _is_within(parameters["n_certify"], max_samples):
            excessive.append("n_certify")
        if parameters["solver"] not in ("exact", "iht") or parameters["sampling"] not in ("auto", "draw"):
            excessive.append("solver or sampling")
        if excessive:
            detail = f"Recomputing the explanation exceeds the limits of this server ({', '.join(excessive)})."
            raise Problem(422, f"{detail} Verify it with `anchorline verify` instead.")


def _explained(explainer: Explainer, row: Any, settings: Settings, seconds: float) -> Explanation:
    """Return the explanation; if its search takes longer than ``seconds``, repeat it with that time limit.

    The first attempt has no time limit, so that the explanation does not depend on the clock. The record of the
    second one names the limit, so that `verify` knows that another search may end differently.
    """
    try:
        with limited_search(seconds, keep_best=False):
            return explainer.explain_with(row, settings)
    except SearchTooLongError:
        with limited_search(seconds, keep_best=True):
            return explainer.explain_with(row, replace(settings, time_limit=seconds))


def _is_within(value: Any, bound: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value <= bound


def _explained_number(answer: np.ndarray, explanation: Explanation) -> float:
    """Return the explained number in a model's answer to one row."""
    if answer.ndim == 2:  # a last column may hold the chosen class
        return float(answer[0, explanation.parameters["column"]])
    if explanation.parameters["task"] == "label":
        return 1.0 if plain_label(answer.tolist()[0]) == explanation.label else -1.0
    return float(answer[0])


def _printable(text: str | None) -> str | None:
    return None if text is None else printable(text)


def _json(content: dict[str, Any]) -> bytes:
    return json.dumps(content, allow_nan=False, separators=(",", ":")).encode()


def _key(request: dict[str, Any]) -> str:
    """Return a text that identifies a request; 0.0 and -0.0, which a model may distinguish, stay different."""
    return json.dumps(request, sort_keys=True)
