"""The page's files, read once: a name from outside is looked up among them, never on the disk."""

import hashlib
from dataclasses import dataclass
from importlib import resources

from fastapi import Response

_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}


@dataclass(frozen=True, slots=True)
class StaticFile:
    """A file's bytes and media type."""

    content: bytes
    media_type: str

    def response(self) -> Response:
        """The file, as it is now: a browser asks again after an upgrade."""
        tag = hashlib.sha256(self.content).hexdigest()[:16]
        return Response(self.content, headers={"Content-Type": self.media_type, "ETag": f'"{tag}"'})


def static_files() -> dict[str, StaticFile]:
    """Every file of ``static/`` by its name."""
    found = {}
    for file in resources.files("anchorline.studio").joinpath("static").iterdir():
        suffix = "." + file.name.rpartition(".")[2]
        if suffix in _TYPES:
            found[file.name] = StaticFile(file.read_bytes(), _TYPES[suffix])
    return found
