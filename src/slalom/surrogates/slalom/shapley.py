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

NODES_PER_ROOT = 2.5  # of q, of the number of units: P falls like exp(−qn), others add 1e-12
AT_ONCE = 4  # nodes of q: more do not fit the caches
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
    """The factors of the integrand at some q, and at every t where P is not yet nothing."""

    q: FloatArray  # (n_nodes,)
    t: FloatArray  # (n_nodes,)
    product: FloatArray  # (n_nodes,) P times the quadrature weights
    left: FloatArray  # (n_nodes, m) (E_i − 1) / a_i
    own: FloatArray  # (n_nodes, m) w_i E_i / a_i, of which β is q times


def shapley_values(game: Game) -> FloatArray:
    """The Shapley value of one occurrence of each feature: (m,)."""
    shares = np.zeros(len(game.values))
    for nodes in _quadrature(game, FINE):
        weighted = nodes.own * game.values
        shares += nodes.product @ weighted
        shares += (nodes.product * _of_all(game, nodes, weighted)) @ nodes.left
        weighted *= nodes.left  # the unit is not one of the others
        shares -= (nodes.q * nodes.product) @ weighted
    return shares


def shapley_jacobian(game: Game) -> FloatArray:
    """∂φ_i by (v_1…v_m, v_0, s_1…s_m, s_0): (m, 2m + 2), for the delta method."""
    m, weights, values = len(game.values), game.weights, game.values
    jacobian = np.zeros((m, 2 * m + 2))
    by_value, by_importance = jacobian[:, : m + 1], jacobian[:, m + 1 :]
    own_value, own_importance = np.zeros((2, m))
    for nodes in _quadrature(game, COARSE):
        beta, weighted = nodes.own * nodes.q[:, None], nodes.own * values
        others = _of_all(game, nodes, weighted)[:, None] - beta * values
        left = nodes.left * nodes.product[:, None]
        pulled = weighted * nodes.product[:, None] + left * others
        turned = beta * nodes.t[:, None]  # −∂ log a/∂s
        slope = (beta + turned * (beta - weights)) * values  # v ∂β/∂s
        by_value[:, :m] += left.T @ beta
        by_importance[:, :m] += left.T @ slope - pulled.T @ turned
        by_value[:, m] += game.anchor_weight * left.sum(axis=0)
        by_importance[:, m] -= game.anchor_weight * (nodes.t @ pulled)
        own_value += nodes.product @ nodes.own
        own_importance += nodes.product @ weighted
        own_importance -= (nodes.product * nodes.t) @ (nodes.own * (weights * values + others))
    by_importance[:, m] += game.anchor_value * by_value[:, m]
    for others, own in ((by_value[:, :m], own_value), (by_importance[:, :m], own_importance)):
        itself = others.diagonal().copy()
        others *= game.counts
        others[np.diag_indices(m)] += own - itself
    return jacobian


def _of_all(game: Game, nodes: _Nodes, weighted: FloatArray) -> FloatArray:
    """(n_nodes,) what all units and the anchor bring."""
    return np.asarray(game.anchor_weight * game.anchor_value + nodes.q * (weighted @ game.counts))


def _quadrature(game: Game, grid: Grid) -> Iterator[_Nodes]:
    n_units = max(1, round(float(game.counts.sum())))
    enough = int(np.ceil(min(n_units / 2, NODES_PER_ROOT * np.sqrt(n_units))))
    points, q_weights = _legendre(min(enough, grid.most_q_nodes))
    weights = np.append(game.weights, game.anchor_weight)
    lowest = np.log(LOWEST_TZ / max(float(game.counts @ weights[:-1]) + weights[-1], 1.0))
    highest = np.log(HIGHEST_TW / weights[weights > 0].min(initial=1.0))
    u = np.linspace(lowest, highest, int(np.ceil((highest - lowest) / grid.step)) + 1)
    t = np.exp(u)
    step = float(u[1] - u[0])
    t_weights = step * t
    t_weights[0] /= -np.expm1(-step)
    gone = np.expm1(-t[:, None] * game.weights)  # E − 1
    own_weights = (1.0 + gone) * game.weights
    n_gone, by_anchor = -(gone @ game.counts), t * game.anchor_weight
    for first in range(0, len(points), AT_ONCE):
        some = slice(first, first + AT_ONCE)
        q, q_weight = (points[some] + 1) / 2, q_weights[some] / 2
        # −log P ≥ q Σ (1 − E) + t w_0, which rises with both
        n_t = int((q[0] * n_gone + by_anchor <= HIGHEST_TW).sum())
        a = 1.0 + q[:, None, None] * gone[:n_t]  # (n_q, n_t, m)
        log_product = np.log(a) @ game.counts - by_anchor[:n_t]
        yield _Nodes(
            q=np.repeat(q, n_t),
            t=np.tile(t[:n_t], len(q)),
            product=np.ravel(np.exp(log_product) * t_weights[:n_t] * q_weight[:, None]),
            left=(gone[:n_t] / a).reshape(-1, len(weights) - 1),
            own=(own_weights[:n_t] / a).reshape(-1, len(weights) - 1),
        )


@cache
def _legendre(n_nodes: int) -> tuple[FloatArray, FloatArray]:
    return np.polynomial.legendre.leggauss(n_nodes)
