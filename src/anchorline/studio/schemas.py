"""What requests and answers look like: checked on the way in, described in /openapi.json."""

from typing import Annotated, Any, Literal

from pydantic import (
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

from anchorline.studio import limits as most

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


def _flat(row: Any) -> Any:
    """Refuse a row at its first wrong value: to list all of them takes seconds, in which nobody is answered."""
    values = row.values() if isinstance(row, dict) else row if isinstance(row, list) else ()
    if len(values) > most.MAX_COLUMNS:
        told = {"given": len(values), "most": most.MAX_COLUMNS}
        raise PydanticCustomError("too_long", "A row of {given} values; needed at most {most}.", told)
    if any(isinstance(value, dict | list) for value in values):
        raise PydanticCustomError("nested", "A row's values are texts, numbers, booleans or null; no lists.")
    return row


Text = Annotated[StrictStr, Field(max_length=most.MAX_CHARACTERS)]
Value = Text | StrictBool | StrictInt | StrictFloat | None
Wide = Field(max_length=most.MAX_COLUMNS)
Values = Annotated[
    dict[Annotated[str, Field(max_length=most.MAX_CHARACTERS)], Value], Wide, BeforeValidator(_flat)
]
Position = Annotated[StrictInt, Field(ge=0, le=2**53, description="Position of a training row, from 0.")]
Row = Position | Values
K = Annotated[StrictInt, Field(ge=1, le=most.MAX_TERMS)]
Sigma = Annotated[float, Field(ge=0, le=most.MAX_SIGMA)]
Samples = Annotated[StrictInt, Field(ge=1, le=most.MAX_SAMPLES)]


class _Request(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class _Chosen(_Request):
    """What every computation can be told."""

    sigma: Sigma = Field(
        default=1.0, description="How local: each fact is broken with probability 1 / (1 + e^sigma)."
    )
    n_samples: Samples | None = Field(default=None, description="Neighbors to search with; 5,000 if null.")
    n_certify: Annotated[StrictInt, Field(ge=0, le=most.MAX_SAMPLES)] | None = Field(
        default=None, description="Fresh neighbors to measure with; 0: no certificate."
    )
    seed: Annotated[StrictInt, Field(ge=0, lt=2**53)] = Field(
        default=0, description="The same seed gives the same bytes."
    )
    output: Text | None = Field(
        default=None, description="The class to explain, by its label; else as the server does."
    )


class _Explained(_Chosen):
    k: K = Field(default=5, description="Most terms, the intercept included.")
    alternatives: Annotated[StrictInt, Field(ge=0, le=most.MAX_ALTERNATIVES)] = Field(
        default=0, description="List so many other sums that the evidence cannot tell from the best one."
    )
    objective: Literal["fidelity", "relevance"] = "fidelity"


class ExplainRequest(_Explained):
    """One row to explain."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"row": 1, "k": 5}, {"row": _EXAMPLE_ROW, "k": 4, "sigma": 1.5}]}
    )

    row: Row = Field(description="The position of a training row, or a value for every column (null: missing).")


class FrontierRequest(_Chosen):
    """One row, and the numbers of terms to try."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"row": 1, "ks": [1, 2, 3, 4, 5]}]})

    row: Row
    ks: Annotated[list[K], Field(min_length=1, max_length=most.MAX_TERMS)] = list(range(1, 9))


class VerifyRequest(_Request):
    """An explanation, as the text that /explain gave, or parsed."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"explanation": '{"schema_version":1}'}]})

    explanation: StrictStr | dict[str, Any]


class WhatIfRequest(_Explained):
    """One row, and what is changed about it: values, or facts to break by a typical value."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"row": 1, "edits": {"debt": 0}, "broken": ["income"]}]}
    )

    row: Row
    edits: Values = Field(default_factory=dict, description="Column to its new value.")
    broken: Annotated[list[Text], Field(max_length=most.MAX_COLUMNS)] = Field(
        default_factory=list, description="Attributes whose fact is broken by a typical training value."
    )


class KServeRequest(_Request):
    """Instances as KServe's v1 protocol has them; ``parameters`` are those of /explain."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"instances": [_EXAMPLE_ROW]}]})

    instances: Annotated[
        list[Values | Annotated[list[Value], Wide, BeforeValidator(_flat)]],
        Field(min_length=1, max_length=most.MAX_INSTANCES),
    ]
    parameters: _Explained = Field(default_factory=_Explained)


class _Answer(BaseModel):
    model_config = ConfigDict(allow_inf_nan=False)


class ProblemAnswer(_Answer):
    """RFC 9457: what was wrong, and the id by which the log knows the request."""

    type: str = Field(examples=["about:blank"])
    title: str = Field(examples=["Unprocessable Entity"])
    status: int = Field(examples=[422])
    detail: str = Field(examples=["Row 5000 does not exist; the table has rows 0 to 1999."])
    request_id: str
    errors: list[dict[str, Any]] | None = Field(
        default=None, description="Which members of the request are wrong."
    )


class EstimateAnswer(_Answer):
    """A measured number and its interval."""

    value: float
    low: float
    high: float
    n_samples: int
    confidence: float
    exact: bool
    method: str


class LiteralAnswer(_Answer):
    """A statement true of the row; ``held`` is what stays true of neighbors that do not break it."""

    name: str
    text: str
    held: str


class PointAnswer(_Answer):
    """The best sum of at most k terms."""

    k: int
    contributions: list[float]
    intercept: float
    status: str
    objective: float
    lower_bound: float
    fidelity_error: EstimateAnswer | None
    relevance_error: EstimateAnswer | None


class FrontierAnswer(_Answer):
    """Error against number of terms."""

    prediction: float
    literals: list[LiteralAnswer]
    points: list[PointAnswer]
    n_queries: int
    n_clipped: int = Field(description="Outputs beyond the range, clipped: with any, errors may be larger.")
    confidence: float


class VerifyAnswer(_Answer):
    """Whether everything in the explanation was found again."""

    outcome: Literal["holds", "does not hold", "cannot tell"]
    holds: bool
    reasons: list[str]


class RowAnswer(_Answer):
    """One case: its values in the order of the columns, what the model decides, the number explained."""

    position: int
    values: list[str | bool | int | float | None] = Field(
        description="Fit to be sent back: whole numbers from 2^53 on are texts of digits, infinities 'Infinity'."
    )
    answer: str
    value: float | None


class RowsAnswer(_Answer):
    """A part of the rows found."""

    total: int
    found: int
    offset: int
    columns: list[str]
    rows: list[RowAnswer]


class WhatIfAnswer(_Answer):
    """The model's answer to the changed row, next to what the explanation's sum says."""

    row: dict[str, str | bool | int | float | None]
    literals: list[str | None] = Field(description="Of every literal of the original row: what is true now.")
    is_broken: list[bool]
    answer: str
    prediction: float | None = Field(description="The number explained, as the model answers now.")
    expected: float = Field(description="prediction - 2 * (contributions of the broken facts).")
    original: float
    decision_stays: bool | None


class HealthAnswer(_Answer):
    """Alive; more only for those with the token."""

    status: Literal["ok"]
    version: str | None = None
    rows: int | None = None
    waiting: int | None = None
    running: int | None = None


class ModelsAnswer(_Answer):
    """KServe: what can be asked."""

    models: list[str]


class ModelAnswer(_Answer):
    """KServe: whether a model is ready."""

    name: str
    ready: bool


class KServeAnswer(_Answer):
    """KServe: predictions and explanations, in the order of the instances."""

    predictions: list[float]
    explanations: list[dict[str, Any]]
