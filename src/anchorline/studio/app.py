"""The application: the routes, and the `Studio` that connects them to the service, the job queue and the guard."""

import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import parse_qs

from fastapi import APIRouter, FastAPI, Query, Request, Response, Security
from fastapi.exceptions import RequestValidationError
from fastapi.security import HTTPBearer
from starlette.exceptions import HTTPException

from anchorline._version import __version__
from anchorline.errors import AnchorlineError
from anchorline.explainer import Explainer
from anchorline.model.predictor import output_name
from anchorline.render.characters import printable
from anchorline.search.table import ADVICE
from anchorline.settings import MOST_QUERIES
from anchorline.spaces.table import Table
from anchorline.studio import schemas
from anchorline.studio.access import Access
from anchorline.studio.audit import AuditLog
from anchorline.studio.cache import request_key
from anchorline.studio.catalog import Catalog
from anchorline.studio.files import static_files
from anchorline.studio.guard import INTERNAL_ERROR, App, Guard, refused_landing
from anchorline.studio.job_queue import ClientDisconnectedError, JobQueue
from anchorline.studio.limits import MAX_ROWS, MAX_SEARCH, StudioLimits
from anchorline.studio.locked_model import lock_model
from anchorline.studio.metrics import MEDIA_TYPE as METRICS_TYPE
from anchorline.studio.metrics import Metrics
from anchorline.studio.openapi import PROBLEMS, openapi_document
from anchorline.studio.problems import MEDIA_TYPE, Problem, problem_from_error
from anchorline.studio.proxy import Proxy
from anchorline.studio.readiness import Readiness
from anchorline.studio.service import ExplanationService
from anchorline.studio.truth import Truth

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
Content = dict[str, Any] | None


class Studio:
    """One served model and everything that the routes need; `app` is the ASGI application.

    Parameters
    ----------
    explainer
        A model and a `Table` or `Contents`. The studio queries a locked copy; the given explainer does not change.
    token
        The token that every request needs; None if no token is required, which suits a single-user machine only.
    name
        Name of the model.
    hosts
        Host names of this server; requests with another Host header are refused.
    limits
        Limits of requests, queue and cache.
    proxy
        The reverse proxy in front of the server.
    audit_log
        File to which one line per request about a case is appended.
    truth
        What the model predicts, as it turned out: the name of this column, and one value per case.
    fingerprint
        What identifies the model in reports, such as the digest of its file.
    """

    def __init__(
        self,
        explainer: Explainer,
        *,
        token: str | None,
        name: str = "model",
        hosts: frozenset[str] = LOOPBACK,
        limits: StudioLimits | None = None,
        proxy: Proxy | None = None,
        audit_log: Path | None = None,
        truth: tuple[str, Sequence[Any]] | None = None,
        fingerprint: str | None = None,
    ) -> None:
        self.proxy, self.audit = proxy or Proxy(), AuditLog(audit_log)
        self.name, self.limits, self.metrics = name, limits or StudioLimits(), Metrics()
        self.access = Access(token, hosts)
        is_auto = self.limits.max_queries >= MOST_QUERIES
        self.explainer, model = lock_model(explainer, self.metrics, ask_table=is_auto)
        self.catalog = Catalog(self.explainer)
        known = None if truth is None else Truth(*truth, self.catalog.n_rows)
        self.service = ExplanationService(self.explainer, model, self.catalog, self.limits, known)
        self.fingerprint = fingerprint
        self.jobs = JobQueue(self.limits, self.metrics)
        self.readiness = Readiness(self.jobs, self.audit, self.catalog)
        self.files = static_files()
        landing = self.files["landing.html"].content
        self.app: App = Guard(build_api(self), self.access, self.limits, self.metrics, landing, self.proxy)  # type: ignore[arg-type]

    async def answer(
        self, request: Request, route: str, content: Content, function: Callable[[], bytes], read: Content = None
    ) -> bytes:
        """Return the answer of ``function`` to one request.

        The answer is cached by the request's ``content``; it is not cached if the content is None. The audit log
        says what is in ``read``, or in the content.
        """

        async def wait_for_disconnect() -> None:
            while (await request.receive())["type"] != "http.disconnect":
                pass

        key = None if content is None else request_key(route, content)
        outcome = "failed"
        try:
            answer = await self.jobs.run(key, function, wait_for_disconnect)
            outcome = "answered"
        except AnchorlineError as error:
            outcome = "refused"
            raise problem_from_error(error) from error
        finally:
            self.audit.record(request.scope["state"], route, read or content, outcome)
        return answer

    def about(self) -> dict[str, Any]:
        """Return the description of the model and the table that the page needs at its start."""
        target, space = self.explainer.target, self.explainer.space
        findings = [each for each in self.explainer.findings if each.code not in ADVICE]
        return {
            "name": printable(self.name),
            "version": __version__,
            "rows": self.catalog.n_rows,
            "fingerprint": space.fingerprint,
            "model_fingerprint": self.fingerprint,
            "is_ranked": target.task != "label",
            "columns": self.catalog.cases.describe(),
            "notices": [printable(finding.text) for finding in findings],
            "classes": None if target.classes is None else [printable(str(label)) for label in target.classes],
            "explains": None if target.column is None else printable(output_name(target, target.column)),
            "target": None if self.service.truth is None else printable(self.service.truth.name),
            "is_table": isinstance(space, Table),
            "k": space.default_k,
            "most_k": min(10, len(self.catalog.names)) if isinstance(space, Table) else 12,
        }


