"""The Shapley share of what a fit left: SLALOM as a control variate.

Shapley values are linear: those of the classifier are those of the fit, which are exact, plus
those of the residual. The latter are estimated as KernelSHAP would, but of something small.
With r the leave-one-out residuals, k the units a row shows of n, a the rows asked of its size,

    min_ψ  Σ π (r − r_∅ − Σ_j c_j ψ_j)² + ρ Σ_j n_j (ψ_j − δ/n)²      Σ_j n_j ψ_j = δ
    π = (n − 1) / (k (n − k) a)        δ = r_N − r_∅

so that fit and residual together share out F(N) − F(∅) exactly. ρ pulls towards equal shares
and is chosen by leaving rows out; where the residual is noise it pulls all the way.
"""

from dataclasses import dataclass

import numpy as np

from slalom.document import FloatArray

STRENGTHS = 10.0 ** np.arange(-3.0, 5.0, 0.5)  # times the mean eigenvalue
LEAST_LEFT = 1e-9


@dataclass(frozen=True, eq=False)
class Left:
    """What a fit left of the answers about one document."""

    counts: FloatArray  # (n_rows, n_features)
    residuals: FloatArray  # (n_rows, n_columns) leave-one-out
    n_alike: FloatArray  # (n_rows,) rows of its size that the design asks for
    document_counts: FloatArray  # (n_features,)
    whole: FloatArray  # (n_columns,) of the full text
    empty: FloatArray  # (n_columns,) of the empty one; 0 where its score is the fit's


def residual_shares(left: Left) -> FloatArray:
    """What one occurrence of each feature gets of the residual: (n_features, n_columns)."""
    at, sizes = left.document_counts, left.counts.sum(axis=1)
    n = at.sum()
    total = left.whole - left.empty
    equal = np.tile(total / n, (len(at), 1))
    inner = (sizes > 0) & (sizes < n)
    if not inner.any():
        return equal
    weights = 1.0 / (sizes * (n - sizes) * left.n_alike)[inner]
    weights = weights / weights.mean()
    share = sizes[inner, None] / n
    design = (left.counts[inner] - share * at) / np.sqrt(at)  # rows sum to 0: so do the shares
    missed = left.residuals[inner] - left.empty - share * total
    return equal + _ridge(design, missed, weights) / np.sqrt(at)[:, None]


def _ridge(design: FloatArray, scores: FloatArray, weights: FloatArray) -> FloatArray:
    """Ridge regression without an intercept; of all strengths, and none at all, the best."""
    values, axes = np.linalg.eigh(design.T @ (design * weights[:, None]))
    values = np.maximum(values, 0.0)
    turned = design @ axes
    squared = turned**2
    pulls = turned.T @ (scores * weights[:, None])
    best = np.zeros((len(values), scores.shape[1]))
    least = float(weights @ (scores**2).sum(axis=1))
    for strength in STRENGTHS * max(float(values.mean()), 1e-300):
        shrunk = 1.0 / (values + strength)
        leverage = weights * (squared @ shrunk)
        missed = scores - turned @ (shrunk[:, None] * pulls)
        missed = missed / np.maximum(1.0 - leverage, LEAST_LEFT)[:, None]
        error = float(weights @ (missed**2).sum(axis=1))
        if error < least:
            least, best = error, shrunk[:, None] * pulls
    return np.asarray(axes @ best)
