"""The application: the routes, and the `Studio` that connects them to the service, the job queue and the guard."""

import asyncio
import contextlib
import html
import time
from collections.abc import Callable, Mapping
from dataclasses import fields
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import parse_qs

import numpy as np
from fastapi import APIRouter, FastAPI, Query, Request, Response, Security
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse, StreamingResponse
from fastapi.security import HTTPBearer
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from anchorline._version import __version__
from anchorline.errors import AnchorlineError, ParameterError
from anchorline.explainer import Explainer
from anchorline.render.characters import printable
from anchorline.render.statements import naming
from anchorline.studio import answers, schemas
from anchorline.studio.access import Access, Proxy, StudioLimits
from anchorline.studio.display import Model, about_model, check_name
from anchorline.studio.guard import Guard, refused_landing
from anchorline.studio.job_queue import JobQueue, request_key
from anchorline.studio.long_jobs import LongJob, LongJobs, Work
from anchorline.studio.observability import CANNOT_WRITE, METRICS_TYPE, AuditLog, Metrics
from anchorline.studio.opened import HEADER, CaseSet, OpenFiles, about_cases
from anchorline.studio.problems import INTERNAL_ERROR, Problem, logger, problem_from_error
from anchorline.studio.service import ExplanationService
from anchorline.studio.views import TABLE_TYPES

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_MEDIA_TYPES = {"html": "text/html", "js": "text/javascript", "css": "text/css", "svg": "image/svg+xml"}
_HOLDS = "Words or comparisons (income>40000) that all hold for a row."
_SEARCH = Query(max_length=schemas.MAX_SEARCH, description=_HOLDS)
_EVENTS: dict[int | str, dict[str, Any]] = {
    200: {"description": "Server-sent events.", "content": {"text/event-stream": {"schema": {"type": "string"}}}}
}
_BEGINS: dict[str, Any] = {"status_code": 202, "responses": {202: {"model": answers.JobAnswer}}}
_OUTPUT = Query(max_length=schemas.MAX_SEARCH, description="Label of the class to sort by.")
_NAME = Query(min_length=1, max_length=schemas.MAX_SEARCH, description="Name of the file, which says its kind.")
_FACTS = Query(ge=1, le=schemas.MAX_FACTS, description="Settings of the explanations that a search asks about.")
_SIGMA = Query(ge=0, le=schemas.MAX_SIGMA)
_FILE: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
    }
}
_RECENT = 10.0  # seconds; a model that answered within this time is not asked again whether it does
_LONGER = 10  # times the time limit, for comparisons
_REFUSAL_SECONDS = 0.25  # so that a client that does not wait after a refusal keeps nobody busy
_LARGE_BODY = 10_000  # bytes, which take time to be refused
_PATIENCE = 5.0  # seconds within which the model must answer


Loaded = tuple[dict[str, "Served"], dict[str, FastAPI]]  # models by name, and applications by prefix