def create_app(explainer: Explainer, *, token: str | None, **options: Any) -> App:
    """Return the ASGI application for a server of your own; see `Studio` for the options."""
    return Studio(explainer, token=token, **options).app


def build_api(studio: Studio) -> FastAPI:
    """Return the application with its routes, without the guard around it."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        studio.jobs.abandon()

    app = FastAPI(
        title="anchorline Studio",
        version=__version__,
        summary="Explains one prediction as a short sum of facts that adds up exactly.",
        docs_url=None,  # FastAPI's page loads scripts from another host
        redoc_url=None,
        lifespan=lifespan,
        servers=[{"url": studio.proxy.root_path}] if studio.proxy.root_path else None,
    )
    app.state.studio = studio
    bearer = Security(HTTPBearer(auto_error=False, description="The token that `anchorline serve` printed."))
    for routes in (_explain_routes, _row_routes, _overview_routes, _page_routes):
        app.include_router(routes(studio), dependencies=[bearer], responses=PROBLEMS)
    app.include_router(_open_routes(studio), responses=PROBLEMS)
    app.add_exception_handler(Problem, _on_problem)
    app.add_exception_handler(HTTPException, _on_http)
    app.add_exception_handler(RequestValidationError, _on_invalid)
    app.add_exception_handler(ClientDisconnectedError, _on_disconnect)
    app.add_exception_handler(Exception, _on_error)  # the guard logs the error
    app.openapi = lambda: openapi_document(app)  # type: ignore[method-assign]
    return app


def _json(content: bytes) -> Response:
    return Response(content, media_type="application/json")


def _explain_routes(studio: Studio) -> APIRouter:
    router, service = APIRouter(tags=["programs"]), studio.service

    @router.post("/explain", summary="Explain one row")
    async def explain(request: Request, body: schemas.ExplainRequest) -> Response:
        """Return the explanation's sealed JSON, identical to `Explanation.to_json`; `/verify` accepts it."""
        return _json(await studio.answer(request, "explain", body.model_dump(), lambda: service.explain(body)))

    @router.post("/verify", summary="Verify an explanation")
    async def verify(request: Request, body: schemas.VerifyRequest) -> Response:
        """Recompute every number and measure again on fresh copies with a secret seed; never cached."""
        return _json(await studio.answer(request, "verify", None, lambda: service.verify(body)))

    @router.post("/what-if", summary="Change a row")
    async def what_if(request: Request, body: schemas.WhatIfRequest) -> Response:
        """Return the model's answer to the changed row, and the value that the original row's sum predicts."""
        return _json(await studio.answer(request, "what-if", body.model_dump(), lambda: service.what_if(body)))

    @router.post("/rule", summary="Find a rule that keeps the decision")
    async def rule(request: Request, body: schemas.RuleRequest) -> Response:
        """Return the sealed JSON of the fewest facts that keep the decision, identical to `Rule.to_json`."""
        return _json(await studio.answer(request, "rule", body.model_dump(), lambda: service.rule(body)))

    @router.post("/changes", summary="Find what would change the decision")
    async def changes(request: Request, body: schemas.ChangesRequest) -> Response:
        """Return the sealed JSON of the fewest changes that turn the decision, identical to `Changes.to_json`."""
        return _json(await studio.answer(request, "changes", body.model_dump(), lambda: service.changes(body)))

    return router


