"""Steps downhill for many documents at once: descent.py in torch.

Every document has its own damping and ends when it has arrived; the others go on.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from slalom.surrogates.slalom.descent import (
    DAMPING,
    LEAST,
    N_SHORTER,
    NEAR,
    SHORTER,
    STEP_BOUND,
)
from slalom.surrogates.slalom.on_device.problems import (
    Problems,
    Ridges,
    States,
    Tensor,
    curvatures,
    downhill,
    project,
)

MAX_DAMPING = 1e12


def descend(
    problems: Problems,
    states: States,
    ridges: Ridges,
    *,
    n_steps: int,
    tolerance: float,
    near: bool = True,
) -> States:
    """Downhill only, until the objectives fall by less than `tolerance` of themselves."""
    import torch

    damping = torch.full_like(states.objective, DAMPING)
    active = torch.ones_like(states.objective, dtype=torch.bool)
    full = torch.full_like(active, near)
    for _ in range(n_steps):
        before = states.objective
        states, damping = step_down(problems, states, ridges, going=_Going(active, damping, full))
        fall = before - states.objective
        active = active & (fall > tolerance * before)
        full = full | (fall <= NEAR * before)
        if not bool(active.any()):
            break
    return states


@dataclass(frozen=True, eq=False)
class _Going:
    """How documents go on."""

    active: Tensor  # (B,) those that do
    damping: Tensor  # (B,)
    full: Tensor | None  # (B,) with true second derivatives; None: none of them


def step_down(
    problems: Problems, states: States, ridges: Ridges, *, going: _Going
) -> tuple[States, Tensor]:
    """One step that goes down where there is any, and the damping for the next."""
    import torch

    full = None if going.full is None else going.full.to(states.objective.dtype)
    system = curvatures(problems, states, ridges, full=full)
    scale = system.schur.diagonal(dim1=1, dim2=2).abs() + 1e-12
    damping, trying, found = going.damping, going.active, states
    next_damping = torch.full_like(damping, DAMPING)
    while True:
        damped = system.schur.clone()
        damped.diagonal(dim1=1, dim2=2).add_(damping[:, None] * scale)
        root, failed = torch.linalg.cholesky_ex(damped)
        convex = failed == 0
        step = torch.cholesky_solve(system.gradient[:, :, None], root)[:, :, 0]
        step = torch.where(convex[:, None], step, 0.0)
        promised = (step * system.gradient).sum(1)
        trying = trying & ~(convex & (promised <= LEAST * states.objective))
        moved = problems.in_gauge(states.importances + step.clamp(-STEP_BOUND, STEP_BOUND))
        trial = project(problems, moved, ridges)
        better = trying & convex & (trial.objective < states.objective)
        found = trial.where(better, found)
        next_damping = torch.where(better, (damping / 10).clamp(min=1e-10), next_damping)
        trying = trying & ~better
        damping = damping * 10
        trying = trying & (damping < MAX_DAMPING)
        if not bool(trying.any()):
            return found, next_damping


def approach(
    problems: Problems, states: States, ridges: Ridges, *, n_steps: int, tolerance: float
) -> States:
    """From afar to a few digits: Gauss–Newton's steps as long as they lead far, then a slide."""
    import torch

    damping = torch.full_like(states.objective, DAMPING)
    active = torch.ones_like(states.objective, dtype=torch.bool)
    settled = torch.zeros_like(active)
    for _ in range(n_steps):
        before = states.objective
        states, damping = step_down(problems, states, ridges, going=_Going(active, damping, None))
        fall = before - states.objective
        settled = settled | (active & (fall <= tolerance * before))
        active = active & (fall > NEAR * before)
        if not bool(active.any()):
            break
    root = root_at(problems, states, ridges)
    sliding = Sliding(root, ~settled)
    return slide(problems, states, ridges, sliding=sliding, n_steps=n_steps, tolerance=tolerance)


@dataclass(frozen=True, eq=False)
class Sliding:
    """A system's root, of this place or one like it, and who goes on from there."""

    root: Tensor  # (B, k, k)
    active: Tensor  # (B,)


def slide(
    problems: Problems,
    states: States,
    ridges: Ridges,
    *,
    sliding: Sliding,
    n_steps: int | Tensor,
    tolerance: float,
) -> States:
    """Downhill from close by, by BFGS's steps; so many of them, (B,) or for all the same."""
    active, gradient = sliding.active, downhill(problems, states, ridges)
    secants: list[_Secant] = []
    most = int(n_steps) if isinstance(n_steps, int) else int(n_steps.max())
    for number in range(most):
        if not isinstance(n_steps, int):
            active = active & (n_steps > number)
        if not bool(active.any()):
            break
        step = _turned(sliding.root, secants, gradient)
        moved, went = _moved(problems, states, ridges, step, active)
        below = downhill(problems, moved, ridges)
        secants.append(_Secant.of(states, moved, gradient - below, went))
        fall = states.objective - moved.objective
        active = active & went & (fall > tolerance * states.objective)
        states, gradient = moved, below
    return states


def root_at(problems: Problems, states: States, ridges: Ridges) -> Tensor:
    """Cholesky's, of Gauss–Newton's systems, which are convex but for rounding."""
    import torch

    schur = curvatures(problems, states, ridges).schur
    scale = schur.diagonal(dim1=1, dim2=2).abs() + 1e-12
    damping = torch.full_like(states.objective, DAMPING)
    while True:
        damped = schur.clone()
        damped.diagonal(dim1=1, dim2=2).add_(damping[:, None] * scale)
        root, failed = torch.linalg.cholesky_ex(damped)
        wrong = failed > 0
        if not bool(wrong.any()):
            return root
        damping = torch.where(wrong, damping * 10, damping)


@dataclass(frozen=True, eq=False)
class _Secant:
    """What one step found out; 0 where it tells nothing."""

    step: Tensor  # (B, k)
    fall: Tensor  # (B, k) of the gradient
    curve: Tensor  # (B,) 1 / (step · fall), or 0

    @classmethod
    def of(cls, before: States, after: States, fall: Tensor, went: Tensor) -> "_Secant":
        import torch

        step = after.importances - before.importances
        product = (step * fall).sum(1)
        curved = went & (product > 1e-10 * step.norm(dim=1) * fall.norm(dim=1))
        return cls(step, fall, torch.where(curved, 1.0 / product, 0.0))


def _turned(root: Tensor, secants: Sequence[_Secant], gradient: Tensor) -> Tensor:
    """BFGS's step: the first system's, as corrected by every secant since."""
    import torch

    left, shares = gradient, []
    for secant in reversed(secants):
        shares.append((secant.step * left).sum(1) * secant.curve)
        left = left - shares[-1][:, None] * secant.fall
    turned = torch.cholesky_solve(left[:, :, None], root)[:, :, 0]
    for secant, share in zip(secants, reversed(shares), strict=True):
        by = share - (secant.fall * turned).sum(1) * secant.curve
        turned = turned + by[:, None] * secant.step
    return turned


def _moved(
    problems: Problems, states: States, ridges: Ridges, step: Tensor, active: Tensor
) -> tuple[States, Tensor]:
    """Where the step, or a shorter one, leads down; and for whom it does."""
    found, waiting = states, active
    for _ in range(N_SHORTER):
        bounded = step.clamp(-STEP_BOUND, STEP_BOUND)
        trial = project(problems, problems.in_gauge(states.importances + bounded), ridges)
        better = waiting & (trial.objective < states.objective)
        found = trial.where(better, found)
        waiting = waiting & ~better
        if not bool(waiting.any()):
            break
        step = SHORTER * step
    return found, active & ~waiting
