"""For methods that score units without asking about subsets: the full text, asked once.

Knows how the full text is asked and how scores become an Explanation, nothing of methods.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter

import numpy as np

from slalom.classifiers.base import Classifier, Target, is_independent
from slalom.document import Document, FloatArray
from slalom.explainers.base import Answers, TargetName, ask, scored
from slalom.explanation import Explanation, Quality, trust_of
from slalom.surrogates.base import Model
from slalom.surrogates.linear import LinearModel


@dataclass(frozen=True, eq=False)
class FullText:
    """One document, what the classifier says of all of it, and what is to be explained."""

    classifier: Classifier
    document: Document
    answers: Answers
    target: Target
    score: FloatArray  # () or (n_classes,) the log-odds, or centred logits, of the full text
    asked_at: float

    def additive(self, scores: FloatArray) -> LinearModel:
        """The model that takes the scores at their word: removing a unit takes its score away."""
        return LinearModel(scores, np.asarray(self.score - scores.sum(axis=0)))

    def explanation(
        self,
        method: str,
        scores: FloatArray,
        *,
        seed: int,
        model: Model | None = None,
        n_tokens: int = 0,
        notes: tuple[str, ...] = (),
    ) -> Explanation:
        """`n_tokens` are those that went through the model besides the full text."""
        document, answers = self.document.untied(), self.answers
        return Explanation(
            text=document.text,
            units=document.units,
            spans=document.spans,
            features=document.features,
            scores={"score": np.asarray(scores, dtype=np.float64)},
            errors={},
            identified=np.ones(document.n_units, dtype=bool),
            anchor=None,
            quality=Quality(
                r2=None,
                rmse=None,
                n_queries=answers.n_queries,
                n_tokens=answers.n_tokens + n_tokens,
                seconds=answers.seconds + perf_counter() - self.asked_at,
                trust=trust_of(None),
                notes=(*document.notes, *answers.remarks, *notes),
            ),
            logits=answers.logits[0],
            labels=tuple(self.classifier.labels),
            target=self.target.label,
            target_index=self.target.index,
            method=method,
            seed=seed,
            classifier=self.classifier.name,
            independent=is_independent(self.classifier),
            model=model,
        )


def full_texts(
    classifier: Classifier, documents: Sequence[Document], target: TargetName
) -> list[FullText]:
    """Ask the full text of every document, all together."""
    answered = ask(classifier, [(document, document.full()) for document in documents])
    start = perf_counter()
    cases = []
    for document, answers in zip(documents, answered, strict=True):
        chosen, scores = scored(classifier, target, answers.logits)
        cases.append(FullText(classifier, document, answers, chosen, scores[0], start))
    return cases
