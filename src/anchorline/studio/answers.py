"""The schemas of answers, which /openapi.json describes, so that generated clients are typed; tests check them."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from anchorline.studio.schemas import ProblemAnswer

Plain = str | int | float | bool | None


class _Answer(BaseModel):
    model_config = ConfigDict(extra="forbid")


class _Record(BaseModel):
    model_config = ConfigDict(extra="allow")  # every version may add members to a sealed record


class FactRecord(_Record):
    """A statement about one attribute that is true of the case."""

    attribute: str
    column: str
    kind: str


class ExplanationAnswer(_Record):
    """The sealed record of an explanation: a base, and facts whose contributions add up to the prediction."""

    prediction: float
    base: float
    facts: list[FactRecord]
    contributions: list[float]
    effects: list[float]
    verdict: Literal["robust", "explained", "partly_explained", "not_explained", "undecided"]
    settings: dict[str, Any]


class RuleAnswer(_Record):
    """The sealed record of a rule: few facts while which the decision stays."""

    prediction: float
    facts: list[FactRecord]
    verdict: str
    settings: dict[str, Any]


class ChangesAnswer(_Record):
    """The sealed record of the fewest changes that turn the decision."""

    settings: dict[str, Any]


class StatedReasonAnswer(_Record):
    """One reason, with its code and the text for the letter."""

    attribute: str
    columns: list[str]
    values: list[Any]
    code: str
    text: str


class ShortfallAnswer(_Record):
    """How much better copies score that take an attribute from the reference, with limits."""

    attribute: str
    value: float
    low: float
    high: float
    direction: Literal["low", "high"] | None


class ReasonsAnswer(_Record):
    """The sealed record of the reasons, worst first, with the shortfalls of all attributes."""

    prediction: float
    reasons: list[StatedReasonAnswer]
    shortfalls: list[ShortfallAnswer]
    near_ties: list[str] = Field(description="Attributes that might change places across the cut.")
    codes_sha256: str


class VerificationAnswer(_Answer):
    """Whether a record holds when it is recomputed and measured again."""

    outcome: str
    holds: bool
    reasons: list[str]


class WhatIfAnswer(_Answer):
    """The model's answer to a changed row, and the value that the sum predicts."""

    row: dict[str, Plain]
    is_broken: list[bool] = Field(description="Per fact of the sum, whether the changed row breaks it.")
    answer: str
    prediction: float
    expected: float
    original: float
    decision_stays: bool | None


class ModelAnswer(_Answer):
    """The model's answer to a row, and why no training row is like some of its values."""

    row: dict[str, Plain]
    unseen: dict[str, str]
    answer: str
    value: float | None


class RowAnswer(_Answer):
    """One case: its values in the order of the columns, the model's answer, and what came true."""

    position: int
    values: list[Plain]
    answer: str
    value: float | None
    truth: str | None = None


class ExplainedPart(_Answer):
    """How many of the cases are explained, for searches about explanations.

    ``asks`` says what would tell more: "facts", the summary of the cases that match ``search``, or "rules".
    """

    text: str
    asks: Literal["facts", "rules"] | None
    search: str


class RowsAnswer(_Answer):
    """One page of the cases that match a search."""

    total: int
    found: int
    offset: int
    progress: float
    columns: list[str]
    rows: list[RowAnswer]
    notes: list[str]
    explained: ExplainedPart | None


class LimitedShare(_Answer):
    """A share with its limits."""

    value: float
    low: float
    high: float


class _Progress(_Answer):
    progress: float
    is_done: bool
    found: int | None
    n_sampled: int
    n_explained: int
    failed: list[int]


class Outcomes(_Record):
    """What the model decides in these cases, and how often it is right if the outcomes are known."""

    n: int
    target: str | None
    are_training: bool
    right: LimitedShare | None = None


class FileAnswer(_Answer):
    """An opened file of cases: its id for the header, its name, its number of cases, and a digest of it."""

    id: str
    name: str
    rows: int
    digest: str


class OverviewAnswer(_Progress):
    """The summary of many cases, as far as it is known."""

    summary: dict[str, Any] | None
    outcomes: Outcomes | None


class CoveringLine(_Record):
    """A sentence about rules, or one rule: its case, those that it covers, and those that get another decision."""

    kind: str
    text: str
    row: int | None = None
    cases: list[int] | None = None
    others: list[int] | None = None


class CoveringAnswer(_Progress):
    """The fewest rules that cover as many cases as all their rules do."""

    lines: list[CoveringLine]


class ActingPoint(_Answer):
    """One value of a column, its place on an axis, and the outputs of the rows that get it."""

    text: str
    place: float
    mean: float
    low: float
    high: float


class ActingAnswer(_Answer):
    """How a column acts."""

    output: str
    name: str
    is_ordered: bool
    is_probability: bool
    n_rows: int
    points: list[ActingPoint]
    text: str


class GroupAnswer(_Answer):
    """A group of cases: how many get the decision, and how many decisions are wrong."""

    text: str
    n: int
    decided: LimitedShare | None
    wrong: LimitedShare | None = None


class GroupsAnswer(_Answer):
    """Decisions by group."""

    name: str
    label: str
    groups: list[GroupAnswer]
    text: str


class ThresholdPoint(_Answer):
    """The shares of cases that a threshold decides for, and wrongly for and against, a class."""

    threshold: float
    decided: float
    wrongly: float
    missed: float


class ThresholdsAnswer(_Answer):
    """Mistakes by threshold; ``own`` is the server's, ``area`` that under the ROC curve."""

    label: str
    n: int
    own: float
    area: float | None
    points: list[ThresholdPoint]
    text: str


class ComparisonBlock(_Answer):
    """Sentences and a table about one side of a comparison."""

    title: str
    sentences: list[str]
    head: list[str]
    rows: list[list[str]]
    is_list: bool


class CompareAnswer(_Answer):
    """What differs between two models, and the sealed record of the comparison; neither before it is done."""

    is_done: bool
    progress: float
    blocks: list[ComparisonBlock]
    record: str = Field(alias="json")


class JobAnswer(_Answer):
    """A job: how far it is, and what went wrong if it has failed."""

    id: str
    kind: str
    state: Literal["running", "done", "failed", "canceled"]
    progress: float
    problem: ProblemAnswer | None


JobResult: Any = (
    OverviewAnswer | CoveringAnswer | CompareAnswer | VerificationAnswer | WhatIfAnswer | ModelAnswer
    | ActingAnswer | GroupsAnswer | ThresholdsAnswer | ExplanationAnswer | ReasonsAnswer | RuleAnswer
    | ChangesAnswer
)  # fmt: skip


class HealthAnswer(_Answer):
    """Whether the server is alive; the details need the token."""

    status: str
    version: str | None = None
    rows: int | None = None
    models: dict[str, int] | None = Field(default=None, description="Of several models, the rows of each.")
    waiting: int | None = None
    running: int | None = None
