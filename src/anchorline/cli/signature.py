"""Signatures of commands for typer: groups of options are defined once and expanded into single options."""

import functools
import inspect
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import Any

from anchorline.cli.options import Debug, Verbose


def expand_option_groups(command: Callable[..., Any]) -> Callable[..., Any]:
    """Return the command with a signature in which the fields of every dataclass parameter replace the parameter.

    Every command also gets ``--debug`` and ``--verbose``, whose callbacks take effect when they are parsed.
    """
    groups: dict[str, Any] = {}
    parameters: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(command).parameters.items():
        if is_dataclass(parameter.annotation):
            groups[name] = parameter.annotation
            parameters += inspect.signature(groups[name]).parameters.values()
        else:
            parameters.append(parameter)
    for name, annotation in (("debug", Debug), ("verbose", Verbose)):
        parameters.append(
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=False, annotation=annotation)
        )

    @functools.wraps(command)
    def run(*, debug: bool, verbose: bool, **values: Any) -> Any:
        for name, group in groups.items():
            values[name] = group(**{field.name: values.pop(field.name) for field in fields(group)})
        return command(**values)

    keyword_only = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in parameters]
    run.__signature__ = inspect.Signature(keyword_only)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in keyword_only}
    return run
