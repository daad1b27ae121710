"""The single-layer attention model as a torch module with the same weights.

It takes embeddings, the CLS token first, so that gradients and relevances reach every token.
"""

import numpy as np
import torch
from torch import Tensor, nn

from slalom.document import FloatArray
from slalom.theory.attention_model import AttentionModel, WordIds


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
