"""The summary of a cohort as JSON: facts and their directions, verdicts, the least trustworthy cases, rules."""

from collections.abc import Sequence
from typing import Any

from anchorline.errors import ParameterError
from anchorline.guarantees.verdicts import Verdict
from anchorline.render.characters import printable
from anchorline.render.summands import output_name
from anchorline.result.comparison import Comparison, compare_groups
from anchorline.result.explanation import Explanation
from anchorline.result.rules import Rules, find_rules
from anchorline.result.summary import Summary, by_attribute, summarize
from anchorline.spaces.table import Table
from anchorline.studio.cases import browser_value
from anchorline.studio.cohort import Cohort

_MAX_FACTS, _MAX_TEXTS, _MAX_POINTS = 15, 3, 200
_RULES_SHARE, _MAX_RULES = 0.8, 8
_MAX_FAILED = 5  # cases without an explanation that are named

Explained = Sequence[tuple[int, Explanation]]


def progress_of(cohort: Cohort) -> dict[str, Any]:
    """Return how far a cohort is explained, and which part of the table it is."""
    return {
        "progress": 1.0 if cohort.is_done else min(0.999, cohort.progress),
        "is_done": cohort.is_done,
        "found": None if cohort.found is None else len(cohort.found),
        "n_sampled": len(cohort.positions),
        "n_explained": len(cohort.explained),
        "n_failed": len(cohort.failures),
        "failed": [*cohort.failures][:_MAX_FAILED],
    }


def summary_of(explained: Explained) -> dict[str, Any]:
    """Return what decides in the cases that are explained so far, and how trustworthy the explanations are."""
    summary = summarize(explained)
    verdicts = [
        {"name": name.lower(), "title": Verdict[name].title, "count": count}
        for name, count in summary.verdicts.items()
    ]
    worst = [
        {"position": row, "verdict": name.lower(), "title": Verdict[name].title, "change": change}
        for row, name, change in summary.least_trustworthy
    ]
    return {
        "output": _only_output(explained),
        "verdicts": verdicts,
        "facts": _facts(summary, explained),
        "n_more_facts": max(0, len(summary.attributes) - _MAX_FACTS),
        "least_trustworthy": worst,
    }


def _only_output(explained: Explained) -> str | None:
    """Return the output that all explanations are about, or None if there are several."""
    outputs = {output_name(explanation) for _, explanation in explained}
    return outputs.pop() if len(outputs) == 1 else None


def _facts(summary: Summary, explained: Explained) -> list[dict[str, Any]]:
    """Return the attributes that are most often a reason, with their statements and their effects."""
    listed = summary.attributes[:_MAX_FACTS]
    points: dict[str, list[Any]] = {attribute.name: [] for attribute in listed}
    for position, explanation in explained:
        for name, total in by_attribute(explanation).items():
            if name in points and len(points[name]) < _MAX_POINTS:
                points[name].append([position, total])
    return [
        {
            "key": attribute.name,
            "name": printable(attribute.name),
            "n_rows": attribute.n_rows,
            "adds": attribute.adds,
            "typical_size": attribute.typical_size,
            "texts": [{"text": printable(text), "count": n} for text, n in attribute.literals[:_MAX_TEXTS]],
            "points": points[attribute.name],
        }
        for attribute in listed
    ]


def with_values(facts: list[dict[str, Any]], names: Sequence[str], cells: Any) -> None:
    """Replace the positions in the points of facts about one column by the values of this column, if they can be.

    ``cells(j, positions)`` returns values of column j.
    """
    for fact in facts:
        fact["is_column"] = fact["key"] in names
        if fact["is_column"] and fact["points"]:
            j = names.index(fact["key"])
            values = cells(j, [position for position, _ in fact["points"]])
            fact["points"] = [
                [position, size, browser_value(value)]
                for (position, size), value in zip(fact["points"], values, strict=True)
            ]


def rules_of(explained: Explained, space: Any) -> dict[str, Any]:
    """Return the fewest rules in the form that the page shows, or why there are none."""
    try:
        if not isinstance(space, Table):
            raise ParameterError("Rules need facts that can be true of several cases, such as those of a table.")
        return _rules_view(find_rules(explained, space, share=_RULES_SHARE, max_rules=_MAX_RULES))
    except ParameterError as error:
        return {"headline": printable(str(error).partition(". ")[0].rstrip(".") + "."), "proof": "", "rules": []}


def _rules_view(rules: Rules) -> dict[str, Any]:
    listed = [
        {
            "facts": [printable(fact) for fact in rule.facts],
            "decision": printable(rule.decision),
            "covered": len(rule.rows),
            "agreement": rule.agreement,
            "stability": None
            if rule.stability is None
            else {"low": rule.stability.low, "high": rule.stability.high, "value": rule.stability.value},
            "position": rule.row,
        }
        for rule in rules.rules
    ]
    return {"headline": rules.headline, "proof": rules.proof, "rules": listed}


def comparison_of(first: Explained, second: Explained) -> dict[str, Any]:
    """Return the differences of two cohorts in the form that the page shows, the clear ones first."""
    found: Comparison = compare_groups([entry for _, entry in first], [entry for _, entry in second])
    ordered = sorted(found.differences, key=lambda each: (not each.is_clear, -abs(each.value)))
    differences = [
        {
            "kind": each.kind,
            "name": Verdict[each.name].title if each.kind == "verdict" else printable(each.name),
            "first": each.first.value,
            "second": each.second.value,
            "low": each.low,
            "high": each.high,
            "is_clear": each.is_clear,
        }
        for each in ordered
        if each.first.value or each.second.value
    ]
    return {
        "n_first": found.n_first,
        "n_second": found.n_second,
        "n_compared": len(found.differences),
        "n_clear": len(found.clear),
        "output": _only_output([*first, *second]),
        "confidence": found.confidence,
        "differences": differences[: 2 * _MAX_FACTS],
    }
