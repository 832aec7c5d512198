"""The JSON form of results, schema 2: figures and codes, sealed by a SHA-256, and checked when it is read.

What a record holds is said once, by the types of its dataclass; both directions follow them. A seal is the SHA-256
of the rest of a record in the canonical form of RFC 8785, so that it can be checked in any language. Integers
beyond 2^53 lie outside the RFC. They keep all their digits, so that a changed digit breaks the seal.
"""

import dataclasses
import enum
import functools
import hashlib
import json
import math
import re
import sys
import types
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, Self, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from anchorline.errors import CertificateError, FormatError, TamperedError

SCHEMA_VERSION = 2
MAX_CHARACTERS = 64 * 2**20
_LARGEST = int(sys.float_info.max)
_PACKAGES = ("anchorline", "numpy")  # whose versions are recorded; no other text in a record is free
_VERSION = r"[0-9]+(\.[0-9]+){0,3}((a|b|rc|\.post|\.dev)[0-9]+){0,3}(\+[0-9a-f.]{1,20})?"

_STRING = re.compile(r'("[^"\\]*(?:\\.[^"\\]*)*")')
_WHOLE = re.compile(r"(?<=\d)\.0(?![\de])")
_NEGATIVE_ZERO = re.compile(r"-0(?![\d.])")
_EXPONENTIAL = re.compile(r"\d[\d.]*e[+-]\d+")

_T = TypeVar("_T")
_NAMES = {float: "a finite number", int: "a whole number", str: "a text", bool: "true or false"}


def write_record(kind: str, record: Any) -> str:
    """Return a dataclass as sealed JSON with sorted keys; floats round-trip exactly.

    Examples
    --------
    >>> from anchorline.result.explanation import Rows
    >>> text = write_record("rows", Rows(with_facts=3, alike=2, looked_at=9))
    >>> text[:52], read_record("rows", Rows, text)
    ('{"alike":2,"kind":"rows","looked_at":9,"schema_versi', Rows(with_facts=3, alike=2, looked_at=9))
    """
    body = {"kind": kind, "schema_version": SCHEMA_VERSION, **_plain(record, type(record), kind)}
    whole = {**body, "sha256": _digest(body)}
    return json.dumps(whole, sort_keys=True, separators=(",", ":"), allow_nan=False, default=dict)


def read_record(kind: str, cls: type[_T], text: str) -> _T:
    """Return what `write_record` wrote; `FormatError` for anything else, `TamperedError` if it was changed."""
    if not isinstance(text, str):
        raise FormatError(
            f"The input is of type {type(text).__name__}, but it must be the text that `to_json` returns."
        )
    if len(text) > MAX_CHARACTERS:
        raise FormatError(f"The text has {len(text)} characters; the limit is {MAX_CHARACTERS}.")
    try:
        body = json.loads(
            text, object_pairs_hook=_without_repetition, parse_constant=_refuse_constant, parse_int=_whole
        )
        _check_head(body, kind)
        claimed = body.pop("sha256", None)
        if claimed != _digest(body):
            raise TamperedError("The SHA-256 does not match the text, which was changed or cut.")
        del body["kind"], body["schema_version"]
        record: _T = _read(body, cls, f"the {kind}")
    except FormatError:
        raise
    except (ValueError, RecursionError, OverflowError) as error:
        raise FormatError(f"The text is not JSON: {error}") from error
    return record


class Record(ABC):  # noqa: PLW1641  an explanation holds arrays, so that nobody should look it up by its hash
    """A read-only result without contradictions. Results are equal if their JSON is, and are pickled as JSON.

    A subclass is a frozen dataclass without ``eq``, and names its kind.
    """

    _KIND: ClassVar[str]

    versions: Mapping[str, str]

    def __post_init__(self) -> None:
        for name, make in _read_only_fields(type(self)):
            object.__setattr__(self, name, make(getattr(self, name)))
        for name, version in self.versions.items():
            if name not in _PACKAGES or not re.fullmatch(_VERSION, version):
                raise CertificateError(f"The version of {_shown(name)} is {_shown(version)}.")
        for contradiction in (*_unusable(self), *self._contradictions()):
            raise CertificateError(contradiction)

    @abstractmethod
    def _contradictions(self) -> Iterator[str]:
        """Yield what figures contradict each other."""

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self).from_json, (self.to_json(),)  # exact, and frozen when read

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self)) and self.to_json() == other.to_json()

    def __str__(self) -> str:
        from anchorline.render.text import text_of

        return text_of(self)

    def to_json(self) -> str:
        """Return sealed JSON with sorted keys, of figures and codes; floats round-trip exactly."""
        return write_record(self._KIND, self)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read what `to_json` wrote; `FormatError` if it is anything else, `TamperedError` if it was changed."""
        try:
            return read_record(cls._KIND, cls, text)
        except CertificateError as error:
            raise TamperedError(f"Figures of the {cls._KIND} contradict each other: {error}") from error
        except (KeyError, TypeError, AttributeError) as error:
            raise FormatError(f"The text does not hold the figures of the {cls._KIND}: {error!r}") from error


def _unusable(record: Any) -> Iterator[str]:
    """Yield which free values that are shown as numbers or lists are none; what others are, verifiers find out."""
    for name, highest in (("sigma", math.inf), ("confidence", 1.0)):
        value = getattr(record, "settings", {}).get(name, 0.0)
        if not is_number(value) or not 0 <= value <= highest:
            yield f"The setting {name} is {_shown(value)}."
    space = getattr(record, "space", {})
    for columns in (space.get("held", ()), space.get("together", ()), *space.get("together", ())):
        if not isinstance(columns, tuple):
            yield f"The space has {_shown(columns)} instead of a list of columns."


def is_number(value: Any) -> bool:
    """Return whether a plain value is a finite number, and neither a boolean nor a text."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def is_plain(value: Any) -> bool:
    """Return whether a free value is one that readers are shown: None, a text, a boolean or a finite number."""
    return value is None or isinstance(value, str | bool) or is_number(value)


