"""How many words a reader must read beside the facts."""

from dataclasses import replace
from typing import Any

from anchorline.render.statements import Result, rule_statements_of, statements_of
from anchorline.result.rule import Rule

_NAME = "\N{INFINITY}"  # stands for names from data, which are not counted


def words_beside_facts(result: Result) -> int:
    """Return the number of words of ``print(e)`` or ``print(rule)`` outside the facts, numbers included.

    Names from data are not counted: those of classes, outputs and their units, and columns.
    """
    if isinstance(result, Rule):
        statements = rule_statements_of(replace(result, **_placeholders(result)))
    else:
        findings = tuple((code, (_NAME,) * len(columns)) for code, columns in result.findings)
        statements = statements_of(replace(result, findings=findings, **_placeholders(result)))
    texts = " ".join(f"{each.amount} {each.text}" for each in statements if each.kind != "fact")
    return sum(any(map(str.isalnum, word)) and _NAME not in word for word in texts.split())


def _placeholders(result: Result) -> dict[str, Any]:
    """Return other names for classes, output and columns."""
    output, facts = result.output, result.facts

    def named(label: Any) -> str:
        return _NAME if str(label) == output.name else f"{_NAME}2"

    choices = output.choices
    if isinstance(choices.output, (list, tuple)):
        choices = replace(choices, output=(_NAME, f"{_NAME}2"))
    return {
        "output": replace(
            output,
            name="f(x)" if output.name == "f(x)" else _NAME,
            unit=output.unit and _NAME,
            decision=named(output.decision),
            classes=None if output.classes is None else tuple(map(named, output.classes)),
            runner_up=None if output.runner_up is None else (_NAME, output.runner_up[1]),
            choices=choices,
        ),
        "facts": tuple(replace(fact, attribute=f"{_NAME}{i}", column=_NAME) for i, fact in enumerate(facts)),
    }
