"""Exact Shapley values of a SLALOM, in O(m Q T) instead of 2ⁿ.

Shapley weights are a Beta integral and 1/Z = ∫ exp(−tZ) dt, so for fixed (q, t) the
expectation over coalitions factorises. With E_j = exp(−t w_j), a_j = 1 − q + q E_j:

    P = exp(−t w_0) Π_j a_j^{c_j}      β_k = q w_k E_k / a_k
    φ_i = ∫∫ P/a_i [ w_i E_i v_i + (E_i − 1) (w_0 v_0 + Σ_k (c_k − [k = i]) β_k v_k) ] dt dq

Gauss–Legendre in q (the integrand has degree n − 1), the trapezoid rule in u = log t, which is
exact to exp(−π²/step) on the whole line; below the first node, where nothing but dt is left,
the nodes that are not there are a geometric sum.
Features that occur c_j times stand for c_j players with equal shares.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np

from slalom.document import FloatArray

LOWEST_TZ, HIGHEST_TW = 1e-5, 45.0  # the square of the first and exp(−second) are left out


@dataclass(frozen=True)
class Grid:
    """How finely the two integrals are cut."""

    step: float
    most_q_nodes: int


FINE, COARSE = Grid(0.4, 64), Grid(0.5, 16)  # for values; for standard errors, within 1e-3


@dataclass(frozen=True, eq=False)
class Game:
    """A SLALOM with one column of values, and the document whose units are the players."""

    weights: FloatArray  # (m,) the largest is 1
    values: FloatArray  # (m,)
    counts: FloatArray  # (m,) how often each feature occurs in the document
    anchor_weight: float
    anchor_value: float


@dataclass(frozen=True, eq=False)
class _Nodes:
    """The factors of the integrand for one q and all t."""

    t: FloatArray  # (n_t,)
    product: FloatArray  # (n_t,) P times the quadrature weights
    left: FloatArray  # (m, n_t) (E_i − 1) / a_i
    own: FloatArray  # (m, n_t) w_i E_i / a_i
    beta: FloatArray  # (m, n_t)


def shapley_values(game: Game) -> FloatArray:
    """The Shapley value of one occurrence of each feature: (m,)."""
    shares = np.zeros(len(game.values))
    for nodes in _quadrature(game, FINE):
        shares += _bracket(game, nodes)[0] @ nodes.product
    return shares


def shapley_jacobian(game: Game) -> FloatArray:
    """∂φ_i by (v_1…v_m, v_0, s_1…s_m, s_0): (m, 2m + 2), for the delta method."""
    m, counts, values = len(game.values), game.counts, game.values[:, None]
    jacobian = np.zeros((m, 2 * m + 2))
    by_value, by_importance = jacobian[:, : m + 1], jacobian[:, m + 1 :]
    itself = np.diag_indices(m)
    for nodes in _quadrature(game, COARSE):
        bracket, others = _bracket(game, nodes)
        slope = nodes.beta * (1 + nodes.t * (nodes.beta - game.weights[:, None]))  # ∂β/∂s
        log_a = -nodes.t * nodes.beta  # ∂ log a/∂s
        left, pulled = nodes.left * nodes.product, bracket * nodes.product
        cross_value = left @ nodes.beta.T
        cross = pulled @ log_a.T + left @ (slope * values).T
        by_value[:, :m] += counts * cross_value
        by_value[itself] += nodes.own @ nodes.product - cross_value[itself]
        by_value[:, m] += game.anchor_weight * left.sum(axis=1)
        own = nodes.own * (values - nodes.t * (game.weights[:, None] * values + others))
        by_importance[:, :m] += counts * cross
        by_importance[itself] += own @ nodes.product - cross[itself]
        by_importance[:, m] += game.anchor_weight * (
            game.anchor_value * left.sum(axis=1) - pulled @ nodes.t
        )
    return jacobian


def _bracket(game: Game, nodes: _Nodes) -> tuple[FloatArray, FloatArray]:
    """The integrand over P, and what the other units and the anchor bring: (m, n_t) each."""
    brought = nodes.beta * game.values[:, None]
    others = game.anchor_weight * game.anchor_value + game.counts @ brought - brought
    return nodes.own * game.values[:, None] + nodes.left * others, others


def _quadrature(game: Game, grid: Grid) -> Iterator[_Nodes]:
    n_units = max(1, round(float(game.counts.sum())))
    points, q_weights = _legendre(min(-(-n_units // 2), grid.most_q_nodes))
    weights = np.append(game.weights, game.anchor_weight)
    lowest = np.log(LOWEST_TZ / max(float(game.counts @ weights[:-1]) + weights[-1], 1.0))
    highest = np.log(HIGHEST_TW / weights[weights > 0].min(initial=1.0))
    u = np.linspace(lowest, highest, int(np.ceil((highest - lowest) / grid.step)) + 1)
    t = np.exp(u)
    step = float(u[1] - u[0])
    t_weights = step * t
    t_weights[0] /= -np.expm1(-step)
    decay = np.exp(-game.weights[:, None] * t)
    for q, q_weight in zip((points + 1) / 2, q_weights / 2, strict=True):
        a = 1.0 - q + q * decay
        log_product = game.counts @ np.log(a) - t * game.anchor_weight
        own = game.weights[:, None] * decay / a
        yield _Nodes(
            t=t,
            product=np.exp(log_product) * t_weights * q_weight,
            left=(decay - 1.0) / a,
            own=own,
            beta=q * own,
        )


@cache
def _legendre(n_nodes: int) -> tuple[FloatArray, FloatArray]:
    return np.polynomial.legendre.leggauss(n_nodes)
