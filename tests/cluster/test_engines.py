"""Dask, Ray and Spark return the same bytes, also after a worker was killed; each engine starts once."""

import os
import shutil
import sys

import cloudpickle
import pandas as pd
import psutil
import pytest

from anchorline.batch.partition import PIECES_PER_CORE, SHARED_ROWS
from anchorline.errors import FormatError, ParameterError
from anchorline.explainer import Explainer
from anchorline.result.explanations import Explanations
from anchorline.spaces.table import Table
from helpers import batch_models
from helpers.batch_models import DIES, FAILS, Trouble, people

TRAIN = people(120)
ROWS = people(24, seed=1).assign(id=[f"row {i}" for i in range(24)])
ROWS.loc[3, "age"] = FAILS
ROWS.loc[17, "age"] = DIES  # where `Trouble` kills its worker, the first time
SHUFFLED = ROWS.sample(frac=1, random_state=0)
CHEAP = {"k": 3, "queries": 200}
HOME = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning:ray"),
    pytest.mark.filterwarnings("ignore::FutureWarning:ray"),
    pytest.mark.filterwarnings("ignore:The copy keyword is deprecated"),  # raised by Spark's calls of pandas 3
    pytest.mark.filterwarnings("ignore:The inplace keyword in"),  # raised by Dask
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # sockets of killed workers
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(autouse=True, scope="module")
def _by_value():
    """Send the models by value, because the workers cannot import their module."""
    cloudpickle.register_pickle_by_value(batch_models)
    yield
    cloudpickle.unregister_pickle_by_value(batch_models)


@pytest.fixture(autouse=True)
def _no_process_is_left():
    """Fail if a test leaves a child process behind."""
    before = {child.pid for child in psutil.Process().children(recursive=True)}
    yield
    left = [child for child in psutil.Process().children(recursive=True) if child.pid not in before]
    left = [
        child for child in left if "resource_tracker" not in " ".join(child.cmdline())
    ]  # started by Python itself
    _, alive = psutil.wait_procs(left, timeout=10)
    assert not alive


def explainer_of(model):
    return Explainer(model, Table(TRAIN), output="score")


@pytest.fixture(scope="module")
def expected():
    """The key, the explanation and the kind of error of every id, computed in one process where no worker dies."""
    never = explainer_of(Trouble(once=os.devnull))
    records = never.explain_many(ROWS, errors="keep", **CHEAP).records
    return {id: (r["key"], r["explanation"], r["error_type"]) for id, r in zip(ROWS["id"], records, strict=True)}


LAWS = ("independent", "realistic")


def of_law(law):
    return Explainer(batch_models.score, Table(TRAIN, neighbors=law), output="score")


@pytest.fixture(scope="module")
def expected_of_laws():
    """The keys and the explanations of every id, by the law of neighbors, computed in one process."""
    found = {law: of_law(law).explain_many(ROWS, **CHEAP).records for law in LAWS}
    return {
        law: {id: (r["key"], r["explanation"], None) for id, r in zip(ROWS["id"], records, strict=True)}
        for law, records in found.items()
    }


@pytest.fixture(scope="module")
def expected_rules():
    """The rule of every id, found in one process."""
    records = of_law("independent").explain_many(ROWS, rule=True, **CHEAP).records
    return {id: record["rule"] for id, record in zip(ROWS["id"], records, strict=True)}


def rules_in(frame):
    """Return the rule of every id in the result of an engine."""
    return dict(zip(frame["id"], frame["rule"], strict=True))


MANY = pd.concat([ROWS.assign(id=ROWS["id"] + mark) for mark in ("", "'")])
assert len(MANY) >= 2 * SHARED_ROWS  # enough for two pieces


def of_many(expected):
    """Return what is expected for `MANY`, from what is expected for `ROWS`."""
    return {id + mark: outcome for id, outcome in expected.items() for mark in ("", "'")}


def outcomes(frame):
    """Return the same for the result of an engine, and check that no row occurs twice."""
    assert frame["id"].is_unique
    names = ("key", "explanation", "error_type")
    columns = [[None if pd.isna(value) else value for value in frame[name]] for name in names]
    return dict(zip(frame["id"], zip(*columns, strict=True), strict=True))


def test_a_dask_frame_of_one_partition_may_be_empty_or_short():
    import dask.dataframe as dd

    from anchorline.batch.dask import explain

    for rows in (ROWS[:0], ROWS[:3]):
        answer = explain(dd.from_pandas(rows, npartitions=1), of_law("realistic"), id="id", **CHEAP)
        assert answer.compute(scheduler="sync")["id"].tolist() == rows["id"].tolist()


