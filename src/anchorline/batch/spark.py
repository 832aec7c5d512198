"""Spark DataFrames: every batch of rows is explained by `explain_partition`, through ``mapInPandas``."""

from collections.abc import Iterator
from typing import Any

from anchorline.batch.partition import PIECES_PER_CORE, PackedWork, Work, wrong_frame_error
from anchorline.batch.rows import RESERVED_NAMES, check_id
from anchorline.errors import ParameterError
from anchorline.explainer import Explainer


def explain(
    frame: Any,
    explainer: Explainer,
    *,
    id: str | None = None,
    share_calls: bool = False,
    **keywords: Any,
) -> Any:
    """Return a lazy Spark DataFrame of explanations; see `explain_partition`.

    If a Python worker dies, Spark runs its task again, with the same bytes as result. The setting
    ``spark.task.maxFailures`` limits the number of attempts (in local mode: ``local[cores, failures]``).
    A frame of one partition is split first, so that all cores have rows to explain; with ``share_calls``, it is
    not, because the rows of a call would change.
    """
    if not hasattr(frame, "mapInPandas"):  # the class differs with Spark Connect, so it is not compared
        raise wrong_frame_error(frame, "a Spark DataFrame", "session.createDataFrame(frame)")
    work = Work.from_keywords(explainer, share_calls=share_calls, **keywords)
    schema = _schema(frame, id, work)
    packed_work = PackedWork(work.prepared())

    def explain_batches(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            yield packed_work.explain(batch, id)

    if not share_calls and _n_partitions(frame) == 1:
        frame = frame.repartition(PIECES_PER_CORE * frame.sparkSession.sparkContext.defaultParallelism)
    return frame.mapInPandas(explain_batches, schema)


def _n_partitions(frame: Any) -> int | None:
    """Return the number of partitions of a frame; None with Spark Connect, which does not tell."""
    try:
        return int(frame.rdd.getNumPartitions())
    except (AttributeError, NotImplementedError):  # an error of Spark's own derives from both
        return None


def _schema(frame: Any, id: str | None, work: Work) -> Any:
    """Return the schema of the result, which Spark needs in advance."""
    from pyspark.sql.types import DoubleType, StringType, StructField, StructType  # noqa: PLC0415  heavy

    types = {"text": StringType(), "number": DoubleType()}
    fields = [StructField(name, types[kind]) for name, kind in work.columns.items()]
    if id is None:
        return StructType(fields)
    check_id(id, frame.columns)
    if id.lower() in RESERVED_NAMES:
        raise ParameterError(
            f"id is {id!r}, which Spark does not distinguish from {id.lower()!r}, a column of the result. "
            "Rename your column."
        )
    return StructType([StructField(id, frame.schema[id].dataType), *fields])
