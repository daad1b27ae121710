"""The real packages on the same model, documents, budget and machine, in one run.

    python -m benchmarks.peers --documents 10 --queries 500 [--model FOLDER] [--data FOLDER]

Every peer is warmed up on a short text first (shap compiles for seconds), then timed document
by document. Two kinds of peers:

- *game*: a package's estimator on our coalitions: it calls a function of 0/1 rows that removes
  units and returns log-odds, in batches of our choice. Estimators compared on equal terms; those
  of shapiq, in its newest version, are in benchmarks.rivals.
- *as shipped*: what a user of the package gets, with its own way of hiding words, its own
  units and its own batches. What cannot be changed from outside is in the notes.

`ratio` is the time over that of our method of the same kind.
"""

import contextlib
import io
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from math import isnan
from pathlib import Path
from statistics import mean
from time import perf_counter, process_time
from types import ModuleType
from typing import Any

import click
import numpy as np
import torch

from benchmarks.inside import (
    Ask,
    CachedClassifier,
    Classifier,
    Document,
    FloatArray,
    Found,
    LinearModel,
    Order,
    Plan,
    Request,
    SlalomModel,
    case_of,
    deletion,
    in_step,
    method_named,
    queries_from_masks,
    read_outs,
    run_local,
    subject_of,
    subset_error,
)
from benchmarks.reviews import opened, reviews
from slalom import Explanation

BATCH = 128
WARM_UP = "A slow start, but a truly wonderful film."


@dataclass(frozen=True)
class Job:
    """One document and the budget every peer gets for it."""

    classifier: Classifier
    document: Document
    n_queries: int

    def log_odds(self, coalitions: Any) -> FloatArray:
        """The game: rows of 0/1 to the log-odds of the last class."""
        masks = np.asarray(coalitions).astype(bool).reshape(-1, self.document.n_units)
        logits = self.classifier.logits([(self.document, queries_from_masks(masks))])[0]
        return np.asarray(logits[:, -1] - logits[:, 0])

    def told(self, name: str, scores: FloatArray, model: Any) -> Explanation:
        def plan() -> Plan:
            document = self.document.untied()
            answers = yield Ask(document, document.full())
            case = case_of(document, answers, Request(len(self.classifier.labels) - 1))
            return case.explanation(Found({"score": scores}, model=model), name)

        explanation: Explanation = in_step(self.classifier, [plan()])[0]
        return explanation

    def explained(self, name: str, scores: FloatArray, *, empty: float | None) -> Explanation:
        """Scores as an explanation; `empty` is the score of nothing where they are log-odds."""
        model = None if empty is None else LinearModel(scores, np.asarray(float(empty)))
        return self.told(name, scores, model)


@dataclass(frozen=True)
class Peer:
    """Something that turns a job into an explanation."""

    name: str
    kind: str  # "ours", "game" or "as shipped"
    against: str  # our method its time is compared with
    explain: Callable[[Job], Explanation]
    note: str = ""


def ours(name: str) -> Peer:
    def explain(job: Job) -> Explanation:
        request = Request(len(job.classifier.labels) - 1, job.n_queries)
        found = run_local(job.classifier, Order(method_named(name), request), [job.document])
        assert isinstance(found[0], Explanation)  # errors are raised
        return found[0]

    return Peer(name, "ours", name, explain)


def shap_kernel(job: Job) -> Explanation:
    import shap

    n_units = job.document.n_units
    explainer = shap.KernelExplainer(job.log_odds, np.zeros((1, n_units)))
    scores = explainer.shap_values(
        np.ones((1, n_units)), nsamples=job.n_queries, l1_reg=0, silent=True
    )[0]
    return job.explained("shap", np.asarray(scores), empty=float(explainer.expected_value))


def shap_text(job: Job) -> Explanation:
    """shap.Explainer on strings: partitions of the text, words replaced by the mask token."""
    import shap

    tokenizer = job.classifier.tokenizer  # type: ignore[attr-defined]

    def log_odds(texts: Sequence[str]) -> FloatArray:
        logits = job.classifier([str(text) for text in texts])
        return np.asarray(logits[:, -1] - logits[:, 0])

    explainer = shap.Explainer(log_odds, shap.maskers.Text(tokenizer))
    found = explainer([job.document.text], max_evals=job.n_queries, batch_size=BATCH, silent=True)
    tokens = np.asarray(found.values[0], dtype=float)
    sizes = np.cumsum([0, *(len(part) for part in found.data[0])])
    scores = np.zeros(job.document.n_units)
    for unit, (start, end) in enumerate(job.document.spans):
        inside = (sizes[:-1] < end) & (sizes[1:] > start)
        scores[unit] = tokens[inside].sum()
    return job.explained("shap text", scores, empty=float(np.ravel(found.base_values)[0]))


