"""From what was typed to a model, a space and rows."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from anchorline.errors import ParameterError, TableFileError
from anchorline.explainer import Explainer
from anchorline.io import read_table
from anchorline.models import HttpLimits, load_model


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """Which model, and what is allowed to load it."""

    spec: str
    kind: str | None
    trust: Sequence[str]
    trust_pickle: bool
    timeout: float
    batch_rows: int

    def load(self) -> Any:
        """The model."""
        limits = HttpLimits(read_timeout=self.timeout, total_timeout=5 * self.timeout, batch_rows=self.batch_rows)
        return load_model(self.spec, kind=self.kind, trust=self.trust, trust_pickle=self.trust_pickle, http=limits)


@dataclass(frozen=True, slots=True)
class TableChoice:
    """Which table, and how it is read as a space."""

    path: str
    target: Sequence[str]
    bins: int
    fixed: Sequence[str]
    group: Sequence[str]
    within: str

    def space(self) -> Any:
        """The table as a space."""
        from anchorline.spaces.table import Table  # noqa: PLC0415  heavy

        frame = _without(read_table(self.path), self.target, self.path, strict=True)
        return Table(frame, n_bins=self.bins, fixed=self.fixed, groups=_groups(self.group), within=self.within)


@dataclass(frozen=True, slots=True)
class Question:
    """What is explained of the model's answers, and how."""

    output: str | None
    column: int | None
    task: str | None
    classes: Sequence[str]
    output_range: tuple[float, float] | None
    threshold: float | None
    keywords: dict[str, Any] = field(default_factory=dict)

    def explainer(self, model: Any, space: Any) -> Explainer:
        """The explainer that answers it."""
        return Explainer(
            model,
            space,
            output=self.output,
            column=self.column,
            task=self.task,
            classes=list(self.classes) or None,
            output_range=self.output_range,
            threshold=self.threshold,
        )


def keywords_of(
    *, sigma: float, samples: str | None, objective: str, max_queries: int | None, seed: int
) -> dict[str, Any]:
    """The keywords of `Explainer.explain` but k."""
    n_samples: int | str | None = samples
    if samples is not None and samples != "auto":
        try:
            n_samples = int(samples)
        except ValueError:
            raise ParameterError(f"--samples is {samples!r}; needed a whole number, or auto.") from None
    return {
        "sigma": sigma,
        "n_samples": n_samples,
        "objective": objective,
        "max_queries": max_queries,
        "seed": seed,
    }


def instances(rows: Sequence[int], rows_file: str | None, target: Sequence[str]) -> list[tuple[int, Any]]:
    """The rows to explain, each with its number: positions in the training table, or rows of another."""
    if bool(rows) == (rows_file is not None):
        raise ParameterError("Say which rows: --row 0 (repeatable), or --rows FILE.")
    if rows_file is None:
        return [(row, row) for row in rows]
    return list(enumerate(_dictionaries(_without(read_table(rows_file), target, rows_file, strict=False))))


def _dictionaries(frame: Any) -> Iterator[dict[str, Any]]:
    import narwhals as nw  # noqa: PLC0415  heavy

    yield from nw.from_native(frame, eager_only=True).iter_rows(named=True)


def _without(frame: Any, columns: Sequence[str], path: str, strict: bool) -> Any:
    import narwhals as nw  # noqa: PLC0415  heavy

    table = nw.from_native(frame, eager_only=True)
    missing = [column for column in columns if column not in table.columns]
    if missing and strict:
        raise TableFileError(f"{path!r} has no column {missing[0]!r} (--target); it has {table.columns!r:.300}.")
    left = table.drop([column for column in columns if column in table.columns])
    if not left.columns:
        raise TableFileError(f"{path!r} has no column left after --target.")
    return left.to_native()


def _groups(texts: Sequence[str]) -> dict[str, list[str]]:
    groups: dict[str, list[str]] = {}
    for text in texts:
        name, sign, members = text.partition("=")
        if not sign or not name or not members:
            raise ParameterError(f"--group is {text!r}; needed NAME=A,B.")
        groups.setdefault(name, []).extend(members.split(","))
    return groups
