"""Makes the links of the README absolute where it leaves the repository, because package indexes show it alone."""

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_LINK = re.compile(r"(!?)(\[[^]]*\])\((?!https?:|#)([^)]+)\)")


def with_absolute_links(text: str, source: str) -> str:
    """Return the text with links to files below the address of the repository; pictures are its raw files."""
    return _LINK.sub(
        lambda link: f"{link[1]}{link[2]}({source}/{'raw' if link[1] else 'blob'}/main/{link[3]})", text
    )


class CustomMetadataHook(MetadataHookInterface):
    """Sets the readme of the package."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Add the README with absolute links to the metadata."""
        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {
            "content-type": "text/markdown",
            "text": with_absolute_links(text, metadata["urls"]["Source"]),
        }
