"""Ray Data: every batch explained by the one partition function."""

from typing import Any, Unpack

from anchorline.batch.partition import PackedWork, Work, check_id, wrong_frame
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
    """A lazy Ray Dataset of explanations; see `explain_partition`.

    The explainer is put into the object store once. A worker that dies is Ray's to replace: its batch is
    computed again, and gives the same bytes.
    """
    try:
        import ray.data  # noqa: PLC0415  heavy
    except ImportError:
        raise MissingDependencyError.for_package("ray[data]", "ray") from None
    if not isinstance(dataset, ray.data.Dataset):
        raise wrong_frame(dataset, "a Ray Dataset", "ray.data.from_pandas(frame)")
    if columns := dataset.columns(fetch_if_missing=False):  # else only its rows can tell, and are asked later
        check_id(id, columns)
    stored = ray.put(PackedWork(Work.from_keywords(explainer, share_calls=share_calls, **keywords).with_ranges()))

    def explain_batch(batch: Any) -> Any:
        return ray.get(stored).explain(batch, id)

    return dataset.map_batches(explain_batch, batch_format="pyarrow", batch_size=batch_size)
