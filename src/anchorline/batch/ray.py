"""Ray Data: every batch is explained by `explain_partition`."""

from typing import Any

from anchorline.batch.partition import PIECES_PER_CORE, SHARED_ROWS, PackedWork, Work, wrong_frame_error
from anchorline.batch.rows import check_id
from anchorline.errors import MissingDependencyError
from anchorline.explainer import Explainer


def explain(
    dataset: Any,
    explainer: Explainer,
    *,
    id: str | None = None,
    share_calls: bool = False,
    batch_size: int | None = 64,
    **keywords: Any,
) -> Any:
    """Return a lazy Ray Dataset of explanations; see `explain_partition`.

    The explainer is put into the object store once. If a worker dies, Ray replaces it and computes its batch
    again, with the same bytes as result. A dataset in memory that is one block is split first, so that all cores
    have rows to explain; with ``share_calls``, it is not, because the rows of a call would change.
    """
    try:
        import ray.data  # noqa: PLC0415  heavy
    except ImportError:
        raise MissingDependencyError.for_package("ray[data]", "ray") from None
    if not isinstance(dataset, ray.data.Dataset):
        raise wrong_frame_error(dataset, "a Ray Dataset", "ray.data.from_pandas(frame)")
    # Ray may not know the columns before the dataset is computed; then each batch checks the id.
    if columns := dataset.columns(fetch_if_missing=False):
        check_id(id, columns)
    stored = ray.put(PackedWork(Work.from_keywords(explainer, share_calls=share_calls, **keywords).prepared()))

    def explain_batch(batch: Any) -> Any:
        return ray.get(stored).explain(batch, id)

    if not share_calls and _is_one_block(dataset):
        cluster: Any = ray  # its functions have no types
        n_rows, n_cores = dataset.count(), int(cluster.cluster_resources().get("CPU", 1))
        n_pieces = max(1, min(PIECES_PER_CORE * n_cores, n_rows // SHARED_ROWS))
        dataset, most = dataset.repartition(n_pieces), max(1, -(-n_rows // n_pieces))
        batch_size = most if batch_size is None else min(batch_size, most)  # Ray joins blocks to fill a batch
    return dataset.map_batches(explain_batch, batch_format="pyarrow", batch_size=batch_size)


def _is_one_block(dataset: Any) -> bool:
    try:
        return bool(dataset.num_blocks() == 1)
    except NotImplementedError:  # the dataset is lazy: Ray decides on its blocks when they are computed
        return False
