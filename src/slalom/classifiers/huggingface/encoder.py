"""A classifier like BERT in its parts, asked for no more than its answer takes.

The answer is read off the first token, so the last layer is computed for that token alone. With q
its query, K, k, V and v a head's weights for keys and values, x_j the input of token j:

    scores   q · (K x_j + k) = (Kᵀ q) · x_j + constant        the softmax a drops the constant
    read     Σ_j a_j (V x_j + v) = V Σ_j a_j x_j + v          as the a_j add up to one

so that no token but the first is multiplied by a matrix there. Parts are the model's own modules.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.modules import module as every_module

from slalom.classifiers.huggingface.walk import modules_of

KINDS = {"bert", "camembert", "distilbert", "electra", "roberta", "xlm-roberta"}

Start = tuple[Tensor, ...]  # of a layer: its input; queries, keys and values unless it is the last


@dataclass(frozen=True, eq=False)
class Layer:
    """Attention, and what is done to its result."""

    query: nn.Linear
    key: nn.Linear
    value: nn.Linear
    n_heads: int
    add: Callable[[Tensor, Tensor], Tensor]  # what was read to the input
    feed: Callable[[Tensor], Tensor]

    def start(self, hidden: Tensor) -> Start:
        return hidden, self.query(hidden), self.key(hidden), self.value(hidden)

    def all_tokens(self, start: Start, mask: Tensor | None) -> Tensor:
        """(n_rows, width, size) from as many; the mask is (n_rows, width)."""
        query, key, value = (self.heads(part).transpose(1, 2) for part in start[1:])
        shown = None if mask is None else mask[:, None, None]
        read = functional.scaled_dot_product_attention(query, key, value, attn_mask=shown)
        return self.feed(self.add(read.transpose(1, 2).flatten(2), start[0]))

    def first_token(self, hidden: Tensor, mask: Tensor | None) -> Tensor:
        """(n_rows, 1, size), by the formulas above."""
        first = hidden[:, :1]
        query = self.heads(self.query(first))[:, 0]  # (n_rows, heads, e)
        key, value = self.heads(self.key.weight.T), self.heads(self.value.weight.T)
        scores = torch.einsum("nhe,dhe->nhd", query, key) @ hidden.transpose(1, 2)
        scores = scores / query.shape[-1] ** 0.5  # (n_rows, heads, width)
        if mask is not None:
            scores = scores.masked_fill(~mask[:, None], -torch.inf)
        mixed = scores.softmax(-1) @ hidden  # (n_rows, heads, size)
        read = torch.einsum("nhd,dhe->nhe", mixed, value).flatten(1) + self.value.bias
        return self.feed(self.add(read[:, None], first))

    def heads(self, vectors: Tensor) -> Tensor:
        """(…, heads, e) from (…, heads · e)."""
        return vectors.view(*vectors.shape[:-1], self.n_heads, -1)


@dataclass(frozen=True, eq=False)
class Encoder:
    """Layers, and what comes before and after them."""

    embed: Callable[[Tensor, Tensor, Tensor], Tensor]  # ids, places in the row and types
    layers: tuple[Layer, ...]
    head: Callable[[Tensor], Tensor]  # of the first token, (n_rows, 1, size)
    pad: int | None  # an id that takes no place, where there is one

    def start(self, ids: Tensor, places: Tensor, types: Tensor) -> Start:
        return self._start(0, self.embed(ids, places, types))

    def scores(self, start: Start, mask: Tensor | None) -> Tensor:
        """(n_rows, n_outputs); without a mask no row is padded."""
        for number, layer in enumerate(self.layers[:-1]):
            start = self._start(number + 1, layer.all_tokens(start, mask))
        return self.head(self.layers[-1].first_token(start[0], mask))

    def _start(self, number: int, hidden: Tensor) -> Start:
        is_last = number == len(self.layers) - 1
        return (hidden,) if is_last else self.layers[number].start(hidden)


def encoder_of(model: Any) -> Encoder | None:
    """None where it is another kind of model, or somebody changed how its modules work."""
    kind = getattr(getattr(model, "config", None), "model_type", None)
    known = kind in KINDS and type(model).__module__.startswith("transformers.models.")
    if not known or not type(model).__name__.endswith("ForSequenceClassification"):
        return None
    base = model.base_model
    layers = (
        tuple(_distilbert_layer(layer) for layer in base.transformer.layer)
        if kind == "distilbert"
        else tuple(_bert_layer(layer) for layer in base.encoder.layer)
    )
    linear = [part for layer in layers for part in (layer.query, layer.key, layer.value)]
    plain = all(type(part) is nn.Linear for part in linear) and not _hooked_everywhere()
    if not plain or any(map(_changed, modules_of(model))):
        return None
    return Encoder(
        _embed(base), layers, _head(model), base.embeddings.position_embeddings.padding_idx
    )


def _hooked_everywhere() -> bool:
    """Whether somebody watches or changes what modules of all models say."""
    return bool(every_module._global_forward_hooks or every_module._global_forward_pre_hooks)


def _changed(module: nn.Module) -> bool:
    hooks = module._forward_hooks or module._forward_pre_hooks
    return bool(hooks) or "forward" in vars(module)


def _bert_layer(layer: Any) -> Layer:
    inner = layer.attention.self
    return Layer(
        inner.query,
        inner.key,
        inner.value,
        inner.num_attention_heads,
        add=layer.attention.output,
        feed=layer.feed_forward_chunk,
    )


def _distilbert_layer(layer: Any) -> Layer:
    inner = layer.attention
    return Layer(
        inner.q_lin,
        inner.k_lin,
        inner.v_lin,
        inner.n_heads,
        add=lambda read, hidden: layer.sa_layer_norm(inner.out_lin(read) + hidden),
        feed=lambda hidden: layer.output_layer_norm(layer.ffn(hidden) + hidden),
    )


def _embed(base: Any) -> Callable[[Tensor, Tensor, Tensor], Tensor]:
    table = base.embeddings
    pad = table.position_embeddings.padding_idx
    first = 0 if pad is None else pad + 1  # RoBERTa and its kin count from behind the pad id
    project = getattr(base, "embeddings_project", nn.Identity())  # Electra's, to its wider layers

    def embed(ids: Tensor, places: Tensor, types: Tensor) -> Tensor:
        typed = {"token_type_ids": types} if hasattr(table, "token_type_embeddings") else {}
        found: Tensor = project(table(input_ids=ids, position_ids=first + places, **typed))
        return found

    return embed


def _head(model: Any) -> Callable[[Tensor], Tensor]:
    """Dropout is left out: a model that is asked is in eval mode."""
    pooler = getattr(model.base_model, "pooler", None)
    if pooler is not None:
        return lambda first: model.classifier(pooler(first))
    if hasattr(model, "pre_classifier"):  # DistilBERT
        return lambda first: model.classifier(model.pre_classifier(first[:, 0]).relu())
    return lambda first: model.classifier(first)
