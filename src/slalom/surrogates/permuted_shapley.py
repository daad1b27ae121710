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

N_ORDERS = 64  # half of them reverses of the others
ROWS_AT_ONCE = 8192
Orders = NDArray[np.int_]  # (n_orders, n_units) the features of the units as they join
Predict = Callable[[FloatArray], FloatArray]  # (k, n_features) → (k,)


def permuted_shapley(
    predict: Predict, document_counts: FloatArray, *, known: Predict, exact: FloatArray
) -> FloatArray:
    """(n_features,) of one unit of each feature; `exact` are those of the model `known`."""
    times = np.rint(document_counts).astype(int)
    units = np.repeat(np.arange(len(times)), times)
    own, like = np.zeros(len(times)), np.zeros(len(times))
    cross = square = 0.0
    for orders in _orders(units):
        steps, known_steps = (_steps(orders, len(times), play) for play in (predict, known))
        np.add.at(own, orders, steps)
        np.add.at(like, orders, known_steps)
        cross += float((steps * known_steps).sum())
        square += float((known_steps**2).sum())
    slope = cross / square if square > 0 else 0.0
    chance = (own - slope * like) / (times * N_ORDERS)
    return np.asarray(slope * exact + chance)


def _orders(units: Orders) -> list[Orders]:
    """Random orders of the units' features, each beside its reverse, a few at a time."""
    rng = np.random.default_rng(0)
    drawn = rng.permuted(np.tile(units, (N_ORDERS // 2, 1)), axis=1)
    drawn = np.stack([drawn, drawn[:, ::-1]], axis=1).reshape(N_ORDERS, -1)
    at_once = max(1, ROWS_AT_ONCE // (len(units) + 1))
    return [drawn[start : start + at_once] for start in range(0, N_ORDERS, at_once)]


def _steps(orders: Orders, n_features: int, predict: Predict) -> FloatArray:
    """(n_orders, n_units) what each unit adds when it joins those before it."""
    n_orders, n_units = orders.shape
    shown = np.zeros((n_orders, n_units + 1, n_features))
    shown[np.arange(n_orders)[:, None], np.arange(1, n_units + 1), orders] = 1.0
    np.cumsum(shown, axis=1, out=shown)
    said = predict(shown.reshape(-1, n_features)).reshape(n_orders, n_units + 1)
    return np.asarray(np.diff(said, axis=1))
