"""Exact Shapley values of a SLALOM, in O(m Q T) instead of 2ⁿ.

Shapley weights are a Beta integral and 1/Z = ∫ exp(−tZ) dt, so for fixed (q, t) the
expectation over coalitions factorises. With E_j = exp(−t w_j), a_j = 1 − q + q E_j:

    P = exp(−t w_0) Π_j a_j^{c_j}      β_k = q w_k E_k / a_k
    φ_i = ∫∫ P/a_i [ w_i E_i v_i + (E_i − 1) (w_0 v_0 + Σ_k (c_k − [k = i]) β_k v_k) ] dt dq

P ≤ exp(−t w_0 − q Σ c_j (1 − E_j)): at each t, q goes as far as that is not nothing, with as many
Gauss–Legendre nodes as so much of a decay takes (and n/2 at most: the integrand has degree n − 1).
Over t the trapezoid rule in u, log tZ = u − exp(−1 − u), which is exact to exp(−π²/step): log t
where the integrand falls, and at the lower end, where nothing but dt is left, soon at t = 0.
Features that occur c_j times stand for c_j players with equal shares.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from slalom.document import FloatArray, IntArray
from slalom.surrogates.linalg import legendre


@dataclass(frozen=True)
class Grid:
    """How finely the two integrals are cut."""

    step: float  # of u
    reach: float  # exp(−reach) is left out

    def n_nodes(self, decay: FloatArray) -> IntArray:
        """Of q, for exp(−decay) at its upper end: found by trying."""
        return np.ceil(self.reach / 10 + 0.45 * np.sqrt(self.reach * decay)).astype(np.int32)


FINE, COARSE = Grid(0.36, 26.0), Grid(0.6, 13.0)  # values, to 1e-9; standard errors, to 1e-3


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
    """The factors of the integrand at some (q, t)."""

    q: FloatArray  # (n_nodes,)
    t: FloatArray  # (n_nodes,)
    product: FloatArray  # (n_nodes,) P times the quadrature weights
    left: FloatArray  # (n_nodes, m) (E_i − 1) / a_i
    own: FloatArray  # (n_nodes, m) w_i E_i / a_i, of which β is q times


def shapley_values(game: Game) -> FloatArray:
    """The Shapley value of one occurrence of each feature: (m,)."""
    shares, own = np.zeros((2, len(game.values)))
    for nodes in _quadrature(game, FINE):
        shares += (nodes.product * _of_all(game, nodes)) @ nodes.left
        own += nodes.product @ nodes.own
        own -= (nodes.q * nodes.product) @ (nodes.own * nodes.left)  # is not one of the others
    return shares + own * game.values


def shapley_jacobian(game: Game) -> tuple[FloatArray, FloatArray]:
    """∂φ_i/∂v_j and ∂φ_i/∂s_j, (m, m) each, for the delta method."""
    m, weights, values = len(game.values), game.weights, game.values
    by_value, by_importance = np.zeros((2, m, m))
    own_value, own_importance = np.zeros((2, m))
    for nodes in _quadrature(game, COARSE):
        beta, weighted = nodes.own * nodes.q[:, None], nodes.own * values
        others = _of_all(game, nodes)[:, None] - beta * values
        left = nodes.left * nodes.product[:, None]
        pulled = weighted * nodes.product[:, None] + left * others
        turned = beta * nodes.t[:, None]  # −∂ log a/∂s
        slope = (beta + turned * (beta - weights)) * values  # v ∂β/∂s
        by_value += left.T @ beta
        by_importance += left.T @ slope - pulled.T @ turned
        own_value += nodes.product @ nodes.own
        own_importance += nodes.product @ weighted
        own_importance -= (nodes.product * nodes.t) @ (nodes.own * (weights * values + others))
    for others, own in ((by_value, own_value), (by_importance, own_importance)):
        itself = others.diagonal().copy()
        others *= game.counts
        others[np.diag_indices(m)] += own - itself
    return by_value, by_importance


def _of_all(game: Game, nodes: _Nodes) -> FloatArray:
    """(n_nodes,) what all units and the anchor bring."""
    brought = nodes.q * (nodes.own @ (game.counts * game.values))
    return np.asarray(game.anchor_weight * game.anchor_value + brought)


def _quadrature(game: Game, grid: Grid, n_at_once: int = 256) -> Iterator[_Nodes]:
    """Some of the nodes at once: more do not fit the caches."""
    t, t_weights = _times(game, grid)
    gone = np.expm1(-t[:, None] * game.weights)  # E − 1
    n_gone, by_anchor = -(gone @ game.counts), t * game.anchor_weight
    upper = np.maximum(grid.reach - by_anchor, 0.0) / np.maximum(n_gone, 1e-300)
    upper = np.minimum(upper, 1.0)
    most = max(1, int(np.ceil(game.counts.sum() / 2)))
    n_nodes = np.minimum(grid.n_nodes(upper * n_gone), most)
    rules = [legendre(n) for n in n_nodes.tolist()]
    place = np.repeat(np.arange(len(t)), n_nodes)
    q = upper[place] * np.concatenate([points for points, _ in rules])
    weights = (t_weights * upper * np.exp(-by_anchor))[place]
    weights *= np.concatenate([weights for _, weights in rules])
    for first in range(0, len(q), n_at_once):
        some = slice(first, first + n_at_once)
        left = gone[place[some]]
        a = 1.0 + q[some, None] * left
        product = weights[some] * np.exp(np.log(a) @ game.counts)
        inverse = np.divide(1.0, a, out=a)
        left *= inverse
        own = (inverse + left) * game.weights
        yield _Nodes(q[some], t[place[some]], product, left, own)


def _times(game: Game, grid: Grid) -> tuple[FloatArray, FloatArray]:
    """The nodes of t and their weights; the anchor ends all, or the last unit without one."""
    total = max(float(game.counts @ game.weights) + game.anchor_weight, 1.0)
    last = game.anchor_weight or game.weights[game.weights > 0].min(initial=1.0)
    u = np.arange(-1.0 - np.log(grid.reach), np.log(grid.reach * total / last), grid.step)
    bent = np.exp(-1.0 - u)  # below −1 t goes to 0 at once
    t = np.exp(u - bent) / total
    return t, grid.step * t * (1.0 + bent)
