"""`HttpLimits`: what one HTTP model may cost in time, rows, attempts and bytes."""

from dataclasses import dataclass, fields

from anchorline.errors import ParameterError

_MAY_BE_ZERO = {"max_retries", "first_wait", "longest_wait"}


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpLimits:
    """Limits of a model behind an address.

    Parameters
    ----------
    batch_rows
        Rows per request. The number is fixed because the last bits of a model's answer may depend on the batch.
    connect_timeout, read_timeout, total_timeout
        Seconds to connect, between two parts of an answer, and from the request to the end of the answer.
    max_retries
        Further attempts after a failed connection or after the statuses 429, 502, 503 and 504.
    first_wait, longest_wait
        Seconds before the first further attempt. The wait doubles with each attempt up to ``longest_wait``,
        which also limits the wait that a server requests by ``Retry-After``.
    requests_per_second
        Largest rate at which requests are started, further attempts included; None for no limit. Each process has
        its own rate.
    parallel
        Requests that may be under way at once. The order of answers does not depend on it.
    max_queries
        Rows sent in total over the life of the model; None for no limit. Each process counts its own rows. The
        ``queries`` of an explanation limits that explanation alone.
    max_answer_bytes
        Largest size of one answer. Reading stops there.

    Examples
    --------
    >>> HttpLimits(read_timeout=5).batch_rows
    1000
    """

    batch_rows: int = 1000
    connect_timeout: float = 5.0
    read_timeout: float = 60.0
    total_timeout: float = 300.0
    max_retries: int = 4
    first_wait: float = 0.5
    longest_wait: float = 30.0
    requests_per_second: float | None = None
    parallel: int = 1
    max_queries: int | None = None
    max_answer_bytes: int = 64 * 2**20

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if value is None and field.name in ("max_queries", "requests_per_second"):
                continue
            is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
            zero_allowed = field.name in _MAY_BE_ZERO
            if not is_number or not (value > 0 or (value == 0 and zero_allowed)):
                lowest = "a number that is not negative" if zero_allowed else "a number above 0"
                raise ParameterError(f"{field.name} is {value!r}, but it must be {lowest}.")
