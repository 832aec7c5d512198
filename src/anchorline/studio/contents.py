"""Texts or images as cases: a space in which a position names a case, as it does in a table."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from anchorline.errors import InstanceError, ParameterError
from anchorline.facts import Fact
from anchorline.render.characters import ELLIPSIS
from anchorline.spaces.base import Neighborhood, Space
from anchorline.spaces.columns import CATEGORY, Column
from anchorline.spaces.regions import Image
from anchorline.spaces.text import Text
from anchorline.studio.cases import Changed, Plain

_LONGEST = 1000  # characters of a text in the list of cases
_TEXTS_PER_CALL, _IMAGES_PER_BLOCK = 64, 8


class Contents(Space):
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
        self.space, self.contents = space, instances
        self.noun, self.default_k = space.noun, space.default_k
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

    def describe(self, neighborhood: Neighborhood) -> dict[str, Any]:
        """Return what an explanation records about the space alone."""
        return self.space.describe(neighborhood)

    def at(self, instance: Any) -> Neighborhood:
        """Return the neighborhood of a position, of a row of one column, or of a content itself."""
        if isinstance(instance, dict):
            instance = self._content(instance)
        elif isinstance(instance, int):
            if not 0 <= instance < len(self.contents):
                raise InstanceError(
                    f"The position is {instance}, but there are {len(self.contents)} cases. Positions start at 0."
                )
            instance = self.contents[instance]
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
        self._space, self.n_rows, self.names = space, len(space.contents), [space.column]
        self.block_rows = _TEXTS_PER_CALL if space.is_text else _IMAGES_PER_BLOCK
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
        contents = (self._space.contents[at] for at in stored.tolist())
        if self._space.is_text:
            yield list(contents), len(stored)
            return
        for content in contents:
            image = np.asarray(content)[None]
            yield image.reshape(1, -1) if self._space.space.flatten else image, 1  # type: ignore[union-attr]

    def parse_row(self, row: Any) -> Any:
        """Return a position or a row by column."""
        return row

    def describe(self) -> list[dict[str, Any]]:
        """Return the name of the column, and whether it holds texts or images."""
        kind = "texts" if self._space.is_text else "images"
        return [{"name": self._space.column, "kind": kind, "has_missing": False}]

    def change(
        self, neighborhood: Any, facts: Sequence[Fact], edits: Mapping[str, Any], broken: Sequence[str]
    ) -> Changed:
        """Return the text, or another one in its place, without some units; or the image with hidden regions."""
        unknown = [name for name in broken if name not in neighborhood.names]
        if unknown:
            raise ParameterError(
                f"broken contains {unknown[0]!r:.60}, which is not a fact of this case. Use the names of this "
                "case's facts."
            )
        after: Any = self._space.at(dict(edits)) if edits else neighborhood
        realized = after.realize_flips(np.array([[name in broken for name in after.names]]))
        kept = {*after.names} - {*broken}
        values = {self._space.column: realized[0] if self._space.is_text else None}
        return Changed(realized, values, [fact.attribute not in kept for fact in facts])
