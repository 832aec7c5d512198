"""What every measuring process does: read its arguments, measure, and store each row as soon as it is there."""

import argparse
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.report import write_json

Measure = Callable[[Path, bool], Iterator[dict[str, Any]]]


def run(measure: Measure) -> None:
    """Measure, called as ``python -m benchmarks.outside.FAMILY DATA OUT NAME [--quick]``."""
    parser = argparse.ArgumentParser()
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("name")
    parser.add_argument("--quick", action="store_true")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    rows: list[dict[str, Any]] = []
    for row in measure(chosen.data, chosen.quick):
        rows.append(row)
        print("  ", ", ".join(f"{key} {value}" for key, value in row.items()), flush=True)
        write_json(chosen.out, chosen.name, rows)
