"""Caches of bounded size: the last answers as bytes, and the last objects that were expensive to build."""

import hashlib
import json
import threading
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from cachetools import LRUCache

Built = TypeVar("Built")


class AnswerCache:
    """The most recently used answers, bounded both by their number and by their bytes.

    Not thread-safe: only the event loop may use it. `LRUCache` enforces the bytes, this class the number.
    """

    def __init__(self, max_entries: int, max_bytes: int) -> None:
        self._max_entries = max_entries
        self._answers: LRUCache[str, bytes] = LRUCache(max_bytes, getsizeof=len)

    def __len__(self) -> int:
        return len(self._answers)

    @property
    def n_bytes(self) -> int:
        """The total size of the stored answers."""
        return int(self._answers.currsize)

    def get(self, key: str) -> bytes | None:
        """Return the answer and mark it as the most recently used one, or None if it is not stored."""
        return self._answers.get(key)

    def put(self, key: str, answer: bytes) -> None:
        """Store an answer, and evict the least recently used ones beyond the bounds."""
        if len(answer) > self._answers.maxsize:
            return
        self._answers[key] = answer
        while len(self._answers) > self._max_entries:
            self._answers.popitem()


class ObjectCache:
    """The most recently used objects, by a text key; safe to use from several threads.

    Two threads that need the same absent object at the same time both build it, because holding the lock
    meanwhile would block all other threads.
    """

    def __init__(self, max_entries: int) -> None:
        self._lock = threading.Lock()
        self._objects: LRUCache[str, Any] = LRUCache(max_entries)

    def get_or_build(self, key: str, build: Callable[[], Built]) -> Built:
        """Return the object stored under ``key``, or build and store it."""
        with self._lock:
            if key in self._objects:
                stored: Built = self._objects[key]
                return stored
        built = build()
        with self._lock:
            self._objects[key] = built
        return built


def request_key(route: str, request: Mapping[str, Any]) -> str:
    """Return the cache key of a request, which does not depend on the order of the request's keys."""
    return hashlib.sha256(f"{route} {json.dumps(request, sort_keys=True)}".encode()).hexdigest()
