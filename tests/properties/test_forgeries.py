"""Adversarial makers: each forgery is caught by `verify`, or named in its answer."""

import dataclasses
import json

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression

import anchorline as al
from anchorline.optimize import exact
from anchorline.verify import Outcome
from helpers.makers import Patched, at, changed, forged, leaves, shopped, tampered
from helpers.sealing import resealed

D = 40  # so many that fresh neighbors have hardly ever been seen
X = np.ones(D)


def one_fact(rows):
    """The first fact decides, and nothing else matters."""
    return 0.5 * rows[:, 0]


def often_undone(rows):
    """While the first fact holds, the decision stays in about 94 of 100 neighbors."""
    undone = sum((rows[:, [3 * i + 1, 3 * i + 2, 3 * i + 3]] < 0).all(axis=1) for i in range(3))
    return np.where(undone > 0, -0.5, 0.5 * rows[:, 0])


class TestPatchedModels:
    """The model answers as recorded on all rows that the seed leads to, and differently elsewhere."""

    def test_the_decision_changes_elsewhere(self):
        model = Patched(lambda rows: 0.5 * rows[:, 0] + 0.1, lambda rows: np.full(len(rows), -0.1))
        e = al.explain(model, X, k=2, threshold=0.05, n_samples=2000)
        assert e.certificate.stability.value == 1.0
        verification = e.verify(model.close())
        assert verification.outcome is Outcome.DOES_NOT_HOLD
        assert "fresh neighbors contradict the stability: stated 1 " in str(verification)
        assert verification.fresh.stability.high < 0.3

    def test_the_output_moves_elsewhere(self):
        model = Patched(one_fact, lambda rows: 0.5 * rows[:, 0] - 0.4 * rows[:, 1])
        e = al.explain(model, X, k=2, n_samples=2000)
        verification = e.verify(model.close())
        assert verification.outcome is Outcome.DOES_NOT_HOLD
        assert "contradict the relevance error" in str(verification)
        assert "contradict the fidelity error" in str(verification)

    def test_only_the_baseline_differs_elsewhere(self):
        """Without the fact the hidden output does not move, so that the fact adds nothing."""
        model = Patched(one_fact, lambda rows: np.full(len(rows), 0.5))
        e = al.explain(model, X, k=2, n_samples=2000)
        verification = e.verify(model.close())
        assert verification.outcome is Outcome.DOES_NOT_HOLD
        assert "contradict the baseline error" in str(verification)

    def test_labels_change_elsewhere(self):
        model = Patched(
            lambda rows: np.where(rows[:, 0] > 0, "yes", "no"),
            lambda rows: np.where(rows[:, 1] > 0, "yes", "no"),
        )
        e = al.explain(model, X, k=2, task="label", n_samples=2000)
        assert e.verify(model.close()).outcome is Outcome.DOES_NOT_HOLD

    def test_a_small_lie_about_stability_is_noticed(self):
        """Elsewhere the decision is undone in 5 more of 100 neighbors."""
        hidden = lambda rows: np.where((rows[:, [1, 2]] < 0).all(axis=1), -0.5, 0.5 * rows[:, 0])  # noqa: E731
        outcomes = []
        for seed in range(5):
            model = Patched(one_fact, hidden)
            e = al.explain(model, X, k=2, threshold=0.05, n_samples=5000, seed=seed)
            outcomes.append(e.verify(model.close(), seed=seed).outcome)
        assert outcomes == [Outcome.DOES_NOT_HOLD] * 5


