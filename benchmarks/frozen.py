"""Did a change keep every byte? ``python -m benchmarks.frozen REVISION`` compares answers of two versions.

Some 200 answers about generated and shipped data (explanations, rules, changes, batches, their texts and pages)
are made twice, each time by a new process: with the sources of a revision of git, and with those at hand.
``python -m benchmarks.frozen REVISION --keep DIR`` also keeps the files.
"""

import argparse
import filecmp
import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

SEED = 0
TARGETS = {
    "numbers": "+20",
    "xgboost": "-30",
    "function": "+0.1",
    "hypercube": "-0.3",
}  # outputs without a decision
Answer = tuple[str, str | bytes]  # a file's name and content


def main(arguments: list[str] | None = None) -> int:
    """Compare the answers at a revision with those of the sources at hand; 1 if any differs."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.frozen", description=main.__doc__)
    parser.add_argument("revision", help="what git calls the version to compare with")
    parser.add_argument("--keep", type=Path, help="folder for both sets of files")
    chosen = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as temporary:
        folder = chosen.keep or Path(temporary)
        sources = Path(temporary, "sources")
        _git("worktree", "add", "--detach", "--quiet", str(sources), chosen.revision)
        try:
            _answers_of(sources / "src", folder / "before")
        finally:
            _git("worktree", "remove", "--force", str(sources))
        _answers_of(Path("src").resolve(), folder / "after")
        names = sorted({path.name for path in folder.glob("*/*")})
        pairs = [(folder / "before" / name, folder / "after" / name) for name in names]
        different = [new.name for old, new in pairs if not (old.exists() and new.exists() and _same(old, new))]
    print(*different, sep="\n", end="\n" if different else "")
    print(f"{len(names)} answers, {len(different)} differ")
    return 1 if different else 0


def _git(*arguments: str) -> None:
    subprocess.run(["git", *arguments], check=True)


def _same(old: Path, new: Path) -> bool:
    return filecmp.cmp(old, new, shallow=False)


def _answers_of(sources: Path, folder: Path) -> None:
    paths = os.pathsep.join([str(sources), str(Path.cwd())])
    environment = os.environ | {"PYTHONPATH": paths, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    code = f"from benchmarks.frozen import write; write({str(folder)!r}, {str(sources)!r})"
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True, env=environment)


def write(folder: str, sources: str) -> None:
    """Write all answers of the imported version, one file each."""
    import anchorline

    if not Path(anchorline.__file__).is_relative_to(sources):
        raise SystemExit(f"{anchorline.__file__} was imported instead of {sources}.")
    Path(folder).mkdir(parents=True, exist_ok=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for part in (tables, contents):
            for name, content in part():
                Path(folder, name).write_bytes(content.encode() if isinstance(content, str) else content)


def tables() -> Iterator[Answer]:
    """Yield answers about tables: numbers, categories, dates, missing values; functions, pipelines and trees."""
    import anchorline as al

    for name, (model, frame, keywords) in _models().items():
        explainer = al.Explainer(model, al.Table(frame, **keywords))
        for row in (1, 3, 8, 12, 20):
            yield from _explanation(f"{name}-{row}", explainer, frame[row : row + 1])
        yield from _rule_and_changes(name, explainer, frame[5:6])
        yield f"{name}-queries.json", explainer.explain(frame[6:7], queries=3000, k=3, alternatives=3).to_json()
        if name in ("forest", "svm", "function"):
            realistic = al.Explainer(model, al.Table(frame, neighbors="realistic", **keywords))
            yield from _explanation(f"{name}-realistic", realistic, frame[4:5])
    for name in ("boosting", "numbers", "function"):
        model, frame, keywords = _models()[name]
        yield from _batch(name, al.Explainer(model, al.Table(frame, **keywords)), frame[10:18])


def contents() -> Iterator[Answer]:
    """Yield answers about texts, an image, a signal and the hypercube."""
    import anchorline as al

    vote = al.Explainer(lambda z: np.tanh(z[:, :4] @ [0.5, 0.2, -0.4, 0.1] + z[:, 1] * z[:, 2]), al.Hypercube())
    yield from _explanation("hypercube", vote, [1, -1, 1, 1, -1, 1], sigma=0)
    yield from _explanation("hypercube-wide", vote, np.resize([1, -1, 1], 40))
    yield from _rule_and_changes("hypercube", vote, [1, -1, 1, 1, -1, 1])

    def spam(texts: Any) -> np.ndarray:
        words = [str(text).lower().split() for text in texts]
        return np.array([1 / (1 + np.exp(1 - each.count("free") - 2 * each.count("winner"))) for each in words])

    text = "You are a winner and you get a free ticket to the meeting, free of charge!"
    yield from _explanation("text", al.Explainer(spam, al.Text(), output="spam"), text)
    rng = np.random.default_rng(SEED)
    image, signal = rng.random((24, 24)), np.cumsum(rng.normal(size=120))
    bright = al.Explainer(
        lambda images: np.array([np.mean(np.asarray(each)[:12, :12]) for each in images]), al.Image()
    )
    yield from _explanation("image", bright, image)
    high = al.Explainer(
        lambda waves: np.array([np.max(np.asarray(each)[..., :60]) for each in waves]), al.Signal()
    )
    yield from _explanation("signal", high, signal)


def _explanation(name: str, explainer: Any, case: Any, **keywords: Any) -> Iterator[Answer]:
    e = explainer.explain(case, **keywords)
    yield f"{name}.json", e.to_json()
    yield f"{name}.txt", f"{e}\n{e.details()}"
    yield f"{name}.html", e.to_html()


def _rule_and_changes(name: str, explainer: Any, case: Any) -> Iterator[Answer]:
    for kind in ("rule", "changes", "frontier"):
        keywords = {"target": TARGETS.get(name)} if kind == "changes" else {}
        found = getattr(explainer, kind)(case, **keywords)
        yield f"{name}-{kind}.json", found.to_json()
        yield f"{name}-{kind}.txt", f"{found}\n{found.details() if kind != 'frontier' else ''}"
        if kind != "frontier":
            yield f"{name}-{kind}.html", found.to_html()


def _batch(name: str, explainer: Any, frame: Any) -> Iterator[Answer]:
    many = explainer.explain_many(frame, rule=True)
    yield f"{name}-batch.json", "\n".join(e.to_json() for e in many)
    yield f"{name}-batch.csv", many.to_frame().to_csv() + many.to_frame(by="fact").to_csv()
    rules = many.rules()
    yield f"{name}-rules.json", rules.to_json()
    yield f"{name}-rules.txt", str(rules)


def _models() -> dict[str, tuple[Callable[..., Any], Any, dict[str, Any]]]:
    """Return models with their tables and keywords of `Table`, by name."""
    import pandas as pd
    from lightgbm import LGBMClassifier
    from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
    from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier, RandomForestRegressor
    from sklearn.svm import SVC
    from xgboost import XGBRegressor

    from benchmarks.speed import credit_pipeline

    iris, cancer = (load(as_frame=True) for load in (load_iris, load_breast_cancer))
    diabetes = load_diabetes(as_frame=True)
    credit, pipeline = credit_pipeline("logistic regression")
    rng = np.random.default_rng(SEED)
    mixed = pd.DataFrame(
        {
            "age": rng.integers(18, 90, 500),
            "income": np.where(rng.random(500) < 0.1, np.nan, rng.lognormal(10, 1, 500).round(2)),
            "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 2000, 500), unit="D"),
            "owner": rng.random(500) < 0.4,
            "purpose": pd.Categorical(rng.choice(["car", "house", "travel", "other"], 500)),
        }
    )

    def score(frame: Any) -> np.ndarray:
        income, days = frame["income"].fillna(20_000), (frame["since"] - pd.Timestamp("2020-01-01")).dt.days
        total = (income < 22_000) * 1.5 + (frame["age"] < 30) - frame["owner"] * 0.8 + (days > 900) * 0.7
        return np.asarray(1 / (1 + np.exp(0.8 - total - (frame["purpose"] == "car"))), dtype=float)

    def named(library: Any, data: Any) -> Any:
        return library.fit(data.data, data.target), data.data, {}

    return {
        "boosting": named(HistGradientBoostingClassifier(random_state=SEED), cancer),
        "forest": named(RandomForestClassifier(50, random_state=SEED, max_depth=6), iris),
        "numbers": named(RandomForestRegressor(50, random_state=SEED, max_depth=6), diabetes),
        "xgboost": named(XGBRegressor(n_estimators=40, random_state=SEED), diabetes),
        "lightgbm": named(LGBMClassifier(n_estimators=30, random_state=SEED, verbose=-1), iris),
        "svm": named(SVC(probability=True, random_state=SEED), iris),
        "pipeline": (pipeline, credit, {}),
        "function": (score, mixed, {"groups": {"money": ["income", "owner"]}, "cuts": {"age": [25, 65]}}),
    }


if __name__ == "__main__":
    sys.exit(main())
