"""How likely a language model finds a given continuation after many beginnings, and what it says.

    z_t = l_t − log Σ_{other tokens} exp(l)        log-odds of token t, given all before it

The beginnings are read in the order of a dictionary, so that each shares as much as it can with
the one before it: of the tokens of a trie each is computed once, and its keys and values kept as
long as they serve. On a device that likes large batches the beginning common to all is computed
once, and what follows goes in batches of like lengths. Models whose memory is not plain keys and
values read every row from its start.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from transformers.cache_utils import DynamicCache

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
from slalom.classifiers.huggingface.next_token import (
    Prefix,
    checked_vocabulary_scores,
    common_start,
    inputs_after,
    prefix_of,
    without_start,
)
from slalom.document import FloatArray

NUMBERS = 2**28  # scores of the vocabulary that are alive at once: a gigabyte

Ids = Sequence[int]
Tell = Callable[[int], None]  # of so many rows that were answered


@dataclass(frozen=True, eq=False)
class Likelihoods:
    """Log-odds of every token of the continuation, and how many tokens were computed for them."""

    log_odds: FloatArray  # (n_rows, n_tokens)
    n_computed: int


def likelihoods(model: Any, rows: Sequence[Ids], answer: Ids, tell: Tell) -> Likelihoods:
    """The same answer after each row."""
    order = sorted(range(len(rows)), key=lambda at: tuple(rows[at]))
    with borrowed(model, None):
        if device_of(model).type == "cpu" and remembers(model, rows[order[0]]):
            found, n_computed = _one_by_one(model, [rows[at] for at in order], answer, tell)
        else:
            found, n_computed = _in_batches(model, [rows[at] for at in order], answer, tell)
    return Likelihoods(found[np.argsort(order)], n_computed)


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
        scores = checked_vocabulary_scores(model, forward(model, {"input_ids": ids}))[:, 0]
    return bool((scores[0] - scores[1]).abs().max() > 1e-4 * scores.abs().max())


def remembers(model: Any, row: Ids) -> bool:
    """Whether its memory is plain keys and values, which can be cut back to any length."""
    if len(row) < 2:
        return False
    one = np.array(row[:1], dtype=np.int32)
    return prefix_of(model, TokenRows(one, one * 0, np.array([1])), 1).length == 1


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
    scores = checked_vocabulary_scores(model, output)[0, -keep:]
    return scores, getattr(output, "past_key_values", None) if memory is not None else None


def _in_batches(model: Any, rows: Sequence[Ids], answer: Ids, tell: Tell) -> tuple[FloatArray, int]:
    """All rows in batches of like lengths, after what all begin with."""
    lengths = np.array([len(row) for row in rows], dtype=np.int64)
    ids = np.concatenate([np.array([*row, *answer[:-1]], dtype=np.int32) for row in rows])
    whole = TokenRows(ids, np.zeros_like(ids), lengths + len(answer) - 1)
    n_common = min(common_start(whole), int(lengths.min()) - 1)
    prefix = prefix_of(model, whole, n_common)
    rest = without_start(whole, prefix.length)
    there = on_device(rest, device_of(model))

    def ask(chosen: LongArray) -> Tensor:
        found = _batch(model, there, chosen, prefix, answer)
        tell(len(chosen))
        return found

    most = max(1, NUMBERS // (len(answer) * _n_tokens_known(model))) * int(rest.lengths.max())
    waiting = batches(rest.lengths, budget=min(most, tokens_per_batch(model)), padding=True)
    begun = in_turn(model, waiting, ask)
    return begun.answers(), prefix.length + rest.n_tokens


def _n_tokens_known(model: Any) -> int:
    return int(getattr(getattr(model, "config", None), "vocab_size", 0) or 2**17)


def _batch(model: Any, rest: DeviceRows, chosen: LongArray, prefix: Prefix, answer: Ids) -> Tensor:
    """(n_chosen, n_tokens) log-odds of the answer, with which each of these rows ends."""
    inputs = inputs_after(model, rest, chosen, prefix)
    ids = inputs["input_ids"]
    first = rest.rows.lengths[chosen] - len(answer)  # where the token before the answer stands
    wanted = first[:, None] + np.arange(len(answer))
    places, which = np.unique(wanted, return_inverse=True)
    kept = forward_accepts(model, "logits_to_keep")
    if kept:
        inputs["logits_to_keep"] = torch.from_numpy(places).to(ids.device)
    scores = checked_vocabulary_scores(model, forward(model, inputs))
    at = torch.from_numpy(which.reshape(wanted.shape) if kept else wanted).to(ids.device)
    return _log_odds(scores[torch.arange(len(chosen), device=ids.device)[:, None], at], answer)


def _log_odds(scores: Tensor, answer: Ids) -> Tensor:
    """(n, n_tokens, n_vocabulary) → (n, n_tokens), without losing what is nearly certain."""
    tokens = torch.tensor(list(answer), device=scores.device)[None, :, None]
    scores = scores.float()
    index = tokens.expand(len(scores), -1, -1)
    own = scores.gather(2, index)
    others = scores.scatter(2, index, -torch.inf).logsumexp(dim=2)
    return own[:, :, 0] - others
