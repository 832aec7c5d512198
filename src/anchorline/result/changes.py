"""Changes: sets of few facts whose change turns a decision, each with an example that was asked of the model."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from types import MappingProxyType
from typing import Any

from anchorline._links import call
from anchorline.errors import FormatError, ParameterError, TamperedError
from anchorline.guarantees import Estimate
from anchorline.result.frames import frame_in
from anchorline.result.json_format import SCHEMA_VERSION, parsed, sealed
from anchorline.result.verification import Verification
from anchorline.search.changes.levels import Level

Label = str | int | float | bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """One attribute of an example: its value before and after, and the fact that the change makes true.

    ``fact`` is a bound such as ``debt < 6500`` if training values beyond the example's also count, otherwise
    ``purpose = car``. ``distance`` is the share of training rows between the two values; see docs/changes.md. A
    group of columns has tuples of values.
    """

    name: str
    columns: tuple[str, ...]
    before: Any
    after: Any
    before_text: str
    after_text: str
    fact: str
    distance: float


@dataclass(frozen=True, slots=True)
class Realism:
    """How far an example is from the nearest training row that is not the case itself, beside real rows.

    ``typical`` is the median distance of real rows from their nearest other rows, and ``share`` the share of real
    rows that are at least as far from theirs as the example.
    """

    distance: float
    typical: float
    share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Counterfactual:
    """A change that turns the decision.

    ``moves`` are the values of the example, which was asked of the model. ``output`` and ``label`` are what the
    model answers to it. ``reliability`` is the share of all training values that meet the facts with which the
    decision turns; None if too few queries were left to measure it. ``realism`` compares the example's distance
    from the nearest training row with that of real rows; None where there is no training table.
    """

    moves: tuple[Move, ...]
    cost: float
    output: float | None
    label: Label
    reliability: Estimate | None
    realism: Realism | None

    @property
    def n_facts(self) -> int:
        """Number of facts that change."""
        return len(self.moves)

    @property
    def facts(self) -> tuple[str, ...]:
        """The facts that the change makes true, such as ``debt < 6500``."""
        return tuple(move.fact for move in self.moves)

    @property
    def values(self) -> dict[str, Any]:
        """The example's new values by column."""
        pairs: dict[str, Any] = {}
        for move in self.moves:
            after = move.after if len(move.columns) > 1 else (move.after,)
            pairs |= dict(zip(move.columns, after, strict=True))
        return pairs


@dataclass(frozen=True, kw_only=True, eq=False)
class Changes:
    """What would change a decision, fewest facts first.

    ``prediction`` is the explained output at the instance, and ``label`` the class or label that the model decides
    there; None where the model has none. ``goal`` holds what counts as turned: its ``kind`` and what is
    ``wanted``. ``levels`` state what was tried of changes of one fact, of two facts, and so on; ``n_attributes``
    attributes have an allowed value other than the instance's own. ``fixed`` maps attributes that never change to
    the reasons.
    """

    options: tuple[Counterfactual, ...]
    prediction: float | None
    label: Label
    output: str
    goal: Mapping[str, Any]
    columns: tuple[str, ...]
    instance: tuple[Any, ...]
    fixed: Mapping[str, str]
    levels: tuple[Level, ...]
    n_attributes: int
    n_queries: int
    parameters: Mapping[str, Any]

    def __post_init__(self) -> None:
        for name in ("goal", "fixed", "parameters"):
            object.__setattr__(self, name, MappingProxyType(dict(getattr(self, name))))

    def __reduce__(self) -> tuple[Any, ...]:
        return Changes.from_json, (self.to_json(),)  # exact, and frozen when read

    def __len__(self) -> int:
        return len(self.options)

    def __iter__(self) -> Iterator[Counterfactual]:
        return iter(self.options)

    def __getitem__(self, place: int) -> Counterfactual:
        return self.options[place]

    @property
    def fewest(self) -> int | None:
        """The smallest number of facts of a change that was found, or None if nothing turns."""
        return min((option.n_facts for option in self.options), default=None)

    @property
    def n_ruled_out(self) -> int:
        """The largest number s for which no change of at most s facts turns, among the values tried."""
        return self._ruled_out("is_complete")

    @property
    def n_proved(self) -> int:
        """The largest number s for which no change of at most s facts turns, among all allowed training values."""
        return self._ruled_out("is_exhaustive")

    def _ruled_out(self, claim: str) -> int:
        ruled_out = 0
        for level in self.levels:
            if not getattr(level, claim) or self.fewest == level.n_facts:
                break
            ruled_out = level.n_facts
        return ruled_out

    def changed(self, place: int = 0) -> dict[str, Any]:
        """Return the example of an option as a whole row: the instance's values by column, with the changes."""
        if not self.has_columns:
            raise ParameterError(
                "The instance is not a row of columns, so its example has no values by column. Use the facts of "
                "the option."
            )
        return dict(zip(self.columns, self.instance, strict=True)) | self.options[place].values

    @property
    def are_rows(self) -> bool:
        """Whether the examples are whole training rows."""
        return bool(self.parameters["examples"] == "rows")

    @property
    def by_leaves(self) -> bool:
        """Whether the leaves of the model's trees decided what turns, instead of queries."""
        return bool(self.parameters["search"] == "leaves")

    @property
    def has_columns(self) -> bool:
        """Whether the instance is a row with one value per column, as in a table or a hypercube."""
        return _has_columns(self.parameters)

    def __str__(self) -> str:
        return str(call("changes.text", self))

    def __repr__(self) -> str:
        return f"Changes({len(self.options)} found, fewest facts: {self.fewest}, {self.n_queries:,} queries)"

    def _repr_html_(self) -> str:
        return str(call("changes.fragment", self))

    def to_html(self) -> str:
        """Return one self-contained page without script or network."""
        return str(call("changes.page", self))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Changes) and self.to_json() == other.to_json()

    def __hash__(self) -> int:
        return hash(self.to_json())

    def verify(self, predict: Any, space: Any = None, *, seed: int | None = None) -> Verification:
        """Ask the model again about every example, search again, and measure again; see docs/changes.md."""
        verification: Verification = call("verify.changes", self, predict, space, seed=seed)
        return verification

    def to_frame(self, backend: Any = "pandas") -> Any:
        """Return one row per move, as a frame of the given backend."""
        rows = [(place, option, move) for place, option in enumerate(self.options) for move in option.moves]
        estimates = [option.reliability for _, option, _ in rows]
        columns: dict[str, list[Any]] = {
            "option": [place for place, _, _ in rows],
            "name": [move.name for _, _, move in rows],
            "fact": [move.fact for _, _, move in rows],
            "before": [move.before_text for _, _, move in rows],
            "after": [move.after_text for _, _, move in rows],
            "distance": [move.distance for _, _, move in rows],
            "cost": [option.cost for _, option, _ in rows],
            "output": [option.output for _, option, _ in rows],
            "label": [None if option.label is None else str(option.label) for _, option, _ in rows],
            "reliability": [None if each is None else each.value for each in estimates],
            "reliability_low": [None if each is None else each.low for each in estimates],
            "reliability_high": [None if each is None else each.high for each in estimates],
        }
        texts = {"name", "fact", "before", "after", "label"}
        kinds = {name: "text" if name in texts else "number" for name in columns} | {"option": "place"}
        return frame_in(backend, columns, kinds)

    def to_json(self) -> str:
        """Return JSON with sorted keys, no NaN, floats that round-trip exactly, and a seal, as of explanations."""
        options = [asdict(option) for option in self.options]
        return sealed(
            {
                "schema_version": SCHEMA_VERSION,
                "kind": "changes",
                "options": options,
                "prediction": self.prediction,
                "label": self.label,
                "output": self.output,
                "goal": self.goal,
                "columns": list(self.columns),
                "instance": list(self.instance),
                "fixed": self.fixed,
                "levels": [asdict(level) for level in self.levels],
                "n_attributes": self.n_attributes,
                "n_queries": self.n_queries,
                "parameters": self.parameters,
            }
        )

    @classmethod
    def from_json(cls, text: str) -> "Changes":
        """Read what `to_json` wrote; `FormatError` if it is anything else or was changed."""
        body = parsed(text, "changes")
        _check_consistency(body)
        try:
            given = {name: body[name] for name in cls.__dataclass_fields__}
            return cls(
                **given
                | {
                    "options": tuple(_option(option) for option in body["options"]),
                    "columns": tuple(body["columns"]),
                    "instance": tuple(body["instance"]),
                    "levels": tuple(Level(**level) for level in body["levels"]),
                }
            )
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise FormatError(f"Not the JSON of changes: {error!r}") from error


