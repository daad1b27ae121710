"""Controls: what a metric gives an explanation that knows nothing.

random     independent normal scores: the bottom of every ranking metric
constant   no unit matters: it predicts no change, the 1.00 of every removal error
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from slalom.classifiers.base import Classifier
from slalom.document import Document
from slalom.explainers.base import TargetName
from slalom.explainers.full_text import full_texts
from slalom.explanation import Explanation


@dataclass(frozen=True)
class Random:
    """Scores drawn at random; the same seed draws the same."""

    name: str = "random"
    summary: str = "control: random scores"

    def budget(self, document: Document) -> int:
        return 1

    def explain(
        self,
        classifier: Classifier,
        documents: Sequence[Document],
        *,
        target: TargetName,
        n_queries: int | None,
        seed: int,
    ) -> list[Explanation]:
        explanations = []
        for case in full_texts(classifier, documents, target):
            rng = np.random.default_rng((seed, 1))  # apart from every other use of the seed
            scores = rng.normal(size=(case.document.n_units, *case.score.shape))
            explanations.append(case.explanation(self.name, scores, seed=seed))
        return explanations


@dataclass(frozen=True)
class Constant:
    """Every unit scores 0."""

    name: str = "constant"
    summary: str = "control: no unit matters, every subset scores what the full text does"

    def budget(self, document: Document) -> int:
        return 1

    def explain(
        self,
        classifier: Classifier,
        documents: Sequence[Document],
        *,
        target: TargetName,
        n_queries: int | None,
        seed: int,
    ) -> list[Explanation]:
        explanations = []
        for case in full_texts(classifier, documents, target):
            scores = np.zeros((case.document.n_units, *case.score.shape))
            model = case.additive(scores)
            explanations.append(case.explanation(self.name, scores, seed=seed, model=model))
        return explanations
