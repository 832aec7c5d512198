"""Dask DataFrames: every partition is explained by `explain_partition`."""

from collections.abc import Sequence
from typing import Any

from anchorline.batch.partition import (
    PIECES_PER_CORE,
    SHARED_ROWS,
    PackedWork,
    Work,
    explain_partition,
    wrong_frame_error,
)
from anchorline.errors import MissingDependencyError
from anchorline.explainer import Explainer


def explain(
    frame: Any,
    explainer: Explainer,
    *,
    id: str | None = None,
    share_calls: bool = False,
    **keywords: Any,
) -> Any:
    """Return a lazy Dask DataFrame of explanations, partitioned like ``frame``; see `explain_partition`.

    The result has the index of ``frame``, so that the two can be joined. The explainer is sent to each worker
    once. If a worker dies, Dask replaces it and computes its partitions again, with the same bytes as result.
    The rows of a frame of one partition are explained in pieces, by all workers, and then joined again.
    """
    try:
        from dask.dataframe import from_delayed  # noqa: PLC0415  heavy
        from dask.delayed import delayed  # noqa: PLC0415  heavy
    except ImportError:
        raise MissingDependencyError.for_package("dask", "dask") from None
    if not (hasattr(frame, "_meta") and hasattr(frame, "map_partitions")):
        raise wrong_frame_error(frame, "a Dask DataFrame", "dask.dataframe.from_pandas(frame, npartitions=8)")
    work = Work.from_keywords(explainer, share_calls=share_calls, **keywords).prepared()
    meta = explain_partition(frame._meta, work, id)
    packed_work = delayed(PackedWork(work), pure=True)
    if frame.npartitions > 1:
        return frame.map_partitions(_explain, packed_work, id, meta=meta)
    whole, n_pieces = frame.to_delayed()[0], PIECES_PER_CORE * _n_cores()
    pieces = [delayed(_explain)(delayed(_piece)(whole, i, n_pieces), packed_work, id) for i in range(n_pieces)]
    return from_delayed([delayed(_joined)(pieces)], meta=meta, divisions=frame.divisions, verify_meta=False)


def _explain(frame: Any, packed_work: PackedWork, id: str | None) -> Any:
    return packed_work.explain(frame, id)


def _piece(frame: Any, number: int, n_pieces: int) -> Any:
    """Return one of the pieces of a pandas frame; rows that share calls stay together."""
    size = SHARED_ROWS * -(-len(frame) // (SHARED_ROWS * n_pieces))
    return frame.iloc[number * size : (number + 1) * size]


def _joined(pieces: Sequence[Any]) -> Any:
    import pandas as pd  # noqa: PLC0415  heavy

    return pd.concat([piece for piece in pieces if len(piece)] or pieces[:1])


def _n_cores() -> int:
    """Return the number of threads of the cluster in use, or of the cores of this machine."""
    from dask.system import CPU_COUNT  # noqa: PLC0415  heavy

    try:
        from distributed import get_client  # noqa: PLC0415  optional

        client: Any = get_client()  # its methods have no types
        threads = {} if client.asynchronous else client.nthreads()  # an asynchronous client answers later
        return sum(threads.values()) or int(CPU_COUNT)
    except (ImportError, ValueError):  # no cluster: this process or a pool on this machine computes
        return int(CPU_COUNT)
