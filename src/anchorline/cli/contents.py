"""Texts and images on the command line: how they are given, served and cut into facts."""

import io
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from anchorline.cli.console import print_message
from anchorline.cli.inputs import TableOptions, instances_to_explain, require_rows
from anchorline.cli.options import option
from anchorline.errors import (
    FormatError,
    InstanceError,
    MissingDependencyError,
    ParameterError,
    TableFileError,
)
from anchorline.io import read_table
from anchorline.verify.check import read_result

_MAX_BYTES = 64 * 2**20  # of a file
_SUFFIXES = {".png", ".jpg", ".jpeg", ".gif", ".bmp", ".tif", ".tiff", ".webp"}
_KEPT, _KEPT_BYTES = 8, 256_000_000  # images in memory


@dataclass(frozen=True, slots=True, kw_only=True)
class CutOptions:
    """Options on how texts and images are cut into facts, and on what replaces a fact."""

    unit: Annotated[str, option("What is taken out of a text: word or sentence.")] = "word"
    mask: Annotated[str | None, option("What replaces a word. [default: words are deleted]")] = None
    segments: Annotated[str, option("How an image is cut: slic or grid.")] = "slic"
    n_segments: Annotated[int, option("About how many regions an image has.")] = 64
    hidden: Annotated[str, option("What a hidden region shows: mean or blur.")] = "mean"

    def text_space(self) -> Any:
        """Return the space of texts."""
        from anchorline.spaces.text import Text  # noqa: PLC0415  on first use

        unit: Any = self.unit
        return Text(unit, "delete" if self.mask is None else self.mask)

    def image_space(self) -> Any:
        """Return the space of images."""
        from anchorline.spaces.regions import Image  # noqa: PLC0415  on first use

        segments: Any = self.segments
        return Image(segments, self.hidden, self.n_segments)


@dataclass(frozen=True, slots=True, kw_only=True)
class ContentOptions(CutOptions):
    """Options on texts and images, which need no table."""

    text: Annotated[list[str] | None, option("A text to explain. Repeatable.", metavar="TEXT")] = None
    text_file: Annotated[list[str] | None, option("A file with one text. Repeatable.", metavar="FILE")] = None
    image: Annotated[list[str] | None, option("An image file to explain. Repeatable.", metavar="FILE")] = None

    @property
    def is_given(self) -> bool:
        """Whether a text or an image is to be explained."""
        return bool(self.text or self.text_file or self.image)

    def check_without_table(self, **table: Any) -> None:
        """Raise `ParameterError` if options of a table are given too, or both texts and images."""
        given = [name for name, value in table.items() if value]
        if given:
            raise ParameterError(
                f"--{given[0]} is given together with a text or an image, which needs no table. Leave out one of "
                "them."
            )
        if self.image and (self.text or self.text_file):
            raise ParameterError("Texts and images are given together. Explain them in two commands.")

    def space(self) -> Any:
        """Return the space of the texts or images."""
        return self.image_space() if self.image else self.text_space()

    def space_of(self, record: str) -> Any:
        """Return the space of a recorded result of a text or an image; None if it is one of a table."""
        try:
            kind = read_result(record).space["kind"]
        except FormatError:
            return None  # the verification reports it
        return {"text": self.text_space, "image": self.image_space}.get(kind, lambda: None)()

    def instances(self) -> list[tuple[int, Any]]:
        """Return numbered texts or images: those of --text first, then those of files."""
        if self.image:
            return list(enumerate(map(read_image, self.image)))
        return list(enumerate([*(self.text or ()), *map(read_text, self.text_file or ())]))


def space_and_instances(
    contents: ContentOptions,
    table: TableOptions,
    data: str | None,
    row: Sequence[int] | None,
    rows: str | None,
    target: Sequence[str] | None,
) -> tuple[Any, list[tuple[int, Any]]]:
    """Return what a command is about: the space of a table, of texts or of images, and its numbered instances."""
    if contents.is_given:
        contents.check_without_table(data=data, row=row, rows=rows, target=target)
        return contents.space(), contents.instances()
    if data is None:
        raise ParameterError(
            "Neither --data nor a text or image is given. Type --data train.csv --row 0, --text 'Great food', "
            "--text-file review.txt, or --image photo.png."
        )
    require_rows(row, rows)
    space = table.space(data, target)
    return space, instances_to_explain(row or (), rows, space)


def read_text(path: str) -> str:
    """Return the text of a UTF-8 file, with or without a byte-order mark."""
    try:
        return _file_bytes(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InstanceError(
            f"{path!r} is not a text in UTF-8 ({error.reason} at byte {error.start}). Convert it to UTF-8 first."
        ) from None


def read_image(path: str) -> np.ndarray:
    """Return the pixels of an image file: (h, w) or (h, w, channels)."""
    try:
        from PIL import Image, UnidentifiedImageError  # noqa: PLC0415  heavy, and optional
    except ImportError as error:
        raise MissingDependencyError.for_package("PIL", "image") from error
    content = io.BytesIO(_file_bytes(path))
    try:
        with Image.open(content) as picture:
            if picture.mode == "P":  # a palette of colors
                return np.asarray(picture.convert("RGBA" if "transparency" in picture.info else "RGB"))
            return np.asarray(picture)
    except (Image.DecompressionBombError, OSError, SyntaxError, ValueError) as error:
        reason = "its format is unknown" if isinstance(error, UnidentifiedImageError) else str(error)
        raise InstanceError(f"{path!r} cannot be read as an image: {reason}. Pass a PNG or JPEG file.") from None


def is_image(path: Path) -> bool:
    """Return whether a file begins like an image; its pixels are not read."""
    try:
        from PIL import Image  # noqa: PLC0415  heavy, and optional
    except ImportError as error:
        raise MissingDependencyError.for_package("PIL", "image") from error
    try:
        with Image.open(path):
            return True
    except (Image.DecompressionBombError, OSError, SyntaxError, ValueError):
        return False


def _file_bytes(path: str) -> bytes:
    try:
        size = Path(path).stat().st_size
        if size > _MAX_BYTES:
            raise InstanceError(f"{path!r} has {size:,} bytes; at most {_MAX_BYTES:,} are read.")
        return Path(path).read_bytes()
    except OSError as error:
        raise InstanceError(f"{path!r} cannot be read: {error.strerror}.") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectionOptions(CutOptions):
    """Options on what is served instead of a table."""

    text: Annotated[str | None, option("A table with a column of texts to serve.", metavar="FILE")] = None
    column: Annotated[str | None, option("With --text: the column of the texts.", metavar="NAME")] = None
    images: Annotated[str | None, option("A folder with image files to serve.", metavar="DIR")] = None

    @property
    def is_given(self) -> bool:
        """Whether texts or images are served."""
        return self.text is not None or self.images is not None

    def space(self) -> Any:
        """Return the texts or images as cases."""
        from anchorline.studio.contents import Contents  # noqa: PLC0415  the extra may be missing

        if self.text is not None and self.images is not None:
            raise ParameterError("Both --text and --images are given. Serve them by two commands.")
        if self.text is None:
            paths = image_files(str(self.images))
            return Contents(self.image_space(), ImageFiles(paths), [path.name for path in paths])
        if self.column is None:
            raise ParameterError("--text is given without the column of the texts. Type: --column NAME")
        return Contents(self.text_space(), texts_of(self.text, self.column), column=self.column)


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
