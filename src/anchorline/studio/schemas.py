"""The schemas of requests and answers: requests are validated by them, and /openapi.json describes both."""

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

from anchorline.studio import limits

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
    values = row.values() if isinstance(row, dict) else row if isinstance(row, list) else ()
    if len(values) > limits.MAX_COLUMNS:
        context = {"n_values": len(values), "max_values": limits.MAX_COLUMNS}
        message = "The row has {n_values} values; the maximum is {max_values}."
        raise PydanticCustomError("too_long", message, context)
    if any(isinstance(value, dict | list) for value in values):
        message = "A value of the row is a list or an object; each must be a text, a number, a boolean or null."
        raise PydanticCustomError("nested", message)
    return row


def _unique(values: list[Any]) -> list[Any]:
    """Return each value once, in the order of their first occurrences, because each one costs time."""
    return list(dict.fromkeys(values))


Text = Annotated[StrictStr, Field(max_length=limits.MAX_CHARACTERS)]
Value = Text | StrictBool | StrictInt | StrictFloat | None
RowLength = Field(max_length=limits.MAX_COLUMNS)
Values = Annotated[
    dict[Annotated[str, Field(max_length=limits.MAX_CHARACTERS)], Value], RowLength, BeforeValidator(_check_flat)
]
Position = Annotated[StrictInt, Field(ge=0, le=2**53, description="Position of a training row, starting at 0.")]
Row = Position | Values
K = Annotated[StrictInt, Field(ge=1, le=limits.MAX_TERMS)]
Sigma = Annotated[float, Field(ge=0, le=limits.MAX_SIGMA)]
Samples = Annotated[StrictInt, Field(ge=1, le=limits.MAX_SAMPLES)]


class _Request(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class _SamplingParameters(_Request):
    """The parameters that every computation has."""

    sigma: Sigma = Field(
        default=1.0, description="Locality: a neighbor breaks each literal with probability 1 / (1 + e^sigma)."
    )
    n_samples: Samples | None = Field(
        default=None, description="Number of neighbors to search with; 5,000 if null."
    )
    n_certify: Annotated[StrictInt, Field(ge=0, le=limits.MAX_SAMPLES)] | None = Field(
        default=None, description="Number of fresh neighbors to measure with; 0 omits the certificate."
    )
    seed: Annotated[StrictInt, Field(ge=0, lt=2**53)] = Field(
        default=0, description="Seed of the random numbers; the same seed gives the same bytes."
    )
    output: Text | None = Field(
        default=None, description="Label of the class to explain; if null, the server's own choice."
    )


class ExplainParameters(_SamplingParameters):
    """The parameters of an explanation."""

    k: K = Field(default=5, description="Maximum number of terms, including the intercept.")
    alternatives: Annotated[StrictInt, Field(ge=0, le=limits.MAX_ALTERNATIVES)] = Field(
        default=0,
        description="Maximum number of other sums to list that the evidence cannot distinguish from the best one.",
    )
    objective: Literal["fidelity", "relevance"] = "fidelity"


class ExplainRequest(ExplainParameters):
    """The row to explain, and the parameters of its explanation."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"row": 1, "k": 5}, {"row": _EXAMPLE_ROW, "k": 4, "sigma": 1.5}]}
    )

    row: Row = Field(description="Position of a training row, or a value per column (null if missing).")


class FrontierRequest(_SamplingParameters):
    """The row to explain, and the maximum numbers of terms to try."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"row": 1, "ks": [1, 2, 3, 4, 5]}]})

    row: Row
    ks: Annotated[list[K], Field(min_length=1, max_length=limits.MAX_TERMS), AfterValidator(_unique)] = list(
        range(1, 9)
    )


class VerifyRequest(_Request):
    """An explanation, either as the text that /explain returned or as the parsed object."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"explanation": '{"schema_version":1}'}]})

    explanation: StrictStr | dict[str, Any]


class WhatIfRequest(ExplainParameters):
    """A row and its changes: new values, or literals to break by a typical value."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"row": 1, "edits": {"debt": 0}, "broken": ["income"]}]}
    )

    row: Row
    edits: Values = Field(default_factory=dict, description="New values by column.")
    broken: Annotated[list[Text], Field(max_length=limits.MAX_COLUMNS), AfterValidator(_unique)] = Field(
        default_factory=list, description="Attributes whose literal is broken by a typical training value."
    )


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
    n: Annotated[StrictInt, Field(ge=1, le=limits.MAX_CHANGES)] = Field(
        default=3, description="Maximum number of changes to list."
    )
    max_facts: Annotated[StrictInt, Field(ge=1, le=limits.MAX_TERMS)] | None = Field(
        default=None, description="Maximum number of facts that change; 3 if null, any number for rows."
    )
    fixed: Annotated[list[Text], Field(max_length=limits.MAX_COLUMNS), AfterValidator(_unique)] = Field(
        default_factory=list, description="Columns that keep their values."
    )
    toward: Row | None = Field(default=None, description="Another row: attributes may only take its values.")
    examples: Literal["values", "rows"] = Field(
        default="values", description="Any training values of few columns, or whole training rows."
    )
    seed: Annotated[StrictInt, Field(ge=0, lt=2**53)] = 0
    output: Text | None = Field(
        default=None, description="Label of the class to explain; if null, the server's own choice."
    )