class TestShoppedSeeds:
    """The maker tries seeds until the sample is lucky enough."""

    def test_the_verifier_s_own_neighbors_decide(self):
        """The interval of 94 labels that all stay begins at 95.03%, and some seeds have such a sample."""

        def label(rows):
            return np.where(often_undone(rows) > 0, "yes", "no")

        def explain(seed):
            return al.explain(label, X, k=2, task="label", n_samples=100, n_certify=188, seed=seed)

        e = shopped(explain, lambda certificate: certificate.stability.low >= 0.95)
        for seed in range(5):
            verification = e.verify(label, seed=seed)
            assert not verification.holds
            assert "stability" in str(verification)
            assert verification.verdict is not e.verdict

    def test_a_low_confidence_does_not_help(self):
        """At a confidence of 1%, an interval is so short that nearly every sample is lucky enough."""

        def explain(seed):
            settings = {"n_samples": 100, "n_certify": 2000, "confidence": 0.01, "seed": seed}
            return al.explain(often_undone, X, k=1, threshold=0.1, **settings)

        e = shopped(explain, lambda certificate: certificate.stability.low >= 0.95)
        verification = e.verify(often_undone)
        assert not verification.holds
        assert verification.fresh.confidence == 0.999


def table_of(n=300):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(n, 4)), columns=list("abcd"))
    return frame, frame["a"] + frame["b"] + frame["c"]


@pytest.mark.filterwarnings("ignore::anchorline.errors.SetupWarning")  # the maker ignores it
class TestWideRanges:
    """In a range that is wide enough, or with a distance that is large enough, every output stays the same."""

    def test_the_range_is_compared_with_the_examples(self):
        frame, target = table_of()
        model = LinearRegression().fit(frame, target)
        wide = al.Explainer(model, al.Table(frame), output_range=(-500, 500)).explain(0, k=2, n_samples=500)
        plain = al.Explainer(model, al.Table(frame)).explain(0, k=2, n_samples=500)
        assert wide.verdict.name == "ROBUST" != plain.verdict.name
        verification = wide.verify(model, frame)
        assert verification.outcome is Outcome.CANNOT_TELL
        assert "rests on a choice of its maker: changes of up to 100 count as none; a tenth of the usual " in (
            str(verification)
        )
        assert plain.verify(model, frame).holds

    def test_a_range_that_is_called_learned_is_learned_again(self):
        frame, target = table_of()
        model = LinearRegression().fit(frame, target)
        e = al.Explainer(model, al.Table(frame), output_range=(-500, 500)).explain(0, k=2, n_samples=500)
        verification = al.verify(forged(e, ("parameters", "learned_range"), True), model, frame)
        assert verification.outcome is Outcome.DOES_NOT_HOLD
        assert "its outputs on the training table range from" in str(verification)

    def test_probabilities_have_a_range_of_their_own(self):
        frame, target = table_of()
        model = LogisticRegression().fit(frame, target > 0)
        column = int(model.predict(frame[:1])[0])
        explainer = al.Explainer(
            model.predict_proba, al.Table(frame), column=column, task="number", output_range=(-50, 50)
        )
        verification = explainer.explain(0, k=2, n_samples=500).verify(model.predict_proba, frame)
        assert not verification.holds
        assert "rests on a choice of its maker: changes of up to 10 count as none" in str(verification)

    def test_where_no_example_tells_the_range_is_named_as_the_maker_s(self):
        e = al.explain(one_fact, X, k=1, n_samples=500, output_range=(-100, 100))
        assert "changes of up to 20 count as none, as given by its maker" in e.verify(one_fact).reasons

    def test_a_distance_of_the_maker_is_compared_with_the_outputs(self):
        frame, target = table_of()
        model = LinearRegression().fit(frame, target)
        usual = al.Explainer(model, al.Table(frame)).explain(0, k=2, n_samples=500).parameters["same_within"]
        for factor, holds in ((0.5, True), (50, False)):
            explainer = al.Explainer(model, al.Table(frame), same_within=factor * usual)
            assert explainer.explain(0, k=2, n_samples=500).verify(model, frame).holds is holds

    def test_a_warning_that_the_record_omits_is_named(self):
        frame, target = table_of()
        model = LogisticRegression().fit(frame - frame.mean() - 9, target > 0)
        e = al.Explainer(model, al.Table(frame)).explain(0, k=2, n_samples=500)
        assert len(e.warnings) == 1
        assert "Warning: The model predicts " in str(e)
        assert not any("omits" in reason for reason in e.verify(model, frame).reasons)
        silent = dataclasses.replace(e, warnings=())
        assert "the record omits a warning: The model predicts " in str(silent.verify(model, frame))


