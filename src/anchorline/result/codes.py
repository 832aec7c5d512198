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
        """Read codes from a mapping, a frame, a CSV or JSON file, or entries; without any, there are none.

        A frame or CSV file has the columns attribute, code, text, and, if need be, when. A JSON file holds the
        mapping.
        """
        if isinstance(given, cls):
            return given
        is_map = (given is not None and not isinstance(given, Sequence)) or isinstance(given, str)
        if isinstance(given, str | os.PathLike):
            given = _read(Path(given))
        elif given is not None and not isinstance(given, Mapping | Sequence):
            given = _rows_of(given)
        entries = [*_entries_of(given)] if isinstance(given, Mapping) else given or ()
        if is_map and not entries:
            raise ParameterError(f"The codes are empty. {_EXAMPLE} Leave codes out for reasons without texts.")
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

    def check_one(self, columns: Sequence[str]) -> None:
        """Raise `ParameterError` if columns that are one reason have different codes."""
        first: dict[str, tuple[str, ...]] = {}
        for name, *entry in self.entries:
            other = first.setdefault(entry[0], (name, *entry)) if name in columns else (name, *entry)
            if other[1:] != (*entry,):
                raise ParameterError(
                    f"{', '.join(map(repr, columns))} say the same thing in this table, so that they are one "
                    f"reason, but the codes of {other[0]!r} and {name!r} for {entry[0] or 'any value'!r} differ. "
                    "Keep one of them."
                )

    def find(self, attribute: str, value: Any, direction: str | None) -> tuple[str, str] | None:
        """Return the code and the text for an attribute with this value; None if there is none."""
        return self.find_any({attribute: value}, direction)

    def find_any(self, values: Mapping[str, Any], direction: str | None) -> tuple[str, str] | None:
        """Return the code and the text for columns with these values, which are one reason."""
        known = {(name, when): (code, text) for name, when, code, text in self.entries}
        own = [(name, "missing" if value is None else f"= {_text(value)}") for name, value in values.items()]
        whens = [*own, *((name, when) for when in (direction or "", "") for name in values)]
        return next((known[each] for each in whens if each in known), None)


def _text(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _entries_of(given: Mapping[Any, Any]) -> Iterator[Sequence[Any]]:
    for attribute, own in given.items():
        for when, pair in (own if isinstance(own, Mapping) else {"": own}).items():
            if isinstance(pair, str) or not isinstance(pair, Sequence) or len(pair) != 2:
                raise ParameterError(f"The code of {attribute!r} is {pair!r}, not a code and a text. {_EXAMPLE}")
            yield attribute, when, *pair


def _rows_of(given: Any) -> Any:
    """Return the entries in a frame; other things are returned as they are."""
    import narwhals as nw

    frame = nw.from_native(given, eager_only=True, pass_through=True)
    if not isinstance(frame, nw.DataFrame):
        return given
    _check_columns("a frame", frame.columns)
    columns = {
        name: ["" if is_null else value for value, is_null in zip(frame[name], frame[name].is_null(), strict=True)]
        for name in frame.columns
    }
    whens = columns.get("when", [""] * len(frame))
    return list(zip(columns["attribute"], whens, columns["code"], columns["text"], strict=True))


def _check_columns(what: str, columns: Collection[str], how: str = "") -> None:
    if not {"attribute", "code", "text"} <= {*columns}:
        raise ParameterError(
            f"codes is {what} with the columns {', '.join(map(repr, columns))}, but it must have attribute, code, "
            f"text and, if need be, when{how}."
        )


def _read(path: Path) -> Any:
    try:
        text = path.read_text(encoding="utf-8-sig")
        if path.suffix.lower() == ".json":
            return json.loads(text)
        reader = csv.DictReader(io.StringIO(text, newline=""))
        _check_columns(repr(str(path)), reader.fieldnames or (), ", separated by commas")
        return [(row["attribute"], row.get("when") or "", row["code"], row["text"]) for row in reader]
    except ParameterError:
        raise
    except (OSError, ValueError) as error:
        why = f"which cannot be read ({type(error).__name__}: {error})"
        if isinstance(error, OSError):
            why = "but there is no such file" if not path.exists() else "but that is not a file that can be read"
        raise ParameterError(
            f"codes is {str(path)!r}, {why}. Pass a CSV file with the columns attribute, code, text and, if need "
            "be, when; or a JSON file."
        ) from error