class Displayed(Record):
    """A result with a view for notebooks and a page of its own."""

    def _repr_html_(self) -> str:
        from anchorline.render.report import fragment

        return fragment(self)

    def to_html(self) -> str:
        """Return one page without scripts or network."""
        from anchorline.render.report import page

        return page(self)


def frozen(value: Any) -> Any:
    """Return a value that is read-only all the way down."""
    if isinstance(value, Mapping):
        return types.MappingProxyType({key: frozen(below) for key, below in value.items()})
    return tuple(frozen(below) for below in value) if isinstance(value, list | tuple) else value


def _frozen_array(values: Any) -> np.ndarray:
    array = np.array(values, dtype=np.float64)
    array.setflags(write=False)
    return array


@functools.cache
def _read_only_fields(cls: type) -> tuple[tuple[str, Callable[[Any], Any]], ...]:
    """Return the fields of arrays, mappings and free values, each with what makes its value read-only."""
    hints = _fields(cls).items()
    free = ((name, frozen) for name, hint in hints if hint is Any or get_origin(hint) is Mapping)
    return *free, *((name, _frozen_array) for name, hint in hints if hint is np.ndarray)


def _check_head(body: Any, kind: str) -> None:
    if not isinstance(body, dict):
        raise FormatError(f"The text holds {_shown(body)}, but it must be the object that `to_json` returns.")
    version = body.get("schema_version")
    if version == 1:
        raise FormatError(
            "The text was written by anchorline 0.1 (schema 1), which 0.2 does not read. Explain again."
        )
    if type(version) is not int or version != SCHEMA_VERSION:
        raise FormatError(f"schema_version is {_shown(version)}; this release reads {SCHEMA_VERSION}.")
    if body.get("kind") != kind:
        raise FormatError(f"kind is {_shown(body.get('kind'))}, but it must be {kind!r}.")


def _digest(body: Mapping[str, Any]) -> str:
    return hashlib.sha256(canonical_json(body).encode("utf-8", "surrogatepass")).hexdigest()


def _without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    body = dict(pairs)
    if len(body) < len(pairs):
        raise FormatError("A key occurs twice in the text, so that two readers could read different contents.")
    return body


def _refuse_constant(name: str) -> Any:
    raise FormatError(f"The text has the number {name}, but every number must be finite.")


def _whole(digits: str) -> int:
    """Return a whole number, if it is one as a float, too, which is what readers are shown."""
    number = int(digits)
    if not -_LARGEST <= number <= _LARGEST:
        raise FormatError(f"The text has a number of {len(digits)} digits, but every number must be finite.")
    return number


@functools.cache
def _fields(cls: type) -> dict[str, Any]:
    hints = get_type_hints(cls)
    return {field.name: hints[field.name] for field in dataclasses.fields(cls)}


def _plain(value: Any, hint: Any, where: str) -> Any:  # noqa: PLR0911  one per type
    """Return a value as JSON holds it; whole numbers in fields of floats become floats."""
    if value is None or hint is Any:
        return value
    if dataclasses.is_dataclass(hint):
        return {name: _plain(getattr(value, name), below, name) for name, below in _fields(hint).items()}  # type: ignore[arg-type]
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return _plain(value, inner[0], where)
    if origin is tuple:
        return [_plain(each, inner[0 if inner[-1] is ... else i], where) for i, each in enumerate(value)]
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, np.ndarray):
        return [_plain(each, float, where) for each in value.tolist()]
    if hint is float:
        if not math.isfinite(value):
            raise FormatError(f"{where} is {value!r}, but JSON holds finite numbers only.")
        return float(value)
    return value


