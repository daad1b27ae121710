"""An encoder like BERT asked in its parts, for no more than its answer takes, once it agreed.

The answer is read off the first token, so the last layer is computed for that token alone. With q
its query, K, k, V and v a head's weights for keys and values, x_j the input of token j:

    scores   q · (K x_j + k) = (Kᵀ q) · x_j + constant        the softmax a drops the constant
    read     Σ_j a_j (V x_j + v) = V Σ_j a_j x_j + v          as the a_j add up to one

so that no token but the first is multiplied by a matrix there. Parts are the model's own modules.

On a GPU rows lie end to end: no padding, and rows of all lengths in one batch. In a layer only
attention looks at more than one token, and it is told where each row begins: PyTorch has attention
for rows of any length on a GPU, one for numbers of 16 bits and another, which is behind its own
attention for wider ones. The processor takes as long to tell a GPU of one large batch as of one
small batch. Tokens of no row fill a batch up to a round number; nothing looks at what comes of
them. Elsewhere rows are padded, and what the first layer starts from, a token at its place, is the
same in many rows: where that pays it is computed once for all of them.

A few answers are compared with those of the model's own forward pass: whatever is not known here of
a model, that is how it shows.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.modules import module as every_module

from slalom.classifiers.huggingface.batching import LongArray, TokenRows
from slalom.classifiers.huggingface.devices import DeviceRows, Packed, on_device, rounded_up

_n_weights: WeakKeyDictionary[Any, int] = WeakKeyDictionary()


def modules_of(model: nn.Module) -> list[nn.Module]:
    """Each once, however often it is used."""
    found: dict[int, nn.Module] = {id(model): model}
    left = [model]
    while left:
        for module in left.pop()._modules.values():
            if module is not None and id(module) not in found:
                found[id(module)] = module
                left.append(module)
    return list(found.values())


def weights_of(modules: list[nn.Module]) -> list[Tensor]:
    """Of these modules, with those that are shared as often as they are."""
    parameters: list[Any] = [one for module in modules for one in module._parameters.values()]
    return [one for one in parameters if one is not None]


def n_weights_of(model: nn.Module) -> int:
    """Those that every token is multiplied with: all but tables; counted once per model."""
    if model not in _n_weights:
        every = [one for one in modules_of(model) if not isinstance(one, nn.Embedding)]
        _n_weights[model] = sum(one.numel() for one in weights_of(every))
    return _n_weights[model]


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
        query, key, value = map(self.heads, start[1:])
        read = functional.scaled_dot_product_attention(
            query.transpose(1, 2),
            key.transpose(1, 2),
            value.transpose(1, 2),
            attn_mask=None if mask is None else mask[:, None, None],
        )
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
    first = 0 if pad is None else pad + 1  # RoBERTa and models like it count from behind the pad id
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


EFFICIENT = "_efficient_attention_forward"  # not public: what PyTorch's own attention calls
NO_MASK = 0

# queries, keys and values (n_tokens, heads, e), where rows of queries and of keys begin, and how
# long the longest of them are
Attend = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor, int, int], Tensor]


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

    def after(layer: Layer, hidden: Tensor, asking: Tensor, bounds: Tensor, longest: int) -> Tensor:
        """What a layer makes of tokens that ask, each of the row that it belongs to."""
        query = layer.heads(layer.query(asking))
        key, value = (layer.heads(part(hidden)) for part in (layer.key, layer.value))
        found = attend(query, key, value, bounds, rows.bounds, longest, rows.longest)
        return layer.feed(layer.add(found.flatten(1), asking))

    hidden = encoder.embed(rows.ids[None], rows.places[None], rows.types[None])[0]
    for layer in encoder.layers[:-1]:
        hidden = after(layer, hidden, hidden, rows.bounds, rows.longest)
    n_rows = len(rows.bounds) - 1
    begins = functional.pad(rows.bounds[:-1], (0, rounded_up(n_rows) - n_rows))
    alone = torch.arange(n_rows + 1, dtype=torch.int32, device=hidden.device)
    first = after(encoder.layers[-1], hidden, hidden[begins], alone, 1)
    return encoder.head(first[:, None])[:n_rows]


ENOUGH = 3  # rows that are compared once for all
TOLERANCE = 1e-5  # of scores, absolute and relative
STEPS = 8  # of a number's last digit, where weights are coarser than that
LARGEST_TABLE = 2**25  # numbers, 128 MB
PACKED_BYTES = 4  # per weight, at most: attention by rows reads no wider numbers
PLAIN = (bool, int, float, str)  # what settings of a model are that change how it answers
TIMES_SHOWN = 2  # on average, for a table to pay

Ask = Callable[[LongArray], Tensor]  # from numbers of rows to their scores
Known = WeakKeyDictionary[Any, dict[bool, tuple[int, bool]]]  # state of a model, whether it agreed

_agreed: Known = WeakKeyDictionary()


def quickest(model: Any, there: DeviceRows, plain: Ask, *, multiple: int = 1) -> tuple[Ask, bool]:
    """A shortcut where it pays and gives the scores of `plain`, else `plain`.

    True beside it: rows of any lengths may be in one batch, without padding. Else widths on a GPU
    are multiples of `multiple`, where that takes little.
    """
    for any_lengths in (True, False):
        try:
            if any_lengths:
                ask = _end_to_end(model, there)
            else:
                ask = _padded(model, there, multiple=multiple)
            if ask is not None and _agree(model, ask, plain, there.rows, any_lengths=any_lengths):
                return ask, any_lengths
        except Exception:  # other names, ids that the model lacks: it will say itself what is wrong
            continue
    return plain, False


def _agree(model: Any, ask: Ask, plain: Ask, rows: TokenRows, *, any_lengths: bool) -> bool:
    """Whether a few answers are the same; compared once for the same weights.

    However few rows there are: asked alone and with others, a text gets the same answer.
    """
    state, known = _state(model), _agreed.setdefault(model, {})
    before, agreed = known.get(any_lengths, (None, False))
    if before == state:
        return agreed
    order = np.argsort(rows.lengths)
    some = order[: len(order) // 2 + 1 : max(1, len(order) // 4)]  # no long ones: they take longer
    weight = next(model.parameters())
    tolerance = max(TOLERANCE, STEPS * torch.finfo(weight.dtype).eps)
    same = torch.allclose(ask(some), plain(some), rtol=tolerance, atol=tolerance)
    if len(some) >= ENOUGH:
        known[any_lengths] = state, same
    return same


def _state(model: Any) -> int:
    """Another number once modules, weights or settings are others, as far as torch counts."""
    every = modules_of(model)
    weights = [
        (one.data_ptr(), 0 if one.is_inference() else one._version) for one in weights_of(every)
    ]
    modules = [(id(one), type(one), vars(one).get("scaling")) for one in every]
    attention = getattr(model.config, "_attn_implementation", None)
    plain = [value for value in vars(model.config).values() if isinstance(value, PLAIN)]
    return hash((*weights, *modules, *plain, attention))


def _end_to_end(model: Any, there: DeviceRows) -> Ask | None:
    """None unless weights are on a GPU and of no more than 32 bits."""
    weight = next(model.parameters(), None)
    if weight is None or not weight.is_cuda or weight.element_size() > PACKED_BYTES:
        return None
    attend, encoder = attention_by_rows(weight.dtype), _encoder(model, there.rows)
    if attend is None or encoder is None:
        return None
    return lambda chosen: packed_scores(encoder, there.packed(chosen), attend)


def _padded(model: Any, there: DeviceRows, *, multiple: int) -> Ask | None:
    """None on a CPU with weights of 16 bits, which it is slow with one way or the other."""
    weight, rows = next(model.parameters(), None), there.rows
    if weight is None or not (weight.is_cuda or (weight.is_cpu and weight.element_size() >= 4)):
        return None
    encoder = _encoder(model, rows)
    if encoder is None:
        return None
    if weight.is_cuda:  # it would wait longer for a table than it takes to do without
        return _without_table(encoder, there, multiple=multiple)
    return _with_table(encoder, rows) or _without_table(encoder, there, multiple=1)


def _encoder(model: Any, rows: TokenRows) -> Encoder | None:
    """None where rows hold a pad id that takes no place, too."""
    encoder = encoder_of(model)
    if encoder is None or (encoder.pad is not None and (rows.ids == encoder.pad).any()):
        return None
    return encoder


def _with_table(encoder: Encoder, rows: TokenRows) -> Ask | None:
    """None where rows share too few tokens at their places."""
    places = np.arange(len(rows.ids)) - np.repeat(rows.starts, rows.lengths)
    parts = [part.astype(np.int64) for part in (rows.ids, places, rows.types)]
    sizes = [int(part.max()) + 1 for part in parts]
    distinct, numbers = np.unique(np.ravel_multi_index(parts, sizes), return_inverse=True)
    size = 4 * encoder.layers[0].query.in_features  # input, query, key and value
    if len(distinct) > min(LARGEST_TABLE / size, len(numbers) / TIMES_SHOWN):
        return None
    tokens = [torch.from_numpy(part)[:, None] for part in np.unravel_index(distinct, sizes)]
    table = [part[:, 0] for part in encoder.start(*tokens)]  # (n_distinct, size) each
    numbered = TokenRows(numbers.astype(np.int32), np.zeros_like(rows.types), rows.lengths)
    there = on_device(numbered, torch.device("cpu"))

    def ask(chosen: LongArray) -> Tensor:
        shown, mask, _ = there.padded(chosen, pad=0)
        start = tuple(functional.embedding(shown, part) for part in table)
        return encoder.scores(start, _needed(mask, rows, chosen))

    return ask


def _without_table(encoder: Encoder, there: DeviceRows, *, multiple: int) -> Ask:
    def ask(chosen: LongArray) -> Tensor:
        ids, mask, types = there.padded(chosen, pad=0, multiple=multiple)
        places = torch.arange(ids.shape[1], device=ids.device).expand_as(ids)
        start = encoder.start(ids, places, types)
        return encoder.scores(start, _needed(mask, there.rows, chosen))

    return ask


def _needed(mask: Tensor, rows: TokenRows, chosen: LongArray) -> Tensor | None:
    """Rows without padding do without: that is quicker."""
    return None if rows.lengths[chosen].min() == mask.shape[1] else mask.bool()
