"""Residuals of a fit: shared out among the units, and added to predictions.

Knows which answers enter; what is done with them is in the surrogates (posterior.py,
residual_shapley.py, nearby.py). Takes and returns plain arrays, so that workers can run it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from slalom.document import BoolArray, FloatArray, IntArray
from slalom.explainers.accelerated import Posteriors
from slalom.explainers.facts import Facts, FollowUp, strength_of
from slalom.samplers.base import Samples, row_keys
from slalom.surrogates.base import Fit, Observations
from slalom.surrogates.quality import loo_quality
from slalom.surrogates.slalom.completed import CompletedModel
from slalom.surrogates.slalom.corrected import CorrectedModel
from slalom.surrogates.slalom.described import rescaled
from slalom.surrogates.slalom.model import SlalomModel
from slalom.surrogates.slalom.nearby import (
    NearFit,
    NearResiduals,
    Neighbourhood,
    fit_near,
)
from slalom.surrogates.slalom.posterior import MAX_ROWS, Posterior, Residuals, posterior_of
from slalom.surrogates.slalom.residual_shapley import Left, Shares, residual_shares

MIN_GAIN = 0.98  # what the squared error of left-out answers must fall to
MAX_HARM = 1.5  # times which the error of removals that were not measured may grow


@dataclass(frozen=True, eq=False)
class NearAnswers:
    """Answers about the text nearly whole, and those the fit was made from."""

    fitted: SlalomModel | CompletedModel  # over units
    where: Neighbourhood
    answers: FloatArray  # (k, n_columns) to what was measured
    residuals: FloatArray  # (n_drawn, n_columns) of the fit's own rows, held out
    weights: FloatArray  # (n_drawn,) by which they judge; 0: not at all
    strengths: FloatArray  # (n_units,) by the fit


@dataclass(frozen=True, eq=False)
class ResidualTask:
    """What is to be computed for one document; None: not that part of it."""

    left: Left | Residuals | None = None
    near: NearAnswers | None = None


@dataclass(frozen=True, eq=False)
class ResidualResult:
    """Shares of Shapley values, and the model with its corrections; None: there are none."""

    shares: Shares | None = None
    known: NearFit | None = None
    model: CorrectedModel | None = None


def solve_residuals(task: ResidualTask, posterior: Posterior | None = None) -> ResidualResult:
    """`posterior` is that of the task's residuals, where it was computed elsewhere."""
    left, near = task.left, task.near
    if isinstance(left, Residuals):
        posterior = posterior or posterior_of(left)
        better = _better(near, left, posterior) if near else ()
        return ResidualResult(posterior.shares, *better)
    shares = None if left is None else residual_shares(left)
    return ResidualResult(shares, *(_finished(near) if near else ()))


def solve_with(posteriors: Posteriors, tasks: Sequence[ResidualTask]) -> list[ResidualResult]:
    """All tasks, their posteriors computed together, or here where that could not be."""
    given = {at: task.left for at, task in enumerate(tasks) if isinstance(task.left, Residuals)}
    found = posteriors(list(given.values())) if given else None
    known = {} if found is None else dict(zip(given, found, strict=True))
    return [solve_residuals(task, known.get(at)) for at, task in enumerate(tasks)]


def _better(
    near: NearAnswers, left: Residuals, posterior: Posterior
) -> tuple[NearFit, CorrectedModel]:
    """The fit or its correction, each with what is known of the text nearly whole on top.

    A correction must pay on left-out answers and do no great harm to single removals, which
    people try out.
    """
    plain, corrected = _finished(near), _corrected(near, left, posterior)
    before, now = (near.weights @ (k.drawn_residuals**2).sum(axis=1) for k, _ in (plain, corrected))
    if now > MIN_GAIN * before or _removal_error(corrected) > MAX_HARM * _removal_error(plain):
        return plain
    return corrected


def _removal_error(finished: tuple[NearFit, CorrectedModel]) -> float:
    error = finished[0].error
    return 0.0 if error is None else float(np.linalg.norm(error))


def _corrected(
    near: NearAnswers, left: Residuals, posterior: Posterior
) -> tuple[NearFit, CorrectedModel]:
    residuals, left_out = near.residuals.copy(), np.zeros_like(near.answers)
    for rows, present in ((residuals, near.where.drawn), (left_out, near.where.measured)):
        at = _rows(present, left)
        rows[at >= 0] = posterior.left_out[at[at >= 0]]
    model = CorrectedModel(near.fitted, posterior.correction, None)
    return _known(replace(near, residuals=residuals), model, left_out)


def _finished(near: NearAnswers) -> tuple[NearFit, CorrectedModel]:
    return _known(near, CorrectedModel(near.fitted, None, None), None)


def _known(
    near: NearAnswers, model: CorrectedModel, left_out: FloatArray | None
) -> tuple[NearFit, CorrectedModel]:
    """What is known of the text nearly whole beyond a model, and the model with it.

    `left_out` are residuals of what was measured, where the model has seen it; None: it has not.
    """
    n_units = near.where.measured.shape[1]
    predicted = model.predict(near.where.measured.astype(np.float64)).reshape(near.answers.shape)
    without = model.predict(1.0 - np.eye(n_units)).reshape(n_units, -1)
    residuals = near.answers - predicted
    known = fit_near(
        NearResiduals(
            near.where,
            residuals,
            residuals if left_out is None else left_out,
            near.residuals,
            near.answers[0] - without,
            near.strengths,
        )
    )
    return known, replace(model, nearby=known.nearby)


