"""The user's map from attributes to reason codes and texts, which is read once and identified by its hash."""

import csv
import hashlib
import io
import json
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from anchorline.errors import ParameterError
from anchorline.result.json_format import canonical_json

_DIRECTIONS = ("low", "high", "missing")
_EXAMPLE = (
    "Type codes={'income': ('R01', 'Income too low')}, or {'age': {'low': ('R02', 'Too young'), 'high': ('R03', "
    "'Too old')}}."
)
Entry = tuple[str, str, str, str]


@dataclass(frozen=True, slots=True)
class Codes:
    """Which code and text stand for an attribute: entries (attribute, when, code, text), sorted.

    ``when`` is "" (always), "low" or "high" (the value is too low or too high), "missing", or "= value". The most
    special entry is taken: first that of the value, then that of the direction, then the one for always.

    Examples
    --------
    >>> codes = Codes.of({"age": {"low": ("R02", "Too young"), "": ("R03", "Age")}})
    >>> codes.find("age", 19, "low"), codes.find("age", 70, "high"), codes.find("income", 9, "low")
    (('R02', 'Too young'), ('R03', 'Age'), None)
    """

    entries: tuple[Entry, ...]

    def __post_init__(self) -> None:
        seen = set()
        for entry in self.entries:
            attribute, when, code, text = entry
            if not all(isinstance(part, str) for part in entry) or not (
                attribute and code.strip() and text.strip()
            ):
                raise ParameterError(f"The code of {attribute!r} is {(code, text)!r}, not two texts. {_EXAMPLE}")
            if when and when not in _DIRECTIONS and not when.startswith("= "):
                raise ParameterError(
                    f"The codes of {attribute!r} are for {when!r}, but they must be for 'low', 'high', 'missing' "
                    f"or a value, such as '= {when}'. {_EXAMPLE}"
                )
            if (attribute, when) in seen:
                raise ParameterError(f"{attribute!r} has two codes for {when or 'any value'!r}. Keep one of them.")
            seen.add((attribute, when))

    @classmethod
    def of(cls, given: Any) -> "Codes":
        """Read codes from a mapping, from a CSV or JSON file, or from entries; without any, there are none.

        A CSV file has the columns attribute, code, text, and, if need be, when. A JSON file holds the mapping.
        """
        if isinstance(given, cls):
            return given
        if isinstance(given, str | os.PathLike):
            given = _read(Path(given))
        entries = _entries_of(given) if isinstance(given, Mapping) else given or ()
        try:
            return cls(tuple(sorted((str(a), str(when), code, text) for a, when, code, text in entries)))
        except (TypeError, ValueError) as error:
            if isinstance(error, ParameterError):
                raise
            raise ParameterError(f"codes is {given!r:.80}, which does not map attributes. {_EXAMPLE}") from error

    @property
    def sha256(self) -> str:
        """The hash of the map, whatever it was read from."""
        text = canonical_json([list(entry) for entry in self.entries])
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()

    @property
    def attributes(self) -> tuple[str, ...]:
        """The attributes that have a code."""
        return tuple(dict.fromkeys(entry[0] for entry in self.entries))

    def check(self, known: Collection[str]) -> None:
        """Raise `ParameterError` if there are codes for attributes that do not exist."""
        unknown = [name for name in self.attributes if name not in known]
        if unknown:
            raise ParameterError(
                f"There are codes for {', '.join(map(repr, unknown))}, but the attributes are "
                f"{', '.join(map(repr, known))}. Correct the names; a group of columns has one code."
            )

    def find(self, attribute: str, value: Any, direction: str | None) -> tuple[str, str] | None:
        """Return the code and the text for an attribute with this value; None if there is none."""
        own = {when: (code, text) for name, when, code, text in self.entries if name == attribute}
        whens = ("missing" if value is None else f"= {_text(value)}", direction or "", "")
        return next((own[when] for when in whens if when in own), None)


def _text(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _entries_of(given: Mapping[Any, Any]) -> Iterator[Sequence[Any]]:
    for attribute, own in given.items():
        for when, pair in (own if isinstance(own, Mapping) else {"": own}).items():
            if isinstance(pair, str) or not isinstance(pair, Sequence) or len(pair) != 2:
                raise ParameterError(f"The code of {attribute!r} is {pair!r}, not a code and a text. {_EXAMPLE}")
            yield attribute, when, *pair


def _read(path: Path) -> Any:
    try:
        text = path.read_text(encoding="utf-8-sig")
        if path.suffix.lower() == ".json":
            return json.loads(text)
        rows = list(csv.DictReader(io.StringIO(text, newline="")))
        return [(row["attribute"], row.get("when") or "", row["code"], row["text"]) for row in rows]
    except (OSError, ValueError, KeyError) as error:
        raise ParameterError(
            f"codes is {str(path)!r}, which cannot be read ({type(error).__name__}: {error}). Pass a CSV file "
            "with the columns attribute, code, text and, if need be, when; or a JSON file."
        ) from error
