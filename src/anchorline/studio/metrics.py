"""The metrics of one studio in the Prometheus text format."""

import math
from collections.abc import Iterable

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    Metric,
    ProcessCollector,
    generate_latest,
)

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
_PROCESS_METRIC = "process_resident_memory_bytes"


class Metrics:
    """Counters, a histogram and gauges in a registry of their own; safe to update from any thread.

    The default registry of ``prometheus_client`` is global: two studios in one process would collide in it.
    """

    def __init__(self) -> None:
        self._registry = own = CollectorRegistry()
        self.answered = -math.inf  # when the model last answered
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
        self.model_rows = Counter("anchorline_model_rows_total", "Rows sent to the model.", registry=own)
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
