"""Few queries: sums found with 64 to 500 queries in all, compared with LIME, Shapley values and the lasso."""

import statistics
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from anchorline.compat.lime_text import LimeTextExplainer as LimeTexts
from anchorline.errors import MissingDependencyError
from anchorline.explainer import Explainer
from anchorline.optimize import Problem, solve
from anchorline.optimize.rows import SampleRows
from anchorline.search.case import Case
from anchorline.search.investigate import gather, pose
from anchorline.settings import Settings
from anchorline.spaces.hypercube import Hypercube
from benchmarks import contents
from benchmarks.datasets import available
from benchmarks.experiments.explainers import lime_contributions, lime_explainer
from benchmarks.needs import PEERS, require
from benchmarks.tasks import CACHE, load_benchmark

K, N_INSTANCES, N_POPULATION, SEEDS = 5, 3, 10_000, range(4)
BUDGETS = (64, 128, 256, 300, 500)
SLOW_BUDGET = 256
MAX_LITERALS = 190
Lime = Callable[[Any, int, int], np.ndarray]  # from a model, a number of queries and a seed to contributions (d,)
Method = Callable[["Counted", int, int, int], np.ndarray]  # from a game, d, queries and a seed to contributions
Figures = dict[str, dict[str, float]]  # by method, and by what was measured
Runs = list[list[Figures]]  # by instance and seed


@dataclass(frozen=True, eq=False)
class Subject:
    """One instance of a task, and LIME for it."""

    model: Callable[[Any], np.ndarray]
    space: Any
    instance: Any
    lime: Lime
    column: int | None = None

    def explainer(self, model: Any = None) -> Explainer:
        """Return an explainer of the model, or of another one in its place."""
        return Explainer(model or self.model, self.space, column=self.column)

    def case(self) -> Case:
        """Return the opened case, whose streams are not those of any explanation measured here."""
        settings = Settings.from_keywords(k=K, n_samples=N_POPULATION, sampling="draw", seed=99)
        return self.explainer().prepare(self.instance, settings)


class Counted:
    """The output as a function of flips (n, d), on the scale [-1, +1], with the queries counted."""

    def __init__(self, case: Case) -> None:
        self.case, self.n_queries = case, 0

    def __call__(self, flips: np.ndarray) -> np.ndarray:
        """Return the outputs (n,)."""
        self.n_queries += len(flips)
        case, draws = self.case, np.asarray(flips, dtype=np.uint8)
        inputs = case.neighborhood.realize(case.law.as_realized(draws), None)
        drops = case.predictor.answer(inputs, len(draws)).drops
        return np.asarray(self.case.predictor.scaled_prediction - 2 * drops)


def few_queries(data: Path, cache: Path = CACHE) -> Iterator[dict[str, Any]]:
    """Yield one row per task and number of queries, and then one per number of queries over all tasks."""
    require(PEERS)
    if find_spec("shapiq") is None:
        raise MissingDependencyError("This section needs shapiq, which no extra contains. Run: pip install shapiq")
    everything: dict[int, Runs] = {budget: [] for budget in BUDGETS}
    for name, subjects in (*_tasks(data, cache), ("Docstrings (text)", _texts())):
        measured = [_measure(subject, BUDGETS, SEEDS, METHODS) for subject in subjects]
        for budget in BUDGETS:
            runs = [each[budget] for each in measured if each is not None]
            everything[budget] += runs
            if runs:
                yield _row(name, len(subjects[0].case().literals), budget, runs)
    for budget, runs in everything.items():
        yield _row("all", None, budget, runs)


def few_queries_slow_peers(data: Path, cache: Path = CACHE) -> Iterator[dict[str, Any]]:
    """Yield one row per task at 256 queries, beside shapiq's approximators that take seconds to minutes per call.

    One instance and one seed per task, because of the time that they take.
    """
    require(PEERS)
    if find_spec("shapiq") is None:
        raise MissingDependencyError("This section needs shapiq, which no extra contains. Run: pip install shapiq")
    everything: Runs = []
    for name, subjects in (*_tasks(data, cache), ("Docstrings (text)", _texts())):
        measured = (_measure(subject, (SLOW_BUDGET,), SEEDS[:1], SLOW_METHODS) for subject in subjects)
        runs = next((each[SLOW_BUDGET] for each in measured if each is not None), None)
        if runs is not None:
            everything.append(runs)
            yield _row(name, len(subjects[0].case().literals), SLOW_BUDGET, [runs])
    yield _row("all", None, SLOW_BUDGET, everything)


