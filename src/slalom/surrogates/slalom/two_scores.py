"""Value and importance: the plain SLALOM with anchor that describes the answers best.

It is a fit of its own, only read: predictions are those of the whole model. With A what attention
says, m words, and the range of the answers, its middle `mid` and half width `half`:

    minimise  mean π (A(c) − y)² / var y  +  .04 mean_j (u_j − u_0)²  +  .02 mean_j (s_j − s̄)²
    v_j = mid + 2 half tanh u_j              v_0 = F(∅)

A word that could say anything would need no weight: values stay within twice the range. Where ∅
cannot be asked, v_0 is the mean answer to the shortest tenth of the queries. Strengths of the
ridges do not depend on the number of queries, so they belong to the definition. Classes share
importances; every class has its own range.

Two scores leave much of what a classifier says undescribed, and what they leave of a few hundred
queries would move them. So they also describe subsets that were not asked, as predicted by the
whole model, which leaves less (`Predicted`).

Answers of an exact SLALOM come back as it is, whatever its values (recovery.py).

Standard errors say how far the same fit with every query asked may be: with H half the true second
derivatives and r_k residuals, row k moves the parameters by H⁻¹ J_kᵀ π_k r_k, and the squares add
up, less for sizes of which much was asked: nothing where all subsets of it were. Residuals are
those of the description on all its rows, since others would have been drawn, and those of the whole
model on rows it has not seen, since it predicts the rest. Its predictions err together: as its
posterior covariance says, which takes the fitted SLALOM for certain, and as that would be another
had other queries been drawn (the jackknife over the folds it was held out by). With fewer answers
than parameters (one word; few queries) each may be one off, in u and in s, besides; so it may where
a few answers make nearly all of the difference. So may, by a standard error, an end of the range or
a v_0 that was estimated; and, by its chance to be the better one, an optimum across a ridge
(`optima`).
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import erfc, sqrt

import numpy as np
from numpy.typing import NDArray

from slalom.document import BoolArray, FloatArray, IntArray
from slalom.surrogates.base import Observations, sums_to_zero
from slalom.surrogates.gp import jackknife
from slalom.surrogates.quality import loo_quality, sampled_rows
from slalom.surrogates.rows import Rows
from slalom.surrogates.slalom.model import Anchor, Prior, SlalomModel
from slalom.surrogates.slalom.newton import (
    Bounded,
    Factors,
    Point,
    Problem,
    Ridges,
    descend,
    gauss_newton,
    system_at,
)
from slalom.surrogates.slalom.process import ProcessFit
from slalom.surrogates.slalom.readouts import read_outs, standard_errors
from slalom.surrogates.slalom.recovery import recovered
from slalom.surrogates.slalom.uncertainty import (
    Influence,
    influence_of,
    joint_influence,
    left_out,
    moved_by,
    unasked,
)

VALUE_RIDGE, IMPORTANCE_RIDGE = 0.04, 0.02
REACH = 2.0  # half ranges that a value may lie from the middle
TAILS = (0.01, 0.99)  # quantiles of the random subsets' answers that make the range
WIDER = 1.2  # than linear errors: what bends is left out
ACROSS = ((2.0, 3.0), (0.5, -8.0))  # how much farther values reach, and the anchor there
TWO_SCORES = ("value", "importance", "share", "linearised", "gradient")


@dataclass(frozen=True, eq=False)
class Known:
    """What was asked beside the design: the empty text, single words, single removals."""

    counts: FloatArray  # (q, n_features)
    scores: FloatArray  # (q,) or (q, n_classes)


@dataclass(frozen=True, eq=False)
class Unasked:
    """More subsets of the design than were asked."""

    present: BoolArray  # (q, n_units)
    counts: FloatArray  # (q, n_features)
    weights: FloatArray  # (q,) beside those of the rows that were asked


@dataclass(frozen=True, eq=False)
class Predicted:
    """The same, as the whole model says it, and how far that may be off."""

    counts: FloatArray  # (q, n_features)
    scores: FloatArray  # (q, n_classes)
    weights: FloatArray  # (q,)
    errors: FloatArray  # (p, n_classes, r) of the first p together: squares add up to a variance
    own: FloatArray  # (q, n_classes) variance of what belongs to each alone
    r2: float | None  # of the whole model, on rows it has not seen

    def of_columns(self, used: slice) -> "Predicted":
        scores, errors = self.scores[:, used], self.errors[:, used]
        return replace(self, scores=scores, errors=errors, own=self.own[:, used])

    def after(self, rows: Observations) -> Observations:
        return replace(
            rows,
            counts=np.vstack([rows.counts, self.counts]),
            scores=np.vstack([rows.scores, self.scores]),
            weights=np.append(rows.weights, self.weights),
        )


def predicted(unasked: Unasked, fit: ProcessFit) -> Predicted:
    """What the whole model says of these, and how sure it is of the first ones."""
    shown = unasked.present.astype(np.float64)
    scores = fit.model.predict(shown).reshape(len(shown), -1)
    some = slice(None, 300)  # their errors stand for those of all
    by_slalom = fit.model.fitted.predict(shown[some]).reshape(-1, scores.shape[1])
    errors = fit.process.errors_together(unasked.present[some], by_slalom)
    if fit.without:
        without = [model.predict(shown[some]).reshape(by_slalom.shape) for model in fit.without]
        subsets = fit.model.mean.subsets(unasked.present[some], by_slalom)
        moved = fit.model.mean.changes(subsets, jackknife(np.stack(without)))
        errors = np.concatenate([errors, np.moveaxis(moved, 0, 2)], axis=2)
    own = fit.process.own_variances(unasked.present)
    return Predicted(unasked.counts, scores, unasked.weights, errors, own, fit.quality.r2)


@dataclass(frozen=True, eq=False)
class TwoScores:
    """What is read off the description, per feature, with standard errors."""

    scores: dict[str, FloatArray]  # value, importance, share, linearised, gradient
    errors: dict[str, FloatArray]  # the same shapes
    anchor: Anchor | None
    r2: float | None  # of the description alone, on rows that it has not seen

    def expand(self, features: IntArray) -> "TwoScores":
        """The same per unit, given the feature of each."""
        scores = {name: score[features] for name, score in self.scores.items()}
        return replace(
            self, scores=scores, errors={name: e[features] for name, e in self.errors.items()}
        )


@dataclass(frozen=True, eq=False)
class Description:
    """The plain SLALOM that describes the answers best, the anchor last."""

    values: FloatArray  # (k, n_classes)
    importances: FloatArray  # (k,)
    influence: Influence
    r2: float | None  # on rows that it has not seen

    def of_classes(self, contrasts: FloatArray) -> "Description":
        """`contrasts` (n_classes, n_columns) take columns to classes."""
        influence = self.influence.of_classes(contrasts)
        return replace(self, values=self.values @ contrasts.T, influence=influence)

    def read(self, seen: Observations) -> TwoScores:
        """Scores of a feature's single occurrence, and how they answer to the parameters."""
        one, m = seen.scores.ndim == 1, len(self.values) - 1
        model = SlalomModel.of(self.values, self.importances, m, one=one)
        scores = read_outs(model, seen.document_counts)
        errors = standard_errors(model, seen.document_counts, self.influence)
        return TwoScores({name: scores[name] for name in TWO_SCORES}, errors, model.anchor, self.r2)


