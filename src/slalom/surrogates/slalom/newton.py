"""The least-squares problem behind a SLALOM, and Newton's way to its optimum.

With A the attention of every query (the anchor, if any, is the last column), E fixed columns (the
length curve's, if any), Π the weights, and parameters u, e, s:

    minimise  Σ_k π_k (A(s) v(u) + E e − y)²  +  Σ ρ (u − ū)²  +  Σ ρ (s − s̄)²  +  Σ ρ e²

for all classes together, which share s. Values are u themselves, or bounded functions of u. Only
differences of s matter: those of the words have mean 0.

Steps are over all parameters, classes eliminated one by one. With a = Av,

    K₀ = AᵀΠA      K₁ = Aᵀ diag(Πa) A      K₂ = Aᵀ diag(Πa²) A

give all products of first derivatives (A ∘ (v − a) by s); Π less the residuals' pull in the last
two makes them the true second derivatives, which arrive in a few steps once they are near.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from slalom.document import BoolArray, FloatArray
from slalom.errors import ClassifierError
from slalom.surrogates.linalg import cholesky, diagonal_of, solve_lower, solve_lower_transposed
from slalom.surrogates.rows import Rows

STEP_BOUND = 2.0  # of any parameter


@dataclass(frozen=True)
class Free:
    """Values may be anything: they are the parameters."""

    def of(self, latent: FloatArray) -> FloatArray:
        return latent

    def slopes(self, latent: FloatArray) -> FloatArray:
        return np.ones_like(latent)

    def curvatures(self, latent: FloatArray) -> FloatArray:
        return np.zeros_like(latent)


@dataclass(frozen=True, eq=False)
class Bounded:
    """v = middle + reach tanh u"""

    middle: FloatArray  # (n_classes,)
    reach: FloatArray  # (n_classes,)

    def of(self, latent: FloatArray) -> FloatArray:
        return np.asarray(self.middle + self.reach * np.tanh(latent))

    def slopes(self, latent: FloatArray) -> FloatArray:
        return np.asarray(self.reach / np.cosh(latent) ** 2)

    def curvatures(self, latent: FloatArray) -> FloatArray:
        return np.asarray(-2.0 * np.tanh(latent) * self.slopes(latent))

    def latent(self, values: FloatArray) -> FloatArray:
        """The inverse of `of`, for prior means: at most 0.9 of the reach away."""
        return np.asarray(np.arctanh(((values - self.middle) / self.reach).clip(-0.9, 0.9)))


@dataclass(frozen=True, eq=False)
class Ridges:
    """ρ of each parameter, in the objective's own unit."""

    values: FloatArray  # (k,)
    importances: FloatArray  # (k,)
    fixed: FloatArray  # (q,)


@dataclass(frozen=True, eq=False)
class Problem:
    counts: Rows  # (n, k)
    scores: FloatArray  # (n, n_classes)
    weights: FloatArray  # (n,) π
    values: Free | Bounded  # from parameters to values, elementwise
    centre: FloatArray  # (k, n_classes) ū
    prior_importances: FloatArray  # (k,) s̄; the anchor's is where it begins
    ridges: Ridges
    fixed: FloatArray  # (n, q) E
    anchored: bool = False
    pinned: bool = False  # the anchor's value is known: its ū

    @property
    def n_features(self) -> int:
        return self.counts.shape[1] - self.anchored

    @cached_property
    def fixed_gram(self) -> FloatArray:
        return np.asarray((self.fixed.T * self.weights) @ self.fixed)

    def slopes(self, point: "Point") -> FloatArray:
        """(k, n_classes) of values by u."""
        slopes = self.values.slopes(point.latent)
        if self.pinned:
            slopes[-1] = 0.0
        return slopes

    def start(self) -> "Point":
        """Where the ridges pull to."""
        effects = np.zeros((self.fixed.shape[1], self.scores.shape[1]))
        return self.at(self.centre, effects, self.prior_importances)

    def at(self, latent: FloatArray, effects: FloatArray, importances: FloatArray) -> "Point":
        importances = importances - importances[: self.n_features].mean()
        attention, values = attention_of(self.counts, importances), self.values.of(latent)
        attended, ridges = attention.apply(values), self.ridges
        residuals = self.scores - attended
        if effects.size:
            residuals -= self.fixed @ effects
        objective = (
            float(self.weights @ (residuals**2).sum(axis=1))
            + float(ridges.values @ ((latent - self.centre) ** 2).sum(axis=1))
            + float(ridges.importances @ (importances - self.prior_importances) ** 2)
            + float(ridges.fixed @ (effects**2).sum(axis=1))
        )
        return Point(
            latent, effects, importances, values, attention, attended, residuals, objective
        )

    def at_point(self, point: "Point") -> "Point":
        """The parameters of another problem's point, as this one judges them."""
        return self.at(point.latent, point.effects, point.importances)

    def rows(self, kept: BoolArray) -> "Problem":
        """The same of some rows, which weigh together what all do."""
        weights = self.weights[kept]
        return replace(
            self,
            counts=Rows.of(self.counts.dense()[kept]),
            scores=self.scores[kept],
            weights=weights * (self.weights.sum() / (weights.sum() or 1.0)),
            fixed=self.fixed[kept],
        )


