"""Texts and images on the command line: how they are given, and how they are cut into facts."""

import io
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from anchorline.errors import FormatError, InstanceError, MissingDependencyError, ParameterError
from anchorline.result.explanation import Explanation

_MAX_BYTES = 64 * 2**20  # of a file


@dataclass(frozen=True, slots=True, kw_only=True)
class CutOptions:
    """Options on how texts and images are cut into facts, and on what replaces a fact."""

    unit: Annotated[str, typer.Option("--unit", help="What is taken out of a text: word or sentence.")] = "word"
    mask: Annotated[
        str | None, typer.Option("--mask", help="What replaces a word. [default: words are deleted]")
    ] = None
    segments: Annotated[str, typer.Option("--segments", help="How an image is cut: slic or grid.")] = "slic"
    n_segments: Annotated[int, typer.Option("--n-segments", help="About how many regions an image has.")] = 64
    hidden: Annotated[str, typer.Option("--hidden", help="What a hidden region shows: mean or blur.")] = "mean"

    def text_space(self) -> Any:
        """Return the space of texts."""
        from anchorline.spaces.text import Text  # noqa: PLC0415  on first use

        return Text(self.unit, "delete" if self.mask is None else self.mask)

    def image_space(self) -> Any:
        """Return the space of images."""
        from anchorline.spaces.image import Image  # noqa: PLC0415  on first use

        return Image(self.segments, self.hidden, self.n_segments)


@dataclass(frozen=True, slots=True, kw_only=True)
class ContentOptions(CutOptions):
    """Options on texts and images, which need no table."""

    text: Annotated[
        list[str] | None, typer.Option("--text", metavar="TEXT", help="A text to explain. Repeatable.")
    ] = None
    text_file: Annotated[
        list[str] | None, typer.Option("--text-file", metavar="FILE", help="A file with one text. Repeatable.")
    ] = None
    image: Annotated[
        list[str] | None, typer.Option("--image", metavar="FILE", help="An image file to explain. Repeatable.")
    ] = None

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

    def space_of(self, explanation: str) -> Any:
        """Return the space of a recorded explanation of a text or an image; None if it is one of a table."""
        try:
            recorded = str(Explanation.from_json(explanation).parameters.get("space"))
        except FormatError:
            return None  # the verification reports it
        return {"text": self.text_space, "image": self.image_space}.get(recorded.partition(":")[0], lambda: None)()

    def instances(self) -> list[tuple[int, Any]]:
        """Return numbered texts or images: those of --text first, then those of files."""
        if self.image:
            return list(enumerate(map(read_image, self.image)))
        return list(enumerate([*(self.text or ()), *map(read_text, self.text_file or ())]))


def read_text(path: str) -> str:
    """Return the text of a UTF-8 file, with or without a byte-order mark."""
    try:
        return _read(path).decode("utf-8-sig")
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
    content = io.BytesIO(_read(path))
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


def _read(path: str) -> bytes:
    try:
        size = Path(path).stat().st_size
        if size > _MAX_BYTES:
            raise InstanceError(f"{path!r} has {size:,} bytes; at most {_MAX_BYTES:,} are read.")
        return Path(path).read_bytes()
    except OSError as error:
        raise InstanceError(f"{path!r} cannot be read: {error.strerror}.") from None