def balanced(counts: FloatArray, weights: FloatArray, due: FloatArray) -> FloatArray:
    """Weights by which all rows of a size weigh what they are to weigh together.

    Of some sizes more rows are drawn than the design asks for: there are no others left.
    """
    sizes, fitted = counts.sum(axis=1).astype(int), weights > 0
    of_size = np.maximum(np.bincount(sizes, fitted)[sizes], 1.0)
    return np.where(fitted, due / of_size, 0.0)


def two_scores(
    seen: Observations,
    known: Known,
    beyond: Predicted | None = None,
    *,
    prior: Prior | None = None,
) -> TwoScores:
    """The two scores of every feature, and what follows from them; ridges pull to the prior."""
    columns = seen.scores.reshape(len(seen.scores), -1)
    counts, n_classes = np.vstack([seen.counts, known.counts]), columns.shape[1]
    scores = np.vstack([columns, known.scores.reshape(-1, n_classes)])
    exact = recovered(counts, scores, anchored=True)
    if exact is not None:
        k = len(exact.values)
        still = Influence(np.zeros((n_classes, k, 1)), np.zeros((k, 1)))
        return Description(exact.values, exact.importances, still, 1.0).read(seen)
    used, contrasts = slice(None), np.eye(n_classes)
    if sums_to_zero(columns):  # nor may values say anything together
        contrasts = contrasts - 1 / n_classes
        if n_classes == 2:  # one of two says it all
            used, contrasts = slice(1, None), np.array([[-1.0], [1.0]])
            prior = prior and replace(prior, values=prior.values[:, used])
    found = _described(
        replace(seen, scores=columns[:, used]),
        counts,
        scores[:, used],
        beyond and beyond.of_columns(used),
        prior,
    )
    return found.of_classes(contrasts).read(seen)