@dataclass(frozen=True, eq=False)
class Point:
    """Parameters, and what they say of the rows."""

    latent: FloatArray  # (k, n_classes) u
    effects: FloatArray  # (q, n_classes) e
    importances: FloatArray  # (k,) those of the words have mean 0
    values: FloatArray  # (k, n_classes)
    attention: Rows  # (n, k)
    attended: FloatArray  # (n, n_classes)
    residuals: FloatArray  # (n, n_classes)
    objective: float


def attention_of(counts: Rows, importances: FloatArray) -> Rows:
    """Each query's softmax over what it shows."""
    mass = counts.scale_columns(np.exp(importances - importances.max()))
    total = mass.sums()
    return mass.scale_rows(1.0 / np.where(total > 0, total, 1.0))


@dataclass(frozen=True, eq=False)
class System:
    """Half the second derivatives of the objective, by class and for the importances."""

    own: list[FloatArray]  # (k + q, k + q) each, of u and e
    crossed: list[FloatArray]  # (k + q, k) each, of u and e by s
    shared: FloatArray  # (k, k) of s
    downhill: FloatArray  # (n_classes, k + q) minus half the gradient, by u and e
    pull: FloatArray  # (k,) by s

    def factored(self, damping: float) -> "Factors | None":
        """None where it is not positive."""
        lowers, halves, shared = [], [], _raised(self.shared, damping)
        for own, crossed in zip(self.own, self.crossed, strict=True):
            lower = cholesky(_raised(own, damping))
            if lower is None:
                return None
            lowers.append(lower)
            halves.append(solve_lower(lower, crossed))
            shared -= halves[-1].T @ halves[-1]
        root = cholesky(shared)
        return None if root is None else Factors(lowers, halves, root)


