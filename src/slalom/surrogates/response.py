"""A response surface: how far a prediction is off, by what it says and how much is shown.

    h(F, k) = Σ_ab H_ab hat_a(F) hat_b(log₂(1 + k))

Hats over quantiles of the predictions and of the sizes; ridges keep neighbouring heights alike.
A classifier that is saturated at both ends, or surer of itself in long texts, bends what a sum
of parts says of it in this way. Beyond the outermost knots the surface stays level.
"""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from slalom.document import FloatArray
from slalom.schema import Within, check_ascending

N_LEVELS, N_SIZES = 9, 5  # knots; fewer where there are few rows
ROWS_PER_KNOT = 10
CURVATURE_RIDGE, SLOPE_RIDGE = 0.1, 0.1  # in units of the rows near a knot
LEVEL_RIDGE = 1e-3  # likewise


@dataclass(frozen=True, eq=False)
class Response:
    """Heights over a grid of predictions and sizes."""

    levels: Annotated[FloatArray, "levels"]  # ascending
    sizes: Annotated[FloatArray, "sizes", Within(0)]  # ascending
    heights: Annotated[FloatArray, "levels sizes"]

    def check(self) -> None:
        check_ascending(self.levels)
        check_ascending(self.sizes)

    def __call__(self, predicted: FloatArray, sizes: FloatArray) -> FloatArray:
        """What to add to predictions of texts of these sizes: (n,)."""
        by_size = _hats(np.log2(1 + sizes), self._log_sizes) @ self.heights.T  # (n, n_levels)
        return np.asarray((_hats(predicted, self.levels) * by_size).sum(axis=1))

    @property
    def _log_sizes(self) -> FloatArray:
        return np.asarray(np.log2(1 + self.sizes))


def flat() -> Response:
    """Adds nothing to anything."""
    return Response(np.zeros(1), np.zeros(1), np.zeros((1, 1)))


def fit_response(
    predicted: FloatArray, residuals: FloatArray, *, sizes: FloatArray, weights: FloatArray
) -> Response:
    """The surface through the residuals (truth − prediction) of predictions of unseen rows."""
    few = int(np.clip(len(predicted) / ROWS_PER_KNOT, 1, N_LEVELS * N_SIZES))
    n_sizes = min(N_SIZES, max(1, few // N_LEVELS + 1))
    levels = np.unique(np.quantile(predicted, np.linspace(0, 1, min(N_LEVELS, few))))
    knots = np.unique(np.quantile(sizes, np.linspace(0.02, 1, n_sizes), method="nearest"))
    across, along = _hats(predicted, levels), _hats(np.log2(1 + sizes), np.log2(1 + knots))
    design = (across[:, :, None] * along[:, None, :]).reshape(len(predicted), -1)
    bend, tilt = (np.diff(np.eye(len(x)), n, axis=0) for x, n in ((levels, 2), (knots, 1)))
    ridge = CURVATURE_RIDGE * np.kron(bend.T @ bend, np.eye(len(knots)))
    ridge += SLOPE_RIDGE * np.kron(np.eye(len(levels)), tilt.T @ tilt)
    ridge += LEVEL_RIDGE * np.eye(len(ridge))
    gram = design.T @ (design * weights[:, None]) + weights.sum() / len(ridge) * ridge
    heights = np.linalg.solve(gram, design.T @ (weights * residuals))
    return Response(levels, knots, heights.reshape(len(levels), len(knots)))


def _hats(values: FloatArray, knots: FloatArray) -> FloatArray:
    """(n, n_knots) linear interpolation between knots, level beyond them."""
    if len(knots) == 1:
        return np.ones((len(values), 1))
    inside = np.clip(values, knots[0], knots[-1])
    left = np.clip(np.searchsorted(knots, inside, side="right") - 1, 0, len(knots) - 2)
    share = (inside - knots[left]) / (knots[left + 1] - knots[left])
    found = np.zeros((len(values), len(knots)))
    rows = np.arange(len(values))
    found[rows, left], found[rows, left + 1] = 1 - share, share
    return found
