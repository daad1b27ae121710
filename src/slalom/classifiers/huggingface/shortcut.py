"""Rows put to an encoder in its parts, once it was seen to answer as the model does.

What the first layer starts from, a token at its place, is the same in many rows: where that pays
it is computed once for all of them. Every call compares a few answers with those of the model's own
forward pass: whatever is not known here of a model, that is how it shows.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from slalom.classifiers.huggingface.batching import LongArray, Rows
from slalom.classifiers.huggingface.encoder import Encoder, encoder_of
from slalom.classifiers.huggingface.held import held

ENOUGH = 64  # rows, for the comparison to be a trifle
TOLERANCE = 1e-5  # of scores, absolute and relative
LARGEST_TABLE = 2**25  # numbers, 128 MB
TIMES_SHOWN = 2  # on average, for a table to pay

Ask = Callable[[LongArray], Tensor]  # from numbers of rows to their scores


def quickest(model: Any, rows: Rows, plain: Ask, *, typed: bool) -> Ask:
    """A shortcut where it pays and gives the scores of `plain`, else `plain`."""
    if len(rows.lengths) < ENOUGH:
        return plain
    try:
        ask = _shortcut(model, rows, typed=typed)
        return ask if ask is not None and _agree(ask, plain, rows) else plain
    except (AttributeError, TypeError):  # a version of transformers with other names
        return plain


def _agree(one: Ask, other: Ask, rows: Rows) -> bool:
    """On a few rows that are not long, so that it takes next to no time."""
    order = np.argsort(rows.lengths)
    some = order[: len(order) // 2 + 1 : len(order) // 4]
    return torch.allclose(one(some), other(some), rtol=TOLERANCE, atol=TOLERANCE)


def _shortcut(model: Any, rows: Rows, *, typed: bool) -> Ask | None:
    """On a CPU only: a GPU would be waited for to compare. Weights of 16 bits round too much."""
    weight = next(model.parameters(), None)
    if weight is None or weight.device.type != "cpu" or weight.element_size() < 4:
        return None
    encoder = encoder_of(model)
    if encoder is None or (encoder.pad is not None and (rows.ids == encoder.pad).any()):
        return None
    shown = rows if typed else replace(rows, types=np.zeros_like(rows.types))
    return _with_table(encoder, shown) or _without_table(encoder, shown)


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


def _without_table(encoder: Encoder, rows: Rows) -> Ask:
    there = held(rows, torch.device("cpu"))

    def ask(chosen: LongArray) -> Tensor:
        ids, mask, types = there.padded(chosen, pad=0)
        places = torch.arange(ids.shape[1]).expand_as(ids)
        return encoder.scores(encoder.start(ids, places, types), _needed(mask, rows, chosen))

    return ask


def _needed(mask: Tensor, rows: Rows, chosen: LongArray) -> Tensor | None:
    """Rows of one length do without: that is quicker."""
    return mask.bool() if np.ptp(rows.lengths[chosen]) else None
