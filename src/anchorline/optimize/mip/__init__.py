"""Outside solvers for the paper's (MIP), one file each: independent referees of the exact solver."""
