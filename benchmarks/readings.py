"""Thirty explanations for a reader with no stake, who judges whether each sentence is true as a layman takes it.

``python -m benchmarks.readings FILE`` writes one text file. For every explanation it holds the setup in plain
words, the printed text, the rule, the legend, and the sentences of the report. The data are generated or ship with
scikit-learn, and all seeds are fixed, so that the same release writes the same sentences.
"""

import argparse
import html.parser
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import anchorline as al
from anchorline.samples import loans

_RULE = "=" * 100


@dataclass(frozen=True, slots=True)
class Reading:
    """An explanation to read: what was asked, in plain words, the explanation, and the mean over its table."""

    title: str
    explanation: al.Explanation
    training_mean: float | None = None


Maker = Callable[[], tuple[al.Explainer | None, al.Explanation]]


def readings() -> Iterator[Reading]:
    """Yield the thirty explanations, each made when it is asked for."""
    for title, make in CASES:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the explanation itself must show them
            explainer, explanation = make()
            mean = None if explainer is None else explainer.training_mean(explanation)
        yield Reading(title, explanation, mean)


def text_of(reading: Reading) -> str:
    """Return everything that a reader sees of one explanation."""
    e = reading.explanation
    parts = {
        "PRINTED": str(e),
        "AS A RULE": e.as_rule(),
        "LEGEND": e.explain_itself(),
        "REPORT": "\n".join(_sentences(e.to_html(training_mean=reading.training_mean))),
    }
    return "\n\n".join([reading.title, *(f"{name}\n{text}" for name, text in parts.items())])


