"""The posterior of posterior.py for many documents at once, in torch, on the device of a model.

The formulas are the same. Every value of c and a is computed, which is less work for a GPU than
choosing. Instead of eigenvalues of AᵀA,

    M Mᵀ = I + a AᵀA      (I + a AAᵀ)⁻¹ = I − a A (M Mᵀ)⁻¹ Aᵀ
"""

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np

from slalom.surrogates.slalom.components_on_device import Components, Tensor, constants, rise
from slalom.surrogates.slalom.corrected import Correction
from slalom.surrogates.slalom.posterior import (
    EFFECTS,
    INTERACTIONS,
    Posterior,
    Residuals,
    likely_points,
    posterior_of,
)
from slalom.surrogates.slalom.residual_shapley import NOTHING, Shares, independent

MAX_NUMBERS = 2**28  # in the largest array of a batch: 2 GB in double precision
ARRAYS = 8  # of that size, at most, that are there at once


def posteriors_on(device: str, given: Sequence[Residuals]) -> list[Posterior]:
    """One posterior per document, as posterior_of has it."""
    import torch

    found: dict[int, Posterior] = {}
    beside = torch.cuda.stream(_stream(device)) if device.startswith("cuda") else nullcontext()
    with torch.inference_mode(), beside:
        for numbers in _batches(given, _room_on(device)):
            batch = [given[number] for number in numbers]
            found.update(zip(numbers, _posteriors(batch, device), strict=True))
    return [found[number] for number in range(len(given))]


@cache
def _stream(device: str) -> Any:
    """Beside the model's: whoever waits for a posterior does not wait for its batches."""
    import torch

    return torch.cuda.Stream(device)  # type: ignore[no-untyped-call]


