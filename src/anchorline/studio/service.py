"""Turns validated requests into answers as bytes; the only module of the studio that computes explanations.

Methods with a request run in a thread of the job queue. The model is queried by one thread at a time, counted, and
only while a client waits.
"""

import copy
import functools
import json
import math
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace
from typing import Any, TypeVar

import numpy as np

from anchorline._version import __version__
from anchorline.changes.result import Changes
from anchorline.compare.models import CompareSettings, comparing
from anchorline.errors import FormatError
from anchorline.explainer import Explainer
from anchorline.facts import Fact
from anchorline.model.predictor import Predictor, output_name
from anchorline.render.characters import printable
from anchorline.render.comparisons import blocks
from anchorline.render.statements import statements_of
from anchorline.result.comparison import Comparison
from anchorline.result.explanation import Explanation
from anchorline.result.reasons import Reasons
from anchorline.result.rule import Rule
from anchorline.result.verification import Outcome
from anchorline.rules.cover import cover
from anchorline.settings import MOST_QUERIES, RuleSettings, Settings
from anchorline.spaces.table import Table
from anchorline.studio.access import StudioLimits
from anchorline.studio.catalog import Catalog, TableCases
from anchorline.studio.cohort import (
    ANSWERS_PER_CHUNK,
    STEP_SECONDS,
    Cohort,
    Truth,
    outcomes,
    progress_of,
    sampled,
)
from anchorline.studio.display import Model
from anchorline.studio.job_queue import checkpoint, raise_if_canceled
from anchorline.studio.known import Known, rules_of
from anchorline.studio.long_jobs import Work
from anchorline.studio.opened import CaseSet, current_cases, read_file
from anchorline.studio.problems import Problem, logger
from anchorline.studio.schemas import (
    DEFAULT_COHORT,
    MAX_ALTERNATIVES,
    MAX_CHANGES,
    MAX_FACTS,
    AnswerRequest,
    ChangesRequest,
    CompareRequest,
    ExplainRequest,
    OverviewRequest,
    ReasonsRequest,
    ReportRequest,
    RowsRequest,
    RuleRequest,
    VerifyRequest,
    WhatIfRequest,
    WholeRequest,
)
from anchorline.studio.views import (
    changes_view,
    explanation_view,
    notices_of,
    reasons_view,
    rule_view,
    summary_view,
    table_of,
)
from anchorline.studio.whole import acting, groups, thresholds
from anchorline.verify import verify
from anchorline.verify.check import read_result

Built = TypeVar("Built", Explanation, Rule, Reasons)
Count = Callable[[int], None]  # receives the number of rows that the model has answered
# What the settings of a result may ask of its verification.
_MOST = {
    "k": MAX_FACTS,
    "alternatives": MAX_ALTERNATIVES,
    "n": MAX_CHANGES,
    "max_values": 1000,
    "n_measure": 1000,
}


class LockedPredict:
    """A predict function behind a lock, because many models are not thread-safe."""

    def __init__(self, predict: Callable[[Any], Any], lock: threading.Lock, count: Count) -> None:
        self._predict, self._lock, self._count = predict, lock, count

    def __call__(self, inputs: Any, **keywords: Any) -> Any:
        """Query the model once this thread holds the lock, unless every client has left."""
        checkpoint()
        with self._lock:
            raise_if_canceled()  # the clients may have left while this thread waited for the lock
            answer = self._predict(inputs, **keywords)
        self._count(len(inputs) if hasattr(inputs, "__len__") else 1)
        return answer

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") and name != "__self__":
            raise AttributeError(name)
        return getattr(self._predict, name)


def lock_model(explainer: Explainer, count: Count, *, ask_table: bool) -> tuple[Explainer, Any]:
    """Return copies of the explainer and of its model that share one lock; the model does not change.

    With ``ask_table``, the model is asked about the rows of the table now, so that no explanation depends on which
    ones came before it.
    """
    explainer.table_answers(ask=ask_table)
    lock = threading.Lock()
    locked = explainer.asking_through(lambda ask: LockedPredict(ask, lock, count))
    return locked, _lock_methods(explainer.model, lock, count)


