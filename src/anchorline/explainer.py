"""Explainer and explain: what people type."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from anchorline._version import __version__
from anchorline.errors import BudgetError, ParameterError
from anchorline.model.outputs import resolve
from anchorline.model.predictor import Predictor, ask, checked_range, checked_threshold
from anchorline.result.assemble import assemble
from anchorline.result.explanation import Explanation, plain_label, texts_digest
from anchorline.result.frontier import Frontier, trace_frontier
from anchorline.result.json_format import canonical_json
from anchorline.search.assess import Assessment, assess, scaled_sum
from anchorline.search.investigate import investigate, stream
from anchorline.search.neighbors import NeighborSample, sample_neighbors
from anchorline.search.sampling import stream_key
from anchorline.settings import Keywords, Settings, show_keywords
from anchorline.spaces.base import Neighborhood, Space
from anchorline.spaces.hypercube import Hypercube

if TYPE_CHECKING:
    from anchorline.result.explanations import Explanations

Ranges = tuple[list[float], list[float]] | None  # lowest and highest output, a column each


class Explainer:
    """A model and the space its instances live in.

    Parameters
    ----------
    model
        A fitted estimator, or a callable on model inputs of n rows, returning n numbers, n labels, or
        (n, c) scores of c classes.
    space
        What an instance can be: `anchorline.Table`, `anchorline.Hypercube`, or your own (see
        `anchorline.spaces`). A bare training frame is taken as ``Table(frame)``.
    output
        The class to explain, by its label; by default the most probable one. Of anything but
        classes: what the output is called.
    column
        The class to explain, by its column in the answers.
    task
        "label" explains why the predicted label is what it is; "number" says that integers are numbers.
    classes
        Labels of the columns of a callable's answers; an estimator tells its own.
    output_range
        Lowest and highest output; beyond is clipped and counted. By default 0 and 1 for probabilities,
        lowest and highest prediction on the training table for other numbers (at most 10,000 queries,
        once; not counted in certificates), -1 and 1 on the hypercube.
    threshold
        The decision is "output >= threshold"; by default, of classes, which one is predicted.
    input
        "array": the model is given a 2-D array; "frame": the training table's own type; "auto": arrays to
        scikit-learn estimators that were fitted on arrays.

    Examples
    --------
    >>> rate = lambda z: 0.3 * z[:, 0] - 0.2 * z[:, 1] * z[:, 2]
    >>> explainer = Explainer(rate, Hypercube(["income", "debt", "owner", "citizen"]), output="rate")
    >>> from anchorline.render.text import rule
    >>> print(rule(explainer.explain([1, -1, 1, 1], k=3)))
    0.306 [income = +1] + 0.097 [owner = +1] + 0.097 [debt = -1] -> rate = 0.500
    """

    def __init__(
        self,
        model: Any,
        space: Any,
        *,
        output: Any = None,
        column: int | None = None,
        task: str | None = None,
        classes: Sequence[Any] | None = None,
        output_range: tuple[float, float] | None = None,
        threshold: float | None = None,
        input: str = "auto",
    ) -> None:
        self.model = model
        self.space: Space = space if hasattr(space, "at") and hasattr(space, "fingerprint") else _table(space)
        if classes is None and hasattr(model, "learn_classes") and hasattr(self.space, "examples"):
            model.learn_classes(self.space.at(0).original)  # some models tell labels only with their answers
        self.target = resolve(model, output=output, column=column, task=task, classes=classes, input=input)
        self.output_range = None if output_range is None else checked_range(output_range)
        self.threshold = checked_threshold(threshold)
        self.learned_ranges: Ranges = None

    def explain(self, instance: Any, **keywords: Unpack[Keywords]) -> Explanation:
        """Explain one prediction; see `anchorline.explain` for the keywords."""
        return self.explain_with(instance, Settings.from_keywords(**keywords))

    def explain_with(
        self, instance: Any, settings: Settings, parameters: Mapping[str, Any] | None = None
    ) -> Explanation:
        """Explain one prediction with settings made before; ``parameters`` recorded then, to repeat it now."""
        neighborhood, predictor = self._meet(instance, settings)
        if parameters is None:
            parameters = self.parameters(settings, predictor) | {"texts": texts_digest(neighborhood.literals)}
        key_checksum(predictor, neighborhood, settings, parameters)
        findings = investigate(neighborhood, predictor, settings)
        return assemble(
            self.target.name_of(predictor.column), neighborhood, predictor, settings, findings, parameters
        )

    def prepare(self, instance: Any, settings: Settings) -> tuple[Neighborhood, Predictor]:
        """The instance's neighborhood, and the model as seen from there; asks one query."""
        neighborhood, predictor = self._meet(instance, settings)
        key_checksum(predictor, neighborhood, settings, self.parameters(settings, predictor))
        return neighborhood, predictor

    def _meet(self, instance: Any, settings: Settings) -> tuple[Neighborhood, Predictor]:
        """The instance's neighborhood, and the model asked about the instance."""
        asked, neighborhood = self.target, self.space.at(instance)
        predictor = Predictor(
            asked.ask,
            neighborhood.original,
            output_range=self.output_range,
            task=asked.task,
            column=asked.column,
            threshold=self.threshold,
            max_queries=settings.max_queries,
            learn=self._learner(settings.max_queries) if hasattr(self.space, "examples") else None,
        )
        n_columns = predictor.n_columns
        if n_columns is not None and asked.classes is not None and len(asked.classes) != n_columns:
            raise ParameterError(
                f"{len(asked.classes)} classes were given; the model answers with {n_columns} columns."
            )
        if n_columns is not None and asked.classes is None and asked.column is None and asked.name is not None:
            raise ParameterError(
                f"output is {asked.name!r}, but which of the model's {n_columns} columns is that? Pass "
                "classes=[...], the labels of all columns, or column=, its number."
            )
        if asked.labels is not None and predictor.label not in asked.labels:
            raise ParameterError(
                f"The model's classes are {list(asked.labels)}, and it answers {predictor.label!r}, none of them. "
                "If that is a score, pass task='number', else task='label'."
            )
        return neighborhood, predictor

    def _learner(self, max_queries: int | None) -> Callable[[int | None], tuple[float, float]]:
        """How the range is learned; not at all where queries are counted and it would take some."""

        def refused(column: int | None) -> tuple[float, float]:
            raise BudgetError(
                "The range of the outputs is not known; learning it from the training table takes queries beyond "
                "max_queries. Pass output_range=(lowest, highest), or call explainer.learn_range() once before."
            )

        return self.learn_range if max_queries is None or self.learned_ranges is not None else refused

    def learn_range(self, column: int | None = None) -> tuple[float, float]:
        """Lowest and highest prediction on the training table, at most 10,000 rows of it; asked once."""
        if self.learned_ranges is None:
            ends = []
            for inputs in self.space.examples():  # type: ignore[attr-defined]
                n_rows = len(inputs)
                answers = ask(self.target.ask, inputs, n_rows, self.target.task or "number").reshape(n_rows, -1)
                ends += [answers.min(axis=0), answers.max(axis=0)]
            both = np.array(ends, dtype=np.float64)
            self.learned_ranges = both.min(axis=0).tolist(), both.max(axis=0).tolist()
        return self.learned_ranges[0][column or 0], self.learned_ranges[1][column or 0]

    def frontier(self, instance: Any, ks: Sequence[int] = range(1, 9), **keywords: Unpack[Keywords]) -> Frontier:
        """The best sum for every k in ``ks``, on one search sample, certified by one fresh sample.

        Examples
        --------
        >>> explainer = Explainer(lambda z: 0.5 * z[:, 0] + 0.2 * z[:, 1], Hypercube())
        >>> print(explainer.frontier([1, 1, 1], ks=[1, 2]))
          k  fidelity error            relevance error           terms
          1  0.0157                    0.0108                    x0 = +1
          2  0.0000                    0.0000                    x0 = +1, x1 = +1
        """
        if not isinstance(ks, Iterable):
            raise ParameterError(f"ks is {ks!r}; needed several numbers of terms. Type ks=range(1, 9).")
        settings = Settings.from_keywords(**keywords)
        neighborhood, predictor = self.prepare(instance, settings)
        return trace_frontier(neighborhood, predictor, settings, list(ks))

    def shortest(self, instance: Any, max_relevance_error: float, **keywords: Unpack[Keywords]) -> Explanation:
        """The fewest facts that hold the output to a relevance error of at most ``max_relevance_error``.

        Tried on the search sample from no fact upward, up to k - 1 (k: 11 unless given); then certified like
        any explanation. Status OPTIMAL: no rule of fewer facts does, on this sample. `InfeasibleError` where
        none is found.

        Examples
        --------
        >>> vote = lambda z: (z[:, :3].sum(axis=1) > 0) * 2 - 1
        >>> explainer = Explainer(vote, Hypercube(["a", "b", "c", "d"]), output="vote")
        >>> print(explainer.shortest([1, 1, 1, 1], max_relevance_error=0.05).as_rule())
        If a = +1 and b = +1 then vote stays 1.
        """
        chosen: dict[str, Any] = {"k": 11, **keywords, "objective": "shortest"}
        return self.explain_with(
            instance, Settings.from_keywords(max_relevance_error=max_relevance_error, **chosen)
        )

    def repeat(self, instance: Any, n_seeds: int = 10, **keywords: Unpack[Keywords]) -> dict[str, float]:
        """Explain with so many different seeds; in which share of the answers each literal appears.

        Examples
        --------
        >>> explainer = Explainer(lambda z: 0.5 * z[:, 0] + 0.2 * z[:, 1], Hypercube())
        >>> explainer.repeat([1, 1, 1], n_seeds=3, k=3, n_certify=0)
        {'x0 = +1': 1.0, 'x1 = +1': 1.0}
        """
        settings = Settings.from_keywords(**keywords)
        counts: Counter[str] = Counter()
        for i in range(n_seeds):
            explanation = self.explain_with(instance, replace(settings, seed=settings.seed + i))
            counts.update(dict.fromkeys((term.literal.text for term in explanation.terms), 1))  # each once
        return {text: count / n_seeds for text, count in counts.most_common()}

    def explain_many(
        self,
        frame: Any,
        *,
        n_jobs: int = 1,
        progress: Callable[[Any], None] | bool | None = None,
        errors: str = "raise",
        row_timeout: float | None = None,
        share_calls: bool = False,
        **keywords: Unpack[Keywords],
    ) -> "Explanations":
        """Explain every row of a frame, array or list in ``n_jobs`` processes (-1: all cores); see docs/batch.md.

        ``errors="keep"`` has a `Failure` for a row that fails, such as one that takes more than ``row_timeout``
        seconds; ``progress`` is True or a function of `Progress`; ``share_calls`` mixes rows in one model call.
        """
        from anchorline.batch.local import ExecutionPlan, explain_many  # noqa: PLC0415  stands above

        how = ExecutionPlan(n_jobs=n_jobs, row_timeout=row_timeout)
        return explain_many(self, frame, how, progress, errors=errors, share_calls=share_calls, **keywords)

    __call__ = explain_many

    def neighbors(self, explanation: Explanation, n_neighbors: int = 1000) -> NeighborSample:
        """Fresh neighbors of an explained instance, to be looked at: `anchorline.render.plot.neighborhood`."""
        settings = replace(Settings.from_dict(explanation.parameters), max_queries=None)
        neighborhood, predictor = self.prepare(list(explanation.instance), settings)
        flips = stream(neighborhood, settings, "look", n_neighbors)
        return sample_neighbors(neighborhood, predictor, flips, explanation.contributions, explanation.output)

    def assess(
        self,
        instance: Any,
        contributions: Any,
        intercept: float | None = None,
        *,
        n_fresh: int = 10_000,
        **keywords: Unpack[Keywords],
    ) -> Assessment:
        """Measure anyone's contributions (d,) in the output's own units; intercept None: anchored.

        Examples
        --------
        >>> explainer = Explainer(lambda z: 0.5 * z[:, 0], Hypercube())
        >>> explainer.assess([1, 1], [0.4, 0.0], intercept=0.0).fidelity_error.value.__round__(6)
        0.0025
        """
        settings = Settings.from_keywords(**keywords)
        neighborhood, predictor = self.prepare(instance, settings)
        if n_fresh < 2:
            raise ParameterError(f"n_fresh is {n_fresh!r}; needed at least 2. Type n_fresh=10_000.")
        scaled, gap = scaled_sum(contributions, intercept, predictor, len(neighborhood.literals))
        return assess(
            neighborhood,
            predictor,
            scaled,
            anchoring_gap=gap,
            flip_probability=settings.flip_probability,
            n_samples=n_fresh,
            seed=settings.seed,
            stream="assess",
            most_enumerated=0 if settings.sampling == "draw" else n_fresh // 2,
            confidence=settings.confidence,
        )

    def parameters(self, settings: Settings, predictor: Predictor) -> dict[str, Any]:
        """All that is needed to repeat the explanation, in plain values."""
        classes = self.target.classes if predictor.n_columns is not None else None
        return settings.to_dict() | {
            "output": self.target.name_of(predictor.column),
            "column": predictor.column,
            "classes": None if classes is None else [plain_label(label) for label in classes],
            "task": predictor.task,
            "probability": predictor.is_probability,
            "output_range": list(predictor.output_range),
            "threshold": self.threshold,
            "input": self.target.input,
            "space": self.space.fingerprint,
            "versions": {"anchorline": __version__, "numpy": np.__version__},
        }


