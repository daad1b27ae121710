"""The transformers of the experiments on real reviews: one function a family, trained or kept.

Each function returns the folder of a model; `load` reads it. A folder holds the configuration,
the tokenizer, half-precision weights and `record.json` (accuracy, seed, time, machine); a folder
with a record is not trained again.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from transformers import (
    AutoModelForSequenceClassification,
    AutoTokenizer,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from experiments import data
from experiments.data import Reviews
from experiments.training import (
    Recipe,
    Record,
    accuracy,
    best_device,
    fit,
    log_odds,
    logits_of,
    machine,
)

CONTEXT = 512
LABELS = {0: "negative", 1: "positive"}


@dataclass(frozen=True)
class Bench:
    """Where data and trained models are, and how much to train."""

    data: Path | None
    cache: Path
    small: bool = False
    seed: int = 0

    def reviews(self, split: str) -> Reviews:
        found = data.imdb(split, self.data)
        return found.sample(64, np.random.default_rng(self.seed)) if self.small else found


def minilm(bench: Bench, n_layers: int) -> Path:
    """The first layers of the pretrained MiniLM, fine-tuned on IMDB."""
    source = data.minilm(bench.data)
    # Fewer layers are further from their pretrained use and bear a higher rate.
    rate = {6: 5e-5, 2: 1e-4, 1: 1.5e-4}.get(n_layers, 7e-5)
    recipe = Recipe(1 if bench.small else 3, rate, n_tokens=16_384, n_texts=48, seed=bench.seed)

    def make() -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
        model = AutoModelForSequenceClassification.from_pretrained(
            source, num_hidden_layers=n_layers, num_labels=2, dtype=torch.float32, id2label=LABELS
        )
        return model, AutoTokenizer.from_pretrained(source)

    return trained(bench, f"minilm-{n_layers}", make, recipe)


def trained(
    bench: Bench,
    name: str,
    make: Callable[[], tuple[PreTrainedModel, PreTrainedTokenizerBase]],
    recipe: Recipe,
) -> Path:
    """The folder of the model: found, or filled by training on IMDB."""
    folder = bench.cache / name
    if (folder / "record.json").exists():
        return folder
    torch.manual_seed(recipe.seed)
    model, tokenizer = make()
    model = model.to(best_device())  # type: ignore[arg-type]
    train, test = bench.reviews("train"), bench.reviews("test")
    documents = encoded(tokenizer, train)
    seconds = fit(model, logits_of(model), documents, train.labels, recipe)
    scores = log_odds(logits_of(model), encoded(tokenizer, test), model.device)
    right = accuracy(scores, test.labels)
    keep(model, tokenizer, folder)
    record = Record(name, right, len(train), len(test), recipe.seed, seconds, machine())
    record.write(folder)
    print(record, flush=True)
    return folder


def encoded(tokenizer: PreTrainedTokenizerBase, reviews: Reviews) -> list[list[int]]:
    ids: list[list[int]] = tokenizer(list(reviews.texts), truncation=True, max_length=CONTEXT)[
        "input_ids"
    ]
    return ids


def keep(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, folder: Path) -> None:
    """Weights in half precision, and a configuration that loads them in full."""
    model.half().save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    path = folder / "config.json"
    config = json.loads(path.read_text()) | {"dtype": "float32"}
    path.write_text(json.dumps(config, indent=2) + "\n")


def load(folder: Path | str) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """A kept model, or one of the hub by its name."""
    model = AutoModelForSequenceClassification.from_pretrained(folder, dtype=torch.float32)
    return model.eval(), AutoTokenizer.from_pretrained(folder)
