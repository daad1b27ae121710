"""What a fit would say of a row had it not seen it, without refitting.

With H = JᵀΠJ + R at the optimum, split into what is linear and the importances (problem.py):

    leverage of row n       h = π_n (x_nᵀ G⁻¹ x_n + b̃_nᵀ S⁻¹ b̃_n)      b̃ = b − Cᵀ G⁻¹ x
    leave-one-out residual  (1 − h)⁻¹ r_n            a matrix where several columns share s

There is no floor under 1 − h: a row that no other row speaks of has a leverage near 1 and a
residual near 0, and their ratio is what the prior says of it.
"""

from dataclasses import dataclass

import numpy as np

from slalom.document import FloatArray
from slalom.surrogates.slalom.problem import Curvature, Problem, Ridges, State, curvature, slope_of


@dataclass(frozen=True, eq=False)
class LeftOut:
    """Leave-one-out residuals, and what they were computed from."""

    residuals: FloatArray  # (n, n_columns)
    system: Curvature
    reduced: FloatArray  # (n_columns, n, k) b̃
    root: FloatArray  # (k, k) lower, S = root rootᵀ


def left_out(problem: Problem, state: State, ridges: Ridges) -> LeftOut:
    """Every row judged by all others, from one factorisation."""
    from scipy.linalg import solve_triangular

    system = curvature(problem, state, ridges)
    design = np.hstack([state.attention.dense(), problem.fixed])
    lower = state.factor[0]
    rows = solve_triangular(lower, design.T, lower=True, check_finite=False)
    own = (rows**2).sum(axis=0)
    reduced = np.stack(
        [slope_of(state, c).dense() - rows.T @ half for c, half in enumerate(system.half)]
    )
    root = root_of(system.schur)
    turned = np.stack(
        [solve_triangular(root, part.T, lower=True, check_finite=False) for part in reduced]
    )  # (n_columns, k, n)
    through = np.einsum("ckn,dkn->ncd", turned, turned, optimize=True)
    one = np.eye(len(turned))
    left = one - problem.weights[:, None, None] * (own[:, None, None] * one + through)
    if len(one) == 1:
        residuals = state.residuals / left[:, 0]
    else:
        residuals = np.linalg.solve(left, state.residuals[:, :, None])[:, :, 0]
    return LeftOut(np.asarray(residuals), system, reduced, root)


def root_of(schur: FloatArray) -> FloatArray:
    """Cholesky's lower root; Gauss–Newton's S has one, but for rounding."""
    jitter = 0.0
    while True:
        try:
            return np.asarray(np.linalg.cholesky(schur + jitter * np.eye(len(schur))), np.float64)
        except np.linalg.LinAlgError:
            jitter = max(10 * jitter, 1e-12 * (1.0 + float(np.abs(schur.diagonal()).max())))