class Studio:
    """One or several served models, and what they share; `app` is the ASGI application.

    Parameters
    ----------
    models
        The model, which is at the root; or several ones by name, each at /m/NAME with a list of them at the root.
    token
        The token that every request needs; None if no token is required, which suits a single-user machine only.
    hosts
        Host names of this server; requests with another Host header are refused.
    limits
        Limits of requests, queue and cache, which hold for all models together.
    proxy
        The reverse proxy in front of the server.
    audit_log
        File to which one line per request about a case is appended.
    """

    def __init__(
        self,
        models: Model | Mapping[str, Model],
        *,
        token: str | None,
        hosts: frozenset[str] = LOOPBACK,
        limits: StudioLimits | None = None,
        proxy: Proxy | None = None,
        audit_log: Path | None = None,
    ) -> None:
        self.proxy, self.audit, self.limits = proxy or Proxy(), AuditLog(audit_log), limits or StudioLimits()
        self.metrics, self._hosts = Metrics(), hosts
        self.jobs = JobQueue(self.limits, self.metrics)
        self.long_jobs = LongJobs(self.jobs)
        # Read once at start; a requested name is never used as a path on disk.
        folder = resources.files("anchorline.studio").joinpath("static")
        self.files = {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()}
        self.files_of_users = OpenFiles(self.long_jobs.forget)
        self.opening: set[str | None] = set()  # users whose file is being read
        self.served: dict[str, Served] = {}  # by name; the only one of a server has the name ""
        landing = self.files["landing.html"]
        access = Access(None, hosts)
        self.app = Guard({}, access, self.limits, self.metrics, landing, self.proxy, self.jobs.abandon)
        self.switch(self.load(models), token)

    def load(self, models: Model | Mapping[str, Model]) -> Loaded:
        """Return the models ready to be served, beside those that are; safe to call from any thread.

        Raises `ParameterError` for a name that cannot be part of an address, and what is wrong with a model.
        """
        if not isinstance(models, Model) and not models:
            raise ParameterError("The server has no model. Name at least one.")
        served = {}
        for name, model in ({"": models} if isinstance(models, Model) else models).items():
            with about_model(name):
                served[name] = Served(self, name if isinstance(models, Model) else check_name(name), model)
        return served, build_apps(self, served)

    def switch(self, loaded: Loaded, token: str | None) -> None:
        """Serve these models from the next request on, with this token; requests under way end as they began."""
        self.served, self.app.apps = loaded
        self.files_of_users.keep({each.service.id for each in self.served.values()})
        self.access = self.app.access = Access(token, self._hosts)
        self.audit.note("models", {name or each.title: each.fingerprint for name, each in self.served.items()})

    def forget_later(self) -> None:
        """Forget the opened files when nobody has asked for them for a while, although no request arrives."""
        seconds = self.files_of_users.forget_idle()
        if seconds is not None:
            asyncio.get_running_loop().call_later(seconds, self.forget_later)

    async def reasons(self) -> list[str]:
        """Return why requests about cases cannot be answered; nothing if they can."""
        n_stuck, n_workers = self.jobs.n_stuck, self.limits.workers
        answers = await asyncio.gather(*(each.answers() for each in self.served.values()))
        silent = [each.name for each, is_well in zip(self.served.values(), answers, strict=True) if not is_well]
        reasons = [
            f"The model {name!r} does not answer." if name else "The model does not answer." for name in silent
        ]
        if n_stuck:
            reasons.append(f"{n_stuck} of {n_workers} workers {'is' if n_stuck == 1 else 'are'} stuck.")
        if self.audit.failed and not self.audit.resume():
            reasons.append(CANNOT_WRITE)
        return reasons

    def file(self, name: str) -> Response:
        """Return one of the page's files."""
        if name not in self.files:
            raise Problem(404, "No file of that name exists.")
        return Response(self.files[name], media_type=_MEDIA_TYPES[name.partition(".")[2]])

    def index(self, served: Mapping[str, "Served"]) -> bytes:
        """Return the page that lists the models."""
        lines = [
            f'<li><a href="m/{name}/">{html.escape(printable(each.title))}</a> '
            f"<span>{each.service.catalog.n_rows:,} cases</span></li>"
            for name, each in served.items()
        ]
        return self.files["models.html"].replace(b"<li></li>", "\n".join(lines).encode(), 1)


