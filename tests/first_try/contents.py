"""Kinds of models of texts, images and signals: their weights are tiny and random, and nothing is downloaded."""

from typing import Any

import numpy as np

import anchorline as al
from tests.first_try.kinds import Try, kind

TEXTS, IMAGES, SIGNALS = "texts", "images", "signals"
TEXT = "great food and a slow waiter"
WORDS = "[PAD] [UNK] [CLS] [SEP] [MASK] great food and a slow waiter cold view this is about price taste ."
LABELS = {0: "bad", 1: "good"}


def _transformer(labels: dict[int, str]) -> dict[str, Any]:
    """Return a tiny model of Hugging Face, and its tokenizer."""
    import torch
    from transformers import BertConfig, BertForSequenceClassification, BertTokenizer

    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(WORDS.split()),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=64,
        initializer_range=1.0,
        id2label=labels,
        label2id={label: number for number, label in labels.items()},
    )
    vocabulary = {word: number for number, word in enumerate(WORDS.split())}
    return {"model": BertForSequenceClassification(config).eval(), "tokenizer": BertTokenizer(vocab=vocabulary)}


def _pipeline(task: str = "text-classification", labels: dict[int, str] | None = None, **keywords: Any) -> Any:
    from transformers import pipeline

    return pipeline(task, **_transformer(labels or LABELS), device="cpu", **keywords)


def text(model: Any, decisions: Any = ("bad", "good"), **keywords: Any) -> Try:
    """Explain one text."""
    return Try(model, al.Text(), TEXT, decisions=decisions, keywords=keywords)


@kind("model", TEXTS, "scikit-learn pipeline of texts")
def _() -> Try:
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    model = make_pipeline(TfidfVectorizer(), LogisticRegression())
    return text(
        model.fit(["great food", "great view", "slow waiter", "cold food"] * 5, ["good", "good", "bad", "bad"] * 5)
    )


@kind("model", TEXTS, "Hugging Face pipeline", "transformers", "torch")
def _() -> Try:
    return text(_pipeline())


@kind("model", TEXTS, "Hugging Face pipeline with top_k=None", "transformers", "torch")
def _() -> Try:
    return text(_pipeline(top_k=None))


@kind("model", TEXTS, "function around a Hugging Face pipeline", "transformers", "torch")
def _() -> Try:
    pipe = _pipeline()
    return text(lambda texts: pipe(texts))  # noqa: PLW0108  that is what users type


@kind("model", TEXTS, "function around a Hugging Face pipeline with top_k=None", "transformers", "torch")
def _() -> Try:
    pipe = _pipeline()
    return text(lambda texts: pipe(texts, top_k=None))


@kind("model", TEXTS, "Hugging Face pipeline, zero-shot", "transformers", "torch")
def _() -> Try:
    pipe = _pipeline("zero-shot-classification", {0: "contradiction", 1: "neutral", 2: "entailment"})
    return text(lambda texts: pipe(texts, candidate_labels=["price", "taste"]), ("price", "taste"))


@kind("model", TEXTS, "Hugging Face model with its tokenizer", "transformers", "torch")
def _() -> Try:
    both = _transformer(LABELS)

    def score(texts: Any) -> Any:
        return both["model"](**both["tokenizer"](texts, padding=True, return_tensors="pt")).logits.softmax(dim=1)

    return text(score, classes=["bad", "good"])


@kind("model", TEXTS, "sentence vectors with a linear model", "sentence_transformers", "torch")
def _() -> Try:
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.models import StaticEmbedding
    from sklearn.linear_model import LogisticRegression
    from tokenizers import Tokenizer, models, pre_tokenizers

    torch.manual_seed(0)
    vocabulary = {word: number for number, word in enumerate(WORDS.split())}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    encoder = SentenceTransformer(modules=[StaticEmbedding(tokenizer, embedding_dim=16)], device="cpu")
    texts = ["great food", "great view", "slow waiter", "cold food"]
    model = LogisticRegression().fit(encoder.encode(texts), ["good", "good", "bad", "bad"])
    return text(lambda texts: model.predict_proba(encoder.encode(texts)), classes=["bad", "good"])


# ---- images


def picture() -> np.ndarray:
    """Return a small image (height, width, channels) of bytes."""
    return np.random.default_rng(0).integers(0, 256, (32, 32, 3), dtype=np.uint8)


def _cnn(n_channels: int = 3) -> Any:
    import torch

    torch.manual_seed(0)
    layers = (torch.nn.Conv2d(n_channels, 4, 8, stride=8), torch.nn.ReLU(), torch.nn.Flatten())
    return torch.nn.Sequential(*layers, torch.nn.Linear(64, 2), torch.nn.Softmax(dim=1))


