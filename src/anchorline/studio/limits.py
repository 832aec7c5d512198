"""What one request may ask for, and what the server holds at most."""

from dataclasses import dataclass

MAX_TERMS = 20  # k; beyond, nobody reads the sum, and a certificate could not list its patterns
MAX_SIGMA = 8.0  # flips of one in 3,000: beyond, samples hold no neighbor at all
MAX_ALTERNATIVES = 10
MAX_SAMPLES = 100_000
MAX_INSTANCES = 32  # of one KServe request
MAX_ROWS = 200  # of one page of the table
MAX_COLUMNS = 4096
MAX_CHARACTERS = 10_000  # of one value
MAX_SEARCH = 200  # characters searched for


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Of one server; the schema's own are above.

    ``max_samples`` bounds the neighbors of one sample, ``max_body`` the bytes and ``max_depth`` the nesting of
    a request; ``queue`` is how many jobs may wait while ``workers`` run, each for ``timeout`` seconds from its
    arrival; ``body_timeout`` how long a client may take to send a request. The cache holds ``cache_entries``
    answers of ``cache_bytes`` in all.
    """

    max_samples: int = 20_000
    max_body: int = 1_000_000
    max_depth: int = 32
    queue: int = 64
    workers: int = 2
    timeout: float = 60.0
    body_timeout: float = 10.0
    cache_entries: int = 2048
    cache_bytes: int = 64_000_000
    concurrency: int = 512