class Served:
    """One model of a studio: its service, and how its requests are answered."""

    def __init__(self, studio: Studio, name: str, model: Model) -> None:
        self.studio, self.name, self.title, self.fingerprint = studio, name, model.name, model.fingerprint
        self.prefix = f"/m/{name}" if name else ""
        count = studio.metrics.model_rows.labels(model=name).inc
        self.service = ExplanationService(model, studio.limits, count)
        self._question: asyncio.Future[bytes] | None = None

    async def answer(
        self,
        request: Request,
        route: str,
        function: Callable[[], bytes],
        content: Mapping[str, Any],
        *,
        is_cached: bool = True,
        media_type: str = "application/json",
        attached: str | None = None,
    ) -> Response:
        """Return the answer of ``function`` to one request, as a file called ``attached`` if that is given.

        It is cached by the request's ``content`` unless ``is_cached`` is False. The audit log says what is in it.
        """

        async def wait_for_disconnect() -> None:
            while (await request.receive())["type"] != "http.disconnect":
                pass

        cases = self.cases_of(request)
        content = content if cases is None else {**content, "file": cases.about["digest"]}
        outcome = "failed"
        try:
            # What searches find depends on what is known when they are sent.
            known = {"n_known": self.service.n_known} if "search" in content else {}
            is_kept = is_cached and cases is None  # nothing is kept of a file that is forgotten
            key = request_key(f"{self.service.id} {route}", {**content, **known}) if is_kept else None
            answer = await self.studio.jobs.run(key, self._named(function, cases), wait_for_disconnect)
            outcome = "answered"
        except AnchorlineError as error:
            outcome = "refused"
            raise problem_from_error(error) from error
        finally:
            self.studio.audit.record(request.scope["state"], route, content, outcome, self.name)
        headers = None if attached is None else {"Content-Disposition": f'attachment; filename="{attached}"'}
        return Response(answer, media_type=media_type, headers=headers)

    def begin(
        self,
        request: Request,
        kind: str,
        work: Callable[[], Work],
        content: Mapping[str, Any],
        *,
        scale: int = 1,
        **most: int,
    ) -> Response:
        """Answer with 202: the work goes on as a job of the user; ``scale`` times the time limit ends a step."""
        state, studio, outcome, job = request.scope["state"], self.studio, "failed", None
        cases = self.cases_of(request)
        content = content if cases is None else {**content, "file": cases.about["digest"]}

        def write(outcome: str) -> None:
            studio.audit.record(state, kind, {**content, "job": job and job.id}, outcome, self.name)

        try:
            with about_cases(cases):
                begun = work()
            table = None if begun.table is None else self._named(begun.table, None)
            begun = Work(self._named(begun.step, cases), table, begun.has_steps)
            about = None if cases is None else cases.id
            job = LongJob(kind, self.name, _user_of(request), state["request_id"], begun, about)
            studio.long_jobs.start(job, seconds=scale * studio.limits.timeout, end=write, **most)
            outcome = "started"
        except AnchorlineError as error:
            outcome = "refused"
            raise problem_from_error(error) from error
        finally:
            try:
                write(outcome)
            except Problem:
                studio.long_jobs.cancel(job)
                raise
        address = f"{studio.proxy.root_path}{self.prefix}/v1/jobs/{job.id}"
        return JSONResponse(job.describe(), 202, {"Location": address})

    def find(self, request: Request, id: str) -> LongJob:
        """Return a job of the user who asks."""
        return self.studio.long_jobs.find(id, self.name, _user_of(request))

    def cases_of(self, request: Request) -> CaseSet | None:
        """Return the cases of the file that a request names; None for those of the server."""
        return self.studio.files_of_users.find(request.headers.get(HEADER), _user_of(request), self.service.id)

    def _named(self, function: Callable[..., bytes], cases: CaseSet | None) -> Callable[..., bytes]:
        """Return the function, which is about these cases, and whose texts have the names of readers."""
        names = self.service.display.naming

        def named(*arguments: Any) -> bytes:
            with naming(names), about_cases(cases):
                return function(*arguments)

        return named

    async def answers(self) -> bool:
        """Ask about one case, by one question for all who want to know; an answer holds for a while."""
        if time.monotonic() - self.service.answered < _RECENT:
            return True
        if self._question is None or self._question.done():
            self._question = asyncio.ensure_future(self.studio.jobs.run(None, self._ask, asyncio.Event().wait))
        await asyncio.wait({self._question}, timeout=_PATIENCE)
        if not self._question.done():
            logger.error("The model has not answered a question about one case for %g s.", _PATIENCE)
            return False
        error = self._question.exception()
        if error is not None and not isinstance(error, Problem):
            logger.error("The model failed on the first case.", exc_info=error)
        return error is None

    def _ask(self) -> bytes:
        self.service.catalog.answer_table.ask_rows(np.zeros(1, dtype=np.intp))
        return b""


def create_app(explainer: Explainer, *, token: str | None, **options: Any) -> Guard:
    """Return the ASGI application for a server of your own; see `Model` and `Studio` for the options."""
    about = {each.name: options.pop(each.name) for each in fields(Model) if each.name in options}
    return Studio(Model(explainer=explainer, **about), token=token, **options).app


