"""What a studio records: metrics in the Prometheus text format, and an audit log of who asked for which case."""

import errno
import hashlib
import json
import os
import threading
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from io import FileIO
from pathlib import Path
from typing import Any

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    Metric,
    ProcessCollector,
    generate_latest,
)

from anchorline.errors import ParameterError
from anchorline.render.characters import printable
from anchorline.studio.problems import Problem, logger

METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
_PROCESS_METRIC = "process_resident_memory_bytes"
CANNOT_WRITE = "The audit log cannot be written."
_COHORT = (
    "job",
    "file",
    "search",
    "other",
    "n_rows",
    "offset",
    "limit",
)  # what a request about many cases says about them


class Metrics:
    """Counters, a histogram and gauges in a registry of their own; safe to update from any thread.

    The default registry of ``prometheus_client`` is global: two studios in one process would collide in it.
    """

    def __init__(self) -> None:
        self._registry = own = CollectorRegistry()
        self.requests = Counter(
            "anchorline_requests_total",
            "Requests answered, by route, method and status.",
            ("route", "method", "status"),
            registry=own,
        )
        self.request_seconds = Histogram(
            "anchorline_request_seconds",
            "Seconds from the first byte of a request to the last byte of its answer, by route.",
            ("route",),
            registry=own,
            buckets=_BUCKETS,
        )
        self.jobs = Counter("anchorline_jobs_total", "Jobs, by outcome.", ("outcome",), registry=own)
        self.cache_lookups = Counter(
            "anchorline_cache_total", "Cache lookups, by outcome.", ("outcome",), registry=own
        )
        self.model_rows = Counter("anchorline_model_rows_total", "Rows sent to a model.", ("model",), registry=own)
        self.jobs_waiting = Gauge("anchorline_jobs_waiting", "Jobs that wait for a turn.", registry=own)
        self.jobs_running = Gauge("anchorline_jobs_running", "Jobs that a thread runs.", registry=own)
        self.cache_entries = Gauge("anchorline_cache_entries", "Answers in the cache.", registry=own)
        self.cache_bytes = Gauge("anchorline_cache_bytes", "Total size of the answers in the cache.", registry=own)
        ProcessCollector(registry=own)

    def value(self, name: str, **labels: str) -> float:
        """Return the value of the sample ``name`` with these labels, or 0 if it was never updated."""
        return self._registry.get_sample_value(name, labels) or 0.0

    def collect(self) -> Iterable[Metric]:
        """Yield the exported metrics, as ``prometheus_client`` requires of a collector.

        Of the process metrics, only the memory is exported. ``prometheus_client`` adds a ``_created`` gauge per
        series, and can omit it for the whole process only, so that these samples are removed here.
        """
        for metric in self._registry.collect():
            metric.samples = [sample for sample in metric.samples if not sample.name.endswith("_created")]
            if metric.name.startswith("anchorline_") or metric.name == _PROCESS_METRIC:
                yield metric

    def text(self) -> bytes:
        """Return all metrics in the Prometheus text format."""
        return generate_latest(self)


class AuditLog:
    """Appends one line per request about cases to a file; without a path, nothing is written.

    ``failed`` says whether the last line could not be written.
    """

    def __init__(self, path: Path | None) -> None:
        self._lock, self.failed = threading.Lock(), False
        try:
            self._file = None if path is None else path.open("ab", buffering=0)
        except OSError as error:
            raise ParameterError(
                f"The audit log {str(path)!r} cannot be opened: {error.strerror}. Name a file in a folder that "
                "this process may write to."
            ) from error

    def record(
        self, state: Mapping[str, Any], route: str, content: Mapping[str, Any], outcome: str, model: str
    ) -> None:
        """Write a line about one request; ``state`` is that of its ASGI scope, and ``model`` one of several.

        Raises `Problem` 503 if the line cannot be written: an answer that nobody could account for is not given.
        """
        line = {
            "user": state.get("user"),
            "address": state.get("address"),
            "route": route,
            **({"model": model} if model else {}),
            "case": _case(content),
            **{name: content[name] for name in _COHORT if name in content},
            "outcome": outcome,
            "request_id": state.get("request_id"),
        }
        self._write(line)
        if self.failed:
            raise Problem(503, f"{CANNOT_WRITE} No case is explained.", retry_after=60)

    def note(self, what: str, content: Any) -> None:
        """Write a line about the server itself."""
        self._write({"route": "server", what: content})

    def resume(self) -> bool:
        """Try to write again after a failure, and return whether it has worked."""
        self._write({"route": "audit", "outcome": "resumed"})
        return not self.failed

    def _write(self, line: Mapping[str, Any]) -> None:
        if self._file is None:
            return
        text = json.dumps({"time": datetime.now(UTC).isoformat(timespec="milliseconds")} | dict(line))
        with self._lock:
            try:
                _append(self._file, text.encode() + b"\n")
                self.failed = False
            except OSError:
                self.failed = True
                logger.exception("The audit log %s cannot be written.", printable(str(self._file.name)))


def _append(file: FileIO, line: bytes) -> None:
    """Append a whole line or nothing: what fits on a full disk is cut off again."""
    size = os.fstat(file.fileno()).st_size
    if file.write(line) < len(line):
        file.truncate(size)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _case(content: Mapping[str, Any]) -> Any:
    """Return the number of a case, or a digest of the values of a case that is not in the table."""
    row = content.get("row", content.get("explanation"))
    if row is None or isinstance(row, int):
        return row
    return "sha256:" + hashlib.sha256(json.dumps(row, sort_keys=True).encode()).hexdigest()