def _row_routes(studio: Studio) -> APIRouter:
    router, service = APIRouter(tags=["programs"]), studio.service

    @router.get("/rows", summary="Find rows")
    async def rows(
        request: Request,
        search: Annotated[
            str,
            Query(
                max_length=MAX_SEARCH, description="Words or comparisons (income>40000) that all hold for a row."
            ),
        ] = "",
        sort: Literal["position", "low", "high"] = "position",
        offset: Annotated[int, Query(ge=0, le=2**53)] = 0,
        limit: Annotated[int, Query(ge=1, le=MAX_ROWS)] = 50,
        output: Annotated[
            str | None, Query(max_length=MAX_SEARCH, description="Label of the class to sort by.")
        ] = None,
    ) -> Response:
        """Return the training rows that match every word, with the model's answers; `#17` finds row 17.

        If `progress` is below 1, the model has not answered all rows yet; send the request again.
        """
        query = {"search": search, "sort": sort, "offset": offset, "limit": limit, "output": output}
        key = query | {"n_known": studio.catalog.answer_table.n_known}  # so that unfinished answers are not reused
        page = await studio.answer(request, "rows", key, lambda: service.rows(search, sort, offset, limit, output))
        return _json(page)

    @router.get("/metrics", summary="Prometheus metrics", response_class=Response)
    async def metrics() -> Response:
        """Return the counts and durations of requests, the jobs, the cache and the memory."""
        return Response(studio.metrics.text(), media_type=METRICS_TYPE)

    return router


def _overview_routes(studio: Studio) -> APIRouter:
    router, service = APIRouter(tags=["programs"]), studio.service

    @router.post("/overview", summary="Summarize many cases")
    async def overview(request: Request, body: schemas.OverviewRequest) -> Response:
        """Go on with the summary of the cases that match a search, and return it as far as it is known.

        While `is_done` is false, send the same request again. Nothing is computed while nobody asks.
        """
        read, user = body.model_dump(), _user_of(request)
        return _json(await studio.answer(request, "overview", None, lambda: service.overview(body, user), read))

    @router.post("/overview/table", summary="List the explanations of many cases", response_class=Response)
    async def overview_table(request: Request, body: schemas.OverviewRequest) -> Response:
        """Return CSV, one line per case that is explained so far."""
        read, user = body.model_dump(), _user_of(request)
        content = await studio.answer(request, "table", None, lambda: service.overview_table(body, user), read)
        return Response(content, media_type="text/csv", headers=_attached("explanations.csv"))

    return router


def _page_routes(studio: Studio) -> APIRouter:
    router, service = APIRouter(tags=["page"], prefix="/page"), studio.service

    @router.get("/about", summary="Describe the model and the table")
    async def about(request: Request) -> Response:
        return _json(await studio.answer(request, "about", {}, lambda: _dump(studio.about())))

    @router.post("/explain", summary="Explain one row for the page")
    async def explain(request: Request, body: schemas.ExplainRequest) -> Response:
        return _json(await studio.answer(request, "view", body.model_dump(), lambda: service.explain_view(body)))

    @router.post("/rule", summary="Find a rule that keeps the decision for the page")
    async def rule(request: Request, body: schemas.RuleRequest) -> Response:
        return _json(await studio.answer(request, "rule view", body.model_dump(), lambda: service.rule_view(body)))

    @router.post("/changes", summary="Find what would change the decision for the page")
    async def changes(request: Request, body: schemas.ChangesRequest) -> Response:
        content = body.model_dump()
        return _json(await studio.answer(request, "changes view", content, lambda: service.changes_view(body)))

    @router.post("/report", summary="Explain one row as an HTML report", response_class=Response)
    async def report(request: Request, body: schemas.ReportRequest) -> Response:
        content = await studio.answer(request, "report", body.model_dump(), lambda: service.report(body))
        return Response(content, media_type="text/html", headers=_attached("explanation.html"))

    return router


