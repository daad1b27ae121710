"""Covariances between subsets of the units, and Shapley values of what has them.

Six kernels, of subsets S and T with sizes k and levels p (what a parametric model says):

    additive    Σ_i b_i (x_i − ½)(x′_i − ½)             units that add, each by itself
    together    c Π_{i in S Δ T} exp(−λ_i)              units that act together
    size        s exp(−½ Δ²)                            Δ: difference of log₂(1 + k)
    response    r exp(−½ (δ/.7)² − ½ (Δ/2.5)²)          δ: difference of p
    missing     v exp(−½ (∇/.5)²)                       ∇: difference of log₂(1 + n − k)
    white       τ² [S = T]

Size counts from both ends: what all single removals have in common (a unit less moves all that
follow) need not hold where three units are gone.

Shapley values are linear, so those of a covariance k(·, T) are one row per T. A Shapley value is
an integral (Owen): let every unit be present with the same probability q, independently; then the
mean of a product f = Π_j h_j(S) is a product of means, and

    φ_i = ∫ (h_i(1) − h_i(0)) Π_{j≠i} (q h_j(1) + (1 − q) h_j(0)) dq

What depends on size alone is shared equally. That of the response has no closed form: it is
written as a sum of products of few functions of (p, log₂(1 + k)), whose Shapley values are means
over orders.
"""

from dataclasses import dataclass
from functools import cache
from typing import Annotated

import numpy as np

from slalom.document import BoolArray, FloatArray, IntArray
from slalom.schema import Within
from slalom.surrogates.linalg import legendre

LEAST_WHITE = 1e-10  # with it covariances of many rows have a root


@dataclass(frozen=True, eq=False)
class Subsets:
    """Subsets of the units, as the kernels see them."""

    present: FloatArray  # (m, n_units) 0 or 1
    level: FloatArray  # (m, n_columns) p

    def __len__(self) -> int:
        return len(self.present)

    def some(self, rows: IntArray | slice) -> "Subsets":
        return Subsets(self.present[rows], self.level[rows])

    @property
    def log_size(self) -> FloatArray:
        """(m,) log₂(1 + k)"""
        return np.asarray(np.log2(1.0 + self.present.sum(axis=1)))

    @property
    def log_missing(self) -> FloatArray:
        """(m,) log₂(1 + n − k)"""
        return np.asarray(np.log2(1.0 + (1.0 - self.present).sum(axis=1)))

    @property
    def log_ends(self) -> FloatArray:
        return log_ends(self.present.sum(axis=1), self.present.shape[1])


def log_ends(sizes: FloatArray, n_units: int) -> FloatArray:
    """(m, 2) how far from the whole text and from nothing: 0 half-way."""
    both = np.column_stack([n_units - sizes, sizes])
    return np.asarray(np.log((1.0 + both) / (1.0 + n_units / 2)))


@dataclass(frozen=True, eq=False)
class Scales:
    """How strong each kernel is."""

    effects: Annotated[FloatArray, "units", Within(0)]  # b
    rates: Annotated[FloatArray, "units", Within(0)]  # λ
    together: Annotated[float, Within(0)]  # c
    size: Annotated[float, Within(0)]  # s
    response: Annotated[float, Within(0)]  # r
    missing: Annotated[float, Within(0)]  # v
    white: Annotated[float, Within(0)]  # τ²
    fading: Annotated[FloatArray, "ends"]  # h, h′

    def whites(self, ends: FloatArray) -> FloatArray:
        """(m,) the variance that belongs to each subset alone; there is a little to any."""
        return np.asarray(self.white * np.exp(ends @ self.fading) + LEAST_WHITE)


def covariance(one: Subsets, other: Subsets, scales: Scales) -> FloatArray:
    """(m, k) all kernels together, but for the white part."""
    found = additive_kernel(one.present, other.present, scales.effects)
    found += scales.together * together_kernel(one.present, other.present, scales.rates)
    found += scales.size * size_kernel(one, other)
    found += scales.response * response_kernel(one, other)
    found += scales.missing * missing_kernel(one, other)
    return found


def variances(one: Subsets, scales: Scales) -> FloatArray:
    """(m,) the diagonal of `covariance`."""
    additive = centred(one.present) ** 2 @ scales.effects
    constant = scales.together + scales.size + scales.response + scales.missing
    return np.asarray(additive + constant)


def centred(present: FloatArray) -> FloatArray:
    """From the middle between absent and present: neither end is the origin."""
    return present - 0.5


def additive_kernel(present: FloatArray, others: FloatArray, effects: FloatArray) -> FloatArray:
    return np.asarray((centred(present) * effects) @ centred(others).T)


def together_kernel(present: FloatArray, others: FloatArray, rates: FloatArray) -> FloatArray:
    """(m, k) Π exp(−λ_j) over the units that one of the two has."""
    rated = present * rates
    apart = (-2.0 * rated) @ others.T
    apart += rated.sum(axis=1)[:, None]
    apart += others @ rates
    return np.asarray(np.exp(np.negative(apart, out=apart), out=apart))


def size_kernel(one: Subsets, other: Subsets) -> FloatArray:
    apart = one.log_size[:, None] - other.log_size
    return np.asarray(np.exp(-0.5 * apart**2))


