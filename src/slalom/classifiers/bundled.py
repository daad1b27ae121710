"""The classifier that ships with the package: knows its files and how its weights are packed.

Packed format: a large matrix is stored as int8 with one float16 scale a row, under `name` and
`name.scale`; everything else is stored as float16. Only safetensors and JSON are read, so loading
never runs code from a file, and nothing is asked of a hub.
"""

from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import Tensor
from transformers import (
    ElectraConfig,
    ElectraForSequenceClassification,
    PreTrainedModel,
    PreTrainedTokenizerFast,
)

FOLDER = Path(__file__).parent.parent / "models"
SCALE = ".scale"
SMALLEST_PACKED = 4096  # below this a tensor is not worth its rounding error


def bundled_model() -> tuple[PreTrainedModel, PreTrainedTokenizerFast]:
    """The bundled sentiment model, in eval mode, and its tokenizer."""
    return read_packed(FOLDER)


def read_packed(folder: Path) -> tuple[PreTrainedModel, PreTrainedTokenizerFast]:
    config = ElectraConfig.from_json_file(folder / "config.json")
    with torch.random.fork_rng(devices=[]):  # the weights drawn here are overwritten at once
        model = ElectraForSequenceClassification(config)
    model.load_state_dict(unpack(load_file(folder / "model.safetensors")), strict=True)
    tokenizer = PreTrainedTokenizerFast.from_pretrained(folder, local_files_only=True)
    return model.eval(), tokenizer


def pack(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    packed: dict[str, Tensor] = {}
    for name, weight in weights.items():
        if weight.ndim == 2 and weight.numel() >= SMALLEST_PACKED:
            packed[name], packed[name + SCALE] = quantise(weight)
        else:
            packed[name] = weight.to(torch.float16).contiguous()
    return packed


def unpack(packed: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {
        name: stored.float() * packed[name + SCALE].float()[:, None]
        if name + SCALE in packed
        else stored.float()
        for name, stored in packed.items()
        if not name.endswith(SCALE)
    }


def quantise(weight: Tensor) -> tuple[Tensor, Tensor]:
    """Rows as int8 and their scales; off by at most half a scale."""
    # A scale rounded down to float16 would push the row's largest entry beyond 127: round up.
    scale = (weight.float().abs().amax(dim=1) / 127 * (1 + 2**-10)).clamp(min=1e-7)
    stored = scale.to(torch.float16)  # (rows,)
    steps = (weight.float() / stored.float()[:, None]).round().clamp(-127, 127)
    return steps.to(torch.int8).contiguous(), stored