def _user_of(request: Request) -> str | None:
    """Return the name that the proxy sent, or the address of the client."""
    user: str | None = request.state.user or request.state.address
    return user


def _attached(name: str) -> dict[str, str]:
    return {"Content-Disposition": f'attachment; filename="{name}"'}


def _dump(content: dict[str, Any]) -> bytes:
    return json.dumps(content, allow_nan=False).encode()


def _open_routes(studio: Studio) -> APIRouter:
    """Return the routes that need no token, or that check it themselves: static files, login and health."""
    router = APIRouter()

    @router.get("/health", summary="Check whether the server is alive", tags=["programs"])
    async def health(request: Request) -> Response:
        """Return the status; clients with the token also receive the version, the rows and the jobs."""
        content: dict[str, Any] = {"status": "ok"}
        if request.state.admitted:
            content |= {"version": __version__, "rows": studio.catalog.n_rows}
            content |= {"waiting": studio.jobs.n_waiting, "running": studio.jobs.n_running}
        return _json(_dump(content))

    @router.get("/ready", summary="Check whether requests about cases can be answered", tags=["programs"])
    async def ready() -> Response:
        """Return 503 if the model does not answer, if workers are stuck or if the audit log cannot be written."""
        if reasons := await studio.readiness.reasons():
            raise Problem(503, " ".join(reasons), headers={"Retry-After": "10"})
        return _json(_dump({"status": "ready"}))

    @router.post("/login", include_in_schema=False)
    async def login(request: Request) -> Response:
        token = parse_qs((await request.body()).decode("ascii", "replace")).get("token", [""])[0]
        if not studio.access.is_token(token.strip()):
            page = refused_landing(studio.files["landing.html"].content)
            return Response(page, status_code=401, media_type="text/html")
        root, is_secure = studio.proxy.root_path, request.scope["scheme"] == "https"
        headers = {"Location": f"{root}/", "Set-Cookie": studio.access.set_cookie(is_secure, root)}
        return Response(status_code=303, headers=headers)

    @router.get("/", include_in_schema=False)
    async def index() -> Response:
        return studio.files["index.html"].response()

    @router.get("/static/{name}", include_in_schema=False)
    async def static(name: str) -> Response:
        if name not in studio.files:
            raise Problem(404, "No file of that name exists.")
        return studio.files[name].response()

    return router


async def _on_problem(request: Request, error: Exception) -> Response:
    assert isinstance(error, Problem)
    content = error.body(request.state.request_id)
    return Response(content, status_code=error.status, headers=error.headers, media_type=MEDIA_TYPE)


async def _on_disconnect(request: Request, error: Exception) -> Response:
    return Response(status_code=499)  # for the log only, because the client has left


async def _on_error(request: Request, error: Exception) -> Response:
    return await _on_problem(request, Problem(500, INTERNAL_ERROR))


async def _on_http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    details = {404: "No resource exists at this address.", 405: "This address does not support the method."}
    detail = details.get(error.status_code, "The request could not be read.")
    return await _on_problem(request, Problem(error.status_code, detail, headers=error.headers))


async def _on_invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    errors = [
        {"where": [printable(str(part))[:80] for part in item["loc"]], "what": printable(str(item["msg"]))[:200]}
        for item in error.errors()[:20]
    ]
    detail = f"{'.'.join(errors[0]['where'])}: {errors[0]['what']}" if errors else "The request is not valid."
    return await _on_problem(request, Problem(422, detail, members={"errors": errors}))
