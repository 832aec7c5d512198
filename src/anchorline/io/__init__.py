"""Files: tables and explanations are read with limits, and files are written completely or not at all.

Tables are CSV, JSON-lines, Parquet, Arrow or Feather files, and become pandas, Polars or pyarrow frames.
May import: errors.
"""

from anchorline.io.files import read_explanation, write_atomically
from anchorline.io.tables import read_rows, read_table

__all__ = ["read_explanation", "read_rows", "read_table", "write_atomically"]
