"""White-box methods: gradients, attention, relevance.

Knows how a classifier's internals are reached and how token scores become unit scores; the
scores themselves are computed in gradients.py and attention.py.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np

from slalom.classifiers.base import Classifier, Target
from slalom.classifiers.internals import Internals, Outcome, internals_of
from slalom.document import Document, FloatArray, IntArray
from slalom.explainers.base import Request, TargetName
from slalom.explainers.case import Case, Found, case_of
from slalom.explainers.execution.answers import ask
from slalom.explanation import Explanation

if TYPE_CHECKING:
    from torch import Tensor

Scorer = Callable[[Internals, Case], tuple[FloatArray, int]]  # unit scores, tokens computed

RESOLUTION = 1e-6  # of single precision, for gradients of the order of 1
ROUNDING = "all scores are rounding errors: before a layer norm the mean of a gradient is 0"


@dataclass(frozen=True)
class WhiteBox:
    """One of the methods; `additive` scores are log-odds that are lost when units are removed."""

    name: str
    summary: str
    score: Scorer
    additive: bool = False

    def budget(self, document: Document) -> int:
        return 1

    def explain(
        self, classifier: Classifier, documents: Sequence[Document], request: Request
    ) -> list[Explanation]:
        inside = internals_of(classifier)
        explanations = []
        for case in full_texts(classifier, documents, request.target):
            start = perf_counter()
            scores, n_tokens = self.score(inside, case)
            model = case.additive(scores) if self.additive else None
            notes = (ROUNDING,) if np.abs(scores).max(initial=0.0) < RESOLUTION else ()
            found = Found({"score": scores}, model=model, n_tokens=n_tokens, notes=notes)
            explanations.append(
                case.explanation(
                    found, method=self.name, seed=request.seed, seconds=perf_counter() - start
                )
            )
        return explanations


def full_texts(
    classifier: Classifier, documents: Sequence[Document], target: TargetName
) -> list[Case]:
    """Nothing is asked but the full text of every document, all together."""
    answered = ask(classifier, [(document, document.full()) for document in documents])
    return [
        case_of(document.untied(), answers, target)
        for document, answers in zip(documents, answered, strict=True)
    ]


def outcomes(case: Case) -> list[Outcome]:
    """The functions that are differentiated: the target's log-odds, or every centred logit."""
    independent = case.outputs.independent
    if case.target.index is not None:
        return [lambda logits: log_odds(case.target, logits, independent=independent)]

    def column(index: int) -> Outcome:
        if independent:
            return lambda logits: logits[:, index]
        return lambda logits: logits[:, index] - logits.mean(dim=1)

    return [column(index) for index in range(len(case.outputs.labels))]


def log_odds(target: Target, logits: "Tensor", *, independent: bool) -> "Tensor":
    """`Target.scores` in torch: (n, n_classes) → (n,)."""
    index = target.index
    assert index is not None
    if independent or logits.shape[1] == 1:
        return logits[:, index]
    others = [at for at in range(logits.shape[1]) if at != index]
    return logits[:, index] - logits[:, others].logsumexp(dim=1)


def summed(columns: Sequence["Tensor"], units: IntArray, case: Case) -> FloatArray:
    """Token scores summed over each unit: (n_units,), or (n_units, n_classes) for all classes."""
    table = np.zeros((case.document.n_units, len(columns)))
    shown = units >= 0
    for column, tokens in enumerate(columns):
        scores = tokens.detach().double().cpu().numpy()
        np.add.at(table[:, column], units[shown], scores[shown])
    return table[:, 0] if case.target.index is not None else table


def strongest(tokens: "Tensor", units: IntArray, case: Case) -> FloatArray:
    """The highest of a unit's token scores, the same for every class."""
    scores = np.zeros(case.document.n_units)
    np.maximum.at(scores, units[units >= 0], tokens.numpy()[units >= 0])
    if case.target.index is not None:
        return scores
    return np.repeat(scores[:, None], len(case.outputs.labels), axis=1)