@dataclass(frozen=True, eq=False)
class Factors:
    """Cholesky's, classes eliminated first."""

    lowers: list[FloatArray]
    halves: list[FloatArray]  # L⁻¹ times `crossed`
    root: FloatArray

    def solve(self, own: FloatArray, shared: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(n_classes, k + q, r) and (k, r) of right-hand sides → the same of solutions."""
        parts = [solve_lower(lower, right) for lower, right in zip(self.lowers, own, strict=True)]
        through = sum(half.T @ part for half, part in zip(self.halves, parts, strict=True))
        importances = solve_lower_transposed(self.root, solve_lower(self.root, shared - through))
        solved = [
            solve_lower_transposed(lower, part - half @ importances)
            for lower, half, part in zip(self.lowers, self.halves, parts, strict=True)
        ]
        return np.stack(solved), importances


def _raised(matrix: FloatArray, damping: float) -> FloatArray:
    raised = matrix.copy()
    diagonal = diagonal_of(raised)
    diagonal += damping * np.abs(diagonal) + 1e-12
    return raised


def descent_of(
    attention: Rows, values: FloatArray, attended: FloatArray, weighted: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Minus half the gradient of Σ π r² by v and by s, from π r: (n,), or (n, n_classes)."""
    by_value = attention.apply_transposed(weighted)
    return by_value, values * by_value - attention.apply_transposed(weighted * attended)


def system_at(problem: Problem, point: Point, *, full: bool) -> System:
    """Gauss–Newton's, or with `full` the true second derivatives."""
    attention, ridges, fixed = point.attention, problem.ridges, problem.fixed
    k, n_classes = point.values.shape
    slopes = problem.slopes(point)
    curvatures = problem.values.curvatures(point.latent) * (slopes != 0)
    gram = attention.gram(attention.scale_rows(problem.weights))
    with_fixed = attention.apply_transposed(problem.weights[:, None] * fixed)  # (k, q)
    linear = np.append(ridges.values, ridges.fixed)
    own, crossed, downhill = [], [], np.empty((n_classes, len(linear)))
    shared, pull = np.zeros((k, k)), np.zeros(k)
    for c in range(n_classes):
        level = point.values[:, c].mean()  # of which importances know nothing
        values, attended = point.values[:, c] - level, point.attended[:, c] - level
        left = problem.weights * point.residuals[:, c]
        once = problem.weights * attended
        by_fixed = with_fixed.T * values
        if fixed.size:
            by_fixed = by_fixed - attention.apply_transposed(once[:, None] * fixed).T
        twice = once * attended
        if full:
            once, twice = once - left, twice - 2 * left * attended
        first = attention.gram(attention.scale_rows(once))
        cross = gram * values - first
        shared += attention.gram(attention.scale_rows(twice))
        shared += values[:, None] * cross - first * values
        by_value, by_importance = descent_of(attention, values, attended, left)
        bend = np.empty((len(linear), len(linear)))
        bend[:k, :k] = gram * slopes[:, c] * slopes[:, c, None]
        bend[:k, k:] = slopes[:, c, None] * with_fixed
        bend[k:, :k] = bend[:k, k:].T
        bend[k:, k:] = problem.fixed_gram
        diagonal_of(bend)[:] += linear
        if full:
            diagonal_of(shared)[:] -= by_importance
            diagonal_of(cross)[:] -= by_value
            diagonal_of(bend)[:k] -= curvatures[:, c] * by_value
        own.append(bend)
        crossed.append(np.vstack([slopes[:, c, None] * cross, by_fixed]))
        downhill[c, :k] = slopes[:, c] * by_value
        downhill[c, :k] -= ridges.values * (point.latent - problem.centre)[:, c]
        downhill[c, k:] = fixed.T @ left - ridges.fixed * point.effects[:, c]
        pull += by_importance
    m, moved = problem.n_features, point.importances - problem.prior_importances
    pulled = ridges.importances * moved
    pull -= pulled
    pull[:m] += pulled.sum() / m
    shared += _ridge_on_centred(ridges.importances, m)
    return System(own, crossed, shared, downhill, pull)


def _ridge_on_centred(ridge: FloatArray, n_features: int) -> FloatArray:
    """(k, k) of ridges on s less the mean of the words', and one on that mean, which is free."""
    matrix = np.diag(ridge)
    matrix[:, :n_features] -= ridge[:, None] / n_features
    matrix[:n_features] -= ridge / n_features
    matrix[:n_features, :n_features] += (ridge.mean() + ridge.sum() / n_features) / n_features
    return matrix


def descend(problem: Problem, point: Point, tolerance: float = 1e-7, max_steps: int = 100) -> Point:
    """Damped steps, downhill only, until the objective falls by less than that share of itself.

    Second derivatives are true ones as soon as it falls by less than 3 %.
    """
    damping, full = 1e-3, False
    for _ in range(max_steps):
        system, enough = system_at(problem, point, full=full), tolerance * point.objective
        moved, expected = None, np.inf
        while moved is None and expected > enough and damping < 1e10:
            moved, expected = _moved(problem, point, system, damping)
            damping = damping * 10 if moved is None else max(damping / 10, 1e-9)
        if moved is None:
            break
        fall = point.objective - moved.objective
        point = moved
        if fall <= enough:
            break
        full = full or fall <= 0.03 * point.objective
    return point


def _moved(
    problem: Problem, point: Point, system: System, damping: float
) -> tuple[Point | None, float]:
    """Where a step leads, and how far down it should; None: nowhere, or not down."""
    factors = system.factored(damping)
    if factors is None:
        return None, np.inf
    linear, importances = factors.solve(system.downhill[:, :, None], system.pull[:, None])
    expected = float(np.vdot(system.downhill, linear) + np.vdot(system.pull, importances))
    k, linear = len(point.latent), linear[:, :, 0].T.clip(-STEP_BOUND, STEP_BOUND)
    moved = problem.at(
        point.latent + linear[:k],
        point.effects + linear[k:],
        point.importances + importances[:, 0].clip(-STEP_BOUND, STEP_BOUND),
    )
    return (moved if moved.objective < point.objective else None), expected


def gauss_newton(problem: Problem, point: Point) -> Factors:
    """Of sums of squares and ridges: positive, but for answers that overflow."""
    factors = system_at(problem, point, full=False).factored(0.0)
    if factors is None:
        raise ClassifierError(
            "the answers are too large or too irregular to fit: look at the classifier's scores"
        )
    return factors