class TestFalseNames:
    """The output is called something that it is not."""

    def test_the_model_s_classes_decide(self):
        frame, target = table_of()
        model = LogisticRegression().fit(frame, np.where(target > 0, "good", "bad"))
        e = al.Explainer(model.predict_proba, al.Table(frame), classes=["good", "bad"], output="good").explain(
            0, k=2, n_samples=500
        )
        verification = e.verify(model, frame)
        assert verification.outcome is Outcome.DOES_NOT_HOLD
        assert verification.reasons == ("its classes are not the model's",)

    def test_a_name_that_the_model_does_not_know_is_marked(self):
        e = al.explain(one_fact, X, k=2, n_samples=500, output="chance of survival")
        assert "the output's name, 'chance of survival', is as named by its maker" in e.verify(one_fact).reasons

    def test_a_name_is_tied_to_the_answers(self):
        e = al.explain(one_fact, X, k=2, n_samples=500, output="risk")
        renamed = tampered(json.loads(e.to_json()), ("output",), "chance")
        assert not al.verify(resealed(renamed), one_fact).holds
        assert not al.verify(resealed(tampered(renamed, ("parameters", "output"), "chance")), one_fact).holds


class TestCutLists:
    """A list of alternatives shows fewer than there are."""

    def test_a_list_that_ends_at_the_requested_number_is_marked(self):
        """Three facts are interchangeable, and two of them are in the sum, so that two other sums are as good."""
        e, rest = (al.explain(alike, X[:9], k=2, alternatives=n) for n in (1, 8))
        assert (len(e.alternatives), e.alternatives_complete) == (1, False)
        assert (len(rest.alternatives), rest.alternatives_complete) == (2, True)
        assert "More sums may be as good" in e.to_html()
        assert "More sums may be as good" not in rest.to_html()

    def test_neither_the_mark_nor_the_list_can_be_changed(self):
        e = al.explain(alike, X[:9], k=3, n_samples=300, alternatives=2)
        body = json.loads(e.to_json())
        assert e.verify(alike).holds
        assert not al.verify(resealed(body | {"alternatives_complete": not e.alternatives_complete}), alike).holds
        assert not al.verify(resealed(body | {"alternatives": body["alternatives"][:1]}), alike).holds
        assert not al.verify(resealed(body | {"alternatives": []}), alike).holds

    def test_a_record_without_the_mark_is_read_and_the_answer_names_the_cut(self):
        """Early releases did not record it, so that leaving it out cannot be held against the maker."""
        e = al.explain(alike, X[:9], k=3, n_samples=300, alternatives=1)
        early = {name: value for name, value in json.loads(e.to_json()).items() if name != "alternatives_complete"}
        assert al.Explanation.from_json(resealed(early)).alternatives_complete is None
        verification = al.verify(resealed(early), alike)
        assert verification.holds
        assert "the list of alternatives was cut, which the record does not state" in verification.reasons
        assert "alternatives_complete" not in al.explain(alike, X[:9], k=3, n_samples=300).to_json()


def alike(rows):
    """Three facts count the same."""
    return 0.25 * rows[:, :3].sum(axis=1) + 0.1 * rows[:, 3] * rows[:, 4]


def tangled(rows):
    """A function whose best sum takes a search."""
    products = rows[:, :8] * np.roll(rows[:, :8], 1, axis=1)
    return np.tanh(products @ np.linspace(-0.5, 0.5, 8) + rows[:, 8:16] @ np.linspace(0.1, 0.4, 8))


@pytest.fixture
def hurried(monkeypatch):
    """Return a function that makes explanations with a clock on which the time is over at once."""

    def make(model, **settings):
        with monkeypatch.context() as patch:
            ticks = iter(range(0, 10**9, 10**6))
            patch.setattr(exact.time, "perf_counter", lambda: float(next(ticks)))
            return al.explain(model, X, time_limit=60.0, n_samples=200, n_certify=1000, **settings)

    return make


