"""The two data sets with a known truth (paper, App. E), and models trained on them.

Linear: log-odds F(t) = Σᵢ w(tᵢ). SLALOM: F(t) = Σᵢ softmax(s(t))ᵢ v(tᵢ). A label is drawn with
probability σ(F(t)). Samples are fresh at every step. A text is its words joined by spaces.
"""

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import torch
from numpy.random import Generator
from numpy.typing import NDArray
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy
from transformers import PreTrainedTokenizerFast

from training import data
from training.architectures import ARCHITECTURES, ENCODERS, Size
from training.classic import naive_bayes
from training.loop import (
    Record,
    accuracy,
    adam,
    best_device,
    descend,
    log_odds,
    logits_of,
    machine,
    pad,
)
from training.models import Bench, keep

LINEAR = {  # word: (weight, probability)
    "the": (0.0, 1 / 6),
    "we": (0.0, 1 / 6),
    "movie": (0.0, 1 / 6),
    "watch": (0.0, 1 / 6),
    "good": (0.6, 1 / 15),
    "best": (1.0, 1 / 20),
    "perfect": (1.5, 1 / 20),
    "ok": (-0.6, 1 / 15),
    "bad": (-1.0, 1 / 20),
    "worst": (-1.5, 1 / 20),
}
LONGEST = 30
DEPTHS = (1, 2, 6, 12)
KINDS = ("bert", "distilbert", "gpt2")
PAD, CLS, UNK = 0, 1, 2  # before the words in every vocabulary here
N_SPECIAL = 3
Ids = NDArray[np.int64]


class Truth(Protocol):
    """What a data set knows of itself."""

    @property
    def words(self) -> tuple[str, ...]: ...
    def draw(self, rng: Generator) -> Ids: ...  # positions in `words`
    def log_odds(self, sequence: Ids) -> float: ...


@dataclass(frozen=True)
class Linear:
    words: tuple[str, ...] = tuple(LINEAR)

    def draw(self, rng: Generator) -> Ids:
        length = max(1, int(rng.binomial(LONGEST, 0.5)))
        return rng.choice(len(LINEAR), size=length, p=[p for _, p in LINEAR.values()])

    def log_odds(self, sequence: Ids) -> float:
        return float(np.array([weight for weight, _ in LINEAR.values()])[sequence].sum())


@dataclass(frozen=True)
class Slalom:
    words: tuple[str, ...]
    values: NDArray[np.float64]  # (n_words,)
    importances: NDArray[np.float64]

    def draw(self, rng: Generator) -> Ids:
        return rng.integers(len(self.words), size=int(rng.integers(1, LONGEST + 1)))

    def log_odds(self, sequence: Ids) -> float:
        weights = np.exp(self.importances[sequence] - self.importances[sequence].max())
        return float(weights @ self.values[sequence] / weights.sum())


def slalom_truth(bench: Bench, n_words: int = 200) -> Slalom:
    """Values 2 × the Naive-Bayes scores of frequent words of IMDB, s = 5|v|^{3/2} + N(0, 1)/2."""
    path = bench.cache / "slalom-truth.json"
    if not path.exists():
        rng = np.random.default_rng(bench.seed)
        bayes = naive_bayes(data.imdb("train", bench.data), n_words=10_000)
        chosen = rng.choice(len(bayes.words), size=n_words, replace=False)
        values = 2 * bayes.weights[chosen]
        importances = 5 * np.abs(values) ** 1.5 + 0.5 * rng.standard_normal(n_words)
        words = [bayes.words[place] for place in chosen]
        path.parent.mkdir(parents=True, exist_ok=True)
        content = {"words": words, "values": list(values), "importances": list(importances)}
        path.write_text(json.dumps(content))
    stored = json.loads(path.read_text())
    return Slalom(
        tuple(stored["words"]), np.array(stored["values"]), np.array(stored["importances"])
    )


def draw_labelled(truth: Truth, n_samples: int, rng: Generator) -> tuple[list[Ids], Ids]:
    """Sequences and labels (n,)."""
    sequences = [truth.draw(rng) for _ in range(n_samples)]
    odds = np.array([truth.log_odds(sequence) for sequence in sequences])
    return sequences, (rng.random(n_samples) < 1 / (1 + np.exp(-odds))).astype(np.int64)


