"""Is what is printed true as it is read? An audit of explanations that uses no code of the law.

For every explanation with the verdict *explained* or *robust*, altered copies are drawn anew by plain pandas: the
columns of every fact take the values of a random row for which the fact is true, every other column keeps its
value or takes that of a random row. The share that keeps the decision must not be below 95%.
"""

import math
import statistics
import time
import warnings
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import beta

from anchorline.explainer import Explainer
from anchorline.facts import Fact
from anchorline.render.statements import Result, statements_of
from anchorline.result.explanation import Explanation, Verdict
from anchorline.result.rule import Rule
from anchorline.spaces.table import Table
from benchmarks.datasets import available
from benchmarks.held import is_true, together_of
from benchmarks.models import fitted_model
from benchmarks.release01 import Release01, python_of_01
from benchmarks.tasks import SEED

MODELS = ("boosting", "forest")
N_ROWS = 20
N_AUDIT = 20_000
LINE = 0.95
AUDITED = (Verdict.EXPLAINED, Verdict.ROBUST)
OLD_VERDICTS = ("trustworthy", "robust", "weak", "unreliable", "undecided")


def truth(data: Path, tables: Collection[str] = (), n_rows: int = N_ROWS) -> Iterator[dict[str, Any]]:
    """Yield one row per table with classes and model: verdicts, audits that fail, words and seconds.

    The last row has the totals.
    """
    rows, python = list[dict[str, Any]](), python_of_01()
    for row in available(data, tables):
        if row.kind != "classification":
            continue
        for model in MODELS:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                name, frame, fitted = fitted_model(data, row.id, model)
                rows.append({"table": name, "model": model, **audit_table(frame, fitted, n_rows, python)})
            yield rows[-1]
    yield _totals(rows)


def audit_table(frame: Any, model: Any, n_rows: int = N_ROWS, python: str | None = None) -> dict[str, Any]:
    """Explain some rows of a table and audit what is claimed; 0.1's verdicts about these rows beside it."""
    explainer, rng = Explainer(model, Table(frame)), np.random.default_rng(SEED)
    rows = rng.choice(len(frame), size=min(n_rows, len(frame)), replace=False).tolist()
    explanations, seconds, audits = list[Explanation](), list[float](), list[float]()
    for row in rows:
        start = time.process_time()
        explanation = explainer.explain(frame.iloc[[row]])
        seconds.append(time.process_time() - start)
        explanations.append(explanation)
        if explanation.verdict in AUDITED:
            facts = () if explanation.verdict is Verdict.ROBUST else explanation.facts
            audits.append(audit(frame, model, row, facts, together_of(explainer), rng))
    counts = Counter(each.verdict for each in explanations)
    words = [words_beside_facts(each) for each in explanations]
    return {
        "rows": len(rows),
        **{verdict.value: counts[verdict] for verdict in Verdict},
        **({} if python is None else _old_verdicts(python, frame, model, rows)),
        "audits": len(audits),
        "audits_below_95": sum(upper_limit(share, N_AUDIT) < LINE for share in audits),
        "lowest_audit": min(audits, default=None),
        "median_words": statistics.median(words),
        "most_words": max(words),
        "median_facts": statistics.median(len(each.facts) for each in explanations),
        "proven": sum(each.is_proven for each in explanations),
        "median_queries": statistics.median(each.queries.total for each in explanations),
        "median_seconds": statistics.median(seconds),
    }


def _old_verdicts(python: str, frame: Any, model: Any, rows: Sequence[int]) -> dict[str, int]:
    """Return how many rows get each verdict of 0.1."""
    with Release01(python, model, frame) as old:
        counts = Counter(old.explain(row).verdict for row in rows)
    return {f"old_{verdict}": counts[verdict] for verdict in OLD_VERDICTS}


def _totals(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the sums of counts, and medians of medians, of all rows."""
    totals: dict[str, Any] = {"table": "all", "model": "all"}
    for key in list(rows[0])[2:]:
        values = [row[key] for row in rows if row[key] is not None]
        if key == "lowest_audit":
            totals[key] = min(values, default=None)
        elif key == "most_words":
            totals[key] = max(values)
        else:
            totals[key] = statistics.median(values) if key.startswith("median") else sum(values)
    return totals


def audit(
    frame: Any, model: Any, row: int, facts: Collection[Fact], together: Collection[Collection[str]], rng: Any
) -> float:
    """Return the share of altered copies of a row that keep its decision, drawn by pandas alone.

    ``together`` are the columns of every attribute, which take their values from one row.
    """
    replace = 2 / (1 + math.e)
    stated = {fact.attribute: fact for fact in facts}
    donors = np.full((len(together), N_AUDIT), row)
    for j, columns in enumerate(together):
        fact = next((each for each in stated.values() if each.column in columns), None)
        if fact is not None:
            donors[j] = rng.choice(np.flatnonzero(is_true(fact, frame[fact.column])), size=N_AUDIT)
        else:
            drawn = rng.random(N_AUDIT) < replace
            donors[j, drawn] = rng.integers(len(frame), size=int(drawn.sum()))
    places = {name: j for j, columns in enumerate(together) for name in columns}
    copies = pd.DataFrame(
        {
            name: frame[name].take(donors[places[name]] if name in places else np.full(N_AUDIT, row)).to_numpy()
            if frame[name].dtype != "category"
            else frame[name].take(donors[places[name]] if name in places else np.full(N_AUDIT, row)).array
            for name in frame
        }
    )
    decision = model.predict(frame.iloc[[row]])[0]
    return float(np.mean(model.predict(copies) == decision))


def upper_limit(share: float, n: int) -> float:
    """Return the upper limit of the 95% interval of a share, by Clopper and Pearson."""
    n_stay = round(share * n)
    return 1.0 if n_stay == n else float(beta.ppf(0.975, n_stay + 1, n - n_stay))


_NAME = "\N{INFINITY}"  # stands for names from data, which are not counted


def words_beside_facts(result: Result) -> int:
    """Return the number of words of ``print(e)`` or ``print(rule)`` outside the facts, numbers included.

    Names from data are not counted: those of classes, outputs and their units, and columns.
    """
    if isinstance(result, Rule):
        statements = statements_of(replace(result, **_placeholders(result)))
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
