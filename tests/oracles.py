"""Classifiers whose explanation is known, for every test that needs a right answer."""

import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

import slalom
from slalom.document import FloatArray
from slalom.surrogates.base import Observations
from slalom.surrogates.slalom.model import Anchor, SlalomModel

WORDS = (
    "a film that dares to be slow and then rewards every patient viewer with scenes of rare "
    "beauty although its second half drags under weak dialogue clumsy music one tired joke that "
    "nobody quite laughed at"
).split()
TEXT = " ".join(WORDS)

REVIEW = (
    "the plot was not bad and the actors never looked bored while music of rare charm saved "
    "what a weak script could have lost on its long way to the end"
)
OWN = {word: 0.3 * np.sin(3.0 * place) for place, word in enumerate(dict.fromkeys(REVIEW.split()))}


def observed(
    counts: FloatArray, scores: FloatArray, *, weights: FloatArray | None = None
) -> Observations:
    """Answers about a document with one unit of each feature; without weights all count alike."""
    n_rows, n_features = counts.shape
    weights = np.ones(n_rows) if weights is None else weights
    return Observations(counts, scores, weights, np.ones(n_features))


@dataclass(frozen=True)
class Oracle:
    """A classifier that is exactly `model` over the words of TEXT, and counts its work."""

    model: SlalomModel
    classifier: slalom.FunctionClassifier
    asked: list[str]


def slalom_oracle(*, anchored: bool = True, seed: int = 0) -> Oracle:
    """An exact SLALOM over the distinct words of TEXT; the score is the log-odds of "pos"."""
    rng = np.random.default_rng(seed)
    n_words = len(set(WORDS))
    importances = rng.normal(size=n_words)
    anchor = Anchor(0.4, 1.0) if anchored else None
    model = SlalomModel(2 * rng.normal(size=n_words), importances - importances.mean(), anchor)
    return _oracle(model, model.predict)


def linear_oracle(*, seed: int = 0) -> tuple[Oracle, np.ndarray]:
    """A bag of words: log-odds are 0.3 plus the coefficient of every word present."""
    rng = np.random.default_rng(seed)
    coefficients = rng.normal(size=len(set(WORDS)))
    model = SlalomModel(coefficients, np.zeros(len(coefficients)), None)
    return _oracle(model, lambda counts: 0.3 + counts @ coefficients), coefficients


def _oracle(model: SlalomModel, score: Callable[[np.ndarray], np.ndarray]) -> Oracle:
    columns = {word: column for column, word in enumerate(dict.fromkeys(WORDS))}
    asked: list[str] = []

    def logits(texts: list[str]) -> np.ndarray:
        asked.extend(texts)
        counts = np.zeros((len(texts), len(columns)))
        for row, text in zip(counts, texts, strict=True):
            for word in text.split():
                row[columns[word]] += 1
        scores = score(counts)
        return np.column_stack([np.zeros(len(texts)), scores])

    classifier = slalom.FunctionClassifier(logits, labels=["neg", "pos"], gives="logits")
    return Oracle(model, classifier, asked)


class NeverEmpty(slalom.FunctionClassifier):
    """Like a decoder without special tokens: there must be something to read."""

    def __init__(self, ask, labels):
        super().__init__(ask, labels=labels, gives="logits")

    def split(self, text, units=None, *, too_long="error"):
        return replace(super().split(text, units, too_long=too_long), has_empty_query=False)

    def logits(self, asked):
        for document, queries in asked:
            assert (queries < document.n_units).any(axis=1).all()
        return super().logits(asked)


def added(words: list[str]) -> float:
    """Words of REVIEW that only add up, each by a number of its own."""
    return 0.2 + sum(OWN[word] for word in words)


def negated(words: list[str]) -> float:
    """The same, and "bad" counts against it, unless "not" stands right before it."""
    turned = [after for word, after in itertools.pairwise(words) if word == "not"]
    return added(words) + 1.5 * sum(1 if word in turned else -1 for word in words if word == "bad")


def classifier_of(
    score: Callable[[list[str]], float],
) -> tuple[slalom.FunctionClassifier, list[str]]:
    """A function of words as a classifier, and the texts that it was asked about."""
    asked: list[str] = []

    def logits(texts: list[str]) -> np.ndarray:
        asked.extend(texts)
        return np.array([[0.0, score(text.split())] for text in texts])

    return slalom.FunctionClassifier(logits, labels=["neg", "pos"], gives="logits"), asked
