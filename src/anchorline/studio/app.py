"""The application: routes, and what wires them to the desk, the work and the guard."""

import json
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
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
from anchorline.studio import limits as most
from anchorline.studio import schemas
from anchorline.studio.access import Access
from anchorline.studio.cache import key_of
from anchorline.studio.catalogue import Catalogue
from anchorline.studio.files import static_files
from anchorline.studio.gate import gated
from anchorline.studio.guard import App, Guard
from anchorline.studio.limits import Limits
from anchorline.studio.metrics import MEDIA_TYPE as METRICS_TYPE
from anchorline.studio.metrics import Metrics
from anchorline.studio.openapi import PROBLEMS, describe, explained
from anchorline.studio.problems import MEDIA_TYPE, Problem, problem_of
from anchorline.studio.service import Desk
from anchorline.studio.work import Left, Work

logger = logging.getLogger("anchorline.studio")
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


class Studio:
    """All that routes need; `app` is the ASGI application.

    Parameters
    ----------
    explainer
        A model and a `Table`; asked through a gate, and itself left as it is.
    token
        What everybody must bring; None: nothing, which is for a machine of one user.
    name
        What the model is called.
    hosts
        Names by which browsers may call this server.
    limits
        Of requests, queue and cache.
    """

    def __init__(
        self,
        explainer: Explainer,
        *,
        token: str | None,
        name: str = "model",
        hosts: frozenset[str] = LOOPBACK,
        limits: Limits | None = None,
    ) -> None:
        self.name, self.limits, self.metrics = name, limits or Limits(), Metrics()
        self.access = Access(token, hosts)
        self.explainer, model = gated(explainer, self.metrics)
        self.catalogue = Catalogue(self.explainer)
        self.desk = Desk(self.explainer, model, self.catalogue, self.limits)
        self.work = Work(self.limits, self.metrics)
        self.files = static_files()
        landing = self.files["landing.html"].content
        self.app: App = Guard(api_of(self), self.access, self.limits, self.metrics, landing)  # type: ignore[arg-type]

    async def answer(
        self, request: Request, route: str, asked: dict[str, Any] | None, function: Callable[[], bytes]
    ) -> bytes:
        """Work for one request; ``asked`` is its content, by which the answer is kept (None: it is not)."""

        async def gone() -> None:
            while (await request.receive())["type"] != "http.disconnect":
                pass

        try:
            return await self.work.run(None if asked is None else key_of(route, asked), function, gone)
        except AnchorlineError as error:
            logger.info("request %s: %s", request.state.request_id, printable(str(error)))
            raise problem_of(error) from error

    def about(self) -> dict[str, Any]:
        """What the page needs to know of model and table."""
        asked = self.explainer.target
        n_facts = len(self.catalogue.names)
        return {
            "name": printable(self.name),
            "version": __version__,
            "rows": self.catalogue.n_rows,
            "is_ranked": self.catalogue.is_ranked,
            "columns": self.catalogue.describe(),
            "classes": None if asked.classes is None else [printable(str(label)) for label in asked.classes],
            "explains": None if asked.column is None else printable(output_name(asked, asked.column)),
            "groups": self.explainer.space.groups,  # type: ignore[attr-defined]  # a Table
            "most_k": min(10, n_facts + 1),
            "most_samples": self.limits.max_samples,
        }


def create_app(explainer: Explainer, *, token: str | None, **options: Any) -> App:
    """The ASGI application, for a server of your own; see `Studio` for the options."""
    return Studio(explainer, token=token, **options).app


