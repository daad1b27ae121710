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

from slalom.document import BoolArray, FloatArray
from slalom.errors import ClassifierError
from slalom.surrogates.slalom.cholesky import (
    diagonal_of,
    halved,
    halved_back,
    root_of,
    solved,
    stacked,
)
from slalom.surrogates.slalom.problem import (
    Curvature,
    Problem,
    Ridges,
    Slopes,
    State,
    eliminated,
    factor_of,
    slope_of,
    slopes_of,
)


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

    def left_out(self, ridges: Ridges) -> LeftOut:
        """Every row judged by all others, where the state was found under these ridges."""
        system = self._system(ridges, self.state.lower)
        root, residuals = positive_root(system.schur), self.state.residuals
        return self._judged(system, ridges, root=root, residuals=residuals)

    def predicted_residuals(self, ridges: Ridges) -> FloatArray:
        """(n, n_columns) leave-one-out residuals after a step to the optimum under others."""
        problem, state = self.problem, self.state
        system = self._system(ridges, factor_of(state.gram, ridges.linear))
        shift = np.vstack([state.values - problem.prior, state.effects])
        pulls = self.design @ (state.residuals * problem.weights[:, None])
        pulls -= ridges.linear[:, None] * shift
        through = zip(system.half, halved(system.lower, pulls).T, strict=True)
        gradient = system.gradient - sum(half.T @ pull for half, pull in through)
        root = positive_root(system.schur)
        step = solved(root, gradient)
        linear = solved(system.lower, pulls - (self.products.crossed @ step).T)
        moved = self.design.T @ linear + (step @ self.slopes).T
        left = state.residuals - moved
        return self._judged(system, ridges, root=root, residuals=left).residuals

    def _system(self, ridges: Ridges, lower: FloatArray) -> Curvature:
        return eliminated(self.problem, self.state, ridges, slopes=self.products, lower=lower)

    @cached_property
    def _known(self) -> dict[bytes, tuple[FloatArray, FloatArray]]:
        return {}

    def _reduced(self, system: Curvature, ridges: Ridges) -> tuple[FloatArray, FloatArray]:
        """L⁻¹ Xᵀ and b̃, kept: other ridges on the importances alone do not change them."""
        key = ridges.linear.tobytes()
        if key not in self._known:
            rows = halved(system.lower, self.design)
            reduced = self.slopes - stacked([half.T @ rows for half in system.half])
            self._known[key] = rows, reduced
        return self._known[key]

    def _judged(
        self, system: Curvature, ridges: Ridges, *, root: FloatArray, residuals: FloatArray
    ) -> LeftOut:
        rows, reduced = self._reduced(system, ridges)
        own = np.einsum("kn,kn->n", rows, rows)
        turned = stacked([halved(root, part) for part in reduced])  # (n_columns, k, n)
        weights = self.problem.weights
        if len(turned) == 1:
            through = np.einsum("kn,kn->n", turned[0], turned[0])
            left = residuals / (1.0 - weights * (own + through))[:, None]
        else:
            one = np.eye(len(turned))
            across = np.einsum("ckn,dkn->ncd", turned, turned, optimize=True)
            kept = one - weights[:, None, None] * (own[:, None, None] * one + across)
            left = np.linalg.solve(kept, residuals[:, :, None])[:, :, 0]
        return LeftOut(np.asarray(left), system, reduced, root, rows, turned)


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
    return halved_back(left.root, pulls)[:, 0]


def left_out(problem: Problem, state: State, ridges: Ridges) -> LeftOut:
    """Every row judged by all others, from one factorisation."""
    return Linearised(problem, state).left_out(ridges)


def positive_root(schur: FloatArray) -> FloatArray:
    """Cholesky's lower root; Gauss–Newton's S has one, but for rounding."""
    largest = 1.0 + float(np.abs(schur.diagonal()).max())
    for jitter in (0.0, *10.0 ** np.arange(-12, 3)):
        padded = schur.copy()
        diagonal_of(padded)[:] += jitter * largest
        root = root_of(padded)
        if root is not None:
            return root
    raise ClassifierError("the answers are too large or too odd for a fit: look at the scores")
