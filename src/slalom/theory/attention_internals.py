"""The internals of the attention classifier, for gradient, attention and relevance methods."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from slalom.classifiers.huggingface.relevance import relevance_rules
from slalom.classifiers.internals import Outcome
from slalom.document import Document, IntArray, Queries
from slalom.theory.attention_inputs import encoded_text, input_ids
from slalom.theory.attention_model import AttentionModel
from slalom.theory.attention_torch import AttentionModule


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