def api_of(studio: Studio) -> FastAPI:
    """The routes alone, without the guard around them."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        studio.work.start()
        yield
        studio.work.abandon()

    app = FastAPI(
        title="anchorline Studio",
        version=__version__,
        summary="Short sums that add up exactly to a model's prediction, proven best, with an error bar.",
        docs_url=None,  # its scripts come from another host
        redoc_url=None,
        lifespan=lifespan,
    )
    app.state.studio = studio
    bearer = Security(HTTPBearer(auto_error=False, description="The token that `anchorline serve` printed."))
    for router in (_programs(studio), _lookouts(studio), _kserve(studio), _page(studio)):
        app.include_router(router, dependencies=[bearer], responses=PROBLEMS)
    app.include_router(_open(studio), responses=PROBLEMS)
    app.add_exception_handler(Problem, _on_problem)
    app.add_exception_handler(HTTPException, _on_http)
    app.add_exception_handler(RequestValidationError, _on_invalid)
    app.add_exception_handler(Left, _on_left)
    app.add_exception_handler(Exception, _on_bug)  # the guard logs it
    app.openapi = lambda: describe(app)  # type: ignore[method-assign]
    return app


def _json(content: bytes) -> Response:
    return Response(content, media_type="application/json")


def _programs(studio: Studio) -> APIRouter:
    router, desk = APIRouter(tags=["programs"]), studio.desk

    @router.post("/explain", summary="Explain one row", responses=explained())
    async def explain(request: Request, asked: schemas.ExplainRequest) -> Response:
        """The explanation's sealed JSON, byte for byte what `Explanation.to_json` gives; `/verify` takes it."""
        return _json(await studio.answer(request, "explain", asked.model_dump(), lambda: desk.explain(asked)))

    @router.post("/frontier", summary="How many reasons are needed?", response_model=schemas.FrontierAnswer)
    async def frontier(request: Request, asked: schemas.FrontierRequest) -> Response:
        """The best sum for every k, on one search sample, measured on one fresh sample."""
        return _json(await studio.answer(request, "frontier", asked.model_dump(), lambda: desk.frontier(asked)))

    @router.post("/verify", summary="Check an explanation again", response_model=schemas.VerifyAnswer)
    async def verify(request: Request, asked: schemas.VerifyRequest) -> Response:
        """Recompute every figure, and measure once more on neighbors that nobody could know; never cached."""
        return _json(await studio.answer(request, "verify", None, lambda: desk.verify(asked)))

    @router.post("/what-if", summary="Change a row", response_model=schemas.WhatIfAnswer)
    async def what_if(request: Request, asked: schemas.WhatIfRequest) -> Response:
        """The model's answer to the changed row, next to what the explanation of the original row says."""
        return _json(await studio.answer(request, "what-if", asked.model_dump(), lambda: desk.what_if(asked)))

    return router


def _lookouts(studio: Studio) -> APIRouter:
    router, desk = APIRouter(tags=["programs"]), studio.desk

    @router.get("/rows", summary="Find rows", response_model=schemas.RowsAnswer)
    async def rows(
        request: Request,
        search: Annotated[str, Query(max_length=most.MAX_SEARCH, description="Words that all occur.")] = "",
        sort: Literal["position", "low", "high"] = "position",
        offset: Annotated[int, Query(ge=0, le=2**53)] = 0,
        limit: Annotated[int, Query(ge=1, le=most.MAX_ROWS)] = 50,
    ) -> Response:
        """Training rows that hold all words searched for, with the model's answers; `#17` finds row 17."""
        asked = {"search": search, "sort": sort, "offset": offset, "limit": limit}
        return _json(await studio.answer(request, "rows", asked, lambda: desk.rows(search, sort, offset, limit)))

    @router.get("/metrics", summary="Prometheus metrics", response_class=Response)
    async def metrics() -> Response:
        """Requests, durations, jobs, cache and memory."""
        work = studio.work
        gauges = {
            "anchorline_jobs_waiting": work.n_waiting,
            "anchorline_jobs_running": work.n_running,
            "anchorline_cache_entries": len(work.cache),
            "anchorline_cache_bytes": work.cache.n_bytes,
        }
        return Response(studio.metrics.text(gauges), media_type=METRICS_TYPE)

    return router


def _kserve(studio: Studio) -> APIRouter:
    router = APIRouter(tags=["KServe v1"])

    @router.get("/v1/models", summary="List models")
    async def models() -> schemas.ModelsAnswer:
        return schemas.ModelsAnswer(models=[studio.name])

    @router.get("/v1/models/{name}", summary="Is a model ready?")
    async def model(name: str) -> schemas.ModelAnswer:
        _check_name(studio, name)
        return schemas.ModelAnswer(name=studio.name, ready=True)

    @router.post("/v1/models/{name}:explain", summary="Explain", response_model=schemas.KServeAnswer)
    async def explain(request: Request, name: str, asked: schemas.KServeRequest) -> Response:
        """Predictions and explanations in the order of the instances."""
        _check_name(studio, name)
        return _json(await studio.answer(request, "kserve", asked.model_dump(), lambda: studio.desk.kserve(asked)))

    return router


