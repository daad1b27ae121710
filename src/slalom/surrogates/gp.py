"""One Gaussian process over subsets of the units, around what a parametric model says of them.

With A(S) the parametric model, p = (A − mean) / spread its level, and scores in units of their
spread over the rows that show neither nothing nor everything:

    F(S) = m + β p(S) + g(S) + τ ε(S)      g ~ GP(0, K), m ~ N(0, 1), β ~ N(0, .3²)

K are the kernels of kernel.py, ε is white: answers are exact, so what no kernel explains belongs to
the function at that subset alone, and a subset that was asked is known.
Units that matter in A may matter more here. With u = ρ |φ_i(A)| / mean + 1 − ρ, ρ the R² of A on
rows it has not seen (0 where it says nothing, and all units are alike) times √f, f = N / (N + n):
φ(A) and z are guesses from the same N rows about n units, and few rows know little of either:

    b_i = B (u_i + .3)² e^{z_i}, Σ b = 1 at z = 0      λ_i = Λ (3/n)(u_i + .1) e^{z′_i}
    log B ~ N(0, .1²)   log Λ ~ N(0, .5²)   z, z′ ~ N(0, f)
    log c, s, r, v, τ² ~ N(log .5, log .03, log .03, log .03, log .1; 1.5²)      h, h′ ~ N(0, 1)

The most likely of these are looked for by a few steps of L-BFGS on some of the rows; all rows then
give one posterior: predictions, held-out residuals, Shapley values, and how sure they are. Rows
that chose A, u and z seem to be explained better than others: variances are divided by f for it.
Those of Shapley values also count that A is one of many, by the fits without each fold.

The score of an answer of a language model is −Σ log(1 + exp(−z_t)) over its tokens, and no sum of
what units do: what is certain can only be lost. There F is the log-odds z_t of each token, scales
are found by all of them, the strong ones most, and predictions are the score of what is predicted.

How to use it: `Process.of(asked, strengths)`, with |φ_i(A)| as strengths; then
`mean(present, A(present))`, `held_out()`, `shapley(A, φ(A))`, `variances_of_differences`,
`errors_together`. Rows that A was fitted to must come with what A says without them, or p looks
better than it is; rows of every size are worth it, as A misleads where none was asked.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated

import numpy as np

from slalom.answer import scores_of
from slalom.document import BoolArray, FloatArray, IntArray, row_keys
from slalom.errors import ClassifierError
from slalom.schema import LARGEST, Within
from slalom.surrogates import kernel
from slalom.surrogates.base import contrasts_of, spread_of
from slalom.surrogates.kernel import Scales, Subsets
from slalom.surrogates.linalg import (
    cholesky,
    diagonal_of,
    errors_of_classes,
    inverse_of,
    quasi_newton,
    solve_lower,
    solved,
)
from slalom.surrogates.slalom.model import SlalomModel

SPREAD_OF_SLOPE = 0.3  # of β; that of m is 1
LEAST_SPREAD = LARGEST**-0.5  # of scores: squares of numbers in files over this are finite
HYPERPARAMETERS = np.array(
    [  # prior median, spread of the logarithm, start of the search, rough curvature per row
        (1.0, 0.1, 1.0, 0.003),  # B
        (1.0, 0.5, 1.0, 0.006),  # Λ
        (0.5, 1.5, 0.2, 0.1),  # c
        (0.03, 1.5, 0.03, 0.03),  # s
        (0.03, 1.5, 0.06, 0.03),  # r
        (0.03, 1.5, 0.03, 0.03),  # v
        (0.1, 1.5, 0.1, 0.13),  # τ²
    ]
)
MEDIANS, SPREADS, STARTS, CURVATURES = HYPERPARAMETERS.T
MAX_ROWS = 4000  # that are used
N_SEARCHED = 500  # of them, by which the hyper-parameters are found
N_STEPS, N_STEPS_BY_TOKEN = 5, 15  # of the search
N_ORDERS = 64  # of units that join, for the response's Shapley values


@dataclass(frozen=True, eq=False)
class Asked:
    """Subsets that were asked, the answers, and what a parametric model says without each."""

    present: BoolArray  # (N, n_units)
    scores: FloatArray  # (N, n_classes)
    held_out: FloatArray  # (N, n_classes) of rows that were not fitted: what it says
    noise: FloatArray  # (N,) variance of an answer, were it asked again; 0: always the same
    log_odds: FloatArray | None = None  # (N, n_tokens) of what a language model says, by token

    @cached_property
    def inner(self) -> BoolArray:
        """(N,) rows that show neither nothing nor everything; all, where there are no others."""
        sizes = self.present.sum(axis=1)
        inner = (sizes > 0) & (sizes < self.present.shape[1])
        return inner if inner.any() else np.ones(len(inner), dtype=bool)

    def r2(self) -> float:
        """Of the parametric model, on rows it has not seen."""
        truth, missed = self.scores[self.inner], (self.scores - self.held_out)[self.inner]
        spread = float(truth.var(axis=0).sum())
        return 1.0 - float((missed**2).mean(axis=0).sum()) / spread if spread > 0 else 0.0


@dataclass(frozen=True, eq=False)
class ScoreUnits:
    """The units in which scores and levels enter: from classes to columns and back."""

    contrasts: Annotated[FloatArray, "classes contrasts"]  # orthonormal
    centre: Annotated[FloatArray, "classes"]
    spread: float
    level_centre: Annotated[FloatArray, "classes"]
    level_spread: float

    def check(self) -> None:
        if 0 < abs(self.level_spread) < LEAST_SPREAD:
            raise ValueError(f"level_spread: expected 0 or a number from {LEAST_SPREAD}")

    @classmethod
    def of(cls, asked: Asked) -> "ScoreUnits":
        inner = asked.inner
        contrasts = contrasts_of(asked.scores)
        scores, levels = asked.scores[inner], asked.held_out[inner]
        return cls(
            contrasts,
            scores.mean(axis=0),
            _spread(scores @ contrasts) or _spread(asked.scores @ contrasts) or 1.0,
            levels.mean(axis=0),
            _spread(levels @ contrasts),
        )

    def columns(self, scores: FloatArray) -> FloatArray:
        return np.asarray((scores - self.centre) @ self.contrasts / self.spread)

    def classes(self, columns: FloatArray) -> FloatArray:
        return np.asarray(columns * self.spread @ self.contrasts.T)

    @property
    def to_levels(self) -> FloatArray:
        """(n_classes, n_columns) from changes of A to changes of p; 0 where A is constant."""
        return np.asarray(self.contrasts / (self.level_spread or np.inf))

    def levels(self, predicted: FloatArray) -> FloatArray:
        """(…, n_classes) of A → (…, n_columns) p."""
        return np.asarray((predicted - self.level_centre) @ self.to_levels)


def _spread(columns: FloatArray) -> float:
    """Of which files can hold the square."""
    spread = spread_of(columns)
    return spread if spread > LEAST_SPREAD else 0.0


@dataclass(frozen=True, eq=False)
class ScalePrior:
    """The scales at z = 0, B = Λ = 1, and how far z may spread."""

    effects: FloatArray  # (n_units,)
    rates: FloatArray  # (n_units,)
    freedom: float

    @classmethod
    def of(cls, strengths: FloatArray, r2: float, n_rows: int) -> "ScalePrior":
        """(n_units,) |φ(A)|, the R² of A, and how many rows both were found by."""
        freedom = float(np.sqrt(n_rows / (n_rows + len(strengths))))
        mean, trust = float(strengths.mean()), float(np.clip(r2, 0.0, 1.0)) * freedom
        alike = np.ones_like(strengths)
        relative_strength = alike if mean == 0 else trust * strengths / mean + 1.0 - trust
        effects = (relative_strength + 0.3) ** 2
        rates = 3.0 / len(strengths) * (relative_strength + 0.1)
        return cls(effects / effects.sum(), rates, freedom)

    def scales(self, theta: FloatArray) -> Scales:
        n = len(self.effects)
        strengths = np.exp(np.log(MEDIANS) + SPREADS * theta[2 * n : -2])
        common, reach, together, size, response, missing, white = strengths
        effects = self.effects * (common * np.exp(self.freedom * theta[:n]))
        rates = self.rates * (reach * np.exp(self.freedom * theta[n : 2 * n]))
        return Scales(effects, rates, together, size, response, missing, white, theta[-2:])


@dataclass(frozen=True, eq=False)
class Likelihood:
    """−log p(scores, θ) with its gradient; θ = (z, z′, the nine others), all N(0, 1).

    In double precision: single takes half the time, but a search that has not come to its end keeps
    what is rounded, and the seventh digit of an answer would move values by 1e-4.
    """

    prior: ScalePrior
    rows: Subsets
    columns: FloatArray  # (N, n_columns)
    noise: FloatArray  # (N,)

    @cached_property
    def fixed(self) -> tuple[FloatArray, ...]:
        """(N, N) each: of m and β, of size, of the response, of what is missing."""
        rows = self.rows
        size, response = kernel.size_kernel(rows, rows), kernel.response_kernel(rows, rows)
        return _of_mean(rows, rows), size, response, kernel.missing_kernel(rows, rows)

    def __call__(self, theta: FloatArray) -> tuple[float, FloatArray]:
        scales = self.prior.scales(theta)
        present, effects, rates = self.rows.present, scales.effects, scales.rates
        mean, size, response, missing = self.fixed
        together = kernel.together_kernel(present, present, rates)
        together *= scales.together
        rows = kernel.additive_kernel(present, present, effects)
        for part in (mean, together, scales.size * size, scales.response * response):
            rows += part
        rows += scales.missing * missing
        ends = self.rows.log_ends
        whites = scales.whites(ends)
        diagonal_of(rows)[:] += whites + self.noise
        root = cholesky(rows)
        if root is None:
            return np.inf, theta
        pulls = _solve_gradient(root, self.columns)
        halves = solve_lower(root, self.columns)
        volume = float(np.log(root.diagonal()).sum()) * self.columns.shape[1]
        value = 0.5 * float((halves**2).sum()) + volume + 0.5 * float(theta @ theta)
        centred = kernel.centred(present)
        by_effect = np.einsum("ij,ij->j", centred, pulls @ centred) * effects
        apart = pulls * together
        crossed = np.einsum("ij,ij->j", present, apart @ present)
        by_rate = 2.0 * rates * (crossed - apart.sum(axis=1) @ present)
        by_white = whites * diagonal_of(pulls)
        by_scale = [
            by_effect.sum(),
            by_rate.sum(),
            apart.sum(),
            scales.size * np.vdot(pulls, size),
            scales.response * np.vdot(pulls, response),
            scales.missing * np.vdot(pulls, missing),
            by_white.sum(),
        ]
        of_units = self.prior.freedom * np.concatenate([by_effect, by_rate])
        return value, theta - np.concatenate([of_units, SPREADS * by_scale, by_white @ ends])


def _solve_gradient(root: FloatArray, columns: FloatArray) -> FloatArray:
    """½ (αα′ − S⁻¹), summed over columns; α = S⁻¹ y."""
    inverse = inverse_of(root)
    solved = inverse @ columns
    inverse *= -columns.shape[1]
    inverse += solved @ solved.T
    inverse *= 0.5
    return inverse


def most_likely(likelihood: Likelihood, n_steps: int = N_STEPS) -> FloatArray:
    """θ after a few steps of L-BFGS, preconditioned by what rows usually say of each entry."""
    n, n_rows = len(likelihood.prior.effects), len(likelihood.columns)
    starts = (np.log(STARTS) - np.log(MEDIANS)) / SPREADS
    theta = np.concatenate([np.zeros(2 * n), starts, np.zeros(2)])  # h, h′ begin at 0
    curvatures = np.append(CURVATURES, CURVATURES[[-1, -1]])  # rows say as much of them as of τ²
    shape = np.append(np.ones(2 * n), 1.0 / (1.0 + n_rows * curvatures))
    value, slope = likelihood(theta)
    steps: list[tuple[FloatArray, FloatArray]] = []
    for _ in range(n_steps):
        direction = -quasi_newton(slope, steps, shape)
        length = min(1.0, 1.0 / float(np.abs(direction).max()))  # a prior spread at most
        for _ in range(5):  # ever shorter, until it pays
            moved = theta + length * direction
            new_value, new_slope = likelihood(moved)
            if new_value <= value + 1e-4 * length * float(direction @ slope):
                break
            length *= 0.3
        else:
            return theta
        if float((moved - theta) @ (new_slope - slope)) > 0:
            steps.append((moved - theta, new_slope - slope))
        theta, value, slope = moved, new_value, new_slope
    return theta


def _of_mean(one: Subsets, other: Subsets) -> FloatArray:
    """(m, k) the covariance that m and β bring."""
    return np.asarray(1.0 + SPREAD_OF_SLOPE**2 * one.level @ other.level.T)


def _covariance(one: Subsets, other: Subsets, scales: Scales) -> FloatArray:
    """(m, k) of all but the white part."""
    return kernel.covariance(one, other, scales) + _of_mean(one, other)


@dataclass(frozen=True, eq=False)
class Mean:
    """The posterior mean: all that predictions take."""

    frame: ScoreUnits
    scales: Scales
    present: Annotated[BoolArray, "asked units"]
    level: Annotated[FloatArray, "asked contrasts"]  # p
    answers: Annotated[FloatArray, "asked classes"]
    noise: Annotated[FloatArray, "asked", Within(0)]  # their variance, in units of the spread
    weights: Annotated[FloatArray, "asked contrasts"]  # α
    log_odds: Annotated[FloatArray | None, "asked tokens"] = None  # of an answer's tokens

    @cached_property
    def rows(self) -> Subsets:
        return Subsets(self.present.astype(np.float64), self.level)

    @cached_property
    def places(self) -> dict[bytes, int]:
        """The row of each subset that was asked."""
        return {key: at for at, key in enumerate(row_keys(self.present))}

    def located(self, present: BoolArray) -> IntArray:
        """(m,) the row of each subset; −1: it was not asked."""
        return np.array([self.places.get(key, -1) for key in row_keys(present)], np.int32)

    def subsets(self, present: BoolArray, predicted: FloatArray) -> Subsets:
        """`predicted` (m, n_classes) by the parametric model."""
        return Subsets(present.astype(np.float64), self.frame.levels(predicted))

    def __call__(self, present: BoolArray, predicted: FloatArray) -> FloatArray:
        """(m, n_classes) and, where it was asked, the answer less its noise."""
        found = np.empty((len(present), self.answers.shape[1]))
        at = self.located(present)
        known, rows, new = at >= 0, at[at >= 0], self.subsets(present[at < 0], predicted[at < 0])
        noise = self.frame.classes(self.noise[rows, None] * self.weights[rows])
        found[~known], found[known] = self.estimated(new), self.answers[rows] - noise
        return found

    def estimated(self, subsets: Subsets) -> FloatArray:
        """(m, n_classes) as if none of them had been asked; of tokens, if theirs are known."""
        rows, weights = self._that_count
        found = np.zeros((len(subsets), weights.shape[1]))
        for begin in range(0, len(subsets), 2000):  # covariances of all may not fit in memory
            block = slice(begin, begin + 2000)
            found[block] = _covariance(subsets.some(block), rows, self.scales) @ weights
        if self.log_odds is not None:
            return scores_of(found + self.log_odds.mean(axis=0))[:, None]
        return self.frame.classes(found) + self.frame.centre

    def changes(self, subsets: Subsets, changes: FloatArray) -> FloatArray:
        """(q, m, n_classes) of `estimated`, to first order, as what A says of them changes."""
        rows, weights = self._that_count
        changes = changes @ self.frame.to_levels
        response = kernel.response_changes(subsets, rows, changes)
        by_slope = SPREAD_OF_SLOPE**2 * changes @ (rows.level.T @ weights)
        return self.frame.classes(
            by_slope + self.scales.response * np.stack([each @ weights for each in response])
        )

    @cached_property
    def _that_count(self) -> tuple[Subsets, FloatArray]:
        """Rows that are used (α is not 0), and their α; of tokens, if theirs are known."""
        used = np.flatnonzero(self.weights.any(axis=1)).astype(np.int32)
        rows, weights = self.rows.some(used), np.asarray(self.weights[used])
        if self.log_odds is not None and len(used):
            _, root = _root(rows, self.noise[used], self.scales)
            centred = self.log_odds[used] - self.log_odds.mean(axis=0)
            weights = solved(root, centred)
        return rows, weights


def _root(rows: Subsets, noise: FloatArray, scales: Scales) -> tuple[Scales, FloatArray]:
    """L, with as much more τ² as it takes to have one: of data that A says exactly it is tiny."""
    covariance = _covariance(rows, rows, scales)
    while True:
        padded = covariance.copy()
        diagonal_of(padded)[:] += scales.whites(rows.log_ends) + noise
        root = cholesky(padded)
        if root is not None:
            return scales, root
        if scales.white > float(diagonal_of(covariance).max()) or not np.isfinite(covariance).all():
            raise ClassifierError(
                "the answers are too irregular to fit: look at the classifier's scores"
            )
        scales = replace(scales, white=10.0 * scales.white)


def _used(asked: Asked) -> IntArray:
    """Rows: the ends, single removals and single units first, then as they come at random."""
    n_rows, n_units = asked.present.shape
    if n_rows <= MAX_ROWS:
        return np.arange(n_rows, dtype=np.int32)
    sizes = asked.present.sum(axis=1)
    drawn = (sizes > 1) & (sizes < n_units - 1)
    order = np.lexsort((np.random.default_rng(0).random(n_rows), drawn))
    return np.sort(order[:MAX_ROWS]).astype(np.int32)


@dataclass(frozen=True, eq=False)
class Process:
    """The posterior, given the rows: S = K + mean + (τ² + noise) I = LLᵀ, α = S⁻¹ y.

    Of more than MAX_ROWS, whose time grows with their cube, some are used; the others have α = 0,
    are known where they are asked for, and are held out.
    """

    mean: Mean
    root: FloatArray  # (n_used, n_used) L, lower; above the diagonal leftovers
    used: IntArray  # (n_used,) rows
    honesty: float  # f: by so much the rows that chose A and the scales make it look better

    @classmethod
    def of(cls, asked: Asked, strengths: FloatArray) -> "Process":
        """`strengths` (n_units,): how much units matter in the parametric model."""
        frame, used = ScoreUnits.of(asked), _used(asked)
        rows = Subsets(asked.present.astype(np.float64), frame.levels(asked.held_out))
        columns, noise = frame.columns(asked.scores), asked.noise / frame.spread**2
        prior = ScalePrior.of(strengths, asked.r2(), len(used))
        some = used
        if len(used) > N_SEARCHED:
            some = np.random.default_rng(0).permutation(used)[:N_SEARCHED]
        searched, n_steps = columns, N_STEPS
        if asked.log_odds is not None:
            centred = asked.log_odds - asked.log_odds.mean(axis=0)
            searched, n_steps = centred / (_spread(centred) or 1.0), N_STEPS_BY_TOKEN
        likelihood = Likelihood(prior, rows.some(some), searched[some], noise[some])
        scales = prior.scales(most_likely(likelihood, n_steps))
        among = rows if len(used) == len(rows) else rows.some(used)
        scales, root = _root(among, noise[used], scales)
        weights = np.zeros_like(columns)
        weights[used] = solved(root, columns[used])
        known = (asked.present, rows.level, asked.scores, noise, weights, asked.log_odds)
        return cls(Mean(frame, scales, *known), root, used, prior.freedom**2)

    @cached_property
    def rows(self) -> Subsets:
        """Those that are used."""
        return self.mean.rows.some(self.used)

    @cached_property
    def weights(self) -> FloatArray:
        """(n_used, n_columns) α"""
        return np.asarray(self.mean.weights[self.used])

    @cached_property
    def precisions(self) -> FloatArray:
        """(n_used,) the diagonal of S⁻¹."""
        from scipy.linalg.lapack import dtrtri

        half = np.tril(dtrtri(self.root, lower=1)[0])
        return np.asarray(np.einsum("ij,ij->j", half, half))

    def held_out(self) -> FloatArray:
        """(N, n_classes) each row as predicted from all others."""
        mean, every = self.mean, np.arange(len(self.mean.rows), dtype=np.int32)
        others = np.delete(every, self.used)
        found = mean.answers.copy()
        found[self.used] -= mean.frame.classes(self.weights / self.precisions[:, None])
        if len(others):
            found[others] = mean.estimated(mean.rows.some(others))
        return found

    @property
    def left_one_out(self) -> FloatArray:
        """(n_used,) variances of rows given all others, over classes."""
        return np.asarray(self._class_variances().sum() / self.precisions)

    def variances_of_differences(
        self, present: BoolArray, base: BoolArray, predicted: FloatArray
    ) -> FloatArray:
        """(m, n_classes) of F(S) − F(base); `predicted` has the base's in its last row."""
        both, scales = np.vstack([present, base]), self.mean.scales
        subsets = self.mean.subsets(both, predicted)
        with_rows = _covariance(subsets, self.rows, scales)
        whites = scales.whites(subsets.log_ends)
        with_rows += whites[:, None] * (self.mean.located(both)[:, None] == self.used)
        with_base = _covariance(subsets, subsets.some(slice(-1, None)), scales)[:, 0]
        alone = kernel.variances(subsets, scales) + whites
        alone += 1.0 + SPREAD_OF_SLOPE**2 * (subsets.level**2).sum(axis=1)
        halves = solve_lower(self.root, (with_rows[:-1] - with_rows[-1]).T)
        prior = alone[:-1] + alone[-1] - 2.0 * with_base[:-1]
        left = np.maximum(prior - np.einsum("ij,ij->j", halves, halves), 0.0)
        return np.asarray(left[:, None] * self._class_variances())

    def errors_together(self, present: BoolArray, predicted: FloatArray) -> FloatArray:
        """(m, n_classes, q) how far subsets that were not asked may be off: the squares add up.

        But for what belongs to each of them alone.
        """
        mean, scales, frame = self.mean, self.mean.scales, self.mean.frame
        subsets = mean.subsets(present, predicted)
        halves = solve_lower(self.root, _covariance(subsets, self.rows, scales).T)
        left = _covariance(subsets, subsets, scales)
        left -= halves.T @ halves
        diagonal_of(left)[:] += 1e-9 * float(diagonal_of(left).max())
        root = cholesky(left)  # None: no more than rounding is left
        root = np.diag(np.sqrt(np.maximum(diagonal_of(left), 0.0))) if root is None else root
        contrasts = frame.contrasts * (frame.spread / np.sqrt(self.honesty))
        return errors_of_classes(np.tril(root), contrasts)

    def own_variances(self, present: BoolArray) -> FloatArray:
        """(m, n_classes) of what belongs to each of these subsets alone."""
        ends = kernel.log_ends(present.sum(axis=1), present.shape[1])
        return np.asarray(self.mean.scales.whites(ends)[:, None] * self._class_variances())

    def _class_variances(self) -> FloatArray:
        """(n_classes,) of one column's variance, in the scores' own unit."""
        frame = self.mean.frame
        return np.asarray(frame.spread**2 / self.honesty * (frame.contrasts**2).sum(axis=1))

    def shapley(
        self, parametric: SlalomModel, values: FloatArray, without: Sequence[SlalomModel] = ()
    ) -> tuple[FloatArray, FloatArray]:
        """(n_units, n_classes) Shapley values and their variances; `values` are A's.

        A is taken for certain, unless there are fits `without` each fold of its rows.
        """
        n_units, scales, rows = len(values), self.mean.scales, self.rows
        weights, frame = self.weights, self.mean.frame
        paths = _Paths.of(frame, parametric, values)
        root, chosen = kernel.features_of(rows, 32, 1e-6)
        of_rows = solve_lower(root, kernel.response_kernel(chosen, rows))  # (k, N)
        features, ends = paths.features(paths.levels, root, chosen), paths.ends
        heights, shares = features @ (of_rows @ weights), paths.shared(features)
        heights[:, [0, -1]] = kernel.response_kernel(ends, rows) @ weights
        slope, own = SPREAD_OF_SLOPE**2 * paths.exact, kernel.shapley_of_own(rows.present > 0)
        shared = _shares(rows, ends, scales) + scales.whites(rows.log_ends) * own.T
        mean = shared @ weights + slope @ (rows.level.T @ weights)
        with_rows = shared + slope @ rows.level.T + scales.response * (shares @ of_rows)
        halves = solve_lower(self.root, with_rows.T)
        prior = (slope * paths.exact).sum(axis=1) + scales.response * (shares**2).sum(axis=1)
        sizes = kernel.log_ends(np.arange(n_units + 1.0), n_units)
        prior += scales.effects + kernel.variance_of_own(scales.whites(sizes))
        prior += scales.together * kernel.variances_of_together(scales.rates)
        prior += scales.size * 2.0 * (1.0 - kernel.size_kernel(ends, ends)[0, 1]) / n_units**2
        prior += scales.missing * 2.0 * (1.0 - kernel.missing_kernel(ends, ends)[0, 1]) / n_units**2
        left = np.maximum(prior - np.einsum("ij,ij->j", halves, halves), 0.0)
        variances = left[:, None] * self._class_variances()
        shapley = frame.classes(mean + scales.response * paths.shared(heights))
        if len(without) < 2:
            return shapley, variances
        moved, some = [], replace(paths, orders=paths.orders[::4], levels=paths.levels[::4])
        by_level = SPREAD_OF_SLOPE**2 * rows.level.T @ weights
        by_feature = scales.response * of_rows @ weights
        for each in without:
            levels = frame.levels(each.joined(some.orders).reshape(*some.levels.shape[:2], -1))
            by_response = some.features(levels, root, chosen) @ by_feature
            moved.append(some.shared(levels @ by_level + by_response))
        strayed = jackknife(frame.classes(np.stack(moved)))
        return shapley, variances + (strayed**2).sum(axis=0)


