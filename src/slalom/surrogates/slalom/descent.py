"""Damped Newton steps over the importances, ridges fixed, the rest eliminated.

Far from the optimum the true second derivatives are those of a function that is not convex,
and a step that heeds them is short: Gauss–Newton's comes within a hundredth in three or four.
Near it, where residuals bend what is left, true ones arrive in two and Gauss–Newton in ten.
"""

import numpy as np

from slalom.surrogates.slalom.cholesky import diagonal_of, root_of, solved
from slalom.surrogates.slalom.problem import Problem, Ridges, State, curvature, project

STEP_BOUND = 2.0
NEAR = 0.03  # relative fall of the objective below which true second derivatives take over
LEAST = 1e-14  # what a step promises, of the objective, below which it is not worth taking


def descend(
    problem: Problem,
    state: State,
    ridges: Ridges,
    *,
    n_steps: int,
    tolerance: float,
    near: bool = True,
) -> State:
    """Downhill only, until the objective falls by less than `tolerance` of itself.

    `near`: the state is the optimum under similar ridges.
    """
    damping = 1e-3
    for _ in range(n_steps):
        before = state.objective
        state, damping = step_down(problem, state, ridges, damping=damping, full=near)
        fall = before - state.objective
        if fall <= tolerance * before:
            break
        near = near or fall <= NEAR * before
    return state


def step_down(
    problem: Problem, state: State, ridges: Ridges, *, damping: float, full: bool
) -> tuple[State, float]:
    """One step that goes down, and the damping for the next; the same state if none does."""
    system = curvature(problem, state, ridges, full=full)
    scale = np.abs(system.schur.diagonal()) + 1e-12
    while damping < 1e12:
        damped = system.schur.copy()
        diagonal_of(damped)[:] += damping * scale
        root = root_of(damped)
        if root is None:  # not convex here: lean towards steepest descent
            damping *= 10
            continue
        step = solved(root, system.gradient)
        if step @ system.gradient <= LEAST * state.objective:
            break  # nothing is left to gain but rounding
        moved = problem.in_gauge(state.importances + step.clip(-STEP_BOUND, STEP_BOUND))
        trial = project(problem, moved, ridges)
        if trial.objective < state.objective:
            return trial, max(damping / 10, 1e-10)
        damping *= 10
    return state, 1e-3