def _read(value: Any, hint: Any, where: str) -> Any:  # noqa: PLR0911  one per type
    """Return a value of JSON as its type says, or raise `FormatError`."""
    if hint is Any:
        return value
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return None if value is None else _read(value, inner[0], where)
    if dataclasses.is_dataclass(hint):
        return _read_fields(value, hint, where)  # type: ignore[arg-type]
    if origin is tuple:
        _require(isinstance(value, list), value, where, "a list")
        if inner[-1] is not ...:
            _require(len(value) == len(inner), value, where, f"a list of {len(inner)}")
        return tuple(
            _read(each, inner[0 if inner[-1] is ... else i], f"{where}[{i}]") for i, each in enumerate(value)
        )
    if hint is np.ndarray:
        _require(isinstance(value, list), value, where, "a list of numbers")
        return np.array([_read(each, float, f"{where}[{i}]") for i, each in enumerate(value)], dtype=np.float64)
    if origin is not None and issubclass(origin, Mapping):
        _require(isinstance(value, dict), value, where, "an object")
        return {name: _read(each, inner[1], f"{where}.{name}") for name, each in value.items()}
    if issubclass(hint, enum.Enum):
        known = [member.value for member in hint]
        _require(value in known, value, where, f"one of {', '.join(known)}")
        return hint(value)
    is_right = isinstance(value, (int, float) if hint is float else hint) and isinstance(value, bool) == (
        hint is bool
    )
    _require(is_right and (hint is not float or math.isfinite(float(value))), value, where, _NAMES[hint])
    return float(value) if hint is float else value


def _read_fields(value: Any, cls: type, where: str) -> Any:
    _require(isinstance(value, dict), value, where, "an object")
    hints = _fields(cls)
    for name in sorted({*hints} - {*value}):
        raise FormatError(f"{where} lacks the key {name!r}.")
    for name in sorted({*value} - {*hints}):
        raise FormatError(f"{where} has the unexpected key {name!r}.")
    return cls(**{name: _read(value[name], hint, name) for name, hint in hints.items()})


def _require(holds: bool, value: Any, where: str, needed: str) -> None:
    if not holds:
        raise FormatError(f"{where} is {_shown(value)}, but it must be {needed}.")


def _shown(value: Any) -> str:
    return f"{value!r:.60}"


# The canonical form.


def canonical_json(body: Any) -> str:
    """Return the text that RFC 8785 assigns to a content: sorted keys, no spaces, numbers as in ECMAScript.

    >>> canonical_json({"b": [1.0, 1e-7, 1e21, -0.0], "a": "€"})
    '{"a":"€","b":[1,1e-7,1e+21,0]}'
    """
    text = _compact(body, sort_keys=True)
    if not text.isascii() and max(text) > "\uffff":
        text = _compact(_sorted(body), sort_keys=False)
    parts = _STRING.split(text)  # strings, which stay as they are, at odd places
    parts[::2] = map(_with_ecmascript_numbers, parts[::2])
    return "".join(parts)


def _compact(body: Any, *, sort_keys: bool) -> str:
    return json.dumps(
        body, sort_keys=sort_keys, separators=(",", ":"), allow_nan=False, ensure_ascii=False, default=dict
    )


def _sorted(body: Any) -> Any:
    """Sort keys by their UTF-16 code units, which differs from Python's order beyond the basic plane."""
    if isinstance(body, Mapping):
        keys = sorted(body, key=lambda key: key.encode("utf-16-be", "surrogatepass"))
        return {key: _sorted(body[key]) for key in keys}
    return [_sorted(item) for item in body] if isinstance(body, (list, tuple)) else body


def _with_ecmascript_numbers(part: str) -> str:
    """Rewrite floats from Python's notation, which differs in whole numbers, minus zero and exponents."""
    part = _NEGATIVE_ZERO.sub("0", _WHOLE.sub("", part))
    return _EXPONENTIAL.sub(lambda match: _ecmascript(match[0]), part) if "e" in part else part


def _ecmascript(token: str) -> str:
    """Return a positive number in exponential notation as ECMAScript writes it."""
    mantissa, _, exponent = token.partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits, point = (whole + fraction).rstrip("0"), len(whole) + int(exponent)  # digits before the point
    if 0 < point <= 21:
        return digits.ljust(point, "0")
    if -6 < point <= 0:
        return f"0.{'0' * -point}{digits}"
    return f"{digits[0]}{'.' + digits[1:] if digits[1:] else ''}e{point - 1:+d}"