def lime_text(job: Job) -> Explanation:
    """LimeTextExplainer as in its tutorial: probabilities, words split at every other sign."""
    from lime.lime_text import LimeTextExplainer

    def probabilities(texts: list[str]) -> FloatArray:
        logits = job.classifier([text if text.strip() else "." for text in texts])
        odds = np.exp(logits - logits.max(axis=1, keepdims=True))
        return np.asarray(odds / odds.sum(axis=1, keepdims=True))

    explainer = LimeTextExplainer(bow=False, random_state=0, mask_string=" ")
    text = str(job.document.text)
    found = explainer.explain_instance(
        text, probabilities, labels=(1,), num_samples=job.n_queries, num_features=10**6
    )
    indexed = found.domain_mapper.indexed_string
    scores = np.zeros(job.document.n_units)
    for word, weight in found.as_map()[1]:
        start = int(indexed.string_position(word)[0])
        end = start + len(indexed.word(word))
        for unit, span in enumerate(job.document.spans):
            if span[-2] < end and start < span[-1]:
                scores[unit] = weight
    return job.explained("lime", scores, empty=None)


def captum_of(kind: str) -> Callable[[Job], Explanation]:
    def explain(job: Job) -> Explanation:
        from captum import attr

        def game(present: torch.Tensor) -> torch.Tensor:
            return torch.from_numpy(job.log_odds(present.numpy()))

        method = getattr(attr, kind)(game)
        scores = method.attribute(
            torch.ones(1, job.document.n_units),
            n_samples=job.n_queries,
            perturbations_per_eval=BATCH,
        )[0].numpy()
        empty = job.log_odds(np.zeros((1, job.document.n_units)))[0]
        return job.explained(f"captum {kind}", scores.astype(float), empty=float(empty))

    return explain


@contextlib.contextmanager
def without_figures() -> Iterator[None]:
    """Empty modules in place of matplotlib, which a package loads and is not asked to use."""
    names = ("matplotlib", "matplotlib.pyplot", "matplotlib.colors")
    absent = [] if find_spec("matplotlib") else names
    for name in absent:
        sys.modules[name] = ModuleType(name)
        vars(sys.modules[name])["Normalize"] = None
    try:
        yield
    finally:
        for name in absent:
            del sys.modules[name]


class Renamed(torch.nn.Module):
    """The package writes 101 and 102 for [CLS] and [SEP]: give it a model that understands."""

    def __init__(self, model: Any, tokenizer: Any) -> None:
        super().__init__()
        self.model, self.ids = model, (tokenizer.cls_token_id, tokenizer.sep_token_id)

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> Any:
        first = input_ids.clone()
        first[:, 0] = self.ids[0]
        ends = attention_mask.sum(dim=1) - 1
        first[torch.arange(len(first)), ends] = self.ids[1]
        return {"logits": self.model(input_ids=first, attention_mask=attention_mask).logits}


def slalom_explanations(**settings: Any) -> Callable[[Job], Explanation]:
    def explain(job: Job) -> Explanation:
        with without_figures():
            from slalom_explanations import SLALOMLocalExplanantions

        inner: Any = job.classifier
        explainer = SLALOMLocalExplanantions(
            Renamed(inner.model, inner.tokenizer),
            inner.tokenizer,
            n_samples=job.n_queries,
            device=str(next(inner.model.parameters()).device),
            modes=["value", "imp"],
            **settings,
        )
        frame: Any = job.document.frame
        ids = [int(frame.ids[start]) for start in frame.starts[: job.document.n_units]]
        values, importances = np.asarray(explainer.get_signed_importance_for_tokens(ids), float)
        model = SlalomModel(values, importances - importances.mean(), None)
        scores = read_outs(model, np.ones(len(values)))["linearised"]
        return job.told("slalom-explanations", scores, model)

    return explain