def main(arguments: list[str] | None = None) -> int:
    """Write the explanations to a file, numbered."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.readings", description=main.__doc__)
    parser.add_argument("file", type=Path, help="text file to write")
    chosen = parser.parse_args(arguments)
    texts = [f"{number}. {text_of(reading)}" for number, reading in enumerate(readings(), start=1)]
    chosen.file.write_text(f"\n\n{_RULE}\n\n".join(texts) + "\n", encoding="utf-8")
    print(f"{len(texts)} explanations in {chosen.file}", file=sys.stderr)
    return 0


class _Text(html.parser.HTMLParser):
    """Collects the visible text of a report, one line per block; the record at its end is left out."""

    def __init__(self) -> None:
        super().__init__()
        self.lines, self._hidden = [""], 0

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        if tag in ("style", "title"):
            self._hidden += 1
        if tag in ("p", "h1", "h2", "h3", "tr", "dt", "summary", "caption", "footer"):
            self.lines.append("")
        elif tag in ("td", "dd", "span"):
            self.lines[-1] += " "

    def handle_endtag(self, tag: str) -> None:
        self._hidden -= tag in ("style", "title")

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self.lines[-1] += data


def _sentences(page: str) -> list[str]:
    parser = _Text()
    parser.feed(page.partition("<summary>For the record")[0])
    lines = (re.sub(r"\s+", " ", line).strip() for line in parser.lines)
    return [line for line in lines if line]


# Models and tables. Every function returns the explainer, if it has a training table, and the explanation.


def _table(data: Any, **options: Any) -> al.Table:
    """Return a table whose facts are bounds and intervals, unless the options name others."""
    return al.Table(data, **{"literals": "bounds", **options})


def _loans() -> tuple[Any, Any]:
    frame, decision = loans(2000)
    return frame.drop(columns=["applied"]), decision


def _loan_model(kind: str = "boosting") -> tuple[Any, Any, Any]:
    from sklearn.compose import make_column_transformer
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    frame, decision = _loans()
    texts = ["purpose", "branch"]
    numbers = [name for name in frame if name not in texts]
    one_hot = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    if kind == "boosting":
        encode = make_column_transformer((one_hot, texts), remainder="passthrough")
        last: Any = HistGradientBoostingClassifier(max_iter=40, random_state=0)
    else:
        scale = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
        encode = make_column_transformer((one_hot, texts), (scale, numbers))
        last = LogisticRegression(max_iter=1000)
    return make_pipeline(encode, last).fit(frame, decision), frame, decision


def _loan(row: int, kind: str = "boosting", table: dict[str, Any] | None = None, **keywords: Any) -> Maker:
    def make() -> tuple[al.Explainer, al.Explanation]:
        model, frame, _ = _loan_model(kind)
        own = {name: keywords[name] for name in ("output", "threshold", "task") if name in keywords}
        explainer = al.Explainer(model, _table(frame, **table or {}), **own)
        rest = {name: value for name, value in keywords.items() if name not in own}
        return explainer, explainer.explain(row, **rest)

    return make


def _cancer() -> tuple[Any, Any, Any]:
    from sklearn.datasets import load_breast_cancer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    data = load_breast_cancer(as_frame=True)
    target = np.array(data.target_names)[data.target]
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000)).fit(data.data, target)
    return model, data.data, target


def _tumor(row: int, **keywords: Any) -> Maker:
    def make() -> tuple[al.Explainer, al.Explanation]:
        model, frame, _ = _cancer()
        own = {name: keywords[name] for name in ("output", "threshold", "task") if name in keywords}
        explainer = al.Explainer(model, _table(frame), **own)
        return explainer, explainer.explain(row, **{k: v for k, v in keywords.items() if k not in own})

    return make


def _tuned_tumor() -> tuple[al.Explainer, al.Explanation]:
    from sklearn.model_selection import FixedThresholdClassifier

    model, frame, target = _cancer()
    tuned = FixedThresholdClassifier(model, threshold=0.9, pos_label="malignant").fit(frame, target)
    explainer = al.Explainer(tuned, _table(frame))
    return explainer, explainer.explain(1)


def _unscaled_tumor() -> tuple[al.Explainer, al.Explanation]:
    model, frame, _ = _cancer()
    explainer = al.Explainer(model[-1].predict_proba, _table(frame.to_numpy()), classes=["benign", "malignant"])
    return explainer, explainer.explain(0)


def _flowers(row: int, **keywords: Any) -> Maker:
    def make() -> tuple[al.Explainer, al.Explanation]:
        from sklearn.datasets import load_iris
        from sklearn.linear_model import LogisticRegression

        data = load_iris(as_frame=True)
        model = LogisticRegression(max_iter=1000).fit(data.data, np.array(data.target_names)[data.target])
        own = {name: keywords[name] for name in ("output", "task") if name in keywords}
        explainer = al.Explainer(model.predict if "task" in own else model, _table(data.data), **own)
        return explainer, explainer.explain(row, **{k: v for k, v in keywords.items() if k not in own})

    return make


def _wine(row: int, **keywords: Any) -> Maker:
    def make() -> tuple[al.Explainer, al.Explanation]:
        from sklearn.datasets import load_wine
        from sklearn.ensemble import RandomForestClassifier

        data = load_wine(as_frame=True)
        model = RandomForestClassifier(100, random_state=0).fit(data.data, data.target)
        own = {name: keywords[name] for name in ("output",) if name in keywords}
        explainer = al.Explainer(model, _table(data.data), **own)
        return explainer, explainer.explain(row, **{k: v for k, v in keywords.items() if k not in own})

    return make


def _diabetes(row: int, kind: str, table: dict[str, Any] | None = None, **keywords: Any) -> Maker:
    def make() -> tuple[al.Explainer, al.Explanation]:
        from sklearn.datasets import load_diabetes
        from sklearn.ensemble import HistGradientBoostingRegressor
        from sklearn.linear_model import Ridge

        data = load_diabetes(as_frame=True, scaled=False)
        last: Any = Ridge() if kind == "linear" else HistGradientBoostingRegressor(max_iter=60, random_state=0)
        own = {name: keywords[name] for name in ("output_range", "same_within", "threshold") if name in keywords}
        explainer = al.Explainer(
            last.fit(data.data, data.target), _table(data.data, **table or {}), output="progression", **own
        )
        return explainer, explainer.explain(row, **{k: v for k, v in keywords.items() if k not in own})

    return make


def _houses(n_columns: int = 6) -> tuple[Any, np.ndarray]:
    """Return generated houses and their prices, one of which is a palace."""
    import pandas as pd

    rng = np.random.default_rng(7)
    n = 1500
    frame = pd.DataFrame(
        {
            "area": np.round(rng.normal(110, 30, n).clip(30)),
            "rooms": rng.integers(1, 8, n),
            "age": rng.integers(0, 90, n),
            "garden": rng.random(n) < 0.4,
            "city": rng.choice(["Lund", "Malmo", "Ystad"], n),
            "floor": rng.integers(0, 12, n),
        }
    )
    frame.loc[3, ["area", "rooms"]] = [4000, 7]
    price = 2.1 * frame["area"] - 0.6 * frame["age"] + 40 * frame["garden"] + 60 * (frame["city"] == "Lund")
    return frame.iloc[:, :n_columns], np.asarray(price, dtype=np.float64)


def _house(**keywords: Any) -> Maker:
    """Explain a price by a formula; without the palace, a tenth of the range would be a small change."""

    def price(rows: Any) -> np.ndarray:
        lund, garden = rows["city"] == "Lund", rows["garden"].astype(float)
        return np.asarray(2.1 * rows["area"] - 0.6 * rows["age"] + 40 * garden + 60 * lund, dtype=np.float64)

    def make() -> tuple[al.Explainer, al.Explanation]:
        explainer = al.Explainer(price, _table(_houses()[0]), output="price", input="frame")
        return explainer, explainer.explain(8, **keywords)

    return make


def _two_columns(**keywords: Any) -> Maker:
    """Explain a decision by two columns, so that many neighbors equal the case."""

    def make() -> tuple[al.Explainer, al.Explanation]:
        import pandas as pd

        rng = np.random.default_rng(1)
        frame = pd.DataFrame({"member": rng.random(400) < 0.5, "late payments": rng.integers(0, 4, 400)})

        def scores(rows: Any) -> np.ndarray:
            refused = 1 / (1 + np.exp(2.0 - 1.2 * rows["late payments"] + 0.8 * rows["member"]))
            return np.column_stack([1 - refused, refused])

        explainer = al.Explainer(scores, _table(frame), classes=["granted", "refused"], input="frame")
        return explainer, explainer.explain(int(np.argmax(frame["late payments"])), **keywords)

    return make


def _enumerated(**keywords: Any) -> Maker:
    """Explain a decision on a table of few yes/no columns, all of whose neighbors are queried."""

    def make() -> tuple[al.Explainer, al.Explanation]:
        import pandas as pd

        rng = np.random.default_rng(2)
        names = ["owner", "insured", "employed", "guarantor", "resident"]
        frame = pd.DataFrame({name: rng.random(300) < 0.5 for name in names})

        def scores(rows: Any) -> np.ndarray:
            points = 2 * rows["owner"] + 1.5 * rows["employed"] + rows["guarantor"] + 0.2 * rows["resident"]
            yes = 1 / (1 + np.exp(2.2 - points.astype(float)))
            return np.column_stack([1 - yes, yes])

        explainer = al.Explainer(scores, _table(frame), classes=["no", "yes"], input="frame")
        return explainer, explainer.explain([True, False, True, True, True], **keywords)

    return make


_NAMES: list[str | tuple[str, str]] = [("income >= 65k", "income < 65k"), ("debt <= 30%", "debt > 30%")]
_NAMES += ["owner", "citizen", *(f"purchase {j}" for j in range(16))]
_POINT = np.tile([1, 1, -1, 1], 5)


def _approve(z: np.ndarray) -> np.ndarray:
    signs = np.repeat([1, -1], 8)
    scores: np.ndarray = np.tanh(0.7 * z[:, 0] + 0.5 * z[:, 1] - 0.4 * z[:, 2] * z[:, 3] + 0.18 * z[:, 4:] @ signs)
    return scores


def _hypercube(**keywords: Any) -> Maker:
    def make() -> tuple[None, al.Explanation]:
        return None, al.explain(_approve, _POINT, names=_NAMES, output="score", **keywords)

    return make


def _shortest() -> tuple[None, al.Explanation]:
    explainer = al.Explainer(_approve, al.Hypercube(_NAMES), output="score", threshold=0.0)
    return None, explainer.shortest(_POINT, max_relevance_error=0.1)


def _parity() -> tuple[None, al.Explanation]:
    names = [f"switch {j}" for j in range(12)]
    return None, al.explain(
        lambda z: np.prod(z[:, :4], axis=1).astype(int), [1] * 12, names=names, output="lamp", task="label", k=3
    )


def _constant() -> tuple[al.Explainer, al.Explanation]:
    frame, _ = _loans()

    def risk(rows: Any) -> np.ndarray:
        return np.full(len(rows), 0.7)

    explainer = al.Explainer(risk, _table(frame), output="risk", output_range=(0, 1))
    return explainer, explainer.explain(4)


def _leaking() -> tuple[al.Explainer, al.Explanation]:
    frame, decision = _loans()
    frame = frame.assign(outcome=decision)

    def scores(rows: Any) -> np.ndarray:
        yes = 0.1 + 0.8 * (np.asarray(rows["outcome"]) == "approved")
        return np.column_stack([yes, 1 - yes])

    explainer = al.Explainer(scores, _table(frame), classes=["approved", "declined"], input="frame")
    return explainer, explainer.explain(1)


def _new_value() -> tuple[al.Explainer, al.Explanation]:
    model, frame, _ = _loan_model()
    explainer = al.Explainer(model, _table(frame))
    return explainer, explainer.explain(frame.iloc[5].to_dict() | {"age": 119, "purpose": "spaceship"})


_INTERVALS = {"literals": "intervals"}
CASES: tuple[tuple[str, Maker], ...] = (
    ("A bank explains why a loan was declined (boosting).", _loan(1)),
    ("A bank explains why a loan was approved (logistic regression).", _loan(0, "linear")),
    ("The same loan, with facts that are intervals.", _loan(1, table=_INTERVALS)),
    ("The declined loan, for the class that the model does not predict.", _loan(1, output="approved")),
    ("A loan with a missing value.", _loan(22)),
    ("A loan whose probability of approval must reach 0.7.", _loan(7, output="approved", threshold=0.7)),
    ("A row with an age and a purpose that no training row has.", _new_value),
    ("A loan whose facts were tested as whole intervals.", _loan(1, table={"within": "redraw"})),
    ("A table that holds the outcome itself.", _leaking),
    ("A malignant tumor (logistic regression on 30 scaled columns).", _tumor(0)),
    ("A benign tumor, explained by at most two terms.", _tumor(19, k=2)),
    ("A classifier that says malignant only at a probability of 90%.", _tuned_tumor),
    ("A model that was fitted on scaled values and gets raw ones.", _unscaled_tumor),
    ("A flower of three species.", _flowers(70)),
    ("The label of a flower.", _flowers(110, task="label", output="species")),
    ("A wine of three classes named 0, 1 and 2.", _wine(60)),
    ("The wine, for a class that the model does not predict.", _wine(60, output="0")),
    ("The progress of a disease, a number (boosting).", _diabetes(10, "boosting")),
    ("The progress of a disease by a linear model, whose outputs leave the known range.", _diabetes(23, "linear")),
    ("The same with intervals, and a distance of 40.", _diabetes(23, "linear", _INTERVALS, same_within=40)),
    ("The price of a house in a table with one palace.", _house()),
    ("The price of a house by one term.", _house(k=1)),
    ("A decision by two columns.", _two_columns()),
    ("A decision by five yes/no columns, all neighbors enumerated.", _enumerated()),
    ("The same, by the facts that hold the decision best.", _enumerated(objective="relevance")),
    ("A score of 20 yes/no facts with a threshold.", _hypercube(k=4, threshold=0.0)),
    ("The score itself, a number, measured on few neighbors.", _hypercube(k=4, n_samples=2000, n_certify=600)),
    ("The fewest facts that hold the decision.", _shortest),
    ("A lamp that depends on four switches at once.", _parity),
    ("A model that always gives the same answer.", _constant),
)


if __name__ == "__main__":
    raise SystemExit(main())
