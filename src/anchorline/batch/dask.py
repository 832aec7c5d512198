"""Dask DataFrames: every partition is explained by `explain_partition`."""

from typing import Any, Unpack

from anchorline.batch.partition import PackedWork, Work, explain_partition, wrong_frame_error
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
    """Return a lazy Dask DataFrame of explanations, partitioned like ``frame``; see `explain_partition`.

    The result has the index of ``frame``, so that the two can be joined. The explainer is sent to each worker
    once. If a worker dies, Dask replaces it and computes its partitions again, with the same bytes as result.
    """
    try:
        from dask.delayed import delayed  # noqa: PLC0415  heavy
    except ImportError:
        raise MissingDependencyError.for_package("dask", "dask") from None
    if not (hasattr(frame, "_meta") and hasattr(frame, "map_partitions")):
        raise wrong_frame_error(frame, "a Dask DataFrame", "dask.dataframe.from_pandas(frame, npartitions=8)")
    work = Work.from_keywords(explainer, share_calls=share_calls, **keywords).with_ranges()
    meta = explain_partition(frame._meta, work, id)
    return frame.map_partitions(_explain, delayed(PackedWork(work), pure=True), id, meta=meta)


def _explain(frame: Any, packed_work: PackedWork, id: str | None) -> Any:
    return packed_work.explain(frame, id)
