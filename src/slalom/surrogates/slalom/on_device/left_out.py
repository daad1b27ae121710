"""Leave-one-out residuals of many documents at once: left_out.py in torch."""

from dataclasses import dataclass

from slalom.surrogates.slalom.on_device.problems import (
    Curvatures,
    Problems,
    Ridges,
    States,
    Tensor,
    applied,
    curvatures,
    factor_of,
    inverse_of,
    positive_root,
    systems,
)


@dataclass(frozen=True, eq=False)
class Linearised:
    """Models that are linear in all parameters, near states, under ridges."""

    root: Tensor  # (B, k, k)
    rows: Tensor  # (B, w, n) L⁻¹ Xᵀ
    turned: Tensor  # (B, k, n) root⁻¹ b̃
    kept: Tensor  # (B, n) 1 − h

    @classmethod
    def of(
        cls, problems: Problems, states: States, system: Curvatures, inverse: Tensor
    ) -> "Linearised":
        import torch

        root = positive_root(system.schur)
        rows = inverse @ states.design.mT
        reduced = states.slopes.mT - system.half.mT @ rows
        turned = torch.linalg.solve_triangular(root, reduced, upper=False)
        leverages = rows.square().sum(1) + turned.square().sum(1)
        return cls(root, rows, turned, 1.0 - problems.weights * leverages)


def linearised(problems: Problems, states: States, ridges: Ridges) -> Linearised:
    """Where the states were found under these ridges; residuals over `kept` are left-out ones."""
    return Linearised.of(problems, states, curvatures(problems, states, ridges), states.inverse)


def errors(problems: Problems, residuals: Tensor) -> Tensor:
    """(B,) the weighted mean square over the rows that are judged."""
    weights = problems.judging
    total = (weights * residuals.square()).sum(1)
    return total / weights.sum(1).clamp(min=1e-300)


def forecasts(problems: Problems, states: States, ridges: Ridges) -> Tensor:
    """(B,) the error after a step to the optimum under other ridges."""
    import torch

    inverse = inverse_of(factor_of(states.gram, ridges.linear))
    system = systems(problems, states, ridges, inverse=inverse)
    near = Linearised.of(problems, states, system, inverse)
    pull = problems.weights * states.residuals
    pulls = (applied(states.design.mT, pull) - ridges.linear * states.shift)[:, :, None]
    gradient = system.gradient[:, :, None] - system.half.mT @ (inverse @ pulls)
    step = torch.cholesky_solve(gradient, near.root)
    linear = inverse.mT @ (inverse @ (pulls - system.crossed @ step))
    moved = (states.design @ linear + states.slopes @ step)[:, :, 0]
    return errors(problems, (states.residuals - moved) / near.kept)


def shifts_without(
    near: Linearised, states: States, problems: Problems, *, folds: "Folds"
) -> Tensor:
    """(P, k) how far the importances move without some rows, were the models linear."""
    import torch

    at, rows = folds.document, folds.rows
    weights = problems.weights[at].gather(1, rows) * folds.real
    residuals = states.residuals[at].gather(1, rows) * folds.real
    own, turned = (_columns(part, folds) for part in (near.rows, near.turned))
    leverages = (own.mT @ own + turned.mT @ turned) * weights[:, None]
    one = torch.eye(leverages.shape[1], dtype=leverages.dtype, device=leverages.device)
    alone = torch.linalg.solve(one - leverages, residuals[:, :, None])
    pulls = -turned @ (weights[:, :, None] * alone)
    return torch.linalg.solve_triangular(near.root[at].mT, pulls, upper=True)[:, :, 0]


@dataclass(frozen=True, eq=False)
class Folds:
    """Rows that are left out together, one set after the other; P of them."""

    document: Tensor  # (P,)
    rows: Tensor  # (P, m) their numbers, padded
    real: Tensor  # (P, m) 0: padding
    kept: Tensor  # (P, n) 0: left out


def _columns(part: Tensor, folds: Folds) -> Tensor:
    """(B, c, n) → (P, c, m): the rows of each fold."""
    taken = part[folds.document]
    places = folds.rows[:, None].expand(-1, taken.shape[1], -1)
    return taken.gather(2, places) * folds.real[:, None]
