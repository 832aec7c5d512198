"""Collections of texts and images for ``anchorline serve``: a column of a table, or the files of a folder."""

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from anchorline.cli.console import print_message
from anchorline.cli.contents import CutOptions, is_image, read_image
from anchorline.errors import InstanceError, ParameterError, TableFileError
from anchorline.io import read_table

_SUFFIXES = {".png", ".jpg", ".jpeg", ".gif", ".bmp", ".tif", ".tiff", ".webp"}
_KEPT, _KEPT_BYTES = 8, 256_000_000  # images in memory


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectionOptions(CutOptions):
    """Options on what is served instead of a table."""

    text: Annotated[
        str | None, typer.Option("--text", metavar="FILE", help="A table with a column of texts to serve.")
    ] = None
    images: Annotated[
        str | None, typer.Option("--images", metavar="DIR", help="A folder with image files to serve.")
    ] = None

    @property
    def is_given(self) -> bool:
        """Whether texts or images are served."""
        return self.text is not None or self.images is not None

    def space(self, column: str | None) -> Any:
        """Return the texts or images as cases; ``column`` is that of the texts."""
        from anchorline.studio.contents import Contents  # noqa: PLC0415  the extra may be missing

        if self.text is not None and self.images is not None:
            raise ParameterError("Both --text and --images are given. Serve them by two commands.")
        if self.text is None:
            paths = image_files(str(self.images))
            return Contents(self.image_space(), ImageFiles(paths), [path.name for path in paths])
        if column is None:
            raise ParameterError("--text is given without the column of the texts. Type: --column NAME")
        return Contents(self.text_space(), texts_of(self.text, column), column=column)


class ImageFiles(Sequence[np.ndarray]):
    """Images that are read when they are needed; the last few stay in memory, as far as their bytes allow."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self._paths, self._lock = paths, threading.Lock()
        self._kept: dict[int, np.ndarray] = {}  # the last one was used last

    def __len__(self) -> int:
        return len(self._paths)

    def __getitem__(self, i: Any) -> Any:
        place = range(len(self))[i]
        with self._lock:
            image = self._kept.pop(place, None)
        image = self._image(place) if image is None else image
        with self._lock:
            self._kept[place] = image
            while len(self._kept) > 1 and (len(self._kept) > _KEPT or self.n_bytes > _KEPT_BYTES):
                del self._kept[next(iter(self._kept))]
        return image

    @property
    def n_bytes(self) -> int:
        """The memory of the images that are kept."""
        return sum(image.nbytes for image in self._kept.values())

    def _image(self, i: int) -> np.ndarray:
        try:
            return read_image(str(self._paths[i]))
        except InstanceError:  # whose message names the folder, which readers of the page need not know
            raise InstanceError(f"{self._paths[i].name!r} cannot be read as an image.") from None


def image_files(folder: str) -> list[Path]:
    """Return the image files of a folder in the order of their names; those that cannot be opened are left out."""
    try:
        paths = sorted(path for path in Path(folder).iterdir() if path.suffix.lower() in _SUFFIXES)
    except OSError as error:
        raise InstanceError(f"{folder!r} cannot be read: {error.strerror}. Type: --images FOLDER") from None
    if not paths:
        raise InstanceError(f"{folder!r} contains no image file ({', '.join(sorted(_SUFFIXES))}).")
    readable = [path for path in paths if is_image(path)]
    if not readable:
        raise InstanceError(f"None of the {len(paths)} image files in {folder!r} can be opened.")
    if len(readable) < len(paths):
        left_out = [path.name for path in paths if path not in readable]
        print_message(f"{len(left_out)} files cannot be opened and are left out: {', '.join(left_out[:5])}.")
    return readable


def texts_of(path: str, column: str) -> list[str]:
    """Return a column of texts; missing ones are empty."""
    import narwhals as nw  # noqa: PLC0415  heavy

    frame = nw.from_native(read_table(path), eager_only=True)
    if column not in frame.columns:
        raise TableFileError(f"{path!r} has no column {column!r} (--column). It has {frame.columns!r:.300}.")
    texts = frame[column]
    return ["" if lacks else str(text) for text, lacks in zip(texts.to_list(), texts.is_null(), strict=True)]