def _row(name: str, d: int | None, budget: int, runs: Runs) -> dict[str, Any]:
    """Return medians over all runs, and how much lower or higher each other method is than ours."""
    flat, methods = [run for each in runs for run in each], list(runs[0][0])
    row: dict[str, Any] = {"task": name, "d": d, "queries": budget, "instances": len(runs), "runs": len(flat)}
    for figure in ("excess", "facts_excess", "relevance"):
        for method in methods:
            row[f"{method}_{figure}"] = statistics.median(run[method][figure] for run in flat)
    for figure in ("excess", "relevance"):
        for method in methods[1:]:
            mean, error = _difference(runs, method, figure)
            row[f"{method}_{figure}_minus_ours"] = mean
            row |= {f"{method}_{figure}_minus_ours_error": error} if error is not None else {}
    return row


def _difference(runs: Runs, method: str, figure: str) -> tuple[float, float | None]:
    """Return the mean of a figure minus ours over these instances, and its standard error over several seeds."""
    differences = np.array([[run[method][figure] - run["ours"][figure] for run in each] for each in runs])
    n_seeds = differences.shape[1]
    if n_seeds == 1:
        return float(differences.mean()), None
    variances = differences.var(axis=1, ddof=1) / n_seeds
    return float(differences.mean()), float(np.sqrt(variances.mean() / len(runs)))


def _measure(
    subject: Subject, budgets: Sequence[int], seeds: Sequence[int], methods: Mapping[str, Method]
) -> dict[int, list[Figures]] | None:
    """Return the figures of every seed by number of queries; None if facts explain the output completely."""
    case = subject.case()
    evidence, rows = gather(case, case.stream("population", N_POPULATION), keep=True)
    assert rows is not None  # kept
    problem = pose(case, evidence)
    best = solve(problem, time_limit=20.0).objective
    if best < 1e-6:
        return None
    return {
        budget: [_figures(problem, rows, best, _found(subject, case, budget, seed, methods)) for seed in seeds]
        for budget in budgets
    }


def _found(
    subject: Subject, case: Case, budget: int, seed: int, methods: Mapping[str, Method]
) -> dict[str, np.ndarray]:
    """Return the contributions (d,) by method."""
    found = {"ours": _ours(subject, budget, seed), "lime": subject.lime(subject.model, budget, seed)}
    for name, method in methods.items():
        game = Counted(case)
        found[name] = method(game, case.n_literals, budget, seed)
        if game.n_queries > budget:
            raise AssertionError(f"{name} asked {game.n_queries} queries of {budget}.")
    return found


def _figures(problem: Problem, rows: SampleRows, best: float, found: dict[str, np.ndarray]) -> Figures:
    flips, squares, figures = rows.flips, rows.drops**2, {}
    for name, contributions in found.items():
        kept = np.argsort(-np.abs(contributions), kind="stable")[: K if name == "ours" else K - 1]
        support = np.sort(kept[contributions[kept] != 0])
        sum_ = np.zeros(problem.n_literals)
        sum_[support] = contributions[support]
        refitted, _ = problem.fit(support)
        held = ~flips[:, support].any(axis=1)
        figures[name] = {
            "excess": problem.objective(sum_) / best - 1,
            "facts_excess": problem.objective(refitted) / best - 1,
            "relevance": float(squares[held].mean()),
        }
    return figures


def _ours(subject: Subject, budget: int, seed: int) -> np.ndarray:
    explanation = subject.explainer().explain(subject.instance, k=K, budget=budget, sampling="draw", seed=seed)
    if explanation.certificate.n_queries > budget:
        raise AssertionError(f"anchorline asked {explanation.certificate.n_queries} queries of {budget}.")
    return np.asarray(explanation.scaled)


