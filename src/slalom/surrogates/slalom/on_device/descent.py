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
    applied,
    curvatures,
    downhill,
    inverse_of,
    project,
)

MAX_DAMPING = 1e12
TRIED_AT_ONCE = 4  # dampings, where the first is too weak


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
    here = _Here(problems, states, ridges, system.schur, system.gradient)
    tried = here.tried(going.damping)
    better = going.active & tried.lower
    failed = going.active & ~tried.lower & ~tried.done
    every, any_failed = torch.stack([better.all(), failed.any()]).tolist()
    found = tried.states if every else tried.states.where(better, states)
    damping = torch.where(better, _eased(going.damping), torch.full_like(going.damping, DAMPING))
    if any_failed:
        at = failed.nonzero()[:, 0]
        found, damping = _damped_more(here.pick(at), at, going.damping[at], (found, damping))
    return found, damping


def _eased(damping: Tensor) -> Tensor:
    return (damping / 10).clamp(min=1e-10)


def _damped_more(
    here: "_Here", at: Tensor, damping: Tensor, known: tuple[States, Tensor]
) -> tuple[States, Tensor]:
    """Stronger dampings for documents `at`, several at once: the weakest that leads down is taken.

    A GPU takes no longer for them than for one.
    """
    import torch

    found, next_damping = known
    factors = 10.0 ** torch.arange(1, TRIED_AT_ONCE + 1, device=at.device, dtype=damping.dtype)
    while len(at):
        dampings = damping[:, None] * factors
        every = torch.arange(len(at), device=at.device).repeat_interleave(TRIED_AT_ONCE)
        tried = here.pick(every).tried(dampings.flatten())
        lower, done = (one.view(-1, TRIED_AT_ONCE) for one in (tried.lower, tried.done))
        first = (lower | done).int().argmax(1)
        places = torch.arange(len(at), device=at.device)
        better = lower[places, first]
        chosen = (places * TRIED_AT_ONCE + first)[better]
        found = found.replaced(at[better], tried.states.pick(chosen))
        next_damping = next_damping.index_put((at[better],), _eased(dampings.flatten()[chosen]))
        damping = dampings[:, -1]
        left = ~(lower | done).any(1) & (damping < MAX_DAMPING)
        at, damping, here = at[left], damping[left], here.pick(left.nonzero()[:, 0])
    return found, next_damping


@dataclass(frozen=True, eq=False)
class _Tried:
    states: States
    lower: Tensor  # (B,) where the step led down
    done: Tensor  # (B,) where nothing is left to gain but rounding


@dataclass(frozen=True, eq=False)
class _Here:
    """Where documents are, and the systems of their next step."""

    problems: Problems
    states: States
    ridges: Ridges
    schur: Tensor  # (B, k, k)
    gradient: Tensor  # (B, k)

    def pick(self, chosen: Tensor) -> "_Here":
        problems, states, ridges = self.problems, self.states, self.ridges
        return _Here(
            problems.pick(chosen),
            states.pick(chosen),
            ridges.pick(chosen),
            self.schur[chosen],
            self.gradient[chosen],
        )

    def tried(self, damping: Tensor) -> _Tried:
        """The step under a damping; where the system is not convex there is none."""
        import torch

        damped = self.schur.clone()
        diagonal = damped.diagonal(dim1=1, dim2=2)
        diagonal.add_(damping[:, None] * (diagonal.abs() + 1e-12))
        root, failed = torch.linalg.cholesky_ex(damped)
        convex = failed == 0
        step = torch.cholesky_solve(self.gradient[:, :, None], root)[:, :, 0]
        step = torch.where(convex[:, None], step, 0.0)
        here = self.states
        done = convex & ((step * self.gradient).sum(1) <= LEAST * here.objective)
        moved = self.problems.in_gauge(here.importances + step.clamp(-STEP_BOUND, STEP_BOUND))
        there = project(self.problems, moved, self.ridges)
        return _Tried(there, convex & ~done & (there.objective < here.objective), done)


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
    sliding = Sliding(inverse_of(root_at(problems, states, ridges)), ~settled)
    return slide(problems, states, ridges, sliding=sliding, n_steps=n_steps, tolerance=tolerance)


@dataclass(frozen=True, eq=False)
class Sliding:
    """A system of this place or one like it, and who goes on from there."""

    inverse: Tensor  # (B, k, k) of its root
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
        step = _turned(sliding.inverse, secants, gradient)
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


def _turned(inverse: Tensor, secants: Sequence[_Secant], gradient: Tensor) -> Tensor:
    """BFGS's step: the first system's, as corrected by every secant since."""
    left, shares = gradient, []
    for secant in reversed(secants):
        shares.append((secant.step * left).sum(1) * secant.curve)
        left = left - shares[-1][:, None] * secant.fall
    turned = applied(inverse.mT, applied(inverse, left))
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
