"""The paper's black boxes: encoded tables, trained networks, and the instances to explain.

``python -m benchmarks.tasks --data DIR`` trains all networks and stores them in a cache.
"""

import argparse
import os
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import joblib
import numpy as np
import sklearn
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier, MLPRegressor

from anchorline.errors import ParameterError
from anchorline.paper import Binarizer
from benchmarks.datasets import Dataset, Kind, available, load_dataset, published, source_digest

SEED = 48
N_BINS = 4
N_INSTANCES = 10
TEST_SHARE = 0.2
CACHE = Path(".cache/bench")
CORRELATED = "synthetic-correlated-1652"
TANH = "tanh-network-1652"
SYNTHETIC = (CORRELATED, TANH)

# Part of every cache key: change it whenever a trained model or its instances change.
PROTOCOL = "k4-split80-mlp-1"

#: "paper" explains rows of a test set. "code" trains on the whole table and explains rows of the same table, like
#: the authors' scripts.
Protocol = Literal["paper", "code"]

Rows = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class LabelPredictor:
    """A classifier with the labels -1 and +1, as a function that returns floats."""

    model: Any

    def __call__(self, rows: Rows) -> Rows:
        """Return the labels (n,) of rows (n, d)."""
        return np.asarray(self.model.predict(rows), dtype=np.float64)


@dataclass(frozen=True, slots=True)
class ClippedPredictor:
    """A regressor whose outputs are clipped to [-1, +1]."""

    model: Any

    def __call__(self, rows: Rows) -> Rows:
        """Return the outputs (n,) for rows (n, d)."""
        return np.clip(np.asarray(self.model.predict(rows), dtype=np.float64), -1.0, 1.0)


@dataclass(frozen=True, slots=True, eq=False)
class TanhNetwork:
    r"""One hidden layer of tanh units and a tanh output.

    .. math:: f(z) = \tanh\bigl(v^\top \tanh(W z + b)\bigr)
    """

    weights: Rows
    biases: Rows
    outputs: Rows

    def __call__(self, rows: Rows) -> Rows:
        """Return the outputs (n,) for rows (n, d)."""
        return np.asarray(np.tanh(np.tanh(rows @ self.weights.T + self.biases) @ self.outputs))


@dataclass(frozen=True, slots=True, eq=False)
class Benchmark:
    """One black box on {-1, +1}^d and the instances to explain.

    Parameters
    ----------
    predict
        A function from rows (n, d) to outputs (n,) in [-1, +1].
    instances
        Shape (10, d), read-only.
    names
        The meaning of +1, for each of the d columns.
    """

    name: str
    dimension: int
    predict: Callable[[Rows], Rows]
    instances: Rows
    names: tuple[str, ...]

    def __post_init__(self) -> None:
        instances = np.array(self.instances, dtype=np.float64)
        instances.setflags(write=False)
        object.__setattr__(self, "instances", instances)
        if instances.shape[1:] != (self.dimension,) or len(self.names) != self.dimension:
            raise ParameterError(
                f"{self.name}: instances of shape {instances.shape} and {len(self.names)} names; "
                f"needed dimension {self.dimension} in both."
            )


class Stopwatch:
    """A model that measures its own time and counts its rows.

    The attribute that holds the model is private, because an explainer would call a public ``predict`` directly,
    without the time measurement.
    """

    def __init__(
        self, predict: Callable[[np.ndarray], np.ndarray], clock: Callable[[], float] = time.perf_counter
    ) -> None:
        self._predict, self._clock, self.seconds, self.n_rows = predict, clock, 0.0, 0

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        """Predict, and add the time and the rows to the totals."""
        start = self._clock()
        answer = self._predict(rows)
        self.seconds += self._clock() - start
        self.n_rows += len(rows)
        return answer


def load_benchmark(
    data: Path | None, dataset_id: int, *, cache: Path = CACHE, seed: int = SEED, protocol: Protocol = "paper"
) -> Benchmark:
    """Return one benchmark of the paper, from the cache or newly trained; ``data`` is None for OpenML.

    The key in the cache contains a hash of the file, so that a changed table is trained again.
    """
    row = published(dataset_id)
    return _benchmark(row.name, row.kind, _trained(data, dataset_id, cache, seed, protocol))


def load_custom(
    dataset: Dataset, key: str, *, cache: Path = CACHE, seed: int = SEED, protocol: Protocol = "paper"
) -> Benchmark:
    """Return a benchmark on any table, from the cache under this key or newly trained."""
    trained = _cached(cache, f"{key}-{protocol}", seed, lambda: _train(dataset, seed, protocol))
    return _benchmark(dataset.name, dataset.kind, trained)


