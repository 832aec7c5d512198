"""Tables from files, explanations from files, and files written whole or not at all."""

from anchorline.io.files import read_explanation, write_atomically
from anchorline.io.tables import read_rows, read_table

__all__ = ["read_explanation", "read_rows", "read_table", "write_atomically"]
