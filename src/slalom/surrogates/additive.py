"""Additive surrogates: every unit adds something of its own, whatever else is shown.

Ridge regression, every occurrence of a feature adding the same amount:

    F(c) = β_0 + Σ_j c_j β_j        min Σ_k π_k (F(c_k) − y_k)² + ρ Σ_j β_j²

β_0 is not penalised. One eigendecomposition of the centred Gram matrix answers for every ρ:
coefficients, leverages h_k and with them the leave-one-out residuals r_k / (1 − h_k), by which
ρ is chosen. Standard errors are the sandwich of those residuals plus the pull of the ridge on
what would be found without it: of its own answer a strong ridge leaves nothing to pull.

The generalised additive model, in which a second occurrence need not add what the first did:

    F(c) = β_0 + Σ_j f_j(c_j)        f_j(c) = Σ_{k ≤ c} β_jk

a step for every occurrence, by ridge regression. Where no unit occurs twice it is the linear one.
The score of a unit is its share f_j(n_j) / n_j of what its feature adds to the document. (The
paper's GAM over token × position belongs to its synthetic data: a document asked with gaps has no
fixed positions.)

The LASSO of ContextCite, for which few units matter:

    min  1/(2n) Σ_k ( y_k/T − b − Σ_j w_j z_kj )² + α Σ_j |w_j|      z: presence, standardised

With T the tokens of an answer the scores are per token, as there (α = .01). Coordinate descent:
each w_j in turn is what is left for it, pulled towards 0 by α.
"""

from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

import numpy as np

