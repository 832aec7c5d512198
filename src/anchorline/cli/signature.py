"""The options of a command, read off its signature: groups of them are written down once."""

import functools
import inspect
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import Any

from anchorline.cli.options import Debug, Verbose


def spread(command: Callable[..., Any]) -> Callable[..., Any]:
    """The command as typer reads it: every dataclass among its parameters is replaced by its fields, in place.

    All have ``--debug`` and ``--verbose``, too, whose callbacks do the work.
    """
    groups: dict[str, Any] = {}
    parameters: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(command).parameters.items():
        if is_dataclass(parameter.annotation):
            groups[name] = parameter.annotation
            parameters += inspect.signature(groups[name]).parameters.values()
        else:
            parameters.append(parameter)
    for name, kind in (("debug", Debug), ("verbose", Verbose)):
        parameters.append(inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=False, annotation=kind))

    @functools.wraps(command)
    def run(*, debug: bool, verbose: bool, **given: Any) -> Any:
        for name, group in groups.items():
            given[name] = group(**{field.name: given.pop(field.name) for field in fields(group)})
        return command(**given)

    shown = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in parameters]
    run.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in shown}
    return run
