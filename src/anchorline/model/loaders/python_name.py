"""``module:function`` or ``module:object``: a model that a Python module defines."""

import importlib
from typing import Any

from anchorline.errors import ModelFileError
from anchorline.model.loaders.files import Options


def load(name: str, kind: str, options: Options) -> Any:
    """Import the module and return the named object; ``sys.path`` is left as it is.

    The working directory is not added to ``sys.path``, so that a module that happens to be there is not run. To
    use a module from a folder, type ``PYTHONPATH=folder`` or install the module.
    """
    module_name, _, inside = name.partition(":")
    try:
        model: Any = importlib.import_module(module_name)
    except ImportError as error:
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise ModelFileError(f"Importing {module_name!r} failed: {error}.") from error
        raise ModelFileError(
            f"The Python path has no module {error.name!r}; the working directory is not searched. Install the "
            "module, or type PYTHONPATH=folder before the command."
        ) from error
    except Exception as error:
        raise ModelFileError(f"Importing {module_name!r} raised {type(error).__name__}: {error}") from error
    for part in inside.split("."):
        try:
            model = getattr(model, part)
        except AttributeError as error:
            raise ModelFileError(f"Module {module_name!r} has no {inside!r}.") from error
    if not (callable(model) or hasattr(model, "predict")):
        raise ModelFileError(
            f"{name!r} is an object of type {type(model).__name__}. It must be a function of rows, or an object "
            "with `predict`."
        )
    return model
