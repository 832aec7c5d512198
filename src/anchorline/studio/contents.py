"""Texts or images as cases: a space in which a position names a case, as it does in a table."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from anchorline.errors import InstanceError, ParameterError
from anchorline.render.characters import ELLIPSIS
from anchorline.spaces.columns import CATEGORY, Column
from anchorline.spaces.image import Image
from anchorline.spaces.text import Text
from anchorline.studio.cases import Changed, Plain

_LONGEST = 1000  # characters of a text in the list of cases
_TEXTS_PER_CALL = 64


class Contents:
    """Texts or images, and how they are cut into facts; explanations are those of the space alone.

    Parameters
    ----------
    space
        `Text` or `Image`.
    instances
        The texts, or the images. Images may be read when they are needed, by a sequence of your own.
    titles
        What the list shows of every case, such as the names of files; by default the texts themselves.
    column
        What the content is called, such as "review".

    Examples
    --------
    >>> contents = Contents(Text(), ["Great food", "Slow service"])
    >>> contents.at(1).text, contents.at({"text": "Great view"}).text
    ('Slow service', 'Great view')
    """

    def __init__(
        self,
        space: Text | Image,
        instances: Sequence[Any],
        titles: Sequence[str] | None = None,
        column: str | None = None,
    ) -> None:
        if not len(instances):
            raise ParameterError("There are no texts or images to show; at least one is needed.")
        self.space, self.instances = space, instances
        self.is_text = isinstance(space, Text)
        self.column = column or ("text" if self.is_text else "image")
        if titles is None:
            titles = list(instances) if self.is_text else [f"image {i}" for i in range(len(instances))]
        self.titles = titles

    @property
    def fingerprint(self) -> str:
        """That of the space, so that an explanation can be verified without the other cases."""
        return self.space.fingerprint

    @property
    def first(self) -> int:
        """The position of the first case that is not an empty text."""
        places = (i for i, title in enumerate(self.titles) if title.strip())
        return next(places, 0) if self.is_text else 0

    def at(self, instance: Any) -> Any:
        """Return the neighborhood of a position, of a row of one column, or of a content itself."""
        if isinstance(instance, dict):
            instance = self._content(instance)
        elif isinstance(instance, int):
            if not 0 <= instance < len(self.instances):
                raise InstanceError(
                    f"The position is {instance}, but there are {len(self.instances)} cases. Positions start at 0."
                )
            instance = self.instances[instance]
        return self.space.at(instance)

    def _content(self, row: Mapping[str, Any]) -> Any:
        if not self.is_text:
            raise InstanceError("A new image cannot be typed. Send the position of an image.")
        if list(row) != [self.column] or not isinstance(row[self.column], str):
            raise InstanceError(
                f"A row has one text, which is called {self.column!r}. It came with {list(row)!r:.200}."
            )
        return row[self.column]


class ContentCases:
    """Texts or images by position, in one column."""

    def __init__(self, space: Contents) -> None:
        self._space, self.n_rows, self.names = space, len(space.instances), [space.column]
        self.block_rows = _TEXTS_PER_CALL if space.is_text else 8
        self.stored_at = np.arange(self.n_rows)
        values = np.empty(self.n_rows, dtype=object)
        values[:] = list(space.titles)
        self.columns: tuple[Column, ...] = (Column(CATEGORY, values, np.zeros(self.n_rows, dtype=bool)),)

    def cells(self, j: int, stored: Sequence[int]) -> list[Plain]:
        """Return the texts or titles, shortened."""
        texts = [self.columns[j].values[at] for at in stored]
        return [text if len(text) <= _LONGEST else f"{text[:_LONGEST]}{ELLIPSIS}" for text in texts]

    def inputs(self, stored: np.ndarray) -> Iterator[tuple[Any, int]]:
        """Yield all texts at once, and images one by one, because they may have different sizes."""
        contents = (self._space.instances[at] for at in stored.tolist())
        if self._space.is_text:
            yield list(contents), len(stored)
            return
        for content in contents:
            image = np.asarray(content)[None]
            yield image.reshape(1, -1) if self._space.space.flatten else image, 1  # type: ignore[union-attr]

    def parse_row(self, row: Any) -> Any:
        """Return a position or a row by column; a list of one value is a row too."""
        return {self._space.column: row[0]} if isinstance(row, list) and len(row) == 1 else row

    def describe(self) -> list[dict[str, Any]]:
        """Return the name of the column, and whether it holds texts or images."""
        kind = "texts" if self._space.is_text else "images"
        return [{"name": self._space.column, "kind": kind, "has_missing": False}]

    def change(self, neighborhood: Any, broken: Sequence[str], edits: Mapping[str, Any]) -> Changed:
        """Return the text, or another one in its place, without some units; or the image with hidden regions."""
        after = self._space.at(dict(edits)) if edits else neighborhood
        own = {literal.name for literal in neighborhood.literals}
        unknown = [name for name in broken if name not in own]
        if unknown:
            raise ParameterError(
                f"broken contains {unknown[0]!r:.60}, which is not a fact of this case. Use the names of this "
                "case's literals."
            )
        flips = np.array([[literal.name in broken for literal in after.literals]])
        realized = after.realize(flips)
        kept = {literal.name: literal.text for literal in after.literals if literal.name not in broken}
        is_broken = [literal.name not in kept for literal in neighborhood.literals]
        return Changed(
            realized, {self._space.column: realized[0] if self._space.is_text else None}, is_broken, kept
        )