def _described(
    seen: Observations,
    counts: FloatArray,
    scores: FloatArray,
    beyond: Predicted | None,
    prior: Prior | None,
) -> Description:
    fitted = seen.weights > 0
    rows = Observations(
        seen.counts[fitted], seen.scores[fitted], seen.weights[fitted], seen.document_counts
    )
    sizes = counts.sum(axis=1)
    nothing, ends = sizes == 0, (sizes <= 1) | (sizes == seen.document_counts.sum())
    empty = scores[nothing][0] if nothing.any() else None
    described = rows if beyond is None else beyond.after(rows)
    shown = Rows.of(np.hstack([described.counts, np.ones((len(described.counts), 1))]))
    problem = description(shown, described.scores, described.weights, range_of(scores, ends), empty)
    if prior is not None:
        problem = _towards(problem, prior)
    point = problem.start()
    if beyond is not None:  # most of the way on fewer rows
        near = problem.rows(np.arange(len(described.scores)) < len(rows.scores))
        point = descend(near, near.start(), 1e-6)
        point = problem.at_point(point)
    point, *others = optima(problem, descend(problem, point, 1e-9))
    influence, r2 = _judge(problem, point, rows, beyond)
    if unasked(rows.counts, rows.document_counts).any():
        for across in others:
            chance = chance_of(problem, point, across, len(rows.scores))
            influence = influence.beside(point, across, chance)
        for other in _estimated_otherwise(problem, scores, ends, sizes):
            influence = influence.beside(point, _optimum_near(problem, point, other))
    return Description(point.values, point.importances, influence, r2)


def optima(problem: Problem, point: Point) -> list[Point]:
    """The best, and those across a ridge, if there are any.

    An anchor that counts with values that reach far, and none with values that do not, may say
    nearly the same: a descent stays on the side where it began.
    """
    found = [point]
    for reach, anchor in ACROSS:
        latent = problem.centre + reach * (point.latent - problem.centre)
        start = problem.at(latent, point.effects, np.append(point.importances[:-1], anchor))
        found.append(descend(problem, start, 1e-3))
    best = min(found, key=lambda point: point.objective)
    if best is point:
        return found
    return [descend(problem, best, 1e-9), *(other for other in found if other is not best)]


def chance_of(problem: Problem, point: Point, other: Point, n_asked: int) -> float:
    """That of two optima the other were the better one, had as many other queries been drawn."""
    better = problem.weights * ((other.residuals**2) - point.residuals**2).sum(axis=1)
    error = float(np.sqrt((better**2).sum() * len(better) / n_asked))
    gap = other.objective - point.objective
    return 0.5 * erfc(gap / (error * sqrt(2.0))) if error > 0 else 0.0


def range_of(scores: FloatArray, ends: BoolArray) -> Bounded:
    """Quantiles of random subsets, widened to hold single words and both ends."""
    drawn = scores if ends.all() else scores[~ends]
    held = np.vstack([np.quantile(drawn, TAILS, axis=0), scores[ends]])
    low, high = held.min(axis=0), held.max(axis=0)
    return Bounded((low + high) / 2, REACH * (high - low) / 2 + 1e-12)


