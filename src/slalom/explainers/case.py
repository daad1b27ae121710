"""One document on its way through a method, and how what was found becomes an Explanation.

Knows how answers become scores of the target and what every Explanation tells besides the
method's own findings; nothing of methods.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter

import numpy as np

from slalom.classifiers.base import Classifier, Target, is_independent, target_of
from slalom.document import BoolArray, Document, FloatArray
from slalom.explainers.base import Answers, TargetName, ask
from slalom.explanation import Explanation, Number, Quality, trust_of
from slalom.surrogates.base import Model
from slalom.surrogates.linear import LinearModel
from slalom.surrogates.slalom.model import SlalomModel


@dataclass(frozen=True, eq=False)
class Case:
    """One document, what the classifier said about it, and what is to be explained."""

    classifier: Classifier
    document: Document
    answers: Answers
    target: Target
    scores: FloatArray  # (n_queries,) or (n_queries, n_classes), the full text first
    begun: float = field(default_factory=perf_counter)

    @property
    def score(self) -> FloatArray:
        """() or (n_classes,) the log-odds, or centred logits, of the full text."""
        return np.asarray(self.scores[0])

    def scores_of(self, logits: FloatArray) -> FloatArray:
        """Logits of this classifier as scores of this case's target."""
        return self.target.scores(logits, independent=is_independent(self.classifier))

    def additive(self, scores: FloatArray) -> LinearModel:
        """The model that takes the scores at their word: removing a unit takes its score away."""
        return LinearModel(scores, np.asarray(self.score - scores.sum(axis=0)))

    def explanation(self, found: "Found", *, method: str, seed: int) -> Explanation:
        """The one place where an Explanation is made."""
        document, answers = self.document, self.answers
        identified = found.identified
        if identified is None:
            identified = np.ones(document.n_units, dtype=bool)
        return Explanation(
            text=document.text,
            units=document.units,
            spans=document.spans,
            features=document.features,
            scores=found.scores,
            errors=found.errors,
            identified=identified,
            anchor=found.model.anchor if isinstance(found.model, SlalomModel) else None,
            quality=Quality(
                r2=found.r2,
                rmse=found.rmse,
                n_queries=answers.n_queries,
                n_tokens=answers.n_tokens + found.n_tokens,
                seconds=answers.seconds + perf_counter() - self.begun,
                trust=trust_of(found.r2),
                notes=(*document.notes, *answers.remarks, *found.notes),
            ),
            logits=answers.logits[0],
            labels=tuple(self.classifier.labels),
            target=self.target.label,
            target_index=self.target.index,
            method=method,
            seed=seed,
            classifier=self.classifier.name,
            independent=is_independent(self.classifier),
            primary_score=found.primary_score,
            model=found.model,
            measured=found.measured,
            determined=found.determined,
            whole=_whole(found.model, identified),
            base=found.base,
            base_measured=found.base_measured,
            length_curve=found.length_curve,
            windowed=document.windowed,
        )


@dataclass(frozen=True, eq=False)
class Found:
    """What a method found out about the units of one document."""

    scores: dict[str, FloatArray]  # name → (n_units,) or (n_units, n_classes)
    errors: dict[str, FloatArray] = field(default_factory=dict)
    model: Model | None = None  # over units
    identified: BoolArray | None = None  # None: all of them
    r2: float | None = None
    rmse: float | None = None
    notes: tuple[str, ...] = ()
    n_tokens: int = 0  # that went through the model besides the queries
    primary_score: str | None = None
    measured: dict[str, BoolArray] = field(default_factory=dict)
    determined: FloatArray | None = None
    base: Number | None = None
    base_measured: bool = False
    length_curve: FloatArray | None = None


def case_of(
    classifier: Classifier, document: Document, answers: Answers, wanted: TargetName
) -> Case:
    """The target is settled by the answer to the full text, which stands in the first row."""
    target = target_of(wanted, classifier.labels, answers.logits[0])
    scores = target.scores(answers.logits, independent=is_independent(classifier))
    return Case(classifier, document, answers, target, scores)


def full_texts(
    classifier: Classifier, documents: Sequence[Document], target: TargetName
) -> list[Case]:
    """For methods that ask nothing but the full text of every document: all together."""
    answered = ask(classifier, [(document, document.full()) for document in documents])
    return [
        replace(case_of(classifier, document.untied(), answers, target), begun=perf_counter())
        for document, answers in zip(documents, answered, strict=True)
    ]


def _whole(model: Model | None, identified: BoolArray) -> Number | None:
    """What the model says of the whole text."""
    if model is None:
        return None
    said = model.predict(identified[None].astype(np.float64))[0]
    return np.asarray(said) if np.ndim(said) else float(said)
