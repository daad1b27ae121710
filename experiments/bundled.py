"""Makes the bundled classifier: vocabulary, teachers, distillation, calibration, packing, report.

`python -m experiments train bundled --scale paper` makes the shipped one; give `--layers` more
than once for the curve of size against accuracy. Test reviews are read only to measure.
"""

import hashlib
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import save_file
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from experiments import data
from experiments.data import Reviews
from experiments.distil import (
    Bert,
    Schedule,
    from_labels,
    from_teacher,
    learn,
    round_embeddings,
    stream_batches,
    unround_embeddings,
    with_vocabulary,
)
from experiments.models import Bench, minilm
from experiments.spans import FOR_STUDENT, FOR_TEACHER, Corpus, SpanStream, corpus
from experiments.training import (
    accuracy,
    best_device,
    best_temperature,
    calibration_error,
    log_odds,
    logits_of,
    machine,
)
from experiments.vocabulary import (
    CONTEXT,
    PAD,
    Expansion,
    expansion,
    train_vocabulary,
    write_tokenizer,
)
from slalom.classifiers.bundled import pack, read_packed

SHIPPED = 2  # layers
LENGTHS = (0, 150, 250, 400, CONTEXT, 10**9)  # bounds of "accuracy by length", in tokens


@dataclass(frozen=True)
class Plan:
    """How much of everything."""

    n_pieces: int
    n_held_out: int  # long reviews; half as many short ones
    n_reviews: int
    n_test: int
    n_workers: int
    n_pool: int  # samples from which batches of similar length are cut
    teacher_depth: int
    teaching: Schedule
    teaching_tokens: int  # of a batch
    learning: Schedule
    learning_tokens: int


PAPER = Plan(
    n_pieces=9_600,
    n_held_out=1000,
    n_reviews=25_000,
    n_test=25_000,
    n_workers=6,
    n_pool=12_288,
    teacher_depth=6,
    teaching=Schedule(800, 45, 4e-5),
    teaching_tokens=24_576,
    learning=Schedule(8000, 180, 2e-4),
    learning_tokens=65_536,
)
SMALL = Plan(
    n_pieces=2000,
    n_held_out=50,
    n_reviews=300,
    n_test=50,
    n_workers=0,
    n_pool=32,
    teacher_depth=1,
    teaching=Schedule(3, 60, 4e-5, watch_every=1),
    teaching_tokens=1024,
    learning=Schedule(3, 60, 2e-4, watch_every=1),
    learning_tokens=1024,
)


@dataclass(frozen=True)
class Material:
    """All texts, as own ids where they are trained on or asked about."""

    tokenizer: PreTrainedTokenizerFast
    training: Corpus
    held_out: Reviews
    test: Reviews
    snippets: Reviews

    def documents(self, reviews: Reviews) -> list[list[int]]:
        return self.tokenizer(list(reviews.texts), truncation=True, max_length=CONTEXT)["input_ids"]


