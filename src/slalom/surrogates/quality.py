"""How well a fit predicts rows it has not seen, from leave-one-out residuals."""

import numpy as np

from slalom.document import FloatArray


def loo_quality(
    residuals: FloatArray, scores: FloatArray, *, weights: FloatArray, n_parameters: float
) -> tuple[float | None, float | None]:
    """R² and RMSE; R² is None where nothing can be judged: too few rows, or constant scores.

    `residuals` and `scores` are (n_rows, n_classes), `n_parameters` counts those of one class.
    """
    n_rows, n_classes = scores.shape
    if n_rows == 0:
        return None, None
    shares = weights / weights.sum()
    squared = float(shares @ (residuals**2).sum(axis=1))
    rmse = float(np.sqrt(squared / n_classes))
    spread = float(shares @ ((scores - shares @ scores) ** 2).sum(axis=1))
    scale = max(1.0, float(np.abs(scores).max()))
    if n_rows <= max(n_parameters, 1) or spread <= (1e-9 * scale) ** 2:
        return None, rmse
    alone = n_rows / (n_rows - 1)  # the mean, too, is judged on rows it has not seen
    return 1.0 - squared / (spread * alone**2), rmse
