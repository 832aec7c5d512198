"""From requests to answers, as bytes: the only place where the studio asks the library; runs in threads."""

import contextlib
import copy
import json
import logging
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from anchorline.errors import FormatError
from anchorline.explainer import Explainer
from anchorline.model.predictor import plain_label
from anchorline.render import html
from anchorline.render.characters import printable
from anchorline.result.assemble import assemble_frontier
from anchorline.result.canonical import canonical_json
from anchorline.result.explanation import Explanation
from anchorline.result.frontier import Frontier
from anchorline.result.verification import Outcome, Verification
from anchorline.search.case import Case
from anchorline.search.trace import trace
from anchorline.settings import N_SAMPLES, NODE_LIMIT, Settings
from anchorline.studio.catalogue import Catalogue, told_value
from anchorline.studio.limits import MAX_ALTERNATIVES, MAX_TERMS, Limits
from anchorline.studio.problems import Problem
from anchorline.studio.schemas import (
    ExplainRequest,
    FrontierRequest,
    KServeRequest,
    VerifyRequest,
    WhatIfRequest,
)
from anchorline.studio.views import explanation_view, frontier_answer, frontier_view
from anchorline.verify import verify

logger = logging.getLogger("anchorline.studio")
_CHOICES = ("k", "sigma", "n_samples", "n_certify", "seed", "alternatives", "objective")
_MAX_KEPT = 64  # explanations, a few kilobytes each
_MAX_PREPARED = 4  # rows whose neighborhoods are kept: each holds a copy of the table

Made = TypeVar("Made")


class _Kept:
    """The last few things made, by a text; made once even if two threads ask, as far as that is cheap."""

    def __init__(self, most: int) -> None:
        self._most, self._lock = most, threading.Lock()
        self._things: OrderedDict[str, Any] = OrderedDict()

    def get(self, key: str, make: Callable[[], Made]) -> Made:
        with self._lock:
            if key in self._things:
                self._things.move_to_end(key)
                found: Made = self._things[key]
                return found
        made = make()
        with self._lock:
            self._things[key] = made
            while len(self._things) > self._most:
                self._things.popitem(last=False)
        return made


