"""Rows of ids on the device of a model: copied there once, padded or packed batch by batch.

A batch then costs the processor a few numbers per row, not a few per token. How many tokens a
device takes at once, and how few are not worth a batch of their own: to send a GPU a batch takes
the processor SECONDS_TO_SEND, however small it is; what the GPU computes meanwhile costs nothing. A
token takes 2 operations per weight; rates are those of the bare forward passes of a MiniLM and a
BERT in docs/scaling.md, rounded.
"""

from collections import deque
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from slalom.classifiers.huggingface.batching import SMALL, LongArray, TokenRows
from slalom.document import FloatArray

LARGEST_SURPLUS = 0.05  # of a width
AHEAD = 2  # batches that a GPU has before it
SHAPE_BITS = 5  # of a size that count: products of a new shape are planned afresh, which takes long


@dataclass(frozen=True, eq=False)
class Packed:
    """Some rows end to end, and tokens of no row up to a round number."""

    ids: Tensor  # (n_tokens,)
    places: Tensor  # (n_tokens,) of tokens in their rows
    types: Tensor  # (n_tokens,)
    bounds: Tensor  # (n_rows + 1,) where rows begin, and where the last ends
    longest: int


@dataclass(frozen=True, eq=False)
class DeviceRows:
    """All rows end to end, on a device."""

    rows: TokenRows
    ids: Tensor  # (n_tokens,) int32
    types: Tensor | None  # (n_tokens,) int32; None: all of them 0

    def padded(
        self, chosen: LongArray, *, pad: int, multiple: int = 1
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Ids, attention mask and token types of the chosen rows, padded on the right.

        Widths are multiples of `multiple`, unless that takes more than LARGEST_SURPLUS.
        """
        lengths = self.rows.lengths[chosen]
        longest = int(lengths.max())
        surplus = -longest % multiple
        width = longest + surplus if surplus <= LARGEST_SURPLUS * longest else longest
        places = np.stack([self.rows.starts[chosen], lengths])[:, :, None]
        starts, ends = sent(places, self.ids.device)
        columns = torch.arange(width, device=self.ids.device)
        mask = columns < ends  # (n_rows, width)
        source = torch.where(mask, starts + columns, 0)
        ids = torch.where(mask, self.ids[source], pad).long()
        if self.types is None:
            return ids, mask.long(), torch.zeros_like(ids)
        return ids, mask.long(), torch.where(mask, self.types[source], 0).long()

    def packed(self, chosen: LongArray) -> Packed:
        """The chosen rows end to end."""
        lengths = self.rows.lengths[chosen]
        bounds = np.concatenate([[0], np.cumsum(lengths)])
        n_tokens, device = int(bounds[-1]), self.ids.device
        source: slice | Tensor
        if (np.diff(chosen) == 1).all():
            begin = int(self.rows.starts[chosen[0]])
            source = slice(begin, begin + n_tokens)
        else:
            moved = np.repeat(self.rows.starts[chosen] - bounds[:-1], lengths)
            source = sent(np.arange(n_tokens) + moved, device)
        ids = self.ids[source]
        there = sent(bounds.astype(np.int32), device)
        begins = torch.repeat_interleave(there[:-1], there.diff(), output_size=n_tokens)
        places = torch.arange(n_tokens, dtype=torch.int32, device=device) - begins
        surplus = 0, rounded_up(n_tokens) - n_tokens
        ids, places = functional.pad(ids, surplus), functional.pad(places, surplus)
        types = (
            torch.zeros_like(ids)
            if self.types is None
            else functional.pad(self.types[source], surplus)
        )
        return Packed(ids, places, types, there, int(lengths.max()))


def rounded_up(n: int) -> int:
    """To a number with few binary digits that are not 0: sizes of batches then recur."""
    step = 1 << max(0, n.bit_length() - SHAPE_BITS)
    return -(-n // step) * step


def on_device(rows: TokenRows, device: torch.device) -> DeviceRows:
    types = sent(rows.types, device) if rows.types.any() else None
    return DeviceRows(rows, sent(rows.ids, device), types)


def sent(numbers: NDArray[Any], device: torch.device) -> Tensor:
    """On the device; a GPU takes them when it comes to it, and nobody waits for that.

    Copied by numpy: torch would wake a thread per core, which then spin beside busy workers.
    """
    tensor = torch.from_numpy(numbers)
    if device.type != "cuda":
        return tensor.to(device)
    pinned = torch.empty_like(tensor, pin_memory=True)
    pinned.numpy()[...] = numbers
    return pinned.to(device, non_blocking=True)


@dataclass(eq=False)
class Pace:
    """Keeps a GPU's queue short: where it is full, whoever adds to it blocks all other threads."""

    device: torch.device
    begun: deque[Any] = field(default_factory=deque)

    def wait(self) -> None:
        """After a batch was sent: sleep until only AHEAD of them are left."""
        if self.device.type != "cuda":
            return
        self.begun.append(torch.cuda.Event(blocking=True))  # type: ignore[no-untyped-call]
        self.begun[-1].record(torch.cuda.current_stream(self.device))
        if len(self.begun) > AHEAD:
            self.begun.popleft().synchronize()


@dataclass(frozen=True, eq=False)
class PendingScores:
    """Batches that a device was told of."""

    order: LongArray  # (n_rows,) which row each of the scores is of
    scores: Tensor  # (n_rows, n_outputs)

    def answers(self) -> FloatArray:
        """(n_rows, n_outputs) in the order of the rows, once they are there."""
        found = fetched(self.scores)
        result = np.empty_like(found)
        result[self.order] = found
        return result


def fetched(scores: Tensor) -> FloatArray:
    """In this machine's memory; while a GPU is at work the thread sleeps, its core is free."""
    if not scores.is_cuda:
        return np.asarray(scores.double().cpu().numpy())
    here = torch.empty(scores.shape, dtype=torch.double, pin_memory=True)
    here.copy_(scores.double(), non_blocking=True)
    done = torch.cuda.Event(blocking=True)  # type: ignore[no-untyped-call]
    done.record(torch.cuda.current_stream(scores.device))
    done.synchronize()
    return np.asarray(here.numpy())


TOKENS = {"cpu": 2**11, "cuda": 2**17}  # measured; on a CPU what fits the caches wins
IN_16_BITS = 2  # times as many there: a batch is done sooner than the next can be started
OTHER_DEVICES = 2**14
ACTIVATIONS = 64  # numbers of a token's width that are alive at once, roughly
SECONDS_TO_SEND = 0.007  # by transformers' own forward pass
RATES = {2: 2e14, 4: 4e13}  # operations per second of an H200, by the bytes of a number: measured
MAX_SMALL = 1 / 4  # of a full batch


def in_16_bits(weight: Tensor | None) -> bool:
    """On a GPU, with weights of half the width: many times as fast as in full."""
    return weight is not None and weight.is_cuda and weight.element_size() == 2


def tokens_liked(weight: Tensor, width: int) -> int:
    """As many as the device likes best and its free memory holds; `width` of a token's numbers."""
    device = weight.device
    likes = TOKENS.get(device.type, OTHER_DEVICES)
    if device.type != "cuda":
        return likes
    likes *= IN_16_BITS if in_16_bits(weight) else 1
    n_bytes = ACTIVATIONS * width * weight.element_size()
    return int(max(1, min(likes, torch.cuda.mem_get_info(device)[0] // n_bytes)))


def small_share(weight: Tensor, n_weights: int, budget: int) -> float:
    """Of a full batch: what may be padded freely, as another batch would take as long."""
    if weight.device.type != "cuda":
        return SMALL
    rate = RATES.get(weight.element_size(), min(RATES.values()))
    return min(MAX_SMALL, SECONDS_TO_SEND * rate / (2 * max(1, n_weights)) / budget)
