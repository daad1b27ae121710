"""The least-squares problem behind a SLALOM: what every solver works on.

Given the importances s the model is linear in everything else, so the rest is eliminated
exactly (variable projection) and what is left is a problem over s alone. With A the attention
of every query, E the fixed columns (direct effects and length curve, if any), X = [A, E],
Π the weights, r the residuals, B = A ∘ (v − Av) and ridges R:

    G = XᵀΠX + R_x      C = XᵀΠB      S = BᵀΠB − CᵀG⁻¹C + R_s      gradient = BᵀΠr − R_s (s − s̄)

The anchor is the last column of A, present once in every query. Only differences of s matter:
a term on Σs fixes the gauge Σ_{j≥1} s_j = 0 without touching the fit.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from slalom.document import BoolArray, FloatArray
from slalom.errors import ClassifierError
from slalom.surrogates.rows import Rows
from slalom.surrogates.slalom.cholesky import cholesky, diagonal_of, solved

LOUDEST = 25.0  # |s| beyond this is exp(25) : 1, no query can tell
LARGE = 3e5  # rows × features² from which on single precision saves anything
SAMPLED_ROWS = 256  # that say what other ridges would do
TINY, TINY_IN_SINGLE = 1e-12, 1e-7


@dataclass(frozen=True, eq=False)
class Parts:
    """Columns that do not depend on the importances: direct effects, then the length curve."""

    direct: FloatArray  # (n, n_features) counts less their mean, or (n, 0)
    length: FloatArray  # (n, n_ramps), or (n, 0)

    @cached_property
    def columns(self) -> FloatArray:
        return np.hstack([self.direct, self.length])


@dataclass(frozen=True, eq=False)
class Problem:
    """Counts and scores of one fit; columns of scores share importances.

    They are the classes, or orthonormal contrasts of them.
    """

    counts: Rows  # (n, k) the anchor, if any, is the last column of ones
    scores: FloatArray  # (n, n_columns)
    weights: FloatArray  # (n,) of mean 1
    prior: FloatArray  # (k, n_columns) values shrink towards it
    importance_prior: FloatArray  # (k,) s̄, importances shrink towards it; in the gauge
    anchored: bool
    grounded: bool = True  # the empty query was asked: it says what the anchor is worth
    complete: bool = False  # every subset was asked: nothing is left to chance
    parts: Parts | None = None  # None: the paper's model
    judged: BoolArray | None = None  # (n,) rows that leave-one-out looks at; None: all
    anchor_prior: float = 0.0  # the anchor's importance begins at s̄ and shrinks to so much more

    @cached_property
    def n_features(self) -> int:
        return self.counts.shape[1] - int(self.anchored)

    @cached_property
    def share(self) -> FloatArray:
        """(k,) of each feature in their mean, which the gauge takes away."""
        return self.padded(np.full(self.n_features, 1 / self.n_features, self.scores.dtype))

    @cached_property
    def fixed(self) -> FloatArray:
        """E: (n, n_fixed)."""
        return (
            np.zeros_like(self.scores, shape=(len(self.scores), 0))
            if self.parts is None
            else self.parts.columns
        )

    @cached_property
    def roots(self) -> FloatArray | float:
        """Π^½: (n,), or 1.0 where all rows weigh the same and multiplying can be spared."""
        return 1.0 if (self.weights == 1.0).all() else np.sqrt(self.weights)

    @cached_property
    def rooted_fixed(self) -> FloatArray:
        """Π^½ E, in the problem's own precision."""
        if isinstance(self.roots, float):
            return self.fixed
        return np.asarray(self.fixed * self.roots[:, None])

    @cached_property
    def fixed_gram(self) -> FloatArray:
        return np.asarray(self.rooted_fixed.T @ self.rooted_fixed)

    @cached_property
    def variances(self) -> tuple[float, float, float]:
        """Summed over the columns: of attention as the prior has it, direct effects, length."""
        none = self.fixed[:, :0]
        parts = Parts(none, none) if self.parts is None else self.parts
        attention = attention_of(self.counts, self.importance_prior)
        direct, length = (
            Rows(part, (len(part), part.shape[1]), None) for part in (parts.direct, parts.length)
        )
        return (
            _variance(attention, self.weights),
            _variance(direct, self.weights),
            _variance(length, self.weights),
        )

    @cached_property
    def sample(self) -> NDArray[np.intp]:
        """Some of the rows that are judged, at random: rows that come in turns may be of kinds."""
        rows = np.arange(len(self.scores)) if self.judged is None else np.flatnonzero(self.judged)
        return np.random.default_rng(0).permutation(rows)[:SAMPLED_ROWS]

    @property
    def is_large(self) -> bool:
        n_rows, k = self.counts.shape
        return n_rows * k**2 > LARGE

    @cached_property
    def single(self) -> "Problem":
        """The same in single precision, at half the cost: for trials, not for what is told."""
        kind = np.float32
        return replace(
            self,
            counts=Rows(self.counts.data.astype(kind), self.counts.shape, self.counts.cells),
            scores=self.scores.astype(kind),
            weights=self.weights.astype(kind),
            prior=self.prior.astype(kind),
            importance_prior=self.importance_prior.astype(kind),
            parts=self.parts
            and Parts(self.parts.direct.astype(kind), self.parts.length.astype(kind)),
        )

    def padded(self, features: FloatArray) -> FloatArray:
        """(n_features,) → (k,): the anchor, if any, gets 0."""
        none = np.zeros(int(self.anchored), features.dtype)
        return np.append(features, none)

    def expected(self) -> FloatArray:
        """What the prior says of every query: (n, n_columns)."""
        return attention_of(self.counts, self.importance_prior).apply(self.prior)

    def centred(self, importances: FloatArray) -> FloatArray:
        """In the gauge: the features' importances have mean 0, the anchor's moves along."""
        return np.asarray(importances - importances @ self.share)

    def in_gauge(self, importances: FloatArray) -> FloatArray:
        return np.asarray(self.centred(importances).clip(-LOUDEST, LOUDEST))


