"""Explanation: frozen, self-checking, and a JSON that comes back bit for bit or not at all."""

import dataclasses
import functools
import hashlib
import json
import math
import pickle

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import anchorline as al
from anchorline.errors import CertificateError, FormatError
from anchorline.result import json_format as jsonform

DERANDOMIZED = settings(max_examples=150, deadline=None, derandomize=True, database=None)


def model(z):
    return 0.5 * z[:, 0] - 0.25 * z[:, 1] * z[:, 2]


@functools.cache
def explained(**options):
    return al.explain(model, [1, -1, 1], k=3, names=["income", ("debt", "no debt"), "owner"], **options)


@functools.cache
def kinds():
    """Explanations of every kind we can make: enumerated, drawn, limited, heuristic, labels, degenerate."""
    x = [1, -1] * 8
    return {
        "enumerated": explained(),
        "uncertified": explained(n_certify=0),
        "drawn": al.explain(model, x, n_samples=300),
        "limit": al.explain(model, x, n_samples=300, node_limit=0),
        "iht": al.explain(model, x, n_samples=300, solver="iht"),
        "label": al.explain(lambda z: np.where(z[:, 0] > 0, "yes", "no"), x, task="label", n_samples=300),
        "range": al.explain(lambda z: 1e5 + 1e4 * z[:, 0], x, output_range=(0, 3e5), n_samples=300),
        "clipped": al.explain(lambda z: z[:, :3].sum(axis=1) / 2, [1, -1, 1]),
        "degenerate": al.explain(lambda z: np.zeros(len(z)), x, n_samples=300),
        "no box": explained(box=None),
    }


def changed(e, contributions, intercept=0.0, **fields):
    """The explanation with other numbers; the prediction is their sum."""
    contributions = np.array(contributions, dtype=float)
    d = len(contributions)
    same = {
        "contributions": contributions,
        "intercept": float(intercept),
        "prediction": float(intercept + contributions.sum()),
        "literals": tuple(al.Literal(f"x{j}", f"x{j} = +1") for j in range(d)),
        "instance": (1,) * d,
    }
    n_facts = int(np.count_nonzero(contributions))
    residual = abs(same["intercept"] + contributions.sum() - same["prediction"])
    counted = {"n_facts": n_facts, "n_terms": n_facts + (intercept != 0), "anchoring_residual": float(residual)}
    same["certificate"] = dataclasses.replace(e.certificate, **counted)
    return dataclasses.replace(e, **same | fields)


def same_bits(one, other):
    return np.float64(one).tobytes() == np.float64(other).tobytes()


# --- what it says ------------------------------------------------------------------------------------


def test_terms_are_the_contributions_largest_first():
    e = changed(explained(), [0.1, 0.0, -0.5, 0.25, 0.1], 0.05)
    assert [(term.index, term.contribution) for term in e.terms] == [(2, -0.5), (3, 0.25), (0, 0.1), (4, 0.1)]
    assert [term.literal.name for term in e.terms] == ["x2", "x3", "x0", "x4"]
    assert e.support.tolist() == [0, 2, 3, 4]


def test_scaled_is_on_the_scale_of_the_solver():
    e = al.explain(lambda z: 100 + 50 * z[:, 0], [1, -1], k=2, output_range=(0, 200), n_certify=0)
    assert e.half_range == 100
    np.testing.assert_allclose(e.scaled * 100, e.contributions, rtol=1e-15)
    assert np.abs(e.scaled).max() <= 1 + 1e-9


def test_coef_times_the_instance_is_the_contribution():
    e = changed(explained(), [0.5, -0.25, 0.125], instance=(1, -1, -1))
    assert e.coef.tolist() == [0.5, 0.25, -0.125]
    assert e.coef @ e.instance + e.intercept == e.prediction


def test_what_does_not_add_up_is_no_explanation():
    e = explained()
    with pytest.raises(CertificateError, match="miss the prediction"):
        dataclasses.replace(e, prediction=e.prediction + 1e-9)
    with pytest.raises(CertificateError, match="miss the prediction"):
        dataclasses.replace(e, intercept=math.nan)
    with pytest.raises(CertificateError, match="3 contributions for 2 literals"):
        dataclasses.replace(e, literals=e.literals[:2])


