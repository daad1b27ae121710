"""The classifier that ships with the package: knows its files and how to unpack its weights.

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


def read_packed(folder: Path = FOLDER) -> tuple[PreTrainedModel, PreTrainedTokenizerFast]:
    """A packed model, in eval mode, and its tokenizer; by default the bundled sentiment model."""
    config = BertConfig.from_json_file(folder / "config.json")
    with torch.random.fork_rng(devices=[]):  # the weights drawn here are overwritten at once
        model = BertForSequenceClassification(config)  # type: ignore[no-untyped-call]
    model.load_state_dict(unpack(load_file(folder / "model.safetensors")), strict=True)
    tokenizer = PreTrainedTokenizerFast.from_pretrained(folder, local_files_only=True)
    model.eval()  # type: ignore[no-untyped-call]
    return model, tokenizer


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
