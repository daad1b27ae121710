"""A covariance between subsets of the units, and its Shapley values in closed form.

    k(S, T) = Π_{j in S Δ T} exp(−λ_j)

As the covariance of a random function it makes units interact, the more so the larger their λ.
A Shapley value is an integral (Owen): let every unit be present with the same probability p,
independently; then the mean of a product f = Π_j h_j(S) is a product of means, and

    φ_i = ∫ (h_i(1) − h_i(0)) Π_{j≠i} (p h_j(1) + (1 − p) h_j(0)) dp
"""

import numpy as np

from slalom.document import FloatArray

NODES, MASSES = np.polynomial.legendre.leggauss(12)
NODES, MASSES = (NODES + 1) / 2, MASSES / 2  # over 0 … 1


def subset_kernel(present: FloatArray, others: FloatArray, rates: FloatArray) -> FloatArray:
    """(m, k) k(S, T) of rows of 0 and 1; `rates` are λ, (n_units,)."""
    rated = present * rates
    apart = rated.sum(axis=1)[:, None] + others @ rates - 2.0 * rated @ others.T
    return np.asarray(np.exp(-apart))


def shapley_of_kernel(present: FloatArray, rates: FloatArray) -> FloatArray:
    """(m, n_units) the Shapley values of k(·, T) for every row T."""
    kept = np.exp(-rates)
    shown, hidden = np.where(present > 0, 1.0, kept), np.where(present > 0, kept, 1.0)
    values = np.zeros(present.shape)
    for node, mass in zip(NODES, MASSES, strict=True):
        mean = node * shown + (1 - node) * hidden
        values += mass * mean.prod(axis=1, keepdims=True) * (shown - hidden) / mean
    return values


def shapley_variances(rates: FloatArray) -> FloatArray:
    """(n_units,) of the Shapley values of a random function with covariance k."""
    lost = 1.0 - np.exp(-rates)
    differ = NODES[:, None] * (1 - NODES) + NODES * (1 - NODES[:, None])
    mean = 1.0 - differ[:, :, None] * lost  # (n_nodes, n_nodes, n_units)
    others = mean.prod(axis=2, keepdims=True) / mean
    return np.asarray(2.0 * lost * np.einsum("p,q,pqi->i", MASSES, MASSES, others))
