"""Explain many rows: worker processes, checkpoints, and the engines Dask, Ray and Spark.

One function of a frame, `explain_partition`, does the work everywhere. The explanation of a row depends on the
seed, the row, the training table, the model and the settings; it does not depend on the batch, the order of the
rows, the number of workers or the engine. May import: every room except `cli` and `studio`.
"""

from anchorline.next.batch.partition import Work, explain_partition
from anchorline.next.batch.progress import Progress

__all__ = ["Progress", "Work", "explain_partition"]
