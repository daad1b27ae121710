"""Explain by a surrogate: sample queries, ask them, fit a model, read scores off it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from time import perf_counter

import numpy as np

from slalom.classifiers.base import Classifier, is_independent
from slalom.document import Document, FloatArray
from slalom.errors import BudgetError, Setting
from slalom.explainers.base import Answers, TargetName, ask, scored
from slalom.explanation import Explanation, Quality, trust_of
from slalom.samplers.base import Sampler, Samples
from slalom.surrogates.base import Fit, Surrogate
from slalom.surrogates.slalom.model import SlalomModel
from slalom.surrogates.threads import one_thread

LEAST_QUERIES = 10  # of any method that fits a model


@dataclass(frozen=True)
class QueryBudget:
    """How many queries a document gets: so many a distinct unit, within bounds."""

    minimum: int
    per_unit: float
    maximum: int

    def __call__(self, document: Document) -> int:
        return int(np.clip(self.per_unit * document.n_features, self.minimum, self.maximum))


@dataclass(frozen=True)
class SurrogateExplainer:
    """Any sampler with any surrogate; `tied` lets equal units share one feature.

    `primary_score` names the score to look at first where the design does not bear out all.
    """

    name: str
    summary: str
    sampler: Sampler
    surrogate: Surrogate
    budget: QueryBudget
    tied: bool = True
    primary_score: str | None = None

    def explain(
        self,
        classifier: Classifier,
        documents: Sequence[Document],
        *,
        target: TargetName,
        n_queries: int | None,
        seed: int,
    ) -> list[Explanation]:
        for document in documents:
            _check_budget(document, n_queries)
        documents = [document if self.tied else document.untied() for document in documents]
        samples = [
            self.sampler.sample(
                document, n_queries or self.budget(document), np.random.default_rng(seed)
            )
            for document in documents
        ]
        pairs = [(d, s.queries) for d, s in zip(documents, samples, strict=True)]
        return [
            self._explain(classifier, *parts, target=target, seed=seed)
            for parts in zip(documents, samples, ask(classifier, pairs), strict=True)
        ]

    def _explain(
        self,
        classifier: Classifier,
        document: Document,
        samples: Samples,
        answers: Answers,
        *,
        target: TargetName,
        seed: int,
    ) -> Explanation:
        start = perf_counter()
        chosen, scores = scored(classifier, target, answers.logits)
        fit = self._fit(document, samples, answers, scores)
        spread = fit.model.spread(document.features)
        return Explanation(
            text=document.text,
            units=document.units,
            spans=document.spans,
            features=document.features,
            scores={name: score[document.features] for name, score in fit.scores.items()},
            errors={name: error[document.features] for name, error in fit.errors.items()},
            identified=fit.identified[document.features],
            anchor=spread.anchor if isinstance(spread, SlalomModel) else None,
            quality=Quality(
                r2=fit.r2,
                rmse=fit.rmse,
                n_queries=answers.n_queries,
                n_tokens=answers.n_tokens,
                seconds=answers.seconds + perf_counter() - start,
                trust=trust_of(fit.r2),
                notes=(
                    *document.notes,
                    *answers.remarks,
                    *fit.notes,
                    *_out_of_reach(samples, fit, document, scores),
                ),
            ),
            logits=answers.logits[0],
            labels=tuple(classifier.labels),
            target=chosen.label,
            target_index=chosen.index,
            method=self.name,
            seed=seed,
            classifier=classifier.name,
            independent=is_independent(classifier),
            primary_score=self.primary_score,
            model=spread,
        )

    def _fit(
        self, document: Document, samples: Samples, answers: Answers, scores: FloatArray
    ) -> Fit:
        """Queries the classifier cannot tell apart are one row, their weights added up."""
        counts = document.count(samples.queries)
        document_counts = document.count(document.full())[0]
        weights = samples.weights
        if self.tied:
            weights = np.bincount(answers.inverse, weights, answers.n_queries).astype(float)
            counts, scores = counts[answers.first], scores[answers.first]
        with one_thread():
            fit = self.surrogate.fit(
                counts, scores, weights=weights, document_counts=document_counts
            )
        return _over_everything(fit, counts, scores) if samples.complete else fit


def _check_budget(document: Document, n_queries: int | None) -> None:
    """A handful of queries says nothing about many units, and must not look as if it did."""
    needed = min(LEAST_QUERIES, 2 ** min(document.n_units, 30) - (not document.has_empty_query))
    if n_queries is not None and n_queries < needed:
        raise BudgetError(
            f"{n_queries} queries say nothing about {document.n_units} units: "
            f"allow at least {needed}, or leave ",
            Setting("n_queries"),
            " out",
        )


def _out_of_reach(
    samples: Samples, fit: Fit, document: Document, scores: FloatArray
) -> tuple[str, ...]:
    """What a design of short sequences, or of few deletions, says nothing about."""
    fitted = document.count(samples.queries[samples.weights > 0]).sum(axis=1)
    if scores.ndim > 1 or not len(fitted):
        return ()
    if fitted.max() < document.n_units / 2:
        full = document.count(document.full()) * fit.identified
        return (
            "fitted to short sequences only, and so is R²: for the full text the model says "
            f"{fit.model.predict(full)[0]:+.2f}, the classifier {scores[0]:+.2f}",
        )
    most = document.n_units - int(fitted.min())
    if 0 < most < document.n_units / 2 and "shapley" in fit.scores:
        units = "one unit" if most == 1 else f"{most} units"
        return (
            f"fitted to the text with up to {units} removed, "
            "and so is R²: read removal and gradient; values and Shapley values, which "
            "speak of much shorter texts, are out of its reach",
        )
    return ()


def _over_everything(fit: Fit, counts: FloatArray, scores: FloatArray) -> Fit:
    """Where every subset was asked nothing is left out: R² is a fact, not an estimate.

    Of a single unit any model describes everything; that is not worth a figure.
    """
    misses = (fit.model.predict(counts) - scores) ** 2
    spread = float(((scores - scores.mean(axis=0)) ** 2).sum())
    is_flat = spread <= (1e-9 * max(1.0, float(np.abs(scores).max()))) ** 2 * len(scores)
    is_judged = len(counts) > counts.shape[1] + 1 and not is_flat
    r2 = 1.0 - float(misses.sum()) / spread if is_judged else None
    note = f"all {len(counts)} subsets of the units were asked"
    return replace(fit, r2=r2, rmse=float(np.sqrt(misses.mean())), notes=(*fit.notes, note))
