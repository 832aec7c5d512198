"""The black box: fixed batches, one scaled output, hard budgets, and a named error for every bad answer."""

import numpy as np
import pytest

import anchorline as al
from anchorline.errors import BudgetError, ParameterError, PredictorError, PredictorOutputError
from anchorline.model.predictor import BATCH_ROWS, batches
from helpers.cases import open_predictor

GRID = 2**26
ORIGINAL = np.array([[1.0, -1.0, 1.0]])


class Recorder:
    """A model that remembers what it was shown."""

    def __init__(self, answer=lambda z: 0.5 * z[:, 0]):
        self.answer, self.calls = answer, []

    def __call__(self, inputs):
        self.calls.append(np.array(inputs))
        return self.answer(inputs)

    @property
    def sizes(self):
        return [len(call) for call in self.calls]


def predictor_of(answer, original=ORIGINAL, **options):
    return open_predictor(answer, original, **options)


def drops_of(predictor, rows):
    return predictor.answer(rows, len(rows)).drops


def later(good, bad):
    """A model that answers well for the instance and badly afterwards."""
    return lambda z: good(z) if len(z) == 1 else bad(z)


# --- batches -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n", "expected"),
    [
        (1, [(0, 1)]),
        (4095, [(0, 4095)]),
        (4096, [(0, 4096)]),
        (4097, [(0, 4096), (4096, 4097)]),
        (10_000, [(0, 4096), (4096, 8192), (8192, 10_000)]),
    ],
)
def test_boundaries_are_fixed(n, expected):
    assert BATCH_ROWS == 4096
    assert list(batches(n)) == expected


def test_the_model_sees_the_instance_then_fixed_batches():
    model = Recorder()
    al.explain(model, [1] * 20, n_samples=10_000, k=2)
    assert model.sizes[:4] == [1, 4096, 4096, 1808]  # what comes after measures the answer
    enumerated = Recorder()
    al.explain(enumerated, [1] * 13, n_samples=8192, k=2)
    assert enumerated.sizes[:3] == [1, 4096, 4096]
    assert max(model.sizes + enumerated.sizes) == 4096


def test_batches_do_not_depend_on_the_number_of_samples():
    short, long = Recorder(), Recorder()
    al.explain(short, [1] * 30, n_samples=4100, k=2)
    al.explain(long, [1] * 30, n_samples=9000, k=2)
    np.testing.assert_array_equal(short.calls[1], long.calls[1])
    np.testing.assert_array_equal(short.calls[2], long.calls[2][:4])


def test_model_inputs_are_signs():
    model, x = Recorder(), [1, -1, 1, 1, -1] * 5
    al.explain(model, x, n_samples=300, k=2)
    original, neighbors = model.calls[:2]
    assert original.dtype == neighbors.dtype == np.float64
    np.testing.assert_array_equal(original, [x])
    assert neighbors.shape == (300, 25)
    assert set(np.unique(neighbors)) == {-1.0, 1.0}


# --- one output, scaled ------------------------------------------------------------------------------


@pytest.mark.parametrize("output_range", [(-1, 1), (0, 1), (1e5, 3e6), (-3, 0), (-1e-9, 2e-9), (5, 7)])
def test_drops_are_half_the_fall_on_the_scale(output_range):
    low, high = output_range
    outputs = np.linspace(low, high, 101)
    at_x = outputs[37]
    predictor = predictor_of(later(lambda z: np.array([at_x]), lambda z: outputs), output_range=output_range)
    drops = drops_of(predictor, np.zeros((101, 3)))
    assert drops.dtype == np.float64
    assert np.array_equal(drops * GRID, np.rint(drops * GRID))
    np.testing.assert_allclose(drops, (at_x - outputs) / (high - low), rtol=0, atol=0.5001 / GRID)
    assert np.abs(drops).max() <= 1
    assert drops[37] == 0
    assert predictor.prediction == at_x  # in the output's own units, to the last bit
    assert predictor.half_range == pytest.approx((high - low) / 2, rel=1e-15)
    assert -1 <= predictor.scaled_prediction <= 1
    assert low + (predictor.scaled_prediction + 1) * predictor.half_range == pytest.approx(at_x, rel=1e-12)
    assert low + (predictor.origin + 1) * predictor.half_range == pytest.approx(
        0, abs=1e-12 * max(map(abs, output_range))
    )
    assert predictor.n_clipped == 0