def is_changes(text: Any) -> bool:
    """Return whether a text is the JSON of changes, as far as its member "kind" shows."""
    return isinstance(text, str) and re.search(r'"kind"\s*:\s*"changes"', text) is not None


def _option(values: Mapping[str, Any]) -> Counterfactual:
    estimate, realism = values["reliability"], values["realism"]
    return Counterfactual(
        moves=tuple(_move(move) for move in values["moves"]),
        cost=values["cost"],
        output=values["output"],
        label=values["label"],
        reliability=None if estimate is None else Estimate(**estimate),
        realism=None if realism is None else Realism(**realism),
    )


def _move(values: Mapping[str, Any]) -> Move:
    several = len(values["columns"]) > 1
    ends = {end: tuple(values[end]) if several else values[end] for end in ("before", "after")}
    return Move(**dict(values) | ends | {"columns": tuple(values["columns"])})


def _check_consistency(body: Mapping[str, Any]) -> None:
    """Check fields against each other: sizes, order, columns that exist and may change, and the goal."""
    options, columns = body["options"], body["columns"]
    used = [[column for move in option["moves"] for column in move["columns"]] for option in options]
    sizes = [len(option["moves"]) for option in options]
    most = body["parameters"]["max_facts"] or len(columns)
    held = {*body["fixed"], *body["parameters"]["fixed"]}
    claims = {
        "instance": not _has_columns(body["parameters"]) or len(columns) == len(body["instance"]),
        "options": sizes == sorted(sizes) and all(0 < size <= most for size in sizes),
        "columns": all(len(each) == len({*each}) and {*each} <= {*columns} for each in used),
        "fixed": not held & {column for each in used for column in each},
        "goal": all(_is_reached(body, option) for option in options),
        "levels": [level["n_facts"] for level in body["levels"]] == list(range(1, len(body["levels"]) + 1)),
    }
    wrong = [name for name, holds in claims.items() if not holds]
    if wrong:
        raise TamperedError(f"The changes contradict themselves in {', '.join(wrong)}.")


def _has_columns(parameters: Mapping[str, Any]) -> bool:
    return str(parameters["space"]).startswith(("table:", "hypercube:"))


def _is_reached(body: Mapping[str, Any], option: Mapping[str, Any]) -> bool:
    """Return whether an example's answer, as stated, reaches the goal, as stated."""
    kind, wanted, output = body["goal"]["kind"], body["goal"]["wanted"], option["output"]
    if kind in ("class", "label"):
        return bool(option["label"] == wanted)
    if kind in ("other class", "other label"):
        return bool(option["label"] != wanted)
    if output is None:
        return False
    signs = {">=": output >= wanted, ">": output > wanted, "<=": output <= wanted, "<": output < wanted}
    return bool(signs[str(kind)])