def image(model: Any, row: Any, **keywords: Any) -> Try:
    """Explain one image, cut into cells."""
    return Try(model, al.Image("grid", n_segments=16), row, ("class 0", "class 1"), keywords=keywords)


@kind("model", IMAGES, "scikit-learn classifier of flat images")
def _() -> Try:
    from sklearn.linear_model import LogisticRegression

    rows = np.random.default_rng(0).random((40, 64))
    model = LogisticRegression().fit(rows, np.where(rows[:, :8].sum(axis=1) > 4, "bright", "dark"))
    space = al.Image("grid", n_segments=16, flatten=True)
    return Try(model, space, rows[0].reshape(8, 8), ("bright", "dark"))


@kind("model", IMAGES, "CNN on arrays: nn.Module", "torch")
def _() -> Try:
    return image(_cnn(), picture() / np.float32(255))


@kind("model", IMAGES, "CNN on arrays without channels: nn.Module", "torch")
def _() -> Try:
    return image(_cnn(1), picture()[:, :, 0] / np.float32(255))


@kind("model", IMAGES, "CNN on arrays: function", "torch")
def _() -> Try:
    import torch

    net = _cnn()
    return image(lambda rows: net(torch.as_tensor(rows).permute(0, 3, 1, 2) / 255), picture())


@kind("model", IMAGES, "CNN on PIL images", "torch", "PIL")
def _() -> Try:
    import torch
    from PIL import Image

    net = _cnn()

    def score(images: Any) -> Any:
        resized = [np.asarray(Image.fromarray(each).resize((32, 32))) / np.float32(255) for each in images]
        with torch.no_grad():
            return net(torch.as_tensor(np.stack(resized)).permute(0, 3, 1, 2))

    return image(score, Image.fromarray(picture()))


@kind("model", IMAGES, "resnet18", "transformers", "torch", notes="softmax")
def _() -> Try:
    import torch
    from transformers import ResNetConfig, ResNetForImageClassification

    torch.manual_seed(0)
    config = ResNetConfig(depths=[2, 2, 2, 2], hidden_sizes=[64, 128, 256, 512], layer_type="basic", num_labels=2)
    return image(ResNetForImageClassification(config), picture() / np.float32(255))


# ---- signals


def _waves() -> tuple[np.ndarray, np.ndarray]:
    """Return signals (n, time) and their class."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(40, 60))
    rows[20:, 10:20] += 3
    return rows, np.repeat(["flat", "bump"], 20)


def signal(model: Any, row: Any, **given: Any) -> Try:
    """Explain one signal."""
    return Try(model, al.Signal(12), row, **{"decisions": ("bump", "flat"), **given})


@kind("model", SIGNALS, "scikit-learn classifier of signals")
def _() -> Try:
    from sklearn.linear_model import LogisticRegression

    rows, target = _waves()
    return signal(LogisticRegression().fit(rows, target), rows[30])


@kind("model", SIGNALS, "aeon classifier of signals (time)", "aeon")
def _() -> Try:
    from aeon.classification.interval_based import TimeSeriesForestClassifier

    rows, target = _waves()
    return signal(TimeSeriesForestClassifier(n_estimators=10, random_state=0).fit(rows, target), rows[30])


@kind("model", SIGNALS, "aeon classifier of signals (channels, time)", "aeon")
def _() -> Try:
    from aeon.classification.interval_based import TimeSeriesForestClassifier

    rows, target = _waves()
    both = np.stack([rows, -rows], axis=1)
    model = TimeSeriesForestClassifier(n_estimators=10, random_state=0).fit(both, target)
    return Try(model, al.Signal(12, channels="first"), both[30], ("bump", "flat"))


@kind("model", SIGNALS, "sktime classifier of signals (channels, time)", "sktime")
def _() -> Try:
    from sktime.classification.interval_based import TimeSeriesForestClassifier

    rows, target = _waves()
    model = TimeSeriesForestClassifier(n_estimators=10, random_state=0).fit(rows[:, None, :], target)
    return signal(model, rows[30][None, :])


@kind("model", SIGNALS, "CNN on signals: nn.Module", "torch")
def _() -> Try:
    import torch

    torch.manual_seed(0)
    layers = (torch.nn.Conv1d(1, 4, 6, stride=6), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(40, 2))
    net = torch.nn.Sequential(*layers, torch.nn.Softmax(dim=1))
    return signal(net, _waves()[0][30], decisions=("class 0", "class 1"))
