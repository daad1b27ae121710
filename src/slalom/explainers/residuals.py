"""What the fits left of the answers, and which of these enter; the work is correcting.py's."""

from dataclasses import replace

import numpy as np

from slalom.document import BoolArray, FloatArray, row_keys
from slalom.explainers.facts import Facts, strength_of
from slalom.explainers.stages import Fitted
from slalom.surrogates.slalom.completed import CompletedModel
from slalom.surrogates.slalom.correcting import (
    NearAnswers,
    ResidualTask,
    judged_with,
    solve_residuals,
)
from slalom.surrogates.slalom.model import SlalomModel
from slalom.surrogates.slalom.nearby import Neighbourhood
from slalom.surrogates.slalom.posterior import MAX_ROWS, Residuals
from slalom.surrogates.slalom.residual_shapley import Left


def use_residuals(plan: Facts, one: Fitted) -> Fitted:
    """A text with what its residuals add."""
    result = solve_residuals(residual_task(plan, one))
    return replace(one, fit=judged_with(one.fit, result, one.seen), residuals=result)


def residual_task(plan: Facts, one: Fitted) -> ResidualTask:
    """Nothing where the fit has no anchor to stand on, or every subset was asked.

    Where neither design nor fit bears out more, equal shares put the sum right, no more.
    """
    fit, n_of_size = one.fit, one.samples.n_of_size
    if "shapley" not in fit.scores or not one.anchored or one.all_asked:
        return ResidualTask()
    drawn = one.drawn
    predicted = fit.model.predict(one.seen.counts) if fit.held_out is None else fit.held_out
    residuals = (one.seen.scores - predicted).reshape(len(drawn), -1)
    is_judged = fit.r2 is not None
    near = _answers_near(one, drawn > 0, residuals) if is_judged and plan.nearby else None
    ends, (empty, whole) = _ends(one)
    if n_of_size is None or not (is_judged and plan.shapley):
        return ResidualTask(Left(drawn[:0], residuals[:0], np.zeros(0), whole, empty), near)
    left = Left(drawn, residuals, n_of_size[one.rows], whole, empty)
    if len(drawn) + len(one.follow_up.present) > MAX_ROWS:
        return ResidualTask(left, near)
    predicted = predicted.reshape(residuals.shape)
    return ResidualTask(_residuals(one, left, predicted=predicted, ends=ends), near)


def _ends(one: Fitted) -> tuple[FloatArray, FloatArray]:
    """Of the empty and the full text what the fit predicts, and what it misses: (2, n_columns).

    Nothing is missed of an empty text that was not asked.
    """
    whole, empty, full = one.case.score, one.follow_up.empty, one.seen.document_counts
    predicted = one.fit.model.predict(np.stack([np.zeros_like(full), full]))
    answers = np.stack([predicted[0] if empty is None else empty, whole])
    return predicted.reshape(2, -1), (answers - predicted).reshape(2, -1)


def _residuals(one: Fitted, left: Left, *, predicted: FloatArray, ends: FloatArray) -> Residuals:
    """The rows that were drawn and what was asked besides, the ends apart."""
    follow_up, features = one.follow_up, one.case.document.features
    known = set(row_keys(left.present > 0))
    new = [at for at, key in enumerate(row_keys(follow_up.present)) if key not in known]
    beside = follow_up.present[new].astype(np.float64)
    shape = len(new), predicted.shape[1]
    predicted_beside = one.fit.model.spread(features).predict(beside).reshape(shape)
    missed_beside = follow_up.scores[new].reshape(shape) - predicted_beside
    present = np.vstack([left.present, beside])
    inner = (present.any(axis=1)) & (present.sum(axis=1) < len(features))
    return Residuals(
        present=present[inner] > 0,
        values=np.vstack([left.residuals, missed_beside])[inner],
        predicted=np.vstack([predicted, predicted_beside])[inner],
        ends=ends,
        of_ends=np.stack([left.empty, left.whole]),
        shapley=one.fit.scores["shapley"][features].reshape(len(features), -1),
    )


def _answers_near(one: Fitted, drawn: BoolArray, residuals: FloatArray) -> NearAnswers | None:
    """The full text, single removals, and the rows that were drawn, with their residuals."""
    fit, follow_up, document = one.fit, one.follow_up, one.case.document
    model, weights = fit.model.spread(document.features), one.seen.weights
    if not isinstance(model, SlalomModel | CompletedModel):
        return None
    single = follow_up.present.sum(axis=1) == document.n_units - 1
    answers = np.concatenate([one.case.score[None], follow_up.scores[single]])
    full = np.ones((1, document.n_units), dtype=bool)
    return NearAnswers(
        fitted=model,
        where=Neighbourhood(np.vstack([full, follow_up.present[single]]), drawn),
        answers=answers.reshape(len(answers), -1),
        residuals=residuals,
        weights=weights if fit.judged is None else weights * fit.judged,
        strengths=strength_of(fit)[document.features],
    )
