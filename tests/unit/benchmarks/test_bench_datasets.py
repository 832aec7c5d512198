"""Reading the paper's data sets, and training the benchmarks on small generated files."""

import dataclasses
import gzip
import pickle
import warnings
from collections import Counter

import numpy as np
import pandas as pd
import pytest

from anchorline.errors import ParameterError
from benchmarks import tasks
from benchmarks.datasets import PUBLISHED, Dataset, available, locate, read_dataset, read_datasets


def write(directory, file_name, frame):
    text = frame.to_csv(index=False)
    (directory / file_name).write_bytes(gzip.compress(text.encode()))


@pytest.fixture
def data(tmp_path):
    """Two small files in the layout of the real ones, and a third that is not one of the paper's data sets."""
    rng = np.random.default_rng(5)
    n = 80
    score = rng.normal(size=n).round(3)
    frame = pd.DataFrame(
        {
            "score": score,
            "color": rng.choice(["red", "NA", "blue"], size=n),  # here NA is a text, not a missing value
            "gone": np.where(np.arange(n) == 3, np.nan, 1.0 * np.arange(n)),
        }
    )
    directory = tmp_path / "data"
    directory.mkdir()
    write(directory, "29-tiny-approval.csv.gz", frame.assign(target=np.where(score > 0.3, "+", "-")))
    write(directory, "44962-tiny-fires.csv.gz", frame.assign(target=score * 10 + 3))
    write(directory, "7-another.csv.gz", frame.assign(target=1))
    return directory


def test_published_table_is_the_papers():
    dimensions = [row.dimension for row in PUBLISHED]
    classification, regression = dimensions[:8], dimensions[8:]
    assert classification == [17, 20, 23, 37, 42, 149, 180, 644]
    assert regression == [12, 32, 40, 46, 69, 188, 367, 1652]
    assert [row.kind for row in PUBLISHED] == ["classification"] * 8 + ["regression"] * 8
    assert len({row.id for row in PUBLISHED}) == 16


# Reading


def test_reads_what_is_there_in_the_papers_order(data):
    assert [row.id for row in available(data)] == [29, 44962]
    first, second = read_datasets(data)
    assert (first.id, first.name, first.kind) == (29, "Credit Approval", "classification")
    assert (second.id, second.name, second.kind) == (44962, "Forest Fires", "regression")
    assert list(first.frame.columns) == ["score", "color", "gone"]
    assert set(first.target) == {"+", "-"}
    assert second.target.dtype == np.float64


def test_only_an_empty_field_is_missing(data):
    frame = read_dataset(data, 29).frame
    assert "NA" in set(frame["color"])
    assert frame.isna().sum().to_dict() == {"score": 0, "color": 0, "gone": 1}


def test_datasets_are_frozen(data):
    dataset = read_dataset(data, 29)
    with pytest.raises(dataclasses.FrozenInstanceError):
        dataset.name = "other"
    with pytest.raises(ValueError, match="read-only"):
        dataset.target[0] = "x"


def test_refusals_say_what_to_type(data):
    with pytest.raises(ParameterError, match="7 is not a data set of the paper; needed one of 29, 42192"):
        read_dataset(data, 7)
    with pytest.raises(ParameterError, match=r"COMPAS needs one file named 42192-.* found none.*--data DIR"):
        read_dataset(data, 42192)
    write(data, "29-second.csv.gz", pd.DataFrame({"a": [1], "target": [1]}))
    with pytest.raises(ParameterError, match=r"found 29-second.csv.gz, 29-tiny-approval.csv.gz"):
        locate(data, 29)


def test_files_without_a_proper_target_are_refused(data):
    write(data, "1116-musk.csv.gz", pd.DataFrame({"target": [1], "a": [2]}))
    with pytest.raises(ParameterError, match=r"last column of 1116-musk\.csv\.gz is 'a'; needed 'target'"):
        read_dataset(data, 1116)
    write(data, "1486-nomao.csv.gz", pd.DataFrame({"a": [2, 3], "target": [1, None]}))
    with pytest.raises(ParameterError, match="rows without a target"):
        read_dataset(data, 1486)
    with pytest.raises(ParameterError, match="one value for each of the 2 rows"):
        Dataset(29, "short", "regression", pd.DataFrame({"a": [1, 2]}), np.zeros(3))


# Training


def test_classification_benchmark(data, tmp_path):
    benchmark = tasks.load_benchmark(data, 29, cache=tmp_path / "cache")
    assert benchmark.name == "Credit Approval"
    assert benchmark.dimension == 7  # four bins and three colors; `gone` is dropped
    assert benchmark.names[4:] == ("color = NA", "color = blue", "color = red")
    assert benchmark.instances.shape == (10, 7)
    assert set(np.unique(benchmark.instances)) == {-1.0, 1.0}
    answers = benchmark.predict(np.random.default_rng(0).choice([-1.0, 1.0], size=(200, 7)))
    assert answers.dtype == np.float64
    assert set(answers) == {-1.0, 1.0}
    dataset = read_dataset(data, 29)
    assert (dataset.target == "-").mean() > 0.5
    low, high = [1.0, -1, -1, -1, 1, -1, -1], [-1.0, -1, -1, 1, 1, -1, -1]
    assert benchmark.predict(np.array([low, high])).tolist() == [1, -1]  # +1 is the majority label "-"


def test_regression_benchmark(data, tmp_path):
    benchmark = tasks.load_benchmark(data, 44962, cache=tmp_path / "cache")
    rows = np.random.default_rng(0).choice([-1.0, 1.0], size=(200, 7))
    answers = benchmark.predict(rows)
    assert answers.shape == (200,)
    assert np.abs(answers).max() <= 1
    raw = benchmark.predict.model.predict(rows)
    assert np.array_equal(answers, np.clip(raw, -1, 1))
    assert benchmark.predict.model.hidden_layer_sizes == (150, 100, 50)
    assert benchmark.predict.model.max_iter == 500


