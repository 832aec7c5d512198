"""Dask DataFrames: every partition explained by the one partition function."""

from typing import Any, Unpack

from anchorline.batch.partition import PackedWork, Work, explain_partition, wrong_frame
from anchorline.errors import MissingDependencyError
from anchorline.explainer import Explainer
from anchorline.settings import Keywords


def explain(
    frame: Any,
    explainer: Explainer,
    *,
    id: str | None = None,
    share_calls: bool = False,
    **keywords: Unpack[Keywords],
) -> Any:
    """A lazy Dask DataFrame of explanations, in the partitions of ``frame``; see `explain_partition`.

    It has the index of ``frame``, so that the two can be joined. The explainer travels to each worker once. A
    worker that dies is Dask's to replace: its partitions are computed again, and give the same bytes.
    """
    try:
        from dask.delayed import delayed  # noqa: PLC0415  heavy
    except ImportError:
        raise MissingDependencyError.for_package("dask", "dask") from None
    if not (hasattr(frame, "_meta") and hasattr(frame, "map_partitions")):
        raise wrong_frame(frame, "a Dask DataFrame", "dask.dataframe.from_pandas(frame, npartitions=8)")
    work = Work.from_keywords(explainer, share_calls=share_calls, **keywords).with_ranges()
    meta = explain_partition(frame._meta, work, id)
    return frame.map_partitions(_explain, delayed(PackedWork(work), pure=True), id, meta=meta)


def _explain(frame: Any, parcel: PackedWork, id: str | None) -> Any:
    return parcel.explain(frame, id)
