"""Who describes a classifier best: random subsets, small removals, deletion and insertion.

Reviews of 25–250 tokens from the IMDB test set, every method at every budget, all errors in
log-odds: UNI and WIDE relative to predicting the mean, REM to predicting no change, deletion
and insertion as areas over the curve. A wrongly explained unit shows up nowhere else.
"""

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

import click
import numpy as np

from experiments import data
from slalom.classifiers.base import Classifier
from slalom.classifiers.load import load
from slalom.errors import SlalomError
from slalom.evaluation.items import Item
from slalom.evaluation.rows import Row, markdown
from slalom.evaluation.run import Plan, evaluate
from slalom.explainers.base import Explainer
from slalom.explainers.methods import method_named
from slalom.explainers.surrogate import Budget, SurrogateExplainer
from slalom.metrics.table import METRICS
from slalom.samplers import Deletions, SubsetSizes
from slalom.surrogates.linear import LinearSurrogate

METHODS = ("slalom", "slalom-local", "slalom-fast", "lime", "kernel-shap", "linear")
MEASURED = ("UNI", "WIDE", "REM", "deletion", "insertion")
SHORTEST, LONGEST = 25, 250
ENOUGH = Budget(least=500, a_unit=20, most=5000)
VARIANTS: dict[str, Explainer] = {  # rivals at home: the design that suits each question best
    method.name: method
    for method in (
        SurrogateExplainer(
            "linear-uniform",
            "least squares, sizes uniform",
            SubsetSizes(log_uniform=0.0),
            LinearSurrogate(),
            ENOUGH,
            tied=False,
        ),
        SurrogateExplainer(
            "linear-tied",
            "least squares, equal units share a coefficient",
            SubsetSizes(),
            LinearSurrogate(),
            ENOUGH,
        ),
        SurrogateExplainer(
            "linear-local",
            "least squares on deletions of up to 10 units",
            Deletions(10),
            LinearSurrogate(),
            ENOUGH,
            tied=False,
        ),
    )
}


@dataclass(frozen=True)
class Setting:
    """What to run; `small` is for a look, not for a claim."""

    methods: tuple[str, ...] = METHODS
    budgets: tuple[int, ...] = (500, 5000)
    n_documents: int = 20
    seed: int = 0
    jobs: int = 1


SMALL = Setting(budgets=(100,), n_documents=3)


def reviews(
    classifier: Classifier, folder: Path | None, n_documents: int, *, seed: int = 0
) -> list[str]:
    """Random test reviews whose length in tokens is within bounds."""
    texts = data.imdb("test", folder).texts
    found = []
    for at in np.random.default_rng(seed).permutation(len(texts)):
        if len(texts[at]) > 12 * LONGEST:
            continue
        try:
            n_units = classifier.split(texts[at]).n_units
        except SlalomError:  # too long for the model: another one will do
            continue
        if SHORTEST <= n_units <= LONGEST:
            found.append(texts[at])
        if len(found) == n_documents:
            break
    return found


def run(
    model: str | None, folder: Path | None, setting: Setting, *, device: str | None
) -> list[Row]:
    """Every row, with a line on standard error whenever a document is done."""
    classifier = load(model, device=device)
    texts = reviews(classifier, folder, setting.n_documents, seed=setting.seed)
    plan = Plan(
        methods=tuple(VARIANTS.get(name) or method_named(name) for name in setting.methods),
        budgets=setting.budgets,
        metrics=tuple(METRICS[name] for name in MEASURED),
        seed=setting.seed,
    )
    items = [Item(number, text) for number, text in enumerate(texts)]
    start, rows = perf_counter(), []
    n_each = len(plan.methods) * len(plan.budgets)
    for row in evaluate(classifier, items, plan, jobs=setting.jobs):
        rows.append(row)
        if len(rows) % n_each == 0:
            taken = perf_counter() - start
            click.echo(f"{len(rows) // n_each} of {len(texts)} documents, {taken:.0f} s", err=True)
    return rows


def report(rows: Sequence[Row], out: Path | None) -> str:
    """The table as Markdown, what went wrong under it, and everything as JSON."""
    ordered = sorted(rows, key=lambda row: (row.budget or 0, place(row.method)))
    parts = [markdown(ordered, MEASURED)]
    problems = {f"{row.method} at {row.budget}: {row.problem}" for row in rows if row.problem}
    parts += [f"- {problem}" for problem in sorted(problems)]
    if out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(json.dumps([row.to_json() for row in ordered], indent=1), encoding="utf-8")
    return "\n".join(parts)


def place(method: str) -> int:
    known = [*METHODS, *VARIANTS]
    return known.index(method) if method in known else len(known)


@click.command("fidelity")
@click.option("--model", help="A model's folder or name.  [default: the bundled one]")
@click.option("--data", "folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--scale", type=click.Choice(["small", "paper"]), default="small", show_default=True)
@click.option("--methods", help="Names with commas between.  [default: " + ",".join(METHODS) + "]")
@click.option("--queries", help="Budgets with commas between.")
@click.option("--documents", type=int, help="How many reviews.")
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--device", help="cpu or cuda.")
@click.option("--jobs", type=int, help="Documents at a time.  [default: all cores but one]")
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="Rows as JSON.")
def command(
    model: str | None,
    folder: Path | None,
    scale: str,
    methods: str | None,
    queries: str | None,
    documents: int | None,
    seed: int,
    device: str | None,
    jobs: int | None,
    out: Path | None,
) -> None:
    """Fidelity of all methods at equal budgets, with cost."""
    base = SMALL if scale == "small" else Setting()
    setting = Setting(
        methods=tuple(methods.split(",")) if methods else base.methods,
        budgets=tuple(int(b) for b in queries.split(",")) if queries else base.budgets,
        n_documents=documents or base.n_documents,
        seed=seed,
        jobs=jobs or max(1, (os.cpu_count() or 2) - 1),
    )
    click.echo(report(run(model, folder, setting, device=device), out))
