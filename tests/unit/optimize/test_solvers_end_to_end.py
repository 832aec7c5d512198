"""Every solver through `explain`: anchored, sparse (except the relaxation), consistent with the exact solver."""

import numpy as np
import pytest

import anchorline as al

X = np.where(np.arange(14) % 3, 1, -1)


def model(rows):
    return np.tanh(rows @ np.linspace(-0.6, 0.5, 14) / 2 + 0.3 * rows[:, 0] * rows[:, 5])


@pytest.mark.parametrize("solver", ["exact", "iht", "scip", "gurobi", "relaxation"])
def test_every_solver(solver):
    e = al.explain(model, X, k=4, solver=solver, n_samples=1500, n_certify=400, sampling="draw")
    best = al.explain(model, X, k=4, n_samples=1500, n_certify=0, sampling="draw")
    assert abs(e.intercept + e.contributions.sum() - e.prediction) <= 1e-12
    assert al.Explanation.from_json(e.to_json()).to_json() == e.to_json()
    assert str(e)
    if solver == "relaxation":
        assert e.certificate.status is al.Status.RELAXED
        assert e.certificate.lower_bound <= best.certificate.objective + 1e-9
        assert e.verdict is al.Verdict.UNKNOWN
        return
    assert e.certificate.n_terms <= 4
    assert e.certificate.objective >= best.certificate.objective - 1e-9
    if solver in ("scip", "gurobi"):
        assert e.certificate.objective == pytest.approx(best.certificate.objective, abs=1e-6)
        assert e.is_proved
        assert e.verify(model).holds
