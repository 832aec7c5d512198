"""The paper's data sets, read from a folder of ``<OpenML id>-<name>.csv.gz`` files, or fetched from OpenML.

A file has one header row, and the target in the last column, named ``target``. Only an empty field is a missing
value. Text columns are categories; all other columns are numbers.
"""

import hashlib
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from anchorline.errors import MissingDependencyError, ParameterError, TableFileError

Kind = Literal["classification", "regression"]


@dataclass(frozen=True, slots=True)
class Published:
    """One row of the paper's Table 1: ``dimension`` is d, the number of indicators."""

    id: int
    name: str
    kind: Kind
    dimension: int


#: The paper's Table 1, in its order.
PUBLISHED: tuple[Published, ...] = (
    Published(29, "Credit Approval", "classification", 17),
    Published(42192, "COMPAS", "classification", 20),
    Published(40683, "Postoperative", "classification", 23),
    Published(43672, "Heart Disease", "classification", 37),
    Published(179, "Adult", "classification", 42),
    Published(1486, "Nomao", "classification", 149),
    Published(40536, "Speed Dating", "classification", 180),
    Published(1116, "Musk", "classification", 644),
    Published(44146, "Medical Charges", "regression", 12),
    Published(44024, "California Housing", "regression", 32),
    Published(44962, "Forest Fires", "regression", 40),
    Published(46328, "Seoul Bike Sharing", "regression", 46),
    Published(42352, "Student Performance", "regression", 69),
    Published(46132, "NCI 60 Thioguanine", "regression", 188),
    Published(46286, "Communities and Crime", "regression", 367),
    Published(46139, "Cancer Drug Resp. Meth.", "regression", 1652),
)


@dataclass(frozen=True, slots=True, eq=False)
class Dataset:
    """A table and the target that a model predicts from it.

    Parameters
    ----------
    frame
        The attributes, as a pandas frame of n rows.
    target
        Labels or numbers as in the file, shape (n,); read-only.
    """

    id: int
    name: str
    kind: Kind
    frame: Any
    target: NDArray[Any]

    def __post_init__(self) -> None:
        target = np.array(self.target)
        target.setflags(write=False)
        object.__setattr__(self, "target", target)
        if target.shape != (len(self.frame),):
            raise ParameterError(
                f"{self.name}: the target has shape {target.shape}; needed one value for each of the "
                f"{len(self.frame)} rows of the frame."
            )


def published(dataset_id: int) -> Published:
    """Return the row of the paper's Table 1 with this OpenML id.

    >>> published(29)
    Published(id=29, name='Credit Approval', kind='classification', dimension=17)
    """
    for row in PUBLISHED:
        if row.id == dataset_id:
            return row
    known = ", ".join(str(row.id) for row in PUBLISHED)
    raise ParameterError(f"{dataset_id!r} is not a data set of the paper; needed one of {known}.")


def available(directory: Path | None, names: Collection[str] = ()) -> list[Published]:
    """Return the rows of Table 1 whose file is in ``directory``, in the paper's order; all rows if it is None.

    If there are ``names``, only those that have one of them.
    """
    rows = [row for row in PUBLISHED if not names or row.name in names]
    if directory is None:
        return rows
    return [row for row in rows if list(Path(directory).glob(f"{row.id}-*.csv.gz"))]


def require_any(directory: Path | None, ids: Collection[int]) -> list[Published]:
    """Return the available data sets with these ids; raise `TableFileError` if there are none."""
    rows = [row for row in available(directory) if row.id in ids]
    if not rows:
        raise TableFileError(
            f"The folder {str(directory)!r} holds no data set of the paper; needed files named "
            "<OpenML id>-<name>.csv.gz. Type `--data DIR` with their folder."
        )
    return rows


def locate(directory: Path, dataset_id: int) -> Path:
    """Return the file of a data set; raise `ParameterError` unless there is exactly one."""
    row = published(dataset_id)
    files = sorted(Path(directory).glob(f"{row.id}-*.csv.gz"))
    if len(files) != 1:
        names = ", ".join(file.name for file in files) or "none"
        raise ParameterError(
            f"{row.name} needs one file named {row.id}-*.csv.gz in {str(directory)!r}; found {names}. "
            "Type `--data DIR` with the folder of the data sets."
        )
    return files[0]


def read_dataset(directory: Path, dataset_id: int) -> Dataset:
    """Read one data set of the paper by its OpenML id."""
    row, file = published(dataset_id), locate(directory, dataset_id)
    table = _pandas().read_csv(file, keep_default_na=False, na_values=[""])
    if table.columns[-1] != "target":
        raise ParameterError(f"The last column of {file.name} is {table.columns[-1]!r}; needed 'target'.")
    if table["target"].isna().any():
        raise ParameterError(f"{file.name} has rows without a target; needed a target in every row.")
    return Dataset(row.id, row.name, row.kind, table.drop(columns="target"), table["target"].to_numpy())


def fetch_dataset(dataset_id: int) -> Dataset:
    """Fetch one data set of the paper from OpenML by its id; scikit-learn keeps it for later calls."""
    from sklearn.datasets import fetch_openml

    row = published(dataset_id)
    try:
        bunch = fetch_openml(data_id=row.id, as_frame=True, parser="auto")
    except OSError as error:  # the errors of urllib are of this kind
        raise TableFileError(
            f"OpenML {row.id} ({row.name}) cannot be fetched: {error}. Type `--data DIR` with a folder of "
            "files named <OpenML id>-<name>.csv.gz."
        ) from error
    # Categories become text, so that a fetched table and a file are read in the same way.
    categories = bunch.data.select_dtypes(include=["category"]).columns
    frame = bunch.data.astype(dict.fromkeys(categories, object))
    target = bunch.target.astype(float if row.kind == "regression" else str)
    return Dataset(row.id, row.name, row.kind, frame, target.to_numpy())


def load_dataset(directory: Path | None, dataset_id: int) -> Dataset:
    """Read a data set from a folder, or fetch it from OpenML if ``directory`` is None."""
    return fetch_dataset(dataset_id) if directory is None else read_dataset(directory, dataset_id)


def source_digest(directory: Path | None, dataset_id: int) -> str:
    """Return what distinguishes versions of a table: a hash of its file, or its OpenML id, which never changes."""
    if directory is None:
        return f"openml{published(dataset_id).id}"
    return hashlib.blake2b(locate(directory, dataset_id).read_bytes(), digest_size=6).hexdigest()


def read_datasets(directory: Path) -> Iterator[Dataset]:
    """Read every data set of the paper that is in ``directory``, one at a time."""
    for row in available(directory):
        yield read_dataset(directory, row.id)


def _pandas() -> Any:
    try:
        import pandas
    except ImportError as cause:
        raise MissingDependencyError.for_package("pandas", "bench") from cause
    return pandas
