"""Rows of an encoder end to end: no padding, and rows of all lengths in one batch.

In a layer only attention looks at more than one token, and it is told where each row begins
(PyTorch's attention for rows of any length, which reads 16-bit numbers on a GPU). The processor
takes as long to tell a GPU of one large batch as of one small batch. Tokens of no row fill a batch
up to a round number; nothing looks at what comes of them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor
from torch.nn import functional

from slalom.classifiers.huggingface.encoder import Encoder, Layer
from slalom.classifiers.huggingface.held import Packed, rounded_up

# queries, keys and values (n_tokens, heads, e), where rows of queries and of keys begin, and how
# long the longest of them are
Attend = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor, int, int], Tensor]


@dataclass(frozen=True, eq=False)
class Tokens:
    """Rows of vectors end to end."""

    hidden: Tensor  # (n_tokens, size)
    bounds: Tensor  # (n_rows + 1,) where rows begin, and where the last ends
    longest: int


def attention_by_rows() -> Attend | None:
    """None where PyTorch is too old to have it."""
    try:
        from torch.nn.attention.varlen import varlen_attn
    except ImportError:
        return None
    return cast("Attend", varlen_attn)  # it returns more only where one asks for it


def packed_scores(encoder: Encoder, rows: Packed, attend: Attend) -> Tensor:
    """(n_rows, n_outputs); the last layer is computed for first tokens alone."""
    hidden = encoder.embed(rows.ids[None], rows.places[None], rows.types[None])[0]
    for layer in encoder.layers[:-1]:
        tokens = Tokens(hidden, rows.bounds, rows.longest)
        hidden = _after(layer, tokens, tokens, attend)
    n_rows = len(rows.bounds) - 1
    begins = functional.pad(rows.bounds[:-1], (0, rounded_up(n_rows) - n_rows))
    alone = torch.arange(n_rows + 1, dtype=torch.int32, device=hidden.device)
    first = Tokens(hidden[begins], alone, 1)
    every = Tokens(hidden, rows.bounds, rows.longest)
    return encoder.head(_after(encoder.layers[-1], first, every, attend)[:, None])[:n_rows]


def _after(layer: Layer, asking: Tokens, read: Tokens, attend: Attend) -> Tensor:
    """What a layer makes of tokens that ask, each of the row that it belongs to."""
    query = layer.heads(layer.query(asking.hidden))
    key, value = (layer.heads(part(read.hidden)) for part in (layer.key, layer.value))
    found = attend(query, key, value, asking.bounds, read.bounds, asking.longest, read.longest)
    return layer.feed(layer.add(found.flatten(1), asking.hidden))
