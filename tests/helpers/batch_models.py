"""A table, and models of it that are quick and can be told to misbehave at some rows."""

import os
import re
import signal
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

FAILS, DIES, HANGS, HANGS_IN_C = 99, 98, 97, 96  # ages at which a model that was told so does


def people(n, seed=0):
    """A table of numbers, whole numbers and categories."""
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "age": rng.integers(20, 80, n),
            "income": rng.normal(50, 20, n).round(1),
            "town": rng.choice(["Lens", "Arras", "Lille"], n),
        }
    )


def score(frame):
    """A number in [-1, 1]."""
    age, income = np.asarray(frame["age"], dtype=float), np.asarray(frame["income"], dtype=float)
    in_lens = np.asarray([town == "Lens" for town in frame["town"]])
    return 0.7 * np.tanh((age - 45) / 30 - (income - 50) / 40) + 0.2 * in_lens


@dataclass
class Trouble:
    """`score`, that fails, dies or hangs at the ages above; ``once`` names a file: it dies only if it made it."""

    once: str | None = None

    def __call__(self, frame):
        age = int(np.asarray(frame["age"])[0]) if len(frame) == 1 else 0
        if age == FAILS:
            raise ValueError("nobody is that old")
        if age == DIES and self._first_time():
            os.kill(os.getpid(), signal.SIGKILL)
        if age == HANGS:
            time.sleep(1000)
        if age == HANGS_IN_C:
            re.match(r"(a+)+$", "a" * 60 + "b")  # never ends, and never gives the interpreter back
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
    """`score`, that raises what is no `Exception` where somebody is of the age that fails; a new one each time."""

    kind: type[BaseException]
    told: tuple = ()

    def __call__(self, frame):
        if (np.asarray(frame["age"]) == FAILS).any():
            raise self.kind(*self.told)
        return score(frame)


@dataclass
class Seats:
    """`Trouble`, that can be unpacked only so often, as by a licence of so many seats."""

    folder: str
    most: int

    def __setstate__(self, state):
        self.__dict__ |= state
        if len(os.listdir(self.folder)) >= self.most:
            raise MemoryError("no seat left")
        Path(self.folder, str(os.getpid())).touch()
        self.elsewhere = True

    def __call__(self, frame):
        return Trouble()(frame) if hasattr(self, "elsewhere") else score(frame)


def rate(z):
    """A number for every corner of a cube."""
    return np.tanh(0.4 * z[:, 0] - 0.3 * z[:, 1] * z[:, 2] + 0.2 * z[:, -1])


def ends_its_process(z):
    """`rate`, of one corner only."""
    if len(z) > 1:
        os._exit(1)
    return rate(z)


class Unpackable:
    """`score`, by a model that stays where it is."""

    def __call__(self, frame):
        return score(frame)

    def __reduce__(self):
        raise TypeError("this model holds a connection")


class Unopenable:
    """`score`, by a model that goes, and cannot be opened there."""

    def __call__(self, frame):
        return score(frame)

    def __reduce__(self):
        return _refuse, (os.getpid(),)


def _refuse(made_in):
    if os.getpid() != made_in:
        raise OSError("no licence on this machine")
    return Unopenable()


class Threads:
    """Answers with the number of BLAS and OpenMP threads."""

    def __call__(self, frame):
        from threadpoolctl import threadpool_info

        return np.full(len(frame), max(pool["num_threads"] for pool in threadpool_info()) / 100.0)


class Counting:
    """`score`, that counts its calls and rows."""

    def __init__(self):
        self.calls, self.rows = 0, 0

    def __call__(self, frame):
        self.calls += 1
        self.rows += len(frame)
        return score(frame)


# For the command line: helpers.batch_models:trouble, and so on.
trouble = Trouble()
exits = Ends(SystemExit, (0,))
unpackable = Unpackable()
