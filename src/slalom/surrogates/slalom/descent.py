"""Damped Newton steps over the importances, ridges fixed, the rest eliminated."""

import numpy as np

from slalom.surrogates.slalom.problem import Problem, Ridges, State, curvature, project

STEP_BOUND = 2.0


def descend(
    problem: Problem, state: State, ridges: Ridges, *, n_steps: int, tolerance: float
) -> State:
    """Downhill only, until the objective falls by less than `tolerance` of itself."""
    damping = 1e-3
    for _ in range(n_steps):
        before = state.objective
        state, damping = _step(problem, state, ridges, damping)
        if before - state.objective <= tolerance * before:
            break
    return state


def _step(problem: Problem, state: State, ridges: Ridges, damping: float) -> tuple[State, float]:
    """One step that goes down, and the damping for the next; the same state if none does."""
    from scipy.linalg import LinAlgError, cho_factor, cho_solve

    system = curvature(problem, state, ridges, full=True)
    scale = np.abs(system.schur.diagonal()) + 1e-12
    while damping < 1e12:
        try:
            factor = cho_factor(system.schur + np.diag(damping * scale), check_finite=False)
        except LinAlgError:  # not convex here: lean towards steepest descent
            damping *= 10
            continue
        step = cho_solve(factor, system.gradient, check_finite=False)
        moved = problem.in_gauge(state.importances + step.clip(-STEP_BOUND, STEP_BOUND))
        trial = project(problem, moved, ridges)
        if trial.objective < state.objective:
            return trial, max(damping / 10, 1e-10)
        damping *= 10
    return state, 1e-3
