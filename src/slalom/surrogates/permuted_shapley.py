"""Shapley values of a model by orders of joining, on the model itself: it costs no query.

A unit's value is the mean of what it adds when it joins, over random orders and their reverses.
What is known exactly of a similar model serves as control variate: with β the slope of one
model's steps on the other's,

    φ = β φ_known + mean of (steps − β known steps)

so only what the two do not share is left to chance.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from slalom.document import FloatArray

N_ORDERS = 256  # half of them reverses of the others
Orders = NDArray[np.int_]  # (n_orders, n_units) the features of the units as they join
Paths = tuple[FloatArray, FloatArray]  # (n_orders, n_units + 1) each: from nothing to everything


def permuted_shapley(
    play: Callable[[Orders], Paths], document_counts: FloatArray, *, exact: FloatArray
) -> FloatArray:
    """(n_features,) of one unit of each feature.

    `play` says what the model, and a similar one whose values are `exact`, predict as units join.
    """
    times = np.rint(document_counts).astype(int)
    orders = _orders(np.repeat(np.arange(len(times)), times))
    steps, known = (np.diff(path, axis=1) for path in play(orders))
    square = float((known**2).sum())
    slope = float((steps * known).sum()) / square if square > 0 else 0.0
    chance = np.bincount(orders.ravel(), (steps - slope * known).ravel(), len(times))
    return np.asarray(slope * exact + chance / (times * N_ORDERS))


def _orders(units: Orders) -> Orders:
    """Random orders of the units' features, each beside its reverse."""
    rng = np.random.default_rng(0)
    drawn = rng.permuted(np.tile(units, (N_ORDERS // 2, 1)), axis=1)
    return np.stack([drawn, drawn[:, ::-1]], axis=1).reshape(N_ORDERS, -1)
