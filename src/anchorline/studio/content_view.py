"""The explained text or image as JSON for the page, which marks the words or regions of a sum in it."""

import base64
import re
from typing import Any

from anchorline.render.characters import printable
from anchorline.render.highlight import is_text
from anchorline.render.regions import is_image
from anchorline.result.explanation import Explanation
from anchorline.spaces.picture import shown_picture
from anchorline.spaces.text import literals_of


def content_view(explanation: Explanation) -> dict[str, Any] | None:
    """Return a text in pieces, or a small copy of an image with its regions; None for other instances.

    Pieces at odd places belong to ``literals``, in order. An image has three bytes per pixel, and ``runs`` are
    [literal, length, literal, length, ...].
    """
    if is_text(explanation):
        pieces = list(explanation.instance)
        shown = [_visible(piece) for piece in pieces]
        return {"kind": "text", "pieces": shown, "literals": literals_of(pieces, explanation.literals)}
    if is_image(explanation):
        rgb, _ = shown_picture(explanation.instance[3:])
        height, width, _ = rgb.shape
        pixels = base64.b64encode(rgb.tobytes()).decode()
        return {"kind": "image", "width": width, "height": height, "rgb": pixels, "runs": explanation.instance[4]}
    return None


def _visible(text: str) -> str:
    """Return a text with control codes visible; line ends and tabs stay."""
    parts = re.split("([\n\t])", text.replace("\r\n", "\n"))
    return "".join(part if part in ("\n", "\t") else printable(part) for part in parts)
