"""Explain by a surrogate: sample queries, ask them, fit a model, follow up, read scores off it.

`plan` is the way of a text from its units to its Explanation:

    sampled     queries drawn and answered
    fit         a model fitted to the answers
    follow-up   what can be asked is not estimated: the classifier is asked what it says to every
                unit alone, to the empty text, and to the text less each of the units that matter
                most; and to some queries once more, since a later call finds noise as well as drift
    found       the scores, with all answers. Where there was a follow-up they come from the process
                around the fit (surrogates/slalom/process.py): every position has its own, also
                where equal units share a feature of the fit
"""

from dataclasses import dataclass, replace
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from slalom.document import BoolArray, Document, FloatArray, Queries, queries_from_masks, row_keys
from slalom.errors import BudgetError, counted, signed
from slalom.explainers.base import Ask, Asking, Case, Found, Plan, Request, case_of, too_few
from slalom.samplers.base import BLOCK, Sampler, Samples, TwoStages
from slalom.surrogates.base import Fit, Observations, Surrogate
from slalom.surrogates.kernel import variance_of_own
from slalom.surrogates.shapley_estimates import FITTED_EMPTY
from slalom.surrogates.slalom.fit import PlainSlalom, SlalomSurrogate
from slalom.surrogates.slalom.process import AllAsked, ProcessFit
from slalom.surrogates.slalom.two_scores import Known, TwoScores, Unasked, balanced

LEAST_QUERIES = 10  # of any method that fits a model
ALL_ASKED = "all {} subsets were evaluated, so Shapley, removal and alone are exact"


@dataclass(frozen=True)
class QueryBudget:
    """How many queries a document gets: a number per distinct unit, within bounds."""

    minimum: int = 500
    per_unit: float = 20
    maximum: int = 5000

    def __call__(self, document: Document) -> int:
        return int(np.clip(self.per_unit * document.n_features, self.minimum, self.maximum))


class FollowUps(Protocol):
    """What is asked beside the fit."""

    def reserved(self, document: Document, n_queries: int | None) -> int:
        """How many of `n_queries` are kept back for what is asked after the fit."""
        ...

    def masks(self, document: Document, fit: Fit, room: int | None) -> BoolArray:
        """(k, n_units) nothing, some of the text less one unit, and some units alone."""
        ...


@dataclass(frozen=True)
class FollowUpPlan:
    """How much is asked beside the fit."""

    max_removals: int = 100  # units, the strongest first
    share: float = 0.25  # of a given number of queries, at most
    rows_per_unit: int = 3  # random ones that come before removals beyond `min_removals`
    min_removals: int = 25

    def reserved(self, document: Document, n_queries: int | None) -> int:
        if n_queries is None or n_queries >= _n_subsets(document):
            return 0
        n_different = len(np.unique(document.features))  # each is asked alone
        spare = n_queries - n_different - self.rows_per_unit * n_different
        most = min(self.max_removals, max(self.min_removals, spare))
        return min(document.n_units, most, int(self.share * n_queries))

    def masks(self, document: Document, fit: Fit, room: int | None) -> BoolArray:
        """The empty text, the text less each of the strongest units, and every unit alone."""
        n_units = document.n_units
        wanted = min(n_units, self.max_removals, n_units if room is None else max(room, 0))
        strongest = np.argsort(-_strengths(fit)[document.features], kind="stable")[:wanted]
        single = np.eye(n_units, dtype=bool)
        empty = np.zeros((1, n_units), dtype=bool)
        masks = np.vstack([empty, ~single[np.sort(strongest)], single])
        return masks if document.has_empty_query else masks[masks.any(axis=1)]


@dataclass(frozen=True, eq=False)
class Sampled:
    """One text with the queries that were drawn for it and their answers."""

    case: Case
    samples: Samples
    rows: NDArray[np.intp]  # of the samples: one of each that the classifier can tell apart
    seen: Observations  # the same rows, as the fit sees them


@dataclass(frozen=True, eq=False)
class FollowUp:
    """Subsets that were asked after the fit, and their scores."""

    case: Case  # with the answers of both rounds
    present: BoolArray  # (k, n_units)
    scores: FloatArray  # (k,) or (k, n_classes)

    @property
    def empty(self) -> FloatArray | None:
        """The score of the empty text; None: it was not asked."""
        at = np.flatnonzero(~self.present.any(axis=1))
        return np.asarray(self.scores[at[0]]) if len(at) else None


