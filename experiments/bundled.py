"""Makes the bundled classifier: vocabulary, teachers, distillation, calibration, packing, report.

`python -m experiments train bundled --scale paper` makes the shipped one; give `--student` more
than once for the curve of size against accuracy. Test reviews are read only to measure.
"""

import hashlib
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import save_file
from transformers import (
    AutoTokenizer,
    BertForSequenceClassification,
    ElectraForSequenceClassification,
    PreTrainedTokenizerFast,
)

from experiments import data
from experiments.data import Reviews
from experiments.distil import Schedule, distil, learner, steps, train_teacher
from experiments.spans import FOR_STUDENT, FOR_TEACHER, Corpus, SpanStream, corpus
from experiments.student import SHAPES, Shape, student
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
    Expansion,
    expansion,
    train_vocabulary,
    write_tokenizer,
)
from slalom.classifiers.bundled import pack, read_packed

SHIPPED = "3x384"
LENGTHS = (0, 150, 250, 400, CONTEXT, 10**9)  # bounds of "accuracy by length", in tokens


@dataclass(frozen=True)
class Plan:
    """How much of everything."""

    n_pieces: int
    n_teachers: int
    n_held_out: int  # long ones; half as many short ones
    n_reviews: int
    n_test: int
    n_workers: int
    teaching: Schedule
    teaching_samples: int  # of a step
    learning: Schedule
    learning_samples: int
    n_tokens: int  # of a batch
    seed: int = 0


