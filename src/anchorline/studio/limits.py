"""Limits of a single request, and of the server as a whole."""

from dataclasses import dataclass

MAX_FACTS = 20  # k; a longer sum is unreadable
MAX_SIGMA = 8.0  # replaces one value in 1,500; at higher values, hardly any copy differs from the row
MAX_ALTERNATIVES = 10
MAX_CHANGES = 10
MAX_QUERIES = 1_000_000  # that a request may name; a server allows far fewer
MAX_ROWS = 200  # per page of the table
MAX_COLUMNS = 4096
MAX_CHARACTERS = 100_000  # per value; a text of 40 pages
MAX_COHORT = 300  # cases of a summary that are explained; of larger cohorts a random sample
MAX_ANSWERED = 5_000  # cases of a summary whose answers are counted
MAX_SEARCH = 200  # characters per search text


@dataclass(frozen=True, slots=True, kw_only=True)
class StudioLimits:
    """Limits of one server; the constants of this module apply to every server.

    Parameters
    ----------
    max_queries
        Maximum number of answers of the model per explanation, rule, and search for changes. Below 20,000, the
        model is not asked about the rows of the table either.
    max_body, max_depth
        Maximum number of bytes and of nesting levels per request body.
    queue, workers
        Maximum number of jobs that wait, and number of threads that run jobs.
    timeout
        Seconds from the arrival of a request until it is answered with 503.
    body_timeout
        Seconds within which a client must have sent its request.
    cache_entries, cache_bytes
        Maximum number and maximum total size of cached answers.
    concurrency
        Maximum number of open connections or running requests; further ones receive status 503.
    """

    max_queries: int = 20_000
    max_body: int = 1_000_000
    max_depth: int = 32
    queue: int = 64
    workers: int = 2
    timeout: float = 60.0
    body_timeout: float = 10.0
    cache_entries: int = 2048
    cache_bytes: int = 64_000_000
    concurrency: int = 512