@pytest.mark.parametrize(
    ("output_range", "origin"), [((-1, 1), 0.0), ((0, 1), -1.0), ((-3, 0), 1.0), ((0, 255), -1.0)]
)
def test_origin_is_exact_where_it_matters(output_range, origin):
    middle = sum(output_range) / 2
    assert predictor_of(lambda z: np.array([middle]), output_range=output_range).origin == origin


@pytest.mark.parametrize("end", [0.1, 0.7])
def test_the_ends_of_the_range_are_inside(end):
    predictor = predictor_of(lambda z: np.full(len(z), end), output_range=(0.1, 0.7))
    assert abs(predictor.scaled_prediction) == 1
    assert drops_of(predictor, np.zeros((4, 3))).tolist() == [0.0] * 4
    assert predictor.n_clipped == 0


def test_outputs_beyond_the_range_are_clipped_and_counted():
    outputs = np.array([0.5, 1.5, -0.25, 1.0, 0.0, 1e9, -1e9])
    predictor = predictor_of(later(lambda z: np.array([0.5]), lambda z: outputs), output_range=(0, 1))
    expected = [0.0, -0.5, 0.5, -0.5, 0.5, -0.5, 0.5]
    assert drops_of(predictor, np.zeros((7, 3))).tolist() == expected
    assert predictor.n_clipped == 4
    drops_of(predictor, np.zeros((7, 3)))
    assert predictor.n_clipped == 8


def test_clipping_is_told_in_the_certificate():
    model = Recorder(lambda z: z[:, :3].sum(axis=1) / 2)  # -1.5, -0.5, 0.5, 1.5
    e = al.explain(model, [1, -1, 1, 1], k=2)
    n_outside = sum(int((np.abs(call[:, :3].sum(axis=1)) == 3).sum()) for call in model.calls)
    assert e.certificate.n_clipped == n_outside >= 4
    assert f"{n_outside} of" in str(e)
    assert "clipped" in str(e)


def test_an_instance_outside_the_range_is_refused():
    with pytest.raises(PredictorOutputError, match=r"2\.5.*\(-1, 1\).*output_range=\(lowest, highest\)"):
        predictor_of(lambda z: np.full(len(z), 2.5))


@pytest.mark.parametrize(
    "output_range",
    [(1, 1), (2, 1), (0, np.inf), (np.nan, 1), 5, (0, 1, 2), (0,), "ab", ("low", "high"), ([0], [1])],
)
def test_no_range(output_range):
    with pytest.raises(ParameterError, match=r"output_range is .*two finite numbers, lowest first"):
        predictor_of(lambda z: np.zeros(len(z)), output_range=output_range)


@pytest.mark.parametrize("output_range", [(-1.7e308, 1.7e308), (0, 5e-324)])
def test_a_range_without_a_half_is_refused(output_range):
    with pytest.raises(ParameterError, match="output_range"):
        al.explain(lambda z: np.zeros(len(z)), [1, -1], output_range=output_range)


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64, np.longdouble])
def test_every_float_is_a_number(kind):
    predictor = predictor_of(lambda z: (0.5 * z[:, 0]).astype(kind))
    assert drops_of(predictor, -ORIGINAL).tolist() == [0.5]


@pytest.mark.parametrize("wrap", [list, tuple, np.asfortranarray, lambda a: np.repeat(a, 2)[::2]])
def test_every_sequence_is_an_answer(wrap):
    predictor = predictor_of(lambda z: wrap(0.5 * z[:, 0]))
    assert drops_of(predictor, np.vstack([ORIGINAL, -ORIGINAL])).tolist() == [0.0, 0.5]


def test_frames_answer_with_series():
    pandas = pytest.importorskip("pandas")
    predictor = predictor_of(lambda z: pandas.Series(0.5 * z[:, 0], index=range(7, 7 + len(z))))
    assert drops_of(predictor, np.vstack([ORIGINAL, -ORIGINAL])).tolist() == [0.0, 0.5]


