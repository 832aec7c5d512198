"""The JSON schema of explanations says what the types say, and refuses what is not an explanation.

The schema is a file for readers in other languages. After a change of the types, write it again:
``PYTHONPATH=tests python tests/unit/result/test_schema.py``.
"""

import dataclasses
import enum
import json
import pathlib
import types
from collections.abc import Mapping
from importlib import resources
from typing import Any, Union, get_args, get_origin, get_type_hints

import jsonschema
import numpy as np
import pytest

from anchorline.facts import KINDS, Fact
from anchorline.result.explanation import (
    Explanation,
    Fit,
    Output,
    Proof,
    Queries,
    Share,
)
from helpers.made import INCOME, PRICE, fit, made_explanation, share

SCHEMA = resources.files("anchorline.result").joinpath("schemas/explanation-2.json")
PLAIN = {float: {"type": "number"}, int: {"type": "integer"}, str: {"type": "string"}, bool: {"type": "boolean"}}
PART = {"type": "number", "minimum": 0, "maximum": 1}
COUNT = {"type": "integer", "minimum": 0}
# What types cannot say: codes and ranges.
NARROWED = {
    (Share, "value"): PART,
    (Share, "low"): PART,
    (Share, "high"): PART,
    (Share, "n"): COUNT,
    (Fit, "r2"): {"type": "number", "maximum": 1},
    (Fit, "error"): {"type": "number", "minimum": 0},
    (Fit, "baseline"): {"type": "number", "minimum": 0},
    (Fact, "kind"): {"enum": list(KINDS)},
    (Output, "kind"): {"enum": ["class", "threshold", "label", "number"]},
    (Proof, "status"): {"enum": ["proven", "limit", "numerical"]},
    (Queries, "source"): {"enum": ["drawn", "listed", "leaves"]},
    (Queries, "searched"): COUNT,
    (Queries, "measured"): COUNT,
    (Queries, "total"): COUNT,
}


def schema_of(hint):  # noqa: PLR0911  one per type
    """Return the schema of a type."""
    origin, inner = get_origin(hint), get_args(hint)
    if hint is Any:
        return {}
    if origin in (Union, types.UnionType):
        return {"anyOf": [schema_of(inner[0]), {"type": "null"}]}
    if dataclasses.is_dataclass(hint):
        hints = get_type_hints(hint)
        names = sorted(field.name for field in dataclasses.fields(hint))
        parts = {name: NARROWED.get((hint, name), schema_of(hints[name])) for name in names}
        return {"type": "object", "additionalProperties": False, "required": names, "properties": parts}
    if hint is np.ndarray or (origin is tuple and inner[-1] is ...):
        return {"type": "array", "items": {"type": "number"} if hint is np.ndarray else schema_of(inner[0])}
    if origin is tuple:
        parts = [schema_of(each) for each in inner]
        return {"type": "array", "prefixItems": parts, "minItems": len(parts), "maxItems": len(parts)}
    if origin is not None and issubclass(origin, Mapping):
        return {"type": "object", "additionalProperties": schema_of(inner[1])}
    if issubclass(hint, enum.Enum):
        return {"enum": [member.value for member in hint]}
    return PLAIN[hint]


def expected():
    """Return the schema of an explanation as its types say it, with the head and the seal of every record."""
    body = schema_of(Explanation)
    head = {
        "kind": {"const": "explanation"},
        "schema_version": {"const": 2},
        "sha256": {"type": "string", "pattern": "^[0-9a-f]{64}$"},
    }
    body["properties"] = dict(sorted({**body["properties"], **head}.items()))
    body["required"] = sorted(body["properties"])
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "anchorline/explanation-2",
        "title": "An anchorline explanation: figures and codes",
        **body,
    }


def test_the_schema_says_what_the_types_say():
    assert json.loads(SCHEMA.read_text(encoding="utf-8")) == expected(), __doc__


@pytest.mark.parametrize(
    "explanation",
    [
        made_explanation(),
        made_explanation(holds=share(1), facts=(INCOME,), contributions=[0.3]),
        made_explanation(output=PRICE, prediction=4672, holds=None, fit=fit(0.8, 3600), rows=None),
    ],
)
def test_explanations_are_valid(explanation):
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.Draft202012Validator(schema).validate(json.loads(explanation.to_json()))


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("verdict",), "trustworthy"),
        (("all", "low"), -0.1),
        (("facts", 0, "kind"), "near"),
        (("extra",), 1),
        (("schema_version",), 1),
        (("sha256",), "0"),
        (("rows", "alike"), 1.5),
        (("base",), "0.61"),
    ],
)
def test_what_is_not_an_explanation_is_not_valid(place, value):
    body = json.loads(made_explanation().to_json())
    inner = body
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(body, json.loads(SCHEMA.read_text(encoding="utf-8")))


if __name__ == "__main__":
    path = pathlib.Path(str(SCHEMA))
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(expected(), indent=1) + "\n", encoding="utf-8")
