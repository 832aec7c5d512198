r"""The paper's own system: its problem (P4), algorithms, solvers and theorems, as the paper writes them.

`explain` takes a function on {-1, +1}^d and returns the weights w of the best anchored sum of at most k terms, the
constant counted, with its fidelity error, its relevance error by definition, and the lemma's bound. The other
rooms have another law, other facts and another solver; this room repeats the paper's experiments, and its solvers
judge each other in the tests.

May import: errors, guarantees.

- The neighborhood :math:`\mathcal D_{x,\sigma}`, relevance's event and both errors: `Neighborhood`, `measure`.
- (P4) on a sample and its exact solver: `Evidence`, `Problem`, `solve`, `solve_exact`.
- (MIP) and the convex relaxation: `solve_with_scip`, `solve_with_gurobi`, `solve_relaxation`.
- Algorithm 1 and its projection: `solve_iht`, `project_sparse_sum`.
- Lemmas and theorems: `relevance_factor`, `required_samples`, `iht_iterations` and others.
- The Boolean encoding of tables: `Binarizer`.

>>> from anchorline import paper
>>> e = paper.explain(lambda z: 0.5 * z[:, 0] + 0.25 * z[:, 2], [1, -1, -1], k=2)
>>> e.w.round(9).tolist(), e.relevance_error.value
([0.0, 0.5, 0.0, 0.25], 0.0)
"""

from typing import TYPE_CHECKING, Any

from anchorline.paper.backends import solve_relaxation, solve_with_gurobi, solve_with_scip
from anchorline.paper.exact import solve_exact
from anchorline.paper.explanation import SOLVERS, LinearExplanation, explain, measure, solve
from anchorline.paper.iht import project_sparse_sum, solve_iht
from anchorline.paper.neighborhood import Event, Neighborhood, Sample, cancelling_event, flip_probability
from anchorline.paper.problem import Evidence, Limits, Problem, Solution, Status, check
from anchorline.paper.theorems import (
    IhtConstants,
    achievable_epsilon,
    end_to_end_factor,
    iht_achievable_epsilon,
    iht_constants,
    iht_iterations,
    iht_mean_tolerance,
    iht_radius,
    iht_required_samples,
    iht_residual_bound,
    iht_step,
    is_vacuous,
    locality_cost,
    relevance_factor,
    relevance_factor_from_event,
    required_samples,
    rsc_required_samples,
)

if TYPE_CHECKING:
    from anchorline.paper.binarizer import Binarizer

__all__ = [
    "SOLVERS",
    "Binarizer",
    "Event",
    "Evidence",
    "IhtConstants",
    "Limits",
    "LinearExplanation",
    "Neighborhood",
    "Problem",
    "Sample",
    "Solution",
    "Status",
    "achievable_epsilon",
    "cancelling_event",
    "check",
    "end_to_end_factor",
    "explain",
    "flip_probability",
    "iht_achievable_epsilon",
    "iht_constants",
    "iht_iterations",
    "iht_mean_tolerance",
    "iht_radius",
    "iht_required_samples",
    "iht_residual_bound",
    "iht_step",
    "is_vacuous",
    "locality_cost",
    "measure",
    "project_sparse_sum",
    "relevance_factor",
    "relevance_factor_from_event",
    "required_samples",
    "rsc_required_samples",
    "solve",
    "solve_exact",
    "solve_iht",
    "solve_relaxation",
    "solve_with_gurobi",
    "solve_with_scip",
]


def __getattr__(name: str) -> Any:
    if name != "Binarizer":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from anchorline.paper.binarizer import Binarizer  # noqa: PLC0415  (scikit-learn takes a second to load)

    return Binarizer


def __dir__() -> list[str]:
    return sorted(__all__)
