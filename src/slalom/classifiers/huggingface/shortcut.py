"""Rows put to an encoder in its parts, once it was seen to answer as the model does.

On a GPU rows lie end to end (packed.py); elsewhere they are padded.

What the first layer starts from, a token at its place, is the same in many rows: where that pays
it is computed once for all of them. A few answers are compared with those of the model's own
forward pass: whatever is not known here of a model, that is how it shows.
"""

from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from slalom.classifiers.huggingface.batching import LongArray, Rows
from slalom.classifiers.huggingface.encoder import Encoder, encoder_of
from slalom.classifiers.huggingface.held import Held, held
from slalom.classifiers.huggingface.packed import Attend, attention_by_rows, packed_scores
from slalom.classifiers.huggingface.walk import modules_of, weights_of

ENOUGH = 3  # rows that are compared once for all
TOLERANCE = 1e-5  # of scores, absolute and relative
STEPS = 8  # of a number's last digit, where weights are coarser than that
LARGEST_TABLE = 2**25  # numbers, 128 MB
PACKED_BYTES = 4  # per weight, at most: attention by rows reads no wider numbers
PLAIN = (bool, int, float, str)  # what settings of a model are that change how it answers
TIMES_SHOWN = 2  # on average, for a table to pay

Ask = Callable[[LongArray], Tensor]  # from numbers of rows to their scores
Known = WeakKeyDictionary[Any, tuple[int, bool]]  # in which state a model was, whether they agreed

_agreed: Known = WeakKeyDictionary()
_agreed_end_to_end: Known = WeakKeyDictionary()


def end_to_end(model: Any, there: Held, plain: Ask, *, typed: bool) -> Ask | None:
    """For rows of any lengths in one batch, without padding; None: it cannot, or another way pays.

    That is so where weights are of more than 32 bits, or not on a GPU.
    """
    weight = next(model.parameters(), None)
    if weight is None or not weight.is_cuda or weight.element_size() > PACKED_BYTES:
        return None
    attend = attention_by_rows(weight.dtype)
    if attend is None:
        return None
    try:
        encoder = _encoder(model, there.rows)
        if encoder is None:
            return None
        rows = there if typed else there.untyped()
        ask = _packed(encoder, rows, attend)
        if not _agree(model, ask, plain, there.rows, known=_agreed_end_to_end):
            return None
    except Exception:  # whatever it is, rows can be padded
        return None
    return _safely(ask, plain)


def quickest(model: Any, there: Held, plain: Ask, *, typed: bool, multiple: int = 1) -> Ask:
    """A shortcut where it pays and gives the scores of `plain`, else `plain`.

    On a GPU widths are multiples of `multiple`, where that takes little.
    """
    try:
        ask = _shortcut(model, there if typed else there.untyped(), multiple=multiple)
        if ask is None or not _agree(model, ask, plain, there.rows, known=_agreed):
            return plain
    except Exception:  # other names, ids that the model lacks: it will say itself what is wrong
        return plain
    return _safely(ask, plain)


def _safely(ask: Ask, plain: Ask) -> Ask:
    """What cannot be answered gets the model's own word on it."""

    def asked(chosen: LongArray) -> Tensor:
        try:
            return ask(chosen)
        except torch.OutOfMemoryError:
            raise
        except Exception:
            return plain(chosen)

    return asked


def _agree(model: Any, ask: Ask, plain: Ask, rows: Rows, *, known: Known) -> bool:
    """Whether a few answers are the same; compared once for the same weights.

    However few rows there are: asked alone and with others, a text gets the same answer.
    """
    state = _state(model)
    before, agreed = known.get(model, (None, False))
    if before == state:
        return agreed
    order = np.argsort(rows.lengths)
    some = order[: len(order) // 2 + 1 : max(1, len(order) // 4)]  # no long ones: they take longer
    weight = next(model.parameters())
    tolerance = max(TOLERANCE, STEPS * torch.finfo(weight.dtype).eps)
    same = torch.allclose(ask(some), plain(some), rtol=tolerance, atol=tolerance)
    if len(some) >= ENOUGH:
        known[model] = state, same
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


def _shortcut(model: Any, there: Held, *, multiple: int) -> Ask | None:
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


def _encoder(model: Any, rows: Rows) -> Encoder | None:
    """None where rows hold a pad id that takes no place, too."""
    encoder = encoder_of(model)
    if encoder is None or (encoder.pad is not None and (rows.ids == encoder.pad).any()):
        return None
    return encoder


def _packed(encoder: Encoder, there: Held, attend: Attend) -> Ask:
    return lambda chosen: packed_scores(encoder, there.packed(chosen), attend)


def _with_table(encoder: Encoder, rows: Rows) -> Ask | None:
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
    numbered = Rows(numbers.astype(np.int32), np.zeros_like(rows.types), rows.lengths)
    there = held(numbered, torch.device("cpu"))

    def ask(chosen: LongArray) -> Tensor:
        shown, mask, _ = there.padded(chosen, pad=0)
        start = tuple(functional.embedding(shown, part) for part in table)
        return encoder.scores(start, _needed(mask, rows, chosen))

    return ask


def _without_table(encoder: Encoder, there: Held, *, multiple: int) -> Ask:
    def ask(chosen: LongArray) -> Tensor:
        ids, mask, types = there.padded(chosen, pad=0, multiple=multiple)
        places = torch.arange(ids.shape[1], device=ids.device).expand_as(ids)
        start = encoder.start(ids, places, types)
        return encoder.scores(start, _needed(mask, there.rows, chosen))

    return ask


def _needed(mask: Tensor, rows: Rows, chosen: LongArray) -> Tensor | None:
    """Rows without padding do without: that is quicker."""
    return None if rows.lengths[chosen].min() == mask.shape[1] else mask.bool()