def test_repr_is_short():
    assert repr(explained()).startswith("Explanation(f(x) = 0.75, ")
    assert len(repr(explained())) < 100


# --- frozen ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["enumerated", "drawn"])
def test_nothing_can_be_set(kind):
    e = kinds()[kind]
    for item in (e, e.certificate, e.terms[0], e.literals[0]):
        for field in dataclasses.fields(item):
            with pytest.raises(dataclasses.FrozenInstanceError):
                setattr(item, field.name, None)


def test_arrays_are_read_only():
    with pytest.raises(ValueError, match="read-only"):
        explained().contributions[0] = 1.0


def test_arrays_are_its_own():
    numbers = np.array([0.5, 0.25])
    e = changed(explained(), numbers)
    numbers[0] = 9
    assert e.contributions.tolist() == [0.5, 0.25]
    for name in ("scaled", "coef", "support"):
        try:
            getattr(e, name)[0] = 9
        except ValueError:
            continue
    assert e.contributions.tolist() == [0.5, 0.25]


def test_parameters_cannot_be_changed():
    e = changed(explained(), [0.5])
    before = e.to_json()
    try:
        e.parameters["k"] = 99
    except TypeError:
        pass
    else:
        e.parameters["k"] = 3  # others use this explanation too
        pytest.fail("it could be set")
    assert e.to_json() == before


def test_pickles():
    for e in kinds().values():
        again = pickle.loads(pickle.dumps(e))
        assert again.to_json() == e.to_json()
        assert again.certificate == e.certificate


def test_pickled_explanations_stay_frozen():
    assert not pickle.loads(pickle.dumps(explained())).contributions.flags.writeable


# --- the round trip ----------------------------------------------------------------------------------

KINDS = ["enumerated", "uncertified", "drawn", "limit", "iht", "label", "range", "clipped", "degenerate", "no box"]


@pytest.mark.parametrize("kind", KINDS)
def test_round_trip(kind):
    e = kinds()[kind]
    text = e.to_json()
    again = al.Explanation.from_json(text)
    assert again.to_json() == text
    assert again.contributions.tobytes() == e.contributions.tobytes()
    for name in ("prediction", "intercept", "half_range"):
        assert same_bits(getattr(again, name), getattr(e, name))
    for name in ("literals", "output", "instance", "certificate", "terms"):
        assert getattr(again, name) == getattr(e, name)
    assert dict(again.parameters) == dict(e.parameters)
    assert str(again) == str(e)


FLOATS = st.floats(allow_nan=False, allow_infinity=False)


@given(contributions=st.lists(FLOATS, min_size=1, max_size=6), intercept=FLOATS)
@DERANDOMIZED
def test_every_float_comes_back(contributions, intercept):
    with np.errstate(over="ignore", invalid="ignore"):
        total = intercept + np.array(contributions).sum()
    assume(np.isfinite(total))
    e = changed(explained(), contributions, intercept)
    again = al.Explanation.from_json(e.to_json())
    assert again.contributions.tobytes() == e.contributions.tobytes()
    assert same_bits(again.intercept, intercept)
    assert same_bits(again.prediction, e.prediction)
    assert again.to_json() == e.to_json()


@pytest.mark.parametrize(
    "value", [5e-324, -5e-324, 2.2250738585072014e-308, 1.7976931348623157e308, 0.1 + 0.2, 1e22, 1e23]
)
def test_floats_at_the_edges_come_back(value):
    e = changed(explained(), [value, -0.0], half_range=abs(value))
    again = al.Explanation.from_json(e.to_json())
    assert again.contributions.tobytes() == e.contributions.tobytes()  # the sign of -0.0 too
    assert same_bits(again.prediction, value)
    assert same_bits(again.half_range, abs(value))


