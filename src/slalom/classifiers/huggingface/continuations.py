"""What a language model says next, and how likely it finds a given continuation.

    z_t = l_t − log Σ_{other tokens} exp(l)        log-odds of token t, given all before it

This part knows keys, values and batches. Many rows begin alike: their common beginning goes through
the model once, its keys and values are handed to every batch, and what follows goes in batches of
like lengths. Padding stands on the right, where a causal model cannot see it. For a continuation
on a CPU, rows are read in the order of a dictionary instead, so that each shares as much as it can
with the one before it: of the tokens of a trie each is computed once, and its keys and values kept
as long as they serve. Models whose memory is not plain keys and values (recurrent ones, sliding
windows) read every row from its start.
"""

from collections.abc import Callable, Sequence
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
NUMBERS = 2**28  # scores of the vocabulary that are alive at once: a gigabyte

Ids = Sequence[int]
Tell = Callable[[int], None]  # of so many rows that were answered


def next_tokens(model: Any, rows: TokenRows, tokens: Sequence[int]) -> FloatArray:
    """Log-probabilities of these tokens after each row: (n_rows, n_tokens)."""
    with borrowed(model, None):
        wanted = torch.tensor(tokens, device=device_of(model))

        def read(scores: Tensor) -> Tensor:
            return torch.log_softmax(scores[:, 0].float(), dim=-1)[:, wanted]

        found, _ = _at_the_end(model, rows, 1, read)
    return found


def likelihoods(model: Any, rows: Sequence[Ids], answer: Ids, tell: Tell) -> tuple[FloatArray, int]:
    """(n_rows, n_tokens) log-odds of one answer after each row; tokens computed for them."""
    order = sorted(range(len(rows)), key=lambda at: tuple(rows[at]))
    with borrowed(model, None):
        if device_of(model).type == "cpu" and remembers(model, rows[order[0]]):
            found, n_computed = _one_by_one(model, [rows[at] for at in order], answer, tell)
        else:
            found, n_computed = _in_batches(model, [rows[at] for at in order], answer, tell)
    return found[np.argsort(order)], n_computed


def written(model: Any, row: Ids, ends: frozenset[int], most: int) -> list[int]:
    """What the model says after the row, the likeliest token each time."""
    with borrowed(model, None):
        memory = DynamicCache() if remembers(model, row) else None
        said: list[int] = []
        read = list(row)
        while len(said) < most:
            scores, memory = _scores(model, read, memory, keep=1)
            said.append(int(scores[-1].argmax()))
            if said[-1] in ends:
                return said[:-1]
            read = [*row, *said] if memory is None else said[-1:]
    return said


def looks_ahead(model: Any, tokens: tuple[int, int]) -> bool:
    """Whether what stands later changes what is said before it, as in an encoder."""
    first, other = tokens
    with borrowed(model, None):
        ids = torch.tensor([[first, first], [first, other]], device=device_of(model))
        scores = _vocabulary_scores(model, forward(model, {"input_ids": ids}))[:, 0]
    return bool((scores[0] - scores[1]).abs().max() > 1e-4 * scores.abs().max())


def remembers(model: Any, row: Ids) -> bool:
    """Whether its memory is plain keys and values, which can be cut back to any length."""
    if len(row) < 2:
        return False
    one = np.array(row[:1], dtype=np.int32)
    return _prefix_of(model, TokenRows(one, one * 0, np.array([1])), 1).length == 1


def _one_by_one(model: Any, rows: Sequence[Ids], answer: Ids, tell: Tell) -> tuple[FloatArray, int]:
    """Row after row, each from where it parts from the one before."""
    memory: DynamicCache | None = DynamicCache()
    known: Ids = ()
    found, n_computed = [], 0
    for row in rows:
        n_shared = min(_shared(known, row), len(row) - 1)
        if memory is not None:
            _cut_back(memory, n_shared)
        read = [*row[n_shared:], *answer[:-1]]
        scores, memory = _scores(model, read, memory, keep=len(answer))
        found.append(_log_odds(scores[None], answer)[0])
        known, n_computed = row, n_computed + len(read)
        tell(1)
    return torch.stack(found).double().cpu().numpy(), n_computed


def _cut_back(memory: DynamicCache, length: int) -> None:
    """Forget what comes after the first `length` tokens; versions of `crop` differ."""
    layers: list[Any] = memory.layers
    for layer in layers:
        if layer.keys is not None:
            layer.keys, layer.values = layer.keys[..., :length, :], layer.values[..., :length, :]


def _shared(first: Ids, second: Ids) -> int:
    """How many tokens both begin with."""
    for at, (one, other) in enumerate(zip(first, second, strict=False)):
        if one != other:
            return at
    return min(len(first), len(second))


def _scores(
    model: Any, read: Ids, memory: DynamicCache | None, *, keep: int
) -> tuple[Tensor, DynamicCache | None]:
    """(keep, n_vocabulary) after the last tokens of one row, and the memory after it."""
    inputs: dict[str, Any] = {"input_ids": torch.tensor([list(read)], device=device_of(model))}
    if memory is not None:
        inputs |= {"past_key_values": memory, "use_cache": True}
    elif forward_accepts(model, "use_cache"):
        inputs["use_cache"] = False
    if forward_accepts(model, "logits_to_keep"):  # the vocabulary is large
        inputs["logits_to_keep"] = keep
    output = forward(model, inputs)
    scores = _vocabulary_scores(model, output)[0, -keep:]
    return scores, getattr(output, "past_key_values", None) if memory is not None else None


