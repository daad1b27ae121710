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
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy, mse_loss
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from training import data
from training.architectures import ARCHITECTURES, ENCODERS, Size
from training.classic import naive_bayes
from training.config import TrainingConfig
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
    warm_cosine,
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
MAX_LENGTH = 30
DEPTHS = (1, 2, 6, 12)
KINDS = ("bert", "distilbert", "gpt2")
PAD, CLS, UNK = 0, 1, 2  # before the words in every vocabulary here
N_SPECIAL = 3
END = -1  # nothing follows in a sequence
Ids = NDArray[np.int64]


class Truth(Protocol):
    """A synthetic data set: its vocabulary, its distribution, and the true log-odds."""

    @property
    def words(self) -> tuple[str, ...]: ...
    def draw(self, n_samples: int, rng: Generator) -> Ids: ...  # (n, MAX_LENGTH), rows end with END
    def log_odds(self, sequences: Ids) -> NDArray[np.float64]: ...  # (n,)


@dataclass(frozen=True)
class Linear:
    words: tuple[str, ...] = tuple(LINEAR)

    def draw(self, n_samples: int, rng: Generator) -> Ids:
        lengths = np.maximum(1, rng.binomial(MAX_LENGTH, 0.5, size=n_samples))
        chances = [chance for _, chance in LINEAR.values()]
        return truncated(rng.choice(len(LINEAR), size=(n_samples, MAX_LENGTH), p=chances), lengths)

    def log_odds(self, sequences: Ids) -> NDArray[np.float64]:
        weights = np.array([*(weight for weight, _ in LINEAR.values()), 0.0])  # END is the last
        return weights[sequences].sum(axis=1)


@dataclass(frozen=True)
class Slalom:
    words: tuple[str, ...]
    values: NDArray[np.float64]  # (n_words,)
    importances: NDArray[np.float64]

    def draw(self, n_samples: int, rng: Generator) -> Ids:
        lengths = rng.integers(1, MAX_LENGTH + 1, size=n_samples)
        return truncated(rng.integers(len(self.words), size=(n_samples, MAX_LENGTH)), lengths)

    def log_odds(self, sequences: Ids) -> NDArray[np.float64]:
        logits = np.append(self.importances, -np.inf)[sequences]  # (n, MAX_LENGTH)
        weights = np.exp(logits - logits.max(axis=1, keepdims=True))
        return (weights * self.values[sequences]).sum(axis=1) / weights.sum(axis=1)

    def first(self, n_words: int) -> "Slalom":
        """The same with a smaller vocabulary."""
        return Slalom(self.words[:n_words], self.values[:n_words], self.importances[:n_words])


def truncated(sequences: Ids, lengths: Ids) -> Ids:
    """The first `length` words of each sequence, then END."""
    return np.where(np.arange(sequences.shape[1]) < lengths[:, None], sequences, END)


@dataclass(frozen=True)
class Source:
    """Reviews and words that a SLALOM truth is drawn from."""

    name: str
    n_reviews: int | None  # None: all
    n_candidates: int  # the most frequent words, of which some are drawn
    smoothing: float


LOUD = Source("slalom-truth", None, 10_000, 40.0)
QUIET = Source("slalom-truth-quiet", 5000, 21_377, 20.0)  # as the published code: rare words too


def slalom_truth(bench: Bench, n_words: int = 200, *, source: Source = LOUD) -> Slalom:
    """Values 2 × the Naive-Bayes scores of words of IMDB, s = 5|v|^{3/2} + N(0, 1)/2."""
    path = bench.cache / f"{source.name}.json"
    if not path.exists():
        rng = np.random.default_rng(bench.seed)
        reviews = data.imdb("train", bench.data)
        if source.n_reviews is not None:
            reviews = reviews.sample(source.n_reviews, rng)
        bayes = naive_bayes(reviews, n_words=source.n_candidates, smoothing=source.smoothing)
        chosen = rng.choice(len(bayes.words), size=n_words, replace=False)
        values = 2 * bayes.weights[chosen]
        importances = 5 * np.abs(values) ** 1.5 + 0.5 * rng.standard_normal(n_words)
        words = [bayes.words[number] for number in chosen]
        path.parent.mkdir(parents=True, exist_ok=True)
        content = {"words": words, "values": list(values), "importances": list(importances)}
        path.write_text(json.dumps(content))
    stored = json.loads(path.read_text())
    return Slalom(
        tuple(stored["words"]), np.array(stored["values"]), np.array(stored["importances"])
    )


def draw_labelled(truth: Truth, n_samples: int, rng: Generator) -> tuple[Ids, Ids]:
    """Sequences (n, MAX_LENGTH) and labels (n,)."""
    sequences = truth.draw(n_samples, rng)
    chances = 1 / (1 + np.exp(-truth.log_odds(sequences)))
    return sequences, (rng.random(n_samples) < chances).astype(np.int64)


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


