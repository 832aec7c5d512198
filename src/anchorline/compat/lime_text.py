"""LIME's text explainer by its own names: existing calls keep working, and the weights now add up."""

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from anchorline.compat.lime_arguments import (
    class_labels,
    explain_labels,
    seed_from,
    settings_from,
    warn_without_effect,
)
from anchorline.compat.lime_explanation import LimeExplanation
from anchorline.errors import ParameterError, names_similar_keywords
from anchorline.explainer import Explainer
from anchorline.spaces.text import Text


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class LimeTextExplanation(LimeExplanation):
    """Explanations of one text by label; `as_list` returns words instead of statements.

    ``words`` are the words of the text, one per fact that may be stated, in the order in which they first occur.
    """

    words: tuple[str, ...] = ()

    def as_list(self, label: int = 1, positions: bool = False) -> list[tuple[str, float]]:
        """Return (word, weight) pairs, largest first; with ``positions``, "word 5" if occurrences are distinct."""
        explanation = self._explanation(label)
        names = [fact.column if positions else self.words[self._number(fact)] for fact in explanation.facts]
        return list(zip(names, explanation.contributions.tolist(), strict=True))


class LimeTextExplainer:
    r"""Explain texts with the names that ``lime.lime_text.LimeTextExplainer`` uses.

    The intercept and the weights of a label add up to the model's own output for that label. ``explanations`` of a
    result has the `anchorline.Explanation` of every label.

    Parameters
    ----------
    kernel_width, kernel, verbose, feature_selection
        Have no effect here. A value other than the default raises a warning that says what happens instead.
    class_names
        The names of the columns of the model's answers.
    split_expression
        A regular expression of what separates words, or a function that returns the list of words.
    bow
        Whether all occurrences of a word are one fact, and are deleted. Otherwise every occurrence is a fact of
        its own, and a mask takes its place.
    mask_string
        The mask; by default "UNKWORDZ", and the character NUL for characters.
    random_state
        A seed. None is seed 0, so that the same call gives the same bytes.
    char_level
        Whether characters take the place of words.

    Examples
    --------
    >>> def predict_proba(texts):
    ...     p = [0.9 if "great" in text else 0.2 for text in texts]
    ...     return [[1 - one, one] for one in p]
    >>> explainer = LimeTextExplainer(class_names=["bad", "good"])
    >>> result = explainer.explain_instance("A great, great day", predict_proba)
    >>> [(word, round(weight, 2)) for word, weight in result.as_list()], result.explanations[1].is_proven
    ([('great', 0.19)], True)
    """

    @names_similar_keywords("LimeTextExplainer")
    def __init__(
        self,
        kernel_width: float = 25,
        kernel: Callable[..., Any] | None = None,
        verbose: bool = False,
        class_names: Sequence[Any] | None = None,
        feature_selection: str = "auto",
        split_expression: str | Callable[[str], Sequence[str]] = r"\W+",
        bow: bool = True,
        mask_string: str | None = None,
        random_state: Any = None,
        char_level: bool = False,
    ) -> None:
        warn_without_effect(
            kernel_width=(kernel_width, 25),
            kernel=(kernel, None),
            verbose=(verbose, False),
            feature_selection=(feature_selection, "auto"),
        )
        self.class_names, self.bow, self.seed = class_labels(class_names), bool(bow), seed_from(random_state)
        mask = mask_string if mask_string is not None else chr(0) if char_level else "UNKWORDZ"
        unit: Any = list if char_level else split_expression
        if not callable(unit):
            unit = _Splitter(unit)
        self.space = Text(unit, "delete" if bow else mask, "all" if bow else "each")
        if not char_level:
            self.space.singular, self.space.noun = "word", "words"

    @names_similar_keywords("explain_instance")
    def explain_instance(
        self,
        text_instance: str,
        classifier_fn: Any,
        labels: Iterable[int] = (1,),
        top_labels: int | None = None,
        num_features: int = 10,
        num_samples: int = 5000,
        distance_metric: str = "cosine",
        model_regressor: Any = None,
    ) -> LimeTextExplanation:
        """Explain one text's prediction, with one independent explanation per label.

        ``classifier_fn`` maps a list of texts to (n, c) probabilities. ``num_features`` is the most words, and
        ``num_samples`` the most texts that the model is asked about, per label. ``distance_metric`` and
        ``model_regressor`` have no effect.

        Examples
        --------
        >>> share = lambda texts: [[1 - len(text) / 99, len(text) / 99] for text in texts]
        >>> LimeTextExplainer(class_names=["short", "long"]).explain_instance("a bb cccc", share).as_map()[1][0][0]
        2
        """
        warn_without_effect(distance_metric=(distance_metric, "cosine"), model_regressor=(model_regressor, None))
        settings = settings_from(num_features, num_samples, self.seed)
        explainer = Explainer(classifier_fn, self.space, classes=self.class_names)
        found = explain_labels(explainer, text_instance, labels, top_labels, settings)
        there = self.space.at(text_instance)
        first: dict[str, str] = {}
        for word in there.pieces[1::2]:
            first.setdefault(unicodedata.normalize("NFC", word), word)
        return LimeTextExplanation(
            feature_names=there.names,
            words=tuple(first.values()) if self.bow else there.pieces[1::2],
            **found,
        )


class _Splitter:
    """Cuts a text at a regular expression, as LIME does."""

    def __init__(self, expression: str) -> None:
        try:
            self._pattern = re.compile(f"(?:{expression})")
        except (re.error, TypeError) as error:
            raise ParameterError(
                f"split_expression is {expression!r}, which is not a regular expression: {error}. Type "
                r"split_expression=r'\W+'."
            ) from None
        self.__qualname__ = f"split at {expression!r}"  # what identifies the space

    def __call__(self, text: str) -> list[tuple[int, int]]:
        """Return the spans between what the expression matches."""
        ends = [0, *(end for match in self._pattern.finditer(text) for end in match.span()), len(text)]
        return [(start, stop) for start, stop in zip(ends[::2], ends[1::2], strict=True) if start < stop]
