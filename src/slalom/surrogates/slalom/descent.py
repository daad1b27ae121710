"""Damped Newton steps over the importances, ridges fixed, the rest eliminated.

Far from the optimum the true second derivatives are those of a function that is not convex,
and a step that heeds them is short: Gauss–Newton's comes within a hundredth in three or four.
Near it, where residuals bend what is left, true ones arrive in two and Gauss–Newton in ten.

Where the optimum is close and a few digits of it are enough (a first trial, all rows but a fold),
Gauss–Newton's system is made once, and what the steps find out about it (s how far, y how the
gradient fell) turns it into a better one, BFGS's: a step takes a third of the time of Newton's.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from slalom.document import FloatArray
from slalom.surrogates.slalom.cholesky import cholesky, diagonal_of, solved
from slalom.surrogates.slalom.curvature import curvature, downhill
from slalom.surrogates.slalom.problem import Problem, Ridges, State, project

STEP_BOUND = 2.0
NEAR = 0.03  # relative fall of the objective below which another way down takes over
DAMPING = 1e-3  # of a first step
SHORTER, N_SHORTER = 0.3, 6  # of a step that went uphill, so many times at most
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
    damping = DAMPING
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
        root = cholesky(damped)
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
    return state, DAMPING


class Secant(NamedTuple):
    """What one step found out."""

    step: FloatArray  # (k,) s
    fall: FloatArray  # (k,) y, of the gradient

    @property
    def curved(self) -> bool:
        """Whether it tells anything: upwards, beyond rounding."""
        size = float(np.linalg.norm(self.step) * np.linalg.norm(self.fall))
        return float(self.step @ self.fall) > 1e-10 * size


def approach(
    problem: Problem, state: State, ridges: Ridges, *, n_steps: int, tolerance: float
) -> State:
    """From afar to a few digits: Gauss–Newton's steps as long as they lead far, then a slide."""
    damping = DAMPING
    for _ in range(n_steps):
        before = state.objective
        state, damping = step_down(problem, state, ridges, damping=damping, full=False)
        fall = before - state.objective
        if fall <= tolerance * before:
            return state
        if fall <= NEAR * before:
            break
    root = root_at(problem, state, ridges)
    return slide(problem, state, ridges, root=root, n_steps=n_steps, tolerance=tolerance)


def slide(
    problem: Problem,
    state: State,
    ridges: Ridges,
    *,
    root: FloatArray,
    n_steps: int,
    tolerance: float,
) -> State:
    """Downhill from close by; `root` is a system's, of this place or one like it."""
    gradient = downhill(problem, state, ridges)
    secants: list[Secant] = []
    for _ in range(n_steps):
        step = _turned(root, secants, gradient)
        moved = _moved(problem, state, ridges, step)
        if moved is None:
            break
        below = downhill(problem, moved, ridges)
        secant = Secant(moved.importances - state.importances, gradient - below)
        fall = state.objective - moved.objective
        settled = fall <= tolerance * state.objective
        state, gradient = moved, below
        if settled:
            break
        secants += [secant] if secant.curved else []
    return state


def root_at(problem: Problem, state: State, ridges: Ridges) -> FloatArray:
    """Cholesky's, of Gauss–Newton's system, which is convex but for rounding."""
    schur = curvature(problem, state, ridges).schur
    scale, damping = np.abs(schur.diagonal()) + 1e-12, DAMPING
    while True:
        damped = schur.copy()
        diagonal_of(damped)[:] += damping * scale
        root = cholesky(damped)
        if root is not None:
            return root
        damping *= 10


def _turned(root: FloatArray, secants: Sequence[Secant], gradient: FloatArray) -> FloatArray:
    """BFGS's step: the first system's, as corrected by every secant since."""
    left, shares = gradient, []
    for step, fall in reversed(secants):
        shares.append((step @ left) / (step @ fall))
        left = left - shares[-1] * fall
    turned = solved(root, left)
    for (step, fall), share in zip(secants, reversed(shares), strict=True):
        turned = turned + (share - (fall @ turned) / (step @ fall)) * step
    return turned


def _moved(problem: Problem, state: State, ridges: Ridges, step: FloatArray) -> State | None:
    """Where the step, or a shorter one, leads down; None: nowhere."""
    for _ in range(N_SHORTER):
        bounded = step.clip(-STEP_BOUND, STEP_BOUND)
        trial = project(problem, problem.in_gauge(state.importances + bounded), ridges)
        if trial.objective < state.objective:
            return trial
        step = SHORTER * step
    return None
