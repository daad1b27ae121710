"""What the answering token attends to, and relevance propagated through attention.

    attention-mean      mean over layers and heads of the attention from where the answer is read
    attention-max       the maximum instead
    attention-rollout   Π_l (½ A_l + ½ I), A_l the mean over heads (Abnar & Zuidema 2020)
    attention-lrp       AttnLRP (Achtibat et al. 2024), see classifiers/huggingface/relevance.py
    attention-gradient  ∂F/∂b_t, b_t added to the attention logits of token t as a key, in all
                        layers and heads: what happens as the model begins to look away from it

Attention has no sign and no class: it says where a model looks, not what it concludes. A unit of
several tokens gets the largest of their attentions; relevances and gradients add up. For a SLALOM
the last method gives α_t (v_t − F), the SLALOM's own gradient score, from one backward pass.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from slalom.classifiers.internals import (
    Internals,
    ShowsAttention,
    ShowsMaskGradients,
    ShowsRelevance,
)
from slalom.document import FloatArray
from slalom.errors import InputError
from slalom.explainers.case import Case
from slalom.explainers.white_box import outcomes, strongest, summed

if TYPE_CHECKING:
    from torch import Tensor

Pool = Callable[["Tensor", "Tensor"], "Tensor"]  # (layers, heads, T, T), (T,) readers → (T,)


def mean(weights: "Tensor", readers: "Tensor") -> "Tensor":
    return readers @ weights.mean(dim=(0, 1))


def largest(weights: "Tensor", readers: "Tensor") -> "Tensor":
    return readers @ weights.amax(dim=(0, 1))


def rollout(weights: "Tensor", readers: "Tensor") -> "Tensor":
    import torch

    itself = torch.eye(weights.shape[-1], dtype=weights.dtype)
    flow = readers
    for layer in weights.mean(dim=1).flip(0):  # from the answer down to the tokens
        flow = flow @ (layer + itself) / 2
    return flow


def attention(inside: Internals, case: Case, *, pool: Pool) -> tuple[FloatArray, int]:
    """Attention weights pooled over layers and heads."""
    if not isinstance(inside, ShowsAttention):
        raise InputError(_lacks(case, "attention"))
    tokens = pool(*inside.attentions(case.document))
    return strongest(tokens, inside.unit_of_token(case.document), case), len(tokens)


def relevance(inside: Internals, case: Case) -> tuple[FloatArray, int]:
    """Relevance of each token for the log-odds."""
    if not isinstance(inside, ShowsRelevance):
        raise InputError(_lacks(case, "relevance"))
    columns = [inside.relevance(case.document, outcome) for outcome in outcomes(case)]
    scores = summed(columns, inside.unit_of_token(case.document), case)
    return scores, sum(len(column) for column in columns)


def mask_gradient(inside: Internals, case: Case) -> tuple[FloatArray, int]:
    """How the log-odds change as the attention on each token does."""
    if not isinstance(inside, ShowsMaskGradients):
        raise InputError(_lacks(case, "attention mask"))
    columns = [inside.mask_gradients(case.document, outcome) for outcome in outcomes(case)]
    scores = summed(columns, inside.unit_of_token(case.document), case)
    return scores, 2 * sum(len(column) for column in columns)


def _lacks(case: Case, what: str) -> str:
    return f"{case.outputs.name} does not show its {what}: use a gradient method or 'slalom'"
