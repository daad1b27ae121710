"""What a fit leaves of the answers, as a Gaussian process: predictions and Shapley values.

With P(S) the fit's held-out prediction of a subset S of the units, an answer is modelled as

    F(S) = β P(S) + Σ_{i in S} ψ_i + q(S) + noise

β is free. Units, and their interactions, may differ from the fit the more the more they matter
in it: with u_i = |φ_i| of the fit over its mean, and variances in units of the noise's,

    ψ_i ~ N(0, a (u_i + .3)²)      q ~ GP(0, c k)      k of subset_kernel.py, λ_i = 3/n (u_i + .1)

a and c are unknown: each pair of a grid is weighted by the likelihood of the answers. The scores
of the full and the empty text are known exactly. From each component the line between the two,
along shares in proportion to (u_i + .3)², is subtracted; q and Σ ψ_i are then 0 at both ends, and
Shapley values add up to F(N) − F(∅). Shapley values are linear, and those of each component are
known in closed form, so their posterior mean and variance are exact. The fit's own error remains
in so far as its residuals remain noise.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from slalom.document import BoolArray, FloatArray
from slalom.surrogates.slalom.cholesky import diagonal_of, halved, root_of
from slalom.surrogates.slalom.corrected import Correction
from slalom.surrogates.slalom.residual_shapley import NOTHING, Shares, independent
from slalom.surrogates.subset_kernel import shapley_of_kernel, shapley_variances, subset_kernel

MAX_ROWS = 1500  # the time grows with their cube
LEAST_EFFECT, LEAST_INTERACTION = 0.3, 0.1  # added to u, for units that do not matter in the fit
REACH = 3.0  # Σ λ of units that matter alike
INTERACTIONS = 10.0 ** np.arange(-3.0, 4.0)  # c
EFFECTS = np.append(0.0, 10.0 ** np.arange(-3.0, 3.0, 0.5))  # a
FREE = 1e4  # prior variance of what β adds, in units of the noise's
UNLIKELY = 0.01  # grid points of less probability are dropped


@dataclass(frozen=True, eq=False)
class Residuals:
    """What a classifier said of subsets of a text, against what a fit predicts."""

    present: BoolArray  # (n_rows, n_units) neither all nor none
    values: FloatArray  # (n_rows, n_columns) answers less `predicted`
    predicted: FloatArray  # (n_rows, n_columns) by the fit without that row
    ends: FloatArray  # (2, n_columns) what the fit predicts of the empty and of the full text
    of_ends: FloatArray  # (2, n_columns) the answers to both, less that
    shapley: FloatArray  # (n_units, n_columns) the fit's Shapley values


@dataclass(frozen=True, eq=False)
class Posterior:
    """What the answers say beyond a fit."""

    shares: Shares  # of Shapley values
    correction: Correction  # of predictions
    left_out: FloatArray  # (n_rows, n_columns) residuals of corrected predictions, leave-one-out


def posterior_of(residuals: Residuals) -> Posterior:
    parts = _Components.of(residuals)
    rows = parts.residuals
    if (rows**2).sum(axis=0).max(initial=0.0) <= NOTHING * len(rows):
        open_ = np.zeros_like(residuals.shapley)
        shares = Shares(parts.shared, open_, np.ones(rows.shape[1]))
        return Posterior(shares, parts.correction([]), rows)
    grid = _likely(parts)
    left_out = sum(weight * point.left_out(at) for weight, point, at in grid)
    return Posterior(_shares(parts, grid), parts.correction(grid), np.asarray(left_out))


Grid = list[tuple[float, "_GridPoint", int]]  # probability, a c with its posterior, number of an a


def _shares(parts: "_Components", grid: Grid) -> Shares:
    """The mean over the grid, and the variance within its points and between them."""
    weights = np.array([weight for weight, _, _ in grid])
    read = [point.shapley(at) for _, point, at in grid]
    means = np.stack([mean for mean, _ in read])  # (n_points, n_units, n_columns)
    mean = np.tensordot(weights, means, axes=1)
    within = np.stack([variance for _, variance in read])
    variance = np.tensordot(weights, within + (means - mean) ** 2, axes=1)
    noise = weights @ np.stack([point.noise[at] for _, point, at in grid])
    left = noise / np.maximum((parts.residuals**2).mean(axis=0), NOTHING)
    return Shares(parts.shared + mean, variance, np.minimum(left, 1.0))


@dataclass(frozen=True, eq=False)
class _Components:
    """Residuals less the line between the ends, and the covariances that may explain them.

    The fit's and the effects' are given by their roots: of rows, and of Shapley values.
    """

    given: Residuals
    residuals: FloatArray  # (n_rows, n_columns)
    share: FloatArray  # (n_units,) of each unit in the line
    scale: float  # of the fit's root
    fit: tuple[FloatArray, FloatArray]  # (n_rows, n_columns), (n_units, n_columns)
    effects: tuple[FloatArray, FloatArray]  # (n_rows, n_units), (n_units, n_units)
    interactions: "_Interactions"

    @classmethod
    def of(cls, given: Residuals) -> "_Components":
        strength = np.sqrt((given.shapley**2).sum(axis=1))
        mean = float(strength.mean())
        matter = strength / mean if mean > 0 else np.ones_like(strength)
        spread = (matter + LEAST_EFFECT) ** 2
        share = spread / spread.sum()
        present = given.present.astype(np.float64)
        line = (present @ share)[:, None]
        rows = given.predicted - given.ends[0] - line * _rise(given.ends)
        scale = float(np.sqrt(FREE * len(rows) / max(float((rows**2).sum()), NOTHING)))
        return cls(
            given,
            given.values - given.of_ends[0] - line * _rise(given.of_ends),
            share,
            scale,
            (scale * rows, scale * (given.shapley - np.outer(share, _rise(given.ends)))),
            _effects(present, spread),
            _Interactions.of(present, matter),
        )

    @property
    def shared(self) -> FloatArray:
        """(n_units, n_columns) the line: what the ends leave, shared out."""
        return np.outer(self.share, _rise(self.given.of_ends))

    def correction(self, grid: Grid) -> Correction:
        """The posterior mean, for any subset."""
        given, none = self.given, np.zeros_like(self.residuals)
        solved, by_a, by_c = none, none, none
        for weight, point, at in grid:
            own = weight * point.solved(at)
            solved, by_a, by_c = solved + own, by_a + EFFECTS[at] * own, by_c + point.c * own
        slopes = self.scale * self.fit[0].T @ solved
        effects = self.effects[1] @ (self.effects[0].T @ by_a)
        points, weights = self.interactions.weights(given.present.astype(np.float64), by_c)
        return Correction(
            given.of_ends[0] - given.ends[0] @ slopes,
            slopes,
            self.shared + effects - np.outer(self.share, _rise(given.ends) @ slopes),
            self.interactions.rates,
            points > 0,
            weights,
        )


def _rise(ends: FloatArray) -> FloatArray:
    return np.asarray(ends[1] - ends[0])


def _effects(present: FloatArray, spread: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Roots for independent effects given that their sum is 0; rows vary by 1 on average."""
    root = np.diag(np.sqrt(spread)) - np.outer(spread, np.sqrt(spread)) / spread.sum()
    rows = present @ root
    size = np.sqrt(max(float((rows**2).sum(axis=1).mean()), NOTHING))
    return rows / size, root / size