# --- labels ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("at_x", "elsewhere"),
    [
        ("yes", "no"),
        ("a", "a much longer label"),
        (3, 4),
        (0.5, 0.25),
        (True, False),
        (b"yes", b"no"),
    ],
)
def test_labels_are_kept_or_lost(at_x, elsewhere):
    kind = np.result_type(np.asarray(at_x), np.asarray(elsewhere))
    predictor = predictor_of(
        lambda z: np.array([at_x if row[0] > 0 else elsewhere for row in z], dtype=kind), task="label"
    )
    assert predictor.prediction == predictor.scaled_prediction == 1
    assert predictor.label == at_x
    assert predictor.half_range == 1
    assert predictor.origin == 0
    rows = np.vstack([ORIGINAL, -ORIGINAL, ORIGINAL])
    assert drops_of(predictor, rows).tolist() == [0.0, 1.0, 0.0]


def test_labels_in_an_object_array():
    """What scikit-learn returns for a model trained on a column of a pandas frame."""
    predictor = predictor_of(
        lambda z: np.array(["yes" if row[0] > 0 else "no" for row in z], dtype=object), task="label"
    )
    assert predictor.label == "yes"
    assert drops_of(predictor, np.vstack([ORIGINAL, -ORIGINAL])).tolist() == [0.0, 1.0]


def test_a_label_that_is_nan_is_refused():
    with pytest.raises(PredictorOutputError):
        drops_of(predictor_of(lambda z: np.full(len(z), np.nan), task="label"), np.zeros((3, 3)))


def test_signs_are_numbers_without_asking():
    predictor = predictor_of(lambda z: np.sign(z[:, 0]).astype(int))
    assert predictor.prediction == 1
    assert drops_of(predictor, np.vstack([ORIGINAL, -ORIGINAL])).tolist() == [0.0, 1.0]


@pytest.mark.parametrize(
    "answer",
    [
        lambda z: np.full(len(z), 3),
        lambda z: np.zeros(len(z), dtype=np.uint8),
        lambda z: z[:, 0] < 0,
        lambda z: [0] * len(z),
        later(lambda z: np.ones(1, dtype=int), lambda z: np.arange(len(z))),
        later(lambda z: [1], lambda z: [1, 0.3, 1, 1, 1]),
    ],
)
def test_other_integers_are_ambiguous(answer):
    with pytest.raises(PredictorOutputError, match=r"labels or numbers.*task='label', otherwise task='number'"):
        drops_of(predictor_of(answer), np.zeros((5, 3)))


def test_the_ambiguity_goes_away_when_told():
    model = lambda z: np.where(z[:, 0] > 0, 7, 2)  # noqa: E731
    number = predictor_of(model, task="number", output_range=(0, 10))
    assert number.prediction == 7
    assert drops_of(number, -ORIGINAL)[0] == pytest.approx(0.5, abs=1 / GRID)
    label = predictor_of(model, task="label")
    assert label.prediction == 1
    assert label.label == 7
    assert drops_of(label, -ORIGINAL).tolist() == [1.0]


@pytest.mark.parametrize("task", ["labels", "", 1, "regression"])
def test_unknown_tasks(task):
    with pytest.raises(ParameterError, match=r"task is .*'label', 'number' or None"):
        predictor_of(lambda z: np.zeros(len(z)), task=task)


# --- the budget --------------------------------------------------------------------------------------


@pytest.mark.parametrize("d", [8, 15])
def test_queries_are_those_the_model_counted(d):
    model = Recorder()
    e = al.explain(model, [1] * d, n_samples=6000, k=2)
    assert e.certificate.n_queries == sum(model.sizes) > min(6000, 2**d)


@pytest.mark.parametrize("max_queries", [1, 2, 100, 4096, 4097, 5000])
def test_the_budget_is_never_passed(max_queries):
    model = Recorder()
    with pytest.raises(BudgetError) as caught:
        al.explain(model, [1] * 30, n_samples=5000, max_queries=max_queries)
    assert sum(model.sizes) <= max_queries
    for word in (f"max_queries is {max_queries}", "n_samples", "raise max_queries"):
        assert word in str(caught.value)


def test_just_enough_is_enough():
    model = Recorder()
    whole = al.explain(model, [1] * 30, n_samples=5000, k=2, n_certify=0)
    n = sum(model.sizes)
    assert n == 5001
    again = al.explain(model, [1] * 30, n_samples=5000, k=2, n_certify=0, max_queries=n)
    assert again.contributions.tobytes() == whole.contributions.tobytes()
    assert sum(model.sizes) == 2 * n
    with pytest.raises(BudgetError, match=f"max_queries is {n - 1}"):
        al.explain(model, [1] * 30, n_samples=5000, k=2, n_certify=0, max_queries=n - 1)
    assert sum(model.sizes) <= 3 * n - 1


