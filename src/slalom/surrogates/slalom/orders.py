"""The order in which to remove units from a SLALOM, or to put them in.

Keeping k units so that F is smallest is a fractional programme (Dinkelbach): for the right λ
these are the k units with the smallest w_i (v_i − λ). λ = F(N) gives the gradient's ranking,
λ = 0 the linearised one. The best sets of different sizes are nearly always nested; for one
order we take the λ whose whole path has the best mean probability: beyond a few log-odds it
does not matter how far F goes, but how soon it gets there.

With direct effects (of files that have them) and a length curve it is no longer such a programme:
they join the pulls at the weight a typical text has.
"""

import numpy as np
from numpy.typing import NDArray

from slalom.document import FloatArray
from slalom.errors import InputError
from slalom.surrogates.slalom.model import SlalomModel


def removal_order(model: SlalomModel) -> NDArray[np.intp]:
    """Units in the order of removal that makes F small as early as it can."""
    orders = _candidates(model)
    return np.asarray(orders[_probability(model, orders).argmin()][::-1])


def insertion_order(model: SlalomModel) -> NDArray[np.intp]:
    """Units in the order of insertion that makes F large as early as it can."""
    orders = _candidates(model)[:, ::-1]
    return np.asarray(orders[_probability(model, orders).argmax()])


def _candidates(model: SlalomModel) -> NDArray[np.intp]:
    """Orders of ascending w (v − λ), λ from all that F could be and, closer, from what it is."""
    if model.values.ndim != 1:
        raise InputError("an order of removal needs one target: explain one class, not all")
    reach = np.append(model.values, model.anchor_values())
    wide = _at_levels(model, reach)
    return np.unique(np.vstack([wide, _at_levels(model, _paths(model, wide))]), axis=0)


def _at_levels(model: SlalomModel, reach: FloatArray, n_levels: int = 128) -> NDArray[np.intp]:
    levels = np.linspace(reach.min(), reach.max(), n_levels)
    weights, anchor_weight = model.weights()
    pulls = weights * (model.values - levels[:, None])  # (n_candidates, n_units)
    if model.direct is not None:
        pulls = pulls + model.direct * (anchor_weight + weights.sum() / 2)
    return np.unique(np.argsort(pulls, axis=1, kind="stable"), axis=0)


def _probability(model: SlalomModel, orders: NDArray[np.intp]) -> FloatArray:
    """The mean probability as the units of each order come in one by one: (n_orders,).

    A trace of F itself decides where all of them are saturated.
    """
    paths = _paths(model, orders)
    return np.asarray((np.tanh(paths / 2) / 2 + 1e-6 * paths).mean(axis=1))


def _paths(model: SlalomModel, orders: NDArray[np.intp]) -> FloatArray:
    """F as the units of each order come in one by one: (n_orders, n_units)."""
    return model.joined(orders)[:, 1:]