PEERS = (
    ours("slalom"),
    ours("slalom-fast"),
    ours("slalom-eff"),
    ours("slalom-fidel"),
    Peer(
        "slalom-explanations",
        "as shipped",
        "slalom-eff",
        slalom_explanations(),
        "batches of 16 and length 3 are fixed inside; Adam, 60 epochs",
    ),
    Peer(
        "slalom-explanations, converged",
        "as shipped",
        "slalom-eff",
        slalom_explanations(sgd_epochs=1500, sgd_lr=2e-2),
        "the same, 1500 epochs at four times the rate",
    ),
    Peer(
        "slalom-explanations, fidel",
        "as shipped",
        "slalom-fidel",
        slalom_explanations(sampling_strategy="deletion", fit_sgd=False),
    ),
    ours("kernel-shap"),
    Peer("shap KernelExplainer", "game", "kernel-shap", shap_kernel, "without its L1 penalty"),
    Peer("captum KernelShap", "game", "kernel-shap", captum_of("KernelShap"), "unpaired, unseeded"),
    Peer("shap Explainer, text", "as shipped", "kernel-shap", shap_text, "masks, does not remove"),
    ours("lime"),
    Peer("lime LimeTextExplainer", "as shipped", "lime", lime_text, "probabilities, words"),
    Peer("captum Lime", "game", "lime", captum_of("Lime"), "its default kernel and lasso"),
)


@dataclass
class Line:
    """What one peer did over all documents."""

    seconds: list[float] = field(default_factory=list)
    processor: list[float] = field(default_factory=list)  # of them, seconds of this process
    errors: list[float] = field(default_factory=list)
    aopc: list[float] = field(default_factory=list)
    problem: str = ""


def measured(peer: Peer, jobs: Sequence[Job], remembered: Classifier) -> Line:
    line = Line()
    for job in jobs:
        with warnings.catch_warnings(), quiet():
            warnings.simplefilter("ignore")  # other packages' warnings are not the subject
            start, processor = perf_counter(), process_time()
            try:
                explanation = peer.explain(job)
            except Exception as problem:
                line.problem = f"{type(problem).__name__}: {problem}".splitlines()[0][:90]
                return line
            line.seconds.append(perf_counter() - start)
            line.processor.append(process_time() - processor)
        if explanation.model is not None:
            line.errors.append(subset_error(subject_of(remembered, explanation)))
        line.aopc.append(deletion(subject_of(remembered, explanation)).aopc)
    return line


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Without other packages' words and progress bars."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        yield


def table(lines: dict[str, Line], peers: Sequence[Peer]) -> str:
    rows = ["| peer | kind | seconds | ratio | UNI | deletion | note |", "|" + "---|" * 7]
    for peer in peers:
        line, base = lines[peer.name], lines.get(peer.against)
        seconds = mean(line.seconds) if line.seconds else float("nan")
        ratio = seconds / mean(base.seconds) if base and base.seconds else float("nan")
        cells = [peer.name, peer.kind]
        if line.problem:
            cells += ["–", "–", "–", "–", f"crashes: {line.problem}"]
        else:
            cells += [f"{seconds:.2f}", "–" if isnan(ratio) else f"{ratio:.1f}×"]
            cells += [f"{mean(line.errors):.3f}" if line.errors else "–"]
            cells += [f"{mean(line.aopc):.3f}", peer.note]
        rows.append("| " + " | ".join(cells) + " |")
    return "\n".join(rows)


@click.command()
@click.option("--model", help="A model's folder or name.  [default: the bundled one]")
@click.option("--data", "folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--documents", default=5, show_default=True)
@click.option("--queries", default=500, show_default=True)
@click.option("--only", help="Part of the peers' names.")
@click.option("--device", help="cpu or cuda.")
def main(
    model: str | None,
    folder: Path | None,
    documents: int,
    queries: int,
    only: str | None,
    device: str | None,
) -> None:
    """Seconds, ratios, fidelity and AOPC of the packages people use instead."""
    classifier = opened(model, device)
    texts = reviews(classifier, folder, documents, seed=1)
    peers = [peer for peer in PEERS if only is None or only in peer.name]
    jobs = [Job(classifier, classifier.split(text), queries) for text in texts]
    warm = [Job(classifier, classifier.split(WARM_UP), 64)]
    remembered = CachedClassifier(classifier)
    lines = {}
    for peer in peers:
        measured(peer, warm, remembered)
        lines[peer.name] = measured(peer, jobs, remembered)
        click.echo(f"{peer.name}: done", err=True)
    click.echo(table(lines, peers))


if __name__ == "__main__":
    main()
