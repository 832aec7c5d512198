"""A small example table: generated loan applications with numbers, categories, dates and missing values.

May import: result.
"""

from typing import Any

import numpy as np

from anchorline.result.frames import frame_in

_PURPOSES = ("car", "home", "education", "business", "travel", "wedding", "boat")
_SHARES = (0.35, 0.25, 0.15, 0.15, 0.085, 0.01, 0.005)


def loans(n_rows: int = 2000, *, seed: int = 0, backend: Any = "pandas") -> tuple[Any, np.ndarray]:
    """Return a frame of generated loan applications, and the decision on each: "approved" or "declined".

    Income and debt have the largest effect on the decision. Next come the years of employment (missing in one
    row of eight) and home ownership. The date of the application and the branch have no effect.

    Examples
    --------
    >>> frame, decision = loans(500)
    >>> frame.columns.tolist()
    ['age', 'income', 'debt', 'employed_years', 'purpose', 'owner', 'applied', 'branch']
    >>> round(float((decision == "approved").mean()), 2)
    0.57
    """
    rng = np.random.default_rng(seed)
    age = np.clip(rng.normal(42, 13, n_rows), 18, 90).astype(int)
    income = np.round(rng.lognormal(10.6, 0.45, n_rows), -2)
    debt = np.where(rng.random(n_rows) < 0.4, 0, np.round(rng.lognormal(8.6, 0.9, n_rows), -2)).astype(int)
    employed = np.clip(np.round(rng.gamma(1.6, 4, n_rows)), 0, age - 16)
    known = rng.random(n_rows) >= 0.125
    purpose = rng.choice(_PURPOSES, n_rows, p=_SHARES)
    owner = rng.random(n_rows) < 0.25 + 0.006 * (age - 18)
    score = 2.2 * np.log(income / 40_000) - 3.5 * debt / income + 0.09 * np.where(known, employed, 2) + 0.8 * owner
    score += np.select([purpose == "business", purpose == "home"], [-0.6, 0.4], 0.0)
    decision = np.where(score + 0.4 * rng.logistic(size=n_rows) > 0.1, "approved", "declined")
    columns = {
        "age": age.tolist(),
        "income": income.tolist(),
        "debt": debt.tolist(),
        "employed_years": [
            float(years) if is_known else None for years, is_known in zip(employed, known, strict=True)
        ],
        "purpose": purpose.tolist(),
        "owner": owner.tolist(),
        "applied": (np.datetime64("2024-01-01") + rng.integers(0, 366, n_rows)).astype("datetime64[us]").tolist(),
        "branch": rng.choice(["north", "south", "east", "west"], n_rows).tolist(),
    }
    return frame_in(backend, columns), decision
