"""Methods that fit nothing: they look inside the classifier, or know nothing at all.

Gradients of the log-odds F with respect to the token embeddings e_t:

    gradient-mean         mean over the width of ∇_t
    gradient-l1, -l2      norms of ∇_t: how sensitive, without a sign
    gradient-input        ∇_t · e_t
    integrated-gradients  (e_t − e'_t) · ∫ ∇_t(e' + a (e − e')) da, where e' has every unit masked

What the answering token attends to, and relevance propagated through attention:

    attention-mean        mean over layers and heads of the attention from where the answer is read
    attention-max         the maximum instead
    attention-rollout     Π_l (½ A_l + ½ I), A_l the mean over heads (Abnar & Zuidema 2020)
    attention-lrp         AttnLRP (Achtibat et al. 2024), see classifiers/huggingface/internals.py
    attention-gradient    ∂F/∂b_t, b_t added to the attention logits of token t as a key, in all
                          layers and heads: what happens as the model begins to look away from it

Attention has no sign and no class: it says where a model looks, not what it concludes, and a unit
of several tokens gets the largest of theirs; all others add up. What is always shown (special
tokens) has no score. Scores in log-odds predict the effect of removing units: gradient-input,
integrated-gradients, attention-lrp, attention-gradient, which for a SLALOM is α_t (v_t − F), the
SLALOM's own gradient score, from one backward pass. Controls show what a metric gives an
explanation that knows nothing:

    random                independent normal scores: the bottom of every ranking metric
    constant              no unit matters: it predicts no change, the 1.00 of every removal error
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from slalom.classifiers.base import Target
from slalom.classifiers.internals import (
    Internals,
    Outcome,
    ShowsAttention,
    ShowsMaskGradients,
    ShowsRelevance,
    internals_of,
)
from slalom.document import Document, FloatArray, IntArray
from slalom.errors import InputError
from slalom.explainers.base import Ask, Case, Found, Look, Plan, Request, case_of
from slalom.surrogates.linalg import legendre

if TYPE_CHECKING:
    from torch import Tensor

Scorer = Callable[[Any, Case], tuple[FloatArray, int]]  # Internals → unit scores, tokens computed
ReadOut = Callable[["Tensor", "Tensor"], "Tensor"]  # gradients, embeddings (T, width) → (T,)
Pool = Callable[["Tensor", "Tensor"], "Tensor"]  # (layers, heads, T, T), (T,) readers → (T,)

ROUNDING = "all scores are rounding errors: before a layer norm the mean of a gradient is 0"


@dataclass(frozen=True)
class Baseline:
    """One of the methods; `additive` scores are log-odds that are lost when units are removed."""

    name: str
    summary: str
    score: Scorer
    additive: bool = False
    looks_inside: bool = True  # else `score` gets None for what is inside
    has_shapley_errors: ClassVar[bool] = False

    def budget(self, document: Document) -> int:
        return 1

    def plan(self, document: Document, request: Request) -> Plan:
        inside = (yield Look(internals_of)) if self.looks_inside else None
        answers = yield Ask(document, document.full())
        case = case_of(document.untied(), answers, request)
        scores, n_tokens = self.score(inside, case)
        model = case.additive(scores) if self.additive else None
        largest = np.abs(scores).max(initial=0.0)  # of gradients it is of the order of 1
        notes = (ROUNDING,) if self.looks_inside and largest < 1e-6 else ()
        found = Found({"score": scores}, model=model, n_tokens=n_tokens, notes=notes)
        return case.explanation(found, self.name)


def gradient(inside: Internals, case: Case, *, read: ReadOut) -> tuple[FloatArray, int]:
    """One backward pass per class; `read` makes one number per token of its gradient."""
    embeddings = inside.embeddings(case.document)
    columns = [
        read(_gradients(inside, case, embeddings[None], outcome)[0], embeddings)
        for outcome in _outcomes(case)
    ]
    return _summed(columns, inside, case), len(embeddings) * len(columns)


def mean(gradients: "Tensor", embeddings: "Tensor") -> "Tensor":
    return gradients.mean(dim=-1)


def l1(gradients: "Tensor", embeddings: "Tensor") -> "Tensor":
    return gradients.abs().sum(dim=-1)


def l2(gradients: "Tensor", embeddings: "Tensor") -> "Tensor":
    return gradients.square().sum(dim=-1).sqrt()


def times_input(gradients: "Tensor", embeddings: "Tensor") -> "Tensor":
    return (gradients * embeddings).sum(dim=-1)


def integrated_gradients(
    inside: Internals, case: Case, *, n_steps: int = 32, tokens_per_batch: int = 2**14
) -> tuple[FloatArray, int]:
    """Gauss–Legendre quadrature along the straight line from the masked text to the text."""
    import torch

    end, start = inside.embeddings(case.document), inside.blank(case.document)
    share, weight = (
        torch.tensor(numbers, dtype=end.dtype, device=end.device)[:, None, None]
        for numbers in legendre(n_steps)
    )
    path = start + share * (end - start)  # (n_steps, T, width)
    step = max(1, tokens_per_batch // len(end))
    columns = []
    for outcome in _outcomes(case):
        steps = [
            _gradients(inside, case, path[at : at + step], outcome)
            for at in range(0, n_steps, step)
        ]
        columns.append(times_input((weight * torch.cat(steps)).sum(dim=0), end - start))
    return _summed(columns, inside, case), len(end) * n_steps * len(columns)


def _gradients(inside: Internals, case: Case, embeddings: "Tensor", outcome: Outcome) -> "Tensor":
    """∂ outcome / ∂ embeddings: (n, T, width)."""
    import torch

    leaf = embeddings.detach().clone().requires_grad_()
    with torch.enable_grad():
        score = outcome(inside.logits_from_embeddings(case.document, leaf)).sum()
        (gradients,) = torch.autograd.grad(score, leaf)
    return gradients


def attention(inside: Internals, case: Case, *, pool: Pool) -> tuple[FloatArray, int]:
    """Attention weights pooled over layers and heads."""
    if not isinstance(inside, ShowsAttention):
        raise InputError(_lacks(case, "attention"))
    tokens = pool(*inside.attentions(case.document))
    units, scores = inside.unit_of_token(case.document), np.zeros(case.document.n_units)
    np.maximum.at(scores, units[units >= 0], tokens.numpy()[units >= 0])
    if case.target.index is None:  # the same for every class
        scores = np.repeat(scores[:, None], len(case.answers.labels), axis=1)
    return scores, len(tokens)


def averaged(weights: "Tensor", readers: "Tensor") -> "Tensor":
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


def relevance(inside: Internals, case: Case) -> tuple[FloatArray, int]:
    """Relevance of each token for the log-odds."""
    if not isinstance(inside, ShowsRelevance):
        raise InputError(_lacks(case, "relevance"))
    columns = [inside.relevance(case.document, outcome) for outcome in _outcomes(case)]
    return _summed(columns, inside, case), sum(map(len, columns))


def mask_gradient(inside: Internals, case: Case) -> tuple[FloatArray, int]:
    """How the log-odds change as the attention on each token does."""
    if not isinstance(inside, ShowsMaskGradients):
        raise InputError(_lacks(case, "attention mask"))
    columns = [inside.mask_gradients(case.document, outcome) for outcome in _outcomes(case)]
    return _summed(columns, inside, case), 2 * sum(map(len, columns))


def _lacks(case: Case, what: str) -> str:
    return f"{case.answers.classifier} does not show its {what}: use a gradient method or 'slalom'"


def _outcomes(case: Case) -> list[Outcome]:
    """The functions that are differentiated: the target's log-odds, or every centred logit."""
    independent = case.answers.independent
    if case.target.index is not None:
        return [lambda logits: _log_odds(case.target, logits, independent=independent)]

    def column(index: int) -> Outcome:
        if independent:
            return lambda logits: logits[:, index]
        return lambda logits: logits[:, index] - logits.mean(dim=1)

    return [column(index) for index in range(len(case.answers.labels))]


