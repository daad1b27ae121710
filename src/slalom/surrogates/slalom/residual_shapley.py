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
Up to some number of rows posterior.py does better.
"""

from dataclasses import dataclass

import numpy as np

from slalom.document import FloatArray

VARIANCE_FRACTIONS = np.linspace(0.0, 0.98, 25) ** 2  # f
NOTHING = 1e-24  # of a residual, squared: rounding
MIN_EIGENVALUE = 1e-9  # of the largest eigenvalue: a direction that no row speaks of


@dataclass(frozen=True, eq=False)
class Left:
    """What a fit left of the answers about one document."""

    present: FloatArray  # (n_rows, n_units) 0 or 1
    residuals: FloatArray  # (n_rows, n_columns) leave-one-out
    n_of_size: FloatArray  # (n_rows,) rows of its size that the design asks for
    whole: FloatArray  # (n_columns,) of the full text
    empty: FloatArray  # (n_columns,) of the empty one; 0 where its score is the fit's


@dataclass(frozen=True, eq=False)
class Shares:
    """What each unit gets of the residual, and how far that is open."""

    values: FloatArray  # (n_units, n_columns)
    variances: FloatArray  # (n_units, n_columns)
    of_fit: FloatArray  # (n_columns,) how much of the variance of the fit's own values stays


def residual_shares(left: Left) -> Shares:
    sizes, n = left.present.sum(axis=1), left.present.shape[1]
    total = left.whole - left.empty
    equal = np.tile(total / n, (n, 1))
    inner = (sizes > 0) & (sizes < n)
    if not inner.any():
        return Shares(equal, np.zeros_like(equal), np.ones_like(total))
    weights = 1.0 / (sizes * (n - sizes) * left.n_of_size)[inner]
    root = np.sqrt(weights / weights.mean())[:, None]
    share = sizes[inner, None] / n
    design = left.present[inner] - share  # rows sum to 0: so do the shares
    missed = left.residuals[inner] - left.empty - share * total
    means, variances = _averaged(root * design, root * missed)
    return Shares(equal + means, variances, np.ones_like(total))


def _averaged(design: FloatArray, scores: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Ridge regression under every f, each as likely as the rows make it: mean and variance.

    All columns share f: what sums to 0 over classes does so again.
    """
    n_rows, n_units = design.shape
    values, axes = np.linalg.eigh(design.T @ design)
    kept = values > MIN_EIGENVALUE * max(float(values[-1]), 1e-300)
    values, axes = values[kept], axes[:, kept]
    spread = (scores**2).sum(axis=0)  # (n_columns,)
    if not kept.any() or spread.max() <= NOTHING * n_rows:
        return np.zeros((n_units, len(spread))), np.zeros((n_units, len(spread)))
    pulls = axes.T @ (design.T @ scores)  # (n_kept, n_columns)
    inside = pulls**2 / values[:, None]
    outside = np.maximum(spread - inside.sum(axis=0), 0.0)
    rest, shared = (
        1.0 - VARIANCE_FRACTIONS[:, None],
        VARIANCE_FRACTIONS[:, None] * n_rows / values.sum(),
    )
    likely = rest + shared * values  # (n_f, n_kept) variances along the axes, in units of σ²
    missed = (1.0 / likely) @ inside + outside / rest  # (n_f, n_columns)
    noise = missed / max(n_rows - 2, 1)  # σ² under each f, its mean had any log σ been as likely
    volume = np.log(likely).sum(axis=1) + (n_rows - len(values)) * np.log(rest[:, 0])
    log_missed = np.log(np.maximum(missed[:, spread > 0], NOTHING))
    log_chances = -0.5 * (volume[:, None] + n_rows * log_missed).mean(axis=1)
    chances = np.exp((log_chances - log_chances.max()) * independent(scores))
    chances /= chances.sum()
    slopes = shared / likely  # (n_f, n_kept)
    mean = (chances @ slopes)[:, None] * pulls
    within = np.einsum("f,fc,ft->tc", chances, noise, rest * slopes)
    deviations = axes @ (
        (slopes - chances @ slopes)[:, :, None] * pulls
    )  # (n_f, n_units, n_columns)
    between = np.einsum("f,fuc->uc", chances, deviations**2)
    return np.asarray(axes @ mean), np.asarray((axes**2) @ within + between)


def independent(scores: FloatArray) -> float:
    """Columns, less one where they sum to 0 and the last says nothing new."""
    n_columns = scores.shape[1]
    sums = np.abs(scores.sum(axis=1)).max()
    return float(n_columns - (n_columns > 1 and sums < 1e-6 * np.abs(scores).max()))
