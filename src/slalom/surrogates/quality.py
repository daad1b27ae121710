"""How well a fit predicts rows it has not seen, from leave-one-out residuals."""

import numpy as np

from slalom.document import FloatArray

HANDFUL = 8  # rows that would have the spread if it were shared evenly
CONSTANT = 1e-9  # of the largest score: rounding, not spread


def loo_quality(
    residuals: FloatArray, scores: FloatArray, *, weights: FloatArray, n_parameters: float
) -> tuple[float | None, float | None]:
    """R² and RMSE; R² is None where nothing can be judged: too few rows, or constant scores.

    Nor where a handful of rows have nearly all of the spread: what holds for them says little
    about the next one of their kind. `residuals` and `scores` are (n_rows, n_classes),
    `n_parameters` counts those of one class.
    """
    n_rows, n_classes = scores.shape
    if n_rows == 0:
        return None, None
    shares = weights / weights.sum()
    squared = float(shares @ (residuals**2).sum(axis=1))
    rmse = float(np.sqrt(squared / n_classes))
    parts = shares * ((scores - shares @ scores) ** 2).sum(axis=1)
    spread = float(parts.sum())
    if n_rows <= max(n_parameters, 1) or spread**2 < HANDFUL * float((parts**2).sum()):
        return None, rmse
    alone = n_rows / (n_rows - 1)  # the mean, too, is judged on rows it has not seen
    return r2_of(squared, spread * alone**2, float(np.abs(scores).max())), rmse


def r2_of(missed: float, spread: float, largest: float) -> float | None:
    """1 − what was missed of the spread; None where scores up to `largest` are constant."""
    if spread <= (CONSTANT * max(1.0, largest)) ** 2:
        return None
    return 1.0 - missed / spread