def _in_batches(model: Any, rows: Sequence[Ids], answer: Ids, tell: Tell) -> tuple[FloatArray, int]:
    """All rows in batches of like lengths, after what all begin with."""
    ids = np.concatenate([np.array([*row, *answer[:-1]], dtype=np.int32) for row in rows])
    lengths = np.array([len(row) + len(answer) - 1 for row in rows], dtype=np.int64)
    whole = TokenRows(ids, np.zeros_like(ids), lengths)

    def read(scores: Tensor) -> Tensor:
        found = _log_odds(scores, answer)
        tell(len(scores))
        return found

    return _at_the_end(model, whole, len(answer), read)


def _at_the_end(
    model: Any, rows: TokenRows, n_last: int, read: Callable[[Tensor], Tensor]
) -> tuple[FloatArray, int]:
    """What is read off the scores at the last tokens of each row, and how many were computed."""
    prefix = _prefix_of(model, rows, common_start(rows, n_last))
    rest = without_start(rows, prefix.length)
    there = on_device(rest, device_of(model))

    def ask(chosen: LongArray) -> Tensor:
        return read(_last_scores(model, there, chosen, prefix, n_last))

    n_vocabulary = int(getattr(getattr(model, "config", None), "vocab_size", 0) or 2**17)
    most = max(1, NUMBERS // (n_last * n_vocabulary)) * int(rest.lengths.max())
    budget = min(most, tokens_per_batch(model))
    weights = rest.lengths + -(-prefix.length // REMEMBERED)
    begun = in_turn(model, batches(weights, budget=budget, padding=True), ask)
    return begun.answers(), prefix.length + rest.n_tokens


def common_start(rows: TokenRows, n_last: int) -> int:
    """How many tokens all rows begin with; every row keeps so many at its end for itself."""
    if len(rows.lengths) < 2:
        return 0
    most = int(rows.lengths.min()) - n_last
    table = rows.ids[rows.starts[:, None] + np.arange(most)]  # (n_rows, most)
    return int((table == table[0]).all(axis=0).cumprod().sum())


def without_start(rows: TokenRows, n: int) -> TokenRows:
    """The rows less their first n tokens."""
    kept = np.ones(len(rows.ids), dtype=bool)
    kept[(rows.starts[:, None] + np.arange(n)).ravel()] = False
    return TokenRows(rows.ids[kept], rows.types[kept], rows.lengths - n)


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


def _prefix_of(model: Any, rows: TokenRows, n: int) -> Prefix:
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


def _last_scores(
    model: Any, rest: DeviceRows, chosen: LongArray, prefix: Prefix, n_last: int
) -> Tensor:
    """(n_chosen, n_last, n_vocabulary) at the last tokens of rows that follow the prefix."""
    ids, mask, _ = rest.padded(chosen, pad=0)
    inputs: dict[str, Any] = {"input_ids": ids}
    if forward_accepts(model, "attention_mask"):
        remembered = mask.new_ones((len(chosen), prefix.length))
        inputs["attention_mask"] = torch.cat([remembered, mask], dim=1)
    if prefix.length:
        inputs["past_key_values"] = prefix.memory(len(chosen))
    elif forward_accepts(model, "use_cache"):
        inputs["use_cache"] = False
    wanted = (rest.rows.lengths[chosen] - n_last)[:, None] + np.arange(n_last)
    places, which = np.unique(wanted, return_inverse=True)
    kept = forward_accepts(model, "logits_to_keep")
    if kept:  # the vocabulary is large: only where rows end
        inputs["logits_to_keep"] = torch.from_numpy(places).to(ids.device)
    scores = _vocabulary_scores(model, forward(model, inputs))
    at = torch.from_numpy(which.reshape(wanted.shape) if kept else wanted).to(ids.device)
    return scores[torch.arange(len(chosen), device=ids.device)[:, None], at]


def _log_odds(scores: Tensor, answer: Ids) -> Tensor:
    """(n, n_tokens, n_vocabulary) → (n, n_tokens), without losing what is nearly certain."""
    tokens = torch.tensor(list(answer), device=scores.device)[None, :, None]
    scores = scores.float()
    index = tokens.expand(len(scores), -1, -1)
    own = scores.gather(2, index)
    others = scores.scatter(2, index, -torch.inf).logsumexp(dim=2)
    return own[:, :, 0] - others


def _vocabulary_scores(model: Any, output: Any) -> Tensor:
    """(n_rows, n_places, n_vocabulary) of what the model returned."""
    logits = getattr(output, "logits", output)
    if not isinstance(logits, Tensor) or logits.ndim != 3:
        raise ClassifierError(
            f"{type(model).__name__} does not give a score to every token: "
            "load it with AutoModelForCausalLM"
        )
    return logits
