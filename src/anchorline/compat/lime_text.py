"""LIME's text explainer by its own names: existing calls keep working, and the weights now add up."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from anchorline.compat.lime_arguments import check_selection, class_labels, seed_from, warn_without_effect
from anchorline.compat.lime_explanation import LimeExplanation
from anchorline.compat.lime_labels import check_number_of_features, explain_labels
from anchorline.errors import ParameterError, names_similar_keywords
from anchorline.settings import Settings
from anchorline.spaces.text import Text, literals_of


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class LimeTextExplanation(LimeExplanation):
    """Explanations of one text by label; `as_list` returns words instead of statements.

    ``words`` are the words of the text, one per fact, in the order in which they first occur.
    """

    words: tuple[str, ...] = ()

    @cached_property
    def local_exp(self) -> dict[int, list[tuple[int, float]]]:
        """(Number of the word, weight) pairs by label, largest first."""
        return {
            label: [(term.index, term.contribution) for term in explanation.terms]
            for label, explanation in self.explanations.items()
        }

    def as_list(self, label: int = 1, positions: bool = False) -> list[tuple[str, float]]:
        """Return (word, weight) pairs, largest first; with ``positions``, the statements that name places."""
        terms = self._explanation(label).terms
        texts = [term.literal.name if positions else self.words[term.index] for term in terms]
        return [(text, term.contribution) for text, term in zip(texts, terms, strict=True)]


class LimeTextExplainer:
    r"""Explain texts with the names that ``lime.lime_text.LimeTextExplainer`` uses.

    The intercept and the weights of a label add up to the model's own output for that label. The
    `anchorline.Explanation` of every label has a certificate.

    Parameters
    ----------
    kernel_width, kernel, verbose
        Have no effect here. A value other than the default raises a warning that says what happens instead.
    class_names
        The names of the columns of the model's answers.
    feature_selection
        Every method except "auto" raises a warning, because anchorline finds the best choice and proves that it is
        best.
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
    >>> [(word, round(weight, 2)) for word, weight in result.as_list()][:1], result.explanations[1].is_proved
    ([('great', 0.35)], True)
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
            kernel_width=None if kernel_width == 25 else kernel_width, kernel=kernel, verbose=verbose
        )
        check_selection(feature_selection)
        self.class_names = class_labels(class_names, "classification")
        self.split_expression, self.bow, self.char_level = split_expression, bool(bow), bool(char_level)
        self.mask_string = mask_string if mask_string is not None else chr(0) if char_level else "UNKWORDZ"
        self.seed = seed_from(random_state)
        unit: Any = list if char_level else split_expression
        if not callable(unit):
            unit = _Splitter(unit)
        self.space = Text(unit, "delete" if bow else self.mask_string, "all" if bow else "each")

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

        ``classifier_fn`` maps a list of texts to (n, c) probabilities. ``num_features`` is the maximum number of
        words in addition to the intercept. ``num_samples`` is the number of neighbors for the search; as many
        fresh neighbors measure the result. ``distance_metric`` and ``model_regressor`` have no effect.

        Examples
        --------
        >>> share = lambda texts: [[1 - len(text) / 99, len(text) / 99] for text in texts]
        >>> LimeTextExplainer(class_names=["short", "long"]).explain_instance("a bb cccc", share).as_map()[1][0][0]
        2
        """
        metric = "euclidean" if distance_metric == "cosine" else distance_metric  # LIME's default for texts
        warn_without_effect(distance_metric=metric, model_regressor=model_regressor)
        k = check_number_of_features(num_features) + 1
        settings = Settings.from_keywords(k=k, n_samples=num_samples, seed=self.seed, keep_noise=True)
        found = explain_labels(
            self.space, text_instance, classifier_fn, self.class_names, labels, top_labels, settings
        )
        neighborhood = self.space.at(text_instance)
        pieces, numbers = neighborhood.pieces, literals_of(neighborhood.pieces, neighborhood.literals)
        words = dict(reversed([*zip(numbers, pieces[1::2], strict=True)]))
        return LimeTextExplanation(
            mode="classification",
            explanations=found.explanations,
            feature_names=tuple(words[number] for number in sorted(words)),
            class_names=found.names,
            predict_proba=found.outputs,
            top_labels=found.top,
            words=tuple(words[number] for number in sorted(words)),
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
