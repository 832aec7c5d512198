"""Texts and images against LIME's own explainers, with the same units, the same model and as many queries."""

import importlib
import math
import re
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from anchorline.compat.lime import LimeTextExplainer as OurTextExplainer
from anchorline.explainer import Explainer
from anchorline.spaces.regions import Image
from benchmarks.tasks import SEED, Stopwatch

K = 8  # words or regions of each
FLIPS = 1 / (1 + math.e)  # the probability with which a word or region is taken out at sigma = 1
N_TEXTS, N_PIECES = 12, 12  # per size
TEXT_SIZES = ((50, 100), (100, 250), (250, 500))  # words
IMAGE_SIZES = (50, 100, 200)  # regions
TEXT_QUERIES, IMAGE_QUERIES, N_FRESH = 5000, 1000, 4000
PAIRED = ("share_kept", "r2", "same_with_another_seed")
MODULES = (
    *("numpy", "numpy.linalg", "numpy.fft", "numpy.polynomial", "pandas", "pandas.api.types", "scipy.stats"),
    *(
        "scipy.optimize",
        "scipy.signal",
        "scipy.special",
        "scipy.sparse",
        "sklearn.metrics",
        "sklearn.linear_model",
    ),
    *("sklearn.ensemble", "sklearn.preprocessing", "sklearn.datasets", "matplotlib.pyplot"),
)


@dataclass(frozen=True, eq=False)
class Subject:
    """One instance: the space, the model, and LIME's answer as (unit number, weight) pairs and an intercept."""

    space: Any
    instance: Any
    model: Callable[[Any], np.ndarray]
    lime: Callable[[Callable[[Any], np.ndarray], int, int], tuple[list[tuple[int, float]], float]]
    n_queries: int


def compare_text() -> Iterator[dict[str, Any]]:
    """Yield one row per size of text and method: docstrings, classified by the package they are from."""
    from lime.lime_text import LimeTextExplainer
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    texts, packages = docstrings()
    held_out = {size: _of_size(texts, size) for size in TEXT_SIZES}
    tested = {place for places in held_out.values() for place in places}
    train = [i for i in range(len(texts)) if i not in tested]
    model = make_pipeline(TfidfVectorizer(), LogisticRegression(C=10.0, max_iter=1000))
    model.fit([texts[i] for i in train], [packages[i] for i in train])
    space = OurTextExplainer().space  # cuts texts exactly as LIME does

    def ask(text: str) -> Callable[..., Any]:
        def lime(predict: Callable[[Any], np.ndarray], column: int, seed: int) -> Any:
            explainer = LimeTextExplainer(random_state=seed)
            found = explainer.explain_instance(
                text, predict, labels=(column,), num_features=K, num_samples=TEXT_QUERIES
            )
            return found.local_exp[column], found.intercept[column]

        return lime

    for (low, high), places in held_out.items():
        subjects = [Subject(space, texts[i], model.predict_proba, ask(texts[i]), TEXT_QUERIES) for i in places]
        yield from _compare(f"{low} to {high} words", subjects)


