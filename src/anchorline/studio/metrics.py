"""Counters and a histogram in Prometheus' text format; nothing else is needed to read them."""

import bisect
import os
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
_HELP = {
    "anchorline_requests_total": ("counter", "Requests answered, by route, method and status."),
    "anchorline_request_seconds": ("histogram", "Seconds from the first byte to the last, by route."),
    "anchorline_jobs_total": ("counter", "Jobs, by how they ended."),
    "anchorline_cache_total": ("counter", "Answers looked for in the cache, by outcome."),
    "anchorline_model_rows_total": ("counter", "Rows the model was asked about."),
}


class Metrics:
    """What happened so far; safe to note from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[tuple[str, tuple[tuple[str, str], ...]]] = Counter()
        self._buckets: dict[str, list[int]] = {}
        self._seconds: Counter[str] = Counter()

    def count(self, name: str, amount: int = 1, **labels: str) -> None:
        """Add to a counter."""
        with self._lock:
            self._counts[name, tuple(labels.items())] += amount

    def value(self, name: str, **labels: str) -> int:
        """A counter's value."""
        return self._counts[name, tuple(labels.items())]

    def observe(self, route: str, seconds: float) -> None:
        """Note how long a request took."""
        with self._lock:
            buckets = self._buckets.setdefault(route, [0] * (len(_BOUNDS) + 1))
            buckets[bisect.bisect_left(_BOUNDS, seconds)] += 1
            self._seconds[route] += seconds  # type: ignore[assignment]  # Counter adds floats as well

    def text(self, gauges: Mapping[str, float]) -> str:
        """Everything, and the given gauges, in Prometheus' text format."""
        with self._lock:
            lines = list(self._lines({**gauges, **_of_process()}))
        return "\n".join(lines) + "\n"

    def _lines(self, gauges: dict[str, float]) -> Iterator[str]:
        for name, (kind, told) in _HELP.items():
            yield from (f"# HELP {name} {told}", f"# TYPE {name} {kind}")
            if kind == "histogram":
                yield from self._histogram(name)
            for (counted, labels), amount in sorted(self._counts.items()):
                if counted == name:
                    yield f"{name}{_labels(dict(labels))} {amount}"
        for name, value in gauges.items():
            yield from (f"# TYPE {name} gauge", f"{name} {value:.15g}")

    def _histogram(self, name: str) -> Iterator[str]:
        for route, buckets in sorted(self._buckets.items()):
            total = 0
            for bound, amount in zip((*map(str, _BOUNDS), "+Inf"), buckets, strict=True):
                total += amount
                yield f"{name}_bucket{_labels({'route': route, 'le': bound})} {total}"
            yield f"{name}_sum{_labels({'route': route})} {self._seconds[route]:.6f}"
            yield f"{name}_count{_labels({'route': route})} {total}"


def _labels(labels: dict[str, str]) -> str:
    told = (f'{key}="{_escaped(value)}"' for key, value in labels.items())
    return f"{{{','.join(told)}}}" if labels else ""


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def _of_process() -> dict[str, float]:
    """Resident memory, where the system tells it."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except (OSError, ValueError, IndexError):
        return {}
    return {"process_resident_memory_bytes": float(pages * os.sysconf("SC_PAGE_SIZE"))}