def test_dask(expected, expected_of_laws, expected_rules, tmp_path, monkeypatch):
    import dask
    import dask.dataframe as dd
    from distributed import Client, LocalCluster

    from anchorline.batch.dask import explain

    for name, value in HOME.items():
        monkeypatch.setenv(name, value)
    quiet = {"distributed.worker.daemon": True, "distributed.admin.tick.limit": "1h"}
    with (
        dask.config.set(quiet),
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=50) as cluster,
        Client(cluster) as client,
    ):
        assert len({*client.run(os.getpid).values(), os.getpid()}) == 3
        frame = dd.from_pandas(SHUFFLED.reset_index(drop=True), npartitions=4).repartition(npartitions=3)
        assert outcomes(explain(frame, explainer_of(Trouble(os.devnull)), id="id", **CHEAP).compute()) == expected
        for law in LAWS:
            assert outcomes(explain(frame, of_law(law), id="id", **CHEAP).compute()) == expected_of_laws[law]
        with_rules = explain(frame, of_law("independent"), id="id", rule=True, **CHEAP)
        assert rules_in(with_rules.compute()) == expected_rules

        whole = frame.repartition(npartitions=1)
        answer = explain(whole, explainer_of(Trouble(os.devnull)), id="id", **CHEAP)
        assert outcomes(answer.compute()) == expected
        assert (answer.npartitions, answer.divisions) == (1, whole.divisions)
        n_explained = sum("_explain" in str(name) for name in answer.__dask_graph__())
        assert n_explained == 2 * PIECES_PER_CORE  # on two cores

        marker = tmp_path / "killed"
        answer = explain(frame, explainer_of(Trouble(once=str(marker))), id="id", **CHEAP)
        assert outcomes(answer.compute()) == expected
        assert marker.exists()
        with pytest.raises(ParameterError, match="id is 'name'"):
            explain(frame, explainer_of(Trouble()), id="name", **CHEAP)
        with pytest.raises(ParameterError, match=r"Got a pandas DataFrame, not a Dask DataFrame. Type dask"):
            explain(ROWS, explainer_of(Trouble()), **CHEAP)


@pytest.mark.parametrize("id", [None, "id"])
def test_dask_keeps_the_index(id):
    import dask.dataframe as dd

    from anchorline.batch.dask import explain

    frame = dd.from_pandas(ROWS.set_index(pd.Index(range(100, 124), name="case")), npartitions=3)
    answer = explain(frame, explainer_of(batch_models.score), id=id, **CHEAP)
    whole = answer.compute(scheduler="sync")
    assert answer.divisions == frame.divisions
    assert whole.index.equals(frame.compute(scheduler="sync").index)
    assert answer.loc[115].compute(scheduler="sync")["key"].tolist() == [whole["key"].iloc[15]]
    joined = frame.join(answer[["prediction"]]).compute(scheduler="sync")
    assert joined["prediction"].equals(whole["prediction"])


def test_what_dask_wrote_is_read_back(tmp_path):
    import dask.dataframe as dd

    from anchorline.batch.dask import explain

    explainer = explainer_of(Trouble(os.devnull))
    answer = explain(dd.from_pandas(ROWS, npartitions=12), explainer, id="id", **CHEAP)
    answer.to_parquet(tmp_path / "why", compute_kwargs={"scheduler": "sync"})
    expected = explainer.explain_many(ROWS, errors="keep", **CHEAP)
    assert Explanations.from_parquet(tmp_path / "why") == expected
    assert Explanations.from_parquet(tmp_path / "why" / "part.0.parquet") == expected[:2]
    (tmp_path / "empty").mkdir()
    with pytest.raises(FormatError, match=r"has no file whose name ends in \.parquet"):
        Explanations.from_parquet(tmp_path / "empty")


def read_back(folder):
    """Return the key, the explanation and the kind of error of every row in the files of a folder."""
    records = Explanations.from_parquet(folder).records
    assert [record["row"] for record in records] == list(range(len(ROWS)))
    return {(record["key"], record["explanation"], record["error_type"]) for record in records}


