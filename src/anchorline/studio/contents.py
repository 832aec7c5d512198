"""Texts or images as cases: a space in which a position names a case, as it does in a table."""

from collections.abc import Mapping, Sequence
from typing import Any

from anchorline.errors import InstanceError, ParameterError
from anchorline.spaces.base import Neighborhood, Space
from anchorline.spaces.regions import Image
from anchorline.spaces.text import Text


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
