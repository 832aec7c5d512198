"""The routes about many cases: the summary of a cohort, and the difference of two."""

from collections.abc import Awaitable, Callable
from typing import Any

from fastapi import APIRouter, Request, Response

from anchorline.studio import schemas
from anchorline.studio.cohort_service import CohortService

Answer = Callable[[Request, str, None, Callable[[], bytes], dict[str, Any]], Awaitable[bytes]]


def cohort_routes(answer: Answer, service: CohortService) -> APIRouter:
    """Return the routes; ``answer`` runs a function in the job queue for a request."""
    router = APIRouter(tags=["programs"])

    @router.post("/overview", summary="Summarize many cases", response_model=schemas.OverviewAnswer)
    async def overview(request: Request, body: schemas.OverviewRequest) -> Response:
        """Go on with the summary of the cases that match a search, and return it as far as it is known.

        While `is_done` is false, send the same request again. Nothing is computed while nobody asks.
        """
        content = await answer(request, "overview", None, lambda: service.overview(body), body.model_dump())
        return Response(content, media_type="application/json")

    @router.post("/overview/compare", summary="Compare two groups of cases", response_model=schemas.CompareAnswer)
    async def compare(request: Request, body: schemas.CompareRequest) -> Response:
        """Go on with both summaries, and return the differences when both are known; all limits hold together."""
        content = await answer(request, "compare", None, lambda: service.compare(body), body.model_dump())
        return Response(content, media_type="application/json")

    return router
