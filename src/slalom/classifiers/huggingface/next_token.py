"""What a causal language model says next, for many rows that begin alike.

This part knows keys, values and batches. The rows' common beginning goes through the model
once; its keys and values are handed to every batch. Padding stands on the right, where a
causal model cannot see it. Models whose memory is not plain keys and values (recurrent ones,
sliding windows) read every row from its start.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from transformers.cache_utils import DynamicCache, DynamicLayer

from slalom.classifiers.huggingface.batching import LongArray, TokenRows, batches
from slalom.classifiers.huggingface.calls import (
    borrowed,
    device_of,
    forward,
    forward_accepts,
    in_turn,
    tokens_per_batch,
)
from slalom.classifiers.huggingface.devices import DeviceRows, on_device
from slalom.document import FloatArray
from slalom.errors import ClassifierError

REMEMBERED = 4  # tokens of remembered prefix that weigh like one that is computed


@dataclass(frozen=True, eq=False)
class Prefix:
    """Keys and values of what all rows begin with; no layers: nothing is remembered."""

    length: int
    layers: tuple[tuple[Tensor, Tensor], ...]  # (1, n_heads, length, width) each

    def memory(self, n_rows: int) -> DynamicCache:
        """A memory of its own for every batch: a model writes into what it is given."""
        memory = DynamicCache()
        for number, (keys, values) in enumerate(self.layers):
            spread = (n_rows, *keys.shape[1:]), (n_rows, *values.shape[1:])
            memory.update(keys.expand(spread[0]), values.expand(spread[1]), number)
        return memory


def next_tokens(model: Any, rows: TokenRows, tokens: Sequence[int]) -> FloatArray:
    """Log-probabilities of these tokens after each row: (n_rows, n_tokens)."""
    wanted = torch.tensor(tokens, device=device_of(model))
    with borrowed(model, None):
        prefix = prefix_of(model, rows, common_start(rows))
        rest = without_start(rows, prefix.length)
        there = on_device(rest, device_of(model))
        budget = tokens_per_batch(model)

        def ask(chosen: LongArray) -> Tensor:
            last = _last_logits(model, there, chosen, prefix)
            return torch.log_softmax(last.float(), dim=-1)[:, wanted]

        weights = rest.lengths + -(-prefix.length // REMEMBERED)
        begun = in_turn(model, batches(weights, budget=budget, padding=True), ask)
    return begun.answers()


def common_start(rows: TokenRows) -> int:
    """How many tokens all rows begin with; every row keeps at least its last for itself."""
    if len(rows.lengths) < 2:
        return 0
    most = int(rows.lengths.min()) - 1
    table = rows.ids[rows.starts[:, None] + np.arange(most)]  # (n_rows, most)
    return int((table == table[0]).all(axis=0).cumprod().sum())


def without_start(rows: TokenRows, n: int) -> TokenRows:
    """The rows less their first n tokens."""
    kept = np.ones(len(rows.ids), dtype=bool)
    kept[(rows.starts[:, None] + np.arange(n)).ravel()] = False
    return TokenRows(rows.ids[kept], rows.types[kept], rows.lengths - n)


def prefix_of(model: Any, rows: TokenRows, n: int) -> Prefix:
    """The first n tokens, computed; nothing where the model remembers in another way."""
    no_prefix = Prefix(0, ())
    if n == 0 or not forward_accepts(model, "past_key_values"):
        return no_prefix
    ids = torch.from_numpy(rows.ids[None, :n].astype(np.int64)).to(device_of(model))
    memory = getattr(forward(model, {"input_ids": ids, "use_cache": True}), "past_key_values", 0)
    layers = getattr(memory, "layers", ())
    if not layers or any(type(layer) is not DynamicLayer for layer in layers):
        return no_prefix
    return Prefix(n, tuple((layer.keys, layer.values) for layer in layers))


def inputs_after(model: Any, rest: DeviceRows, chosen: LongArray, prefix: Prefix) -> dict[str, Any]:
    """What the model is given: these rows, after what all of them begin with."""
    ids, mask, _ = rest.padded(chosen, pad=0)
    inputs: dict[str, Any] = {"input_ids": ids}
    if forward_accepts(model, "attention_mask"):
        remembered = mask.new_ones((len(chosen), prefix.length))
        inputs["attention_mask"] = torch.cat([remembered, mask], dim=1)
    if prefix.length:
        inputs["past_key_values"] = prefix.memory(len(chosen))
    elif forward_accepts(model, "use_cache"):
        inputs["use_cache"] = False
    return inputs


def _last_logits(model: Any, rest: DeviceRows, chosen: LongArray, prefix: Prefix) -> Tensor:
    """(n_chosen, n_vocabulary) at the last token of each row."""
    inputs = inputs_after(model, rest, chosen, prefix)
    ids = inputs["input_ids"]
    places, which = np.unique(rest.rows.lengths[chosen] - 1, return_inverse=True)
    if forward_accepts(model, "logits_to_keep"):  # the vocabulary is large: only where a row ends
        inputs["logits_to_keep"] = torch.from_numpy(places).to(ids.device)
    logits = checked_vocabulary_scores(model, forward(model, inputs))
    at = which if "logits_to_keep" in inputs else places[which]
    return logits[torch.arange(len(chosen)), torch.from_numpy(at)]


def checked_vocabulary_scores(model: Any, output: Any) -> Tensor:
    """(n_rows, n_places, n_vocabulary) of what the model returned."""
    logits = getattr(output, "logits", output)
    if not isinstance(logits, Tensor) or logits.ndim != 3:
        raise ClassifierError(
            f"{type(model).__name__} does not give a score to every token: "
            "load it with AutoModelForCausalLM"
        )
    return logits
