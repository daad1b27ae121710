"""Documents per second, how far that is from the model's own time, and where the rest goes.

    python -m benchmarks.speed [--models bundled,minilm,bert-base] [--precisions none,bf16]
        [--methods slalom,slalom-fast] [--documents 100] [--queries 500] [--device cuda]
        [--rivals 5000] [--data FOLDER] [--seconds 280] [--out rows.jsonl]

A model is a folder, or one of random weights, which serve for speed: minilm is a BERT of 6
layers, 384 wide, bert-base one of 12 layers, 768 wide, both with the bundled tokenizer. Texts are
IMDB test reviews with --data, else made of its words, 25 to 250 tokens. Total is `explain_many`
from texts to explanations, best of --repeats, with the workers of the fits already there. Bare is
the forward passes of the same distinct queries alone, at the token budget that is best for them.
"processor" is this process's, all of it where OMP_NUM_THREADS=1 leaves the fits no workers.
Stages are those of another run: "own" is processor time of our threads, "clock" what passed
meanwhile, waiting included; on a GPU stages run beside each other. With --rivals, other packages
explain a few of the texts with so many queries; shap and lime ask through our classifier and share
its shortcuts on a CPU, with --plain-rivals its batches alone: the model's own forward pass answers.
Rows are written as they come; after --seconds no other one is begun.
"""

import argparse
import json
import os
import warnings
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np

import slalom
from benchmarks.inside import PER_WORKER, TokenRows
from benchmarks.reviews import reviews
from benchmarks.stages import Stopwatch, bare_seconds, listening, without_shortcuts

SIZES = {"minilm": (6, 384, 12), "bert-base": (12, 768, 12)}  # layers, width, heads
OWN = ("tokenise", "build", "batch", "finish")
RIVALS = ("slalom-explanations", "shap KernelExplainer", "lime LimeTextExplainer")


@dataclass(frozen=True)
class Case:
    """What is measured in one row."""

    model: str
    precision: str | None
    method: str
    queries: int
    documents: int
    device: str


def main() -> None:
    given = _options().parse_args()
    warnings.simplefilter("ignore", slalom.SlalomWarning)  # random weights explain nothing
    shown_as_they_come(_rows(given), out=given.out, seconds=given.seconds)


def shown_as_they_come(rows: Iterable[dict[str, Any]], *, out: str | None, seconds: float) -> None:
    """Each row is printed and kept at once; none is begun after so many seconds."""
    begin = perf_counter()
    for row in rows:
        print("  ".join(f"{key} {_short(value)}" for key, value in row.items()), flush=True)
        if out:
            with Path(out).open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
        if perf_counter() - begin > seconds:
            break


def _options() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--models", default="bundled", help=f"bundled, {', '.join(SIZES)}, folder")
    options.add_argument("--precisions", default="none", help="none, bf16, fp16")
    options.add_argument("--methods", default="slalom")
    options.add_argument("--documents", type=int, default=100)
    options.add_argument("--queries", type=int, default=500)
    options.add_argument("--device", default="cpu")
    options.add_argument("--data", type=Path, help="folder of data, for reviews")
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--repeats", type=int, default=2)
    options.add_argument("--rivals", type=int, default=0, help="queries of other packages")
    options.add_argument("--rival-names", default=";".join(RIVALS), help="those of them, with ;")
    options.add_argument("--plain-rivals", action="store_true", help="without our shortcuts")
    options.add_argument("--ours", default="slalom,slalom-eff", help="beside them, as many queries")
    options.add_argument("--fewer", default="50,100,200,500,1000", help="queries we try instead")
    options.add_argument("--rival-documents", type=int, default=3)
    options.add_argument("--seconds", type=float, default=1e9)
    options.add_argument("--out", metavar="FILE", help="add a line of JSON per row to this file")
    return options


def _rows(given: argparse.Namespace) -> Iterator[dict[str, Any]]:
    for name in given.models.split(","):
        exact = _classifier(name, given.device, None)
        texts = (
            reviews(exact, given.data, given.documents, seed=given.seed)
            if given.data
            else made_up_texts(exact, given.documents, given.seed)
        )
        for precision, method in product(given.precisions.split(","), given.methods.split(",")):
            cast = None if precision == "none" else precision
            classifier = exact if cast is None else _classifier(name, given.device, cast)
            if cast is not None and method == given.methods.split(",")[0]:
                yield _tolerance(name, classifier, exact, texts[:5])
            case = Case(name, cast, method, given.queries, len(texts), given.device)
            yield measured(case, classifier, texts, given.repeats)
        if given.rivals:
            yield from _rivals(name, exact, texts[: given.rival_documents], given)


