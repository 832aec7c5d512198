"""Reasons for a decision letter: figures, codes and the user's own texts, sealed."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from anchorline.errors import ReasonsError
from anchorline.facts import Fact
from anchorline.result.codes import Codes
from anchorline.result.explanation import Output
from anchorline.result.frames import frame_of
from anchorline.result.json_format import Displayed, frozen, is_plain

PRINCIPAL = 0.05  # of the largest shortfall: an attribute with less is not a principal reason


@dataclass(frozen=True, slots=True)
class Shortfall:
    """How much better copies score, on average, that take an attribute from the reference, with limits.

    It is positive if the case's own value is adverse, in the output's units, whichever side of the threshold is
    adverse. ``n`` pairs of copies were compared; 0 if it was read from the leaves of trees, without error.
    ``direction`` is "low" if higher values are better, "high" if lower ones are, and None for what has no order.
    """

    attribute: str
    value: float
    low: float
    high: float
    n: int
    direction: str | None


@dataclass(frozen=True, slots=True)
class Recourse:
    """Whether another value of one attribute alone turns the decision.

    ``share`` is the share of the reference's values that do, of ``n_values`` different ones that were asked about;
    if not ``is_complete``, these are a sample. ``nearest`` are the values of its columns, of those that turn it
    the nearest to the case's own (of categories, the most frequent); None if none turns it.
    """

    share: float
    n_values: int
    is_complete: bool
    nearest: tuple[Any, ...] | None

    def __post_init__(self) -> None:
        object.__setattr__(self, "nearest", frozen(self.nearest))


@dataclass(frozen=True, slots=True)
class StatedReason:
    """One reason: an attribute with its columns and the case's values, its code, and the text of the letter.

    ``code`` and ``text`` are "" if the reasons were asked for without codes.
    """

    attribute: str
    columns: tuple[str, ...]
    values: tuple[Any, ...]
    code: str
    text: str
    recourse: Recourse | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", frozen(self.values))


@dataclass(frozen=True, slots=True)
class Reference:
    """The rows with which a case is compared: their kind, number, and of "near" the lowest and highest score."""

    kind: str
    n_rows: int
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Use:
    """How many decisions in a table some value of one attribute changes, whose ``columns`` change together.

    ``n_changed`` of ``n_rows`` rows of the table are decided differently with another value. ``n_tried`` of
    ``n_values`` values were tried; of trees that were read (``by_trees``), these are the sets of values that
    pass the same tests. It took ``n_queries``.
    """

    attribute: str
    n_changed: int
    n_rows: int
    n_tried: int
    n_values: int
    n_queries: int
    by_trees: bool = False
    columns: tuple[str, ...] = ()

    @property
    def is_used(self) -> bool:
        """Whether some value changes some decision."""
        return self.n_changed > 0

    @property
    def is_exact(self) -> bool:
        """Whether every value was tried, or one of those that the trees cannot tell apart."""
        return self.n_tried == self.n_values

    def __str__(self) -> str:
        from anchorline.render.statements import use_text

        return use_text(self)


@dataclass(frozen=True, kw_only=True, eq=False)
class Reasons(Displayed):
    """The main reasons for an adverse decision, worst first, and everything from which they follow.

    ``shortfalls`` has all attributes, the largest first. ``near_ties`` are attributes on either side of the cut
    whose limits overlap, so that they might change places: of the last reason and the first that is left out, or
    of what is just large enough to be a principal reason. ``model`` identifies the fitted model, None if nothing
    can. ``codes_sha256`` is the hash of the user's map. ``source`` is "leaves" or "drawn". ``settings`` are what
    the user chose; ``space`` is that of `Explanation`.
    """

    _KIND: ClassVar[str] = "reasons"
    facts: ClassVar[tuple[Fact, ...]] = ()  # reasons are about attributes

    instance: Any
    prediction: float
    output: Output
    reasons: tuple[StatedReason, ...]
    shortfalls: tuple[Shortfall, ...]
    near_ties: tuple[str, ...]
    reference: Reference
    source: str
    model: str | None
    codes_sha256: str
    n_queries: int
    settings: Mapping[str, Any]
    space: Mapping[str, Any]
    versions: Mapping[str, str]

    def __len__(self) -> int:
        return len(self.reasons)

    def __iter__(self) -> Iterator[StatedReason]:
        return iter(self.reasons)

    def __getitem__(self, place: int) -> StatedReason:
        return self.reasons[place]

    def letter(self) -> list[str]:
        """Return the texts for the letter, worst reason first, as the user's map has them, and nothing else."""
        if not all(reason.text for reason in self):
            raise ReasonsError(
                "A letter needs texts, but the reasons were asked for without codes. Type reasons(row, "
                "codes={'income': ('R01', 'Income too low')})."
            )
        return [reason.text for reason in self]

    def shortfall(self, attribute: str) -> Shortfall:
        """Return the shortfall of an attribute."""
        return {each.attribute: each for each in self.shortfalls}[attribute]

    def __repr__(self) -> str:
        return f"Reasons({', '.join(reason.attribute for reason in self)})"

    def details(self) -> str:
        """Return how we know: what was compared, the shortfall of every attribute, near ties, and the codes."""
        from anchorline.render.text import details_text

        return details_text(self)

    def to_html(self, case: str = "") -> str:
        """Return one page for the file, without scripts or network; ``case`` names it there, such as "Row 17"."""
        from anchorline.render.report import page

        return page(self, case=case)

    def to_frame(self, backend: Any = "pandas") -> Any:
        """Return a frame of the given backend with one row per reason."""
        found = [(reason, self.shortfall(reason.attribute)) for reason in self]
        rows = [(each.attribute, each.code, each.text, own.value, own.low, own.high) for each, own in found]
        kinds = dict.fromkeys(("attribute", "code", "text"), "text")
        return frame_of(backend, kinds | dict.fromkeys(("shortfall", "low", "high"), "number"), rows)

    def _contradictions(self) -> Iterator[str]:
        by_name = {each.attribute: each for each in self.shortfalls}
        values = [by_name[reason.attribute].value if reason.attribute in by_name else 0.0 for reason in self]
        if len(by_name) < len(self.shortfalls) or len({reason.attribute for reason in self}) < len(self.reasons):
            yield "An attribute occurs twice."
        if (
            len(self.reasons) > self.settings["n"]
            or min(values, default=0.0) <= 0
            or values != sorted(values)[::-1]
        ):
            yield "The reasons are not adverse attributes, worst first, of which there are at most n."
        if not all(each.low <= each.value <= each.high for each in self.shortfalls):
            yield "A shortfall lies outside its limits."
        if not {*self.near_ties} <= {*by_name}:
            yield "A near tie is about an attribute that does not exist."
        if self.model is not None and not re.fullmatch("[0-9a-f]{64}", self.model):
            yield "What identifies the model is not a SHA-256."
        if not all(_is_shown(reason) for reason in self):
            yield "A reason has an invalid share, or not one value per column."
        if self.codes_sha256 != Codes.of(self.settings["codes"]).sha256:
            yield "The hash is not that of the codes."
        if self.output.threshold is None:
            yield "There is no threshold."


def _is_shown(reason: StatedReason) -> bool:
    """Return whether a reason has one plain value per column, before and after."""
    recourse, values = reason.recourse, [reason.values]
    if recourse is not None:
        values += [] if recourse.nearest is None else [recourse.nearest]
    are_plain = all(is_plain(each) for own in values for each in own)
    is_share = recourse is None or 0 <= recourse.share <= 1
    return are_plain and is_share and all(len(own) == len(reason.columns) for own in values)
