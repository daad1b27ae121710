"""Training and evaluation of two-class sequence models: knows ids, labels, batches and devices.

Batches hold texts of similar length up to a number of tokens, padding included; on a GPU matrix
products run in bfloat16.
"""

import contextlib
import json
import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.random import Generator
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits
from transformers import PreTrainedModel

Documents = Sequence[Sequence[int]]  # ids, special tokens included
Forward = Callable[[Tensor, Tensor], Tensor]  # ids, mask (n, width) → logits (n, 2)
SECONDS_BETWEEN_REPORTS = 20.0  # of progress, on standard error


@dataclass(frozen=True)
class Recipe:
    epochs: int
    learning_rate: float
    n_tokens: int = 12_288  # of a batch
    n_texts: int = 64  # of a batch, at most
    seed: int = 0
    warmup: float = 0.1


@dataclass(frozen=True)
class Record:
    """What is kept beside a model's weights."""

    name: str
    accuracy: float
    n_train: int
    n_test: int
    seed: int
    seconds: float
    machine: str
    notes: str = ""

    def write(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "record.json").write_text(json.dumps(asdict(self), indent=2) + "\n")


def read_record(folder: Path) -> Record:
    return Record(**json.loads((folder / "record.json").read_text()))


def best_device() -> torch.device:
    # cuDNN's attention plans anew for every shape, and here every batch has its own.
    torch.backends.cuda.enable_cudnn_sdp(False)
    torch.backends.cuda.matmul.allow_tf32 = True
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def machine() -> str:
    if torch.cuda.is_available():
        return f"one {torch.cuda.get_device_name()}, torch {torch.__version__}"
    return f"CPU, torch {torch.__version__}"


def half_on_gpu(device: torch.device) -> contextlib.AbstractContextManager[object]:
    if device.type == "cuda":
        return torch.autocast("cuda", dtype=torch.bfloat16)
    return contextlib.nullcontext()


def logits_of(model: PreTrainedModel) -> Forward:
    padding = model.config.pad_token_id or 0  # decoders look for it to find the last token

    def forward(ids: Tensor, mask: Tensor) -> Tensor:
        logits: Tensor = model(
            input_ids=ids.masked_fill(mask == 0, padding), attention_mask=mask
        ).logits
        return logits

    return forward


def fit(
    model: nn.Module, forward: Forward, documents: Documents, labels: Sequence[int], recipe: Recipe
) -> float:
    """Trains in place with cross-entropy and reports progress; returns the seconds taken."""
    device = next(model.parameters()).device
    started = reported = time.monotonic()
    rng = np.random.default_rng(recipe.seed)
    torch.manual_seed(recipe.seed)
    epochs = [
        list(length_batches(documents, recipe.n_tokens, n_texts=recipe.n_texts, rng=rng))
        for _ in range(recipe.epochs)
    ]
    n_steps = sum(map(len, epochs))
    optimiser = adam(model, recipe.learning_rate)
    model.train()
    for step, rows in enumerate(rows for epoch in epochs for rows in epoch):
        for group in optimiser.param_groups:
            group["lr"] = recipe.learning_rate * warm_cosine(step / n_steps, recipe.warmup)
        ids, mask = pad([documents[row] for row in rows], device)
        target = torch.tensor([labels[row] for row in rows], device=device)
        with half_on_gpu(device):
            logits = forward(ids, mask)
        loss = nn.functional.cross_entropy(logits.float(), target)
        descend(model, optimiser, loss)
        if (now := time.monotonic()) - reported > SECONDS_BETWEEN_REPORTS:
            reported, taken = now, now - started
            line = f"step {step + 1} of {n_steps}, loss {loss.item():.3f}, {taken:.0f} s"
            print(line, file=sys.stderr, flush=True)
    model.eval()
    return time.monotonic() - started


