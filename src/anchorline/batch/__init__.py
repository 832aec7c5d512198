"""Many rows: worker processes, checkpoints, Dask, Ray and Spark, all over one function of a frame.

A row's explanation depends on the seed, the row, the training table, the model and the settings; never on
the batch, the order, the number of workers or the engine.
"""

from anchorline.batch.partition import Work, explain_partition
from anchorline.batch.progress import Progress

__all__ = ["Progress", "Work", "explain_partition"]
