"""A table, and fast models of it that misbehave at chosen rows."""

import os
import re
import signal
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

FAILS, DIES, HANGS, HANGS_IN_C = 99, 98, 97, 96  # ages at which `Trouble` misbehaves


def people(n, seed=0):
    """Return a table of whole numbers, decimal numbers and categories."""
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "age": rng.integers(20, 80, n),
            "income": rng.normal(50, 20, n).round(1),
            "town": rng.choice(["Lens", "Arras", "Lille"], n),
        }
    )


def score(frame):
    """Return one number in [-1, 1] per row."""
    age, income = np.asarray(frame["age"], dtype=float), np.asarray(frame["income"], dtype=float)
    in_lens = np.asarray([town == "Lens" for town in frame["town"]])
    return 0.7 * np.tanh((age - 45) / 30 - (income - 50) / 40) + 0.2 * in_lens


def slow_score(frame):
    """Return `score` after a moment, so that a batch can be killed while it runs."""
    time.sleep(0.03)
    return score(frame)


@dataclass
class Trouble:
    """`score`, which fails, dies or hangs at the ages above.

    ``once`` names a file: the model dies only if it has just created that file.
    """

    once: str | None = None

    def __call__(self, frame):
        age = int(np.asarray(frame["age"])[0])  # of the row itself, which is the first that a call asks about
        if age == FAILS:
            raise ValueError("nobody is that old")
        if age == DIES and self._first_time():
            os.kill(os.getpid(), signal.SIGKILL)
        if age == HANGS:
            time.sleep(1000)
        if age == HANGS_IN_C:
            re.match(r"(a+)+$", "a" * 60 + "b")  # never ends and never releases the interpreter
        return score(frame)

    def _first_time(self):
        if self.once is None:
            return True
        try:
            os.close(os.open(self.once, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return False
        return True


@dataclass
class Ends:
    """`score`, which raises a new exception of the given kind for people of the age that fails."""

    kind: type[BaseException]
    arguments: tuple = ()

    def __call__(self, frame):
        if (np.asarray(frame["age"]) == FAILS).any():
            raise self.kind(*self.arguments)
        return score(frame)


@dataclass
class Seats:
    """`Trouble`, which can be unpacked only ``n_seats`` times, like a model with a limited license."""

    folder: str
    n_seats: int

    def __setstate__(self, state):
        self.__dict__ |= state
        if len(os.listdir(self.folder)) >= self.n_seats:
            raise MemoryError("no seat left")
        Path(self.folder, str(os.getpid())).touch()
        self.was_unpacked = True

    def __call__(self, frame):
        return Trouble()(frame) if hasattr(self, "was_unpacked") else score(frame)


def rate(z):
    """Return one number per corner of a cube."""
    return np.tanh(0.4 * z[:, 0] - 0.3 * z[:, 1] * z[:, 2] + 0.2 * z[:, -1])


class Unpackable:
    """`score`, as a model that cannot be packed."""

    def __call__(self, frame):
        return score(frame)

    def __reduce__(self):
        raise TypeError("this model holds a connection")


class Unopenable:
    """`score`, as a model that can be packed but not unpacked in another process."""

    def __call__(self, frame):
        return score(frame)

    def __reduce__(self):
        return _refuse, (os.getpid(),)


def _refuse(made_in):
    if os.getpid() != made_in:
        raise OSError("no license on this machine")
    return Unopenable()


class Threads:
    """Returns the number of BLAS and OpenMP threads, divided by 100."""

    def __call__(self, frame):
        from threadpoolctl import threadpool_info

        return np.full(len(frame), max(pool["num_threads"] for pool in threadpool_info()) / 100.0)


class Counting:
    """`score`, which counts its calls and rows."""

    def __init__(self):
        self.calls, self.rows = 0, 0

    def __call__(self, frame):
        self.calls += 1
        self.rows += len(frame)
        return score(frame)


# The command line loads these by name, for example helpers.batch_models:trouble.
trouble = Trouble()
exits = Ends(SystemExit, (0,))
unpackable = Unpackable()
