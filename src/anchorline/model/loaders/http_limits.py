"""What one HTTP model may cost: rows a request, time, attempts, rows in all, bytes an answer."""

from dataclasses import dataclass, fields

from anchorline.errors import ParameterError


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpLimits:
    """Limits of a model behind an address.

    Parameters
    ----------
    batch_rows
        Rows a request: fixed, because a model's last bits may depend on the batch it sees.
    connect_timeout, read_timeout, total_timeout
        Seconds to connect, between two parts of an answer, and from the request to the end of the answer.
    max_retries
        Further attempts after a failed connection or the statuses 429, 502, 503 and 504.
    first_wait, longest_wait
        Seconds before the first further attempt, doubled each time up to the longest; a server's
        ``Retry-After`` is heeded up to the longest too.
    max_queries
        Rows sent in all over the life of the model, of which each process has its own; None for no limit. What
        one explanation may ask is limited by its own ``max_queries``.
    max_answer_bytes
        Size of one answer; reading stops there.

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
    max_queries: int | None = None
    max_answer_bytes: int = 64 * 2**20

    def __post_init__(self) -> None:
        may_be_zero = {"max_retries", "first_wait", "longest_wait"}
        for field in fields(self):
            value = getattr(self, field.name)
            if value is None and field.name == "max_queries":
                continue
            number = isinstance(value, (int, float)) and not isinstance(value, bool)
            if not number or not (value > 0 or (value == 0 and field.name in may_be_zero)):
                raise ParameterError(f"{field.name} is {value!r}; needed a number above 0.")