def description(
    counts: Rows, scores: FloatArray, weights: FloatArray, values: Bounded, empty: FloatArray | None
) -> Problem:
    """Where the empty text cannot be asked, the shortest queries speak for it."""
    k, n_classes = counts.shape[1], scores.shape[1]
    m = k - 1
    if empty is None:
        empty = _of_shortest(scores, counts.sums()).mean(axis=0)
    shares = weights / weights.sum()
    spread = float((shares @ (scores - shares @ scores) ** 2).sum())
    constant = spread <= (1e-9 * float(np.abs(scores).max())) ** 2
    return Problem(
        counts,
        scores,
        np.zeros(len(scores)) if constant else shares / spread,
        values,
        np.tile(values.latent(empty), (k, 1)),
        np.append(np.zeros(m), 1.1),  # where the anchor's importance begins
        Ridges(
            np.full(k, VALUE_RIDGE / (m * n_classes)),
            np.append(np.full(m, IMPORTANCE_RIDGE / m), 0.0),
            np.zeros(0),
        ),
        np.zeros((len(scores), 0)),
        anchored=True,
        pinned=True,
    )


def _towards(problem: Problem, prior: Prior) -> Problem:
    """The same with ridges that pull to the prior, where it says anything."""
    known, centre = prior.known, problem.centre.copy()
    if not known.any():
        return problem
    assert isinstance(problem.values, Bounded)
    values = prior.values[known].reshape(known.sum(), -1)
    centre[: len(known)][known] = problem.values.latent(values)
    return replace(problem, centre=centre, prior_importances=prior.relative_importances)


def _estimated_otherwise(
    problem: Problem, scores: FloatArray, ends: BoolArray, sizes: FloatArray
) -> Iterator[Problem]:
    """With an estimated bound, or what nothing says, one standard error off."""
    values = problem.values
    assert isinstance(values, Bounded)
    drawn = scores if ends.all() else scores[~ends]
    low, high = values.middle - values.reach / REACH, values.middle + values.reach / REACH
    step = np.sqrt(TAILS[0] * TAILS[1] / len(drawn))
    for tail, bound, sign in zip(TAILS, (low, high), (-1.0, 1.0), strict=True):
        below, here, above = np.quantile(
            drawn, np.clip(tail + step * np.arange(-1, 2), 0, 1), axis=0
        )
        error = (above - below) / 2 * (np.abs(here - bound) <= 1e-9 * values.reach)
        if error.any():
            moved = Bounded(values.middle + error / 2, values.reach + sign * REACH * error / 2)
            yield replace(problem, values=moved, centre=moved.latent(values.of(problem.centre)))
    if (sizes > 0).all():
        shortest = _of_shortest(drawn, sizes[~ends])
        error = shortest.std(axis=0) / np.sqrt(len(shortest))
        empty = values.latent(values.of(problem.centre[-1:]) + error)
        yield replace(problem, centre=problem.centre + empty - problem.centre[-1:])


def _optimum_near(problem: Problem, point: Point, other: Problem) -> Point:
    latent = point.latent + other.centre[-1:] - problem.centre[-1:]
    return descend(other, other.at(latent, point.effects, point.importances), 1e-6)


def _of_shortest(scores: FloatArray, sizes: FloatArray) -> FloatArray:
    """Of the tenth of the queries that stands for the empty text where it cannot be queried."""
    return np.asarray(scores[sizes <= np.quantile(sizes, 0.1)])


def _judge(
    problem: Problem, point: Point, rows: Observations, beyond: Predicted | None
) -> tuple[Influence, float | None]:
    """Standard errors, and how well the description holds for rows it has not seen."""
    unseen = unasked(rows.counts, rows.document_counts)
    factors = system_at(problem, point, full=True).factored(0.0) or gauss_newton(problem, point)
    if beyond is None:
        left = left_out(problem, point, gauss_newton(problem, point))
        if not unseen.any():
            left = point.residuals
        r2 = loo_quality(
            left,
            rows.scores,
            weights=rows.weights,
            n_parameters=0,
            by=sampled_rows(rows.counts),
        ).r2
        influence = influence_of(problem, point, factors, WIDER * np.sqrt(unseen)[:, None] * left)
    else:
        r2 = _r2_beyond(problem, point, rows, beyond)
        influence = _influence_beyond(problem, point, factors, rows, beyond)
    unknown = 1.0 if r2 is None and unseen.any() else np.sqrt(_open_share(rows.scores, problem))
    free = unknown * np.eye(len(point.values))  # each parameter one off, as if nothing spoke of it
    slopes = problem.slopes(point).T[:, :, None]
    return influence.and_of(Influence(slopes * free, free)), r2