class Desk:
    """Answers every kind of request; what it returns depends on the request alone (but for /verify)."""

    def __init__(self, explainer: Explainer, model: Any, catalogue: Catalogue, limits: Limits) -> None:
        self._explainer, self._model, self._catalogue, self._limits = explainer, model, catalogue, limits
        self._explanations, self._prepared = _Kept(_MAX_KEPT), _Kept(_MAX_PREPARED)

    def explain(self, request: ExplainRequest) -> bytes:
        """The explanation's own sealed text."""
        return self._explanation(request).to_json().encode()

    def explain_view(self, request: ExplainRequest) -> bytes:
        """The explanation as the page shows it."""
        return _json(explanation_view(self._explanation(request)))

    def frontier(self, request: FrontierRequest) -> bytes:
        """The frontier in full."""
        return _json(frontier_answer(self._frontier(request)))

    def frontier_view(self, request: FrontierRequest) -> bytes:
        """The frontier as the page shows it."""
        return _json(frontier_view(self._frontier(request)))

    def report(self, request: ExplainRequest) -> bytes:
        """The explanation with its frontier as one self-contained page."""
        explanation = self._explanation(request)
        shared = request.model_dump(include=set(FrontierRequest.model_fields))
        return html.page(explanation, self._frontier(FrontierRequest(**shared))).encode()

    def kserve(self, request: KServeRequest) -> bytes:
        """Predictions and explanations in the order of the instances; each explanation's bytes are its own."""
        keywords, explainer = self._keywords(request.parameters), self._explainer_of(request.parameters.output)
        rows = [self._catalogue.read(instance) for instance in request.instances]
        found = [explainer.explain(row, **keywords) for row in rows]
        predictions = json.dumps([explanation.prediction for explanation in found])
        texts = ",".join(explanation.to_json() for explanation in found)
        return f'{{"predictions":{predictions},"explanations":[{texts}]}}'.encode()

    def verify(self, request: VerifyRequest) -> bytes:
        """Whether an explanation holds, measured afresh; refused where it would need more than is allowed."""
        given = request.explanation
        text = given if isinstance(given, str) else json.dumps(given)
        with contextlib.suppress(FormatError):  # verify says what is wrong with it
            self._check_effort(Explanation.from_json(text))
        try:
            found = verify(text, self._model, self._explainer.space)
        except Exception:  # whatever a forged explanation leads to
            logger.exception("an explanation could not be computed again")
            found = Verification(Outcome.CANNOT_TELL, ("it could not be computed again",))
        reasons = [printable(reason)[:500] for reason in found.reasons[:20]]
        return _json({"outcome": found.outcome.value, "holds": found.holds, "reasons": reasons})

    def what_if(self, request: WhatIfRequest) -> bytes:
        """The model's answer to the changed row, next to what the explanation's sum makes of broken facts."""
        space: Any = self._explainer.space
        case = self._prepare(request)
        neighborhood, predictor = case.neighborhood, case.predictor
        explanation = self._explanation(request)
        changed = dict(zip(space.names, neighborhood.instance, strict=True))
        for name in request.broken:
            changed |= self._catalogue.broken(neighborhood, name)
        unknown = [name for name in request.edits if name not in changed]
        if unknown:
            raise Problem(422, f"The table has no column {unknown[0]!r}.")
        after = space.at(changed | self._catalogue.read(request.edits))
        now = {literal.name: literal.text for literal in after.literals}
        is_broken = [now.get(literal.name) != literal.text for literal in explanation.literals]
        fallen = float(explanation.contributions[is_broken].sum())
        then, stays = self._catalogue.ask(after.original), predictor.answer(after.original, 1).stays
        told = {
            "row": dict(zip(space.names, map(told_value, after.instance), strict=True)),
            "literals": [_printable(now.get(literal.name)) for literal in explanation.literals],
            "is_broken": is_broken,
            "answer": self._catalogue.told(then).texts[0],
            "prediction": _explained(then, explanation),
            "expected": explanation.prediction - 2 * fallen,
            "original": explanation.prediction,
            "decision_stays": None if stays is None else bool(stays[0]),
        }
        return _json(told)

    def rows(self, search: str, sort: str, offset: int, limit: int) -> bytes:
        """A part of the rows found, with the model's answers."""
        found = self._catalogue.find(search, sort)
        shown = found[offset : offset + limit]
        answers = self._catalogue.answers(shown)
        parts = zip(shown, self._catalogue.values(shown), answers.texts, answers.values, strict=True)
        rows = [dict(zip(("position", "values", "answer", "value"), part, strict=True)) for part in parts]
        told = {"total": self._catalogue.n_rows, "found": len(found), "offset": offset}
        return _json(told | {"columns": self._catalogue.names, "rows": rows})

    def _keywords(self, request: Any) -> dict[str, Any]:
        """The library's keywords; a sample's size is the library's own unless given, within the limit."""
        keywords = {name: value for name, value in request.model_dump().items() if name in _CHOICES}
        most = self._limits.max_samples
        if keywords["n_samples"] is None:
            keywords["n_samples"] = min(most, N_SAMPLES[keywords.get("objective", "fidelity")])
        for name in ("n_samples", "n_certify"):
            if (keywords[name] or 0) > most:
                raise Problem(422, f"{name} is {keywords[name]}; this server allows at most {most}.")
        return keywords

    def _explanation(self, request: Any) -> Explanation:
        keywords, explainer = self._keywords(request), self._explainer_of(request.output)
        row = self._catalogue.read(request.row)
        key = canonical_json({"row": row, "output": request.output, **keywords})
        return self._explanations.get(key, lambda: explainer.explain(row, **keywords))

    def _explainer_of(self, output: str | None) -> Explainer:
        """The explainer, for the class asked for."""
        if output is None:
            return self._explainer
        asked, other = self._explainer.target, copy.copy(self._explainer)
        labels = [str(label) for label in asked.classes or ()]
        if output not in labels:
            known = ", ".join(labels) or "none that can be chosen"
            raise Problem(422, f"output is {output!r}; the model's classes: {known}.")
        other.target = replace(asked, column=labels.index(output), name=None)
        return other

    def _frontier(self, request: FrontierRequest) -> Frontier:
        """Like `Explainer.frontier`, but a row that was asked about a moment ago is not prepared again."""
        case = self._prepare(request)
        return assemble_frontier(case, trace(case, request.ks))

    def _prepare(self, request: Any) -> Case:
        """The row's neighborhood, and the model as seen from there, for the class asked for."""
        row, explainer = self._catalogue.read(request.row), self._explainer_of(request.output)
        settings = Settings.from_keywords(**self._keywords(request))
        case: Case = self._prepared.get(
            canonical_json({"row": row, "output": request.output}), lambda: explainer.prepare(row, settings)
        )
        return replace(case, predictor=copy.copy(case.predictor), settings=settings)  # a predictor counts queries

    def _check_effort(self, explanation: Explanation) -> None:
        """A sealed text may ask for any effort: anybody can seal one."""
        parameters, most = explanation.parameters, self._limits.max_samples
        bounds = {"n_samples": most, "k": MAX_TERMS, "alternatives": MAX_ALTERNATIVES, "node_limit": NODE_LIMIT}
        beyond = [name for name, bound in bounds.items() if not _is_within(parameters[name], bound)]
        if parameters["n_certify"] is not None and not _is_within(parameters["n_certify"], most):
            beyond.append("n_certify")
        if parameters["solver"] not in ("exact", "iht") or parameters["sampling"] not in ("auto", "draw"):
            beyond.append("solver or sampling")
        if beyond:
            raise Problem(422, f"To compute it again takes more than this server allows ({', '.join(beyond)}).")


def _is_within(value: Any, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value <= most


def _explained(answer: np.ndarray, explanation: Explanation) -> float:
    """The number explained, in a model's answer to one row."""
    if answer.ndim == 2:
        return float(answer[0, explanation.parameters["column"]])
    if explanation.parameters["task"] == "label":
        return 1.0 if plain_label(answer.tolist()[0]) == explanation.label else -1.0
    return float(answer[0])


def _printable(text: str | None) -> str | None:
    return None if text is None else printable(text)


def _json(told: dict[str, Any]) -> bytes:
    return json.dumps(told, allow_nan=False, separators=(",", ":")).encode()
