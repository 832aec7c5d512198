"""The packages that a benchmark needs, checked before it starts rather than hours later."""

from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version

from anchorline.errors import MissingDependencyError

# Each package with the extra that installs it.
READING = {"pandas": "bench", "pyarrow": "bench", "joblib": "bench", "matplotlib": "bench"}
PEERS = {"lime": "peers", "shap": "peers", "slise": "peers"}
SOLVERS = {"cvxpy": "relax", "clarabel": "relax", "pyscipopt": "scip", "gurobipy": "gurobi"}


def require(packages: Mapping[str, str]) -> None:
    """Raise `MissingDependencyError`, which names all packages that are not installed and their extras."""
    missing = [name for name in packages if not _installed(name)]
    if missing:
        extras = sorted({packages[name] for name in missing})
        raise MissingDependencyError.for_package(" and ".join(missing), ",".join(extras))


def _installed(package: str) -> bool:
    try:
        return bool(version(package))
    except PackageNotFoundError:
        return False
