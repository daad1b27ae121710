"""Explain by a surrogate: sample queries, ask them, fit a model, read scores off it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import ClassVar

import numpy as np

from slalom.classifiers.base import Classifier
from slalom.document import Document, FloatArray
from slalom.errors import BudgetError, Setting, counted
from slalom.explainers.accelerated import Posteriors, posteriors_by
from slalom.explainers.base import Request, ask
from slalom.explainers.case import Case, Found, case_of
from slalom.explainers.facts import (
    ALL_ASKED,
    Facts,
    FollowUp,
    as_fitted,
    ask_facts,
    scores_of,
)
from slalom.explainers.residuals import (
    ResidualResult,
    ResidualTask,
    judged_with,
    residual_task,
    solve_residuals,
    solve_with,
)
from slalom.explanation import Explanation
from slalom.samplers.base import Sampler, Samples
from slalom.surrogates.base import Fit, Model, Observations, Surrogate
from slalom.surrogates.pool import fit_all, in_workers, wake_workers, workers_pay
from slalom.surrogates.shapley_estimates import FITTED_EMPTY
from slalom.surrogates.threads import one_thread

LEAST_QUERIES = 10  # of any method that fits a model


@dataclass(frozen=True)
class QueryBudget:
    """How many queries a document gets: a number per distinct unit, within bounds."""

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
    facts: Facts | None = None  # None: nothing is asked beside the design
    only_asks: ClassVar[bool] = True

    @property
    def has_shapley_errors(self) -> bool:
        return bool(getattr(self.surrogate, "has_shapley_errors", False))

    def explain(
        self, classifier: Classifier, documents: Sequence[Document], request: Request
    ) -> list[Explanation]:
        wake_workers([(self._for_fit(d, request.n_queries), d.n_features) for d in documents])
        sampled = self.ask(classifier, documents, request)
        observed = [self.observations(one) for one in sampled]
        start = perf_counter()
        fits = fit_all(self.surrogate, observed)
        seconds = (perf_counter() - start) / max(1, len(fits))
        fitted = Fitted(sampled, observed, fits, seconds)
        return self.explanations(classifier, fitted, request)

    def ask(
        self, classifier: Classifier, documents: Sequence[Document], request: Request
    ) -> list["Sampled"]:
        """The first of two steps: what the classifier says to a sample of queries."""
        for document in documents:
            _check_budget(document, request.n_queries)
        documents = [document if self.tied else document.untied() for document in documents]
        samples = [
            self.sampler.sample(
                document,
                self._for_fit(document, request.n_queries),
                np.random.default_rng(request.seed),
            )
            for document in documents
        ]
        pairs = [(d, s.queries) for d, s in zip(documents, samples, strict=True)]
        return [
            Sampled(case_of(classifier, document, answers, request.target), drawn)
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
        self, classifier: Classifier, fitted: "Fitted", request: Request
    ) -> list[Explanation]:
        """The last step: what the fits say of the units, and the classifier where it is asked."""
        cases = [one.case for one in fitted.sampled]
        follow_ups: Sequence[FollowUp | None] = [None] * len(cases)
        if self.facts is not None:
            follow_ups = ask_facts(
                self.facts, classifier, cases, fitted.fits, n_queries=request.n_queries
            )
        with one_thread():
            results = self._residual_results(
                fitted, follow_ups, posteriors=posteriors_by(classifier)
            )
            return self._explanations(fitted, follow_ups, results, seed=request.seed)

    def _explanations(
        self,
        fitted: "Fitted",
        follow_ups: Sequence[FollowUp | None],
        left: Sequence[ResidualResult],
        *,
        seed: int,
    ) -> list[Explanation]:
        explanations = []
        documents = zip(fitted.sampled, fitted.fits, fitted.observed, follow_ups, left, strict=True)
        for one, fitting, seen, facts, use in documents:
            begun = perf_counter() - fitted.seconds
            fit = judged_with(fitting, use, seen)
            case = replace(one.case if facts is None else facts.case, begun=begun)
            found = self._found(one, fit, facts, use)
            explanations.append(case.explanation(found, method=self.name, seed=seed))
        return explanations

    def _residual_results(
        self,
        fitted: "Fitted",
        follow_ups: Sequence[FollowUp | None],
        *,
        posteriors: Posteriors | None,
    ) -> Sequence[ResidualResult]:
        """What comes of what the fits left: `posteriors` of a GPU, or workers where they pay."""
        plan = self.facts
        left = [
            ResidualTask()
            if facts is None or plan is None
            else residual_task(plan, facts, fit, samples=self._folded(one), seen=seen)
            for one, seen, fit, facts in zip(
                fitted.sampled, fitted.observed, fitted.fits, follow_ups, strict=True
            )
        ]
        if posteriors is not None:
            return solve_with(posteriors, left)
        pays = len(left) > 1 and workers_pay(fitted.observed)
        return in_workers(solve_residuals, left) if pays else [solve_residuals(one) for one in left]

    def _folded(self, sampled: "Sampled") -> Samples:
        """What is known of each row, for those rows that the fit saw."""
        samples = sampled.samples
        if not self.tied or samples.n_of_size is None:
            return samples
        return replace(samples, n_of_size=samples.n_of_size[sampled.case.answers.first])

    def _for_fit(self, document: Document, n_queries: int | None) -> int:
        """Queries of the design; of a given number some are kept back for facts."""
        kept_back = 0 if self.facts is None else self.facts.reserved(document, n_queries)
        return (n_queries or self.budget(document)) - kept_back

    def _found(
        self, sampled: "Sampled", fit: Fit, follow_up: FollowUp | None, left: ResidualResult
    ) -> Found:
        document, samples = sampled.case.document, sampled.samples
        features = document.features
        scored = (
            as_fitted(fit, features)
            if follow_up is None
            else scores_of(follow_up, fit, samples, shares=left.shares, known=left.known)
        )
        model = fit.model.spread(features) if left.model is None else left.model
        exact = scored.exact or (
            samples.complete
            and document.has_empty_query
            and getattr(self.surrogate, "exact_over_all", False)
        )
        every = ALL_ASKED.format(sampled.case.answers.n_queries)
        notes = (*fit.notes, *_without_empty(document, fit), *_out_of_reach(sampled, fit))
        return Found(
            scores=scored.scores,
            errors=scored.errors,
            model=model,
            identified=fit.identified[features],
            r2=fit.r2,
            rmse=fit.rmse,
            r2_error=fit.r2_error,
            notes=(every,) if exact else notes,
            primary_score=self.primary_score,
            measured=scored.measured,
            determined=None if fit.determined is None else fit.determined[features],
            length_curve=_length_curve(model, document.n_units),
            length_errors=fit.length_errors,
            parts=fit.parts,
            exact=exact,
        )


@dataclass(frozen=True, eq=False)
class Sampled:
    """One document with the queries that were drawn for it and their answers."""

    case: Case
    samples: Samples


@dataclass(frozen=True, eq=False)
class Fitted:
    """Documents after their fits, and the seconds one of these took."""

    sampled: Sequence[Sampled]
    observed: Sequence[Observations]  # what the fits saw
    fits: Sequence[Fit]
    seconds: float


def _check_budget(document: Document, n_queries: int | None) -> None:
    """A handful of queries says nothing about many units, and must not look as if it did."""
    needed = min(LEAST_QUERIES, 2 ** min(document.n_units, 30) - (not document.has_empty_query))
    if n_queries is not None and n_queries < needed:
        raise BudgetError(
            f"{counted(n_queries, 'query')} {'is' if n_queries == 1 else 'are'} too few "
            f"for {counted(document.n_units, 'unit')}: "
            f"allow at least {needed}, or leave ",
            Setting("n_queries"),
            " out",
        )


def _without_empty(document: Document, fit: Fit) -> tuple[str, ...]:
    """Shapley values and `alone` begin at an answer that no one can ask for."""
    anchored = getattr(fit.model, "anchor", None) is not None
    return (FITTED_EMPTY,) if anchored and not document.has_empty_query else ()


def _out_of_reach(sampled: Sampled, fit: Fit) -> tuple[str, ...]:
    """What a design of short sequences, or of few deletions, says nothing about."""
    document, samples, scores = sampled.case.document, sampled.samples, sampled.case.scores
    fitted = (samples.queries[samples.weights > 0] < document.n_units).sum(axis=1)
    if scores.ndim > 1 or not len(fitted):
        return ()
    if fitted.max() < document.n_units:
        full = document.count(document.full()) * fit.identified
        predicted = float(fit.model.predict(full)[0])
        if np.isclose(predicted, scores[0]):  # a constraint: it was not fitted, but it holds
            return ()
        return (
            "fitted to short sequences only, and so is R²: for the full text the model says "
            f"{predicted:+.2f}, the classifier {scores[0]:+.2f}",
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


def _length_curve(model: Model, n_units: int) -> FloatArray | None:
    curve = getattr(model, "length", None)
    return None if curve is None else np.asarray(curve(np.arange(n_units + 1.0)))