def build_apps(studio: Studio, served: Mapping[str, Served]) -> dict[str, FastAPI]:
    """Return the application at the root and those of several models, by the prefix of their addresses."""
    apps = {"": _new_app(studio, "")}
    bearer = Security(HTTPBearer(auto_error=False, description="The token that `anchorline serve` printed."))
    common: dict[str, Any] = {"dependencies": [bearer], "responses": schemas.PROBLEMS}
    for each in served.values():
        app = apps.setdefault(each.prefix, apps[""] if not each.prefix else _new_app(studio, each.prefix))
        app.state.served = each
        for routes in _ROUTES:
            app.include_router(routes, **common)
    apps[""].include_router(_open_routes(studio), responses=schemas.PROBLEMS)

    @apps[""].get("/metrics", summary="Prometheus metrics", response_class=Response, tags=["programs"], **common)
    async def metrics() -> Response:
        """Return the counts and durations of requests, the jobs, the cache and the memory."""
        return Response(studio.metrics.text(), media_type=METRICS_TYPE)

    for prefix, app in apps.items():
        page = studio.files["index.html"]
        if prefix:
            page = page.replace(b'id="all-models" hidden', b'id="all-models"', 1)
        elif len(apps) > 1:
            page = studio.index(served)
        app.add_api_route("/", _page(page), include_in_schema=False)
    return apps


def _page(content: bytes) -> Callable[[], Any]:
    async def page() -> Response:
        return HTMLResponse(content)

    return page


def _new_app(studio: Studio, prefix: str) -> FastAPI:
    """Return an application without routes, whose addresses begin with a prefix."""
    address = studio.proxy.root_path + prefix
    app = FastAPI(
        title="anchorline Studio",
        version=__version__,
        summary="Explains one prediction as a short sum of facts that adds up exactly.",
        docs_url=None,  # FastAPI's page loads scripts from another host
        redoc_url=None,
        generate_unique_id_function=_operation_id,
        servers=[{"url": address}] if address else None,
    )
    for error in (Problem, HTTPException, RequestValidationError, ClientDisconnect, Exception):
        app.add_exception_handler(error, _on_error)
    app.openapi = lambda: _openapi(app)  # type: ignore[method-assign]
    return app


def _operation_id(route: Any) -> str:
    """Return the name of a client's function for a route."""
    return f"page_{route.name}" if "page" in route.tags else str(route.name)


def _gives(answer: Any) -> dict[int | str, dict[str, Any]]:
    """Return what a route's description says about its answer."""
    return {200: {"model": answer}}


def _openapi(app: FastAPI) -> dict[str, Any]:
    """Return FastAPI's document, which is built on the first call, with the schema of problems."""
    document = FastAPI.openapi(app)
    document["components"]["schemas"]["ProblemAnswer"] = schemas.ProblemAnswer.model_json_schema()
    return document


def _served(request: Request) -> Served:
    """Return the model that a request is about.

    Routes are common to all models and hold none of them, because FastAPI remembers functions of routes forever.
    """
    served: Served = request.app.state.served
    return served


def _add_posts(router: APIRouter) -> Callable[..., None]:
    """Return a function that adds a route whose answer is that of one method of the service."""

    def add(
        path: str,
        method: Callable[[ExplanationService, Any], bytes],
        wanted: type[BaseModel],
        gives: type[BaseModel] | None,
        summary: str,
        about: str = "",
        *,
        name: str | None = None,
        route: str | None = None,
        **options: Any,
    ) -> None:
        last = path.rpartition("/")[2]

        async def ask(request: Request, body: Any) -> Response:
            content, served = body.model_dump(), _served(request)
            function = lambda: method(served.service, body)  # noqa: E731
            if router.prefix == "/v1" and "respond-async" in request.headers.get("prefer", ""):
                return served.begin(request, route or last, lambda: Work(function), content)
            return await served.answer(request, route or last, function, content, **options)

        ask.__annotations__["body"] = wanted
        names: dict[str, Any] = {"name": name or path[1:].replace("/", "_").replace("-", "_")}
        names |= {"summary": summary, "description": about, "methods": ["POST"]}
        kind = JSONResponse if "media_type" not in options else Response
        router.add_api_route(
            path,
            ask,
            responses=_gives(gives) | _BEGINS["responses"] if gives else None,
            response_class=kind,
            **names,
        )

    return add


