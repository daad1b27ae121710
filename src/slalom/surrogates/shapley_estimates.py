"""Additive read-outs of designed queries: Shapley values and effects of leaving one out.

    ShapleyRegression       weighted least squares under Σ φ = F(N) − F(∅)   (KernelSHAP)
    MarginalContributions   what a unit adds when it joins, averaged over orders of joining
    Occlusion               F(N) − F(N without the unit)

Each gives a linear model through F(N): what the units' scores say when they are added up.
"""

from dataclasses import dataclass
from math import comb

import numpy as np

from slalom.document import BoolArray, FloatArray
from slalom.surrogates.additive import LinearModel, left_out, standard_errors
from slalom.surrogates.base import Fit, Observations, no_quality_reason
from slalom.surrogates.quality import loo_quality

NOT_FITTED = "measured, not fitted: there are no held-out queries to judge it by"
NO_EMPTY = "the classifier cannot read an empty text: its score is taken as 0"
FITTED_EMPTY = "the classifier cannot read an empty text: its score is fitted too"


@dataclass(frozen=True)
class ShapleyRegression:
    """Rows of weight 0 are constraints: the full text and, where it was asked, the empty one.

    With A = ZᵀΠZ and the constraint uᵀφ = Δ:  φ = A⁻¹(b − u κ),  κ = (uᵀA⁻¹b − Δ) / uᵀA⁻¹u.
    Over all coalitions this is the Shapley value itself. Where the empty text cannot be read,
    its score is fitted too.
    """

    def fit(self, observed: Observations) -> Fit:
        counts, scores, weights = observed.counts, observed.scores, observed.weights
        document_counts = observed.document_counts
        columns = scores.reshape(len(scores), -1)
        sizes, used = counts.sum(axis=1), weights > 0
        has_empty = bool((sizes == 0).any())
        empty = columns[sizes == 0].mean(axis=0) if has_empty else np.zeros(columns.shape[1])
        full = columns[sizes == document_counts.sum()].mean(axis=0)
        design, constraint, share = counts[used], document_counts, weights[used]
        if not has_empty:
            design = np.hstack([design, np.ones((len(design), 1))])
            constraint = np.append(document_counts, 1.0)
        found, residuals, errors = _constrained(
            design, columns[used] - empty, share, plane=constraint, amount=full - empty
        )
        n_units = len(document_counts)
        quality = loo_quality(
            residuals, columns[used], weights=share, n_parameters=len(constraint) - 1
        )
        shape = (n_units, *scores.shape[1:])
        coefficients = found[:n_units].reshape(shape)
        intercept = empty if has_empty else found[-1]
        exact = has_empty and len(counts) == 2 ** min(n_units, 62)  # nothing left to draw
        errors = np.zeros(shape) if exact else errors[:n_units].reshape(shape)
        known = has_empty or n_units > 1
        notes = () if has_empty else (FITTED_EMPTY,)
        if quality.r2 is None and not exact:
            notes = (*notes, no_quality_reason(counts[used], columns[used], document_counts))
        return Fit(
            LinearModel(coefficients, intercept.reshape(scores.shape[1:])),
            {"score": coefficients},
            {} if quality.r2 is None and not exact else {"score": errors},
            quality,
            identified=np.full(n_units, known),
            notes=notes,
            exact=exact,
        )


def shapley_of_all(present: BoolArray, scores: FloatArray) -> FloatArray:
    """Shapley values from the scores of all 2ⁿ subsets, (2ⁿ, n) and (2ⁿ, …), in any order."""
    n_units = present.shape[1]
    table = np.empty_like(scores, dtype=np.float64)
    table[present @ (1 << np.arange(n_units))] = scores
    sizes = np.array([bin(subset).count("1") for subset in range(1 << n_units)])
    chances = np.array([1.0 / (n_units * comb(n_units - 1, size)) for size in range(n_units)])
    shares = []
    for unit in range(n_units):
        without = np.flatnonzero(np.arange(1 << n_units) >> unit & 1 == 0)
        added = table[without | 1 << unit] - table[without]
        shares.append(np.tensordot(chances[sizes[without]], added, axes=1))
    return np.array(shares)