def jackknife(without: FloatArray) -> FloatArray:
    """What would be found without each fold, (q, …): how far it strays; squares add up."""
    return np.asarray(np.sqrt(1.0 - 1.0 / len(without)) * (without - without.mean(axis=0)))


def _shares(rows: Subsets, ends: Subsets, scales: Scales) -> FloatArray:
    """(n_units, N) covariances of rows with Shapley values, where these have a closed form."""
    additive = scales.effects[:, None] * kernel.centred(rows.present).T
    together = scales.together * kernel.shapley_of_together(rows.present, scales.rates).T
    by_size = scales.size * kernel.size_kernel(ends, rows)
    by_size += scales.missing * kernel.missing_kernel(ends, rows)
    return np.asarray(additive + together + (by_size[1] - by_size[0]) / len(additive))


@dataclass(frozen=True, eq=False)
class _Paths:
    """Units that join in random orders, each beside its reverse, and p on the way."""

    orders: IntArray  # (M, n_units)
    levels: FloatArray  # (M, n_units + 1, n_columns)
    exact: FloatArray  # (n_units, n_columns) the Shapley values of p

    @classmethod
    def of(cls, frame: ScoreUnits, parametric: SlalomModel, values: FloatArray) -> "_Paths":
        units = np.arange(len(values), dtype=np.int32)
        drawn = np.random.default_rng(0).permuted(np.tile(units, (N_ORDERS // 2, 1)), axis=1)
        orders = np.vstack([drawn, drawn[:, ::-1]])
        joined = parametric.joined(orders).reshape(N_ORDERS, len(units) + 1, -1)
        levels, exact = frame.levels(joined), values @ frame.to_levels
        rounding = levels[0, -1] - levels[0, 0] - exact.sum(axis=0)  # of an integral over t
        return cls(orders, levels, exact + rounding / len(units))

    @property
    def ends(self) -> Subsets:
        """Nothing, and everything."""
        n_units = self.orders.shape[1]
        return Subsets(np.stack([np.zeros(n_units), np.ones(n_units)]), self.levels[0, [0, -1]])

    def shared(self, values: FloatArray) -> FloatArray:
        """(M, n_units + 1, k) along the paths → (n_units, k): Shapley values, p as control."""
        steps, known = np.diff(values, axis=1), np.diff(self.levels, axis=1)
        flat, by = (each.reshape(-1, each.shape[-1]) for each in (steps, known))
        slopes = np.linalg.lstsq(by, flat, rcond=1e-10)[0]
        left, places = flat - by @ slopes, self.orders.ravel()
        totals = [np.bincount(places, column, len(self.exact)) for column in left.T]
        return np.asarray(self.exact @ slopes + np.stack(totals, axis=1) / len(self.orders))

    def features(self, levels: FloatArray, root: FloatArray, chosen: Subsets) -> FloatArray:
        """(M, n_units + 1, k) few functions of p and size, which stand for the response kernel."""
        m, steps, n_columns = levels.shape
        log_sizes = np.log2(1.0 + np.tile(np.arange(float(steps)), m))
        on_way = kernel.placed(levels.reshape(m * steps, n_columns), log_sizes)
        near = kernel.gaussian(on_way, kernel.placed(chosen.level, chosen.log_size))
        return np.asarray(solve_lower(root, near.T).T.reshape(m, steps, -1))
