"""Gradients of the log-odds with respect to the token embeddings e_t, as scores.

    gradient-mean         mean over the width of ∇_t
    gradient-l1, -l2      norms of ∇_t: how sensitive, without a sign
    gradient-input        ∇_t · e_t
    integrated-gradients  (e_t − e'_t) · ∫ ∇_t(e' + a (e − e')) da, where e' has every unit masked

A unit of several tokens scores their sum. What is always shown (special tokens) has no score.
Only the last two are in log-odds, so only they predict the effect of removing units.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from slalom.classifiers.internals import Internals, Outcome
from slalom.document import FloatArray
from slalom.explainers.case import Case
from slalom.explainers.white_box import outcomes, summed

if TYPE_CHECKING:
    from torch import Tensor

ReadOut = Callable[["Tensor", "Tensor"], "Tensor"]  # gradients, embeddings (T, width) → (T,)
TOKENS_PER_BATCH = 2**14


def mean(gradients: "Tensor", embeddings: "Tensor") -> "Tensor":
    return gradients.mean(dim=-1)


def l1(gradients: "Tensor", embeddings: "Tensor") -> "Tensor":
    return gradients.abs().sum(dim=-1)


def l2(gradients: "Tensor", embeddings: "Tensor") -> "Tensor":
    return gradients.square().sum(dim=-1).sqrt()


def times_input(gradients: "Tensor", embeddings: "Tensor") -> "Tensor":
    return (gradients * embeddings).sum(dim=-1)


def gradient(inside: Internals, case: Case, *, read: ReadOut) -> tuple[FloatArray, int]:
    """One backward pass per class; `read` makes one number per token of its gradient."""
    embeddings = inside.embeddings(case.document)
    columns = [
        read(_gradients(inside, case, embeddings[None], outcome)[0], embeddings)
        for outcome in outcomes(case)
    ]
    scores = summed(columns, inside.unit_of_token(case.document), case)
    return scores, len(embeddings) * len(columns)


def integrated_gradients(
    inside: Internals, case: Case, *, n_steps: int = 32
) -> tuple[FloatArray, int]:
    """Gauss–Legendre quadrature along the straight line from the masked text to the text."""
    import torch

    end, start = inside.embeddings(case.document), inside.blank(case.document)
    points, weights = np.polynomial.legendre.leggauss(n_steps)
    share, weight = (
        torch.tensor(numbers, dtype=end.dtype, device=end.device)[:, None, None]
        for numbers in ((points + 1) / 2, weights / 2)
    )
    path = start + share * (end - start)  # (n_steps, T, width)
    step = max(1, TOKENS_PER_BATCH // len(end))
    columns = []
    for outcome in outcomes(case):
        parts = [
            _gradients(inside, case, path[at : at + step], outcome)
            for at in range(0, n_steps, step)
        ]
        columns.append(times_input((weight * torch.cat(parts)).sum(dim=0), end - start))
    scores = summed(columns, inside.unit_of_token(case.document), case)
    return scores, len(end) * n_steps * len(columns)


def _gradients(inside: Internals, case: Case, embeddings: "Tensor", outcome: Outcome) -> "Tensor":
    """∂ outcome / ∂ embeddings: (n, T, width)."""
    import torch

    leaf = embeddings.detach().clone().requires_grad_()
    with torch.enable_grad():
        score = outcome(inside.logits_from_embeddings(case.document, leaf)).sum()
        (gradients,) = torch.autograd.grad(score, leaf)
    return gradients