class TestClock:
    """A time limit excuses the bound, and nothing else."""

    def test_an_honest_explanation_holds_if_the_repeated_search_proves_its_bound(self, hurried):
        e = hurried(tangled)
        assert e.certificate.status.name == "LIMIT"
        assert e.verify(tangled).outcome is Outcome.HOLDS

    @pytest.mark.parametrize("objective", ["fidelity", "relevance"])
    def test_every_forged_figure_is_caught(self, hurried, objective):
        e = hurried(tangled, objective=objective)
        figures = ["relevance_error", "stability", "fidelity_error", "baseline_error", "typical_change"]
        paths = [("certificate", name, "value") for name in figures if getattr(e.certificate, name) is not None]
        paths += [("certificate", name) for name in ("objective", "n_clipped", "answers_checksum", "n_queries")]
        body = json.loads(e.to_json())
        for path in paths:
            old = at(body, path)
            new = old + 1 if isinstance(old, int) else old * 1.0001 + 1e-6
            verification = al.verify(forged(e, path, new), tangled)
            assert verification.outcome is Outcome.DOES_NOT_HOLD, path

    def test_a_bound_above_a_known_sum_is_refuted(self, hurried):
        """The hurried search missed a better sum, which the verifier finds."""
        e = hurried(tangled, k=4, keep_noise=True)
        better = al.explain(tangled, X, n_samples=200, n_certify=0, k=4, keep_noise=True).certificate.objective
        assert better < e.certificate.objective - 1e-6
        assert e.verify(tangled).holds
        body = json.loads(e.to_json())
        proved = body["certificate"] | {"status": "OPTIMAL", "lower_bound": e.certificate.objective}
        for certificate in (proved, proved | {"status": "LIMIT"}, proved | {"lower_bound": 0.0}):
            verification = al.verify(resealed(body | {"certificate": certificate}), tangled)
            assert verification.outcome is Outcome.DOES_NOT_HOLD
            assert f"but a sum with a mean square of {better!r} exists" in str(verification)

    def test_what_the_clock_decides_stays_open(self, hurried, monkeypatch):
        """A verifier in the same hurry proves nothing."""
        e = hurried(tangled, k=4)
        body = json.loads(e.to_json())
        body["certificate"]["lower_bound"] = e.certificate.objective
        ticks = iter(range(0, 10**9, 10**6))
        monkeypatch.setattr(exact.time, "perf_counter", lambda: float(next(ticks)))
        verification = al.verify(resealed(body), tangled)
        assert verification.outcome is Outcome.CANNOT_TELL
        assert "stopped by the clock" in str(verification)


class TestNoise:
    """Answers that vary from call to call are not a forgery."""

    def test_noise_in_batches_only_is_named(self):
        e = al.explain(one_fact, X, k=2, n_samples=500)
        noise = np.random.default_rng(0)

        def noisy(rows):
            return one_fact(rows) + (1e-4 * noise.random(len(rows)) if len(rows) > 1 else 0.0)

        verification = e.verify(noisy)
        assert verification.outcome is Outcome.CANNOT_TELL
        assert verification.reasons == ("the model gives different answers to the same batch of queries",)


FORGED = {
    "relevance": {"objective": "relevance", "n_samples": 400, "n_certify": 200},
    "alternatives": {"alternatives": 2, "n_samples": 200, "n_certify": 200},
    "time": {"time_limit": 600.0, "n_samples": 200, "n_certify": 200},
}


@pytest.mark.parametrize("name", FORGED)
def test_every_number_that_is_changed_and_sealed_again_is_caught(name):
    e = al.explain(tangled, X[:16], k=3, threshold=0.2, **FORGED[name])
    assert e.verify(tangled).holds
    body = json.loads(e.to_json())
    for path in leaves(body):
        old = at(body, path)
        if (
            isinstance(old, str)
            or path[0] in ("instance", "contributions")
            or path == ("parameters", "time_limit")
        ):
            continue
        verification = al.verify(resealed(tampered(body, path, changed(old)[0])), tangled)
        assert not verification.holds, path
