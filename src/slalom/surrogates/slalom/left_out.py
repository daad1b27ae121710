"""What a fit would say of a row had it not seen it, without refitting.

With H = JᵀΠJ + R at the optimum, split into what is linear and the importances (problem.py):

    leverage of row n       h = π_n (x_nᵀ G⁻¹ x_n + b̃_nᵀ S⁻¹ b̃_n)      b̃ = b − Cᵀ G⁻¹ x
    leave-one-out residual  (1 − h)⁻¹ r_n            a matrix where several columns share s

There is no floor under 1 − h: a row that no other row speaks of has a leverage near 1 and a
residual near 0, and their ratio is what the prior says of it.

A linearised fit predicts what other ridges would do: one Gauss–Newton step of all
parameters under them, and the leave-one-out error of that linear problem.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from slalom.document import BoolArray, FloatArray
from slalom.errors import ClassifierError
from slalom.surrogates.slalom.cholesky import (
    cholesky,
    diagonal_of,
    solve_lower,
    solve_lower_transposed,
    solved,
    stacked,
)
from slalom.surrogates.slalom.curvature import Curvature, Eliminated, Slopes, slope_of, slopes_of
from slalom.surrogates.slalom.problem import Problem, Ridges, State, factor_of


@dataclass(frozen=True, eq=False)
class LeftOut:
    """Leave-one-out residuals, and what they were computed from."""

    residuals: FloatArray  # (n, n_columns)
    system: Curvature
    reduced: FloatArray  # (n_columns, k, n) b̃
    root: FloatArray  # (k, k) lower, S = root rootᵀ
    rows: FloatArray  # (k + n_fixed, n) L⁻¹ Xᵀ, G = LLᵀ
    turned: FloatArray  # (n_columns, k, n) root⁻¹ b̃


@dataclass(frozen=True, eq=False)
class Linearised:
    """A model that is linear in all parameters, near a state: J = [X, B]."""

    problem: Problem
    state: State
    ridges: Ridges  # under which the state was found

    @cached_property
    def design(self) -> FloatArray:
        """Xᵀ: (k + n_fixed, n)."""
        return np.vstack([self.state.attention.transposed(), self.problem.fixed.T])

    @cached_property
    def slopes(self) -> FloatArray:
        """Bᵀ: (n_columns, k, n)."""
        n_columns = self.problem.scores.shape[1]
        return stacked([slope_of(self.state, column).transposed() for column in range(n_columns)])

    @cached_property
    def products(self) -> Slopes:
        return slopes_of(self.problem, self.state)

    @cached_property
    def left_out(self) -> LeftOut:
        """Every row judged by all others."""
        system = self._own.system(self.problem, self.state, self.ridges)
        root = positive_root(system.schur)
        return self._judged(system, root, self.state.residuals, slice(None))

    @cached_property
    def error(self) -> float:
        return judge(self.problem, self.left_out.residuals)

    def forecast(self, ridges: Ridges) -> float:
        """The leave-one-out error after a step to the optimum under other ridges.

        A sample of the rows says by which factor the error changes: the same rows are good or bad
        before and after, so that few of them tell.
        """
        problem, state = self.problem, self.state
        rows = problem.sample
        weights = problem.weights[rows]
        before = _mean_square(weights, self.left_out.residuals[rows])
        if before == 0.0:
            return self.error
        same = np.array_equal(ridges.linear, self.ridges.linear)
        left = (
            self._own
            if same  # only those of the importances changed
            else Eliminated.of(self.products, factor_of(state.gram, ridges.linear))
        )
        system = left.system(problem, state, ridges)
        shift = np.vstack([state.values - problem.prior, state.effects])
        pulls = self._downhill - ridges.linear[:, None] * shift
        through = zip(system.half, solve_lower(system.lower, pulls).T, strict=True)
        gradient = system.gradient - sum(half.T @ pull for half, pull in through)
        root = positive_root(system.schur)
        step = solved(root, gradient)
        linear = solved(system.lower, pulls - (self.products.crossed @ step).T)
        moved = self.design[:, rows].T @ linear + (step @ self.slopes[:, :, rows]).T
        after = self._judged(system, root, state.residuals[rows] - moved, rows)
        return self.error * _mean_square(weights, after.residuals) / before

    @cached_property
    def _own(self) -> Eliminated:
        return Eliminated.of(self.products, self.state.lower)

    @cached_property
    def _downhill(self) -> FloatArray:
        """XᵀΠr: (k + n_fixed, n_columns)."""
        return self.design @ (self.state.residuals * self.problem.weights[:, None])

    def _judged(
        self,
        system: Curvature,
        root: FloatArray,
        residuals: FloatArray,
        at: slice | NDArray[np.intp],
    ) -> LeftOut:
        rows = solve_lower(system.lower, self.design[:, at])
        reduced = self.slopes[:, :, at] - stacked([half.T @ rows for half in system.half])
        own = np.einsum("kn,kn->n", rows, rows)
        turned = stacked([solve_lower(root, part) for part in reduced])  # (n_columns, k, n)
        weights = self.problem.weights[at]
        if len(turned) == 1:
            through = np.einsum("kn,kn->n", turned[0], turned[0])
            left = residuals / (1.0 - weights * (own + through))[:, None]
        else:
            one = np.eye(len(turned))
            across = np.einsum("ckn,dkn->ncd", turned, turned, optimize=True)
            kept = one - weights[:, None, None] * (own[:, None, None] * one + across)
            left = np.linalg.solve(kept, residuals[:, :, None])[:, :, 0]
        return LeftOut(np.asarray(left), system, reduced, root, rows, turned)


def judge(problem: Problem, residuals: FloatArray) -> float:
    """The weighted mean square over the rows that are judged."""
    judged = slice(None) if problem.judged is None else problem.judged
    return _mean_square(problem.weights[judged], residuals[judged])


def _mean_square(weights: FloatArray, residuals: FloatArray) -> float:
    if not len(weights):
        return 0.0
    return float(weights @ (residuals**2).sum(axis=1) / weights.sum())


def shift_without(
    left: LeftOut, state: State, fold: BoolArray, *, weights: FloatArray
) -> FloatArray:
    """(k,) how far the importances move without some rows, were the model linear.

    As for one row, the residuals without them are (1 − h)⁻¹ r; columns are taken one by one.
    """
    rows, weights = left.rows[:, fold], weights[fold]
    own, one = rows.T @ rows, np.eye(len(weights), dtype=rows.dtype)
    pulls = np.zeros((len(left.root), 1), rows.dtype)
    for turned, residuals in zip(left.turned[:, :, fold], state.residuals[fold].T, strict=True):
        leverages = (own + turned.T @ turned) * weights
        pulls[:, 0] -= turned @ (weights * np.linalg.solve(one - leverages, residuals))
    return solve_lower_transposed(left.root, pulls)[:, 0]


def left_out(problem: Problem, state: State, ridges: Ridges) -> LeftOut:
    """Every row judged by all others, from one factorisation."""
    return Linearised(problem, state, ridges).left_out


def positive_root(schur: FloatArray) -> FloatArray:
    """Cholesky's lower root; Gauss–Newton's S has one, but for rounding."""
    largest = 1.0 + float(np.abs(schur.diagonal()).max())
    for jitter in (0.0, *10.0 ** np.arange(-12, 3)):
        padded = schur.copy()
        diagonal_of(padded)[:] += jitter * largest
        root = cholesky(padded)
        if root is not None:
            return root
    raise ClassifierError("the answers are too large or too odd for a fit: look at the scores")
