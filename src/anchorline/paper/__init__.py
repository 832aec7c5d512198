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
- Assumption 1 (RSC/RSS) and the trajectory lemmas: `check_regularity`, `follow_trajectory`.
- Lemmas and theorems: `relevance_factor`, `required_samples`, `iht_iterations` and others.
- The Boolean encoding of tables: `Binarizer`.

>>> from anchorline import paper
>>> e = paper.explain(lambda z: 0.5 * z[:, 0] + 0.25 * z[:, 2], [1, -1, -1], k=2)
>>> e.w.round(9).tolist(), e.relevance_error.value
([0.0, 0.5, 0.0, 0.25], 0.0)
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from anchorline.paper.binarizer import Binarizer
    from anchorline.paper.exact import solve_exact
    from anchorline.paper.explanation import SOLVERS, LinearExplanation, explain, measure, solve
    from anchorline.paper.gurobi import solve_with_gurobi
    from anchorline.paper.iht import project_sparse_sum, solve_iht
    from anchorline.paper.neighborhood import Event, Neighborhood, Sample, cancelling_event, flip_probability
    from anchorline.paper.problem import Evidence, Limits, Problem, Solution, Status, check
    from anchorline.paper.regularity import Regularity, Trajectory, check_regularity, follow_trajectory
    from anchorline.paper.relaxation import solve_relaxation
    from anchorline.paper.scip import solve_with_scip
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

# A module is imported at the first use of its names, because some of them need optional packages.
_ON_FIRST_USE = {
    "binarizer": ("Binarizer",),
    "exact": ("solve_exact",),
    "explanation": (
        "SOLVERS",
        "LinearExplanation",
        "explain",
        "measure",
        "solve",
    ),
    "gurobi": ("solve_with_gurobi",),
    "iht": (
        "project_sparse_sum",
        "solve_iht",
    ),
    "neighborhood": (
        "Event",
        "Neighborhood",
        "Sample",
        "cancelling_event",
        "flip_probability",
    ),
    "problem": (
        "Evidence",
        "Limits",
        "Problem",
        "Solution",
        "Status",
        "check",
    ),
    "regularity": (
        "Regularity",
        "Trajectory",
        "check_regularity",
        "follow_trajectory",
    ),
    "relaxation": ("solve_relaxation",),
    "scip": ("solve_with_scip",),
    "theorems": (
        "IhtConstants",
        "achievable_epsilon",
        "end_to_end_factor",
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
        "relevance_factor",
        "relevance_factor_from_event",
        "required_samples",
        "rsc_required_samples",
    ),
}
_MODULE_OF = {name: module for module, names in _ON_FIRST_USE.items() for name in names}

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
    "Regularity",
    "Sample",
    "Solution",
    "Status",
    "Trajectory",
    "achievable_epsilon",
    "cancelling_event",
    "check",
    "check_regularity",
    "end_to_end_factor",
    "explain",
    "flip_probability",
    "follow_trajectory",
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
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