def _lock_methods(model: Any, lock: threading.Lock, count: Count) -> Any:
    """Return a copy of the model with locked methods, for `verify`, which queries the model directly."""
    if not callable(getattr(model, "predict", None)):
        return LockedPredict(model, lock, count)
    locked = copy.copy(model)
    for name in ("predict", "predict_proba", "decision_function"):
        method = getattr(model, name, None)
        if callable(method):
            try:
                setattr(locked, name, LockedPredict(method, lock, count))
            except AttributeError:  # the model's attributes are read-only, so it is queried without the lock
                return model
    locked.counted_model = model  # by which `Explainer.digest` identifies it
    return locked


class ExplanationService:
    """Answers every kind of request; except for `verify`, an answer depends on its request only."""

    def __init__(self, model: Model, limits: StudioLimits, count: Count) -> None:
        self._limits, self._count, self.answered = limits, count, -math.inf  # when the model last answered
        ask_table, explainer = limits.max_queries >= MOST_QUERIES, model.explainer
        self._explainer, self._model = lock_model(explainer, self._counted, ask_table=ask_table)
        self._about, self._previous = model, model.previous
        if model.previous is not None:
            self._old_model = _lock_methods(model.previous.model, threading.Lock(), self._counted)
        self.display = model.display
        self.display.check(explainer.space.names, self._explainer.target.classes)
        # Raises errors about the codes, the prohibited columns and the reference now.
        self._reasons = model.reasons
        self._referring = None if model.reasons is None else self._explainer.referring_to(None, model.reasons)
        self._lock = threading.Lock()
        self._codes = () if model.reasons is None else model.reasons.codes
        self._own = CaseSet(self._explainer, self.display, self._codes, model.cases, model.truth)

    @property
    def _cases(self) -> CaseSet:
        """The cases that the request of this thread is about, and what is kept about them."""
        return current_cases() or self._own

    @property
    def id(self) -> str:
        """Of everything that is kept about this model, which a reload may replace."""
        return self._own.id

    @property
    def catalog(self) -> Catalog:
        """The cases."""
        return self._cases.catalog

    @property
    def truth(self) -> Truth | None:
        """Their true outcomes."""
        return self._cases.truth

    def open_file(self, name: str, raw: bytes) -> CaseSet:
        """Return the cases in a file of a user; raise `Problem` 422 that says what is wrong with it."""
        target = None if self._own.truth is None else self._own.truth.name
        return read_file(name, raw, self._explainer, self.display, self._codes, target)

    def _counted(self, n_rows: int) -> None:
        self._count(n_rows)
        self.answered = time.monotonic()

    def about(self) -> bytes:
        """Return the description of the model and the cases that the page needs at its start."""
        target, space = self._explainer.target, self._explainer.space
        is_table = isinstance(space, Table)
        content = {
            "name": printable(self._about.name),
            "version": __version__,
            "rows": self.catalog.n_rows,
            "fingerprint": space.fingerprint,
            "model_fingerprint": self._about.fingerprint,
            "is_ranked": target.task != "label",
            "columns": [each | self._named(each["name"]) for each in self.catalog.cases.describe()],
            "immutable": [self.display.column(name) for name in self.display.immutable],
            "notices": notices_of(self._explainer.findings),
            "classes": None if target.classes is None else [self.display.label(label) for label in target.classes],
            "explains": None if target.column is None else printable(output_name(target, target.column)),
            "target": None if self.truth is None else printable(self.truth.name),
            "is_table": is_table,
            "previous": None if self._previous is None else printable(self._previous.name),
            "are_training": self.catalog.cases.are_training,
            "file": self._cases.about or None,
            "upload": self._limits.max_upload if is_table else 0,
            "searches": self.catalog.suggestions(),
            "k": space.default_k,
            "most_k": min(10, len(self.catalog.names)) if is_table else 12,
        }
        return _json(content)

    def _named(self, column: str) -> dict[str, Any]:
        unit = self.display.units.get(column)
        return {"label": self.display.column(column), "unit": None if unit is None else printable(unit)}

    def explain(self, request: ExplainRequest) -> bytes:
        """Return the sealed JSON of the explanation."""
        return self._explanation(request).to_json().encode()

    def explain_view(self, request: ExplainRequest) -> bytes:
        """Return the explanation in the form that the page shows."""
        explanation = self._explanation(request)
        return _json(explanation_view(explanation) | {"is_adverse": self._is_adverse(explanation)})

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

    def reasons(self, request: ReasonsRequest) -> bytes:
        """Return the sealed JSON of the reasons."""
        return self._stated(request).to_json().encode()

    def reasons_view(self, request: ReasonsRequest) -> bytes:
        """Return the reasons in the form that the page shows."""
        return _json(reasons_view(self._stated(request)))

    def _stated(self, request: ReasonsRequest) -> Reasons:
        if self._reasons is None or self._referring is None:
            detail = "This server states no reasons. Start it with --codes FILE, --output and --threshold."
            raise Problem(422, detail, members={"type": "urn:anchorline:no-codes"})
        given = request.model_dump(exclude={"row", "queries"})
        settings = replace(self._reasons, queries=self._queries(request.queries), **given)
        row = self.catalog.cases.parse_row(request.row)
        key = json.dumps({"reasons of": row, **settings.to_dict()}, sort_keys=True)
        referring = self._referring
        return self._once(key, lambda: referring.reasons_with(row, settings, checkpoint))

    def _is_adverse(self, explanation: Explanation) -> bool:
        """Return whether reasons are to be stated for the decision."""
        if self._reasons is None or explanation.output.threshold is None:
            return False
        return (explanation.prediction < explanation.output.threshold) == (self._reasons.adverse == "below")

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
        explainer, row = self.explainer_for(request.output), self.catalog.cases.parse_row(request.row)
        explanation, case = (
            self._explanation(request),
            explainer.case(row, self._settings(request, request.queries)),
        )
        case.predictor.open(case.neighborhood.original)
        changed = self.catalog.cases.change(case.neighborhood, explanation.facts, request.edits, request.broken)
        effects = zip(explanation.effects.tolist(), changed.is_broken, strict=True)
        answer = case.predictor.answer(changed.original, 1)
        content = {
            "row": changed.values,
            "is_broken": list(changed.is_broken),
            "answer": self.catalog.answer_table.readable(self.catalog.answer_table.ask(changed.original)).texts[0],
            "prediction": float(answer.outputs[0]),
            "expected": explanation.prediction - sum(effect for effect, is_broken in effects if is_broken),
            "original": explanation.prediction,
            "decision_stays": None if answer.stays is None else bool(answer.stays[0]),
        }
        return _json(content)

    def answer(self, request: AnswerRequest) -> bytes:
        """Return the model's answer to a row alone, the row's values, and those that no training row is like."""
        cases, table = self.catalog.cases, self.catalog.answer_table
        case = cases.open(cases.parse_row(request.row), request.paste)
        answers = table.readable(table.ask(case.original))
        values = {
            "row": case.values,
            "unseen": {self.display.column(name): why for name, why in case.unseen.items()},
        }
        return _json(values | {"answer": answers.texts[0], "value": answers.values[0]})

    def changes(self, request: ChangesRequest) -> bytes:
        """Return the sealed JSON of the changes that turn the decision."""
        return self._changes(request).to_json().encode()

    def changes_view(self, request: ChangesRequest) -> bytes:
        """Return the changes in the form that the page shows."""
        return _json(changes_view(self._changes(request)))

    def _changes(self, request: ChangesRequest) -> Changes:
        keywords = request.model_dump(exclude={"row", "output"}) | {"queries": self._limits.max_queries}
        keywords["fixed"] = list(dict.fromkeys([*request.fixed, *self.display.immutable]))
        if isinstance(request.target, str):
            keywords["target"] = self.display.own_label(request.target)
        row = self.catalog.cases.parse_row(request.row)
        return self.explainer_for(request.output).changes(row, check=checkpoint, **keywords)

    @property
    def n_known(self) -> tuple[int, int]:
        """How much searches know: answers of the model, and notes about explanations; both only grow."""
        return self.catalog.answer_table.n_known, self._cases.n_noted

    def rows(self, request: RowsRequest) -> bytes:
        """Return one page of the rows that match a search, with the model's answers."""
        search, offset, limit = request.search, request.offset, request.limit
        known = self._known_of(request)
        matches, progress = self.catalog.find(search, request.sort, request.output, known)
        page = matches[offset : offset + limit].tolist()
        answers = self.catalog.answer_table.at(page)
        parts = zip(page, self.catalog.values(page), answers.texts, answers.values, strict=True)
        rows = [dict(zip(("position", "values", "answer", "value"), part, strict=True)) for part in parts]
        if self.truth is not None:
            truths = self.truth.texts(page, self.catalog.answer_table.names)
            rows = [row | {"truth": text} for row, text in zip(rows, truths, strict=True)]
        counts = {"total": self.catalog.n_rows, "found": len(matches), "offset": offset, "progress": progress}
        notes = [] if len(matches) else self.catalog.notes(search, known)
        explained = (
            None
            if known is None or notes
            else self.catalog.progress_of(search, len(matches), known, DEFAULT_COHORT)
        )
        return _json(
            counts | {"columns": self.catalog.names, "rows": rows, "notes": notes, "explained": explained}
        )

    def _known_of(self, request: RowsRequest | OverviewRequest | WholeRequest) -> Known | None:
        """Return what is known of cases that are explained as a request says; None if its search does not ask."""
        return self._noted(request) if self._cases.topics and self.catalog.asks_known(request.search) else None

    def _noted(self, request: RowsRequest | OverviewRequest | WholeRequest) -> Known:
        """Return what is known under some settings; rules do not depend on the number of facts."""
        assert self._cases.topics is not None
        k, rules_key = request.k or self._explainer.space.default_k, self._rules_key(request)
        with self._lock:
            known = self._cases.known.setdefault(
                f"{k} {rules_key}", Known(self.catalog.n_rows, self._cases.topics)
            )
            known.rules = self._cases.rules.get(rules_key)
        return known

    def _note_rules(self, request: OverviewRequest, rules: Sequence[tuple[str, Sequence[Fact]]]) -> None:
        """Remember the rules of all cases, unless they are those that are known."""
        key, cases = self._rules_key(request), self.catalog.cases
        assert isinstance(cases, TableCases)
        if [text for text, _ in self._cases.rules.get(key, ())] != [text for text, _ in rules] or not rules:
            self._cases.rules[key] = rules_of(rules, cases.n_rows, cases.have)
            self._cases.n_noted += 1

    def _rules_key(self, request: RowsRequest | OverviewRequest | WholeRequest) -> str:
        return f"{request.sigma} {self.explainer_for(self._comparable(request.output)).target.column}"

    def overview(self, request: OverviewRequest) -> Work:
        """Return the work on the summary of the cases that match a search."""
        cohort, known = self._cohort(request), self._noted(request)

        def step() -> bytes:
            before = known.n
            cohort.step()
            known.note([*cohort.explained], [*cohort.failures])
            self._cases.n_noted += known.n - before
            content = progress_of(cohort) | {"summary": None, "outcomes": None}
            if cohort.explained:
                content["summary"] = summary_view([*cohort.explained])
            if cohort.found is not None and cohort.n_answered == len(cohort.answered):
                found = outcomes(self.catalog.answer_table, cohort.answered, self.truth)
                content["outcomes"] = found | {"are_training": self.catalog.cases.are_training}
            return _json(content)

        return Work(step, functools.partial(table_of, cohort.explained), has_steps=True)

    def covering(self, request: OverviewRequest) -> Work:
        """Return the work on the fewest rules of the cases that match a search that cover as many as all do."""
        cohort = self._cohort(request, with_rules=True)

        def step() -> bytes:
            cohort.step()
            content = progress_of(cohort) | {"lines": []}
            if cohort.explained:
                found = cover(dict(cohort.explained), len(cohort.failures))
                places, rules = iter(found), list[tuple[str, list[Fact]]]()
                for each in statements_of(found):
                    line = {"kind": each.kind, "text": each.text, **each.figures}
                    if each.kind == "rule":
                        rule = next(places)
                        line |= {"cases": list(rule.alike), "others": list(rule.otherwise)}
                        rules.append((each.text, list(rule.rule.facts)))
                    content["lines"].append(line)
                if cohort.is_done and not request.search:
                    self._note_rules(request, rules)
            return _json(content)

        return Work(step, has_steps=True)

    def comparison(self, request: CompareRequest) -> Work:
        """Return the work on what differs between the model before and the server's model, in the cases."""
        previous = self._previous
        if previous is None:
            raise Problem(422, "There is no model to compare with. Start the server with --previous MODEL.")
        if request.by is not None:
            self._column(request.by)

        def begin() -> Iterator[float]:
            cases = self.catalog.cases
            frame, _ = next(cases.inputs(cases.stored_at))
            settings = CompareSettings(n=request.n, groups=() if request.by is None else (request.by,))
            models, choices = (self._old_model, self._model), previous.choices
            found.append((yield from comparing(*models, previous.table, frame, settings, choices, checkpoint)))

        found, rows = list[Comparison](), begin()

        def step() -> bytes:
            progress, end = 0.0, time.monotonic() + STEP_SECONDS
            while not found and time.monotonic() < end:
                progress = next(rows, 1.0)
            content = {"is_done": bool(found), "progress": progress, "blocks": [], "json": ""}
            for each in found:
                content |= {"blocks": [asdict(block) for block in blocks(each)], "json": each.to_json()}
            return _json(content)

        return Work(step)

    def acting(self, request: WholeRequest) -> bytes:
        """Return how a column acts on the output, in rows of the training table."""
        predictor, _ = self._whole(request)
        space: Any = self._explainer.space
        return _json(
            acting(space, self._column(request.attribute), predictor, min(4_000, self._limits.max_queries))
        )

    def groups(self, request: WholeRequest) -> bytes:
        """Return what the groups of a column's values get, and how often decisions about them are wrong."""
        predictor, rows = self._whole(request)
        table, j = self.catalog.answer_table, self._column(request.attribute)
        label = self.display.label(predictor.output.name)
        if label not in table.names:
            raise Problem(422, "The model answers numbers, so that no decisions can be compared.")
        decided = np.array(table.levels)[table.codes[rows]] == label
        rightness = None if self.truth is None else self.truth.rightness(table)[rows]
        stored = self.catalog.cases.stored_at[rows]
        return _json(
            groups(self.catalog.names[j], self.catalog.cases.columns[j].taken(stored), decided, rightness, label)
        )

    def thresholds(self, request: WholeRequest) -> bytes:
        """Return how often each threshold of the class's score would decide wrongly."""
        predictor, rows = self._whole(request)
        table, label = self.catalog.answer_table, self.display.label(predictor.output.name)
        scores = None if predictor.column is None else table.scores(predictor.column)
        if self.truth is None or scores is None or len(table.names) != 2 or not predictor.is_probability:
            raise Problem(422, "Thresholds need the probabilities of two classes, and the true outcomes.")
        truth = np.array(self.truth.texts(rows.tolist(), table.names), dtype=object)
        known = np.isin(truth.astype(str), table.names)
        if not known.any():
            raise Problem(422, "The outcomes have other names than the classes, so that nothing can be compared.")
        threshold = predictor.output.threshold
        return _json(
            thresholds(scores[rows][known], truth[known] == label, label, 0.5 if threshold is None else threshold)
        )

    def _column(self, name: str | None) -> int:
        if name not in self.catalog.names:
            raise Problem(422, "attribute must be a column of the table. Use the names in /rows.")
        return self.catalog.names.index(name)

    def _whole(self, request: WholeRequest) -> tuple[Predictor, np.ndarray]:
        """Return what is asked about a class, of two the last; and a sample of the cases that match."""
        if not isinstance(self._explainer.space, Table):
            raise Problem(422, "The cases are not rows of a table, so that nothing is said of the whole model.")
        explainer = self.explainer_for(self._comparable(request.output))
        predictor = explainer.predictor().open(explainer.space.at(0).original)
        found, progress = self.catalog.find(request.search, "position", known=self._known_of(request))
        rows = sampled(found)
        for start in range(0, len(rows), ANSWERS_PER_CHUNK):
            checkpoint()
            self.catalog.answer_table.at(rows[start : start + ANSWERS_PER_CHUNK].tolist())
        if progress < 1 or not len(rows):
            raise Problem(422, "No case matches, or the model has not answered all of them yet.")
        return predictor, rows

    def _comparable(self, output: str | None) -> str | None:
        """Return the class whose score means the same in all cases: of two classes, the last."""
        target = self._explainer.target
        if output is None and target.column is None and target.classes is not None and len(target.classes) == 2:
            return str(target.classes[-1])
        return output

    def explainer_for(self, output: str | None) -> Explainer:
        """Return an explainer of the class labeled ``output``, or the server's own if it is None."""
        if output is None:
            return self._explainer
        labels = [str(label) for label in self._explainer.target.classes or ()]
        output = self.display.own_label(output)
        if not labels:
            raise Problem(422, f"output is {output!r}, but the model has no named classes. Omit output.")
        if output not in labels:
            raise Problem(
                422, f"output is {output!r}; it must be one of the model's classes: {', '.join(labels)}."
            )
        return self._explainer.explaining(labels.index(output))

    def _settings(self, request: ExplainRequest | OverviewRequest, queries: int | None = None) -> Settings:
        given = request.model_dump(include={"k", "sigma", "seed", "alternatives"})
        return Settings(queries=self._queries(queries), **given)

    def _queries(self, wanted: int | None) -> int | str:
        """Return how many answers may be asked for; raise `Problem` 422 if the server allows fewer."""
        most = self._limits.max_queries
        if wanted is None:
            return "auto" if most >= MOST_QUERIES else most
        if wanted > most:
            raise Problem(422, f"queries is {wanted}; the maximum on this server is {most}.")
        return wanted

    def _explanation(self, request: ExplainRequest) -> Explanation:
        row, settings = self.catalog.cases.parse_row(request.row), self._settings(request, request.queries)
        explainer = self.explainer_for(request.output)
        # 0.0 and -0.0, which a model may distinguish, stay different in JSON.
        key = json.dumps({"row": row, "output": request.output, **settings.to_dict()}, sort_keys=True)
        return self._once(key, lambda: explainer.explain_with(row, settings, checkpoint))

    def _rule(self, request: RuleRequest) -> Rule:
        row, explainer = self.catalog.cases.parse_row(request.row), self.explainer_for(request.output)
        given = request.model_dump(exclude={"row", "output", "queries"})
        settings = RuleSettings(queries=self._queries(request.queries), **given)
        key = json.dumps({"rule of": row, "output": request.output, **settings.to_dict()}, sort_keys=True)
        return self._once(key, lambda: explainer.rule_with(row, settings, checkpoint))

    def _once(self, key: str, build: Callable[[], Built]) -> Built:
        """Return the last result under ``key``, or build it; two threads may both do so, which hold no lock."""
        with self._lock:
            known: Built | None = self._cases.explained.get(key)
        if known is not None:
            return known
        built = build()
        with self._lock:
            self._cases.explained[key] = built
        return built

    def _cohort(self, request: OverviewRequest, *, with_rules: bool = False) -> Cohort:
        """Return the cohort of a search; of two classes the last is explained, so that signs are comparable.

        ``with_rules`` finds the rule of every case instead of its explanation.
        """
        explainer, settings = self.explainer_for(self._comparable(request.output)), self._settings(request)
        if not isinstance(explainer.space, Table):
            raise Problem(422, "The cases are not rows of a table, so that no summary of many cases exists.")
        known = self._known_of(request)
        key = json.dumps({"rules": with_rules, **request.model_dump()}, sort_keys=True)
        rule_settings = RuleSettings(queries=self._queries(None), sigma=request.sigma)

        def explain(position: int) -> Any:
            row = self.catalog.cases.parse_row(position)
            if with_rules:
                return explainer.rule_with(row, rule_settings, checkpoint)
            return explainer.explain_with(row, settings, checkpoint)

        with self._lock:
            cohort = self._cases.cohorts.get(key)
            is_outdated = (
                cohort is not None and known is not None and cohort.is_done and cohort.state != known.state
            )
            if cohort is None or is_outdated:
                limit = self._limits.timeout / 2
                cohort = Cohort(self.catalog, request.search, request.n_rows, explain, limit, known)
                self._cases.cohorts[key] = cohort
        return cohort

    def _check_effort(self, text: str) -> None:
        """Raise `Problem` 422 if the settings exceed the limits, because anybody can seal an explanation."""
        try:
            settings: Any = read_result(text).settings
        except FormatError:
            return  # `verify` reports what is wrong with the format
        bounds = _MOST | {"queries": self._limits.max_queries}
        asked = {name: settings[name] for name in bounds if settings.get(name) is not None}
        asked |= {"queries": MOST_QUERIES} if asked.get("queries") == "auto" else {}
        excessive = [name for name, value in asked.items() if type(value) is not int or value > bounds[name]]
        if excessive:
            detail = f"Recomputing the explanation exceeds the limits of this server ({', '.join(excessive)})."
            raise Problem(422, f"{detail} Verify it with `anchorline verify` instead.")


def _json(content: dict[str, Any]) -> bytes:
    return json.dumps(content, allow_nan=False, separators=(",", ":")).encode()