def _r2_beyond(
    problem: Problem, point: Point, rows: Observations, beyond: Predicted
) -> float | None:
    """What the description holds of what the whole model holds of the answers."""
    if beyond.r2 is None or beyond.r2 <= 0:
        return beyond.r2
    described = beyond.after(rows)
    drawn = sampled_rows(described.counts)
    weights, scores = described.weights[drawn], described.scores[drawn]
    spread = weights @ ((scores - np.average(scores, axis=0, weights=weights)) ** 2).sum(axis=1)
    missed = weights @ (point.residuals[drawn] ** 2).sum(axis=1)
    return beyond.r2 * float(1.0 - missed / spread) if spread > 0 else None


def _influence_beyond(
    problem: Problem, point: Point, factors: Factors, rows: Observations, beyond: Predicted
) -> Influence:
    """By what the whole model misses, and since other subsets could have been described.

    What is missed of one class is not missed of another: signs are those of the residuals.
    """
    n_asked, described = len(rows.scores), beyond.after(rows)
    alone = unasked(described.counts, rows.document_counts)[:, None] * point.residuals**2
    alone[n_asked:] += beyond.own
    influence = influence_of(problem, point, factors, np.copysign(np.sqrt(alone), point.residuals))
    at = np.arange(len(problem.scores)) - n_asked
    some = problem.rows((at >= 0) & (at < len(beyond.errors)))
    there = some.at_point(point)
    share = beyond.weights.sum() / described.weights.sum()
    return influence.and_of(joint_influence(some, there, factors, share * beyond.errors))


def grouped_errors(
    problem: Problem, point: Point, groups: NDArray[np.intp]
) -> tuple[FloatArray, FloatArray]:
    """(k,) of values and of importances, one class, where rows come in groups that err together.

    What a description leaves of one query of a document it leaves of its others. Of most tokens
    few documents tell anything, so what the ridges hold in place is as unsure as a residual.
    """
    noise = problem.weights * point.residuals[:, 0]
    slopes = problem.slopes(point)
    differing = point.attention.times_difference(point.values[:, 0], point.attended[:, 0])
    own = slopes * _summed(point.attention.scale_rows(noise), groups)
    shared = _summed(differing.scale_rows(noise), groups)
    misfit = np.sqrt(float(problem.weights @ point.residuals[:, 0] ** 2) / len(noise))
    ridges, k = problem.ridges, len(point.values)
    pulls = misfit * np.sqrt(np.append(ridges.values, ridges.importances))
    beside = np.zeros((2, k, 2 * k))
    beside[0, :, :k], beside[1, :, k:] = np.diag(pulls[:k]), np.diag(pulls[k:])
    steps = gauss_newton(problem, point).solve(
        np.hstack([own, beside[0]])[None], np.hstack([shared, beside[1]])
    )
    moved = moved_by(problem, point, *steps)
    values, importances = (np.linalg.norm(m, axis=1) for m in (moved.values[0], moved.importances))
    return np.asarray(values), np.asarray(importances)


def _summed(rows: Rows, groups: NDArray[np.intp]) -> FloatArray:
    """The rows of each group added up, as columns: (k, n_groups)."""
    sums = np.zeros((rows.shape[1], int(groups.max()) + 1))
    if rows.cells is None:
        np.add.at(sums.T, groups, rows.data)
    else:
        np.add.at(sums, (rows.cells.column, groups[rows.cells.row]), rows.data)
    return sums


def _open_share(answers: FloatArray, problem: Problem) -> float:
    """Of all there is to know, no answer for it; classes that sum to 0 say one thing less."""
    (n, n_classes), m = answers.shape, problem.n_features
    free = max(1, n_classes - 1)
    n_known = (n - 1) * free if problem.weights.any() else 0
    return float(max(0.0, 1.0 - n_known / (m * (free + 1))))