def adam(model: nn.Module, learning_rate: float) -> torch.optim.Optimizer:
    """AdamW that leaves biases and norms undecayed."""
    matrices = [weight for weight in model.parameters() if weight.ndim > 1]
    vectors = [weight for weight in model.parameters() if weight.ndim <= 1]
    groups = [{"params": matrices, "weight_decay": 0.01}, {"params": vectors, "weight_decay": 0.0}]
    fused = next(model.parameters()).is_cuda
    return torch.optim.AdamW(groups, lr=learning_rate, betas=(0.9, 0.98), fused=fused)


def descend(model: nn.Module, optimiser: torch.optim.Optimizer, loss: Tensor) -> None:
    optimiser.zero_grad(set_to_none=True)
    loss.backward()  # type: ignore[no-untyped-call]
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimiser.step()


def warm_cosine(progress: float, warmup: float) -> float:
    """A linear rise, then half a cosine from 1 down to 0.01."""
    if progress < warmup:
        return max(progress / warmup, 0.01)
    falling = min((progress - warmup) / (1 - warmup), 1.0)
    return 0.01 + 0.99 * 0.5 * (1 + math.cos(math.pi * falling))


def length_batches(
    documents: Documents, n_tokens: int, *, n_texts: int, rng: Generator | None
) -> Iterator[NDArray[np.int64]]:
    """Rows of batches of similar length; in random order where `rng` is given."""
    lengths = np.array([len(document) for document in documents])
    jitter = rng.uniform(0.9, 1.1, len(lengths)) if rng is not None else 1.0
    order = np.argsort(-lengths * jitter, kind="stable")
    batches, start = [], 0
    while start < len(order):
        longest = max(1, int(lengths[order[start : start + n_texts]].max()))
        stop = start + max(1, min(n_texts, n_tokens // longest))
        batches.append(order[start:stop])
        start = stop
    order = rng.permutation(len(batches)) if rng is not None else np.arange(len(batches))
    return (batches[number] for number in order)


def pad(documents: Documents, device: torch.device) -> tuple[Tensor, Tensor]:
    """Ids padded with 0 on the right, and the mask (n, width)."""
    width = max(1, *(len(document) for document in documents))
    ids = np.zeros((len(documents), width), dtype=np.int64)
    mask = np.zeros((len(documents), width), dtype=np.int64)
    for row, document in enumerate(documents):
        ids[row, : len(document)] = document
        mask[row, : len(document)] = 1
    return torch.from_numpy(ids).to(device), torch.from_numpy(mask).to(device)


@torch.no_grad()
def log_odds(
    forward: Forward, documents: Documents, device: torch.device, n_tokens: int = 65_536
) -> NDArray[np.float64]:
    """Of the positive class, (n,); in full precision."""
    scores = np.zeros(len(documents))
    for rows in length_batches(documents, n_tokens, n_texts=4096, rng=None):
        logits = forward(*pad([documents[row] for row in rows], device)).double()
        scores[rows] = (logits[:, 1] - logits[:, 0]).cpu().numpy()
    return scores


def accuracy(scores: NDArray[np.float64], labels: Sequence[int]) -> float:
    return float(np.mean((scores > 0) == (np.asarray(labels) == 1)))


def calibration_error(
    scores: NDArray[np.float64], labels: Sequence[int], n_bins: int = 15
) -> float:
    """Expected calibration error of the predicted class, bins of equal width."""
    confidence = 1 / (1 + np.exp(-np.abs(scores)))
    right = (scores > 0) == (np.asarray(labels) == 1)
    bins = np.minimum(((confidence - 0.5) * 2 * n_bins).astype(int), n_bins - 1)
    gaps = [abs(float(np.sum((right - confidence)[bins == index]))) for index in range(n_bins)]
    return sum(gaps) / len(scores)


def best_temperature(scores: NDArray[np.float64], labels: Sequence[int]) -> float:
    """The divisor of the log-odds under which the labels are most probable."""
    target = torch.tensor(labels, dtype=torch.float64)
    grid = np.exp(np.linspace(np.log(0.2), np.log(5), 400))
    losses = [binary_cross_entropy_with_logits(torch.tensor(scores / t), target) for t in grid]
    return float(grid[int(torch.stack(losses).argmin())])
