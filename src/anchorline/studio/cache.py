"""The answers given last, as bytes: the same request gets the same bytes without work."""

import hashlib
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from anchorline.result.canonical import canonical_json


class Cache:
    """Least recently used answers go first, by number and by bytes; used from the event loop only."""

    def __init__(self, entries: int, size: int) -> None:
        self._most_entries, self._most_bytes = entries, size
        self._answers: OrderedDict[str, bytes] = OrderedDict()
        self.n_bytes = 0

    def __len__(self) -> int:
        return len(self._answers)

    def get(self, key: str) -> bytes | None:
        """The answer, now the most recently used; None where there is none."""
        found = self._answers.get(key)
        if found is not None:
            self._answers.move_to_end(key)
        return found

    def put(self, key: str, answer: bytes) -> None:
        """Keep an answer, and let go of old ones."""
        if len(answer) > self._most_bytes:
            return
        self.n_bytes += len(answer) - len(self._answers.pop(key, b""))
        self._answers[key] = answer
        while self._answers and (len(self._answers) > self._most_entries or self.n_bytes > self._most_bytes):
            self.n_bytes -= len(self._answers.popitem(last=False)[1])


def key_of(route: str, request: Mapping[str, Any]) -> str:
    """One key for one request, whatever the order of its members."""
    return hashlib.sha256(f"{route} {canonical_json(request)}".encode()).hexdigest()