def _check_name(studio: Studio, name: str) -> None:
    if name != studio.name:
        raise Problem(404, f"There is no model {name!r}.")


def _page(studio: Studio) -> APIRouter:
    router, desk = APIRouter(tags=["page"], prefix="/page"), studio.desk

    @router.get("/about", summary="Model and table")
    async def about(request: Request) -> Response:
        return _json(await studio.answer(request, "about", {}, lambda: _dumped(studio.about())))

    @router.post("/explain", summary="An explanation, ready to be drawn")
    async def explain(request: Request, asked: schemas.ExplainRequest) -> Response:
        return _json(await studio.answer(request, "view", asked.model_dump(), lambda: desk.explain_view(asked)))

    @router.post("/frontier", summary="The best sums for every k, ready to be drawn")
    async def frontier(request: Request, asked: schemas.FrontierRequest) -> Response:
        return _json(await studio.answer(request, "sketch", asked.model_dump(), lambda: desk.frontier_view(asked)))

    @router.post("/report", summary="An explanation as one HTML page", response_class=Response)
    async def report(request: Request, asked: schemas.ExplainRequest) -> Response:
        content = await studio.answer(request, "report", asked.model_dump(), lambda: desk.report(asked))
        headers = {"Content-Disposition": 'attachment; filename="explanation.html"'}
        return Response(content, media_type="text/html", headers=headers)

    return router


def _dumped(told: dict[str, Any]) -> bytes:
    return json.dumps(told, allow_nan=False).encode()


def _open(studio: Studio) -> APIRouter:
    """Static files, the login, and a sign of life."""
    router = APIRouter()

    @router.get("/health", summary="A sign of life", tags=["programs"], response_model=schemas.HealthAnswer)
    async def health(request: Request) -> Response:
        """Alive; version, rows and jobs only for those with the token."""
        told: dict[str, Any] = {"status": "ok"}
        if request.state.admitted:
            told |= {"version": __version__, "rows": studio.catalogue.n_rows}
            told |= {"waiting": studio.work.n_waiting, "running": studio.work.n_running}
        return _json(_dumped(told))

    @router.post("/login", include_in_schema=False)
    async def login(request: Request) -> Response:
        given = parse_qs((await request.body()).decode("ascii", "replace")).get("token", [""])[0]
        back = {"Location": "/"}
        if studio.access.knows(given.strip()):
            back["Set-Cookie"] = studio.access.set_cookie(request.url.scheme == "https")
        return Response(status_code=303, headers=back)

    @router.get("/", include_in_schema=False)
    async def index() -> Response:
        return studio.files["index.html"].response()

    @router.get("/static/{name}", include_in_schema=False)
    async def static(name: str) -> Response:
        if name not in studio.files:
            raise Problem(404, "There is no such file.")
        return studio.files[name].response()

    return router


async def _on_problem(request: Request, error: Exception) -> Response:
    assert isinstance(error, Problem)
    content = error.body(request.state.request_id)
    return Response(content, status_code=error.status, headers=error.headers, media_type=MEDIA_TYPE)


async def _on_left(request: Request, error: Exception) -> Response:
    return Response(status_code=499)  # for the log; nobody is there to read it


async def _on_bug(request: Request, error: Exception) -> Response:
    return await _on_problem(request, Problem(500, "Something went wrong; the log says what."))


async def _on_http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    told = {404: "There is nothing at this address.", 405: "This address does not take that method."}
    detail = told.get(error.status_code, "The request could not be read.")
    return await _on_problem(request, Problem(error.status_code, detail, headers=error.headers))


async def _on_invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    wrong = [
        {"where": [printable(str(part))[:80] for part in one["loc"]], "what": printable(str(one["msg"]))[:200]}
        for one in error.errors()[:20]
    ]
    detail = f"{'.'.join(wrong[0]['where'])}: {wrong[0]['what']}" if wrong else "The request is not valid."
    return await _on_problem(request, Problem(422, detail, members={"errors": wrong}))