def missing_kernel(one: Subsets, other: Subsets) -> FloatArray:
    """Its scale is half of that of size: one unit gone is unlike none and unlike three."""
    apart = (one.log_missing[:, None] - other.log_missing) / 0.5
    return np.asarray(np.exp(-0.5 * apart**2))


def response_kernel(one: Subsets, other: Subsets) -> FloatArray:
    return gaussian(*(placed(each.level, each.log_size) for each in (one, other)))


def response_changes(one: Subsets, other: Subsets, changes: FloatArray) -> list[FloatArray]:
    """(m, k) each: of `response_kernel`, as the level of one changes, (q, m, n_columns)."""
    near = response_kernel(one, other) / _level_scale(one.level) ** 2
    here = [(change * one.level).sum(axis=1) for change in changes]
    return [
        near * (change @ other.level.T - at[:, None])
        for change, at in zip(changes, here, strict=True)
    ]


def placed(level: FloatArray, log_size: FloatArray) -> FloatArray:
    """(m, n_columns + 1) in units of the response's scales; of several levels the mean counts."""
    return np.column_stack([level / _level_scale(level), log_size / 2.5])


def _level_scale(level: FloatArray) -> float:
    return 0.7 * float(np.sqrt(level.shape[1]))


def gaussian(one: FloatArray, other: FloatArray) -> FloatArray:
    """(m, k) exp(−½ of the squared distance)."""
    apart = np.zeros((len(one), len(other)))
    for a, b in zip(one.T, other.T, strict=True):
        apart += (a[:, None] - b) ** 2
    apart *= -0.5
    return np.asarray(np.exp(apart, out=apart))


def features_of(rows: Subsets, most: int, negligible: float) -> tuple[FloatArray, Subsets]:
    """L and R of the rows: the response kernel is nearly k(·, R) (LLᵀ)⁻¹ k(R, ·).

    Greedily the row that the others explain least (a pivoted Cholesky factor).
    """
    at = placed(rows.level, rows.log_size)
    chosen: list[int] = []
    left, factor = np.ones(len(rows)), np.zeros((most, len(rows)))
    while len(chosen) < min(most, len(rows)) and left.max() > negligible:
        pivot, k = int(left.argmax()), len(chosen)
        row = gaussian(at[pivot : pivot + 1], at)[0] - factor[:k, pivot] @ factor[:k]
        factor[k] = row / np.sqrt(left[pivot])
        left = np.maximum(left - factor[k] ** 2, 0.0)
        left[pivot] = 0.0
        chosen.append(pivot)
    return np.tril(factor[: len(chosen), chosen].T), rows.some(np.array(chosen, np.int32))


# Shapley values


N_NODES = 24  # of q


def shapley_of_together(present: FloatArray, rates: FloatArray) -> FloatArray:
    """(m, n_units) the Shapley values of Π exp(−λ) between · and T, for every row T."""
    kept = np.exp(-rates)
    shown, hidden = np.where(present > 0, 1.0, kept), np.where(present > 0, kept, 1.0)
    gained = shown - hidden
    values = np.zeros(present.shape)
    for node, mass in zip(*legendre(N_NODES), strict=True):
        mean = hidden + node * gained
        values += (mass * mean.prod(axis=1, keepdims=True)) / mean
    return np.asarray(values * gained)


def variances_of_together(rates: FloatArray) -> FloatArray:
    """(n_units,) of the Shapley values of a random function with that covariance."""
    lost = 1.0 - np.exp(-rates)
    nodes, masses = legendre(N_NODES)
    differ = nodes[:, None] * (1 - nodes) + nodes * (1 - nodes[:, None])
    mean = 1.0 - differ[:, :, None] * lost  # (n_nodes, n_nodes, n_units)
    others = mean.prod(axis=2, keepdims=True) / mean
    return np.asarray(2.0 * lost * np.einsum("p,q,pqi->i", masses, masses, others))


def shapley_of_own(present: BoolArray) -> FloatArray:
    """(m, n_units) the Shapley values of a game that is 1 at one subset and 0 elsewhere."""
    m, n_units = present.shape
    sizes = present.sum(axis=1).astype(int)
    shares = _own_shares(n_units)
    joins = shares[np.maximum(sizes - 1, 0)][:, None]  # (k − 1)! (n − k)! / n!
    leaves = shares[np.minimum(sizes, n_units - 1)][:, None]  # k! (n − k − 1)! / n!
    return np.asarray(np.where(present, joins, -leaves)).reshape(m, n_units)


def variance_of_own(by_size: FloatArray) -> float:
    """Of the Shapley values of a game that is white noise of these n + 1 variances."""
    n_units = len(by_size) - 1
    return float(_own_shares(n_units) @ (by_size[:-1] + by_size[1:]) / n_units)


@cache
def _own_shares(n_units: int) -> FloatArray:
    """k! (n − k − 1)! / n! for k = 0 … n − 1, which is 1 / (n C(n − 1, k))."""
    log_steps = np.log(np.arange(1.0, n_units))
    log_binomials = np.append(0.0, np.cumsum(log_steps[::-1] - log_steps))
    return np.asarray(np.exp(-log_binomials) / n_units)
