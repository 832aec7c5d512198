"""The adapter for SCIP, through PySCIPOpt."""

from typing import Any

import numpy as np

from anchorline.paper.mip import BOUND_TOLERANCE, Program, import_backend, report, status_of
from anchorline.paper.problem import UNLIMITED, Limits, Problem, Solution, Status

STATUSES = {
    "optimal": Status.OPTIMAL,
    "gaplimit": Status.OPTIMAL,  # within `BOUND_TOLERANCE`, which is subtracted from the bound
    "timelimit": Status.LIMIT,
    "nodelimit": Status.LIMIT,
    "totalnodelimit": Status.LIMIT,
    "memlimit": Status.LIMIT,
    "infeasible": Status.INFEASIBLE,
    "inforunbd": Status.INFEASIBLE,  # a mean square over a box is never unbounded
}

# SCIP's bound ends about this much below the optimum. With a smaller value its LP solver prints to stderr.
_FEASIBILITY = 1e-7


def solve_with_scip(problem: Problem, limits: Limits = UNLIMITED) -> Solution:
    r"""Solve the paper's (MIP) with SCIP, in perspective form.

    .. math:: \min\ \theta + \textstyle\sum_j D_j s_j - 2 h^\top u + \tfrac1n\|t\|_2^2 \quad\text{s.t.}\quad
              u^\top R u \le \theta,\ u_j^2 \le s_j z_j

    and the linear constraints of `Program`, with :math:`G = \mathrm{diag}(D) + R` (`Program.split`).
    At binary z the program is the same. Between 0 and 1, :math:`u_j^2 / z_j` replaces :math:`u_j^2`, so that a
    few nodes suffice instead of hundreds. The problem must have a box. At a limit the lower bound is SCIP's
    dual bound.
    """
    program = Program.from_problem(problem)
    scip = import_backend("pyscipopt", extra="scip")
    model = scip.Model()
    model.hideOutput()
    _set_parameters(scip, model, limits)
    terms, values = _add_terms(scip, model, program)
    _set_objective(scip, model, program, terms, values)
    model.optimize()
    return report(
        problem,
        support=_read_support(model, terms),
        dual_bound=float(model.getDualbound()),
        status=status_of(model.getStatus(), STATUSES, "SCIP"),
        n_nodes=int(model.getNTotalNodes()),
    )


def _set_parameters(scip: Any, model: Any, limits: Limits) -> None:
    model.setParam("numerics/feastol", _FEASIBILITY)
    model.setParam("limits/gap", 0.0)
    model.setParam("limits/absgap", BOUND_TOLERANCE)  # below its tolerance SCIP may branch forever
    # The perspective gives such tight bounds that long root rounds and restarts cost more than nodes.
    model.setSeparating(scip.SCIP_PARAMSETTING.FAST)
    model.setParam("presolving/maxrestarts", 0)
    if limits.time_limit is not None:
        model.setParam("limits/time", float(limits.time_limit))
    if limits.node_limit is not None:
        model.setParam("limits/totalnodes", int(limits.node_limit))


def _add_terms(scip: Any, model: Any, program: Program) -> tuple[list[Any], list[Any]]:
    """Add the variables z (whether a literal is a term) and u (its contribution), the anchor and the limit k."""
    box = program.box
    terms = [model.addVar(vtype="B") for _ in range(program.n_literals)]
    values = [model.addVar(lb=-box, ub=box) for _ in range(program.n_literals)]
    for term, value in zip(terms, values, strict=True):
        model.addCons(value <= box * term)
        model.addCons(value >= -box * term)
    intercept = model.addVar(lb=-box, ub=box)
    intercept_term = model.addVar(vtype="B")
    model.addCons(intercept <= box * intercept_term)
    model.addCons(intercept >= -box * intercept_term)
    model.addCons(intercept + scip.quicksum(values) == program.prediction)
    model.addCons(intercept_term + scip.quicksum(terms) <= program.k)
    return terms, values


def _set_objective(scip: Any, model: Any, program: Program, terms: list[Any], values: list[Any]) -> None:
    diagonal, rest = program.split()
    curved = model.addVar(lb=0.0)  # SCIP needs a linear objective, so the squares go into constraints
    pairs = zip(*np.nonzero(np.tril(rest)), strict=True)
    model.addCons(
        scip.quicksum(float(rest[i, j]) * (1 if i == j else 2) * values[i] * values[j] for i, j in pairs) <= curved
    )
    objective = curved + program.constant
    for weight, slope, term, value in zip(diagonal, program.cross, terms, values, strict=True):
        objective -= 2 * float(slope) * value
        if weight > 0:
            square = model.addVar(lb=0.0, ub=program.box**2)
            model.addCons(value * value <= square * term)
            objective += float(weight) * square
    model.setObjective(objective)


def _read_support(model: Any, terms: list[Any]) -> np.ndarray | None:
    if model.getNSols() == 0:
        return None
    best = model.getBestSol()
    return np.flatnonzero([model.getSolVal(best, term) > 0.5 for term in terms])