def compare_images() -> Iterator[dict[str, Any]]:
    """Yield one row per number of regions and method: pieces of four photos, classified by their colors."""
    from lime.lime_image import LimeImageExplainer
    from skimage import data
    from sklearn.linear_model import LogisticRegression

    photos = [getattr(data, name)() for name in ("chelsea", "coffee", "astronaut", "rocket")]
    rng, pieces, names = np.random.default_rng(0), [], []
    for number, photo in enumerate(photos):
        for _ in range(150):
            y, x = (int(rng.integers(0, size - 128)) for size in photo.shape[:2])
            pieces.append(photo[y : y + 128, x : x + 128])
            names.append(number)
    fitted = LogisticRegression(C=30.0, max_iter=3000).fit(color_shares(np.array(pieces)), names)

    def ask(piece: np.ndarray, segments: np.ndarray) -> Callable[..., Any]:
        def lime(predict: Callable[[Any], np.ndarray], column: int, seed: int) -> Any:
            found = LimeImageExplainer(random_state=seed).explain_instance(
                piece,
                predict,
                labels=(column,),
                top_labels=None,
                hide_color=0,
                num_features=K,
                num_samples=IMAGE_QUERIES,
                batch_size=100,
                segmentation_fn=lambda image: segments,
            )
            return found.local_exp[column], found.intercept[column]

        return lime

    chosen = [150 * (i % len(photos)) + i // len(photos) for i in range(N_PIECES)]
    for n_segments in IMAGE_SIZES:
        subjects = []
        for place in chosen:
            segments = Image(n_segments=n_segments).at(pieces[place]).labels
            subjects.append(
                Subject(
                    Image(segments, hidden=0),
                    pieces[place],
                    lambda images: fitted.predict_proba(color_shares(images)),
                    ask(pieces[place], segments),
                    IMAGE_QUERIES,
                )
            )
        yield from _compare(f"about {n_segments} regions", subjects)


def color_shares(images: np.ndarray) -> np.ndarray:
    """Return the share of each of 64 colors in every image, (n, 64)."""
    bins = (np.asarray(images) // 64).astype(np.int64) @ [16, 4, 1]
    return np.asarray([np.bincount(one.ravel(), minlength=64) for one in bins]) / float(bins[0].size)


def docstrings() -> tuple[list[str], list[str]]:
    """Return different docstrings of public functions and classes in a fixed order, and the package of each."""
    texts: dict[str, str] = {}
    for module in MODULES:
        found = importlib.import_module(module)
        for name in sorted(vars(found)):
            text = getattr(getattr(found, name), "__doc__", None)
            if not name.startswith("_") and isinstance(text, str):
                texts.setdefault(" ".join(text.split()), module.partition(".")[0])
    return list(texts), list(texts.values())


def _of_size(texts: list[str], size: tuple[int, int]) -> list[int]:
    """Return the places of texts of this many words, evenly spread over the list."""
    places = [i for i, text in enumerate(texts) if size[0] <= len(re.findall(r"\w+", text)) < size[1]]
    return places[:: max(1, len(places) // N_TEXTS)][:N_TEXTS]


def _compare(size: str, subjects: list[Subject]) -> Iterator[dict[str, Any]]:
    measured: dict[str, list[dict[str, float]]] = {"anchorline": [], "LIME": []}
    for subject in subjects:
        column = int(np.asarray(subject.model(subject.space.at(subject.instance).original))[0].argmax())
        for name, method in (("anchorline", _ours), ("LIME", _limes)):
            measured[name].append(_measured(subject, column, method))
    times = {name: statistics.median(row["overhead_seconds"] for row in rows) for name, rows in measured.items()}
    for name, rows in measured.items():
        yield {
            "size": size,
            "method": name,
            "instances": len(rows),
            **{key: statistics.mean(row[key] for row in rows) for key in rows[0] if key != "overhead_seconds"},
            **_differences(rows, measured["LIME"]),
            "median_overhead_seconds": times[name],
            "lime_overhead_ratio": times["LIME"] / times[name],
        }


def _differences(rows: list[dict[str, float]], others: list[dict[str, float]]) -> dict[str, float]:
    """Return the means of a method minus those of LIME on the same instances, and their standard errors."""
    found = {}
    for key in PAIRED:
        pairs = [row[key] - other[key] for row, other in zip(rows, others, strict=True)]
        found[f"{key}_minus_lime"] = statistics.mean(pairs)
        found[f"{key}_minus_lime_error"] = statistics.stdev(pairs) / len(pairs) ** 0.5 if len(pairs) > 1 else 0.0
    return found


def _ours(subject: Subject, model: Stopwatch, column: int, seed: int) -> tuple[np.ndarray, float]:
    e = Explainer(model, subject.space, output=column).explain(
        subject.instance, k=K, queries=subject.n_queries, seed=seed
    )
    names = subject.space.at(subject.instance).names
    effects = np.zeros(len(names))
    effects[[names.index(fact.attribute) for fact in e.facts]] = e.effects
    return effects, e.prediction


def _limes(subject: Subject, model: Stopwatch, column: int, seed: int) -> tuple[np.ndarray, float]:
    """Return how much LIME's sum falls without each unit, and its value with all of them."""
    pairs, intercept = subject.lime(model, column, seed)
    effects = np.zeros(len(subject.space.at(subject.instance).names))
    for number, weight in pairs:
        effects[number] = weight
    return effects, float(intercept + effects.sum())


def _measured(subject: Subject, column: int, method: Callable[..., tuple[np.ndarray, float]]) -> dict[str, float]:
    """Return what fresh copies say, the agreement of two seeds, the anchoring gap, and time outside the model.

    ``share_kept`` is the share of copies with the chosen units that keep the decision, ``share_of_all`` that of
    copies in which any unit may be missing. ``r2`` is that of the sum over the latter.
    """
    model, start = Stopwatch(subject.model, time.process_time), time.process_time()
    effects, value = method(subject, model, column, 0)
    seconds = time.process_time() - start - model.seconds
    other, _ = method(subject, Stopwatch(subject.model), column, 1)
    there = subject.space.at(subject.instance)
    flips = np.random.default_rng(SEED).random((N_FRESH, len(effects))) < FLIPS
    scores = np.asarray(subject.model(there.realize_flips(flips)))
    kept = np.asarray(subject.model(there.realize_flips(flips & (effects == 0))))
    outputs, units = scores[:, column], [set(np.flatnonzero(each).tolist()) for each in (effects, other)]
    return {
        "units": len(effects),
        "chosen": len(units[0]),
        "queries": model.n_rows,
        "share_kept": float((kept.argmax(axis=1) == column).mean()),
        "share_of_all": float((scores.argmax(axis=1) == column).mean()),
        "r2": float(1 - np.mean((value - flips @ effects - outputs) ** 2) / outputs.var()),
        "same_with_another_seed": len(units[0] & units[1]) / max(1, len(units[0] | units[1])),
        "anchoring_gap": abs(value - float(np.asarray(subject.model(there.original))[0, column])),
        "overhead_seconds": seconds,
    }
