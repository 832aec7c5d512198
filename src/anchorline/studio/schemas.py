"""The schemas of requests and problems, which validate them and describe them in /openapi.json; their limits."""

from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
)
from pydantic_core import PydanticCustomError

from anchorline.settings import FEWEST_QUERIES
from anchorline.studio.problems import MEDIA_TYPE

MAX_FACTS = 20  # k; a longer sum is unreadable
MAX_SIGMA = 8.0  # replaces one value in 1,500; at higher values, hardly any copy differs from the row
MAX_ALTERNATIVES = 10
MAX_CHANGES = 10
MAX_REASONS = 10
MAX_QUERIES = 1_000_000  # that a request may name; a server allows far fewer
MAX_ROWS = 200  # per page of the table
MAX_COLUMNS = 4096
MAX_CHARACTERS = 100_000  # per value; a text of 40 pages
MAX_COHORT = 1000  # cases of a summary that are explained; of larger cohorts a random sample
DEFAULT_COHORT = 100
MAX_SEARCH = 200  # characters per search text

_EXAMPLE_ROW: dict[str, JsonValue] = {
    "age": 35,
    "income": 32000.0,
    "debt": 12900,
    "employed_years": 12.0,
    "purpose": "car",
    "owner": False,
    "applied": "2024-05-01",
    "branch": "south",
}


def _check_flat(row: Any) -> Any:
    """Refuse a row at its first wrong value, because listing all of them would block the server for seconds."""
    values = row.values() if isinstance(row, dict) else ()
    if len(values) > MAX_COLUMNS:
        context = {"n_values": len(values), "max_values": MAX_COLUMNS}
        message = "The row has {n_values} values; the maximum is {max_values}."
        raise PydanticCustomError("too_long", message, context)
    if any(isinstance(value, dict | list) for value in values):
        message = "A value of the row is a list or an object; each must be a text, a number, a boolean or null."
        raise PydanticCustomError("nested", message)
    return row


def _unique(values: list[Any]) -> list[Any]:
    """Return each value once, in the order of their first occurrences, because each one costs time."""
    return list(dict.fromkeys(values))


Text = Annotated[StrictStr, Field(max_length=MAX_CHARACTERS)]
Value = Text | StrictBool | StrictInt | StrictFloat | None
Values = Annotated[
    dict[Annotated[str, Field(max_length=MAX_CHARACTERS)], Value],
    Field(max_length=MAX_COLUMNS),
    BeforeValidator(_check_flat),
]
Names = Annotated[list[Text], Field(max_length=MAX_COLUMNS), AfterValidator(_unique)]
Position = Annotated[StrictInt, Field(ge=0, le=2**53, description="Position of a training row, starting at 0.")]
Row = Position | Values
K = Annotated[StrictInt, Field(ge=1, le=MAX_FACTS)]
Sigma = Annotated[float, Field(ge=0, le=MAX_SIGMA)]
Seed = Annotated[StrictInt, Field(ge=0, lt=2**53)]
Queries = Annotated[StrictInt, Field(ge=FEWEST_QUERIES, le=MAX_QUERIES)]
Holds = Annotated[float, Field(gt=0, le=1)]
Output = Annotated[
    Text | None, Field(description="Label of the class to explain; if null, the server's own choice.")
]


class _Request(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class ExplainRequest(_Request):
    """The row to explain, and the parameters of its explanation."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"row": 1, "k": 4}, {"row": _EXAMPLE_ROW, "k": 3, "sigma": 1.5}]}
    )

    row: Row = Field(description="Position of a training row, or a value per column (null if missing).")
    k: K | None = Field(default=None, description="Maximum number of facts; 4 if null, 8 of words and regions.")
    sigma: Sigma = Field(
        default=1.0, description="A copy keeps each value with probability 1 - 2 / (1 + e^sigma)."
    )
    queries: Queries | None = Field(
        default=None, description="Maximum number of answers of the model; if null, as many as are needed."
    )
    seed: Seed = Field(default=0, description="Seed of the random numbers; the same seed gives the same bytes.")
    alternatives: Annotated[StrictInt, Field(ge=0, le=MAX_ALTERNATIVES)] = Field(
        default=0, description="Maximum number of other sums to list that fit within 1%."
    )
    output: Output = None


class WhatIfRequest(ExplainRequest):
    """A row and its changes: new values by column, or words and regions that are taken out."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"row": 1, "edits": {"debt": 0}}]})

    edits: Values = Field(default_factory=dict, description="New values by column.")
    broken: Names = Field(default_factory=list, description="Words to take out, or regions to hide.")


class AnswerRequest(_Request):
    """A row that the model is asked about, and a text with other values of it."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"row": 1}, {"row": _EXAMPLE_ROW}]})

    row: Row
    paste: Text | None = Field(
        default=None,
        description="Values that replace those of the row: a JSON object, or a line of titles and one of CSV.",
    )


class VerifyRequest(_Request):
    """An explanation, either as the text that /v1/explain returned or as the parsed object."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"explanation": '{"schema": 2}'}]})

    explanation: StrictStr | dict[str, Any]


class ChangesRequest(_Request):
    """A row, and what may change so that its decision turns."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"row": 1, "fixed": ["age"]}, {"row": 1, "target": "approved", "n": 1}]}
    )

    row: Row
    target: Text | StrictBool | StrictInt | StrictFloat | None = Field(
        default=None,
        description="The wanted class or label, a limit such as '>= 300', or a move such as '+50'; any other "
        "decision if null.",
    )
    n: Annotated[StrictInt, Field(ge=1, le=MAX_CHANGES)] = Field(
        default=3, description="Maximum number of changes to list."
    )
    k: K | None = Field(default=None, description="Maximum number of facts that change; 3 if null, any for rows.")
    fixed: Names = Field(default_factory=list, description="Columns that keep their values.")
    examples: Literal["values", "rows"] = Field(
        default="values", description="Any training values of few columns, or whole training rows."
    )
    seed: Seed = 0
    output: Output = None


class RuleRequest(_Request):
    """A row, and what its rule must hold."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"row": 1}, {"row": _EXAMPLE_ROW, "holds": 0.99, "k": 3}]}
    )

    row: Row
    holds: Holds | None = Field(
        default=0.95,
        description="Share of altered copies with the facts that must keep the decision; 1 asks for a proof, null "
        "for the most that k facts hold.",
    )
    k: K = Field(default=4, description="Maximum number of facts.")
    within: Annotated[float, Field(gt=0)] | None = Field(
        default=None,
        description="How much a number may change and still stay; if null, 10% of it or of the spread of outputs.",
    )
    sigma: Sigma = 1.0
    queries: Queries | None = None
    seed: Seed = 0
    output: Output = None


