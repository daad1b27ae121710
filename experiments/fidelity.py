"""Who describes a classifier best: random subsets, small removals, deletion and insertion.

Reviews of 25–250 tokens from the IMDB test set, every method at every budget, all errors in
log-odds: UNI and WIDE relative to predicting the mean, REM to predicting no change, deletion
and insertion as areas over the curve. A wrongly explained unit shows up nowhere else.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import click
import numpy as np

from experiments.many import LISTED, LISTED_NUMBERS, Model, collect
from slalom.classifiers.base import Classifier
from slalom.document import FloatArray
from slalom.errors import SlalomError
from slalom.evaluation.items import Item
from slalom.evaluation.rows import Row, markdown
from slalom.evaluation.run import Plan
from slalom.explainers.base import Explainer
from slalom.explainers.methods import method_named
from slalom.explainers.surrogate import QueryBudget, SurrogateExplainer
from slalom.metrics.table import METRICS
from slalom.samplers.subsets import Deletions, SubsetSizes
from slalom.surrogates.linear import LinearSurrogate
from training import data

METHODS = ("slalom", "slalom-local", "slalom-fast", "lime", "kernel-shap", "linear")
MEASURED = ("UNI", "WIDE", "REM", "deletion", "insertion")
SHORTEST, LONGEST = 25, 250
ENOUGH = QueryBudget(minimum=500, per_unit=20, maximum=5000)
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
            n_units = classifier.split(texts[at], "token").n_units
        except SlalomError:  # too long for the model: another one will do
            continue
        if SHORTEST <= n_units <= LONGEST:
            found.append(texts[at])
        if len(found) == n_documents:
            break
    return found


def plan(setting: Setting) -> Plan:
    return Plan(
        methods=tuple(VARIANTS.get(name) or method_named(name) for name in setting.methods),
        budgets=setting.budgets,
        metrics=tuple(METRICS[name] for name in MEASURED),
        seed=setting.seed,
        units="token",
    )


def run(model: Model, folder: Path | None, setting: Setting, out: Path | None) -> list[Row]:
    plan(setting)  # a wrong name ends here, before anything is loaded
    texts = reviews(model.load(), folder, setting.n_documents, seed=setting.seed)
    items = [Item(number, text) for number, text in enumerate(texts)]
    planned = partial(plan, setting)
    return collect(model, items, planned, jobs=setting.jobs, out=out, about="fidelity, IMDB")


def report(rows: Sequence[Row]) -> str:
    """The table as Markdown, who is ahead, and what went wrong."""
    ordered = sorted(rows, key=lambda row: (row.budget or 0, place(row.method)))
    parts = [markdown(ordered, MEASURED), *standings(rows), ""]
    problems = {f"{row.method} at {row.budget}: {row.problem}" for row in rows if row.problem}
    return "\n".join([*parts, *(f"- {problem}" for problem in sorted(problems))])


def standings(rows: Sequence[Row]) -> list[str]:
    """For every budget and question, how far SLALOM is from the best rival, paired by document."""
    lines = []
    for budget in sorted({row.budget or 0 for row in rows}):
        for name in MEASURED:
            ours = "slalom-local" if name == "REM" else "slalom"
            values = _values(rows, budget, name)
            rivals = {method: v for method, v in values.items() if not method.startswith("slalom")}
            if ours not in values or not rivals:
                continue
            sign = 1 if METRICS[name].better == "higher" else -1
            means = {method: sign * (v[0] @ v[1] / v[1].sum()) for method, v in rivals.items()}
            best = max(means, key=lambda method: means[method])
            gap, error = _paired(values[ours], rivals[best])
            lines.append(f"- {name} at {budget}: {ours} {sign * gap:+.3f} ± {error:.3f} on {best}")
    head = "SLALOM against the best other method (paired, ± standard error, + is better):"
    return ["", head, *lines] if lines else []


def _values(
    rows: Sequence[Row], budget: int, name: str
) -> dict[str, tuple[FloatArray, FloatArray]]:
    """Of every method that has a number for every document: the numbers and their weights."""
    found: dict[str, list[tuple[float, float]]] = {}
    for row in sorted(rows, key=lambda row: row.document):
        if row.budget == budget:
            value = row.values.get(name)
            number = float("nan") if value is None else value
            found.setdefault(row.method, []).append((number, row.weights.get(name, 1.0)))
    columns = {method: np.array(pairs).T for method, pairs in found.items()}
    return {method: (v, w) for method, (v, w) in columns.items() if np.isfinite(v).all()}


def _paired(
    ours: tuple[FloatArray, FloatArray], theirs: tuple[FloatArray, FloatArray]
) -> tuple[float, float]:
    """The weighted mean of the differences and its standard error over documents."""
    weights = ours[1] / ours[1].sum()
    gaps = ours[0] - theirs[0]
    mean = float(weights @ gaps)
    unbiased = len(gaps) / max(1, len(gaps) - 1)
    return mean, float(np.sqrt(unbiased * (weights**2) @ (gaps - mean) ** 2))


def place(method: str) -> int:
    known = [*METHODS, *VARIANTS]
    return known.index(method) if method in known else len(known)


@click.command("fidelity")
@click.option("--model", help="A model's folder or name.  [default: the bundled one]")
@click.option("--data", "folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--scale", type=click.Choice(["small", "paper"]), default="small", show_default=True)
@click.option(
    "--methods",
    type=LISTED,
    help="Names with commas between.  [default: " + ",".join(METHODS) + "]",
)
@click.option("--queries", type=LISTED_NUMBERS, help="Budgets with commas between.")
@click.option("--documents", type=click.IntRange(1), help="How many reviews.")
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--device", help="cpu or cuda.")
@click.option(
    "--jobs", type=click.IntRange(1), help="Documents at a time.  [default: all cores but one]"
)
@click.option(
    "--out", type=click.Path(dir_okay=False, path_type=Path), help="Rows as JSON; resumes."
)
def command(
    model: str | None,
    folder: Path | None,
    scale: str,
    methods: tuple[str, ...] | None,
    queries: tuple[int, ...] | None,
    documents: int | None,
    seed: int,
    device: str | None,
    jobs: int | None,
    out: Path | None,
) -> None:
    """Fidelity of all methods at equal budgets, with cost."""
    base = SMALL if scale == "small" else Setting()
    setting = Setting(
        methods=methods or base.methods,
        budgets=queries or base.budgets,
        n_documents=documents or base.n_documents,
        seed=seed,
        jobs=jobs or max(1, (os.cpu_count() or 2) - 1),
    )
    click.echo(report(run(Model(model, device), folder, setting, out)))


if __name__ == "__main__":
    command()