def _constrained(
    design: FloatArray,
    scores: FloatArray,
    weights: FloatArray,
    *,
    plane: FloatArray,
    amount: FloatArray,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Least squares on the plane uᵀφ = Δ: φ (m, n_classes), its leave-one-out residuals
    (n, n_classes) and its errors (m, n_classes)."""
    if len(weights):
        weights = weights / weights.mean()
    gram = design.T @ (design * weights[:, None])
    gram[np.diag_indices_from(gram)] += 1e-9 * (1.0 + gram.diagonal().max())
    inverse = np.linalg.inv(gram)
    towards = inverse @ plane / (plane @ inverse @ plane)
    inside = inverse - np.outer(towards, plane @ inverse)  # the inverse on the plane
    inside = (inside + inside.T) / 2
    pulls = design.T @ (scores * weights[:, None])
    coefficients = inside @ pulls + np.outer(towards, amount)
    leverage = weights * ((design @ inside) * design).sum(axis=1)
    residuals = left_out(scores - design @ coefficients, leverage)
    errors = standard_errors(design * weights[:, None], residuals, inside)
    return coefficients, residuals, errors


@dataclass(frozen=True)
class MarginalContributions:
    """Rows after the full and the empty text are chains: sizes 1, 2, … n − 1, again and again.

    Errors are those of a mean over independent pairs of chains (an order and its reverse).
    """

    def fit(self, observed: Observations) -> Fit:
        counts, scores, document_counts = observed.counts, observed.scores, observed.document_counts
        columns = scores.reshape(len(scores), -1)
        sizes, n_units = counts.sum(axis=1), len(document_counts)
        full = columns[sizes == n_units][0]
        empties = columns[sizes == 0]
        empty = empties[0] if len(empties) else np.zeros_like(full)
        added = _marginals(counts, columns, empty, full)  # (n_chains, n_units, n_classes)
        shape = (n_units, *scores.shape[1:])
        coefficients = added.mean(axis=0).reshape(shape)
        return Fit(
            LinearModel(coefficients, empty.reshape(scores.shape[1:])),
            {"score": coefficients},
            _chain_errors(added, shape),
            notes=(NOT_FITTED,) if len(empties) else (NOT_FITTED, NO_EMPTY),
        )


def _marginals(
    counts: FloatArray, scores: FloatArray, empty: FloatArray, full: FloatArray
) -> FloatArray:
    """What each unit added in each chain: (n_chains, n_units, n_classes)."""
    n_units, sizes = counts.shape[1], counts.sum(axis=1)
    if n_units == 1:
        return np.asarray(full - empty)[None, None, :]
    inner = (sizes > 0) & (sizes < n_units)
    chains = counts[inner].reshape(-1, n_units - 1, n_units)
    between = scores[inner].reshape(-1, n_units - 1, scores.shape[1])

    def with_ends(first: FloatArray, rows: FloatArray, last: FloatArray) -> FloatArray:
        ends = [np.broadcast_to(end, (len(rows), 1, len(end))) for end in (first, last)]
        return np.concatenate([ends[0], rows, ends[1]], axis=1)

    present = with_ends(np.zeros(n_units), chains, np.ones(n_units))
    steps = np.diff(with_ends(empty, between, full), axis=1)
    joined = np.diff(present, axis=1).argmax(axis=2)  # (n_chains, n_units) who joined when
    added = np.empty_like(steps)
    np.put_along_axis(added, joined[:, :, None], steps, axis=1)
    return added


def _chain_errors(added: FloatArray, shape: tuple[int, ...]) -> dict[str, FloatArray]:
    n_pairs = len(added) // 2
    if n_pairs < 2:
        return {}
    pairs = added[: 2 * n_pairs].reshape(n_pairs, 2, *added.shape[1:]).mean(axis=1)
    return {"score": (pairs.std(axis=0, ddof=1) / np.sqrt(n_pairs)).reshape(shape)}


@dataclass(frozen=True)
class Occlusion:
    """The change of score when one unit goes; exact, and blind to units that stand in for it."""

    def fit(self, observed: Observations) -> Fit:
        counts, scores, document_counts = observed.counts, observed.scores, observed.document_counts
        columns = scores.reshape(len(scores), -1)
        missing = document_counts - counts  # (n_queries, n_units)
        full = columns[missing.sum(axis=1) == 0][0]
        rows = np.flatnonzero(missing.sum(axis=1) == 1)
        removed = missing[rows].argmax(axis=1)
        effects = np.zeros((len(document_counts), columns.shape[1]))
        effects[removed] = full - columns[rows]
        known = np.zeros(len(document_counts), dtype=bool)
        known[removed] = True
        coefficients = effects.reshape(len(document_counts), *scores.shape[1:])
        intercept = (full - effects.sum(axis=0)).reshape(scores.shape[1:])
        return Fit(
            LinearModel(coefficients, intercept),
            {"score": coefficients},
            identified=known,
            notes=(NOT_FITTED,),
        )