class ReasonsRequest(_Request):
    """A row with an adverse decision; codes, threshold, reference and prohibited columns are the server's."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"row": 1}, {"row": 1, "n": 2, "recourse": True}]})

    row: Row
    n: Annotated[StrictInt, Field(ge=1, le=MAX_REASONS)] = Field(
        default=4, description="Maximum number of reasons."
    )
    recourse: StrictBool = Field(
        default=False, description="Whether to say what another value of each reason alone would do."
    )
    time: Annotated[StrictStr, Field(max_length=MAX_SEARCH)] = Field(default="", description="For the record.")
    queries: Queries | None = None
    seed: Seed = 0


class ReportRequest(ExplainRequest):
    """The row to explain, the parameters of its explanation, and whether its rule stands beside it."""

    holds: Holds | None = Field(
        default=None, description="If given, the report also has the rule that holds this often."
    )


class _CasesRequest(_Request):
    """Which cases, and the parameters of the explanations that the search may ask about."""

    search: Annotated[StrictStr, Field(max_length=MAX_SEARCH)] = Field(
        default="", description="The cases that match, as in /v1/rows; all of them if empty."
    )
    k: K | None = None
    sigma: Sigma = 1.0
    output: Output = None


class RowsRequest(_CasesRequest):
    """A part of the cases that match, in an order."""

    sort: Literal["position", "low", "high"] = "position"
    offset: Annotated[StrictInt, Field(ge=0, le=2**53)] = 0
    limit: Annotated[StrictInt, Field(ge=1, le=MAX_ROWS)] = 50


class OverviewRequest(_CasesRequest):
    """Which cases to summarize, and the parameters of their explanations."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"search": "purpose=car", "n_rows": 50}]})

    n_rows: Annotated[StrictInt, Field(ge=1, le=MAX_COHORT)] = Field(
        default=DEFAULT_COHORT,
        description="Maximum number of cases to explain; of more cases, a random sample is explained.",
    )
    output: Text | None = Field(
        default=None,
        description="Label of the class to explain; if null, the second one of two classes, or the decided one.",
    )


class WholeRequest(_CasesRequest):
    """Which cases a question about the whole model is about."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"attribute": "age", "search": "purpose=car"}]})

    attribute: Text | None = Field(
        default=None, description="The column that acts, or by whose values cases are grouped."
    )


class CompareRequest(_Request):
    """How the server's model is compared with the one before."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"n": 60, "by": "age"}]})

    n: Annotated[StrictInt, Field(ge=30, le=200)] = Field(default=60, description="Cases that are explained.")
    by: Text | None = Field(default=None, description="A column by whose values decisions are compared, too.")


class ProblemAnswer(BaseModel):
    """A problem (RFC 9457): what was wrong, and the id of the request in the server's log."""

    type: str = Field(examples=["urn:anchorline:invalid", "urn:anchorline:unmapped"])
    title: str = Field(examples=["Unprocessable Entity"])
    status: int = Field(examples=[422])
    detail: str = Field(examples=["k is 21; the maximum is 20."])
    request_id: str
    errors: list[dict[str, Any]] | None = Field(
        default=None, description="The members of the request that are wrong."
    )


_STATUSES = {
    400: "The body is not valid JSON, or it is nested too deeply.",
    401: "The token is missing or wrong.",
    403: "The request comes from another site.",
    404: "No resource exists at this address, or no case has this number.",
    408: "The request took too long to arrive.",
    409: "The job has no result yet.",
    410: "The job was canceled, because nobody asked about it.",
    413: "The body is too large.",
    415: "The body is not application/json.",
    421: "The Host header does not name this server.",
    422: "The request violates the schema, the table's columns or the limits.",
    429: "Too many requests are waiting. Retry-After holds the seconds to wait.",
    502: "The model failed.",
    503: "The answer took too long, or the server is shutting down.",
}
PROBLEMS: dict[int | str, dict[str, Any]] = {
    status: {
        "description": description,
        "content": {MEDIA_TYPE: {"schema": {"$ref": f"#/components/schemas/{ProblemAnswer.__name__}"}}},
    }
    for status, description in _STATUSES.items()
}
