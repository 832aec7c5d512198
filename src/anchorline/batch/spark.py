"""Spark DataFrames: every batch of rows explained by the one partition function (``mapInPandas``)."""

from collections.abc import Iterator
from typing import Any, Unpack

from anchorline.batch.partition import TAKEN, PackedWork, Work, check_id, wrong_frame
from anchorline.errors import ParameterError
from anchorline.explainer import Explainer
from anchorline.result.explanations import COLUMNS
from anchorline.settings import Keywords


def explain(
    frame: Any,
    explainer: Explainer,
    *,
    id: str | None = None,
    share_calls: bool = False,
    **keywords: Unpack[Keywords],
) -> Any:
    """A lazy Spark DataFrame of explanations; see `explain_partition`.

    A Python worker that dies is Spark's to replace, as often as ``spark.task.maxFailures`` says (in local mode:
    ``local[cores, failures]``): its task is done again, and gives the same bytes.
    """
    if not hasattr(frame, "mapInPandas"):  # its class is another one where Spark is far away
        raise wrong_frame(frame, "a Spark DataFrame", "session.createDataFrame(frame)")
    schema = _schema(frame, id)
    parcel = PackedWork(Work.from_keywords(explainer, share_calls=share_calls, **keywords).with_ranges())

    def explain_batches(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            yield parcel.explain(batch, id)

    return frame.mapInPandas(explain_batches, schema)


def _schema(frame: Any, id: str | None) -> Any:
    """The columns of the answer, as Spark wants to be told beforehand."""
    from pyspark.sql.types import DoubleType, StringType, StructField, StructType  # noqa: PLC0415  heavy

    types = {"text": StringType(), "number": DoubleType()}
    told = [StructField(name, types[kind]) for name, kind in COLUMNS.items()]
    if id is None:
        return StructType(told)
    check_id(id, frame.columns)
    if id.lower() in TAKEN:
        raise ParameterError(
            f"id is {id!r}: Spark takes it for {id.lower()!r}, a column of the answer. Rename yours."
        )
    return StructType([StructField(id, frame.schema[id].dataType), *told])