def _explain_routes() -> APIRouter:
    router, service = APIRouter(tags=["programs"], prefix="/v1"), ExplanationService
    post = _add_posts(router)
    about = "Return the explanation's sealed JSON, identical to `Explanation.to_json`; `/verify` accepts it."
    post("/explain", service.explain, schemas.ExplainRequest, answers.ExplanationAnswer, "Explain one row", about)
    about = "Recompute every number and measure again on fresh copies with a secret seed; never cached."
    given: tuple[Any, ...] = (schemas.VerifyRequest, answers.VerificationAnswer, "Verify an explanation", about)
    post("/verify", service.verify, *given, is_cached=False)
    about = "Return the model's answer to the changed row, and the value that the original row's sum predicts."
    post("/what-if", service.what_if, schemas.WhatIfRequest, answers.WhatIfAnswer, "Change a row", about)
    about = "Return the model's answer to a row alone, without an explanation."
    given = (schemas.AnswerRequest, answers.ModelAnswer, "Ask the model about a row", about)
    post("/answer", service.answer, *given, name="answer_row")
    summary = "Find a rule that keeps the decision"
    about = "Return the sealed JSON of the fewest facts that keep the decision, identical to `Rule.to_json`."
    post("/rule", service.rule, schemas.RuleRequest, answers.RuleAnswer, summary, about)
    summary = "Find what would change the decision"
    about = "Return the sealed JSON of the fewest changes that turn the decision, identical to `Changes.to_json`."
    post("/changes", service.changes, schemas.ChangesRequest, answers.ChangesAnswer, summary, about)
    summary = "State the reasons of an adverse decision"
    about = (
        "Return the sealed JSON of the reasons with the server's codes, identical to `Reasons.to_json`.\n\n"
        "A problem's type is `urn:anchorline:` and `favorable`, `prohibited`, `unmapped` or `no-reasons`."
    )
    post("/reasons", service.reasons, schemas.ReasonsRequest, answers.ReasonsAnswer, summary, about)
    about = "Return the outputs of training rows whose column takes one value after another: mean and middle 80%."
    wanted = schemas.WholeRequest
    post("/whole/acting", service.acting, wanted, answers.ActingAnswer, "Show how a column acts", about)
    about = "Return how many of each group get a decision, and how many decisions are wrong, with limits."
    post("/whole/groups", service.groups, wanted, answers.GroupsAnswer, "Compare groups of cases", about)
    about = "Return how often each threshold of the class's probability would decide wrongly, either way."
    post("/whole/thresholds", service.thresholds, wanted, answers.ThresholdsAnswer, "Compare thresholds", about)
    return router


def _cases_routes() -> APIRouter:
    router = APIRouter(tags=["programs"], prefix="/v1")

    @router.get("/rows", summary="Find rows", responses=_gives(answers.RowsAnswer))
    async def rows(
        request: Request,
        search: Annotated[str, _SEARCH] = "",
        sort: Literal["position", "low", "high"] = "position",
        offset: Annotated[int, Query(ge=0, le=2**53)] = 0,
        limit: Annotated[int, Query(ge=1, le=schemas.MAX_ROWS)] = 50,
        output: Annotated[str | None, _OUTPUT] = None,
        k: Annotated[int | None, _FACTS] = None,
        sigma: Annotated[float, _SIGMA] = 1.0,
    ) -> Response:
        """Return the training rows that match every word, with the model's answers; `#17` finds row 17.

        If `progress` is below 1, the model has not answered all rows yet; send the request again.
        """
        body = schemas.RowsRequest(
            search=search, sort=sort, offset=offset, limit=limit, output=output, k=k, sigma=sigma
        )
        served = _served(request)
        return await served.answer(request, "rows", lambda: served.service.rows(body), body.model_dump())

    @router.post("/overview", summary="Summarize many cases", **_BEGINS)
    async def overview(request: Request, body: schemas.OverviewRequest) -> Response:
        """Begin a job that summarizes the cases that match a search. Its result grows until `is_done` is true."""
        served = _served(request)
        return served.begin(request, "overview", lambda: served.service.overview(body), body.model_dump())

    @router.post("/whole/rules", summary="Find rules that cover many cases", **_BEGINS)
    async def whole_rules(request: Request, body: schemas.OverviewRequest) -> Response:
        """Begin a job that finds the fewest rules that cover as many cases as all do; its result grows."""
        served = _served(request)
        return served.begin(request, "covering", lambda: served.service.covering(body), body.model_dump())

    @router.post("/compare", summary="Compare the model with the one before", **_BEGINS)
    async def compare(request: Request, body: schemas.CompareRequest) -> Response:
        """Begin a job that compares decisions, explanations and effects with those of the model before.

        Its first step, for which both models answer the cases, may take ten times the time limit. One user has at
        most one under way.
        """
        served = _served(request)
        work = lambda: served.service.comparison(body)  # noqa: E731
        return served.begin(request, "compare", work, body.model_dump(), scale=_LONGER, most=1)

    return router


