"""Options that several commands share, and what becomes of them: a model, a space, a question, rows."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from anchorline.cli import options as opt
from anchorline.errors import ParameterError, TableFileError
from anchorline.explainer import Explainer
from anchorline.io import read_rows, read_table
from anchorline.model.loaders import HttpLimits, load_model


@dataclass(frozen=True, slots=True, kw_only=True)
class Loading:
    """Options: what a model is, and what is allowed to load it."""

    kind: opt.ModelKind = None
    trust: opt.Trust = None
    trust_pickle: opt.TrustPickle = False
    timeout: opt.Timeout = 60.0
    batch_rows: opt.BatchRows = 1000

    def load(self, spec: str) -> Any:
        """The model."""
        limits = HttpLimits(read_timeout=self.timeout, total_timeout=5 * self.timeout, batch_rows=self.batch_rows)
        trust = self.trust or ()
        return load_model(spec, kind=self.kind, trust=trust, trust_pickle=self.trust_pickle, http=limits)


@dataclass(frozen=True, slots=True, kw_only=True)
class Intervals:
    """Options: how a table is read as a space."""

    bins: opt.Bins = 4
    fixed: opt.Fixed = None
    group: opt.Group = None
    within: opt.WithinOption = opt.Within.keep

    def space(self, path: str, target: Sequence[str] | None) -> Any:
        """The table as a space, without its target."""
        from anchorline.spaces.table import Table  # noqa: PLC0415  heavy

        frame = _without(read_table(path), target or (), path)
        groups = _groups(self.group or ())
        return Table(frame, n_bins=self.bins, fixed=self.fixed or (), groups=groups, within=self.within.value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Options: what is explained of the model's answers."""

    output: opt.Output = None
    column: opt.Column = None
    task: opt.TaskOption = None
    classes: opt.Classes = None
    output_range: opt.OutputRange = None
    threshold: opt.Threshold = None

    def explainer(self, model: Any, space: Any) -> Explainer:
        """The explainer that answers it."""
        return Explainer(
            model,
            space,
            output=self.output,
            column=self.column,
            task=self.task,
            classes=self.classes or None,
            output_range=self.output_range,
            threshold=self.threshold,
        )


def keywords_of(
    *, sigma: float, samples: int | str | None, objective: str, max_queries: int | None, seed: int
) -> dict[str, Any]:
    """The keywords of `Explainer.explain` but k."""
    n_samples: int | str | None = samples
    if isinstance(samples, str) and samples != "auto":
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


def instances(rows: Sequence[int], rows_file: str | None, space: Any) -> list[tuple[int, Any]]:
    """The rows to explain, each with its number: positions in the training table, or rows of another."""
    if rows_file is None:
        return [(row, row) for row in rows]
    return list(enumerate(_dictionaries(rows_like(space, rows_file))))


def rows_like(space: Any, path: str) -> Any:
    """Rows of a file, in the types of the training table: dictionaries, or a frame where the file tells types."""
    from anchorline.spaces.columns import BOOLEAN, NUMBER  # noqa: PLC0415  heavy

    schema, numbers = space.schema, set()
    for name, column, told in zip(schema.names, schema.columns, schema.types, strict=True):
        listed = (told.categories or {}).values()  # categories may be numbers or booleans, too
        if column.kind in (NUMBER, BOOLEAN) or any(not isinstance(value, str) for value in listed):
            numbers.add(name)
    return read_rows(path, numbers=numbers)


def _dictionaries(rows: Any) -> Iterable[dict[str, Any]]:
    import narwhals as nw  # noqa: PLC0415  heavy

    return rows if isinstance(rows, list) else nw.from_native(rows, eager_only=True).iter_rows(named=True)


def _without(frame: Any, columns: Sequence[str], path: str) -> Any:
    import narwhals as nw  # noqa: PLC0415  heavy

    table = nw.from_native(frame, eager_only=True)
    missing = [column for column in columns if column not in table.columns]
    if missing:
        raise TableFileError(f"{path!r} has no column {missing[0]!r} (--target); it has {table.columns!r:.300}.")
    left = table.drop(list(columns))
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