@pytest.mark.parametrize("max_queries", [5001, 5002, 5003, 7000, 10_001, 20_000])
def test_a_larger_budget_is_never_passed_either(max_queries):
    """What is left goes to the certificate, as far as it reaches."""
    model = Recorder()
    e = al.explain(model, [1] * 30, n_samples=5000, k=2, max_queries=max_queries)
    assert e.certificate.n_queries == sum(model.sizes) <= max_queries


@pytest.mark.parametrize("max_queries", [16, 100, 1000, 3000])
def test_the_budget_is_hard_when_samples_are_drawn_until_clear(max_queries):
    model = Recorder(lambda z: np.tanh(z[:, 0] + 0.5 * z[:, 1] * z[:, 2]))
    try:
        e = al.explain(model, [1] * 30, k=2, n_samples="auto", max_queries=max_queries)
    except BudgetError:
        assert max_queries < 10
    else:
        assert e.certificate.n_queries == sum(model.sizes)
    assert sum(model.sizes) <= max_queries


@pytest.mark.parametrize("max_queries", [1, 3, 4, 15])
def test_tiny_budgets_when_samples_are_drawn_until_clear(max_queries):
    model = Recorder()
    with pytest.raises(BudgetError):
        al.explain(model, [1] * 30, k=2, n_samples="auto", max_queries=max_queries)


@pytest.mark.parametrize("max_queries", [1025, 1100, 1500])
def test_a_budget_for_the_enumeration_is_enough(max_queries):
    """n_certify: 'as many as searched, as far as max_queries allows'."""
    model = Recorder()
    e = al.explain(model, [1] * 10, k=2, max_queries=max_queries)
    assert e.certificate.exhaustive
    assert e.certificate.n_queries == sum(model.sizes) <= max_queries


def test_failed_calls_count_too():
    predictor = predictor_of(later(lambda z: np.zeros(1), lambda z: np.zeros(1)), max_queries=12)
    with pytest.raises(PredictorOutputError):
        drops_of(predictor, np.zeros((10, 3)))
    assert predictor.n_queries == 11
    with pytest.raises(BudgetError, match="13 queries are needed, but max_queries is 12"):
        drops_of(predictor, np.zeros((2, 3)))


# --- bad answers -------------------------------------------------------------------------------------