HOSTILE = [
    "",
    '"',
    "\\",
    '\\"},{"',
    "\x00\x01\x1f\x7f",
    "\u2028\u2029",
    "</script><!--",
    "Größe ≥ 3",
    "年収",
    "🙂👩‍👩‍👧",
    "\u202eevil",
    "e\u0301 is not \xe9",
    "NaN",
    "null",
    "__proto__",
    "a" * 10_000,
]


@pytest.mark.parametrize("text", HOSTILE)
def test_every_text_comes_back(text):
    e = changed(explained(), [0.5], literals=(al.Literal(text, text + "!"),), output=text)
    again = al.Explanation.from_json(e.to_json())
    assert again.literals == (al.Literal(text, text + "!"),)
    assert again.output == text
    json.loads(e.to_json().encode())  # it is UTF-8, and JSON for others too


@given(text=st.text())
@DERANDOMIZED
def test_any_text_comes_back(text):
    e = changed(explained(), [0.5], literals=(al.Literal("a", text),))
    assert al.Explanation.from_json(e.to_json()).literals[0].text == text


def test_a_lone_surrogate_comes_back_or_is_refused():
    try:
        e = al.explain(model, [1, -1, 1], names=["\udce9t\udce9", "b", "c"])
    except al.AnchorlineError:
        return
    assert al.Explanation.from_json(e.to_json()).literals == e.literals


# --- the canonical form ------------------------------------------------------------------------------


def canonical(body):
    """Written again on purpose; the bodies below are ASCII."""
    return json.dumps(body, sort_keys=True, separators=(",", ":"), allow_nan=False)


def signed(body):
    return canonical(body | {"sha256": hashlib.sha256(canonical(body).encode()).hexdigest()})


def body_of(e):
    body = json.loads(e.to_json())
    del body["sha256"]
    return body


@pytest.mark.parametrize("kind", KINDS)
def test_one_sha256_over_the_canonical_form(kind):
    e = kinds()[kind]
    assert e.to_json() == signed(body_of(e))
    assert json.loads(e.to_json())["schema_version"] == 1


@pytest.mark.parametrize("kind", KINDS)
def test_the_json_is_one_of_the_schema(kind):
    schema = jsonform.schema()
    jsonschema = pytest.importorskip("jsonschema")
    validator = jsonschema.validators.validator_for(schema)
    validator.check_schema(schema)
    validator = validator(schema)
    validator.validate(json.loads(kinds()[kind].to_json()))
    body = json.loads(kinds()[kind].to_json())
    for name in body:  # a schema that allows anything proves nothing
        assert not validator.is_valid({key: value for key, value in body.items() if key != name}), f"no {name}"
    for name, wrong in [
        ("prediction", "0.5"),
        ("contributions", ["a"]),
        ("schema_version", 2),
        ("certificate", []),
    ]:
        assert not validator.is_valid(body | {name: wrong}), name


# --- changed, cut, or something else -----------------------------------------------------------------


def refused_or_the_same(text, original):
    """Nothing but a FormatError, unless the text still means what it meant (1.0 for 1e0)."""
    try:
        again = al.Explanation.from_json(text)
    except FormatError:
        return True
    assert again.to_json() == original, text
    return False


def test_any_changed_character_is_noticed():
    text = explained(n_certify=0).to_json()
    n_refused, n_tried = 0, 0
    for i, old in enumerate(text):
        for new in {"0", "7", "e", '"', "}", " ", chr(ord(old) ^ 1)} - {old}:
            n_refused += refused_or_the_same(text[:i] + new + text[i + 1 :], text)
            n_tried += 1
    assert n_refused > 0.99 * n_tried


def test_any_lost_or_added_character_is_noticed():
    text = explained(n_certify=0).to_json()
    for i in range(len(text)):
        refused_or_the_same(text[:i] + text[i + 1 :], text)
        refused_or_the_same(text[:i] + "1" + text[i:], text)
        assert refused_or_the_same(text[:i], text)  # cut


def leaves(value, path=()):
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from leaves(inner, (*path, key))
    elif isinstance(value, list):
        for i, inner in enumerate(value):
            yield from leaves(inner, (*path, i))
    else:
        yield path, value