def measured(case: Case, classifier: Any, texts: list[str], repeats: int) -> dict[str, Any]:
    """Total, bare and stages of one case."""
    settings: dict[str, Any] = {
        "method": case.method,
        "n_queries": case.queries,
        "units": "token",
        "progress": False,
    }
    slalom.explain_many(classifier, _for_all_workers(classifier, texts), **settings)
    totals, processor = [], []
    for _ in range(repeats):
        start, begun = perf_counter(), process_time()
        explained = slalom.explain_many(classifier, texts, **settings)
        totals.append(perf_counter() - start)
        processor.append(process_time() - begun)
    asked: list[TokenRows] = []
    stopwatch = Stopwatch()
    with listening(asked), stopwatch.running():
        slalom.explain_many(classifier, texts, **settings)
    bare, budget = bare_seconds(classifier, asked)
    n, total = len(texts), min(totals)
    return {
        **asdict(case),
        "documents_per_second": n / total,
        "ratio": total / bare.clock,
        "seconds": total / n,
        "seconds_bare": bare.clock / n,
        "processor": min(processor) / n,
        "processor_bare": bare.processor / n,
        "best_budget": budget,
        "tokens": sum(e.quality.n_tokens for e in explained) / n,
        "seconds_own": sum(stopwatch.processor[stage] for stage in OWN) / n,
        **{f"own_{stage}": stopwatch.processor[stage] / n for stage in OWN},
        **{f"clock_{stage}": seconds / n for stage, seconds in stopwatch.clock.items()},
    }


def _for_all_workers(classifier: Any, texts: list[str]) -> list[str]:
    """As many as it takes for every worker to have started, and done some."""
    at_a_time = PER_WORKER if classifier.runs_elsewhere else 1
    n_documents = 2 * at_a_time * (os.cpu_count() or 1)
    return (texts * (1 + n_documents // len(texts)))[:n_documents]


def _tolerance(name: str, cast: Any, exact: Any, texts: list[str]) -> dict[str, Any]:
    """How far scores in a smaller precision are from those in full."""
    sampler: Any = slalom.METHODS["slalom"]
    documents = [exact.split(text, "token") for text in texts]
    asked = [
        (d, sampler.sampler.sample(d, 200, np.random.default_rng(0)).queries) for d in documents
    ]
    full, near = (
        np.concatenate([logits[:, -1] - logits[:, 0] for logits in classifier.logits(asked)])
        for classifier in (exact, cast)
    )
    missed = np.abs(near - full)
    return {
        "model": name,
        "precision": cast.precision,
        "log_odds_differ_by_mean": float(missed.mean()),
        "log_odds_differ_by_most": float(missed.max()),
        "log_odds_spread": float(full.std()),
    }


def _rivals(
    name: str, classifier: Any, texts: list[str], given: argparse.Namespace
) -> Iterator[dict[str, Any]]:
    """Other packages, ours with as many queries, and with the fewest that say as much."""
    from benchmarks.inside import CachedClassifier
    from benchmarks.peers import PEERS, Job, measured, ours

    remembered = CachedClassifier(classifier)
    documents = [classifier.split(text, "token") for text in texts]

    def row(peer: Any, n: int) -> dict[str, Any]:
        measured(peer, [Job(classifier, documents[0], 64)], remembered)  # warm up
        line = measured(peer, [Job(classifier, d, n) for d in documents], remembered)
        return {
            "model": name,
            "rival": peer.name,
            "queries": n,
            "seconds": float(np.mean(line.seconds)) if line.seconds else None,
            "processor": float(np.mean(line.processor)) if line.processor else None,
            "subset_error": float(np.mean(line.errors)) if line.errors else None,
            "problem": line.problem,
        }

    said = [row(ours("slalom"), n) for n in map(int, given.fewer.split(","))]
    yield from said
    yield from (row(ours(method), given.rivals) for method in given.ours.split(","))
    for peer in PEERS:
        if peer.name in given.rival_names.split(";"):
            with without_shortcuts() if given.plain_rivals else nullcontext():
                found = row(peer, given.rivals)
            found["plain"] = given.plain_rivals
            error = found["subset_error"]
            enough = [one for one in said if error is not None and one["subset_error"] <= error]
            if enough and found["seconds"]:
                for clock in ("seconds", "processor"):
                    found[f"times_our_{clock}_for_as_much"] = found[clock] / enough[0][clock]
                found["our_queries_for_as_much"] = enough[0]["queries"]
            yield found


def _classifier(name: str, device: str, precision: str | None) -> Any:
    if name not in SIZES:
        folder = None if name == "bundled" else name
        return slalom.load(folder, device=device, precision=precision)
    import torch
    from transformers import BertConfig, BertForSequenceClassification

    tokenizer = slalom.load().tokenizer
    layers, width, heads = SIZES[name]
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(tokenizer),
        num_hidden_layers=layers,
        hidden_size=width,
        num_attention_heads=heads,
        intermediate_size=4 * width,
    )
    model = BertForSequenceClassification(config).eval().to(device)
    return slalom.HuggingFaceClassifier(model, tokenizer, precision=precision, name=name)


def made_up_texts(classifier: Any, n: int, seed: int) -> list[str]:
    """Words of the vocabulary at random, 23 to 248 of them: two special tokens come on top."""
    rng = np.random.default_rng(seed)
    words = sorted(w for w in classifier.tokenizer.get_vocab() if w.isalpha() and len(w) > 2)
    return [" ".join(rng.choice(words, size=rng.integers(23, 249))) for _ in range(n)]


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    main()
