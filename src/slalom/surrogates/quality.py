"""How well a fit predicts rows it has not seen, from leave-one-out residuals.

    R² = 1 − Σ missed / Σ spread        over rows, each with its weight

and its standard error: that of a ratio of two sums over
independent rows, whose linear part is Σ (missed − (1 − R²) spread) / Σ spread, and what no
sample shows because it was not drawn, as if one more row were missed wholly: 1 / n, with n the
number of rows that would have the spread if it were shared evenly.

Rows of a kind that was asked to the last one are no sample of what is still to come: where every
unit was asked alone, these rows are fitted and do not judge the fit.
"""

from collections.abc import Callable

import numpy as np

from slalom.document import BoolArray, FloatArray, IntArray
from slalom.surrogates.base import (
    ROUNDING,
    UNKNOWN,
    Fit,
    HeldOutQuality,
    Model,
    Observations,
    no_quality_reason,
)

MIN_EFFECTIVE_ROWS = 8  # that share the spread


def fit_with_residuals(
    observed: Observations,
    model: Model,
    scores: FloatArray,
    *,
    residuals: FloatArray,
    n_parameters: int,
    errors: FloatArray | None = None,
) -> Fit:
    """A fit with one score per feature, its R² from held-out residuals (n_fitted, n_classes)."""
    rows = observed.fitted()
    quality = loo_quality(
        residuals,
        rows.scores,
        weights=rows.weights,
        n_parameters=n_parameters,
        by=sampled_rows(rows.counts),
    )
    known = quality.r2 is not None
    why_not = no_quality_reason(rows.counts, rows.scores, rows.document_counts)
    return Fit(
        model,
        {"score": scores},
        {"score": errors} if known and errors is not None else {},
        quality,
        notes=() if known else (why_not,),
    )


def out_of_fold(
    scores: FloatArray, n_folds: int, predict: Callable[[BoolArray], FloatArray]
) -> FloatArray:
    """(n, n_classes) each row as predicted by a fit without its fold; rows take turns.

    `predict` gets the rows to be predicted, a mask, and fits all others. A single row, without
    which there would be no fit, stays as it is.
    """
    predicted, folds = scores.copy(), np.arange(len(scores)) % n_folds
    for fold in range(n_folds):
        out = folds == fold
        if out.any() and not out.all():
            predicted[out] = predict(out)
    return predicted


def sampled_rows(counts: FloatArray) -> BoolArray:
    """(n,) rows of a kind that has others: where every unit was asked alone, no such row."""
    alone = counts.sum(axis=1) == 1
    settled = bool((counts[alone] > 0).any(axis=0).all())
    enough = (~alone).sum() >= MIN_EFFECTIVE_ROWS
    return ~alone if settled and enough else np.ones(len(counts), dtype=bool)


def loo_quality(
    residuals: FloatArray,
    scores: FloatArray,
    *,
    weights: FloatArray,
    n_parameters: float,
    by: BoolArray | None = None,
) -> HeldOutQuality:
    """R² is None where nothing can be judged: too few rows, or constant scores.

    Nor where a handful of rows have nearly all of the spread: what holds for them says little
    about the next one of their kind. `residuals` and `scores` are (n_rows, n_classes),
    `n_parameters` counts those of one class, `by` (n_rows,) says which rows judge; None: all.
    """
    too_few = len(scores) <= max(n_parameters, 1)
    if by is not None:
        residuals, scores, weights = residuals[by], scores[by], weights[by]
    n_rows, n_classes = scores.shape
    if n_rows == 0:
        return UNKNOWN
    shares = weights / weights.sum()
    missed = shares * (residuals**2).sum(axis=1)
    spread = shares * ((scores - shares @ scores) ** 2).sum(axis=1)
    rmse = float(np.sqrt(missed.sum() / n_classes))
    if too_few or _effective_rows(spread) < MIN_EFFECTIVE_ROWS:
        return HeldOutQuality(None, None, rmse)
    alone = n_rows / (n_rows - 1)  # the mean, too, is judged on rows it has not seen
    return held_out_quality(
        missed, spread * alone**2, largest=float(np.abs(scores).max()), rmse=rmse
    )


def held_out_quality(
    missed: FloatArray,
    spread: FloatArray,
    *,
    largest: float,
    rmse: float,
    groups: IntArray | None = None,
) -> HeldOutQuality:
    """R² of rows, each with what was missed of its spread; None where all scores are alike.

    `largest` is the largest of them; rows of one group (a document, say) err together.
    """
    total = float(spread.sum())
    if total <= (ROUNDING * max(1.0, largest)) ** 2:
        return HeldOutQuality(None, None, rmse)
    left = float(missed.sum()) / total
    parts = missed - left * spread
    if groups is not None:
        parts = np.bincount(groups, parts).astype(np.float64)
    n = len(parts)
    by_chance = float(np.linalg.norm(parts)) / total * np.sqrt(n / max(1, n - 1))
    return HeldOutQuality(1.0 - left, float(np.hypot(by_chance, 1 / _effective_rows(spread))), rmse)


def _effective_rows(spread: FloatArray) -> float:
    """How many rows would have the spread if it were shared evenly; without any, all of them."""
    squares = float((spread**2).sum())
    return float(spread.sum()) ** 2 / squares if squares > 0 else float(len(spread))
