"""The transformer of the paper (Leemann et al., appendix B.1), as small as it is written there.

    A = softmax(Q Kᵀ/√d_h),    h ← ffn(h + P(A V)),    logits = cls(h_r)

Q, K and V are affine in h, P joins the heads, ffn is a two-layer ReLU net with a skip connection.
There are no positions and no layer norms. Encoders read off the first token (r = 1), decoders the
last (r = |t|), with a causal mask.
"""

import torch
from torch import Tensor, nn


class Transformer(nn.Module):
    """(n, T) token ids → (n, 2) logits; all sequences of a batch have the same length."""

    def __init__(
        self,
        n_tokens: int,
        *,
        head_width: int = 8,
        n_heads: int = 1,
        n_layers: int = 1,
        causal: bool = False,
    ) -> None:
        super().__init__()
        width = head_width * n_heads
        self.causal = causal
        self.embedding = nn.Embedding(n_tokens, width)
        self.layers = nn.ModuleList(Layer(width, n_heads) for _ in range(n_layers))
        self.classify = nn.Linear(width, 2)

    def forward(self, ids: Tensor) -> Tensor:
        h = self.embedding(ids)
        length = ids.shape[1]
        later = torch.ones(length, length, device=ids.device).triu(1).bool()
        for layer in self.layers:
            h = layer(h, later if self.causal else torch.zeros_like(later))
        logits: Tensor = self.classify(h[:, -1 if self.causal else 0])
        return logits

    def log_odds(self, ids: Tensor) -> Tensor:
        """(n,): the second class against the first."""
        logits: Tensor = self(ids)
        return logits[:, 1] - logits[:, 0]


class Layer(nn.Module):
    """Attention, projection and feed-forward part, both with a skip connection."""

    def __init__(self, width: int, n_heads: int) -> None:
        super().__init__()
        self.n_heads = n_heads
        self.q, self.k, self.v = (nn.Linear(width, width) for _ in range(3))
        self.project = nn.Linear(width, width)
        self.widen, self.narrow = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, h: Tensor, masked: Tensor) -> Tensor:
        q, k, v = (part(h).unflatten(-1, (self.n_heads, -1)) for part in (self.q, self.k, self.v))
        scores = torch.einsum("nihd,njhd->nhij", q, k) / q.shape[-1] ** 0.5
        attention = scores.masked_fill(masked, -torch.inf).softmax(dim=-1)
        mixed = torch.einsum("nhij,njhd->nihd", attention, v).flatten(2)
        h = h + self.project(mixed)
        return h + self.narrow(torch.relu(self.widen(h)))  # type: ignore[no-any-return]
