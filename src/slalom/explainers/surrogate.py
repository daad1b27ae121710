"""Explain by a surrogate: sample queries, ask them, fit a model, read scores off it.

`plan` is the way of a text from its units to its Explanation; what is known of it after each step
is in stages.py.
"""

from dataclasses import dataclass

import numpy as np

from slalom.document import Document, FloatArray, Queries
from slalom.errors import BudgetError, Setting, counted
from slalom.explainers.base import Ask, Asking, Plan, Request
from slalom.explainers.case import Case, Found, case_of
from slalom.explainers.follow_up import Fitted, FollowUpPlan, Sampled, ask_follow_up
from slalom.explainers.unit_scores import scores_of, with_process
from slalom.samplers.base import Sampler, Samples, TwoStages
from slalom.surrogates.base import Model, Observations, Surrogate
from slalom.surrogates.shapley_estimates import FITTED_EMPTY, variance_of_all

LEAST_QUERIES = 10  # of any method that fits a model
N_REPEATS = 8  # queries that are asked anew
SPARING = 16  # of a given number of queries one in so many, at most
FIRST = 100  # queries among which they are
ALL_ASKED = "all {} subsets were evaluated, so Shapley, removal and alone are exact"


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
    follow_up: FollowUpPlan | None = None  # None: nothing is asked beside the design

    @property
    def has_shapley_errors(self) -> bool:
        return bool(getattr(self.surrogate, "has_shapley_errors", False))

    def plan(self, document: Document, request: Request) -> Plan:
        """What happens to a text, from its units to its Explanation."""
        sampled = yield from self.sampled(document, request)
        fitted = self._fit(sampled)
        n_queries, again = request.n_queries, self._again(sampled, request)
        fitted = yield from ask_follow_up(self.follow_up, fitted, n_queries=n_queries, again=again)
        if self.follow_up is not None:
            fitted = with_process(fitted)
        return fitted.case.explanation(self._found(fitted), method=self.name, seed=request.seed)

    def _again(self, sampled: Sampled, request: Request) -> Queries:
        """Queries that are asked anew: spread over the first ones, which larger designs share."""
        n_drawn, n_again = len(sampled.samples.queries), n_repeats(request)
        at = np.linspace(0, min(n_drawn, FIRST) - 1, min(n_again, n_drawn)).astype(int)
        chosen: Queries = sampled.samples.queries[at]
        return chosen

    def _fit(self, sampled: Sampled) -> Fitted:
        return sampled.fitted(self.surrogate.fit(sampled.seen))

    def sampled(self, document: Document, request: Request) -> Asking[Sampled]:
        """Draw queries and ask them."""
        _check_budget(document, request.n_queries)
        own = document if self.tied else document.untied()
        samples = self._draw(own, request)
        answers = yield Ask(own, samples.queries)
        case = case_of(own, answers, request.target)
        if isinstance(self.sampler, TwoStages):
            samples = self.sampler.further(own, samples, case.scores)
            answers = yield Ask(own, samples.queries)
            case = case_of(own, answers, request.target)
        return self._sampled(case, samples)

    def _draw(self, document: Document, request: Request) -> Samples:
        n_drawn, rng = self._n_drawn(document, request.n_queries), np.random.default_rng
        kept_back = n_repeats(request) if _is_short_of(request.n_queries, document) else 0
        try:
            return self.sampler.sample(document, n_drawn - kept_back, rng(request.seed))
        except BudgetError:  # a design of so many and no fewer
            return self.sampler.sample(document, n_drawn, rng(request.seed))

    def _n_drawn(self, document: Document, n_queries: int | None) -> int:
        """Queries that are drawn; of a given number some are kept back for facts."""
        kept_back = 0 if self.follow_up is None else self.follow_up.reserved(document, n_queries)
        return (n_queries or self.budget(document)) - kept_back

    def _sampled(self, case: Case, samples: Samples) -> Sampled:
        """Queries the classifier cannot tell apart are one row, their weights added up."""
        document, answers, weights = case.document, case.answers, samples.weights
        rows = np.arange(len(weights))
        if self.tied:
            rows = answers.first
            weights = np.bincount(answers.inverse, weights, len(answers.first)).astype(float)
        counts, at_document = (document.count(q) for q in (samples.queries[rows], document.full()))
        seen = Observations(counts, case.scores[rows], weights, at_document[0])
        return Sampled(case, samples, rows, seen)

    def _found(self, one: Fitted) -> Found:
        fit, document, whole = one.fit, one.case.document, one.whole
        features, scored = document.features, scores_of(one)
        judged = fit if whole is None else whole.judged
        model = fit.model.expand(features) if whole is None else whole.model
        exact = (whole is not None and whole.exact) or (
            one.samples.complete
            and document.has_empty_query
            and getattr(self.surrogate, "exact_over_all", False)
        )
        answers, errors = one.case.answers, scored.errors
        every = ALL_ASKED.format(answers.n_queries - answers.n_repeats)
        if exact and whole is None and one.case.is_noisy:
            error = np.sqrt(one.case.noise * variance_of_all(document.n_units))
            errors = {name: np.zeros_like(each) + error for name, each in errors.items()}
        prior = getattr(self.surrogate, "prior", None)
        two = one.described(prior) if self.follow_up is not None and one.anchored else None
        return Found(
            scores=scored.scores if two is None else scored.scores | two.expand(features).scores,
            errors=errors if two is None else errors | two.expand(features).errors,
            anchor=getattr(model, "anchor", None) if two is None else two.anchor,
            two_scores=None if two is None else two.judged.r2,
            model=model,
            identified=fit.identified[features],
            r2=judged.r2,
            rmse=judged.rmse,
            r2_error=judged.r2_error,
            notes=(every,)
            if exact and not one.case.is_noisy
            else (*fit.notes, *_without_empty(one), *_out_of_reach(one)),
            primary_score=self.primary_score,
            measured=scored.measured,
            length_curve=_length_curve(model, document.n_units),
            length_errors=fit.length_errors,
            parts={} if whole is None else whole.parts,
            exact=exact,
        )


