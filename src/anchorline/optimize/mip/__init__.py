"""External solvers for the paper's (MIP), one file per solver: independent referees of the exact solver."""