def load_correlated(*, cache: Path = CACHE, seed: int = SEED) -> Benchmark:
    """Return the paper's regressor on 413 correlated attributes of 475 rows: d = 1652.

    It has the shape of Cancer Drug Response Methylation after encoding.
    """
    return _benchmark(CORRELATED, "regression", _trained_correlated(cache, seed))


def load_tanh(*, seed: int = SEED, dimension: int = 1652, n_units: int = 100) -> Benchmark:
    """Return a random tanh network and ten random instances.

    The input of every unit has variance 1 over the hypercube. The output weights are scaled so that the output
    covers most of [-1, +1] in a neighborhood; its standard deviation is about 0.6 at sigma = 1.

    >>> benchmark = load_tanh(dimension=20)
    >>> benchmark.instances.shape, benchmark.predict(benchmark.instances).shape
    ((10, 20), (10,))
    """
    rng = np.random.default_rng(seed)
    network = TanhNetwork(
        weights=rng.normal(size=(n_units, dimension)) / np.sqrt(dimension),
        biases=0.1 * rng.normal(size=n_units),
        outputs=2.0 * rng.normal(size=n_units) / np.sqrt(n_units),
    )
    instances = rng.choice([-1.0, 1.0], size=(N_INSTANCES, dimension))
    return Benchmark(TANH, dimension, network, instances, tuple(f"z{j} = +1" for j in range(dimension)))


def load_benchmarks(data: Path, *, cache: Path = CACHE, seed: int = SEED) -> Iterator[Benchmark]:
    """Yield every benchmark whose file is in ``data``, in the paper's order, then the synthetic ones."""
    for row in available(data):
        yield load_benchmark(data, row.id, cache=cache, seed=seed)
    yield load_correlated(cache=cache, seed=seed)
    yield load_tanh(seed=seed)


def correlated_dataset(seed: int = SEED, n_rows: int = 475, n_attributes: int = 413) -> Dataset:
    r"""Draw correlated numeric attributes from latent factors, and a target that depends on the attributes.

    .. math:: X = G L + \varepsilon, \qquad y = X_S a + X_i X_j + \tfrac12 \varepsilon'

    with 20 factors G, a set S of 25 relevant attributes, and i, j in S. The absolute correlation of two attributes
    is 0.15 on average and at most 0.70 (seed 48).
    """
    rng = np.random.default_rng(seed)
    factors = rng.normal(size=(n_rows, 20))
    table = factors @ rng.normal(size=(20, n_attributes)) / np.sqrt(20)
    table += 0.5 * rng.normal(size=table.shape)
    relevant = rng.choice(n_attributes, size=min(25, n_attributes), replace=False)
    target = table[:, relevant] @ rng.normal(size=relevant.size)
    target += table[:, relevant[0]] * table[:, relevant[-1]] + 0.5 * rng.normal(size=n_rows)
    return Dataset(0, CORRELATED, "regression", table, target)


def _train(dataset: Dataset, seed: int, protocol: Protocol = "paper") -> dict[str, Any]:
    """Encode, split and fit; return plain values only, so that the cache does not depend on our classes."""
    encoder, rows, target = encode_dataset(dataset)
    train_rows, test_rows, train_target, test_target = rows, rows, target, target
    if protocol == "paper":
        train_rows, test_rows, train_target, test_target = train_test_split(
            rows, target, test_size=TEST_SHARE, random_state=seed
        )
    start = time.perf_counter()
    model = train_network(dataset.kind, train_rows, train_target, seed)
    seconds = time.perf_counter() - start
    chosen = np.random.default_rng(seed).choice(len(test_rows), size=N_INSTANCES, replace=False)
    gaps = test_target - as_predictor(dataset.kind, model)(test_rows)
    return {
        "model": model,
        "instances": test_rows[chosen],
        "names": [str(name) for name in encoder.get_feature_names_out()],
        "seconds": seconds,
        "test_loss": float(np.mean(gaps**2) / 4),
    }


def encode_dataset(dataset: Dataset) -> tuple[Binarizer, Rows, NDArray[Any]]:
    """Return the fitted encoder, the table as rows (n, d) of -1 and +1, and the target scaled to [-1, +1]."""
    encoder = Binarizer(n_bins=N_BINS).fit(dataset.frame)
    return encoder, np.ascontiguousarray(encoder.transform(dataset.frame)), _scaled_target(dataset)