def test_ray(expected, expected_of_laws, expected_rules, tmp_path, monkeypatch):
    for name, value in {**HOME, "RAY_USAGE_STATS_ENABLED": "0", "RAY_DATA_DISABLE_PROGRESS_BARS": "1"}.items():
        monkeypatch.setenv(name, value)
    import ray

    from anchorline.batch.ray import explain

    ray.init(
        num_cpus=2,
        include_dashboard=False,
        log_to_driver=False,
        configure_logging=False,
        object_store_memory=100 * 2**20,
    )
    try:
        data = ray.data.from_pandas(SHUFFLED).repartition(3)
        answer = explain(data, explainer_of(Trouble(os.devnull)), id="id", batch_size=5, **CHEAP)
        assert outcomes(answer.to_pandas()) == expected
        for law in LAWS:
            answer_of_law = explain(data, of_law(law), id="id", batch_size=5, **CHEAP)
            assert outcomes(answer_of_law.to_pandas()) == expected_of_laws[law]
        with_rules = explain(data, of_law("independent"), id="id", batch_size=5, rule=True, **CHEAP)
        assert rules_in(with_rules.to_pandas()) == expected_rules
        # One block is split, so that both cores explain rows.
        answer_of_block = explain(ray.data.from_pandas(MANY), of_law("realistic"), id="id", **CHEAP).materialize()
        assert answer_of_block.num_blocks() > 1
        assert outcomes(answer_of_block.to_pandas()) == of_many(expected_of_laws["realistic"])
        answer.write_parquet(str(tmp_path / "why"))
        assert read_back(tmp_path / "why") == {*expected.values()}

        marker = tmp_path / "killed"
        answer = explain(data, explainer_of(Trouble(once=str(marker))), id="id", batch_size=5, **CHEAP)
        assert outcomes(answer.to_pandas()) == expected
        assert marker.exists()
        named = ray.data.from_pandas(ROWS.rename(columns={"id": "key"}))
        for id, match in {
            "name": "id is 'name', but it must be the name of a column of the frame: 'age'",
            "key": "Rename your column",
        }.items():
            with pytest.raises(ParameterError, match=match):
                explain(named, explainer_of(Trouble()), id=id, **CHEAP)
        with pytest.raises(ParameterError, match=r"Got a pandas DataFrame, not a Ray Dataset. Type ray"):
            explain(ROWS, explainer_of(Trouble()), **CHEAP)
    finally:
        ray.shutdown()


@pytest.mark.skipif(shutil.which("java") is None, reason="Java is missing. Type: python .ci/tools.py")
def test_spark(expected, expected_of_laws, expected_rules, tmp_path, monkeypatch):
    for name, value in {**HOME, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}.items():
        monkeypatch.setenv(name, value)
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    from anchorline.batch.spark import explain

    options = {
        "spark.master": "local[2,4]",  # a task may fail three times
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "512m",
        "spark.sql.shuffle.partitions": "3",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "OFF",
        "spark.local.dir": str(tmp_path),
        "spark.sql.warehouse.dir": str(tmp_path),
    }
    builder = SparkSession.builder
    for name, value in options.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    try:
        frame = session.createDataFrame(SHUFFLED).repartition(3)
        answer = explain(frame, explainer_of(Trouble(os.devnull)), id="id", **CHEAP)
        assert outcomes(answer.toPandas()) == expected
        for law in LAWS:
            assert outcomes(explain(frame, of_law(law), id="id", **CHEAP).toPandas()) == expected_of_laws[law]
        with_rules = explain(frame, of_law("independent"), id="id", rule=True, **CHEAP)
        assert rules_in(with_rules.toPandas()) == expected_rules
        one = explain(frame.coalesce(1), of_law("realistic"), id="id", **CHEAP)
        assert one.rdd.getNumPartitions() == 2 * PIECES_PER_CORE
        assert outcomes(one.toPandas()) == expected_of_laws["realistic"]
        answer.write.parquet(str(tmp_path / "why"))
        assert read_back(tmp_path / "why") == {*expected.values()}

        marker = tmp_path / "killed"
        answer = explain(frame, explainer_of(Trouble(once=str(marker))), id="id", **CHEAP)
        assert outcomes(answer.toPandas()) == expected
        assert marker.exists()
        with pytest.raises(ParameterError, match="id is 'name'"):
            explain(frame, explainer_of(Trouble()), id="name", **CHEAP)
        odd = frame.selectExpr("named_struct('a b', id) as id", *(n for n in frame.columns if n != "id"))
        assert explain(odd, explainer_of(Trouble()), id="id", **CHEAP).columns[0] == "id"
        for named in ("key", "Key", "ROW"):
            with pytest.raises(ParameterError, match=f"id is '{named}'.*Rename your column"):
                explain(frame.withColumnRenamed("id", named), explainer_of(Trouble()), id=named, **CHEAP)
        with pytest.raises(ParameterError, match=r"Got a pandas DataFrame, not a Spark DataFrame. Type session"):
            explain(ROWS, explainer_of(Trouble()), **CHEAP)
    finally:
        gateway = SparkContext._gateway
        session.stop()
        gateway.shutdown()
        gateway.proc.stdin.close()  # the Java process ends with it
        gateway.proc.wait(20)
        SparkContext._gateway = SparkContext._jvm = None
