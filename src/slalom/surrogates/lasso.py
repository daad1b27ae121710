"""The LASSO of ContextCite: few units matter, and what they add adds up.

    min  1/(2n) Σ_k ( y_k/T − b − Σ_j w_j z_kj )² + α Σ_j |w_j|      z: presence, standardised

With T the tokens of an answer the scores are per token, as there (α = .01). Coordinate descent:
each w_j in turn is what is left for it, pulled towards 0 by α.
"""

from dataclasses import dataclass

import numpy as np

from slalom.document import FloatArray
from slalom.surrogates.base import Fit, Observations
from slalom.surrogates.linear import LinearModel
from slalom.surrogates.quality import loo_quality, sampled_rows

ALPHA = 0.01
N_ROUNDS, STILL = 1000, 1e-9  # the largest change of a weight in a round, relative to the largest
N_FOLDS = 10  # that held-out residuals come from


@dataclass(frozen=True)
class LassoSurrogate:
    """ContextCite's estimate; `n_tokens` are those of the answer that the scores are about."""

    alpha: float = ALPHA
    n_tokens: int = 1

    def fit(self, observed: Observations) -> Fit:
        used = observed.weights > 0
        counts = observed.counts[used]
        columns = observed.scores.reshape(len(observed.scores), -1)[used]
        weights, intercept = self._fitted(counts, columns)
        fold = np.arange(len(counts)) % N_FOLDS
        residuals = np.zeros_like(columns)
        for number in range(N_FOLDS):
            out = fold == number
            if out.any() and not out.all():
                w, b = self._fitted(counts[~out], columns[~out])
                residuals[out] = columns[out] - counts[out] @ w - b
        quality = loo_quality(
            residuals,
            columns,
            weights=observed.weights[used],
            n_parameters=int((weights != 0).any(axis=1).sum()) + 1,
            by=sampled_rows(counts),
        )
        shape = (counts.shape[1], *observed.scores.shape[1:])
        model = LinearModel(weights.reshape(shape), intercept.reshape(shape[1:]))
        return Fit(
            model=model,
            scores={"score": model.coefficients},
            errors={},
            identified=np.ones(len(observed.document_counts), dtype=bool),
            r2=quality.r2,
            rmse=quality.rmse,
            r2_error=quality.r2_error,
        )

    def _fitted(self, counts: FloatArray, columns: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Weights (n_features, n_classes) and intercept (n_classes,), in the scores' own unit."""
        mean, spread = counts.mean(axis=0), counts.std(axis=0)
        design = (counts - mean) / np.where(spread > 0, spread, 1.0)
        per_token = columns / self.n_tokens
        level = per_token.mean(axis=0)
        found = [lasso(design, one - one.mean(), self.alpha) for one in per_token.T]
        weights = np.stack(found, axis=1) / np.where(spread > 0, spread, 1.0)[:, None]
        return weights * self.n_tokens, (level - mean @ weights) * self.n_tokens


def lasso(design: FloatArray, scores: FloatArray, alpha: float) -> FloatArray:
    """(n_features,) by coordinate descent on the normal equations; no intercept."""
    n_rows, n_features = design.shape
    gram, pulls = design.T @ design / n_rows, design.T @ scores / n_rows
    weights = np.zeros(n_features)
    for _ in range(N_ROUNDS):
        largest = 0.0
        for j in np.flatnonzero(gram.diagonal() > 0).tolist():
            left = pulls[j] - gram[j] @ weights + gram[j, j] * weights[j]
            new = np.sign(left) * max(abs(left) - alpha, 0.0) / gram[j, j]
            largest, weights[j] = max(largest, abs(new - weights[j])), new
        if largest <= STILL * max(1.0, np.abs(weights).max(initial=0.0)):
            break
    return weights
