"""The black box: calls of a fixed size, one output, a hard limit, and a named error for every bad answer."""

import numpy as np
import pytest

from anchorline.errors import BudgetError, ParameterError, PredictorError, PredictorOutputError
from anchorline.explainer import Explainer
from anchorline.model.outputs import Target
from anchorline.model.predictor import BATCH_ROWS, Predictor, Questions, batches
from anchorline.spaces.hypercube import Hypercube
from anchorline.spaces.table import Table

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


def predictor_of(answer, *, task=None, column=None, limit=np.inf, threshold=None, output_range=None):
    questions = Questions(Target(answer, task, column=column), limit=limit)
    return Predictor(questions, threshold, output_range).open(ORIGINAL)


def outputs_of(predictor, rows):
    return predictor.answer(rows, len(rows)).outputs


def later(good, bad):
    """A model that answers well for the instance and badly afterwards."""
    return lambda z: good(z) if len(z) == 1 else bad(z)


def explained(model, d=20, **keywords):
    return Explainer(model, Hypercube()).explain([1] * d, **keywords)


# --- calls -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n", "expected"),
    [
        (1, [(0, 1)]),
        (4096, [(0, 4096)]),
        (4097, [(0, 4096), (4096, 4097)]),
        (10_000, [(0, 4096), (4096, 8192), (8192, 10_000)]),
    ],
)
def test_boundaries_are_fixed(n, expected):
    assert BATCH_ROWS == 4096
    assert list(batches(n)) == expected


def test_the_model_sees_the_instance_then_calls_of_a_fixed_size():
    model = Recorder(lambda z: np.tanh(z[:, 0] + 0.5 * z[:, 1] * z[:, 2]))
    explained(model)
    assert model.sizes[:2] == [1, 2000]
    assert max(model.sizes) <= 4096
    listed = Recorder()
    explained(listed, d=12)
    assert listed.sizes == [1, 4096]


def test_model_inputs_are_signs_in_rows():
    def model(z):
        assert z.flags.c_contiguous
        assert z.dtype == np.float64
        return 0.5 * z[:, 0]

    recorder, x = Recorder(model), [1, -1, 1, 1, -1] * 5
    Explainer(recorder, Hypercube()).explain(x, queries=300)
    np.testing.assert_array_equal(recorder.calls[0], [x])
    assert set(np.unique(recorder.calls[1])) == {-1.0, 1.0}


# --- one output --------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64, np.longdouble])
def test_every_float_is_a_number(kind):
    predictor = predictor_of(lambda z: (0.5 * z[:, 0]).astype(kind))
    assert predictor.prediction == 0.5
    assert outputs_of(predictor, -ORIGINAL).tolist() == [-0.5]


@pytest.mark.parametrize("wrap", [list, tuple, np.asfortranarray, lambda a: np.repeat(a, 2)[::2]])
def test_every_sequence_is_an_answer(wrap):
    predictor = predictor_of(lambda z: wrap(0.5 * z[:, 0]))
    assert outputs_of(predictor, np.vstack([ORIGINAL, -ORIGINAL])).tolist() == [0.5, -0.5]


def test_frames_answer_with_series():
    pandas = pytest.importorskip("pandas")
    predictor = predictor_of(lambda z: pandas.Series(0.5 * z[:, 0], index=range(7, 7 + len(z))))
    assert outputs_of(predictor, np.vstack([ORIGINAL, -ORIGINAL])).tolist() == [0.5, -0.5]


def test_one_column_is_one_number_per_row():
    predictor = predictor_of(lambda z: 0.5 * z[:, :1])
    assert outputs_of(predictor, -ORIGINAL).tolist() == [-0.5]


@pytest.mark.parametrize("at", [1, 100])
def test_outputs_beyond_the_range_are_refused(at):
    def model(z):
        return np.full(len(z), 2.5 if len(z) >= at else 0.5)

    with pytest.raises(
        PredictorOutputError, match=r"2\.5.*outside output_range \(-1, 1\).*output_range=\(lowest, highest\)"
    ):
        Explainer(model, Hypercube(), output_range=(-1, 1)).explain([1] * 20, queries=200)


@pytest.mark.parametrize(
    "output_range",
    [(1, 1), (2, 1), (0, np.inf), (np.nan, 1), 5, (0, 1, 2), (0,), "ab", ("low", "high"), ([0], [1])],
)
def test_no_range(output_range):
    with pytest.raises(ParameterError, match=r"output_range is .*two finite numbers, lowest first"):
        Explainer(lambda z: np.zeros(len(z)), Hypercube(), output_range=output_range)


@pytest.mark.parametrize("scale", [1e-9, 1e-3, 1.0, 1e6, 1e12])
def test_the_unit_of_the_output_changes_no_fact(scale):
    """The sum follows the output's unit: contributions are multiplied, facts and shares stay."""

    def model(z):
        return z[:, 0] + 0.5 * z[:, 1] * z[:, 2] + 0.25 * z[:, 3]

    plain = Explainer(model, Hypercube(), threshold=0.5).explain([1] * 16)
    scaled = Explainer(lambda z: scale * model(z), Hypercube(), threshold=0.5 * scale).explain([1] * 16)
    assert scaled.facts == plain.facts
    np.testing.assert_allclose(scaled.contributions, scale * plain.contributions, rtol=1e-6)
    assert (scaled.holds, scaled.all, scaled.verdict) == (plain.holds, plain.all, plain.verdict)


