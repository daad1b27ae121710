"""Makes the bundled classifier: vocabulary, teacher, student, and the files of the package.

`python -m training bundled --scale paper` makes the shipped one; give `--layers` more
than once for the curve of size against accuracy. Test reviews are read only to measure.
"""

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from training import data
from training.data import Reviews
from training.distil import (
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
from training.loop import (
    accuracy,
    best_device,
    log_odds,
    machine,
)
from training.models import Bench, minilm
from training.shipping import calibrate, documents, measure, write
from training.spans import FOR_STUDENT, FOR_TEACHER, Corpus, SpanStream, corpus
from training.vocabulary import (
    PAD,
    Expansion,
    expansion,
    train_vocabulary,
    write_tokenizer,
)

SHIPPED = 2  # layers


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
    teaching=Schedule(800, 4e-5),
    teaching_tokens=24_576,
    learning=Schedule(6000, 2e-4),
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
    teaching=Schedule(3, 4e-5, watch_every=1),
    teaching_tokens=1024,
    learning=Schedule(3, 2e-4, watch_every=1),
    learning_tokens=1024,
)


@dataclass(frozen=True)
class Material:
    """All texts; those trained on as own ids.

    The held-out reviews are kept from vocabulary, teacher and student; the long ones are known to
    the fine-tuned MiniLM that teacher and student start from.
    """

    tokenizer: PreTrainedTokenizerFast
    training: Corpus
    held_out: Reviews
    test: Reviews
    snippets: Reviews


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
        temperature = calibrate(model, texts.tokenizer, texts.held_out)
        write(model, texts.tokenizer, folder)
        report = measure(folder, {"imdb_test": texts.test, "snippets": texts.snippets})
        report |= {"temperature": temperature, "seed": bench.seed, "machine": machine()}
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
    held_out = documents(texts.tokenizer, texts.held_out)
    scores = log_odds(lambda ids, mask: model(ids, mask).logits, held_out, best_device())
    labels = texts.held_out.labels
    long, short = (
        accuracy(scores[:n_long], labels[:n_long]),
        accuracy(scores[n_long:], labels[n_long:]),
    )
    say(started, f"{name}: held out {long:.4f} long, {short:.4f} short, spread {scores.std():.2f}")


def say(started: float, text: str) -> None:
    print(f"[{time.monotonic() - started:6.1f} s] {text}", flush=True)
