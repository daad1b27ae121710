"""How much is sent at once, and what is too little to be sent alone."""

from types import SimpleNamespace

import pytest
import torch
from torch import nn

from slalom.classifiers.huggingface import devices
from slalom.classifiers.huggingface.batching import SMALL
from slalom.classifiers.huggingface.devices import in_16_bits, small_share, tokens_liked
from slalom.classifiers.huggingface.encoder import n_weights_of

FREE = 10**10  # bytes


def on_gpu(n_bytes):
    """A weight as one on a GPU would look."""
    device = SimpleNamespace(type="cuda")
    return SimpleNamespace(device=device, is_cuda=True, element_size=lambda: n_bytes)


def test_a_processor_likes_what_fits_its_caches():
    weight = torch.zeros(3)
    assert tokens_liked(weight, 384) == devices.TOKENS["cpu"]
    assert small_share(weight, 10**9, 2**11) == SMALL
    assert not in_16_bits(weight.bfloat16())
    assert not in_16_bits(None)


def test_a_gpu_takes_more_in_16_bits_as_far_as_its_memory_goes(monkeypatch):
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (FREE, FREE))
    assert tokens_liked(on_gpu(4), 384) == min(2**17, FREE // (64 * 384 * 4))
    assert tokens_liked(on_gpu(2), 384) == min(2**18, FREE // (64 * 384 * 2))
    assert tokens_liked(on_gpu(2), 10**9) == 1
    assert in_16_bits(on_gpu(2))
    assert not in_16_bits(on_gpu(4))


@pytest.mark.parametrize(
    ("n_bytes", "n_weights", "tokens"),
    [(2, 10_600_000, 66_000), (4, 10_600_000, 13_200), (4, 85_000_000, 1650), (2, 7 * 10**9, 100)],
)
def test_what_a_gpu_computes_while_the_next_batch_is_sent(n_bytes, n_weights, tokens):
    """7 ms at 200 or 40 TFLOP/s, two operations per weight and token."""
    budget = 2**20
    assert small_share(on_gpu(n_bytes), n_weights, budget) * budget == pytest.approx(
        tokens, rel=0.01
    )


def test_of_a_tiny_model_not_all_is_padded():
    assert small_share(on_gpu(2), 10, 2**18) == devices.MAX_SMALL


def test_weights_that_tokens_are_multiplied_with():
    inner = nn.Linear(4, 5)
    model = nn.Sequential(nn.Embedding(100, 4), inner, nn.Sequential(nn.Linear(5, 2, bias=False)))
    assert n_weights_of(model) == 4 * 5 + 5 + 5 * 2
    assert n_weights_of(model) == 35
