"""The classifier that ships with the package: knows its files and how its weights are packed.

Packed format: a matrix is stored in steps of one float16 scale per row, under `name` and
`name.scale`; int8 is one step per entry, uint8 two 4-bit steps per byte, the first in the low half.
Everything else is float16. Only safetensors and JSON are read, so loading never runs code from a
file, and nothing is asked of a hub.
"""

from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import Tensor
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    PreTrainedModel,
    PreTrainedTokenizerFast,
)

FOLDER = Path(__file__).parents[2] / "models"
SCALE = ".scale"
SMALLEST_PACKED = 4096  # below this a tensor is not worth its rounding error
IN_4_BITS = "word_embeddings.weight"  # most of the parameters, and the most forgiving
COARSE = 16


def bundled_model() -> tuple[PreTrainedModel, PreTrainedTokenizerFast]:
    """The bundled sentiment model, in eval mode, and its tokenizer."""
    return read_packed(FOLDER)


def read_packed(folder: Path) -> tuple[PreTrainedModel, PreTrainedTokenizerFast]:
    config = BertConfig.from_json_file(folder / "config.json")
    with torch.random.fork_rng(devices=[]):  # the weights drawn here are overwritten at once
        model = BertForSequenceClassification(config)  # type: ignore[no-untyped-call]
    model.load_state_dict(unpack(load_file(folder / "model.safetensors")), strict=True)
    tokenizer = PreTrainedTokenizerFast.from_pretrained(folder, local_files_only=True)
    model.eval()  # type: ignore[no-untyped-call]
    return model, tokenizer


def pack(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    packed: dict[str, Tensor] = {}
    for name, weight in weights.items():
        if weight.ndim != 2 or weight.numel() < SMALLEST_PACKED:
            packed[name] = weight.to(torch.float16).contiguous()
        elif name.endswith(IN_4_BITS):
            steps, packed[name + SCALE] = quantise(weight, n_steps=7)
            halves = (steps + 8).to(torch.uint8)
            packed[name] = (halves[:, 0::2] | (halves[:, 1::2] << 4)).contiguous()
        else:
            packed[name], packed[name + SCALE] = quantise(weight, n_steps=127)
    return packed


def unpack(packed: Mapping[str, Tensor]) -> dict[str, Tensor]:
    weights = {}
    for name, stored in packed.items():
        if name.endswith(SCALE):
            continue
        if stored.dtype == torch.uint8:
            stored = torch.stack([stored & 15, stored >> 4], dim=2).flatten(1).float() - 8
        scale = packed.get(name + SCALE)
        weights[name] = stored.float() if scale is None else stored.float() * scale.float()[:, None]
    return weights


def quantise(weight: Tensor, n_steps: int) -> tuple[Tensor, Tensor]:
    """Rows as whole steps −n_steps..n_steps (int8), and the size of a step in each row."""
    weight = weight.detach().float()
    reach = weight.abs().amax(dim=1)  # (rows,)
    if n_steps < COARSE:  # few steps are better spent on the bulk of a row than on its extremes
        reach = torch.minimum(reach, 2.5 * weight.square().mean(dim=1).sqrt())
    scale = (reach / n_steps).clamp(min=1e-6).to(torch.float16)
    steps = (weight / scale.float()[:, None]).round().clamp(-n_steps, n_steps)
    return steps.to(torch.int8).contiguous(), scale