def other_than(value):
    if isinstance(value, bool):
        return not value
    if isinstance(value, str):
        return value + "x"
    return 1 if value is None else value + 1 + abs(value)


@pytest.mark.parametrize("kind", ["enumerated", "drawn", "label"])
def test_any_changed_field_is_noticed(kind):
    original = json.loads(kinds()[kind].to_json())
    paths = list(leaves(original))
    assert len(paths) > 30
    for path, value in paths:
        body = json.loads(canonical(original))
        inner = body
        for key in path[:-1]:
            inner = inner[key]
        inner[path[-1]] = other_than(value)
        with pytest.raises(FormatError):
            al.Explanation.from_json(canonical(body))


@pytest.mark.parametrize("name", list(json.loads(explained().to_json())))
def test_any_lost_field_is_noticed(name):
    body = json.loads(explained().to_json())
    del body[name]
    with pytest.raises(FormatError):
        al.Explanation.from_json(canonical(body))
    if name not in ("sha256", "schema_version"):
        del body["sha256"]
        with pytest.raises(FormatError):  # signed again, still no explanation
            al.Explanation.from_json(signed(body))


def test_a_key_given_twice_is_noticed():
    text = explained().to_json()
    with pytest.raises(FormatError):
        al.Explanation.from_json('{"prediction":999,' + text[1:])


def lie(*path, value):
    """Change one field and sign again: the digest is right, the content must be checked all the same."""
    body = body_of(explained())
    inner = body
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return signed(body)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (["schema_version"], 0),
        (["schema_version"], 2),
        (["schema_version"], "1"),
        (["schema_version"], None),
        (["prediction"], 0.5),
        (["prediction"], None),
        (["prediction"], []),
        (["intercept"], 1e-9),
        (["contributions"], [0.5, 0.25]),
        (["contributions"], [None, 0, 0]),
        (["contributions"], {}),
        (["contributions"], "abc"),
        (["literals"], [["a", "b"]]),
        (["literals"], [["a"], ["b"], ["c"]]),
        (["literals"], 5),
        (["half_range"], None),
        (["instance"], 5),
        (["certificate"], []),
        (["certificate"], {}),
        (["certificate", "status"], "BEST"),
        (["certificate", "status"], ["OPTIMAL"]),
        (["schema_version"], True),
        (["schema_version"], 1.0),
        (["prediction"], "0.75"),
        (["contributions"], [["0.5"], ["0"], ["0.25"]]),
        (["prediction"], 10**400),  # a raw OverflowError
        (["contributions"], [10**400, 0, 0]),  # a raw OverflowError
        (["output"], 5),
        (["half_range"], 0),
        (["half_range"], -1),
        (["literals"], [[1, 2], [3, 4], [5, 6]]),
        (["literals"], ["ab", "cd", "ef"]),
        (["instance"], "abc"),
        (["instance"], [1]),
        (["parameters"], [1]),
        (["certificate", "objective"], "small"),
        (["certificate", "objective"], -1.0),
        (["certificate", "lower_bound"], 5.0),  # above the objective
        (["certificate", "n_terms"], -5),
        (["certificate", "n_terms"], 1),  # there are more
        (["certificate", "exhaustive"], "no"),
        (["certificate", "anchoring_residual"], 7.0),
    ],
    ids=lambda value: str(value)[:30],
)
def test_a_signed_lie_is_noticed(path, value):
    with pytest.raises(FormatError):
        al.Explanation.from_json(lie(*path, value=value))


def test_signing_again_alone_changes_nothing():
    """So that the tests above fail for the lie, not for the signature."""
    body = body_of(explained())
    assert al.Explanation.from_json(signed(body)).to_json() == explained().to_json()