def material(bench: Bench, plan: Plan) -> Material:
    rng, folder = np.random.default_rng(bench.seed), bench.data
    long, short = data.imdb("train", folder), data.rotten_tomatoes(folder)
    snippets = data.snippets(folder, known=short).sample(plan.n_test, rng)
    test = data.imdb("test", folder).sample(plan.n_test, rng)
    held_long, long = long.split(plan.n_held_out, rng)
    held_short, short = short.split(plan.n_held_out // 2, rng)
    training = long.sample(plan.n_reviews, rng) + short.sample(plan.n_reviews, rng)
    tokenizer = vocabulary(training, bench.cache / "bundled-vocabulary", plan.n_pieces)
    ids = tokenizer(list(training.texts), add_special_tokens=False, verbose=False)["input_ids"]
    stops = set(tokenizer.convert_tokens_to_ids([".", "!", "?"]))
    made = corpus(ids, training.labels, stops)
    return Material(tokenizer, made, held_long + held_short, test, snippets)


def vocabulary(training: Reviews, folder: Path, n_pieces: int) -> PreTrainedTokenizerFast:
    if not (folder / "tokenizer_config.json").exists():
        write_tokenizer(train_vocabulary(training.texts, n_pieces), folder)
    return PreTrainedTokenizerFast.from_pretrained(folder)


def make(bench: Bench, depths: Sequence[int], plan: Plan) -> list[Path]:
    """One student of each depth from the same lessons; the folders of the packed models."""
    started = time.monotonic()
    texts = material(bench, plan)
    say(started, f"{len(texts.training.labels)} reviews, {len(texts.training.ids)} tokens")
    bridge = expansion(texts.tokenizer, AutoTokenizer.from_pretrained(data.minilm(bench.data)))
    bridge = bridge.to(best_device())
    teacher = made_teacher(bench, bridge, texts, plan)
    students = taught(bench, bridge, texts, teacher, depths=depths, plan=plan)
    folders = [bench.cache / f"bundled-{depth}" for depth in depths]
    for model, folder in zip(students, folders, strict=True):
        write(calibrated(model, texts), texts.tokenizer, folder)
        report = measure(folder, texts) | {"machine": machine(), "seed": bench.seed}
        report |= {"seconds": round(time.monotonic() - started)}
        (folder / "report.json").write_text(json.dumps(report, indent=2) + "\n")
        say(started, f"{folder.name} {json.dumps(report)}")
    return folders


def made_teacher(bench: Bench, bridge: Expansion, texts: Material, plan: Plan) -> Bert:
    """The 6-layer MiniLM of the experiments, taught to read pieces and short reviews too."""
    folder, started = bench.cache / "teacher", time.monotonic()
    is_kept = (folder / "model.safetensors").exists()
    source = folder if is_kept else minilm(bench, plan.teacher_depth)
    model = Bert.from_pretrained(source, dtype=torch.float32).to(best_device()).eval()
    if is_kept:
        return model
    stream = SpanStream(
        texts.training,
        FOR_TEACHER,
        n_samples=plan.n_pool,
        n_tokens=plan.teaching_tokens,
        seed=100 + bench.seed,
    )
    (model,) = learn(
        [model],
        from_labels(bridge),
        stream_batches(stream, plan.n_workers),
        plan.teaching,
        lambda step, loss: say(started, f"teacher step {step} loss {loss:.3f}"),
    )
    watched(started, "teacher", texts, lambda ids, mask: model(bridge(ids), bridge(ids) != PAD))
    model.save_pretrained(folder)
    return model


def taught(
    bench: Bench,
    bridge: Expansion,
    texts: Material,
    teacher: Bert,
    *,
    depths: Sequence[int],
    plan: Plan,
) -> list[Bert]:
    started, device = time.monotonic(), best_device()
    sources = [Bert.from_pretrained(minilm(bench, depth), dtype=torch.float32) for depth in depths]
    students = [with_vocabulary(source, bridge).to(device) for source in sources]
    for model in students:
        round_embeddings(model)
    stream = SpanStream(
        texts.training,
        FOR_STUDENT,
        n_samples=plan.n_pool,
        n_tokens=plan.learning_tokens,
        seed=200 + bench.seed,
    )
    if device.type == "cuda":
        teacher = teacher.half()  # it only answers: no need to cast its weights at every step
    students = learn(
        students,
        from_teacher(teacher, bridge),
        stream_batches(stream, plan.n_workers),
        plan.learning,
        lambda step, loss: say(started, f"students step {step} loss {loss:.3f}"),
    )
    for depth, model in zip(depths, students, strict=True):
        unround_embeddings(model)
        watched(started, f"student {depth}", texts, lambda ids, mask, m=model: m(ids, mask))
    return students


def watched(started: float, name: str, texts: Material, model: Callable[..., Any]) -> None:
    """Says how well a model does on the held-out reviews, long and short."""
    n_long = len(texts.held_out) * 2 // 3
    documents, device = texts.documents(texts.held_out), best_device()
    scores = log_odds(lambda ids, mask: model(ids, mask).logits, documents, device)
    labels = texts.held_out.labels
    long, short = (
        accuracy(scores[:n_long], labels[:n_long]),
        accuracy(scores[n_long:], labels[n_long:]),
    )
    say(started, f"{name}: held out {long:.4f} long, {short:.4f} short, spread {scores.std():.2f}")


def calibrated(model: Bert, texts: Material) -> Bert:
    """The temperature that suits the held-out reviews, folded into the last layer."""
    documents = texts.documents(texts.held_out)
    scores = log_odds(logits_of(model), documents, model.device)
    temperature = best_temperature(scores, texts.held_out.labels)
    with torch.no_grad():
        model.classifier.weight /= temperature
        model.classifier.bias /= temperature
    return model


def write(model: Bert, tokenizer: PreTrainedTokenizerFast, folder: Path) -> None:
    """The files of the package: configuration, tokenizer, packed weights, their checksums."""
    write_tokenizer(tokenizer, folder)
    model.config.save_pretrained(folder)
    weights = {name: weight.cpu() for name, weight in model.state_dict().items()}
    save_file(pack(weights), folder / "model.safetensors")
    names = ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json")
    sums = [f"{hashlib.sha256((folder / name).read_bytes()).hexdigest()}  {name}" for name in names]
    (folder / "SHA256").write_text("\n".join(sums) + "\n")


def measure(folder: Path, texts: Material) -> dict[str, object]:
    """Accuracy and calibration of the packed model, as it will be loaded."""
    model, _ = read_packed(folder)
    device = best_device()
    forward = logits_of(model.to(device))  # type: ignore[arg-type]
    report: dict[str, object] = {
        "bytes": sum(path.stat().st_size for path in folder.iterdir() if path.suffix != ".md"),
        "n_parameters": model.num_parameters(),
    }
    for name, reviews in (("imdb_test", texts.test), ("snippets", texts.snippets)):
        documents = texts.documents(reviews)
        scores = log_odds(forward, documents, device)
        report[name] = {
            "n": len(reviews),
            "accuracy": round(accuracy(scores, reviews.labels), 4),
            "calibration_error": round(calibration_error(scores, reviews.labels), 4),
        }
        if name == "imdb_test":
            report["by_length"] = by_length(scores, reviews.labels, texts.tokenizer, reviews.texts)
    return report


def by_length(
    scores: NDArray[np.float64],
    labels: Sequence[int],
    tokenizer: PreTrainedTokenizerFast,
    texts: Sequence[str],
) -> dict[str, list[float]]:
    """For each range of lengths in tokens: how many reviews, and the accuracy."""
    lengths = np.array([len(ids) for ids in tokenizer(list(texts), verbose=False)["input_ids"]])
    table = {}
    for low, high in pairwise(LENGTHS):
        rows = np.flatnonzero((lengths > low) & (lengths <= high))
        if len(rows):
            right = accuracy(scores[rows], np.asarray(labels)[rows].tolist())
            table[f"{low + 1}-{high}"] = [len(rows), round(right, 4)]
    return table


def say(started: float, text: str) -> None:
    print(f"[{time.monotonic() - started:6.1f} s] {text}", flush=True)