PAPER = Plan(
    n_pieces=12_000,
    n_teachers=2,
    n_held_out=1000,
    n_reviews=25_000,
    n_test=25_000,
    n_workers=6,
    teaching=Schedule(2400, 100, 7e-5),
    teaching_samples=128,
    learning=Schedule(9000, 280),
    learning_samples=512,
    n_tokens=24_576,
)
SMALL = Plan(
    n_pieces=2000,
    n_teachers=1,
    n_held_out=50,
    n_reviews=300,
    n_test=100,
    n_workers=0,
    teaching=Schedule(3, 60, 7e-5, watch_every=1),
    teaching_samples=4,
    learning=Schedule(12, 60, watch_every=5),
    learning_samples=16,
    n_tokens=2048,
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


def material(folder: Path | None, cache: Path, plan: Plan) -> Material:
    rng = np.random.default_rng(plan.seed)
    long, short = data.imdb("train", folder), data.rotten_tomatoes(folder)
    snippets = data.snippets(folder, known=short).sample(plan.n_test, rng)
    test = data.imdb("test", folder).sample(plan.n_test, rng)
    held_long, long = long.split(plan.n_held_out, rng)
    held_short, short = short.split(plan.n_held_out // 2, rng)
    training = long.sample(plan.n_reviews, rng) + short.sample(plan.n_reviews, rng)
    tokenizer = vocabulary(training, cache / "bundled-vocabulary", plan.n_pieces)
    ids = tokenizer(list(training.texts), add_special_tokens=False, verbose=False)["input_ids"]
    stops = set(tokenizer.convert_tokens_to_ids([".", "!", "?"]))
    made = corpus(ids, training.labels, stops)
    return Material(tokenizer, made, held_long + held_short, test, snippets)


def vocabulary(training: Reviews, folder: Path, n_pieces: int) -> PreTrainedTokenizerFast:
    if not (folder / "tokenizer_config.json").exists():
        write_tokenizer(train_vocabulary(training.texts, n_pieces), folder)
    return PreTrainedTokenizerFast.from_pretrained(folder)


def make(folder: Path | None, cache: Path, shapes: Sequence[str], plan: Plan) -> list[Path]:
    """Trains one student of each shape from the same lessons; the folders of the packed models."""
    started = time.monotonic()
    texts = material(folder, cache, plan)
    say(started, f"{len(texts.training.labels)} reviews, {len(texts.training.ids)} tokens")
    teachers = [
        make_teacher(folder, cache, texts, plan, turn=turn) for turn in range(plan.n_teachers)
    ]
    bridge = bridge_to_minilm(folder, texts)
    students = taught(teachers, bridge, texts, [SHAPES[name] for name in shapes], plan)
    folders = [cache / f"bundled-{name}" for name in shapes]
    for model, place in zip(students, folders, strict=True):
        write(calibrated(model, texts), texts.tokenizer, place)
        report = measure(place, texts) | {"machine": machine(), "seed": plan.seed}
        report |= {"seconds": round(time.monotonic() - started)}
        (place / "report.json").write_text(json.dumps(report, indent=2) + "\n")
        say(started, f"{place.name} {json.dumps(report)}")
    return folders


def bridge_to_minilm(folder: Path | None, texts: Material) -> Expansion:
    minilm = AutoTokenizer.from_pretrained(data.minilm(folder))
    return expansion(texts.tokenizer, minilm).to(best_device())


def make_teacher(
    folder: Path | None, cache: Path, texts: Material, plan: Plan, *, turn: int
) -> BertForSequenceClassification:
    """MiniLM that has seen the training reviews in pieces, trained or from the cache."""
    place, started = cache / f"teacher-{turn}", time.monotonic()
    is_trained = (place / "model.safetensors").exists()
    source = place if is_trained else data.minilm(folder)
    torch.manual_seed(plan.seed + turn)
    model = BertForSequenceClassification.from_pretrained(source, dtype=torch.float32)
    model = model.to(best_device()).eval()
    if is_trained:
        return model
    stream = SpanStream(
        texts.training,
        FOR_TEACHER,
        n_samples=plan.teaching_samples,
        n_tokens=plan.n_tokens,
        seed=100 + plan.seed + turn,
    )
    bridge = bridge_to_minilm(folder, texts)
    model = train_teacher(
        model,
        bridge,
        steps(stream, plan.n_workers),
        plan.teaching,
        lambda step, loss: say(started, f"teacher {turn} step {step} loss {loss:.3f}"),
    )
    for name, reviews in (("held out", texts.held_out), ("snippets", texts.snippets)):
        scores = log_odds(
            lambda ids, mask: model(*bridged(bridge, ids)).logits,
            texts.documents(reviews),
            model.device,
        )
        say(started, f"teacher {turn} {name} {accuracy(scores, reviews.labels):.4f}")
    model.save_pretrained(place)
    return model


def bridged(bridge: Expansion, ids: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    expanded, _ = bridge(ids)
    return expanded, expanded != 0


def taught(
    teachers: Sequence[BertForSequenceClassification],
    bridge: Expansion,
    texts: Material,
    shapes: Sequence[Shape],
    plan: Plan,
) -> list[ElectraForSequenceClassification]:
    started, device = time.monotonic(), best_device()
    torch.manual_seed(plan.seed)
    learners = [
        learner(
            student(shape, teachers[0], bridge).to(device),
            teachers[0].config.hidden_size,
            plan.learning,
            shape.learning_rate,
        )
        for shape in shapes
    ]
    held_out = texts.documents(texts.held_out)

    def watch(step: int, loss: float) -> None:
        scores = [
            log_odds(logits_of(one.average.module.eval()), held_out, device) for one in learners
        ]
        right = [f"{accuracy(score, texts.held_out.labels):.4f}" for score in scores]
        say(started, f"students step {step} loss {loss:.3f} held out {' '.join(right)}")

    stream = SpanStream(
        texts.training,
        FOR_STUDENT,
        n_samples=plan.learning_samples,
        n_tokens=plan.n_tokens,
        seed=200 + plan.seed,
    )
    distil(teachers, bridge, learners, steps(stream, plan.n_workers), plan.learning, watch)
    return [one.average.module.eval() for one in learners]


def calibrated(
    model: ElectraForSequenceClassification, texts: Material
) -> ElectraForSequenceClassification:
    """The temperature that suits the held-out reviews, folded into the last layer."""
    documents = texts.documents(texts.held_out)
    scores = log_odds(logits_of(model), documents, model.device)
    temperature = best_temperature(scores, texts.held_out.labels)
    with torch.no_grad():
        model.classifier.out_proj.weight /= temperature
        model.classifier.out_proj.bias /= temperature
    return model


def write(
    model: ElectraForSequenceClassification, tokenizer: PreTrainedTokenizerFast, folder: Path
) -> None:
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
