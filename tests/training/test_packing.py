"""Weights packed by the trainer and unpacked by the package."""

import torch
from training.packing import pack

from slalom.classifiers.huggingface.bundled import unpack


def test_packing_is_off_by_at_most_half_a_step():
    torch.manual_seed(0)
    weights = {"layer.weight": torch.randn(64, 96) * torch.rand(64, 1), "norm": torch.randn(96)}
    packed = pack(weights)
    unpacked = unpack(packed)
    assert packed["layer.weight"].dtype == torch.int8
    steps = packed["layer.weight.scale"].float()[:, None]
    # The scale is rounded to half precision, which moves the largest entry by up to 127 × 2⁻¹¹.
    assert ((unpacked["layer.weight"] - weights["layer.weight"]).abs() <= 0.57 * steps).all()
    torch.testing.assert_close(unpacked["norm"], weights["norm"], rtol=1e-3, atol=1e-3)


def test_four_bits_take_half_a_byte_and_fifteen_values():
    torch.manual_seed(0)
    name = "bert.embeddings.word_embeddings.weight"
    once = unpack(pack({name: torch.randn(50, 384)}))
    packed = pack(once)
    assert packed[name].dtype == torch.uint8
    assert packed[name].shape == (50, 192)
    assert len(once[name][0].unique()) <= 15


def test_four_bits_keep_the_shape_of_a_row():
    torch.manual_seed(0)
    name = "word_embeddings.weight"
    rows = torch.randn(50, 384)
    unpacked = unpack(pack({name: rows}))[name]
    assert float((unpacked - rows).norm() / rows.norm()) < 0.13
