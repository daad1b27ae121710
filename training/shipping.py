"""From a trained student to the files of the package: calibration, packing, measurement."""

import hashlib
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import save_file
from transformers import BertForSequenceClassification, PreTrainedTokenizerFast

from slalom.classifiers.huggingface.bundled import read_packed
from training.data import Reviews
from training.loop import (
    accuracy,
    best_device,
    best_temperature,
    calibration_error,
    log_odds,
    logits_of,
)
from training.packing import pack
from training.vocabulary import CONTEXT, write_tokenizer

FILES = ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json")
LENGTHS = (0, 150, 250, 400, CONTEXT, 10**9)  # bounds of "accuracy by length", in tokens


def documents(tokenizer: PreTrainedTokenizerFast, reviews: Reviews) -> list[list[int]]:
    ids: list[list[int]] = tokenizer(
        list(reviews.texts), truncation=True, max_length=CONTEXT, verbose=False
    )["input_ids"]
    return ids


def calibrate(
    model: BertForSequenceClassification, tokenizer: PreTrainedTokenizerFast, held_out: Reviews
) -> float:
    """Folds into the last layer the temperature that suits the held-out reviews, and returns it."""
    scores = log_odds(logits_of(model), documents(tokenizer, held_out), model.device)
    temperature = best_temperature(scores, held_out.labels)
    with torch.no_grad():
        model.classifier.weight /= temperature
        model.classifier.bias /= temperature
    return temperature


def write(
    model: BertForSequenceClassification, tokenizer: PreTrainedTokenizerFast, folder: Path
) -> None:
    """The files of the package: configuration, tokenizer, packed weights, their checksums."""
    write_tokenizer(tokenizer, folder)
    model.config.save_pretrained(folder)
    weights = {name: weight.cpu() for name, weight in model.state_dict().items()}
    save_file(pack(weights), folder / "model.safetensors")
    sums = [f"{hashlib.sha256((folder / name).read_bytes()).hexdigest()}  {name}" for name in FILES]
    (folder / "SHA256").write_text("\n".join(sums) + "\n")


def measure(folder: Path, sets: Mapping[str, Reviews]) -> dict[str, object]:
    """Size, accuracy and calibration of the packed model, as it will be loaded."""
    model, tokenizer = read_packed(folder)
    device = best_device()
    forward = logits_of(model.to(device))  # type: ignore[arg-type]
    report: dict[str, object] = {
        "bytes": sum((folder / name).stat().st_size for name in FILES),
        "n_parameters": model.num_parameters(),
    }
    for name, reviews in sets.items():
        scores = log_odds(forward, documents(tokenizer, reviews), device)
        report[name] = {
            "n": len(reviews),
            "accuracy": round(accuracy(scores, reviews.labels), 4),
            "calibration_error": round(calibration_error(scores, reviews.labels), 4),
            "by_length": by_length(scores, reviews, tokenizer),
        }
    return report


def by_length(
    scores: NDArray[np.float64], reviews: Reviews, tokenizer: PreTrainedTokenizerFast
) -> dict[str, list[float]]:
    """For each range of lengths in tokens: how many reviews, and the accuracy."""
    ids = tokenizer(list(reviews.texts), verbose=False)["input_ids"]
    lengths, labels = np.array([len(row) for row in ids]), np.array(reviews.labels)
    table: dict[str, list[float]] = {}
    for low, high in pairwise(LENGTHS):
        rows = np.flatnonzero((lengths > low) & (lengths <= high))
        if len(rows):
            right = accuracy(scores[rows], labels[rows].tolist())
            table[f"{low + 1}-{high}"] = [len(rows), round(right, 4)]
    return table
