"""Which models make up each group of `train`; every one is kept in the cache with its record."""

import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import save_file

from slalom.errors import UnknownNameError
from training.classic import (
    logistic_regression,
    naive_bayes,
    tfidf_net,
    write_tfidf,
    write_weights,
)
from training.config import TrainingConfig
from training.data import Reviews
from training.loop import Recipe, Record, accuracy, machine, read_record
from training.models import Bench, minilm, own_tokenizer, scratch, smollm
from training.recurrent import lstm, write_lstm
from training.synthetic import (
    DEPTHS,
    KINDS,
    NET,
    PAPER_SLALOM,
    SMALL,
    SMALL_SLALOM,
    Linear,
    relu_net,
    slalom_truth,
    transformer,
)

Predict = Callable[[Sequence[str]], NDArray[np.float64]]  # texts → (n, 2) probabilities
Model = TypeVar("Model")
RELU_WIDTHS = (16, 64, 256)
SCRATCH = [(kind, n) for kind in ("bert", "distilbert", "gpt2", "bloom", "mamba") for n in (1, 2)]


def train_minilm(bench: Bench, depths: Sequence[int]) -> None:
    for n_layers in depths:
        show(minilm(bench, n_layers))


def train_synthetic(bench: Bench, kinds: Sequence[str], depths: Sequence[int]) -> None:
    linear, slalom = Linear(), slalom_truth(bench)
    for_linear = SMALL if bench.small else TrainingConfig()
    for_slalom = SMALL_SLALOM if bench.small else PAPER_SLALOM
    for width in RELU_WIDTHS:
        show(kept_relu_net(bench, width))
    for kind in kinds or KINDS:
        for n_layers in depths or DEPTHS:
            show(transformer(bench, linear, kind, n_layers, for_linear))
            if n_layers <= 2:  # the paper recovers SLALOMs from one and two layers
                show(transformer(bench, slalom, kind, n_layers, for_slalom))


def train_imdb(bench: Bench, names: Sequence[str]) -> None:
    known = {f"{kind}-{n_layers}": (kind, n_layers) for kind, n_layers in SCRATCH}
    for name in wanted(names, known):
        show(scratch(bench, *known[name]))


def train_smollm(bench: Bench) -> None:
    show(smollm(bench))


def train_classic(bench: Bench, names: Sequence[str]) -> None:
    recipe = Recipe(1 if bench.small else 3, 2e-3, n_texts=64, seed=bench.seed)
    makers: dict[str, Callable[[Reviews, Path], Predict]] = {
        "naive-bayes": lambda train, folder: written(naive_bayes(train), write_weights, folder),
        "logistic-regression": lambda train, folder: written(
            logistic_regression(train), write_weights, folder
        ),
        "tfidf-net": lambda train, folder: written(
            tfidf_net(train, seed=bench.seed), write_tfidf, folder
        ),
        "lstm": lambda train, folder: written(
            lstm(train, own_tokenizer(bench, with_special=True), recipe), write_lstm, folder
        ),
    }
    for name in wanted(names, makers):
        show(kept(bench, name, makers[name]))


def wanted(names: Sequence[str], known: Iterable[str]) -> Sequence[str]:
    """The names given, all of them known; without any, all."""
    for name in names:
        if name not in known:
            raise UnknownNameError("model", name, known)
    return names or tuple(known)


def written(model: Model, write: Callable[[Model, Path], None], folder: Path) -> Model:
    write(model, folder)
    return model


def kept(bench: Bench, name: str, make: Callable[[Reviews, Path], Predict]) -> Path:
    """The folder of a bag-of-words or recurrent classifier: found, or filled by training."""
    folder, started = bench.cache / name, time.monotonic()
    if not (folder / "record.json").exists():
        train, test = bench.reviews("train"), bench.reviews("test")
        predict = make(train, folder)
        chunks = [test.texts[start : start + 1000] for start in range(0, len(test), 1000)]
        scores = np.concatenate([predict(chunk)[:, 1] - 0.5 for chunk in chunks])
        right, seconds = accuracy(scores, test.labels), time.monotonic() - started
        Record(name, right, len(train), len(test), bench.seed, seconds, machine()).write(folder)
    return folder


def kept_relu_net(bench: Bench, width: int) -> Path:
    """A ReLU net on the linear data; its record says how far it is from the line 1.5 k."""
    folder, started = bench.cache / f"linear-relu-{width}", time.monotonic()
    if not (folder / "record.json").exists():
        folder.mkdir(parents=True, exist_ok=True)
        config = SMALL if bench.small else NET
        model = relu_net(width, config, bench.seed)
        save_file(model.state_dict(), folder / "model.safetensors")
        place = Linear().words.index("perfect")
        counts = np.arange(1, 11)[:, None] * np.eye(len(Linear().words))[place]
        with torch.no_grad():
            scores = model(torch.tensor(counts, dtype=torch.float32))[:, 0].numpy()
        error = float(np.mean(np.abs(scores / (1.5 * np.arange(1, 11)) - 1)))
        right = float(np.mean(scores > 0))
        notes = f"mean relative distance from 1.5 k for k = 1..10: {error:.3f}"
        seconds = time.monotonic() - started
        Record(
            folder.name, right, config.n_samples, 10, bench.seed, seconds, machine(), notes
        ).write(folder)
    return folder


def show(folder: Path) -> None:
    record = read_record(folder)
    print(
        f"{record.name}: accuracy {record.accuracy:.4f} on {record.n_test}, "
        f"{record.seconds:.0f} s, {record.machine}. {record.notes}",
        flush=True,
    )