def _job_routes() -> APIRouter:
    router = APIRouter(tags=["programs"], prefix="/v1/jobs/{id}")

    @router.get("", summary="Ask how far a job is", responses=_gives(answers.JobAnswer))
    async def job(request: Request, id: str) -> Response:
        """Return the state and the progress of a job. One that nobody asks about for a minute is canceled."""
        return JSONResponse(_served(request).find(request, id).describe())

    @router.get("/events", summary="Follow a job", responses=_EVENTS)
    async def job_events(request: Request, id: str) -> Response:
        """Stream events `progress`, then `done`, `problem` or `canceled`: the job, with its `result` so far."""
        served = _served(request)

        async def has_left() -> bool:
            with contextlib.suppress(Problem):
                served.cases_of(request)  # is asked for, so that it is not forgotten now
            return await request.is_disconnected()

        events = served.find(request, id).events(has_left)
        headers = {"X-Accel-Buffering": "no"}  # or nginx would hold events back
        return StreamingResponse(events, media_type="text/event-stream", headers=headers)

    @router.get("/result", summary="Get the result of a job", responses=_gives(answers.JobResult))
    async def job_result(
        request: Request, id: str, format: Literal["json", "csv", "parquet"] = "json"
    ) -> Response:
        """Return the result as far as it is known, or what went wrong; of a summary, also a table of its cases."""
        served = _served(request)
        job = served.find(request, id)
        if format == "json":
            return Response(job.known(), media_type="application/json")
        table, form = job.table, str(format)
        if table is None:
            raise Problem(422, "The result of this job is not a table. Use the format json.")
        file: dict[str, Any] = {"media_type": TABLE_TYPES[form], "attached": f"explanations.{form}"}
        return await served.answer(request, "table", lambda: table(form), {"job": id}, is_cached=False, **file)

    @router.delete("", summary="Cancel a job", status_code=204)
    async def cancel_job(request: Request, id: str) -> Response:
        """Stop a job, of which the result so far is kept; forget one that has ended, with its result."""
        served = _served(request)
        served.studio.long_jobs.cancel(served.find(request, id))
        return Response(status_code=204)

    return router


def _file_routes() -> APIRouter:
    router = APIRouter(tags=["programs"], prefix="/v1")

    @router.post(
        "/file", summary="Open a file of cases", responses=_gives(answers.FileAnswer), openapi_extra=_FILE
    )
    async def open_file(request: Request, name: Annotated[str, _NAME]) -> Response:
        """Read a CSV or Parquet file, whose rows are the cases of all requests with its id.

        Send the id in the header `X-Anchorline-File`. The file stays in memory, and is forgotten after 30 minutes
        without a request.
        """
        served, user, raw, opened = _served(request), _user_of(request), await request.body(), list[CaseSet]()
        studio = served.studio
        if user in studio.opening:
            raise Problem(429, "A file of yours is being read at the moment. Try again later.", retry_after=5)

        def read() -> bytes:
            opened.append(served.service.open_file(name, raw))
            return b""

        studio.opening.add(user)
        try:
            await served.answer(request, "file", read, {}, is_cached=False)
        finally:
            studio.opening.discard(user)
        studio.files_of_users.close(request.headers.get(HEADER), user)
        key = studio.files_of_users.add(user, served.service.id, opened[0])
        studio.forget_later()
        return JSONResponse({"id": key, **opened[0].about})

    @router.delete("/file", summary="Close a file of cases", status_code=204)
    async def close_file(request: Request) -> Response:
        """Forget the file that the header `X-Anchorline-File` names."""
        _served(request).studio.files_of_users.close(request.headers.get(HEADER), _user_of(request))
        return Response(status_code=204)

    return router


