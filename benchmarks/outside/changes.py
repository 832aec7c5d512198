"""DiCE beside our changes: `benchmarks.changes` in an environment with a pinned DiCE."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.changes import TABLES, compare_changes
from benchmarks.outside.child import run


def measure(data: Path, quick: bool) -> Iterator[dict[str, Any]]:
    """Yield one row per table and method."""
    yield from compare_changes(data, TABLES[:2] if quick else TABLES, 3 if quick else 20)


if __name__ == "__main__":
    run(measure)
