"""Rows of an encoder end to end: no padding, and rows of all lengths in one batch.

In a layer only attention looks at more than one token, and it is told where each row begins:
PyTorch has attention for rows of any length on a GPU, one for numbers of 16 bits and another, which
is behind its own attention for wider ones. The processor takes as long to tell a GPU of one large
batch as of one small batch. Tokens of no row fill a batch up to a round number; nothing looks at
what comes of them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor
from torch.nn import functional

from slalom.classifiers.huggingface.encoder import Encoder, Layer
from slalom.classifiers.huggingface.held import Packed, rounded_up

EFFICIENT = "_efficient_attention_forward"  # not public: what PyTorch's own attention calls
NO_MASK = 0

# queries, keys and values (n_tokens, heads, e), where rows of queries and of keys begin, and how
# long the longest of them are
Attend = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor, int, int], Tensor]


@dataclass(frozen=True, eq=False)
class Tokens:
    """Rows of vectors end to end."""

    hidden: Tensor  # (n_tokens, size)
    bounds: Tensor  # (n_rows + 1,) where rows begin, and where the last ends
    longest: int


def attention_by_rows(dtype: torch.dtype) -> Attend | None:
    """For numbers of this kind; None where PyTorch has none, or is too old to have it."""
    if dtype == torch.float32:
        return _attention_in_32_bits if hasattr(torch.ops.aten, EFFICIENT) else None
    try:
        from torch.nn.attention.varlen import varlen_attn
    except ImportError:
        return None
    return cast("Attend", varlen_attn)  # it returns more only where one asks for it


def _attention_in_32_bits(
    query: Tensor, key: Tensor, value: Tensor, asking: Tensor, read: Tensor, *longest: int
) -> Tensor:
    parts = (part[None] for part in (query, key, value))  # one sequence, in which all rows lie
    attend = getattr(torch.ops.aten, EFFICIENT)
    found: Tensor = attend(*parts, None, asking, read, *longest, 0.0, NO_MASK)[0]
    return found[0]


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
