"""What a posterior starts from, for many documents at once, in torch: see posterior.py.

Documents of different sizes are padded with zeros: a padded row is noise of variance 1 that no
other row knows of, a padded unit has no effect and no interaction.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from slalom.surrogates.slalom.posterior import (
    EFFECTS,
    FREE,
    INTERACTIONS,
    LEAST_EFFECT,
    LEAST_INTERACTION,
    REACH,
    Residuals,
)
from slalom.surrogates.slalom.residual_shapley import NOTHING
from slalom.surrogates.subset_kernel import MASSES, NODES

Tensor = Any  # torch is not imported where this module is


@dataclass(frozen=True, eq=False)
class Components:
    """_Components and _Interactions of posterior.py, a document's along the first axis."""

    n_rows: Tensor  # (B,)
    ends: Tensor  # (B, 2, n_columns)
    of_ends: Tensor  # (B, 2, n_columns)
    residuals: Tensor  # (B, n_rows, n_columns)
    share: Tensor  # (B, n_units)
    scale: Tensor  # (B,)
    fit: tuple[Tensor, Tensor]  # (B, n_rows, n_columns), (B, n_units, n_columns)
    effects: tuple[Tensor, Tensor]  # (B, n_rows, n_units), (B, n_units, n_units)
    rates: Tensor  # (B, n_units)
    towards: Tensor  # (B, n_rows, 2) how rows follow from the ends
    size: Tensor  # (B,)
    rows: Tensor  # (B, n_rows, n_rows)
    with_shapley: Tensor  # (B, n_rows, n_units)
    of_shapley: Tensor  # (B, n_units)

    @classmethod
    def of(cls, given: Sequence[Residuals], device: str) -> "Components":
        import torch

        present, values, predicted, shapley = (
            _padded([getattr(one, name) for one in given], device)
            for name in ("present", "values", "predicted", "shapley")
        )
        ends, of_ends = (
            _padded([getattr(one, name) for one in given], device) for name in ("ends", "of_ends")
        )
        n_rows, n_units = (
            torch.tensor([one.present.shape[axis] for one in given], device=device).double()
            for axis in (0, 1)
        )
        is_row, is_unit = (
            (torch.arange(padded.shape[1], device=device) < n[:, None]).double()
            for padded, n in ((present, n_rows), (shapley, n_units))
        )
        strength = shapley.square().sum(2).sqrt()
        mean = strength.sum(1, keepdim=True) / n_units[:, None]
        matter = torch.where(mean > 0, strength / mean.clamp(min=NOTHING), 1.0)
        spread = (matter + LEAST_EFFECT).square() * is_unit
        share = spread / spread.sum(1, keepdim=True)
        line = present @ share[:, :, None]
        rows = (predicted - ends[:, :1] - line * rise(ends)) * is_row[:, :, None]
        squares = rows.square().sum((1, 2))
        scale = (FREE * n_rows / squares.clamp(min=NOTHING)).sqrt()
        fit_shapley = shapley - share[:, :, None] * rise(ends)
        rates = REACH / n_units[:, None] * (matter + LEAST_INTERACTION) * is_unit
        return cls(
            n_rows,
            ends,
            of_ends,
            (values - of_ends[:, :1] - line * rise(of_ends)) * is_row[:, :, None],
            share,
            scale,
            (scale[:, None, None] * rows, scale[:, None, None] * fit_shapley),
            _effects(present, spread, n_rows),
            rates,
            *_interactions(present, rates, is_row, is_unit),
        )


def rise(ends: Tensor) -> Tensor:
    """(B, 1, n_columns)"""
    return ends[:, 1:] - ends[:, :1]


def _padded(parts: Sequence[Any], device: str) -> Tensor:
    """(B, most rows, most columns) with zeros where a document has none."""
    import torch

    shape = np.max([part.shape for part in parts], axis=0)
    padded = np.zeros((len(parts), *shape), parts[0].dtype)
    for row, part in zip(padded, parts, strict=True):
        row[: part.shape[0], : part.shape[1]] = part
    return torch.from_numpy(padded).to(device).double()


def _effects(present: Tensor, spread: Tensor, n_rows: Tensor) -> tuple[Tensor, Tensor]:
    root_spread, total = spread.sqrt(), spread.sum(1)[:, None, None]
    root = root_spread.diag_embed() - spread[:, :, None] * root_spread[:, None] / total
    rows = present @ root
    size = (rows.square().sum((1, 2)) / n_rows).clamp(min=NOTHING).sqrt()[:, None, None]
    return rows / size, root / size


def _interactions(
    present: Tensor, rates: Tensor, is_row: Tensor, is_unit: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """`towards`, `size`, `rows`, `with_shapley` and `of_shapley` of Components."""
    import torch

    ends = torch.stack([torch.zeros_like(is_unit), is_unit], dim=1)
    known, values = _kernel(ends, ends, rates), _shapley_of_kernel(ends, rates)
    towards = _kernel(present, ends, rates) @ torch.linalg.inv(known) * is_row[:, :, None]
    rows = _kernel(present, present, rates) * is_row[:, :, None] * is_row[:, None]
    rows = rows - towards @ known @ towards.mT
    with_shapley = _shapley_of_kernel(present, rates) * is_row[:, :, None] - towards @ values
    mean = rows.diagonal(dim1=1, dim2=2).sum(1) / is_row.sum(1)
    size = mean.clamp(min=NOTHING)
    fixed = (values * torch.linalg.solve(known, values)).sum(1)
    of_shapley = (_shapley_variances(rates) - fixed) / size[:, None]
    by = size[:, None, None]
    return towards, size, rows / by, with_shapley / by, of_shapley


def _kernel(present: Tensor, others: Tensor, rates: Tensor) -> Tensor:
    rated = present * rates[:, None]
    apart = rated.sum(2)[:, :, None] + (others @ rates[:, :, None]).mT - 2 * rated @ others.mT
    return (-apart).exp()


def _shapley_of_kernel(present: Tensor, rates: Tensor) -> Tensor:
    import torch

    kept = (-rates).exp()[:, None]
    shown = torch.where(present > 0, 1.0, kept)
    hidden = kept / shown  # one of the two is 1
    nodes, masses = constants(present.device)[2:]
    mean = torch.lerp(hidden, shown, nodes[:, None, None, None])  # (n_nodes, B, n_rows, n_units)
    products = masses[:, None, None, None] * mean.prod(3, keepdim=True)
    return (shown - hidden) * (products / mean).sum(0)


def _shapley_variances(rates: Tensor) -> Tensor:
    import torch

    nodes, masses = constants(rates.device)[2:]
    lost = 1 - (-rates).exp()
    differ = nodes[:, None] * (1 - nodes) + nodes * (1 - nodes[:, None])
    mean = 1 - differ[:, :, None] * lost[:, None, None]
    others = mean.prod(3, keepdim=True) / mean
    return 2 * lost * torch.einsum("p,q,bpqi->bi", masses, masses, others)


@cache
def constants(device: Any) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """(n_c,) and (n_a,) of the grid, nodes and masses of the integral, on a device."""
    import torch

    c, a, nodes, masses = (
        torch.from_numpy(part).to(device) for part in (INTERACTIONS, EFFECTS, NODES, MASSES)
    )
    return c, a, nodes, masses
