"""All rows of a run in one frame, and the selections that tables, figures and claims use."""

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from anchorline.errors import MissingDependencyError
from anchorline.io import write_atomically
from benchmarks.datasets import PUBLISHED, Published
from benchmarks.experiments.protocol import SYNTHETIC_ID
from benchmarks.experiments.series import Row


@dataclass(frozen=True, eq=False)
class Results:
    """Rows of finished units, as a pandas frame."""

    frame: Any

    @classmethod
    def from_rows(cls, rows: Sequence[Row]) -> "Results":
        """Collect rows, whatever columns each series has."""
        return cls(_pandas().DataFrame(list(rows)))

    def write(self, directory: Path) -> None:
        """Write all rows as Parquet, and one CSV file per series."""
        write(directory / "results.parquet", self.frame.to_parquet(index=False))
        for series, rows in self.frame.groupby("series"):
            table = rows.dropna(axis="columns", how="all")
            write(directory / f"{series}.csv", table.to_csv(index=False, float_format="%.9g"))

    def series(self, name: str, protocol: str | None = None, *, synthetic: bool = False) -> Any:
        """Return the rows of one series; those of the synthetic task only with ``synthetic=True``."""
        if self.frame.empty:
            return _pandas().DataFrame(columns=["series", "protocol", "dataset_id", "method"])
        chosen = self.frame[self.frame["series"] == name]
        if protocol is not None:
            chosen = chosen[chosen["protocol"] == protocol]
        return chosen if synthetic else chosen[chosen["dataset_id"] != SYNTHETIC_ID]

    def method(self, name: str, protocol: str, series: str = "table") -> Any:
        """Return the rows of one method in one series, indexed by data set and instance."""
        rows = self.series(series, protocol)
        return rows[rows["method"] == name].set_index(["dataset_id", "instance"]).sort_index()

    def of_kind(self, name: str, protocol: str, kind: str) -> Any:
        """Return the rows of `method` for classification or for regression only."""
        rows = self.method(name, protocol)
        ids = rows.index.get_level_values("dataset_id")
        return rows[ids.isin([row.id for row in PUBLISHED if row.kind == kind])]

    def shared_by(self, names: Sequence[str], protocol: str) -> "Results":
        """Return the table rows of the instances that every one of these methods with any row explained."""
        frames = [each for each in (self.method(name, protocol) for name in names) if not each.empty]
        shared = set.intersection(*(set(each.index) for each in frames)) if frames else set()
        table = self.series("table", protocol)
        keys = zip(table["dataset_id"], table["instance"], strict=True)
        return Results(table[[key in shared for key in keys]])

    def means(self, name: str, column: str, protocol: str) -> Any:
        """Return the mean of a column over instances at the common point, per data set."""
        return self.method(name, protocol).groupby(level="dataset_id")[column].mean()

    def curve(self, dataset_id: int, method: str, series: str, protocol: str) -> Any:
        """Return the mean relevance error of a method along a sweep, per swept value."""
        rows, column = self.series(series, protocol), series.removeprefix("sweep_")
        rows = rows[(rows["dataset_id"] == dataset_id) & (rows["method"] == method)]
        if rows.empty:  # then the column of the swept value may be missing
            return _pandas().Series(dtype=float)
        return rows.groupby(column)["relevance"].mean()

    @property
    def measured(self) -> list[Published]:
        """The paper's data sets that have rows, in its order."""
        ids = set(self.series("table")["dataset_id"]) | set(self.series("folds")["dataset_id"])
        return [row for row in PUBLISHED if row.id in ids]

    @property
    def missing(self) -> list[Published]:
        """The paper's data sets without any row."""
        return [row for row in PUBLISHED if row not in self.measured]

    @property
    def protocols(self) -> list[str]:
        """The protocols for which the exact solver has rows in the tables, "paper" first."""
        table = self.series("table")
        return sorted(set(table["protocol"][table["method"] == "exact"]), reverse=True)


def write(file: Path, content: str | bytes) -> None:
    """Write a file atomically, and create its folder if necessary."""
    with contextlib.suppress(OSError):  # writing the file reports the problem of the folder
        file.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(file, content)


def _pandas() -> Any:
    try:
        import pandas
    except ImportError as cause:
        raise MissingDependencyError.for_package("pandas", "bench") from cause
    return pandas