@dataclass(frozen=True, eq=False)
class _Interactions:
    """q given that it is 0 at both ends; rows vary by 1 on average."""

    rates: FloatArray  # (n_units,) λ
    size: float  # the mean variance of rows that was divided by
    rows: FloatArray  # (n_rows, n_rows) covariances of rows
    with_shapley: FloatArray  # (n_rows, n_units) covariances of rows with Shapley values
    of_shapley: FloatArray  # (n_units,) variances of Shapley values

    @classmethod
    def of(cls, present: FloatArray, matter: FloatArray) -> "_Interactions":
        n_units = present.shape[1]
        rates = REACH / n_units * (matter + LEAST_INTERACTION)
        ends = _ends(n_units)
        known, values = subset_kernel(ends, ends, rates), shapley_of_kernel(ends, rates)
        towards = subset_kernel(present, ends, rates) @ np.linalg.inv(known)  # (n_rows, 2)
        rows = subset_kernel(present, present, rates) - towards @ known @ towards.T
        with_shapley = shapley_of_kernel(present, rates) - towards @ values
        fixed = (values * np.linalg.solve(known, values)).sum(axis=0)
        size = max(float(rows.diagonal().mean()), NOTHING)
        of_shapley = (shapley_variances(rates) - fixed) / size
        return cls(rates, size, rows / size, with_shapley / size, of_shapley)

    def weights(self, present: FloatArray, solved: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Points and their weights in the sum of kernels that is the posterior mean of q."""
        ends = _ends(present.shape[1])
        known = subset_kernel(ends, ends, self.rates)
        towards = np.linalg.solve(known, subset_kernel(ends, present, self.rates))
        return np.vstack([ends, present]), np.vstack([-towards @ solved, solved]) / self.size


def _ends(n_units: int) -> FloatArray:
    """The empty and the full text."""
    return np.stack([np.zeros(n_units), np.ones(n_units)])


@dataclass(frozen=True, eq=False)
class _GridPoint:
    """The posterior under one c and every a.

    The covariance of rows is L (I + a AAᵀ) Lᵀ, with AᵀA diagonal in coordinates of its own.
    """

    parts: _Components
    c: float
    root: FloatArray  # (n_rows, n_rows) L, lower
    residuals: FloatArray  # (n_rows, n_columns) whitened: L⁻¹ times them
    effects: FloatArray  # (n_rows, n_units) A: whitened roots, turned to the axes
    axes: FloatArray  # (n_units, n_units)
    values: FloatArray  # (n_units,) AᵀA

    @classmethod
    def of(cls, parts: _Components, c: float) -> "_GridPoint":
        rows = np.multiply(parts.interactions.rows, c)
        rows += parts.fit[0] @ parts.fit[0].T
        diagonal_of(rows)[:] += 1.0
        root = root_of(rows)
        assert root is not None  # 1 on the diagonal is enough
        effects = _whitened(root, parts.effects[0])
        values, axes = np.linalg.eigh(effects.T @ effects)
        residuals = _whitened(root, parts.residuals)
        return cls(parts, c, root, residuals, effects @ axes, axes, np.maximum(values, 0.0))

    @cached_property
    def shrunk(self) -> FloatArray:
        """(n_a, n_units) a / (1 + a AᵀA)."""
        return np.asarray(EFFECTS[:, None] / (1.0 + EFFECTS[:, None] * self.values))

    @cached_property
    def squares(self) -> FloatArray:
        """(n_a, n_columns) of the residuals, in units of their covariance."""
        left = (self.residuals**2).sum(axis=0)
        left = left - self.shrunk @ (self.effects.T @ self.residuals) ** 2
        return np.asarray(np.maximum(left, NOTHING))

    @property
    def noise(self) -> FloatArray:
        """(n_a, n_columns) the posterior mean of its variance, log σ uniform."""
        return self.squares / max(len(self.residuals) - 2, 1)

    @cached_property
    def log_likelihoods(self) -> FloatArray:
        """(n_a,)"""
        volume = 2 * np.log(self.root.diagonal()).sum()
        volume = volume + np.log1p(EFFECTS[:, None] * self.values).sum(axis=1)
        fit = len(self.residuals) * np.log(self.squares).mean(axis=1)
        return np.asarray(-0.5 * (volume + fit) * independent(self.parts.residuals))

    @cached_property
    def unwhitened(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """L⁻ᵀ times residuals and effects, and the squares of L⁻¹ summed over its rows."""
        from scipy.linalg.lapack import dtrtri

        inverse = np.tril(dtrtri(self.root, lower=1)[0])  # above it root_of leaves leftovers
        squares = np.einsum("ij,ij->j", inverse, inverse)
        return inverse.T @ self.residuals, inverse.T @ self.effects, squares

    def solved(self, at: int) -> FloatArray:
        """(n_rows, n_columns) the inverse covariance times the residuals."""
        residuals, effects, _ = self.unwhitened
        pulls = self.shrunk[at][:, None] * (self.effects.T @ self.residuals)
        return np.asarray(residuals - effects @ pulls)

    def left_out(self, at: int) -> FloatArray:
        """(n_rows, n_columns) each residual less its mean given all others."""
        _, effects, squares = self.unwhitened
        diagonal = squares - effects**2 @ self.shrunk[at]
        return np.asarray(self.solved(at) / diagonal[:, None])

    @cached_property
    def with_shapley(self) -> FloatArray:
        """(n_rows, n_units) whitened covariances of rows with Shapley values, ψ aside."""
        parts = self.parts
        covariances = self.c * parts.interactions.with_shapley + parts.fit[0] @ parts.fit[1].T
        return _whitened(self.root, covariances)

    @cached_property
    def along(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Along the axes: effects on Shapley values, residuals, and `with_shapley`."""
        effects = self.parts.effects[1] @ self.axes  # (n_units, n_units)
        return effects, self.effects.T @ self.residuals, self.effects.T @ self.with_shapley

    @cached_property
    def squares_of_rows(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """(n_units,) of `with_shapley`, of what ψ adds for a = 1, and twice their product."""
        effects, _, turned = self.along
        mixed = 2.0 * (effects * turned.T).sum(axis=1)
        return (self.with_shapley**2).sum(axis=0), effects**2 @ self.values, mixed

    def shapley(self, at: int) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of the Shapley values under the a of this number.

        The whitened covariance of rows with Shapley values is W + a A Eᵀ: products over rows
        are the same for every a.
        """
        parts, a, shrunk = self.parts, float(EFFECTS[at]), self.shrunk[at][:, None]
        effects, residuals, turned = self.along
        turned = turned + a * self.values[:, None] * effects.T  # (n_units, n_units)
        mean = self.with_shapley.T @ self.residuals + a * effects @ residuals
        mean -= turned.T @ (shrunk * residuals)
        before = self.c * parts.interactions.of_shapley + (parts.fit[1] ** 2).sum(axis=1)
        before = before + a * (effects**2).sum(axis=1)
        own, added, mixed = self.squares_of_rows
        known = own + a * mixed + a**2 * added - (shrunk * turned**2).sum(axis=0)
        return mean, np.outer(np.maximum(before - known, 0.0), self.noise[at])


def _whitened(root: FloatArray, rows: FloatArray) -> FloatArray:
    return halved(root, rows)


def _likely(parts: _Components) -> Grid:
    """The likely points of the grid; each c that is looked at is computed once."""
    points: dict[int, _GridPoint] = {}

    def log_likelihoods(at: int) -> FloatArray:
        if at not in points:
            points[at] = _GridPoint.of(parts, float(INTERACTIONS[at]))
        return points[at].log_likelihoods

    return [(weight, points[c], a) for weight, c, a in likely_points(log_likelihoods)]


def likely_points(
    log_likelihoods: Callable[[int], FloatArray],
) -> list[tuple[float, int, int]]:
    """Probabilities and numbers of c and a: uphill in c from the middle of the grid.

    `log_likelihoods` has those of every a, given the number of a c.
    """
    best, top = -1, len(INTERACTIONS) // 2
    seen: dict[int, FloatArray] = {}
    while top != best:
        best = top
        near = [at for at in (best, best - 1, best + 1) if 0 <= at < len(INTERACTIONS)]
        seen |= {at: log_likelihoods(at) for at in near if at not in seen}
        top = max(near, key=lambda at: float(seen[at].max()))
    most = float(seen[best].max())
    grid = [
        (float(np.exp(likelihood - most)), c, a)
        for c, likelihoods in seen.items()
        for a, likelihood in enumerate(likelihoods)
    ]
    total = sum(probability for probability, _, _ in grid)
    likely = [point for point in grid if point[0] > UNLIKELY * total]
    total = sum(probability for probability, _, _ in likely)
    return [(probability / total, c, a) for probability, c, a in likely]
