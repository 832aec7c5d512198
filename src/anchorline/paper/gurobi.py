"""The adapter for Gurobi, through gurobipy."""

from typing import Any

import numpy as np

from anchorline.errors import BackendError
from anchorline.paper.mip import Program, import_backend, report, status_of
from anchorline.paper.problem import UNLIMITED, Limits, Problem, Solution, Status

# The numbers of GRB.Status, which Gurobi documents. They are written out because its import is lazy.
STATUSES = {
    2: Status.OPTIMAL,
    3: Status.INFEASIBLE,
    4: Status.INFEASIBLE,  # "infeasible or unbounded"; a mean square over a box is never unbounded
    8: Status.LIMIT,  # node limit
    9: Status.LIMIT,  # time limit
    12: Status.NUMERICAL,
    17: Status.LIMIT,  # memory limit
}

_SIZE_LIMIT_EXCEEDED = 10010
_SETTINGS = {
    "OutputFlag": 0,
    "Threads": 1,  # the search depends on it, and equal problems must have equal answers
    "MIPGap": 0.0,
    "MIPGapAbs": 1e-10,
    "FeasibilityTol": 1e-9,
    "IntFeasTol": 1e-9,
    "OptimalityTol": 1e-9,
}


def solve_with_gurobi(problem: Problem, limits: Limits = UNLIMITED) -> Solution:
    r"""Solve the paper's (MIP) with Gurobi, without reformulation.

    .. math:: \min\ u^\top G u - 2 h^\top u + \tfrac1n\|t\|_2^2 \quad\text{s.t.}\quad
              \text{the linear constraints of `Program`}

    The program has only the paper's 2 (d + 1) variables. The license inside Gurobi's wheel allows 200 variables,
    so d <= 99. The problem must have a box. At a limit the lower bound is Gurobi's dual bound.
    """
    program = Program.from_problem(problem)
    gurobi = import_backend("gurobipy", extra="gurobi")
    settings = dict(_SETTINGS)
    if limits.time_limit is not None:
        settings["TimeLimit"] = float(limits.time_limit)
    if limits.node_limit is not None:
        settings["NodeLimit"] = float(limits.node_limit)
    try:
        with gurobi.Env(params=settings) as environment, gurobi.Model(env=environment) as model:
            terms = _build(model, program)
            model.optimize()
            return report(
                problem,
                support=np.flatnonzero(terms.X > 0.5) if model.SolCount else None,
                dual_bound=float(model.ObjBound),
                status=status_of(model.Status, STATUSES, "Gurobi"),
                n_nodes=int(model.NodeCount),
            )
    except gurobi.GurobiError as error:
        raise _backend_error(error, program.n_literals) from error


def _build(model: Any, program: Program) -> Any:
    """Add variables, constraints and objective; return the binary variables of the literals."""
    box = program.box
    terms = model.addMVar(program.n_literals, vtype="B")
    values = model.addMVar(program.n_literals, lb=-box, ub=box)
    intercept_term = model.addVar(vtype="B")
    intercept = model.addVar(lb=-box, ub=box)
    model.addConstr(values <= box * terms)
    model.addConstr(values >= -box * terms)
    model.addConstr(intercept <= box * intercept_term)
    model.addConstr(intercept >= -box * intercept_term)
    model.addConstr(intercept + values.sum() == program.prediction)
    model.addConstr(intercept_term + terms.sum() <= program.k)
    model.setObjective(values @ program.second @ values - 2 * (program.cross @ values) + program.constant)
    return terms


def _backend_error(error: Any, n_literals: int) -> BackendError:
    if error.errno == _SIZE_LIMIT_EXCEEDED:
        return BackendError(
            f"Gurobi's license does not allow {n_literals} literals. The license inside its wheel ends at 99. "
            "Use the solver 'exact', which needs no license, or 'scip', or install a full Gurobi license."
        )
    return BackendError(f"Gurobi failed: {error}. Use the solver 'exact', which needs no license, or 'scip'.")
