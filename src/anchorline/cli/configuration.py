"""The configuration file of ``anchorline serve``: its options by name, and what only a file can say."""

import difflib
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from anchorline.errors import ParameterError

#: Environment variables such as ANCHORLINE_STUDIO_MAX_QUERIES set the options, too.
PREFIX = "ANCHORLINE_STUDIO"
TABLES = ("names", "units", "labels", "groups")  # of the file, each with texts or lists
_ONLY_TYPED = ("config", "check", "help", "debug", "verbose", "model_option")


def read_configuration(ctx: Any, parameter: Any, path: Path | None) -> dict[str, Any]:
    """Make the options in a file the defaults of the command, and return its tables.

    What is typed comes first, then what is in the environment, then what the file says.
    """
    if path is None:
        return {}
    options = {each.name: each for each in ctx.command.params if each.name not in _ONLY_TYPED}
    tables: dict[str, Any] = {}
    defaults: dict[str, Any] = {}
    for key, value in _read(path).items():
        name = key.replace("-", "_")
        if name in TABLES:
            tables[name] = _checked_table(name, value, path)
        elif name in options:
            defaults[name] = _checked(options[name], key, value, path)
        else:
            known = [*TABLES, *options]
            near = difflib.get_close_matches(name, known, 1)
            hint = f"Did you mean {near[0]}?" if near else f"There are {', '.join(sorted(known))}."
            raise ParameterError(f"{str(path)!r} has the key {key!r}, which is not an option. {hint}")
    groups = [f"{name}={','.join(columns)}" for name, columns in tables.pop("groups", {}).items()]
    ctx.default_map = {**(ctx.default_map or {}), **defaults, **({"group": groups} if groups else {})}
    return tables


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ParameterError(f"The configuration {str(path)!r} cannot be read: {error.strerror}.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ParameterError(f"The configuration {str(path)!r} is not TOML: {error}.") from error


def _checked(option: Any, key: str, value: Any, path: Path) -> Any:
    """Return a value for an option: a list if it is repeatable, and one number, text or boolean otherwise."""
    is_list = option.multiple or option.nargs != 1
    if isinstance(value, Mapping) or (isinstance(value, list) and not is_list):
        raise ParameterError(f"{key} in {str(path)!r} is {value!r:.80}, but it must be one value.")
    return value if isinstance(value, list) or not is_list else [value]


def _checked_table(name: str, value: Any, path: Path) -> dict[str, Any]:
    wanted, what = (list, "a list of columns") if name == "groups" else (str, "a text")
    if not isinstance(value, Mapping) or not all(isinstance(each, wanted) for each in value.values()):
        raise ParameterError(f"{name} in {str(path)!r} must be a table [{name}] with {what} per name.")
    return {str(key): each for key, each in value.items()}
