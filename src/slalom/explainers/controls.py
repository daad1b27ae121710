"""Controls: what a metric gives an explanation that knows nothing.

random     independent normal scores: the bottom of every ranking metric
constant   no unit matters: it predicts no change, the 1.00 of every removal error
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from slalom.document import Document, FloatArray
from slalom.explainers.base import Ask, Plan, Request
from slalom.explainers.case import Found, case_of

Scores = Callable[[tuple[int, ...], int], FloatArray]  # a shape and the seed → scores


@dataclass(frozen=True)
class Control:
    """Scores made without looking at the classifier; `additive` ones predict subsets too."""

    name: str
    summary: str
    scores: Scores
    additive: bool = False

    def budget(self, document: Document) -> int:
        return 1

    def plan(self, document: Document, request: Request) -> Plan:
        answers = yield Ask(document, document.full())
        case = case_of(document.untied(), answers, request.target)
        scores = self.scores((document.n_units, *case.score.shape), request.seed)
        model = case.additive(scores) if self.additive else None
        return case.explanation(
            Found({"score": scores}, model=model), method=self.name, seed=request.seed
        )


def at_random(shape: tuple[int, ...], seed: int) -> FloatArray:
    """The same seed draws the same, apart from every other use of the seed."""
    return np.random.default_rng((seed, 1)).normal(size=shape)


def all_zero(shape: tuple[int, ...], seed: int) -> FloatArray:
    return np.zeros(shape)
