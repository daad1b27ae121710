"""What a fit left of a document's answers: shared out, and carried on near the whole text.

Knows which answers say something about it; how they are put to use is the surrogates' matter
(kriged_shapley.py, residual_shapley.py, nearby.py). Numbers only go in and come out: workers do
it where they pay.
"""

from dataclasses import dataclass, replace

import numpy as np

from slalom.document import BoolArray, FloatArray
from slalom.explainers.facts import Asked, Facts, strength_of
from slalom.samplers.base import Samples, row_keys
from slalom.surrogates.base import Fit, Observations
from slalom.surrogates.quality import loo_quality
from slalom.surrogates.slalom.described import rescaled
from slalom.surrogates.slalom.kriged_shapley import MOST, Answered, kriged_shares
from slalom.surrogates.slalom.nearby import Known, Missed, know_nearby
from slalom.surrogates.slalom.residual_shapley import Left, Shares, residual_shares


@dataclass(frozen=True, eq=False)
class Leftover:
    """What is to be worked out of one document; None: there is nothing to say of that."""

    left: Left | Answered | None = None
    missed: Missed | None = None


@dataclass(frozen=True, eq=False)
class Used:
    """What came of it."""

    shares: Shares | None = None
    known: Known | None = None


def used(leftover: Leftover) -> Used:
    missed = leftover.missed
    return Used(_shares(leftover.left), None if missed is None else know_nearby(missed))


def _shares(left: Left | Answered | None) -> Shares | None:
    if left is None:
        return None
    return kriged_shares(left) if isinstance(left, Answered) else residual_shares(left)


def judged_with(fit: Fit, known: Known | None, seen: Observations) -> Fit:
    """The fit, judged together with what is known of the text nearly whole."""
    by = fit.judged
    if known is None or by is None or known.nearby.own == 0:
        return fit
    columns = seen.scores.reshape(len(seen.scores), -1)
    weights = seen.weights
    found = loo_quality(known.of_drawn, columns, weights=weights, n_parameters=0, by=by)
    if found.r2 is None:
        return fit
    parts = rescaled(fit.parts, found.r2)
    return replace(fit, r2=found.r2, r2_error=found.r2_error, rmse=found.rmse, parts=parts)


def leftover_of(
    plan: Facts, asked: Asked, fit: Fit, *, samples: Samples, seen: Observations
) -> Leftover:
    """Nothing where the fit has no anchor to stand on, or every subset was asked.

    Where neither design nor fit bears out more, equal shares put the sum right, no more.
    """
    if "shapley" not in fit.scores or getattr(fit.model, "anchor", None) is None:
        return Leftover()
    if asked.empty is not None and samples.complete:
        return Leftover()
    document, whole, empty = asked.case.document, asked.case.score, asked.empty
    said = fit.model.predict(seen.counts) if fit.held_out is None else fit.held_out
    ends = fit.model.predict(np.stack([np.zeros_like(seen.document_counts), seen.document_counts]))
    residuals = (seen.scores - said).reshape(len(said), -1)
    drawn = document.untied().count(samples.queries)
    if len(drawn) > len(said):  # queries that read the same were one row of the fit
        drawn = drawn[asked.case.answers.first]
    told = fit.r2 is not None
    missed = _missed(asked, fit, drawn > 0, residuals) if told and plan.nearby else None
    n_alike = samples.n_alike if told and plan.shapley else None
    kept = slice(0 if n_alike is None else None)
    left = Left(
        present=drawn[kept],
        residuals=residuals[kept],
        n_alike=np.zeros(0) if n_alike is None else n_alike,
        whole=np.reshape(whole - ends[1], -1),
        empty=np.reshape(np.zeros_like(whole) if empty is None else empty - ends[0], -1),
    )
    if len(left.present) == 0 or len(drawn) + len(asked.present) > MOST:
        return Leftover(left, missed)
    said, ends = said.reshape(residuals.shape), ends.reshape(2, -1)
    return Leftover(_answered(asked, fit, left, said=said, ends=ends), missed)


def _answered(
    asked: Asked, fit: Fit, left: Left, *, said: FloatArray, ends: FloatArray
) -> Answered:
    """The rows that were drawn and what was asked besides, the ends apart."""
    features, n_units = asked.case.document.features, asked.present.shape[1]
    known = set(row_keys(left.present > 0))
    new = [at for at, key in enumerate(row_keys(asked.present)) if key not in known]
    beside = asked.present[new].astype(np.float64)
    shape = len(new), said.shape[1]
    said_beside = fit.model.spread(features).predict(beside).reshape(shape)
    missed_beside = asked.scores[new].reshape(shape) - said_beside
    present = np.vstack([left.present, beside])
    inner = (present.any(axis=1)) & (present.sum(axis=1) < n_units)
    return Answered(
        present=present[inner],
        residuals=np.vstack([left.residuals, missed_beside])[inner],
        said=np.vstack([said, said_beside])[inner],
        ends=ends,
        missed=np.stack([left.empty, left.whole]),
        fitted=fit.scores["shapley"][features].reshape(n_units, -1),
    )


def _missed(asked: Asked, fit: Fit, drawn: BoolArray, residuals: FloatArray) -> Missed:
    """Near the whole text: the text itself, single removals, and the rows that were drawn."""
    n_units, whole = asked.case.document.n_units, asked.case.score
    model = fit.model.spread(asked.case.document.features)
    single = asked.present.sum(axis=1) == n_units - 1
    measured = np.vstack([np.ones((1, n_units), dtype=bool), asked.present[single]])
    answers = np.concatenate([whole[None], asked.scores[single]])
    missed = answers - model.predict(measured.astype(np.float64))
    removals = whole - model.predict(1.0 - np.eye(n_units))
    return Missed(
        measured,
        missed.reshape(len(missed), -1),
        drawn,
        residuals,
        removals.reshape(n_units, -1),
        strength_of(fit)[asked.case.document.features],
    )
