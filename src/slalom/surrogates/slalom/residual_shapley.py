"""The Shapley share of what a fit left: SLALOM as a control variate, and what that leaves open.

Shapley values are linear: those of the classifier are those of the fit, which are exact, plus
those of the residual. The latter are estimated as KernelSHAP would, but of something small.
With r the leave-one-out residuals, k the units a row shows of n, a the rows asked of its size,

    r − r_∅ − k δ/n = Σ_{i shown} ψ_i + noise / √π      Σ_i ψ_i = 0
    π = (n − 1) / (k (n − k) a)                          δ = r_N − r_∅

and δ/n + ψ_i is what unit i gets, so that fit and residual together share out F(N) − F(∅)
exactly. Units, not features: equal words that share a feature of the fit differ here by where
they stand. How much of the residual can be shared out at all, a share f of its variance, is not
known beforehand: every √f, the share of its spread, is as likely as any other from 0 to 1,

    ψ_i ~ N(0, f τ²)      noise ~ N(0, (1 − f) σ²)      with τ² rows would vary by σ² on average

and each counts as much as it makes the residuals likely. The mean over f is the share, pulled
towards equal ones; the variance, of ψ under each f and between them, is misfit that the fit's
own errors know nothing of. With few rows hardly any f is ruled out, and it is large.
"""

from dataclasses import dataclass

import numpy as np

from slalom.document import FloatArray

OF_VARIANCE = np.linspace(0.0, 0.98, 25) ** 2  # f
NOTHING = 1e-24  # of a residual, squared: rounding
LEAST = 1e-9  # of the largest eigenvalue: a direction that no row speaks of


@dataclass(frozen=True, eq=False)
class Left:
    """What a fit left of the answers about one document."""

    present: FloatArray  # (n_rows, n_units) 0 or 1
    residuals: FloatArray  # (n_rows, n_columns) leave-one-out
    n_alike: FloatArray  # (n_rows,) rows of its size that the design asks for
    whole: FloatArray  # (n_columns,) of the full text
    empty: FloatArray  # (n_columns,) of the empty one; 0 where its score is the fit's


@dataclass(frozen=True, eq=False)
class Shares:
    """What each unit gets of the residual, and how far that is open."""

    values: FloatArray  # (n_units, n_columns)
    variances: FloatArray  # (n_units, n_columns)


def residual_shares(left: Left) -> Shares:
    sizes, n = left.present.sum(axis=1), left.present.shape[1]
    total = left.whole - left.empty
    equal = np.tile(total / n, (n, 1))
    inner = (sizes > 0) & (sizes < n)
    if not inner.any():
        return Shares(equal, np.zeros_like(equal))
    weights = 1.0 / (sizes * (n - sizes) * left.n_alike)[inner]
    root = np.sqrt(weights / weights.mean())[:, None]
    share = sizes[inner, None] / n
    design = left.present[inner] - share  # rows sum to 0: so do the shares
    missed = left.residuals[inner] - left.empty - share * total
    found = [_averaged(root * design, column) for column in (root * missed).T]
    means, variances = (np.stack(part, axis=1) for part in zip(*found, strict=True))
    return Shares(equal + means, variances)


def _averaged(design: FloatArray, scores: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Ridge regression under every f, each as likely as the rows make it: mean and variance."""
    n_rows, n_units = design.shape
    values, axes = np.linalg.eigh(design.T @ design)
    told = values > LEAST * max(float(values[-1]), 1e-300)
    values, axes = values[told], axes[:, told]
    pulls = axes.T @ (design.T @ scores)
    spread = float(scores @ scores)
    if not told.any() or spread <= NOTHING * n_rows:
        return np.zeros(n_units), np.zeros(n_units)
    inside = pulls**2 / values
    outside = max(spread - float(inside.sum()), 0.0)
    typical = float(values.sum()) / n_rows
    rest, shared = 1.0 - OF_VARIANCE[:, None], OF_VARIANCE[:, None] / typical
    likely = rest + shared * values  # (n_f, n_told) variances along the axes, in units of σ²
    missed = (inside / likely).sum(axis=1) + outside / rest[:, 0]
    noise = missed / max(n_rows - 2, 1)  # σ² under each f, its mean had any log σ been as likely
    log_chances = -0.5 * (
        np.log(likely).sum(axis=1)
        + (n_rows - len(values)) * np.log(rest[:, 0])
        + n_rows * np.log(np.maximum(missed, NOTHING))
    )
    chances = np.exp(log_chances - log_chances.max())
    chances /= chances.sum()
    means = shared * pulls / likely  # (n_f, n_told)
    mean = chances @ means
    within = chances @ (noise[:, None] * rest * shared / likely)
    between = ((axes @ (means - mean).T) ** 2) @ chances
    return np.asarray(axes @ mean), np.asarray((axes**2) @ within + between)
