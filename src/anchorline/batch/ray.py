"""Ray Data: every batch is explained by `explain_partition`."""

from typing import Any, Unpack

from anchorline.batch.partition import PackedWork, Work, check_id, wrong_frame_error
from anchorline.errors import MissingDependencyError
from anchorline.explainer import Explainer
from anchorline.settings import Keywords


def explain(
    dataset: Any,
    explainer: Explainer,
    *,
    id: str | None = None,
    share_calls: bool = False,
    batch_size: int | None = 64,
    **keywords: Unpack[Keywords],
) -> Any:
    """Return a lazy Ray Dataset of explanations; see `explain_partition`.

    The explainer is put into the object store once. If a worker dies, Ray replaces it and computes its batch
    again, with the same bytes as result.
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
    stored = ray.put(PackedWork(Work.from_keywords(explainer, share_calls=share_calls, **keywords).with_ranges()))

    def explain_batch(batch: Any) -> Any:
        return ray.get(stored).explain(batch, id)

    return dataset.map_batches(explain_batch, batch_format="pyarrow", batch_size=batch_size)
