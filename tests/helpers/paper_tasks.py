"""Models, tasks and units that the tests of the paper's experiments share."""

import dataclasses
import gzip

import numpy as np

from benchmarks.experiments.explainers import Task
from benchmarks.experiments.protocol import QUICK, Setting, Unit
from benchmarks.tasks import Benchmark

TINY = dataclasses.replace(
    QUICK,
    name="tiny",
    n_instances=1,
    n_draws=500,
    ids=(42192, 44024, 46139),
    ks=(1, 2, 5),
    sigmas=(0.0, 1.0),
    ms=(100, 500, 1000),
    nodes=(0, 1, 10),
)


def write_table(directory, name, frame):
    """Write a frame as a compressed CSV file."""
    directory.mkdir(exist_ok=True)
    (directory / name).write_bytes(gzip.compress(frame.to_csv(index=False).encode()))


def linear(z):
    """Return the outputs of a linear model."""
    return 0.4 * z[:, 0] - 0.3 * z[:, 1] + 0.05 * z[:, 2]


def bent(z):
    """Return the outputs of a nonlinear model."""
    return np.tanh(0.8 * z[:, 0] + 0.6 * z[:, 1] - 0.5 * z[:, 2] * z[:, 3] + 0.2 * z[:, 4:].sum(axis=1))


def task_of(predict, d=12, seed=48, **setting):
    """Return a task with a model on d literals."""
    instance = np.where(np.arange(d) % 3, 1.0, -1.0)
    benchmark = Benchmark("made", d, predict, np.tile(instance, (2, 1)), tuple(f"z{j}" for j in range(d)))
    return Task.from_benchmark(benchmark, instance, Setting(**{"m": 2000, **setting}), seed)


def unit(**changes):
    """Return a unit of work, with changes to its default fields."""
    return Unit(
        **{
            **dict(zip(("series", "group"), ("table", "core"), strict=True)),
            **dict(protocol="paper", dataset_id=42192, instance=0, digest="abc", scale=TINY),
            **changes,
        }
    )