def n_repeats(request: Request) -> int:
    """How many queries are asked anew, unless all are asked more than once anyway."""
    if request.repeats > 1:
        return 0
    return N_REPEATS if request.n_queries is None else min(N_REPEATS, request.n_queries // SPARING)


def _is_short_of(n_queries: int | None, document: Document) -> bool:
    """Whether so many queries do not cover all subsets: what is repeated costs others."""
    n_subsets = 2 ** min(document.n_units, 30) - (not document.has_empty_query)
    return n_queries is not None and n_queries < n_subsets


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


def _without_empty(one: Fitted) -> tuple[str, ...]:
    """Shapley values and `alone` begin at an answer that no one can ask for."""
    return (FITTED_EMPTY,) if one.anchored and not one.case.document.has_empty_query else ()


def _out_of_reach(one: Fitted) -> tuple[str, ...]:
    """What a design of short sequences, or of few deletions, says nothing about."""
    fit, document, samples, scores = one.fit, one.case.document, one.samples, one.case.scores
    fitted = (samples.queries[samples.weights > 0] < document.n_units).sum(axis=1)
    if scores.ndim > 1 or not len(fitted):
        return ()
    if fitted.max() < document.n_units:
        full = document.count(document.full()) * fit.identified
        predicted = float(fit.model.predict(full)[0])
        if np.isclose(predicted, scores[0]):  # a constraint: it was not fitted, but it holds
            return ()
        return (
            f"fitted and judged on at most {fitted.max()} of {document.n_units} units: "
            "for the full text the surrogate says "
            + f"{predicted:+.2f}, the classifier {scores[0]:+.2f}".replace("-", "−"),
        )
    most = document.n_units - int(fitted.min())
    if 0 < most < document.n_units / 2 and "shapley" in fit.scores:
        units = "one unit" if most == 1 else f"{most} units"
        return (
            f"fitted and judged on the text with up to {units} removed: rely on removal and "
            "gradient; values and Shapley values concern much shorter texts and are extrapolated",
        )
    return ()


def _length_curve(model: Model, n_units: int) -> FloatArray | None:
    curve = getattr(model, "length", None)
    return None if curve is None else np.asarray(curve(np.arange(n_units + 1.0)))