def _kernelshap(game: Counted, d: int, budget: int, seed: int) -> np.ndarray:
    """Return half the Shapley values by shap: a coalition keeps its facts, and breaks all others."""
    import shap

    np.random.seed(seed)  # noqa: NPY002  shap draws from the global generator
    explainer = shap.KernelExplainer(lambda kept: game(1 - np.asarray(kept)), np.zeros((1, d)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the regression, about few samples
        values = explainer.shap_values(
            np.ones((1, d)), nsamples=budget - 2, l1_reg=f"num_features({K - 1})", silent=True
        )
    return np.asarray(values).reshape(d) / 2


def _shapiq(game: Counted, d: int, budget: int, seed: int) -> np.ndarray:
    """Return half the Shapley values by shapiq's own KernelSHAP, of the same game."""
    import shapiq

    return _approximated(shapiq.KernelSHAP(n=d, random_state=seed), game, budget)


def _banzhaf(game: Counted, d: int, budget: int, seed: int) -> np.ndarray:
    """Return half the Banzhaf values by shapiq's regression: the best sum over coalitions of fair coin tosses."""
    import shapiq

    return _approximated(shapiq.RegressionFBII(n=d, max_order=1, random_state=seed), game, budget)


def _approximated(approximator: Any, game: Counted, budget: int) -> np.ndarray:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about few samples
        found = approximator.approximate(budget=budget, game=lambda kept: game(~np.asarray(kept)))
    return np.asarray(found.get_n_order_values(1)) / 2


def _lasso(game: Counted, d: int, budget: int, seed: int) -> np.ndarray:
    """Return least squares on the first facts of the lasso's path, on neighbors drawn by our own law."""
    from sklearn.linear_model import lars_path

    flips = np.random.default_rng(seed).random((budget - 1, d)) < Settings().flip_probability
    drops = (game.case.predictor.scaled_prediction - game(flips)) / 2
    rows = flips - flips.mean(axis=0)
    _, order, _ = lars_path(rows, drops - drops.mean(), method="lasso", max_iter=4 * K)
    support = list(dict.fromkeys(order))[: K - 1]
    contributions = np.zeros(d)
    contributions[support] = np.linalg.lstsq(flips[:, support].astype(float), drops, rcond=None)[0]
    return contributions


def _svarm(game: Counted, d: int, budget: int, seed: int) -> np.ndarray:
    """Return half the Shapley values by shapiq's stratified sampling."""
    import shapiq

    return _approximated(shapiq.SVARM(n=d, random_state=seed), game, budget)


def _proxyspex(game: Counted, d: int, budget: int, seed: int) -> np.ndarray:
    """Return half the Banzhaf values by shapiq's ProxySPEX: boosting learns the game, and its spectrum is read."""
    from shapiq.approximator import ProxySPEX

    return _approximated(ProxySPEX(n=d, index="FBII", max_order=1, random_state=seed), game, budget)


SLOW_METHODS: dict[str, Method] = {"svarm": _svarm, "proxyspex": _proxyspex}
METHODS: dict[str, Method] = {"kernelshap": _kernelshap, "shapiq": _shapiq, "banzhaf": _banzhaf, "lasso": _lasso}


def _tasks(data: Path, cache: Path) -> Iterator[tuple[str, list[Subject]]]:
    rows = [row for row in available(data) if row.dimension <= MAX_LITERALS]
    for row in sorted(rows, key=lambda row: row.dimension):
        benchmark = load_benchmark(data, row.id, cache=cache)

        def lime_of(instance: np.ndarray) -> Lime:
            flips = np.random.default_rng(0).random((1000, len(instance))) < Settings().flip_probability
            columns = np.where(flips, -instance, instance)

            def run(predict: Any, n_queries: int, seed: int) -> np.ndarray:
                explainer = lime_explainer(columns, seed)
                found = explainer.explain_instance(instance, predict, num_features=K - 1, num_samples=n_queries)
                return lime_contributions(found, len(instance))

            return run

        instances = benchmark.instances[:N_INSTANCES]
        yield benchmark.name, [Subject(benchmark.predict, Hypercube(), x, lime_of(x)) for x in instances]


def _texts() -> list[Subject]:
    """Return docstrings of 50 to 150 words, classified by their package."""
    from lime.lime_text import LimeTextExplainer
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    texts, packages = contents.docstrings()
    places = [i for i, text in enumerate(texts) if 50 <= len(text.split()) < 150]
    tested = places[:: len(places) // N_INSTANCES][:N_INSTANCES]
    train = [i for i in range(len(texts)) if i not in tested]
    fitted = make_pipeline(TfidfVectorizer(), LogisticRegression(C=10.0, max_iter=1000))
    fitted.fit([texts[i] for i in train], [packages[i] for i in train])
    model, space, subjects = fitted.predict_proba, LimeTexts().space, []
    for text in (texts[i] for i in tested):
        column = int(np.argmax(model([text])[0]))

        def lime(predict: Any, n_queries: int, seed: int, text: str = text, column: int = column) -> np.ndarray:
            found = LimeTextExplainer(random_state=seed).explain_instance(
                text, predict, labels=(column,), num_features=K - 1, num_samples=n_queries
            )
            contributions = np.zeros(len(space.at(text).literals))
            for number, weight in found.local_exp[column]:
                contributions[number] = (
                    weight  # a probability's range is 1, so a whole weight is half on the scale
                )
            return contributions

        subjects.append(Subject(model, space, text, lime, column))
    return subjects
