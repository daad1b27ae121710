"""The single-layer attention model as a torch module with the same weights, and its internals.

It takes embeddings, the CLS token first, so that gradients and relevances reach every token.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor, nn

from slalom.classifiers.huggingface.internals import relevance_rules
from slalom.classifiers.internals import Outcome
from slalom.document import Document, FloatArray, IntArray, Queries
from slalom.theory.attention_model import AttentionModel, WordIds, encoded_text, input_ids


class AttentionModule(nn.Module):
    """(n, 1 + n_positions, d_e) → (n,): the CLS token is the query, the positions are keys."""

    def __init__(self, model: AttentionModel) -> None:
        super().__init__()
        self.words, self.n_positions = model.words, model.n_positions
        self.W_e, self.cls = _parameter(model.W_e), _parameter(model.cls)
        self.W_q, self.W_k = _parameter(model.W_q), _parameter(model.W_k)
        self.W_v, self.W_l = _parameter(model.W_v), _parameter(model.W_l)
        self.W_p: Tensor
        self.register_buffer("W_p", torch.from_numpy(model.positional_encoding()))

    def embed(self, ids: Tensor) -> Tensor:
        """(n, n_positions) → (n, 1 + n_positions, d_e)."""
        cls = self.cls.expand(len(ids), 1, -1)
        return torch.cat([cls, self.W_e[ids] + self.W_p], dim=1)

    def attention(self, embeddings: Tensor, logit_bias: Tensor | None = None) -> Tensor:
        """From the CLS token to the positions: (n, K, n_positions)."""
        cls, positions = embeddings[:, None, :1], embeddings[:, None, 1:]
        queries = cls @ self.W_q.transpose(1, 2)  # (n, K, 1, d_att)
        keys = positions @ self.W_k.transpose(1, 2)  # (n, K, n_positions, d_att)
        logits = queries @ keys.transpose(2, 3) / self.W_k.shape[1] ** 0.5
        logits = logits if logit_bias is None else logits + logit_bias
        return torch.softmax(logits, dim=-1)[:, :, 0]

    def forward(self, embeddings: Tensor, logit_bias: Tensor | None = None) -> Tensor:
        values = embeddings[:, None, 1:] @ self.W_v.transpose(1, 2)  # (n, K, n_positions, d_out)
        mixed = self.attention(embeddings, logit_bias)[:, :, None] @ values  # (n, K, 1, d_out)
        heads = mixed @ self.W_l[:, :, None]  # (n, K, 1, 1)
        return heads[:, :, 0, 0].mean(dim=1)

    def weights(self) -> AttentionModel:
        """The same model in numpy, for closed forms."""
        W_e, cls, W_q, W_k, W_v, W_l = (
            part.detach().double().cpu().numpy().copy()
            for part in (self.W_e, self.cls, self.W_q, self.W_k, self.W_v, self.W_l)
        )
        return AttentionModel(self.words, W_e, cls, W_q, W_k, W_v, W_l, self.n_positions)


def fit(
    model: AttentionModel,
    ids: WordIds,
    classes: FloatArray,
    *,
    n_epochs: int = 10,
    rate: float = 0.01,
    seed: int = 0,
) -> AttentionModel:
    """Trained by Adam on the binary cross-entropy: ids (n, n_positions), classes (n,) 0 or 1."""
    generator = torch.Generator().manual_seed(seed)
    module = AttentionModule(model).float()  # training needs no double precision
    optimiser = torch.optim.Adam(module.parameters(), lr=rate)
    inputs, targets = torch.from_numpy(ids), torch.from_numpy(np.asarray(classes, dtype=np.float32))
    for _ in range(n_epochs):
        for batch in torch.split(torch.randperm(len(ids), generator=generator), 64):
            loss = nn.functional.binary_cross_entropy_with_logits(
                module(module.embed(inputs[batch])), targets[batch]
            )
            optimiser.zero_grad()
            torch.autograd.backward(loss)
            optimiser.step()
    return module.weights()


def _parameter(weights: FloatArray) -> nn.Parameter:
    return nn.Parameter(torch.from_numpy(weights.copy()))


@dataclass(frozen=True, eq=False)
class AttentionInternals:
    """What `classifiers.internals` describes; tokens are the CLS token, then all positions."""

    model: AttentionModel

    @cached_property
    def module(self) -> AttentionModule:
        return AttentionModule(self.model).requires_grad_(False)

    def unit_of_token(self, document: Document) -> IntArray:
        units = np.full(1 + self.model.n_positions, -1, dtype=np.int32)
        own = encoded_text(document).units
        units[1 : 1 + len(own)] = own
        return units

    def embeddings(self, document: Document) -> Tensor:
        return self._embedded(document, document.full())

    def blank(self, document: Document) -> Tensor:
        """Every unit replaced by h."""
        return self._embedded(document, document.full()[:, :0])

    def logits_from_embeddings(self, document: Document, embeddings: Tensor) -> Tensor:
        return _logits(self.module(embeddings))

    def attentions(self, document: Document) -> tuple[Tensor, Tensor]:
        """The CLS token attends to the positions; each position attends to itself alone."""
        attention = self.module.attention(self.embeddings(document)[None])[0]  # (K, n_positions)
        n_heads, n_tokens = len(attention), 1 + self.model.n_positions
        weights = torch.eye(n_tokens, dtype=attention.dtype).repeat(1, n_heads, 1, 1)
        weights[0, :, 0, 0] = 0.0
        weights[0, :, 0, 1:] = attention
        readers = torch.zeros(n_tokens, dtype=attention.dtype)
        readers[0] = 1.0
        return weights, readers

    def relevance(self, document: Document, outcome: Outcome) -> Tensor:
        embeddings = self.embeddings(document)[None].requires_grad_()
        with torch.enable_grad(), relevance_rules(self.module):
            score = outcome(self.logits_from_embeddings(document, embeddings)).sum()
            (gradient,) = torch.autograd.grad(score, embeddings)
        return (gradient * embeddings).sum(dim=-1)[0].detach()

    def mask_gradients(self, document: Document, outcome: Outcome) -> Tensor:
        """α (u·e − f) for each position, and 0 for the CLS token, which is not a key."""
        logit_bias = torch.zeros(self.model.n_positions, dtype=torch.float64, requires_grad=True)
        with torch.enable_grad():
            score = outcome(_logits(self.module(self.embeddings(document)[None], logit_bias))).sum()
            (gradient,) = torch.autograd.grad(score, logit_bias)
        return torch.cat([torch.zeros(1, dtype=gradient.dtype), gradient])

    def _embedded(self, document: Document, queries: Queries) -> Tensor:
        return self.module.embed(torch.from_numpy(input_ids(self.model, document, queries)))[0]


def _logits(scores: Tensor) -> Tensor:
    """Two classes: the log-odds of the second are f."""
    return torch.stack([torch.zeros_like(scores), scores], dim=1)
