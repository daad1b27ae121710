"""Weights packed for the package: knows matrices, steps and scales, in the format that
`slalom.classifiers.huggingface.bundled` reads.

    python -m training.packing FOLDER OTHER     the model of a folder, packed or unpacked
"""

import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from slalom.classifiers.huggingface.bundled import SCALE, unpack

SMALLEST_PACKED = 4096  # below this a tensor is not worth its rounding error
IN_4_BITS = "word_embeddings.weight"  # most of the parameters, and the most forgiving
COARSE = 16


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


def quantise(weight: Tensor, n_steps: int) -> tuple[Tensor, Tensor]:
    """Rows as whole steps −n_steps..n_steps (int8), and the size of a step in each row."""
    weight = weight.detach().float()
    reach = weight.abs().amax(dim=1)  # (rows,)
    if n_steps < COARSE:  # few steps are better spent on the bulk of a row than on its extremes
        reach = torch.minimum(reach, 2.5 * weight.square().mean(dim=1).sqrt())
    scale = (reach / n_steps).clamp(min=1e-6).to(torch.float16)
    steps = (weight / scale.float()[:, None]).round().clamp(-n_steps, n_steps)
    return steps.to(torch.int8).contiguous(), scale


def main(folder: Path, other: Path) -> None:
    """Copy a model's folder, its weights packed if they are not, else unpacked."""
    shutil.copytree(folder, other, dirs_exist_ok=True)
    weights = load_file(folder / "model.safetensors")
    is_packed = any(name.endswith(SCALE) for name in weights)
    save_file(
        unpack(weights) if is_packed else pack(weights),
        other / "model.safetensors",
        metadata={"format": "pt"},
    )


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