@pytest.mark.parametrize("shift", [-1e6, 100.0])
def test_a_constant_added_to_the_output_moves_the_base(shift):
    def model(z):
        return z[:, 0] + 0.5 * z[:, 1] * z[:, 2]

    plain, moved = explained(model), explained(lambda z: model(z) + shift)
    assert moved.facts == plain.facts
    np.testing.assert_allclose(moved.contributions, plain.contributions, atol=1e-6)
    assert moved.base - shift == pytest.approx(plain.base, abs=1e-6)


# --- labels ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("at_x", "elsewhere"),
    [("yes", "no"), ("a", "a much longer label"), (3, 4), (0.5, 0.25), (True, False), (b"yes", b"no")],
)
def test_labels_are_kept_or_lost(at_x, elsewhere):
    kind = np.result_type(np.asarray(at_x), np.asarray(elsewhere))
    predictor = predictor_of(
        lambda z: np.array([at_x if row[0] > 0 else elsewhere for row in z], dtype=kind), task="label"
    )
    assert predictor.prediction == 1
    assert predictor.label == at_x
    answer = predictor.answer(np.vstack([ORIGINAL, -ORIGINAL, ORIGINAL]), 3)
    assert answer.outputs.tolist() == [1.0, 0.0, 1.0]
    assert answer.stays.tolist() == [True, False, True]


def test_labels_in_an_object_array():
    """What scikit-learn returns for a model trained on a column of a pandas frame."""
    predictor = predictor_of(lambda z: np.array(["yes" if row[0] > 0 else "no" for row in z], dtype=object))
    assert predictor.label == "yes"
    assert outputs_of(predictor, np.vstack([ORIGINAL, -ORIGINAL])).tolist() == [1.0, 0.0]


def test_a_label_that_is_nan_is_refused():
    with pytest.raises(PredictorOutputError):
        predictor_of(lambda z: np.full(len(z), np.nan), task="label")


def test_signs_are_labels_without_asking():
    predictor = predictor_of(lambda z: np.sign(z[:, 0]).astype(int))
    assert predictor.output.kind == "label"
    assert predictor.output.decision == 1
    assert outputs_of(predictor, np.vstack([ORIGINAL, -ORIGINAL])).tolist() == [1.0, 0.0]


@pytest.mark.parametrize(
    "answer",
    [
        lambda z: np.full(len(z), 3),
        lambda z: np.full(len(z), 2, dtype=np.uint8),
        later(lambda z: np.ones(1, dtype=int), lambda z: np.arange(len(z))),
        later(lambda z: [1], lambda z: [1, 0.3, 1, 1, 1]),
    ],
)
def test_other_integers_are_ambiguous(answer):
    with pytest.raises(PredictorOutputError, match=r"labels or numbers.*task='label', otherwise task='number'"):
        outputs_of(predictor_of(answer), np.zeros((5, 3)))


def test_the_ambiguity_goes_away_when_told():
    model = lambda z: np.where(z[:, 0] > 0, 7, 2)  # noqa: E731
    number = predictor_of(model, task="number", output_range=(0, 10))
    assert number.prediction == 7
    assert outputs_of(number, -ORIGINAL).tolist() == [2.0]
    label = predictor_of(model, task="label")
    assert label.label == 7
    assert outputs_of(label, -ORIGINAL).tolist() == [0.0]


@pytest.mark.parametrize("threshold", [2, -1])
def test_a_threshold_that_no_output_can_pass_is_refused(threshold):
    halves, numbers = np.full((1, 2), 0.5), np.full(1, 50.0)
    with pytest.raises(
        ParameterError, match=r"threshold is (2|-1), .* between 0 and 1\. Type, say, threshold=0\.5"
    ):
        predictor_of(lambda z: halves, threshold=threshold)
    with pytest.raises(ParameterError, match=r"between 10 and 90\. Type, say, threshold=50\."):
        predictor_of(lambda z: numbers, threshold=threshold, output_range=(10, 90))
    assert predictor_of(lambda z: numbers, threshold=threshold).output.threshold == threshold
    assert predictor_of(lambda z: halves, threshold=1).output.threshold == 1


@pytest.mark.parametrize("keywords", [{"threshold": 0.5}, {"output_range": (0, 1)}])
def test_labels_have_neither_threshold_nor_range(keywords):
    explainer = Explainer(lambda z: np.full(len(z), "a"), Hypercube(), **keywords)
    with pytest.raises(ParameterError, match="labels, which have no threshold and no output_range"):
        explainer.explain([1, 1, 1])


