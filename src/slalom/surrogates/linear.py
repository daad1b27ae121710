"""An additive surrogate: every occurrence of a feature adds the same amount.

    F(c) = β_0 + Σ_j c_j β_j        min Σ_k π_k (F(c_k) − y_k)² + ρ Σ_j β_j²

β_0 is not penalised. One eigendecomposition of the centred Gram matrix answers for every ρ:
coefficients, leverages h_k and with them the leave-one-out residuals r_k / (1 − h_k), by which
ρ is chosen. Standard errors are the sandwich of those residuals plus the pull of the ridge on
what would be found without it: of its own answer a strong ridge leaves nothing to pull.
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from slalom.document import FloatArray, IntArray
from slalom.surrogates.base import Fit, Observations, no_quality_reason
from slalom.surrogates.quality import loo_quality, sampled_rows

BY_LEAVE_ONE_OUT = tuple(10.0**power for power in range(-6, 5))
MIN_LEFT = 1e-12  # of a residual, for rows that alone decide a coefficient
PEAK = 2.0  # times the least error: weaker ridges pass through the rows, and leaving one out lies


@dataclass(frozen=True, eq=False)
class LinearModel:
    """An intercept and a coefficient (or one per class) for each feature."""

    coefficients: Annotated[FloatArray, "units labels?"]
    intercept: Annotated[FloatArray, "labels?"]
    kind: ClassVar[str] = "linear"

    def predict(self, counts: FloatArray) -> FloatArray:
        return np.asarray(np.asarray(counts, dtype=np.float64) @ self.coefficients + self.intercept)

    @property
    def empty_score(self) -> FloatArray:
        return np.asarray(self.intercept)

    def expand(self, features: IntArray) -> "LinearModel":
        return LinearModel(self.coefficients[features], self.intercept)


@dataclass(frozen=True)
class LinearSurrogate:
    """Weighted ridge regression; of several ridges the one with the least leave-one-out error."""

    ridges: tuple[float, ...] = BY_LEAVE_ONE_OUT

    def fit(self, observed: Observations) -> Fit:
        counts, scores, weights = observed.counts, observed.scores, observed.weights
        document_counts = observed.document_counts
        used = weights > 0
        columns = scores.reshape(len(scores), -1)[used]
        found = regress(counts[used], columns, weights=weights[used], ridges=self.ridges)
        quality = loo_quality(
            found.residuals,
            columns,
            weights=weights[used],
            n_parameters=counts.shape[1] + 1,
            by=sampled_rows(counts[used]),
        )
        shape = (len(document_counts), *scores.shape[1:])
        model = LinearModel(
            found.coefficients.reshape(shape), found.intercept.reshape(scores.shape[1:])
        )
        return Fit(
            model=model,
            scores={"score": model.coefficients},
            errors={} if quality.r2 is None else {"score": found.errors.reshape(shape)},
            identified=np.ones(len(document_counts), dtype=bool),
            r2=quality.r2,
            rmse=quality.rmse,
            notes=(no_quality_reason(counts[used], columns, document_counts),)
            if quality.r2 is None
            else (),
            r2_error=quality.r2_error,
        )


@dataclass(frozen=True, eq=False)
class Regression:
    """What one ridge regression found."""

    coefficients: FloatArray  # (m, n_classes)
    intercept: FloatArray  # (n_classes,)
    residuals: FloatArray  # (n, n_classes) leave-one-out
    errors: FloatArray  # (m, n_classes)


def regress(
    design: FloatArray, scores: FloatArray, *, weights: FloatArray, ridges: tuple[float, ...]
) -> Regression:
    """Ridge regression with a free intercept, the ridge chosen by leave-one-out error."""
    total = weights.sum()
    mean, level = weights @ design / total, weights @ scores / total
    centred, centred_scores = design - mean, scores - level
    gram = centred.T @ (centred * weights[:, None])
    sizes, axes = np.linalg.eigh(gram)
    sizes = np.maximum(sizes, 0.0)
    turned = centred @ axes  # (n, m)
    pulls = turned.T @ (centred_scores * weights[:, None])  # (m, n_classes)
    best: tuple[float, float, FloatArray] | None = None
    for ridge in sorted(ridges, reverse=True):
        shrink = 1.0 / (sizes + max(ridge, 1e-12 * (1.0 + sizes.max(initial=0.0))))
        leverage = weights * ((turned**2) @ shrink + 1.0 / total)
        left = np.maximum(1.0 - leverage, MIN_LEFT)[:, None]
        residuals = (centred_scores - turned @ (shrink[:, None] * pulls)) / left
        error = float(weights @ (residuals**2).sum(axis=1))
        if best is None or error < best[0]:
            best = (error, ridge, residuals)
        if error > PEAK * best[0]:
            break
    assert best is not None
    _, ridge, residuals = best
    shrink = 1.0 / (sizes + max(ridge, 1e-12 * (1.0 + sizes.max(initial=0.0))))
    coefficients = axes @ (shrink[:, None] * pulls)
    known = sizes > 1e-9 * sizes.max(initial=0.0)
    unshrunk = axes[:, known] @ (pulls[known] / sizes[known, None])
    inverse = (axes * shrink) @ axes.T
    errors = standard_errors(centred * weights[:, None], residuals, inverse)
    errors = np.sqrt(errors**2 + (ridge * inverse @ unshrunk) ** 2)
    return Regression(coefficients, level - mean @ coefficients, residuals, errors)


def standard_errors(weighted: FloatArray, residuals: FloatArray, inverse: FloatArray) -> FloatArray:
    """The sandwich H⁻¹ (XᵀΠ² diag(r²) X) H⁻¹, its diagonal's root: (m, n_classes)."""
    influence = weighted @ inverse  # (n, m)
    return np.asarray(np.sqrt((influence**2).T @ residuals**2))