def test_targets_are_scaled_over_the_whole_table(data):
    scaled = tasks._scaled_target(read_dataset(data, 44962))
    assert (scaled.min(), scaled.max()) == (-1.0, 1.0)
    labels = tasks._scaled_target(read_dataset(data, 29))
    assert set(labels) == {-1, 1}
    assert labels.mean() > 0
    frame = pd.DataFrame({"a": [1, 2, 3]})
    with pytest.raises(ParameterError, match="3 classes; needed 2"):
        tasks._scaled_target(Dataset(29, "three", "classification", frame, np.array([1, 2, 3])))
    with pytest.raises(ParameterError, match="always 1"):
        tasks._scaled_target(Dataset(29, "flat", "regression", frame, np.ones(3)))


def test_instances_are_test_rows_drawn_without_replacement(data):
    dataset = read_dataset(data, 29)
    rows = tasks.Binarizer().fit_transform(dataset.frame)
    _, test_rows = tasks.train_test_split(rows, test_size=0.2, random_state=48)
    left = Counter(map(bytes, test_rows))
    left.subtract(map(bytes, tasks._train(dataset, 48)["instances"]))
    assert min(left.values()) >= 0
    assert left.total() == 16 - 10


def test_the_seed_decides(data):
    dataset = read_dataset(data, 29)
    first, again, other = (tasks._train(dataset, seed) for seed in (48, 48, 49))
    assert np.array_equal(first["instances"], again["instances"])
    assert np.array_equal(first["model"].coefs_[0], again["model"].coefs_[0])
    assert not np.array_equal(first["instances"], other["instances"])


def test_second_load_does_not_train(data, tmp_path, monkeypatch):
    cache = tmp_path / "cache"
    first = tasks.load_benchmark(data, 29, cache=cache)
    (file,) = cache.iterdir()  # the only file: no temporary file is left
    assert file.name.startswith("29-")
    assert "seed48" in file.name
    assert tasks.PROTOCOL in file.name
    assert tasks.sklearn.__version__ in file.name
    monkeypatch.setattr(tasks, "_train", None)
    second = tasks.load_benchmark(data, 29, cache=cache)
    assert np.array_equal(second.instances, first.instances)
    assert second.names == first.names


def test_another_seed_or_table_is_trained_anew(data, tmp_path):
    cache = tmp_path / "cache"
    tasks.load_benchmark(data, 29, cache=cache)
    tasks.load_benchmark(data, 29, cache=cache, seed=1)
    frame = read_dataset(data, 29).frame
    write(data, "29-tiny-approval.csv.gz", frame.assign(target=np.arange(80) % 2))
    tasks.load_benchmark(data, 29, cache=cache)
    assert len(list(cache.iterdir())) == 3


def test_a_failed_write_leaves_nothing(data, tmp_path, monkeypatch):
    def fail(value, file):
        raise OSError("disk full")

    monkeypatch.setattr(tasks.joblib, "dump", fail)
    with pytest.raises(OSError, match="disk full"):
        tasks.load_benchmark(data, 29, cache=tmp_path / "cache")
    assert list((tmp_path / "cache").iterdir()) == []


def test_convergence_warnings_are_silenced_there_only(data):
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        tasks._train(read_dataset(data, 29), 48)  # 200 iterations are too few for 64 rows
        assert caught == []
        warnings.warn("still shown", ConvergenceWarning, stacklevel=1)
    assert len(caught) == 1


def test_main_trains_and_tells(data, tmp_path, capsys):
    arguments = ["--data", str(data), "--cache", str(tmp_path / "cache"), "--only", "29", "44962"]
    assert tasks.main(arguments) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("  ")[0] for line in lines] == ["benchmark", "Credit Approval", "Forest Fires"]
    assert lines[1].split()[2:4] == ["17", "7"]


# The synthetic ones


def test_correlated_dataset_has_the_published_shape():
    dataset = tasks.correlated_dataset()
    assert dataset.frame.shape == (475, 413)
    correlations = np.abs(np.corrcoef(dataset.frame.T))[np.triu_indices(413, 1)]
    assert 0.1 < correlations.mean() < 0.2
    encoded = tasks.Binarizer().fit(dataset.frame)
    assert len(encoded.statements_) == 1652
    assert np.array_equal(dataset.frame, tasks.correlated_dataset().frame)


def test_tanh_network_varies_over_the_neighborhood():
    benchmark = tasks.load_tanh()
    assert (benchmark.dimension, len(benchmark.names)) == (1652, 1652)
    assert benchmark.instances.shape == (10, 1652)
    rng = np.random.default_rng(0)
    for instance in benchmark.instances:
        flips = rng.random((500, 1652)) < 1 / (1 + np.e)
        answers = benchmark.predict(np.where(flips, -instance, instance))
        assert np.abs(answers).max() < 1
        assert answers.std() > 0.3


def test_benchmarks_are_frozen_pickle_and_check_themselves():
    benchmark = tasks.load_tanh(dimension=5, n_units=3)
    again = pickle.loads(pickle.dumps(benchmark))
    assert np.array_equal(again.predict(again.instances), benchmark.predict(benchmark.instances))
    with pytest.raises(ValueError, match="read-only"):
        benchmark.instances[0] = 0
    with pytest.raises(dataclasses.FrozenInstanceError):
        benchmark.dimension = 3
    with pytest.raises(ParameterError, match="needed dimension 4"):
        tasks.Benchmark("odd", 4, benchmark.predict, benchmark.instances, benchmark.names)