def test_another_schema_version_is_told():
    with pytest.raises(FormatError, match=r"schema_version is 2.*reads 1"):
        al.Explanation.from_json(lie("schema_version", value=2))


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_no_nan_and_no_infinity(number):
    text = explained().to_json().replace('"half_range":1.0', f'"half_range":{number}')
    assert number in text
    with pytest.raises(FormatError):
        al.Explanation.from_json(text)


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_nan_is_never_written(value):
    with pytest.raises(ValueError, match="JSON"):
        dataclasses.replace(explained(), half_range=value).to_json()


@pytest.mark.parametrize(
    "text", ["", " ", "null", "[]", "1", '"a"', "{}", "{", "explanation", "\ufeff{}", "\x00", "{]"]
)
def test_other_texts(text):
    with pytest.raises(FormatError):
        al.Explanation.from_json(text)


@pytest.mark.parametrize("thing", [None, b"{}", 5, {}, bytearray(b"{}")])
def test_other_things(thing):
    with pytest.raises(FormatError, match=f"Got {type(thing).__name__}.*to_json"):
        al.Explanation.from_json(thing)


def test_texts_that_are_too_long_are_not_read():
    text = " " * (64 * 2**20 + 1)
    with pytest.raises(FormatError, match="67108865 characters; at most 67108864"):
        al.Explanation.from_json(text)


def nested(depth):
    return explained().to_json()[:-1] + ',"z":' + "[" * depth + "]" * depth + "}"


@pytest.mark.parametrize("depth", [1, 100, 5_000, 200_000])
def test_deep_texts_are_refused(depth):
    with pytest.raises(FormatError):
        al.Explanation.from_json(nested(depth))
    with pytest.raises(FormatError):
        al.Explanation.from_json('{"a":' * depth)


def test_texts_of_every_depth_are_refused():
    for depth in range(600, 1100):
        with pytest.raises(FormatError):
            al.Explanation.from_json(nested(depth))


# --- frames ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", ["pandas", "polars", "pyarrow"])
def test_to_frame(backend):
    library = pytest.importorskip(backend)
    e = kinds()["drawn"]
    frame = e.to_frame(backend)
    assert isinstance(frame, library.Table if backend == "pyarrow" else library.DataFrame)
    columns = frame.to_pydict() if backend == "pyarrow" else {name: list(frame[name]) for name in frame.columns}
    assert list(columns) == ["literal", "contribution", "index"]
    assert columns["literal"] == [term.literal.text for term in e.terms] + ["(intercept)"]
    assert columns["contribution"] == [term.contribution for term in e.terms] + [e.intercept]
    assert columns["index"] == [term.index for term in e.terms] + [-1]
    assert math.fsum(columns["contribution"]) == pytest.approx(e.prediction, abs=1e-12)


def test_to_frame_is_pandas_unless_told():
    pandas = pytest.importorskip("pandas")
    assert isinstance(explained().to_frame(), pandas.DataFrame)


def test_to_frame_of_nothing():
    frame = kinds()["degenerate"].to_frame("polars")
    assert frame.rows() == [("(intercept)", 0.0, -1)]


@pytest.mark.parametrize("label", [math.inf, -math.inf])
def test_a_label_of_infinity_can_be_written(label):
    for classes in (None, [label, 0.0]):
        explainer = al.Explainer(
            lambda z: np.where(z[:, 0] > 0, label, 0.0), al.Hypercube(), task="label", classes=classes
        )
        e = explainer.explain([1, 1, 1])
        assert al.Explanation.from_json(e.to_json()) == e
        assert pickle.loads(pickle.dumps(e)) == e


def test_points_of_a_frontier_and_neighbors_stay_read_only():
    explainer = al.Explainer(lambda z: 0.5 * z[:, 0] + 0.2 * z[:, 1], al.Hypercube())
    e = explainer.explain([1, 1, 1])
    point, sample = explainer.frontier([1, 1, 1], ks=[2]).points[0], explainer.neighbors(e, 50)
    for kept in (point, pickle.loads(pickle.dumps(point))):
        with pytest.raises(ValueError, match="read-only"):
            kept.contributions[:] = 9
    for kept in (sample, pickle.loads(pickle.dumps(sample))):
        with pytest.raises(ValueError, match="read-only"):
            kept.outputs[:] = 9