@dataclass(frozen=True, eq=False)
class Ridges:
    """Strength of the pull on each parameter, towards its prior or towards 0."""

    values: FloatArray  # (k,) 0 for an anchor whose score is known
    importances: FloatArray  # (k,)
    fixed: FloatArray  # (n_fixed,)
    strengths: tuple[float, float]  # on a value, on an importance

    @classmethod
    def of(cls, problem: Problem, value: float, importance: float) -> "Ridges":
        """The same pull on every value and on every importance; none on the anchor's."""
        free = problem.padded(np.ones(problem.n_features))
        shrunk = free if problem.grounded else np.ones_like(free)
        fixed = np.full(problem.fixed.shape[1], value)
        return cls(value * shrunk, importance * free, fixed, (value, importance))

    @property
    def single(self) -> "Ridges":
        kind = np.float32
        return replace(
            self,
            values=self.values.astype(kind),
            importances=self.importances.astype(kind),
            fixed=self.fixed.astype(kind),
        )

    @cached_property
    def linear(self) -> FloatArray:
        """(k + n_fixed,) on all that is eliminated."""
        return np.append(self.values, self.fixed)


@dataclass(frozen=True, eq=False)
class State:
    """The best values, direct effects and length curve for given importances."""

    importances: FloatArray  # (k,)
    values: FloatArray  # (k, n_columns)
    effects: FloatArray  # (n_fixed, n_columns) of the fixed columns
    attention: Rows  # (n, k) A
    attended: FloatArray  # (n, n_columns) Av, what attention alone says
    residuals: FloatArray  # (n, n_columns)
    gram: FloatArray  # (k + n_fixed, k + n_fixed) XᵀΠX
    lower: FloatArray  # L, G = LLᵀ
    objective: float


@dataclass(frozen=True, eq=False)
class Solution:
    """Where a solver ended: the state and the ridges it was found under."""

    state: State
    ridges: Ridges


def project(problem: Problem, importances: FloatArray, ridges: Ridges) -> State:
    """Eliminate all but the importances: one weighted ridge regression."""
    attention = attention_of(problem.counts, importances)
    k, gram = len(importances), _gram_of(problem, attention)
    lower = factor_of(gram, ridges.linear)
    # shrinking v to the prior is shrinking v − prior to 0
    centred = problem.scores - attention.apply(problem.prior)
    weighted = centred * problem.weights[:, None]
    pulls = np.vstack([attention.apply_transposed(weighted), problem.fixed.T @ weighted])
    shift = solved(lower, pulls)
    values = shift[:k] + problem.prior
    attended = attention.apply(values)
    residuals = problem.scores - attended - problem.fixed @ shift[k:]
    objective = (
        float(problem.weights @ (residuals**2).sum(axis=1))
        + float(ridges.linear @ (shift**2).sum(axis=1))
        + float(ridges.importances @ prior_deviation(problem, importances) ** 2)
    )
    return State(
        importances, values, shift[k:], attention, attended, residuals, gram, lower, objective
    )


def _gram_of(problem: Problem, attention: Rows) -> FloatArray:
    """XᵀΠX."""
    rooted = attention.times(problem.roots, 1.0)
    own = rooted.gram(rooted)  # of one matrix with itself: half the work
    k, n_fixed = len(own), problem.fixed.shape[1]
    if n_fixed == 0:
        return own
    gram = np.empty((k + n_fixed, k + n_fixed), own.dtype)
    gram[:k, :k] = own
    gram[:k, k:] = rooted.apply_transposed(problem.rooted_fixed)
    gram[k:, :k] = gram[:k, k:].T
    gram[k:, k:] = problem.fixed_gram
    return gram


def _variance(rows: Rows, weights: FloatArray) -> float:
    shares = weights[:, None] / weights.sum()
    squares = Rows(rows.data**2, rows.shape, rows.cells)
    return float((squares.apply_transposed(shares) - rows.apply_transposed(shares) ** 2).sum())


def factor_of(gram: FloatArray, ridges: FloatArray) -> FloatArray:
    """L; where features cannot be told apart, with as little added as it takes."""
    largest = 1.0 + float((gram.diagonal() + ridges).max())
    least = TINY if gram.dtype == np.float64 else TINY_IN_SINGLE
    for jitter in least * np.array([1.0, 1e2, 1e4, 1e6]):
        padded = gram.copy()
        diagonal_of(padded)[:] += ridges + float(jitter) * largest
        lower = cholesky(padded)
        if lower is not None:
            return lower
    raise ClassifierError("the answers are too large or too odd for a fit: look at the scores")


def attention_of(counts: Rows, importances: FloatArray) -> Rows:
    """Each query's softmax over what it shows."""
    mass = counts.times(1.0, np.exp(importances - importances.max()))
    total = mass.sums()
    return mass.times(1.0 / np.where(total > 0, total, 1.0), 1.0)


def prior_deviation(problem: Problem, importances: FloatArray) -> FloatArray:
    """How far importances are from their prior, both in the gauge."""
    prior_deviation = problem.centred(importances) - problem.importance_prior
    prior_deviation[problem.n_features :] -= problem.anchor_prior
    return prior_deviation
