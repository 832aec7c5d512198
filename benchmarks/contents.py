"""Texts and images against LIME's own explainers, with the same units, the same model and as many queries."""

import importlib
import re
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from anchorline.compat.lime_text import LimeTextExplainer as OurTextExplainer
from anchorline.explainer import Explainer
from anchorline.spaces.image import Image
from benchmarks.tasks import Stopwatch

K = 5  # terms; of LIME, 4 features and an intercept
N_TEXTS, N_PIECES = 30, 24  # per size
TEXT_SIZES = ((50, 100), (100, 250), (250, 500))  # words
IMAGE_SIZES = (50, 100, 200)  # regions
TEXT_QUERIES, IMAGE_QUERIES, N_FRESH = 5000, 1000, 4000
PAIRED = ("relevance_error", "fidelity_error", "share_of_decisions_kept", "same_facts_with_another_seed")
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
                text, predict, labels=(column,), num_features=K - 1, num_samples=TEXT_QUERIES
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
                num_features=K - 1,
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
        explainer = Explainer(subject.model, subject.space)
        e = explainer.explain(subject.instance, k=2, n_samples=2, n_certify=0, keep_noise=True)
        column = int(e.parameters["column"])
        for name, method in (("anchorline", _ours), ("LIME", _limes)):
            measured[name].append(_measured(subject, column, method))
    for name, rows in measured.items():
        times = {name: [row["overhead_seconds"] for row in each] for name, each in measured.items()}
        ratio = statistics.median(times["LIME"]) / statistics.median(times["anchorline"])
        yield {
            "size": size,
            "method": name,
            "instances": len(rows),
            **{key: statistics.mean(row[key] for row in rows) for key in rows[0] if key != "overhead_seconds"},
            **_differences(rows, measured["LIME"]),
            "median_overhead_seconds": statistics.median(times[name]),
            "lime_overhead_ratio": ratio if name == "anchorline" else 1.0,
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
    explainer = Explainer(model, subject.space, column=column)
    size: dict[str, Any] = {"n_samples": subject.n_queries - 1, "n_certify": 0, "sampling": "draw"}
    e = explainer.explain(subject.instance, k=K, seed=seed, moments="known", keep_noise=True, **size)
    return e.contributions, e.intercept


def _limes(subject: Subject, model: Stopwatch, column: int, seed: int) -> tuple[np.ndarray, float]:
    """Return LIME's sum in anchorline's form: a broken fact counts with the opposite sign, so half the weights."""
    pairs, intercept = subject.lime(model, column, seed)
    contributions = np.zeros(len(subject.space.at(subject.instance).literals))
    for number, weight in pairs:
        contributions[number] = weight / 2
    return contributions, float(intercept + contributions.sum())


def _measured(subject: Subject, column: int, method: Callable[..., tuple[np.ndarray, float]]) -> dict[str, float]:
    """Return errors on fresh neighbors, agreement of two seeds, anchoring gap, and time outside the model."""
    model, start = Stopwatch(subject.model, time.process_time), time.process_time()
    contributions, intercept = method(subject, model, column, 0)
    seconds, n_queries = time.process_time() - start - model.seconds, model.n_rows
    other, _ = method(subject, Stopwatch(subject.model), column, 1)
    explainer = Explainer(subject.model, subject.space, column=column)
    assessed = explainer.assess(subject.instance, contributions, intercept, n_fresh=N_FRESH, seed=99)
    prediction = float(np.asarray(subject.model(subject.space.at(subject.instance).original))[0, column])
    supports = [set(np.flatnonzero(each).tolist()) for each in (contributions, other)]
    stays = assessed.stability
    return {
        "facts": len(contributions),
        "queries": n_queries,
        "relevance_error": assessed.relevance_error.value,
        "fidelity_error": assessed.fidelity_error.value,
        "share_of_decisions_kept": 1.0 if stays is None else stays.value,
        "same_facts_with_another_seed": len(supports[0] & supports[1]) / max(1, len(supports[0] | supports[1])),
        "anchoring_gap": abs(intercept + float(contributions.sum()) - prediction),
        "overhead_seconds": seconds,
    }
