"""Explain by a surrogate: sample queries, ask them, fit a model, read scores off it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from time import perf_counter

import numpy as np

from slalom.classifiers.base import Classifier
from slalom.document import Document
from slalom.errors import BudgetError, Setting
from slalom.explainers.base import TargetName, ask
from slalom.explainers.case import Case, Found, case_of
from slalom.explanation import Explanation
from slalom.samplers.base import Sampler, Samples
from slalom.surrogates.base import Fit, Observations, Surrogate, fit_many
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
        cases = self.ask(classifier, documents, target=target, n_queries=n_queries, seed=seed)
        observed = [self.observations(case) for case in cases]
        start = perf_counter()
        with one_thread():
            fits = fit_many(self.surrogate, observed)
        seconds = (perf_counter() - start) / max(1, len(fits))
        return self.explanations(cases, fits, seed=seed, seconds=seconds)

    def ask(
        self,
        classifier: Classifier,
        documents: Sequence[Document],
        *,
        target: TargetName,
        n_queries: int | None,
        seed: int,
    ) -> list["Sampled"]:
        """The first of two steps: what the classifier says to a sample of queries."""
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
            Sampled(case_of(classifier, document, answers, target), drawn)
            for document, drawn, answers in zip(
                documents, samples, ask(classifier, pairs), strict=True
            )
        ]

    def observations(self, sampled: "Sampled") -> Observations:
        """Queries the classifier cannot tell apart are one row, their weights added up."""
        case, samples, answers = sampled.case, sampled.samples, sampled.case.answers
        counts, scores, weights = case.document.count(samples.queries), case.scores, samples.weights
        if self.tied:
            weights = np.bincount(answers.inverse, weights, len(answers.first)).astype(float)
            counts, scores = counts[answers.first], scores[answers.first]
        at_document = case.document.count(case.document.full())[0]
        return Observations(counts, scores, weights, at_document)

    def explanations(
        self, sampled: Sequence["Sampled"], fits: Sequence[Fit], *, seed: int, seconds: float
    ) -> list[Explanation]:
        """The last step: what the fits, which took so many seconds each, say of the units."""
        explanations = []
        for one, fit in zip(sampled, fits, strict=True):
            case = replace(one.case, begun=perf_counter() - seconds)
            explanations.append(
                case.explanation(self._found(one, fit), method=self.name, seed=seed)
            )
        return explanations

    def _found(self, sampled: "Sampled", fit: Fit) -> Found:
        features = sampled.case.document.features
        notes = _out_of_reach(sampled, fit)
        if sampled.samples.complete:
            fit = _over_everything(fit, self.observations(sampled))
        return Found(
            scores={name: score[features] for name, score in fit.scores.items()},
            errors={name: error[features] for name, error in fit.errors.items()},
            model=fit.model.spread(features),
            identified=fit.identified[features],
            r2=fit.r2,
            rmse=fit.rmse,
            notes=(*fit.notes, *notes),
            primary_score=self.primary_score,
        )


@dataclass(frozen=True, eq=False)
class Sampled:
    """One document with the queries that were drawn for it and their answers."""

    case: Case
    samples: Samples


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


def _out_of_reach(sampled: Sampled, fit: Fit) -> tuple[str, ...]:
    """What a design of short sequences, or of few deletions, says nothing about."""
    document, samples, scores = sampled.case.document, sampled.samples, sampled.case.scores
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


def _over_everything(fit: Fit, seen: Observations) -> Fit:
    """Where every subset was asked nothing is left out: R² is a fact, not an estimate.

    Of a single unit any model describes everything; that is not worth a figure.
    """
    counts, scores = seen.counts, seen.scores
    misses = (fit.model.predict(counts) - scores) ** 2
    spread = float(((scores - scores.mean(axis=0)) ** 2).sum())
    is_flat = spread <= (1e-9 * max(1.0, float(np.abs(scores).max()))) ** 2 * len(scores)
    is_judged = len(counts) > counts.shape[1] + 1 and not is_flat
    r2 = 1.0 - float(misses.sum()) / spread if is_judged else None
    note = f"all {len(counts)} subsets of the units were asked"
    return replace(fit, r2=r2, rmse=float(np.sqrt(misses.mean())), notes=(*fit.notes, note))