BAD_ANSWERS = {
    "none": (lambda z: None, ["None", "return"]),
    "a number": (lambda z: 0.5, ["()", "(6,)", "one number per row"]),
    "too few rows": (lambda z: np.zeros(len(z) - 1), ["(5,)", "(6,)"]),
    "too many rows": (lambda z: np.zeros(len(z) + 1), ["(7,)", "(6,)"]),
    "no rows": (lambda z: [], ["(0,)", "(6,)"]),
    "two columns": (lambda z: np.zeros((len(z), 2)), ["(6, 2)", "(6,)", "predict_proba(X)[:, 1]"]),
    "three axes": (lambda z: np.zeros((len(z), 1, 1)), ["(6, 1, 1)", "(6,)", "one number per row"]),
    "a row": (lambda z: np.zeros((1, len(z))), ["(1, 6)", "(6,)"]),
    "strings": (lambda z: ["yes"] * len(z), ["yes", "numbers", "task='label'"]),
    "numbers as strings": (lambda z: ["0.5"] * len(z), ["0.5", "numbers", "task='label'"]),
    "bytes": (lambda z: [b"yes"] * len(z), ["yes", "numbers", "task='label'"]),
    "objects": (lambda z: np.array([0.5, None] * 3, dtype=object), ["object", "numbers"]),
    "complex": (lambda z: np.full(len(z), 0.5 + 1j), ["complex", "numbers"]),
    "dates": (lambda z: np.full(len(z), np.datetime64("2024-01-01")), ["datetime", "numbers"]),
    "nan": (lambda z: np.r_[np.zeros(len(z) - 2), [np.nan] * 2], ["nan", "2 of 6 rows", "row 4", "finite"]),
    "inf": (lambda z: np.r_[np.inf, np.zeros(len(z) - 1)], ["inf", "1 of 6 rows", "row 0", "finite"]),
    "-inf": (lambda z: np.full(len(z), -np.inf), ["-inf", "6 of 6 rows", "finite"]),
    "ragged": (lambda z: [[0.5], [0.5, 0.5]] * (len(z) // 2), ["array"]),
    "a generator": (lambda z: (0.5 for _ in z), ["()", "(6,)"]),
    "a dict": (lambda z: {"p": np.zeros(len(z))}, ["()", "(6,)"]),
}


@pytest.mark.parametrize("kind", BAD_ANSWERS)
def test_a_bad_answer_is_named(kind):
    answer, words = BAD_ANSWERS[kind]
    predictor = predictor_of(later(lambda z: np.zeros(1), answer))
    with pytest.raises(PredictorOutputError) as caught:
        drops_of(predictor, np.zeros((6, 3)))
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize("kind", [kind for kind in BAD_ANSWERS if kind != "a row"])  # six scores of one row
def test_a_bad_answer_at_the_instance_is_found_at_once(kind):
    answer, _ = BAD_ANSWERS[kind]
    model = Recorder(lambda z: answer(np.repeat(z, 6, axis=0)))  # whatever it is, not one number
    with pytest.raises(PredictorOutputError):
        al.explain(model, [1, -1, 1])
    assert model.sizes == [1]


@pytest.mark.parametrize("bad", ["too few rows", "two columns", "nan", "strings"])
def test_a_bad_answer_in_a_late_batch_leaves_nothing(bad):
    answer, _ = BAD_ANSWERS[bad]
    sizes = []

    def model(z):
        sizes.append(len(z))
        return answer(z) if len(sizes) == 4 else np.zeros(len(z))

    with pytest.raises(PredictorOutputError):
        al.explain(model, [1] * 20, n_samples=20_000)
    assert sizes == [1, 4096, 4096, 4096]  # it stops there


@pytest.mark.parametrize(
    "error", [ValueError("boom"), ZeroDivisionError("boom"), StopIteration("boom"), MemoryError("boom")]
)
def test_a_model_that_raises(error):
    def model(z):
        if len(z) > 1:
            raise error
        return np.zeros(1)

    with pytest.raises(PredictorError) as caught:
        al.explain(model, [1] * 20, n_samples=123)
    assert caught.value.__cause__ is error
    for word in (type(error).__name__, "boom", "123 rows", "(123, 20)", "by hand"):
        assert word in str(caught.value)


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_is_nobodys_fault(error):
    def model(z):
        raise error

    with pytest.raises(error):
        al.explain(model, [1, -1])


@pytest.mark.parametrize("model", [None, "predict", 3, np.zeros((4, 4))])
def test_what_cannot_be_called(model):
    with pytest.raises(ParameterError, match=r"not callable.*model.predict"):
        al.explain(model, [1, -1])


# --- models with bad manners -------------------------------------------------------------------------


def test_a_model_may_spoil_its_input():
    def polite(z):
        return 0.5 * z[:, 0] - 0.25 * z[:, 1] * z[:, 2]

    def rude(z):
        answer = polite(z)
        z[:] = 99
        return answer

    x = np.array([1.0, -1.0, 1.0, 1.0] * 5)
    assert al.explain(rude, x, n_samples=500).to_json() == al.explain(polite, x, n_samples=500).to_json()
    np.testing.assert_array_equal(x, [1.0, -1.0, 1.0, 1.0] * 5)


def test_a_model_may_answer_in_one_buffer():
    buffer = np.zeros(4096)

    def frugal(z):
        np.multiply(z[:, 0], 0.5, out=buffer[: len(z)])
        return buffer[: len(z)]

    x = [1] * 20
    expected = al.explain(lambda z: 0.5 * z[:, 0], x, n_samples=9000).to_json()
    assert al.explain(frugal, x, n_samples=9000).to_json() == expected


def test_every_answer_has_a_weight_of_its_own():
    def noted(fallen):
        answers = np.where(np.arange(50) == fallen, -1.0, 0.0)
        predictor = open_predictor(lambda z: answers if len(z) > 1 else np.zeros(1), np.zeros((1, 1)))
        predictor.checksum_key = 7
        predictor.answer(np.zeros((50, 1)), 50)
        return predictor.checksum_ticks

    assert len({noted(i) for i in range(50)}) == 50
