"""The time of an import."""

import statistics
import subprocess
import sys
from typing import Any


def import_time(repeats: int = 9) -> dict[str, Any]:
    """Return the time of ``import anchorline`` in a new process over that of ``import numpy``, as medians."""
    seconds: dict[str, list[float]] = {"numpy": [], "anchorline": []}
    for _ in range(repeats):
        for name, times in seconds.items():
            code = f"import time; s = time.perf_counter(); import {name}; print(time.perf_counter() - s)"
            done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
            times.append(float(done.stdout))
    numpy_seconds, own_seconds = (statistics.median(seconds[name]) for name in ("numpy", "anchorline"))
    ratio = own_seconds / numpy_seconds
    return {"numpy_seconds": numpy_seconds, "anchorline_seconds": own_seconds, "ratio": ratio}
