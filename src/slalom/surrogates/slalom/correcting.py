"""What comes of the residuals of one fit: shares of Shapley values, and a corrected model.

Shares come from the posterior (posterior.py), or from residual_shapley.py where there are too many
rows for it. The model is corrected everywhere by the posterior, where that pays, and in any case
near the full text (nearby.py). Plain arrays go in and come out, so that workers can run it.
"""

from dataclasses import dataclass, replace

import numpy as np

from slalom.document import BoolArray, FloatArray, IntArray, row_keys
from slalom.surrogates.base import Fit, Observations
from slalom.surrogates.quality import loo_quality
from slalom.surrogates.slalom.completed import CompletedModel
from slalom.surrogates.slalom.corrected import CorrectedModel
from slalom.surrogates.slalom.described import rescaled
from slalom.surrogates.slalom.model import SlalomModel
from slalom.surrogates.slalom.nearby import NearFit, NearResiduals, Neighbourhood, fit_near
from slalom.surrogates.slalom.posterior import Posterior, Residuals, posterior_of
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

    left: Left | Residuals | None = None  # Residuals: few enough for a posterior
    near: NearAnswers | None = None


@dataclass(frozen=True, eq=False)
class Corrected:
    """A model with its corrections, and what is known of the text nearly whole."""

    model: CorrectedModel
    near: NearFit

    def drawn_error(self, weights: FloatArray) -> float:
        """The squared error of the fit's own rows, leave-one-out."""
        return float(weights @ (self.near.drawn_residuals**2).sum(axis=1))

    def removal_error(self) -> float:
        """Of single removals that were not measured."""
        return 0.0 if self.near.error is None else float(np.linalg.norm(self.near.error))


@dataclass(frozen=True, eq=False)
class ResidualResult:
    """What the residuals of one document add to its fit; None: nothing of that kind."""

    shares: Shares | None = None  # of Shapley values
    corrected: Corrected | None = None


def solve_residuals(task: ResidualTask, posterior: Posterior | None = None) -> ResidualResult:
    """`posterior` is that of the task's residuals, where it was computed elsewhere."""
    left, near = task.left, task.near
    if isinstance(left, Residuals):
        posterior = posterior or posterior_of(left)
        corrected = None if near is None else _better(near, left, posterior)
        return ResidualResult(posterior.shares, corrected)
    shares = None if left is None else residual_shares(left)
    return ResidualResult(shares, None if near is None else _near_only(near))


def judged_with(fit: Fit, result: ResidualResult, seen: Observations) -> Fit:
    """The fit, judged together with what was added to it."""
    by, added = fit.judged, result.corrected
    if added is None or by is None:
        return fit
    if added.model.correction is None and added.near.nearby.nugget == 0:
        return fit
    columns, residuals = seen.scores.reshape(len(seen.scores), -1), added.near.drawn_residuals
    found = loo_quality(residuals, columns, weights=seen.weights, n_parameters=0, by=by)
    if found.r2 is None:
        return fit
    parts = rescaled(fit.parts, found.r2)
    return replace(fit, r2=found.r2, r2_error=found.r2_error, rmse=found.rmse, parts=parts)


def _better(near: NearAnswers, left: Residuals, posterior: Posterior) -> Corrected:
    """The fit or its posterior, each with what is known of the text nearly whole on top.

    The posterior must pay on left-out answers and do no great harm to single removals, which
    people try out.
    """
    plain, everywhere = _near_only(near), _everywhere(near, left, posterior)
    pays = everywhere.drawn_error(near.weights) <= MIN_GAIN * plain.drawn_error(near.weights)
    harms = everywhere.removal_error() > MAX_HARM * plain.removal_error()
    return everywhere if pays and not harms else plain


def _near_only(near: NearAnswers) -> Corrected:
    return _with_nearby(near, CorrectedModel(near.fitted, None, None), None)


def _everywhere(near: NearAnswers, left: Residuals, posterior: Posterior) -> Corrected:
    residuals, left_out = near.residuals.copy(), np.zeros_like(near.answers)
    for rows, present in ((residuals, near.where.drawn), (left_out, near.where.measured)):
        at = _rows(present, left)
        rows[at >= 0] = posterior.left_out[at[at >= 0]]
    model = CorrectedModel(near.fitted, posterior.correction, None)
    return _with_nearby(replace(near, residuals=residuals), model, left_out)


def _with_nearby(
    near: NearAnswers, model: CorrectedModel, left_out: FloatArray | None
) -> Corrected:
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
    return Corrected(replace(model, nearby=known.nearby), known)


def _rows(present: BoolArray, left: Residuals) -> IntArray:
    """The row of `left` that each subset is; −1: none."""
    places = {key: at for at, key in enumerate(row_keys(left.present))}
    return np.array([places.get(key, -1) for key in row_keys(present)], dtype=np.int32)
