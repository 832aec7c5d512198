"""``module:function`` or ``module:object``: a model that importable code makes."""

import importlib
from typing import TYPE_CHECKING, Any

from anchorline.errors import ModelFileError

if TYPE_CHECKING:
    from anchorline.model.loaders.loading import Options


def load(name: str, kind: str, options: "Options") -> Any:
    """Import the module and take the object; the path of modules is left as it is.

    The working directory is not added to it: a module that happens to lie there is not run. Say what you
    mean by ``PYTHONPATH=folder`` or by installing it.
    """
    module_name, _, inside = name.partition(":")
    try:
        found: Any = importlib.import_module(module_name)
    except ImportError as error:
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise ModelFileError(f"Importing {module_name!r} failed: {error}.") from error
        raise ModelFileError(
            f"There is no module {error.name!r} on the path. The working directory is not looked in: install it, "
            "or type PYTHONPATH=folder before the command."
        ) from error
    except Exception as error:
        raise ModelFileError(f"Importing {module_name!r} raised {type(error).__name__}: {error}") from error
    for part in inside.split("."):
        try:
            found = getattr(found, part)
        except AttributeError as error:
            raise ModelFileError(f"Module {module_name!r} has no {inside!r}.") from error
    if not (callable(found) or hasattr(found, "predict")):
        raise ModelFileError(
            f"{name!r} is a {type(found).__name__}; needed a function of rows, or an object with `predict`."
        )
    return found