def word_tokenizer(words: tuple[str, ...], *, with_cls: bool) -> PreTrainedTokenizerFast:
    special = ["[PAD]", "[CLS]", "[UNK]"]
    ids = {word: place for place, word in enumerate([*special, *words])}
    tokenizer = Tokenizer(models.WordLevel(ids, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    if with_cls:
        tokenizer.post_processor = processors.TemplateProcessing(
            single="[CLS] $A", special_tokens=[("[CLS]", CLS)]
        )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]", model_max_length=32
    )


@dataclass(frozen=True)
class Exercise:
    """How long a model trains on fresh samples; the paper's is the default."""

    n_samples: int = 5 * 5000
    batch: int = 20
    learning_rate: float = 5e-5
    width: int = 768
    n_heads: int = 12


SMALL = Exercise(n_samples=5 * 5000, batch=20, learning_rate=5e-4, width=64, n_heads=4)
PAPER_SLALOM = Exercise(n_samples=20 * 20_000)
SMALL_SLALOM = Exercise(20 * 2000, batch=20, learning_rate=5e-4, width=64, n_heads=4)


def transformer(bench: Bench, truth: Truth, kind: str, n_layers: int, exercise: Exercise) -> Path:
    """A transformer trained on a synthetic data set: the folder of the model."""
    name = f"{type(truth).__name__.lower()}-{kind}-{n_layers}-{exercise.width}"
    folder = bench.cache / name
    if (folder / "record.json").exists():
        return folder
    started = time.monotonic()
    torch.manual_seed(bench.seed)
    with_cls = kind in ENCODERS
    n_tokens = len(truth.words) + N_SPECIAL
    size = Size(n_layers, exercise.width, exercise.n_heads, n_tokens, context=LONGEST + 2)
    model = ARCHITECTURES[kind](size).to(best_device())  # type: ignore[arg-type]
    optimiser = adam(model, exercise.learning_rate)
    rng = np.random.default_rng(bench.seed)
    model.train()
    for _ in range(exercise.n_samples // exercise.batch):
        sequences, labels = draw_labelled(truth, exercise.batch, rng)
        ids, mask = pad(as_documents(sequences, with_cls), model.device)
        logits = model(input_ids=ids, attention_mask=mask).logits
        descend(model, optimiser, cross_entropy(logits, torch.tensor(labels).to(model.device)))
    model.eval()
    sequences, labels = draw_labelled(truth, 2000, np.random.default_rng(bench.seed + 1))
    scores = log_odds(logits_of(model), as_documents(sequences, with_cls), model.device)
    truths = [truth.log_odds(sequence) for sequence in sequences]
    right, error = accuracy(scores, labels.tolist()), float(np.mean((scores - truths) ** 2))
    keep(model, word_tokenizer(truth.words, with_cls=with_cls), folder)
    seconds, notes = time.monotonic() - started, f"squared error of the log-odds {error:.4f}"
    Record(name, right, exercise.n_samples, 2000, bench.seed, seconds, machine(), notes).write(
        folder
    )
    return folder


def as_documents(sequences: list[Ids], with_cls: bool) -> list[list[int]]:
    first = [CLS] if with_cls else []
    return [first + (sequence + N_SPECIAL).tolist() for sequence in sequences]


def relu_net(width: int, exercise: Exercise, seed: int = 0) -> nn.Sequential:
    """A 2-layer ReLU net on word counts of the linear data: logits of one class."""
    torch.manual_seed(seed)
    truth, rng = Linear(), np.random.default_rng(seed)
    model = nn.Sequential(nn.Linear(len(LINEAR), width), nn.ReLU(), nn.Linear(width, 1))
    optimiser = adam(model, 1e-3)
    for _ in range(exercise.n_samples // exercise.batch):
        sequences, labels = draw_labelled(truth, exercise.batch, rng)
        scores = model(word_counts(sequences))[:, 0]
        target = torch.tensor(labels, dtype=torch.float32)
        descend(model, optimiser, binary_cross_entropy_with_logits(scores, target))
    return model.eval()


def word_counts(sequences: list[Ids]) -> torch.Tensor:
    counts = [np.bincount(sequence, minlength=len(LINEAR)) for sequence in sequences]
    return torch.tensor(np.array(counts), dtype=torch.float32)  # (n, n_words)
