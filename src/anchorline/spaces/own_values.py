"""The values of a row that its literals do not state."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from anchorline.spaces.attributes import Attribute
    from anchorline.spaces.columns import Column


def own_values(neighborhood: Any) -> dict[str, str]:
    """Return the row's own values, as text, of the attributes whose literals leave them open.

    A literal whose value is kept states it. Literals of groups, and of attributes that are drawn anew inside an
    interval, do not. Spaces other than tables have no such attributes.
    """
    attributes: tuple[Attribute, ...] = getattr(neighborhood, "attributes", ())
    redraws = getattr(neighborhood, "within", None) == "redraw"
    return {
        attribute.name: _text(attribute, neighborhood.columns)
        for attribute in attributes
        if redraws or len(attribute.positions) > 1
    }


def _text(attribute: "Attribute", columns: "tuple[Column, ...]") -> str:
    parts = [columns[j] for j in attribute.positions]
    texts = [
        "missing" if part.missing[0] else encoding.value_text(part)
        for part, encoding in zip(parts, attribute.encodings, strict=True)
    ]
    if len(texts) == 1:
        return texts[0]
    names = [encoding.name for encoding in attribute.encodings]
    return ", ".join(f"{name} = {text}" for name, text in zip(names, texts, strict=True))