def _page_routes() -> APIRouter:
    router, service = APIRouter(tags=["page"], prefix="/page"), ExplanationService

    @router.get("/about", summary="Describe the model and the table")
    async def about(request: Request) -> Response:
        served = _served(request)
        return await served.answer(request, "about", served.service.about, {})

    post = _add_posts(router)
    summary = "Explain one row for the page"
    post("/explain", service.explain_view, schemas.ExplainRequest, None, summary, route="view")
    summary = "Find a rule that keeps the decision for the page"
    post("/rule", service.rule_view, schemas.RuleRequest, None, summary, route="rule view")
    summary = "Find what would change the decision for the page"
    post("/changes", service.changes_view, schemas.ChangesRequest, None, summary, route="changes view")
    summary = "State the reasons of an adverse decision for the page"
    post("/reasons", service.reasons_view, schemas.ReasonsRequest, None, summary, route="reasons view")
    file = {"media_type": "text/html", "attached": "explanation.html"}
    post("/report", service.report, schemas.ReportRequest, None, "Explain one row as an HTML report", **file)
    return router


_ROUTES = (_explain_routes(), _cases_routes(), _job_routes(), _file_routes(), _page_routes())  # of every model


def _user_of(request: Request) -> str | None:
    """Return the name that the proxy sent, or the address of the client."""
    user: str | None = request.state.user or request.state.address
    return user


def _open_routes(studio: Studio) -> APIRouter:
    """Return the routes that need no token, or that check it themselves: static files, login and health."""
    router = APIRouter()

    @router.get(
        "/health",
        summary="Check whether the server is alive",
        tags=["programs"],
        responses=_gives(answers.HealthAnswer),
    )
    async def health(request: Request) -> Response:
        """Return the status; clients with the token also receive the version, the rows and the jobs."""
        content: dict[str, Any] = {"status": "ok"}
        if request.state.admitted:
            rows = {name: each.service.catalog.n_rows for name, each in studio.served.items()}
            content |= {"version": __version__, "rows": sum(rows.values())}
            content |= {"waiting": studio.jobs.n_waiting, "running": studio.jobs.n_running}
            content |= {} if "" in rows else {"models": rows}
        return JSONResponse(content)

    @router.get(
        "/ready",
        summary="Check whether requests about cases can be answered",
        tags=["programs"],
        responses=_gives(answers.HealthAnswer),
    )
    async def ready() -> Response:
        """Return 503 if the model does not answer, if workers are stuck or if the audit log cannot be written."""
        if reasons := await studio.reasons():
            raise Problem(503, " ".join(reasons), retry_after=10)
        return JSONResponse({"status": "ready"})

    @router.post("/login", include_in_schema=False)
    async def login(request: Request) -> Response:
        token = parse_qs((await request.body()).decode("ascii", "replace")).get("token", [""])[0]
        if not studio.access.is_token(token.strip()):
            return HTMLResponse(refused_landing(studio.files["landing.html"]), 401)
        root, is_secure = studio.proxy.root_path, request.scope["scheme"] == "https"
        cookie = {"Set-Cookie": studio.access.set_cookie(is_secure, root)}
        return RedirectResponse(f"{root}{request.state.prefix}/", 303, cookie)

    @router.get("/static/{name}", include_in_schema=False)
    async def static(name: str) -> Response:
        return studio.file(name)

    return router


async def _on_error(request: Request, error: Exception) -> Response:
    """Return every error as a problem; the guard logs those that nobody expected."""
    if isinstance(error, ClientDisconnect):
        return Response(status_code=499)  # for the log only, because the client has left
    if isinstance(error, HTTPException):
        details = {404: "No resource exists at this address.", 405: "This address does not support the method."}
        detail = details.get(error.status_code, "The request could not be read.")
        error = Problem(error.status_code, detail, headers=error.headers)
    if isinstance(error, RequestValidationError):
        where = [[printable(str(part))[:80] for part in item["loc"]] for item in error.errors()[:20]]
        what = [printable(str(item["msg"]))[:200] for item in error.errors()[:20]]
        errors = [{"where": parts, "what": text} for parts, text in zip(where, what, strict=True)]
        detail = f"{'.'.join(errors[0]['where'])}: {errors[0]['what']}" if errors else "The request is not valid."
        error = Problem(422, detail, members={"errors": errors})
    problem = error if isinstance(error, Problem) else Problem(500, INTERNAL_ERROR)
    is_large = int(request.headers.get("content-length", "0")) > _LARGE_BODY  # the guard has read it
    if problem.status == 429 or (problem.status == 422 and is_large):
        await asyncio.sleep(_REFUSAL_SECONDS)
    return problem.response(request.state.request_id)