@dataclass(frozen=True)
class SurrogateExplainer:
    """Any sampler with any surrogate; `tied` lets equal units share one feature.

    `primary_score` names the score to look at first where the design does not bear out all.
    """

    name: str
    summary: str
    sampler: Sampler
    surrogate: Surrogate
    budget: QueryBudget = QueryBudget()
    tied: bool = True
    primary_score: str | None = None
    follow_up: FollowUps | None = None  # None: nothing is asked beside the design
    looks_inside: ClassVar[bool] = False

    @property
    def has_shapley_errors(self) -> bool:
        return isinstance(self.surrogate, SlalomSurrogate | PlainSlalom)

    def plan(self, document: Document, request: Request) -> Plan:
        """What happens to a text, from its units to its Explanation."""
        sampled = yield from self.sampled(document, request)
        fit = self.surrogate.fit(sampled.seen)
        more = yield from self._follow_up(sampled, fit, request)
        return more.case.explanation(self.found(sampled, fit, more), self.name)

    def sampled(self, document: Document, request: Request) -> Asking[Sampled]:
        """Draw queries and ask them."""
        _check_budget(document, request.n_queries, self.budget.minimum)
        own = document if self.tied else document.untied()
        samples = self.drawn(own, request)
        answers = yield Ask(own, samples.queries)
        case = case_of(own, answers, request)
        if isinstance(self.sampler, TwoStages):
            samples = self.sampler.further(own, samples, case.scores)
            answers = yield Ask(own, samples.queries)
            case = case_of(own, answers, request)
        return self._rows(case, samples)

    def drawn(self, document: Document, request: Request) -> Samples:
        """The design; of a given number of queries some are kept back for the follow-up."""
        n_queries, rng = request.n_queries, np.random.default_rng
        kept_back = 0 if self.follow_up is None else self.follow_up.reserved(document, n_queries)
        n_drawn = (n_queries or self.budget(document)) - kept_back
        covers_all = n_queries is None or n_queries >= _n_subsets(document)
        n_again = 0 if covers_all else _n_repeats(request)
        try:
            return self.sampler.sample(document, n_drawn - n_again, rng(request.seed))
        except BudgetError:  # a design of so many and no fewer
            return self.sampler.sample(document, n_drawn, rng(request.seed))

    def _rows(self, case: Case, samples: Samples) -> Sampled:
        """Queries the classifier cannot tell apart are one row, their weights added up."""
        document, answers = case.document, case.answers
        rows = answers.first if self.tied else np.arange(len(samples.weights))
        weights = self._added_up(case, samples.weights)
        counts, at_document = (document.count(q) for q in (samples.queries[rows], document.full()))
        seen = Observations(counts, case.scores[rows], weights, at_document[0])
        return Sampled(case, samples, rows, seen)

    def _added_up(self, case: Case, weights: FloatArray) -> FloatArray:
        """(n_rows,) from a weight per query."""
        answers = case.answers
        if not self.tied:
            return weights
        return np.bincount(answers.inverse, weights, len(answers.first)).astype(float)

    def _follow_up(self, sampled: Sampled, fit: Fit, request: Request) -> Asking[FollowUp]:
        """The second round; never more than `n_queries` with the first."""
        case, samples, n_queries = sampled.case, sampled.samples, request.n_queries
        document, first = case.document, case.answers
        n_drawn = len(samples.queries)
        n_again = min(_n_repeats(request), n_drawn)  # of the block that larger designs share
        again = samples.queries[np.linspace(0, min(n_drawn, BLOCK) - 1, n_again).astype(int)]
        masks = np.zeros((0, document.n_units), dtype=bool)
        if self.follow_up is not None:
            room = None if n_queries is None else n_queries - first.n_queries - n_again
            masks = self.follow_up.masks(document, fit, room)
        answers = yield Ask(document, queries_from_masks(masks), n_queries, again)
        # the full text stays the first of the rows that tell the target
        kept = replace(answers, logits=first.logits, first=first.first, inverse=first.inverse)
        scores = case.scores_of(answers.logits)
        return FollowUp(replace(case, answers=kept), masks[answers.rows], scores)

    def _design(self, sampled: Sampled, asked: BoolArray) -> tuple[Observations, Unasked | None]:
        """What was drawn, and up to 3000 more that could have been, by what each is to weigh."""
        document, samples, seen = sampled.case.document, sampled.samples, sampled.seen
        queries, n_drawn = samples.queries, len(samples.queries)
        rng = np.random.default_rng(sampled.case.seed)
        if not _shows_each_once(queries, document.n_units).all():
            return seen, None
        n_more = min(3000, 7_500_000 // document.n_features**2)  # no longer than with 50 features
        larger = self.sampler.sample(document, n_drawn + n_more, rng)
        known = set(row_keys(asked))
        keys = row_keys(document.untied().count(larger.queries) > 0)
        new = rng.permutation(np.flatnonzero([key not in known for key in keys]))
        counts, weights = document.count(larger.queries[new]), larger.weights[new]
        weights = np.append(samples.weights, weights)
        if samples.due is not None and larger.due is not None:
            due = np.append(samples.due, larger.due[new])
            weights = balanced(np.vstack([document.count(queries), counts]), weights, due)
        present = document.untied().count(larger.queries[new]) > 0
        unasked = Unasked(present, counts, weights[n_drawn:]) if len(new) else None
        return replace(seen, weights=self._added_up(sampled.case, weights[:n_drawn])), unasked

    def found(self, sampled: Sampled, fit: Fit, more: FollowUp) -> Found:
        """What the fit says of the text or, after a follow-up, what the process around it says."""
        document = more.case.document
        if self.follow_up is None or not isinstance(self.surrogate, SlalomSurrogate):
            found = _of_fit(fit, more)
        else:
            asked = _all_asked(sampled, fit, more)
            seen, unasked = self._design(sampled, asked.present)
            beside = Known(document.count(queries_from_masks(more.present)), more.scores)
            fit_of_all, two = self.surrogate.with_follow_up(asked, seen, beside, unasked)
            found = _of_process(fit_of_all, two, more)
        return replace(
            found,
            identified=None if fit.identified is None else fit.identified[document.features],
            notes=_notes(sampled, fit, more, exact=found.exact),
            primary_score=self.primary_score,
            length_curve=fit.length_curve,
            length_errors=fit.length_errors,
        )


def _of_fit(fit: Fit, more: FollowUp) -> Found:
    case, features = more.case, more.case.document.features
    found = Found(
        {name: score[features] for name, score in fit.scores.items()},
        {name: error[features] for name, error in fit.errors.items()},
        fit.model.expand(features),
        anchor=fit.anchor,
        held_out=fit.quality,
        exact=fit.exact,
    )
    found = _with_answers(found, more, np.zeros_like(case.score))
    if not (fit.exact and case.is_noisy):
        return found
    error = np.sqrt(variance_of_own(np.full(len(features) + 1, case.noise)))
    errors = {name: np.zeros_like(each) + error for name, each in found.errors.items()}
    return replace(found, errors=errors)


def _of_process(fit: ProcessFit, two: TwoScores, more: FollowUp) -> Found:
    every = np.ones(more.case.document.n_units, dtype=bool)
    found = Found(
        fit.scores | two.scores,
        fit.errors | two.errors,
        fit.model,
        fit.model.fitted,
        anchor=two.anchor,
        two_scores=two.r2,
        held_out=fit.quality,
        parts=fit.parts,
        exact=fit.exact,
        measured={"shapley": every} if fit.exact else {},
    )
    return _with_answers(found, more, more.empty)


def _with_answers(found: Found, more: FollowUp, base: FloatArray | None) -> Found:
    """Measured `removal`, and measured `alone` where the score of the empty text is known."""
    present, noise, sizes = more.present, more.case.noise, more.present.sum(axis=1)
    removed, alone = sizes == present.shape[1] - 1, sizes == 1
    if removed.any():
        lost = more.case.score - more.scores[removed]
        found = _measured(found, "removal", ~present[removed], lost, noise)
    if base is not None and alone.any():
        found = _measured(found, "alone", present[alone], more.scores[alone] - base, noise)
    return found


def _measured(
    found: Found, name: str, only: BoolArray, values: FloatArray, noise: FloatArray
) -> Found:
    """With what was asked about the one unit of each row; its error is that of two answers."""
    known, units = np.asarray(only.any(axis=0)), only.argmax(axis=1)
    zeros = np.zeros((len(known), *values.shape[1:]))
    scores, errors = found.scores.get(name, zeros).copy(), found.errors
    scores[units] = values
    if name in errors or known.all():
        own = errors.get(name, zeros).copy()
        own[units] = np.sqrt(2.0 * noise)
        errors = errors | {name: own}
    measured = found.measured | {name: known}
    return replace(found, scores=found.scores | {name: scores}, errors=errors, measured=measured)


def _all_asked(sampled: Sampled, fit: Fit, more: FollowUp) -> AllAsked:
    """The subsets that were drawn, each with the row of the fit it became, and all others.

    A sequence in another order stands for the subset, if that was not asked in its own.
    """
    document, samples = more.case.document, sampled.samples
    n_units, queries = document.n_units, samples.queries
    drawn = np.flatnonzero(_shows_each_once(queries, n_units))
    merged = len(sampled.rows) < len(queries)
    rows = more.case.answers.inverse if merged else np.arange(len(queries))
    beside = np.full(len(more.present), -1)
    present = np.vstack([document.untied().count(queries[drawn]) > 0, more.present])
    in_order = np.append(_in_order(queries[drawn], n_units), np.ones(len(beside), dtype=bool))
    preferred = np.argsort(~in_order, kind="stable")
    first = np.unique(np.array(row_keys(present[preferred])), return_index=True)[1]
    kept = np.sort(preferred[first])
    weights = samples.weights  # by which rows judge: those of a size what the design asks of it
    if samples.due is not None:
        weights = balanced(document.count(queries), weights, samples.due)
    return AllAsked(
        fit,
        document.features,
        present[kept],
        np.concatenate([more.case.scores[drawn], more.scores])[kept],
        np.append(rows[drawn], beside)[kept].astype(np.int32),
        np.append(weights[drawn], np.zeros(len(beside)))[kept],
        exact=bool(in_order[kept].sum() == 2 ** min(n_units, 62)),
        noise=float(more.case.noise.mean()),
    )


def _shows_each_once(queries: Queries, n_units: int) -> BoolArray:
    """(n,) whether a query shows no unit twice."""
    apart = np.where(queries < n_units, queries, -1 - np.arange(queries.shape[1]))
    return np.asarray((np.diff(np.sort(apart, axis=1), axis=1) > 0).all(axis=1))


def _in_order(queries: Queries, n_units: int) -> BoolArray:
    """(n,) whether a query shows units as the text does."""
    shown = np.where(queries < n_units, queries, -1)
    before = np.maximum.accumulate(shown, axis=1)[:, :-1]
    return np.asarray(((shown[:, 1:] < 0) | (shown[:, 1:] > before)).all(axis=1))


def _strengths(fit: Fit) -> FloatArray:
    """How much each feature matters, by the strongest of its classes."""
    names = [name for name in ("shapley", "removal", "score") if name in fit.scores]
    sizes = [np.abs(fit.scores[name]).reshape(len(fit.scores[name]), -1) for name in names]
    return np.asarray(np.max([size.max(axis=1) for size in sizes], axis=0))


def _n_repeats(request: Request) -> int:
    """How many queries are asked anew, unless all are asked more than once anyway."""
    if request.repeats > 1:
        return 0
    return 8 if request.n_queries is None else min(8, request.n_queries // 16)


def _n_subsets(document: Document) -> int:
    """How many can be asked."""
    return (1 << min(document.n_units, 30)) - (not document.has_empty_query)


def _check_budget(document: Document, n_queries: int | None, minimum: int) -> None:
    """A handful of queries says nothing about many units, and must not look as if it did;
    a design that takes a few by its nature knows itself what it needs."""
    needed = min(LEAST_QUERIES, minimum, _n_subsets(document))
    if n_queries is not None and n_queries < needed:
        raise too_few(n_queries, counted(document.n_units, "unit"), needed)


def _notes(sampled: Sampled, fit: Fit, more: FollowUp, *, exact: bool) -> tuple[str, ...]:
    """What to know of the scores."""
    case = more.case
    if exact and not case.is_noisy:
        return (ALL_ASKED.format(case.answers.n_queries - case.answers.n_repeats),)
    # Shapley values and `alone` begin at an answer that no one can ask for
    without_empty = (FITTED_EMPTY,) if fit.anchor and not case.document.has_empty_query else ()
    return (*fit.notes, *without_empty, *_out_of_reach(sampled, fit))


def _out_of_reach(sampled: Sampled, fit: Fit) -> tuple[str, ...]:
    """What a design of short sequences, or of few deletions, says nothing about."""
    document, samples, scores = sampled.case.document, sampled.samples, sampled.case.scores
    fitted = (samples.queries[samples.weights > 0] < document.n_units).sum(axis=1)
    if scores.ndim > 1 or not len(fitted):
        return ()
    if fitted.max() < document.n_units:
        full = document.count(document.full())
        full = full if fit.identified is None else full * fit.identified
        predicted = float(fit.model.predict(full)[0])
        if np.isclose(predicted, scores[0]):  # a constraint: it was not fitted, but it holds
            return ()
        return (
            f"fitted and judged on at most {fitted.max()} of {document.n_units} units at a time; "
            "for the full text, the surrogate predicts "
            + f"{signed(predicted)} and the classifier says {signed(float(scores[0]))}",
        )
    most = document.n_units - int(fitted.min())
    if 0 < most < document.n_units / 2 and "shapley" in fit.scores:
        units = "one unit" if most == 1 else f"{most} units"
        return (
            f"fitted and judged on the text with up to {units} removed: rely on removal and "
            "gradient, because values and Shapley values are extrapolated to much shorter texts",
        )
    return ()
