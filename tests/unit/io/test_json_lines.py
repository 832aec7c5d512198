"""Tables from JSON lines."""

import gzip
import math
import time

import pytest

from anchorline import errors
from anchorline.io import read_table
from helpers.tables import columns


def test_json_lines(file):
    text = '{"a": 1, "b": "x"}\n\n{"b": null, "c": true, "a": 2.5}\n{"a": NaN, "c": false}\n'
    assert columns(file("a.jsonl", text)) == {
        "a": [1.0, 2.5, None],
        "b": ["x", None, None],
        "c": [None, True, False],
    }
    assert columns(file("a.ndjson", '{"i": 1}\n{"i": 2}\n')) == {"i": [1, 2]}
    assert columns(file("a.jsonl", '{"i": Infinity, "t": "\\ud83d\\ude00"}\n')) == {
        "i": [math.inf],
        "t": ["\U0001f600"],
    }
    assert columns(file("a.jsonl.gz", gzip.compress(b'{"i": 1}\n'))) == {"i": [1]}


def test_many_json_lines_are_read_in_no_time(file):
    path = file("a.jsonl", '{"a": 1, "b": 2, "c": 3}\n' * 50_000)
    start = time.process_time()
    assert len(read_table(path)) == 50_000
    assert time.process_time() - start < 3


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ('{"a": 1}\n[1]\n', "line 2 is a list, but it must be an object"),
        ('{"a": 1}\n{"a": {"b": 1}}\n', "line 2: 'a' is a dict, but it must be a plain value"),
        ('{"a": 1}\n{"a": "x"}\n', "column 'a' holds int and str"),
        ('{"a": 1, "a": 2}\n', "appears twice"),
        ('{"a": \n', "line 1 is not valid JSON"),
        ("{}\n", "has no columns"),
        ('{"a":' + "[" * 100_000, "line 1 is not valid JSON"),
        (
            '{"a": 1}\n{"a": 1' + "0" * 400 + "}\n",
            r"line 2: 10{19}\.\.\. \(401 characters\) is too large a number",
        ),
        ('{"a": 1' + "0" * 5000 + "}\n", "line 1: 1.* is too large a number"),
        ('{"a": 0.5}\n{"a": -1e400}\n', "line 2: -1e400 is too large a number"),
        ('{"b": "x"}\n{"a": "x\\ud800"}\n', r"line 2: '\\ud800' is half a character"),
        ('{"\\udc00": 1}\n', r"line 1: '\\udc00' is half a character"),
    ],
)
def test_what_is_no_json_lines(file, text, match):
    with pytest.raises(errors.TableFileError, match=match):
        read_table(file("a.jsonl", text))