def _log_odds(target: Target, logits: "Tensor", *, independent: bool) -> "Tensor":
    """`Target.scores` in torch: (n, n_classes) → (n,)."""
    index = target.index
    assert index is not None
    if independent or logits.shape[1] == 1:
        return logits[:, index]
    others = [at for at in range(logits.shape[1]) if at != index]
    return logits[:, index] - logits[:, others].logsumexp(dim=1)


def _summed(columns: Sequence["Tensor"], inside: Internals, case: Case) -> FloatArray:
    """Token scores summed over each unit: (n_units,), or (n_units, n_classes) for all classes."""
    units: IntArray = inside.unit_of_token(case.document)
    table, shown = np.zeros((case.document.n_units, len(columns))), units >= 0
    for column, tokens in enumerate(columns):
        scores = tokens.detach().double().cpu().numpy()
        np.add.at(table[:, column], units[shown], scores[shown])
    return table[:, 0] if case.target.index is not None else table


def at_random(inside: None, case: Case) -> tuple[FloatArray, int]:
    """The same seed draws the same, apart from every other use of the seed."""
    rng = np.random.default_rng((case.seed, 1))
    return rng.normal(size=(case.document.n_units, *case.score.shape)), 0


def all_zero(inside: None, case: Case) -> tuple[FloatArray, int]:
    return np.zeros((case.document.n_units, *case.score.shape)), 0