NET = TrainingConfig(100_000, batch=100, learning_rate=1e-3)  # a ReLU net has its own width
SMALL = TrainingConfig(n_samples=5 * 5000, batch=20, learning_rate=5e-4, width=64, n_heads=4)
PAPER_SLALOM = TrainingConfig(n_samples=20 * 20_000)
SMALL_SLALOM = TrainingConfig(20 * 2000, batch=20, learning_rate=5e-4, width=64, n_heads=4)


def transformer(
    bench: Bench, truth: Truth, kind: str, n_layers: int, config: TrainingConfig
) -> Path:
    """A transformer trained on a synthetic data set: the folder of the model."""
    name = f"{type(truth).__name__.lower()}-{kind}-{n_layers}-{config.width}"
    folder = bench.cache / name
    if (folder / "record.json").exists():
        return folder
    started = time.monotonic()
    model = trained_transformer(truth, kind, n_layers, config, seed=bench.seed)
    with_cls = kind in ENCODERS
    sequences, labels = draw_labelled(truth, 2000, np.random.default_rng(bench.seed + 1))
    scores = log_odds(logits_of(model), as_documents(sequences, with_cls), model.device)
    right = accuracy(scores, labels.tolist())
    error = float(np.mean((scores - truth.log_odds(sequences)) ** 2))
    keep(model, word_tokenizer(truth.words, with_cls=with_cls), folder)
    seconds, notes = time.monotonic() - started, f"squared error of the log-odds {error:.4f}"
    Record(name, right, config.n_samples, 2000, bench.seed, seconds, machine(), notes).write(folder)
    return folder


def trained_transformer(
    truth: Truth, kind: str, n_layers: int, config: TrainingConfig, *, seed: int
) -> PreTrainedModel:
    """A transformer trained from scratch on fresh samples of a synthetic data set."""
    torch.manual_seed(seed)
    n_tokens = len(truth.words) + N_SPECIAL
    size = Size(n_layers, config.width, config.n_heads, n_tokens, context=MAX_LENGTH + 2)
    model = ARCHITECTURES[kind](size).to(best_device())  # type: ignore[arg-type]
    if config.regress:
        without_dropout(model)
    optimiser = _optimiser(model, config)
    rng = np.random.default_rng(seed)
    n_steps = config.n_samples // config.batch
    model.train()
    for step in range(n_steps):
        sequences, labels = draw_labelled(truth, config.batch, rng)
        ids, mask = pad(as_documents(sequences, kind in ENCODERS), model.device)
        logits = model(input_ids=ids, attention_mask=mask).logits
        if config.regress:
            for group in optimiser.param_groups:
                group["lr"] = config.learning_rate * warm_cosine(step / n_steps, warmup=0.05)
            targets = torch.tensor(truth.log_odds(sequences), dtype=torch.float32)
            loss = mse_loss(logits[:, 1] - logits[:, 0], targets.to(model.device))
        else:
            loss = cross_entropy(logits, torch.tensor(labels).to(model.device))
        descend(model, optimiser, loss)
    return model.eval()


def _optimiser(model: PreTrainedModel, config: TrainingConfig) -> torch.optim.Optimizer:
    if config.rmsprop:
        return torch.optim.RMSprop(model.parameters(), lr=config.learning_rate)
    return adam(model, config.learning_rate)


def without_dropout(model: PreTrainedModel) -> None:
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0


def as_documents(sequences: Ids, with_cls: bool) -> list[list[int]]:
    first = [CLS] if with_cls else []
    return [first + (row[row != END] + N_SPECIAL).tolist() for row in sequences]


def as_texts(truth: Truth, sequences: Ids) -> list[str]:
    return [" ".join(truth.words[word] for word in row if word != END) for row in sequences]


def relu_net(width: int, config: TrainingConfig = NET, seed: int = 0) -> nn.Sequential:
    """A 2-layer ReLU net on word counts of the linear data: logits of one class."""
    torch.manual_seed(seed)
    truth, rng = Linear(), np.random.default_rng(seed)
    model = nn.Sequential(nn.Linear(len(LINEAR), width), nn.ReLU(), nn.Linear(width, 1))
    optimiser = adam(model, config.learning_rate)
    for _ in range(config.n_samples // config.batch):
        sequences, labels = draw_labelled(truth, config.batch, rng)
        scores = model(torch.tensor(word_counts(sequences, len(LINEAR)), dtype=torch.float32))
        target = torch.tensor(labels, dtype=torch.float32)
        descend(model, optimiser, binary_cross_entropy_with_logits(scores[:, 0], target))
    return model.eval()


def word_counts(sequences: Ids, n_words: int) -> NDArray[np.float64]:
    """(n, MAX_LENGTH) → (n, n_words)."""
    columns = np.where(sequences == END, n_words, sequences)  # the last one is dropped again
    cells = np.arange(len(columns))[:, None] * (n_words + 1) + columns
    counts = np.bincount(cells.ravel(), minlength=len(columns) * (n_words + 1))
    return counts.reshape(len(columns), n_words + 1)[:, :n_words].astype(np.float64)