@pytest.mark.parametrize("task", ["labels", "", 1, "regression"])
def test_unknown_tasks(task):
    with pytest.raises(ParameterError, match=r"task is .*'label', 'number' or None"):
        Explainer(lambda z: np.zeros(len(z)), Hypercube(), task=task)


# --- the limit ---------------------------------------------------------------------------------------


def test_failed_calls_count_too():
    predictor = predictor_of(later(lambda z: np.zeros(1), lambda z: np.zeros(1)), limit=12)
    with pytest.raises(PredictorOutputError):
        outputs_of(predictor, np.zeros((10, 3)))
    assert predictor.questions.n_answers == 11
    with pytest.raises(BudgetError, match="13 queries are needed, but queries is 12"):
        outputs_of(predictor, np.zeros((2, 3)))


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
    "a dict": (lambda z: {"p": np.zeros(3)}, ["(3, 1)", "(6,)"]),
}


@pytest.mark.parametrize("kind", BAD_ANSWERS)
def test_a_bad_answer_is_named(kind):
    answer, words = BAD_ANSWERS[kind]
    predictor = predictor_of(later(lambda z: np.zeros(1), answer))
    with pytest.raises(PredictorOutputError) as caught:
        outputs_of(predictor, np.zeros((6, 3)))
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize("kind", [kind for kind in BAD_ANSWERS if kind != "a row"])  # six scores of one row
def test_a_bad_answer_at_the_instance_is_found_at_once(kind):
    answer, _ = BAD_ANSWERS[kind]
    model = Recorder(lambda z: answer(np.repeat(z, 6, axis=0)))  # whatever it is, not one number
    with pytest.raises(PredictorOutputError):
        explained(model, d=3)
    assert model.sizes == [1]


@pytest.mark.parametrize("bad", ["too few rows", "two columns", "nan", "strings"])
def test_a_bad_answer_in_a_late_call_leaves_nothing(bad):
    answer, _ = BAD_ANSWERS[bad]
    sizes = []

    def model(z):
        sizes.append(len(z))
        return answer(z) if len(sizes) == 3 else np.tanh(z[:, 0] + z[:, 1] * z[:, 2])

    with pytest.raises(PredictorOutputError):
        explained(model)
    assert len(sizes) == 3  # it stops there


@pytest.mark.parametrize(
    "error", [ValueError("boom"), ZeroDivisionError("boom"), StopIteration("boom"), MemoryError("boom")]
)
def test_a_model_that_raises(error):
    def model(z):
        if len(z) > 1:
            raise error
        return np.zeros(1)

    with pytest.raises(PredictorError) as caught:
        explained(model, queries=247)
    assert caught.value.__cause__ is error
    for word in (type(error).__name__, "boom", "123 rows", "(123, 20)", "by hand"):
        assert word in str(caught.value)


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_is_nobodys_fault(error):
    def model(z):
        raise error

    with pytest.raises(error):
        explained(model, d=2)


@pytest.mark.parametrize("model", [None, "predict", 3, np.zeros((4, 4))])
def test_what_cannot_be_called(model):
    with pytest.raises(ParameterError, match=r"not callable.*model.predict"):
        Explainer(model, Hypercube())


# --- models with bad manners -------------------------------------------------------------------------


def test_a_model_may_spoil_its_input():
    def polite(z):
        return 0.5 * z[:, 0] - 0.25 * z[:, 1] * z[:, 2]

    def rude(z):
        answer = polite(z)
        z[:] = 99
        return answer

    x = np.array([1.0, -1.0, 1.0, 1.0] * 5)
    expected = Explainer(polite, Hypercube()).explain(x, queries=500)
    assert Explainer(rude, Hypercube()).explain(x, queries=500).to_json() == expected.to_json()
    np.testing.assert_array_equal(x, [1.0, -1.0, 1.0, 1.0] * 5)


def test_a_model_may_answer_in_one_buffer():
    """Also scores, of which one column is read; the buffer is overwritten by the next call."""
    buffer = np.zeros((4096, 2))

    def frugal(z):
        score = 1 / (1 + np.exp(-z[:, 0] - z[:, 1] * z[:, 2]))
        buffer[: len(z), 0], buffer[: len(z), 1] = 1 - score, score
        return buffer[: len(z)]

    expected = explained(lambda z: frugal(z).copy()).to_json()
    assert explained(frugal).to_json() == expected
    numbers = explained(lambda z: frugal(z)[:, 1]).to_json()
    assert numbers == explained(lambda z: frugal(z)[:, 1].copy()).to_json()


def test_a_buffer_is_read_before_it_is_overwritten():
    """Rows of the table are asked about in several calls, whose answers are kept."""
    rows = np.random.default_rng(0).normal(size=(9000, 2))
    buffer = np.zeros(4096)

    def frugal(z):
        np.multiply(z[:, 0], 0.5, out=buffer[: len(z)])
        return buffer[: len(z)]

    answers = Explainer(frugal, Table(rows)).table_answers()
    np.testing.assert_array_equal(np.sort(answers.scores.values), np.sort(0.5 * rows[:, 0]))
