"""The configuration file of ``anchorline serve``: its options by name, and what only a file can say."""

import difflib
import logging
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from anchorline.cli.options import Given
from anchorline.errors import ParameterError

#: Environment variables such as ANCHORLINE_STUDIO_MAX_QUERIES set the options, too.
PREFIX = "ANCHORLINE_STUDIO"
TABLES = ("names", "units", "labels", "groups")  # of the file, each with texts or lists
#: Options of the whole server, however many models it has.
OF_SERVER = frozenset({
    "host", "port", "no_token", "token_file", "allow_host", "max_queries", "queue", "workers", "time_limit",
    "root_path", "behind_proxy", "user_header", "audit_log", "log_format", "upload", "demo",
})  # fmt: skip
_ONLY_TYPED = ("config", "check", "help", "debug", "verbose", "model_option")
_log = logging.getLogger(__name__)
Plan = dict[str, tuple[Given, dict[str, Any]]]  # by the name of a model, its options and its tables


class Configuration:
    """What a file says: defaults of the options, tables, and perhaps several models with options of their own."""

    def __init__(self, ctx: Any, path: Path) -> None:
        self._ctx, self._path = ctx, path
        self._options = {each.name: each for each in ctx.command.params if each.name not in _ONLY_TYPED}
        content = _read(path)
        models = content.pop("model") if isinstance(content.get("model"), list) else None
        self.defaults, self._tables = self._parsed(content, self._options)
        self._models = None if models is None else self._named(models)

    def plan(self, given: Given) -> Plan:
        """Return the models to serve; ``given`` are the options of the command, and the only model has no name."""
        if self._models is None:
            return {"": (given, self._tables)}
        if given.model or given.model_option or given.demo:
            raise ParameterError(
                f"{self._file} has several models, and another one is given. Leave out one of them."
            )
        return {
            name: (_given(self._ctx, self.defaults | options), tables)
            for name, (options, tables) in self._models.items()
        }

    def again(self) -> Plan:
        """Read the file again, and return the models to serve; options of the server stay as they are."""
        now = Configuration(self._ctx, self._path)
        changed = [key for key in sorted(OF_SERVER) if now.defaults.get(key) != self.defaults.get(key)]
        if changed:
            _log.warning("Restart the server to change %s, which a reload leaves as it is.", ", ".join(changed))
        return now.plan(_given(self._ctx, now.defaults))

    def _named(self, models: list[Any]) -> dict[str, tuple[dict[str, Any], dict[str, Any]]]:
        """Return the options and the tables of every model by its name."""
        from anchorline.studio.display import check_name  # noqa: PLC0415  heavy

        if self._tables or "group" in self.defaults:
            table = next(iter(self._tables), "groups")
            raise ParameterError(
                f"[{table}] in {self._file} belongs to no model. Write [model.{table}] below its [[model]]."
            )
        found: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {}
        for number, content in enumerate(models, start=1):
            if not isinstance(content, Mapping) or not isinstance(content.get("name"), str):
                raise ParameterError(
                    f'Model {number} in {self._file} has no name. Type, below [[model]], name = "loans", which is '
                    "part of its address."
                )
            own = {key: value for key, value in content.items() if key != "title"}
            name = check_name(own["name"])
            if name in found:
                raise ParameterError(f"{self._file} has two models with the name {name!r}. Rename one of them.")
            for key in own:
                if key.replace("-", "_") in OF_SERVER:
                    raise ParameterError(
                        f"{key} is an option of the server, but {self._file} has it in the model {name!r}. "
                        "Write it above the first [[model]]."
                    )
            options, tables = self._parsed(own, self._options.keys() - OF_SERVER)
            found[name] = options | {"name": str(content.get("title", name))}, tables
        if not found:
            raise ParameterError(
                f"{self._file} has no model. Add [[model]] with the name and the options of each."
            )
        return found

    def _parsed(self, content: Mapping[str, Any], allowed: Iterable[str]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the options and the tables in a part of the file."""
        tables: dict[str, Any] = {}
        options: dict[str, Any] = {}
        for key, value in content.items():
            name = key.replace("-", "_")
            if name in TABLES:
                tables[name] = _checked_table(name, value, self._file)
            elif name in allowed:
                options[name] = _checked(self._options[name], key, value, self._file)
            elif name == "token":
                raise ParameterError(f"{self._file} has a token. Set ANCHORLINE_STUDIO_TOKEN instead.")
            else:
                known = [*TABLES, *allowed]
                near = difflib.get_close_matches(name, known, 1)
                hint = f"Did you mean {near[0]}?" if near else f"There are {', '.join(sorted(known))}."
                raise ParameterError(f"{self._file} has the key {key!r}, which is not an option. {hint}")
        groups = [f"{name}={','.join(columns)}" for name, columns in tables.pop("groups", {}).items()]
        return options | ({"group": groups} if groups else {}), tables

    @property
    def _file(self) -> str:
        return repr(str(self._path))


def read_configuration(ctx: Any, parameter: Any, path: Path | None) -> Configuration | None:
    """Make the options in a file the defaults of the command.

    What is typed comes first, then what is in the environment, then what the file says.
    """
    if path is None:
        return None
    configuration = Configuration(ctx, path)
    ctx.default_map = {**(ctx.default_map or {}), **configuration.defaults}
    return configuration


def _given(ctx: Any, defaults: Mapping[str, Any]) -> Given:
    """Return the options of the command with other defaults than at its start."""
    ctx.default_map, values = defaults, {}
    for option in ctx.command.params:
        if option.name in _ONLY_TYPED or ctx.get_parameter_source(option.name).name == "COMMANDLINE":
            value = ctx.params.get(option.name)
        else:
            value = option.process_value(ctx, option.consume_value(ctx, {})[0])
        values[option.name] = (list(value) or None) if isinstance(value, tuple) and option.nargs == 1 else value
    return Given(**values)


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ParameterError(f"The configuration {str(path)!r} cannot be read: {error.strerror}.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ParameterError(f"The configuration {str(path)!r} is not TOML: {error}.") from error


def _checked(option: Any, key: str, value: Any, file: str) -> Any:
    """Return a value for an option: a list if it is repeatable, and one number, text or boolean otherwise."""
    is_list = option.multiple or option.nargs != 1
    if isinstance(value, Mapping) or (isinstance(value, list) and not is_list):
        raise ParameterError(f"{key} in {file} is {value!r:.80}, but it must be one value.")
    return value if isinstance(value, list) or not is_list else [value]


def _checked_table(name: str, value: Any, file: str) -> dict[str, Any]:
    wanted, what = (list, "a list of columns") if name == "groups" else (str, "a text")
    if not isinstance(value, Mapping) or not all(isinstance(each, wanted) for each in value.values()):
        raise ParameterError(f"{name} in {file} must be a table [{name}] with {what} per name.")
    return {str(key): each for key, each in value.items()}