def train_network(kind: Kind, rows: Rows, target: NDArray[Any], seed: int = SEED) -> Any:
    """Train the paper's network on encoded rows (n, d) and scaled targets (n,)."""
    model = _new_network(kind, seed)
    with warnings.catch_warnings():
        # The paper's limits of 200 and 500 iterations are part of the protocol, whether training converges or not.
        warnings.simplefilter("ignore", ConvergenceWarning)
        # On an interrupt scikit-learn only warns, and a half-trained network would be stored in the cache.
        warnings.filterwarnings("error", message="Training interrupted by user")
        try:
            model.fit(rows, target)
        except UserWarning as interrupted:
            raise KeyboardInterrupt from interrupted
    return model


def _scaled_target(dataset: Dataset) -> NDArray[Any]:
    """Map labels to -1 and +1 (the majority class), or numbers linearly to [-1, +1]."""
    if dataset.kind == "classification":
        labels, counts = np.unique(dataset.target, return_counts=True)
        if labels.size != 2:
            raise ParameterError(f"{dataset.name} has {labels.size} classes; needed 2.")
        return np.where(dataset.target == labels[counts.argmax()], 1, -1)
    target = np.asarray(dataset.target, dtype=np.float64)
    low, high = target.min(), target.max()
    if not low < high:
        raise ParameterError(f"The target of {dataset.name} is always {low}; needed a target that varies.")
    return np.asarray(2 * (target - low) / (high - low) - 1)


def _new_network(kind: Kind, seed: int) -> Any:
    if kind == "classification":
        return MLPClassifier(random_state=seed)
    return MLPRegressor(hidden_layer_sizes=(150, 100, 50), max_iter=500, random_state=seed)


def as_predictor(kind: Kind, model: Any) -> Callable[[Rows], Rows]:
    """Return the trained network as a function with outputs in [-1, +1]."""
    return LabelPredictor(model) if kind == "classification" else ClippedPredictor(model)


def _benchmark(name: str, kind: Kind, trained: dict[str, Any]) -> Benchmark:
    names = tuple(trained["names"])
    return Benchmark(name, len(names), as_predictor(kind, trained["model"]), trained["instances"], names)


def _trained(
    data: Path | None, dataset_id: int, cache: Path, seed: int, protocol: Protocol = "paper"
) -> dict[str, Any]:
    key = f"{dataset_id}-{source_digest(data, dataset_id)}" + ("" if protocol == "paper" else "-whole")
    return _cached(cache, key, seed, lambda: _train(load_dataset(data, dataset_id), seed, protocol))


def _trained_correlated(cache: Path, seed: int) -> dict[str, Any]:
    return _cached(cache, CORRELATED, seed, lambda: _train(correlated_dataset(seed), seed))


def _cached(cache: Path, key: str, seed: int, train: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    file = Path(cache) / f"{key}-seed{seed}-sklearn{sklearn.__version__}-{PROTOCOL}.joblib"
    if file.exists():
        return dict(joblib.load(file))
    trained = train()
    file.parent.mkdir(parents=True, exist_ok=True)
    # Written to a temporary file and renamed, so that another process never reads an incomplete file.
    temporary = file.with_name(f"{file.name}.{os.getpid()}.tmp")
    try:
        joblib.dump(trained, temporary)
        os.replace(temporary, file)
    finally:
        temporary.unlink(missing_ok=True)
    return trained


def main(arguments: Sequence[str] | None = None) -> int:
    """Train every benchmark that is not in the cache, and print the time and the loss of each."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tasks", description=main.__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with files named <id>-<name>.csv.gz")
    parser.add_argument("--cache", type=Path, default=CACHE, help="folder of the trained models (%(default)s)")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--only", type=int, nargs="*", help="OpenML ids; all of them by default")
    chosen = parser.parse_args(arguments)
    print(f"{'benchmark':<26} {'paper':>5} {'d':>5} {'seconds':>8} {'test loss':>9}", flush=True)
    for row in available(chosen.data):
        if chosen.only is None or row.id in chosen.only:
            trained = _trained(chosen.data, row.id, chosen.cache, chosen.seed)
            print(_line(row.name, row.dimension, trained), flush=True)
    if chosen.only is None:
        print(_line(CORRELATED, 1652, _trained_correlated(chosen.cache, chosen.seed)), flush=True)
    return 0


def _line(name: str, dimension: int, trained: dict[str, Any]) -> str:
    n_literals, seconds, loss = len(trained["names"]), trained["seconds"], trained["test_loss"]
    return f"{name:<26} {dimension:>5} {n_literals:>5} {seconds:>8.1f} {loss:>9.4f}"


if __name__ == "__main__":
    raise SystemExit(main())
