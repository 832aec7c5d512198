"""The static files of the page, read once at start; a requested name is never used as a path on disk."""

import hashlib
from dataclasses import dataclass
from importlib import resources

from fastapi import Response

_MEDIA_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}


@dataclass(frozen=True, slots=True)
class StaticFile:
    """The bytes and the media type of one file."""

    content: bytes
    media_type: str

    def response(self) -> Response:
        """Return the file with an ETag, which changes when an upgrade changes the file."""
        tag = hashlib.sha256(self.content).hexdigest()[:16]
        return Response(self.content, headers={"Content-Type": self.media_type, "ETag": f'"{tag}"'})


def static_files() -> dict[str, StaticFile]:
    """Return the files of ``static/`` by their names."""
    files = {}
    for file in resources.files("anchorline.next.studio").joinpath("static").iterdir():
        suffix = "." + file.name.rpartition(".")[2]
        if suffix in _MEDIA_TYPES:
            files[file.name] = StaticFile(file.read_bytes(), _MEDIA_TYPES[suffix])
    return files