def _room_on(device: str) -> int:
    """Numbers in one array that leave some memory to the model."""
    import torch

    if not device.startswith("cuda"):
        return MAX_NUMBERS
    free, _ = torch.cuda.mem_get_info(device)
    return min(MAX_NUMBERS, free // (8 * ARRAYS))


def _batches(given: Sequence[Residuals], max_numbers: int) -> list[list[int]]:
    """Documents with as many columns and about as many units; padding them costs little."""
    batches: list[list[int]] = []
    shapes = [(one.values.shape[1], one.present.shape[1], len(one.present)) for one in given]
    for number in sorted(range(len(given)), key=shapes.__getitem__):
        n_columns, n_units, n_rows = shapes[number]
        size = max(len(INTERACTIONS) * n_rows**2, len(INTERACTIONS) * len(EFFECTS) * n_units**2)
        fits = batches and (len(batches[-1]) + 1) * size <= max_numbers
        if fits and shapes[batches[-1][0]][0] == n_columns:
            batches[-1].append(number)
        else:
            batches.append([number])
    return batches


def _posteriors(given: Sequence[Residuals], device: str) -> list[Posterior]:
    parts = Components.of(given, device)
    roots = _Roots.of(parts)
    known = _fetched(
        {
            "likelihoods": roots.log_likelihoods,  # (n_documents, n_c, n_a)
            "residuals": parts.residuals,
            "failed": roots.failed,
        }
    )
    if known["failed"]:
        raise RuntimeError("a covariance is not positive: the answers are too large or too odd")
    likelihoods, rows = known["likelihoods"], known["residuals"]
    fewer = [independent(one[: len(doc.values)]) for one, doc in zip(rows, given, strict=True)]
    grid = [
        (document, c, a, probability)
        for document, (likelihood, factor) in enumerate(zip(likelihoods, fewer, strict=True))
        for probability, c, a in likely_points((factor * likelihood).__getitem__)
    ]
    found = _fetched(_averages(parts, _Points.of(roots, grid)))
    return [
        posterior_of(one)
        if (row**2).sum(axis=0).max(initial=0.0) <= NOTHING * len(one.values)
        else _posterior(one, {name: numbers[at] for name, numbers in found.items()})
        for at, (one, row) in enumerate(zip(given, rows, strict=True))
    ]


def _fetched(tensors: dict[str, Tensor]) -> dict[str, Any]:
    """In this machine's memory; while a GPU is at work the thread sleeps, its core is free."""
    import torch

    if any(tensor.is_cuda for tensor in tensors.values()):
        done = torch.cuda.Event(blocking=True)  # type: ignore[no-untyped-call]
        done.record()
        done.synchronize()
    return {name: tensor.cpu().numpy() for name, tensor in tensors.items()}


def _posterior(given: Residuals, found: dict[str, Any]) -> Posterior:
    """A document's share of a batch, without padding."""
    n_rows, n_units = given.present.shape
    ends = np.stack([np.zeros(n_units, bool), np.ones(n_units, bool)])
    return Posterior(
        Shares(found["shapley"][:n_units], found["variances"][:n_units], found["of_fit"]),
        Correction(
            found["constant"],
            found["slopes"],
            found["effects"][:n_units],
            found["rates"][:n_units],
            np.vstack([ends, given.present]),
            found["weights"][: n_rows + 2],
        ),
        found["left_out"][:n_rows],
    )


@dataclass(frozen=True, eq=False)
class _Roots:
    """Every c, and every a under it: _GridPoint of posterior.py."""

    parts: Components
    root: Tensor  # (B, n_c, n_rows, n_rows) L
    residuals: Tensor  # (B, n_c, n_rows, n_columns) whitened
    fit: Tensor  # (B, n_c, n_rows, n_columns) whitened
    effects: Tensor  # (B, n_c, n_rows, n_units) A
    inner: Tensor  # (B, n_c, n_a, n_units, n_units) M
    pulls: Tensor  # (B, n_c, n_a, n_units, n_columns) M⁻¹ Aᵀ times whitened residuals
    failed: Tensor  # () whether any root is none; asked for later, a GPU need not be waited for

    @classmethod
    def of(cls, parts: Components) -> "_Roots":
        import torch

        c, a, _, _ = constants(parts.residuals.device)
        rows = c[:, None, None] * parts.rows[:, None]
        rows += (parts.fit[0] @ parts.fit[0].mT)[:, None]
        rows.diagonal(dim1=2, dim2=3).add_(1.0)
        root, failed = torch.linalg.cholesky_ex(rows)
        right = torch.cat([parts.residuals, parts.fit[0], parts.effects[0]], dim=2)
        white = torch.linalg.solve_triangular(root, right[:, None], upper=False)
        n_columns = parts.residuals.shape[2]
        residuals, fit, effects = white.split(
            [n_columns, n_columns, right.shape[2] - 2 * n_columns], 3
        )
        squares = a[:, None, None] * (effects.mT @ effects)[:, :, None]
        squares.diagonal(dim1=3, dim2=4).add_(1.0)
        inner, failed_inner = torch.linalg.cholesky_ex(squares)
        pulls = (effects.mT @ residuals)[:, :, None]
        pulls = torch.linalg.solve_triangular(inner, pulls, upper=False)
        failed = failed.any() | failed_inner.any()
        return cls(parts, root, residuals, fit, effects, inner, pulls, failed)

    @cached_property
    def squares(self) -> Tensor:
        """(B, n_c, n_a, n_columns)"""
        _, a, _, _ = constants(self.residuals.device)
        left = self.residuals.square().sum(2)[:, :, None]
        return (left - a[:, None] * self.pulls.square().sum(3)).clamp(min=NOTHING)

    @property
    def log_likelihoods(self) -> Tensor:
        """(B, n_c, n_a) of one column on average."""
        volume = 2 * self.root.diagonal(dim1=2, dim2=3).log().sum(2)[:, :, None]
        volume = volume + 2 * self.inner.diagonal(dim1=3, dim2=4).log().sum(3)
        n_rows = self.parts.n_rows[:, None, None]
        return -0.5 * (volume + n_rows * self.squares.log().mean(3))


@dataclass(frozen=True, eq=False)
class _Points:
    """The likely points of the grid, one after the other; P of them."""

    parts: Components
    document: Tensor  # (P,)
    weight: Tensor  # (P,) probabilities, which sum to 1 per document
    c: Tensor  # (P, 1, 1)
    a: Tensor  # (P, 1, 1)
    inverse: Tensor  # (P, n_rows, n_rows) L⁻¹
    inner: Tensor  # (P, n_units, n_units) M
    effects: Tensor  # (P, n_rows, n_units) A
    fit: Tensor  # (P, n_rows, n_columns) whitened
    left: Tensor  # (P, n_rows, n_columns) (I + a AAᵀ)⁻¹ times whitened residuals
    noise: Tensor  # (P, 1, n_columns)

    @classmethod
    def of(cls, roots: _Roots, grid: Sequence[tuple[int, int, int, float]]) -> "_Points":
        import torch

        parts, device = roots.parts, roots.root.device
        document, at_c, at_a = torch.tensor([point[:3] for point in grid], device=device).T
        weight = torch.tensor([point[3] for point in grid], dtype=torch.double, device=device)
        all_c, all_a, _, _ = constants(device)
        c, a = all_c[at_c][:, None, None], all_a[at_a][:, None, None]
        inner, effects = roots.inner[document, at_c, at_a], roots.effects[document, at_c]
        pulls = roots.pulls[document, at_c, at_a]
        pulled = torch.linalg.solve_triangular(inner.mT, pulls, upper=True)
        left = roots.residuals[document, at_c] - a * effects @ pulled
        freedom = (parts.n_rows[document] - 2).clamp(min=1)[:, None, None]
        noise = roots.squares[document, at_c, at_a][:, None] / freedom
        inverse = _inverses(roots, [point[:2] for point in grid])
        fit = roots.fit[document, at_c]
        return cls(parts, document, weight, c, a, inverse, inner, effects, fit, left, noise)

    @cached_property
    def solved(self) -> Tensor:
        """(P, n_rows, n_columns)"""
        return self.inverse.mT @ self.left

    @property
    def left_out(self) -> Tensor:
        """(P, n_rows, n_columns)"""
        without = self._explained((self.inverse.mT @ self.effects).mT)
        return self.solved / (self.inverse.square().sum(1) - without)[:, :, None]

    def shapley(self) -> tuple[Tensor, Tensor]:
        """(P, n_units, n_columns) mean and variance of Shapley values."""
        parts, at = self.parts, self.document
        fit, effects = parts.fit[1][at], parts.effects[1][at]
        white = self.c * self.inverse @ parts.with_shapley[at] + self.fit @ fit.mT
        white = white + self.a * self.effects @ effects.mT  # covariances of rows with them
        before = self.c[:, 0] * parts.of_shapley[at] + fit.square().sum(2)
        before = before + self.a[:, 0] * effects.square().sum(2)
        known = white.square().sum(1) - self._explained(self.effects.mT @ white)
        return white.mT @ self.left, (before - known).clamp(min=0.0)[:, :, None] * self.noise

    def _explained(self, columns: Tensor) -> Tensor:
        """a times the squares of M⁻¹ times columns: (P, n_units, k) → (P, k)."""
        import torch

        turned = torch.linalg.solve_triangular(self.inner, columns, upper=False)
        return self.a[:, 0] * turned.square().sum(1)

    def averaged(self, numbers: Tensor) -> Tensor:
        """(P, …) → (B, …), by the weights."""
        weighted = numbers * self.weight[:, None, None]
        total = weighted.new_zeros((len(self.parts.n_rows), *weighted.shape[1:]))
        return total.index_add_(0, self.document, weighted)


def _inverses(roots: _Roots, pairs: Sequence[tuple[int, int]]) -> Tensor:
    """(P, n_rows, n_rows) L⁻¹ of documents under a c, each computed once."""
    import torch

    places = {pair: place for place, pair in enumerate(dict.fromkeys(pairs))}
    document, at_c = torch.tensor(list(places), device=roots.root.device).T
    one = torch.eye(roots.root.shape[2], dtype=roots.root.dtype, device=roots.root.device)
    inverse = torch.linalg.solve_triangular(roots.root[document, at_c], one, upper=False)
    return inverse[torch.tensor([places[pair] for pair in pairs], device=inverse.device)]


def _averages(parts: Components, points: _Points) -> dict[str, Any]:
    """What a posterior holds, a document's along the first axis."""
    import torch

    means, variances = points.shapley()
    mean = points.averaged(means)
    between = (means - mean[points.document]).square()
    solved = points.averaged(points.solved)
    by_a = points.averaged(points.a * points.solved)
    by_c = points.averaged(points.c * points.solved)
    slopes = parts.scale[:, None, None] * parts.fit[0].mT @ solved
    shared = parts.share[:, :, None] * rise(parts.of_ends)
    effects = parts.effects[1] @ (parts.effects[0].mT @ by_a)
    at_ends = -parts.towards.mT @ by_c
    spread = parts.residuals.square().sum(1) / parts.n_rows[:, None]
    left = points.averaged(points.noise)[:, 0] / spread.clamp(min=NOTHING)
    return {
        "shapley": shared + mean,
        "variances": points.averaged(variances + between),
        "of_fit": left.clamp(max=1.0),
        "constant": parts.of_ends[:, 0] - (parts.ends[:, :1] @ slopes)[:, 0],
        "slopes": slopes,
        "effects": shared + effects - parts.share[:, :, None] * (rise(parts.ends) @ slopes),
        "rates": parts.rates,
        "weights": torch.cat([at_ends, by_c], dim=1) / parts.size[:, None, None],
        "left_out": points.averaged(points.left_out),
    }