def _rows(present: BoolArray, left: Residuals) -> IntArray:
    """The row of `left` that each subset is; −1: none."""
    places = {key: at for at, key in enumerate(row_keys(left.present))}
    return np.array([places.get(key, -1) for key in row_keys(present)], dtype=np.int32)


def judged_with(fit: Fit, use: ResidualResult, seen: Observations) -> Fit:
    """The fit, judged together with what was added to it."""
    by, known, model = fit.judged, use.known, use.model
    if known is None or model is None or by is None:
        return fit
    if model.correction is None and known.nearby.nugget == 0:
        return fit
    columns = seen.scores.reshape(len(seen.scores), -1)
    weights = seen.weights
    found = loo_quality(known.drawn_residuals, columns, weights=weights, n_parameters=0, by=by)
    if found.r2 is None:
        return fit
    parts = rescaled(fit.parts, found.r2)
    return replace(fit, r2=found.r2, r2_error=found.r2_error, rmse=found.rmse, parts=parts)


def residual_task(
    plan: Facts, follow_up: FollowUp, fit: Fit, *, samples: Samples, seen: Observations
) -> ResidualTask:
    """Nothing where the fit has no anchor to stand on, or every subset was asked.

    Where neither design nor fit bears out more, equal shares put the sum right, no more.
    """
    if "shapley" not in fit.scores or getattr(fit.model, "anchor", None) is None:
        return ResidualTask()
    if follow_up.empty is not None and samples.complete:
        return ResidualTask()
    document, whole, empty = follow_up.case.document, follow_up.case.score, follow_up.empty
    predicted = fit.model.predict(seen.counts) if fit.held_out is None else fit.held_out
    ends = fit.model.predict(np.stack([np.zeros_like(seen.document_counts), seen.document_counts]))
    residuals = (seen.scores - predicted).reshape(len(predicted), -1)
    drawn = document.untied().count(samples.queries)
    if len(drawn) > len(predicted):  # queries that read the same were one row of the fit
        drawn = drawn[follow_up.case.answers.first]
    is_judged = fit.r2 is not None
    near = None
    if is_judged and plan.nearby:
        weights = seen.weights if fit.judged is None else seen.weights * fit.judged
        near = _answers_near(follow_up, fit, drawn=drawn > 0, residuals=residuals, weights=weights)
    n_of_size = samples.n_of_size if is_judged and plan.shapley else None
    kept = slice(0 if n_of_size is None else None)
    left = Left(
        present=drawn[kept],
        residuals=residuals[kept],
        n_of_size=np.zeros(0) if n_of_size is None else n_of_size,
        whole=np.reshape(whole - ends[1], -1),
        empty=np.reshape(np.zeros_like(whole) if empty is None else empty - ends[0], -1),
    )
    if len(left.present) == 0 or len(drawn) + len(follow_up.present) > MAX_ROWS:
        return ResidualTask(left, near)
    predicted, ends = predicted.reshape(residuals.shape), ends.reshape(2, -1)
    return ResidualTask(_residuals(follow_up, fit, left, predicted=predicted, ends=ends), near)


def _residuals(
    follow_up: FollowUp, fit: Fit, left: Left, *, predicted: FloatArray, ends: FloatArray
) -> Residuals:
    """The rows that were drawn and what was asked besides, the ends apart."""
    features, n_units = follow_up.case.document.features, follow_up.present.shape[1]
    known = set(row_keys(left.present > 0))
    new = [at for at, key in enumerate(row_keys(follow_up.present)) if key not in known]
    beside = follow_up.present[new].astype(np.float64)
    shape = len(new), predicted.shape[1]
    predicted_beside = fit.model.spread(features).predict(beside).reshape(shape)
    missed_beside = follow_up.scores[new].reshape(shape) - predicted_beside
    present = np.vstack([left.present, beside])
    inner = (present.any(axis=1)) & (present.sum(axis=1) < n_units)
    return Residuals(
        present=present[inner] > 0,
        values=np.vstack([left.residuals, missed_beside])[inner],
        predicted=np.vstack([predicted, predicted_beside])[inner],
        ends=ends,
        of_ends=np.stack([left.empty, left.whole]),
        shapley=fit.scores["shapley"][features].reshape(n_units, -1),
    )


def _answers_near(
    follow_up: FollowUp, fit: Fit, *, drawn: BoolArray, residuals: FloatArray, weights: FloatArray
) -> NearAnswers | None:
    """The full text, single removals, and the rows that were drawn, with their residuals."""
    n_units, whole = follow_up.case.document.n_units, follow_up.case.score
    model = fit.model.spread(follow_up.case.document.features)
    if not isinstance(model, SlalomModel | CompletedModel):
        return None
    single = follow_up.present.sum(axis=1) == n_units - 1
    answers = np.concatenate([whole[None], follow_up.scores[single]])
    measured = np.vstack([np.ones((1, n_units), dtype=bool), follow_up.present[single]])
    return NearAnswers(
        model,
        Neighbourhood(measured, drawn),
        answers.reshape(len(answers), -1),
        residuals,
        weights,
        strength_of(fit)[follow_up.case.document.features],
    )