def explain(
    predict: Callable[[np.ndarray], Any],
    x: Any,
    *,
    names: Sequence[str | tuple[str, str]] | None = None,
    output: Any = None,
    task: str | None = None,
    output_range: tuple[float, float] | None = None,
    threshold: float | None = None,
    **keywords: Unpack[Keywords],
) -> Explanation:
    r"""Explain ``predict`` at ``x`` in {-1, +1}^d by the best anchored sum of at most ``k`` terms.

    .. math:: \min_u\ \tfrac1n\sum_i (t_i - F_i u)^2 \quad\text{s.t.}\quad
              u_0 + \textstyle\sum_j u_j = f(x),\ \text{at most } k \text{ terms}

    Parameters
    ----------
    predict
        From an (n, d) array of -1 and +1 to n numbers in ``output_range``, or labels.
    x
        The instance: d numbers, -1 or +1.
    names
        A name a coordinate, or what +1 says and what -1 says.
    output
        What the output is called.
    task
        ``"label"`` explains why the label is what it is: +1 where it stays, -1 where it changes.
    output_range
        Lowest and highest output, -1 and 1 unless given (0 and 1 for probabilities of classes); beyond is
        clipped and counted.
    threshold
        The decision is "output >= threshold"; its stability is then measured too.
    k
        Most terms, the intercept included (5).
    sigma, flip_probability
        How local: each literal is flipped with probability 1 / (1 + e^sigma) (sigma 1), or as given.
    n_samples
        Neighbors to search with (5000), or "auto": until the relevance interval is narrower than
        ``tolerance`` (0.02) and the best support is separated from the runner-up, or max_queries is met
        (200,000 if not given). With ``sampling="auto"`` all 2^d are taken where that is not more.
    n_certify
        Fresh neighbors to measure with: as many as searched, at most 10,000; 0 for no measurement.
    confidence
        With which all limits of the certificate hold together (0.95).
    max_queries
        Hard limit of rows shown to the model; `BudgetError` before it is passed.
    solver
        "exact" (proves the optimum), "iht", "scip", "gurobi", or "relaxation" (a bound, not sparse).
    time_limit, node_limit
        Stop the search early; the best answer so far comes back with its gap.
    box
        Largest size of a term, in half output ranges (1); None lifts it.
    objective
        "fidelity" (the sum that fits best), or "relevance" (the facts that hold the output best; see
        `anchorline.optimize.relevance`; 20,000 samples unless given, and half as many to choose).
    alternatives
        List up to so many other sums that this much evidence cannot tell from the best (0).
    seed
        The same seed and the same x give the same bytes (0).

    Examples
    --------
    >>> import anchorline as al
    >>> e = al.explain(lambda z: 0.5 * z[:, 0] + 0.25 * z[:, 2], [1, -1, -1], k=2)
    >>> print(e)
    0.50 [x0 = +1] - 0.25 [x2 = -1] -> f(x) = 0.25
    Proven best 2-term explanation on all 8 neighbors.
    While these 2 facts hold, the output stays; over all neighbors it moves by 0.514.
    Verdict: trustworthy.
    """
    explainer = Explainer(
        predict, Hypercube(names), output=output, task=task, output_range=output_range, threshold=threshold
    )
    return explainer.explain(x, **keywords)


def _table(frame: Any) -> Space:
    """A training table, where a space was needed."""
    from anchorline.spaces.table import Table  # noqa: PLC0415  heavy

    return Table(frame)


def key_checksum(
    predictor: Predictor, neighborhood: Neighborhood, settings: Settings, parameters: Mapping[str, Any]
) -> None:
    """Tie the checksum of the answers to all that was chosen."""
    predictor.checksum_key = stream_key(settings.seed, neighborhood.key, "checksum:" + canonical_json(parameters))


for _name in ("explain", "explain_many", "frontier", "shortest", "repeat"):
    show_keywords(getattr(Explainer, _name))
show_keywords(explain)