class OverviewRequest(_Request):
    """Which cases to summarize, and the parameters of their explanations."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"search": "purpose=car", "n_rows": 50}]})

    search: Annotated[StrictStr, Field(max_length=limits.MAX_SEARCH)] = Field(
        default="", description="The cases that match, as in /rows; all of them if empty."
    )
    n_rows: Annotated[StrictInt, Field(ge=1, le=limits.MAX_COHORT)] = Field(
        default=100, description="Maximum number of cases to explain; of more cases, a random sample is explained."
    )
    k: K = Field(default=5, description="Maximum number of terms, including the intercept.")
    sigma: Sigma = Field(default=1.0, description="Locality of the neighbors.")
    output: Text | None = Field(
        default=None,
        description="Label of the class to explain; if null, the second one of two classes, or the decided one.",
    )


class CompareRequest(OverviewRequest):
    """Two groups of cases: those that match ``search``, and those that match ``other``."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"search": "purpose=car", "other": "purpose=home", "n_rows": 50}]}
    )

    other: Annotated[StrictStr, Field(max_length=limits.MAX_SEARCH)]


class KServeRequest(_Request):
    """Instances in KServe's v1 protocol; ``parameters`` are those of /explain."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"instances": [_EXAMPLE_ROW]}]})

    instances: Annotated[
        list[Values | Annotated[list[Value], RowLength, BeforeValidator(_check_flat)]],
        Field(min_length=1, max_length=limits.MAX_INSTANCES),
    ]
    parameters: ExplainParameters = Field(default_factory=ExplainParameters)


class _Answer(BaseModel):
    model_config = ConfigDict(allow_inf_nan=False)


class ProblemAnswer(_Answer):
    """A problem (RFC 9457): what was wrong, and the id of the request in the server's log."""

    type: str = Field(examples=["about:blank"])
    title: str = Field(examples=["Unprocessable Entity"])
    status: int = Field(examples=[422])
    detail: str = Field(examples=["k is 21; the maximum is 20."])
    request_id: str
    errors: list[dict[str, Any]] | None = Field(
        default=None, description="The members of the request that are wrong."
    )


class EstimateAnswer(_Answer):
    """A measured number and its confidence interval."""

    value: float
    low: float
    high: float
    n_samples: int
    confidence: float
    exact: bool
    method: str


class LiteralAnswer(_Answer):
    """A statement that is true of the row; ``held`` is true of every neighbor that does not break it."""

    name: str
    text: str
    held: str


class PointAnswer(_Answer):
    """The best sum with at most k terms."""

    k: int
    contributions: list[float]
    intercept: float
    status: str
    objective: float
    lower_bound: float
    fidelity_error: EstimateAnswer | None
    relevance_error: EstimateAnswer | None


class FrontierAnswer(_Answer):
    """The error as a function of the number of terms."""

    prediction: float
    literals: list[LiteralAnswer]
    points: list[PointAnswer]
    n_queries: int
    n_clipped: int = Field(
        description="Number of outputs clipped to the range; if positive, the true errors may be larger."
    )
    confidence: float


class VerifyAnswer(_Answer):
    """Whether every number of the explanation was reproduced."""

    outcome: Literal["holds", "does not hold", "cannot tell"]
    holds: bool
    reasons: list[str]
    verdict: str | None = Field(description="The verdict by fresh neighbors; null if nothing was measured.")


class RowAnswer(_Answer):
    """One case: its values in the order of the columns, the model's decision and the explained number."""

    position: int
    values: list[str | bool | int | float | None] = Field(
        description="Can be sent back unchanged: integers from 2^53 on are texts, infinities are 'Infinity'."
    )
    answer: str
    value: float | None
    truth: str | None = Field(default=None, description="The true outcome, if a target was given.")


class RowsAnswer(_Answer):
    """One page of the rows that match a search."""

    total: int
    found: int
    offset: int
    progress: float = Field(
        description="Share of the rows whose answers are known; below 1, further rows may match or come first."
    )
    columns: list[str]
    rows: list[RowAnswer]


class CohortAnswer(_Answer):
    """How far a group of cases is explained, and which part of the table it is."""

    progress: float = Field(description="Below 1, send the request again.")
    is_done: bool
    found: int | None = Field(description="How many cases match; null while the search is not complete.")
    n_sampled: int
    n_explained: int
    n_failed: int
    failed: list[int]


class OverviewAnswer(CohortAnswer):
    """The summary of a group of cases, as far as it is known."""

    summary: dict[str, Any] | None = Field(
        description="Attributes with their shares and directions, verdicts, and the least trustworthy cases."
    )
    rules: dict[str, Any] | None = Field(description="The fewest rules that cover 80% of the decisions.")
    outcomes: dict[str, Any] | None = Field(
        description="Decisions and scores, and, with a target, confusion matrix and calibration."
    )


class CompareAnswer(_Answer):
    """The differences of two groups, when both are explained."""

    is_done: bool
    first: CohortAnswer
    second: CohortAnswer
    comparison: dict[str, Any] | None


class WhatIfAnswer(_Answer):
    """The model's answer to the changed row, and the value that the explanation's sum predicts for it."""

    row: dict[str, str | bool | int | float | None]
    literals: list[str | None] = Field(
        description="For each literal of the original row, the statement that is true of the changed row."
    )
    is_broken: list[bool]
    answer: str
    prediction: float | None = Field(description="The explained number in the model's answer to the changed row.")
    expected: float = Field(description="original - 2 * (sum of the contributions of the broken literals).")
    original: float
    decision_stays: bool | None


class HealthAnswer(_Answer):
    """The server is alive; the details are sent only to clients with the token."""

    status: Literal["ok"]
    version: str | None = None
    rows: int | None = None
    waiting: int | None = None
    running: int | None = None


class ModelsAnswer(_Answer):
    """KServe: the names of the models."""

    models: list[str]


class ModelAnswer(_Answer):
    """KServe: whether a model is ready."""

    name: str
    ready: bool


class KServeAnswer(_Answer):
    """KServe: predictions and explanations, in the order of the instances, all of them about one class."""

    predictions: list[float]
    output: str | None = Field(description="The class that the predictions are about; null if they are numbers.")
    explanations: list[dict[str, Any]]