from slalom.document import BoolArray, FloatArray, IntArray
from slalom.schema import check_below
from slalom.surrogates.base import Fit, Observations
from slalom.surrogates.quality import fit_with_residuals, out_of_fold


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

    ridges: tuple[float, ...] = tuple(10.0**power for power in range(-6, 5))

    def fit(self, observed: Observations) -> Fit:
        rows, shape = observed.fitted(), observed.scores.shape[1:]
        found = regress(rows.counts, rows.scores, weights=rows.weights, ridges=self.ridges)
        coefficients = found.coefficients.reshape(-1, *shape)
        return fit_with_residuals(
            observed,
            LinearModel(coefficients, found.intercept.reshape(shape)),
            coefficients,
            residuals=found.residuals,
            n_parameters=len(coefficients) + 1,
            errors=found.errors.reshape(coefficients.shape),
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
    least = 1e-12 * (1.0 + sizes.max(initial=0.0))  # features that no row tells apart
    best: tuple[float, float, FloatArray] | None = None
    for ridge in sorted(ridges, reverse=True):
        shrink = 1.0 / (sizes + max(ridge, least))
        leverage = weights * ((turned**2) @ shrink + 1.0 / total)
        residuals = left_out(centred_scores - turned @ (shrink[:, None] * pulls), leverage)
        error = float(weights @ (residuals**2).sum(axis=1))
        if best is None or error < best[0]:
            best = (error, ridge, residuals)
        if error > 2.0 * best[0]:  # weaker ridges pass through the rows: leverages are rounding
            break
    assert best is not None
    _, ridge, residuals = best
    shrink = 1.0 / (sizes + max(ridge, least))
    coefficients = axes @ (shrink[:, None] * pulls)
    known = sizes > 1e-9 * sizes.max(initial=0.0)
    unshrunk = axes[:, known] @ (pulls[known] / sizes[known, None])
    inverse = (axes * shrink) @ axes.T
    errors = standard_errors(centred * weights[:, None], residuals, inverse)
    errors = np.sqrt(errors**2 + (ridge * inverse @ unshrunk) ** 2)
    return Regression(coefficients, level - mean @ coefficients, residuals, errors)


def left_out(residuals: FloatArray, leverage: FloatArray) -> FloatArray:
    """Leave-one-out residuals; a row may be all that decides a coefficient (leverage 1)."""
    return np.asarray(residuals / np.maximum(1.0 - leverage, 1e-12)[:, None])


def standard_errors(weighted: FloatArray, residuals: FloatArray, inverse: FloatArray) -> FloatArray:
    """The sandwich H⁻¹ (XᵀΠ² diag(r²) X) H⁻¹, its diagonal's root: (m, n_classes)."""
    influence = weighted @ inverse  # (n, m)
    return np.asarray(np.sqrt((influence**2).T @ residuals**2))


@dataclass(frozen=True, eq=False)
class GamModel:
    """A table of f_j(0), f_j(1), … and which inputs are added up before it is read."""

    tables: Annotated[FloatArray, "groups occurrences labels?"]
    intercept: Annotated[FloatArray, "labels?"]
    groups: Annotated[IntArray, "units"]
    kind: ClassVar[str] = "gam"

    def check(self) -> None:
        check_below(self.groups, len(self.tables), "groups")

    def predict(self, counts: FloatArray) -> FloatArray:
        """More occurrences than the document has add nothing further."""
        counts = np.asarray(counts, dtype=np.float64)
        totals = np.zeros((len(counts), len(self.tables)), dtype=np.intp)
        np.add.at(totals.T, self.groups, np.rint(counts).astype(np.intp).T)
        totals = np.minimum(totals, self.tables.shape[1] - 1)
        added = self.tables[np.arange(len(self.tables)), totals]  # (k, n_groups[, n_classes])
        return np.asarray(self.intercept + added.sum(axis=1))

    @property
    def empty_score(self) -> None:
        """Where it was not asked it is extrapolated."""

    def expand(self, features: IntArray) -> "GamModel":
        return GamModel(self.tables, self.intercept, self.groups[features])


@dataclass(frozen=True)
class GamSurrogate:
    """Ridge regression on "occurs at least k times", the ridge chosen by leave-one-out error."""

    def fit(self, observed: Observations) -> Fit:
        document_counts, rows = observed.document_counts, observed.fitted()
        features, occurrences = _steps(document_counts)
        design = (rows.counts[:, features] >= occurrences).astype(np.float64)
        ridges = LinearSurrogate.ridges
        found = regress(design, rows.scores, weights=rows.weights, ridges=ridges)
        shape = observed.scores.shape[1:]
        tables = _tables(found.coefficients, document_counts)
        tables = tables.reshape(*tables.shape[:2], *shape)
        groups = np.arange(len(document_counts), dtype=np.int32)
        return fit_with_residuals(
            observed,
            GamModel(tables, found.intercept.reshape(shape), groups),
            tables[:, -1] / document_counts.reshape(-1, *[1] * len(shape)),
            residuals=found.residuals,
            n_parameters=len(found.coefficients) + 1,
        )


def _steps(document_counts: FloatArray) -> tuple[IntArray, IntArray]:
    """Feature and occurrence number (from 1) of every step."""
    times = np.rint(document_counts).astype(np.int32)
    features = np.repeat(np.arange(len(document_counts), dtype=np.int32), times)
    occurrences = [number for n in times for number in range(1, n + 1)]
    return features, np.array(occurrences, dtype=np.int32)


def _tables(steps: FloatArray, document_counts: FloatArray) -> FloatArray:
    """(n_features, most occurrences + 1, n_classes) f_j at every number of occurrences."""
    tables = np.zeros((len(document_counts), int(document_counts.max()) + 1, steps.shape[1]))
    tables[_steps(document_counts)] = steps
    return tables.cumsum(axis=1)  # past a feature's last step the sum stays as it is


@dataclass(frozen=True)
class LassoSurrogate:
    """ContextCite's estimate; `n_tokens` are those of the answer that the scores are about."""

    alpha: float = 0.01
    n_tokens: int = 1

    def fit(self, observed: Observations) -> Fit:
        rows = observed.fitted()
        counts, columns = rows.counts, rows.scores
        weights, intercept = self._fitted(counts, columns)

        def predicted(out: BoolArray) -> FloatArray:
            weights, intercept = self._fitted(counts[~out], columns[~out])
            return np.asarray(counts[out] @ weights + intercept)

        shape = (counts.shape[1], *observed.scores.shape[1:])
        model = LinearModel(weights.reshape(shape), intercept.reshape(shape[1:]))
        fit = fit_with_residuals(
            observed,
            model,
            model.coefficients,
            residuals=columns - out_of_fold(columns, 10, predicted),
            n_parameters=int((weights != 0).any(axis=1).sum()) + 1,
        )
        return replace(fit, notes=())  # it has no errors that could be missed

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
    for _ in range(1000):
        largest = 0.0
        for j in np.flatnonzero(gram.diagonal() > 0).tolist():
            left = pulls[j] - gram[j] @ weights + gram[j, j] * weights[j]
            new = np.sign(left) * max(abs(left) - alpha, 0.0) / gram[j, j]
            largest, weights[j] = max(largest, abs(new - weights[j])), new
        if largest <= 1e-9 * max(1.0, np.abs(weights).max(initial=0.0)):
            break
    return weights
