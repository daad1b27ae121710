"""How many tokens a device takes at once, and how few are not worth a batch of their own.

To send a GPU a batch takes the processor SECONDS_TO_SEND, however small it is; what the GPU
computes meanwhile costs nothing. A token takes 2 operations per weight; rates are those of the bare
forward passes of a MiniLM and a BERT in docs/scaling.md, rounded.
"""

import torch
from torch import Tensor

from slalom.classifiers.huggingface.batching import SMALL

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
