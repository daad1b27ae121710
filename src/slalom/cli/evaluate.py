"""`slalom evaluate`: methods measured on many texts, into tables with their cost."""

import hashlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from slalom.cli.typed import (
    ABSENT,
    COUNT,
    DEVICE,
    MODEL,
    REVISION,
    SEED,
    TARGET,
    TOO_LONG,
    UNITS,
    complain,
    methods_typed,
    names_typed,
    one_class_typed,
    progress_bar,
)
from slalom.errors import FileError, InputError, MissingExtraError

if TYPE_CHECKING:
    from slalom.classifiers.base import Classifier
    from slalom.evaluation.items import Item, SkippedLine
    from slalom.evaluation.rows import Row
    from slalom.evaluation.run import Plan
    from slalom.evaluation.store import Store

EVALUATED = "slalom,slalom-local,slalom-fast,lime,kernel-shap,linear"
MEASURED = "UNI,WIDE,REM,deletion,insertion"


@click.command(short_help="Measure methods on many texts: quality and cost.")
@click.option("--data", required=True, metavar="FILE", help="Texts: .jsonl or .csv (.gz).")
@click.option(
    "--out", required=True, metavar="DIR", help="Folder for results; an interrupted run is resumed."
)
@MODEL
@click.option("--methods", default=EVALUATED, show_default=True, help="Names, or all.")
@click.option(
    "--queries",
    default="auto",
    show_default=True,
    metavar="N,M",
    help="Queries per text, one run for each.",
)
@click.option("--metrics", default=MEASURED, show_default=True, help="Names, or all.")
@click.option("--documents", type=COUNT, metavar="N", help="Only the first N texts.")
@TARGET
@UNITS
@TOO_LONG
@SEED
@DEVICE
@REVISION
@ABSENT
@click.option(
    "--jobs",
    type=COUNT,
    metavar="N",
    default=1,
    show_default=True,
    help="Documents to work on at the same time.",
)
def evaluate(
    data: str,
    out: str,
    model: str | None,
    methods: str,
    queries: str,
    metrics: str,
    documents: int | None,
    target: str | None,
    units: str | None,
    too_long: str,
    seed: int,
    device: str | None,
    revision: str | None,
    absent: str,
    jobs: int,
) -> None:
    """Measure methods on many texts: Parquet, Markdown and HTML tables with cost."""
    from slalom.classifiers.absent import REMOVE, with_absent
    from slalom.classifiers.load import load
    from slalom.evaluation.items import read_items
    from slalom.evaluation.run import Plan
    from slalom.evaluation.store import Store
    from slalom.metrics.table import CURVES, METRICS

    chosen, budgets = methods_typed(methods), _budgets(queries)
    wanted = names_typed(metrics, METRICS, "metric")
    path = Path(data)
    if not path.is_file():
        why = "it is a folder" if path.is_dir() else "there is no such file"
        raise FileError(f"cannot read {path}: {why}")
    if not out:
        raise click.UsageError("--out is empty: name a folder for the results")
    classifier = with_absent(load(model, device=device, revision=revision), absent)
    items, skipped = read_items(path, classifier.labels)
    plan = Plan(
        methods=chosen,
        budgets=budgets,
        metrics=tuple(METRICS[name] for name in wanted),
        curves=tuple(CURVES),
        target=one_class_typed(target, classifier.labels),
        units=units,
        too_long=too_long,
        seed=seed,
    )
    settings = _settings(classifier, path, plan)
    settings |= {} if absent == REMOVE else {"absent": absent}
    store = Store(Path(out), settings)
    _work(classifier, items[:documents], plan, store=store, jobs=jobs)
    _report(store, classifier, plan, data=path, skipped=skipped)


def _settings(classifier: "Classifier", data: Path, plan: "Plan") -> dict[str, Any]:
    """What rows of one table must have in common; more methods or documents may come later."""
    from slalom.classifiers.base import fingerprint_of

    return {
        "model": [classifier.name, fingerprint_of(classifier)],
        "data": hashlib.sha256(data.read_bytes()).hexdigest(),
        "metrics": [metric.name for metric in plan.metrics],
        "target": plan.target,
        "units": plan.units,
        "too_long": plan.too_long,
        "seed": plan.seed,
    }


def _work(
    classifier: "Classifier", items: "Sequence[Item]", plan: "Plan", *, store: "Store", jobs: int
) -> None:
    from slalom.evaluation.run import evaluate

    done = {row.key for row in store.rows if row.problem is None}  # what failed is tried again
    total = len(items) * len(plan.methods) * len(plan.budgets)
    try:
        keys = {(i.number, m.name, b) for i in items for m in plan.methods for b in plan.budgets}
        with progress_bar(total, len(keys & done)) as advance:
            for row in evaluate(classifier, items, plan, done=done, jobs=jobs):
                store.add(row)
                advance()
    except KeyboardInterrupt:
        kept = "1 row is" if len(store.rows) == 1 else f"{len(store.rows)} rows are"
        complain(f"{kept} kept: repeat the command to continue")
        raise


def _report(
    store: "Store",
    classifier: "Classifier",
    plan: "Plan",
    *,
    data: Path,
    skipped: "Sequence[SkippedLine]",
) -> None:
    from slalom.evaluation.items import summary_of
    from slalom.evaluation.report import Report
    from slalom.evaluation.rows import groups
    from slalom.evaluation.store import parquet

    places = {method.name: place for place, method in enumerate(plan.methods)}
    rows = sorted(
        store.rows,
        key=lambda row: (row.budget or 0, places.get(row.method, len(places)), row.document),
    )
    measured = [name for row in rows for name in row.values]
    metrics = tuple(dict.fromkeys([*(metric.name for metric in plan.metrics), *measured]))
    right = {row.document: row.correct for row in rows if row.correct is not None}
    facts = [f"{classifier.name}, {len({row.document for row in rows})} texts of {data.name}"]
    if right:
        facts.append(f"the classifier is right about {sum(right.values())} of {len(right)}")
    if len({len(members) for members in groups(rows).values()}) > 1:
        facts.append("not all methods were given the same texts: compare those that were")
    facts += summary_of(skipped)
    report = Report("Methods compared", tuple(rows), metrics, tuple(facts))
    text = report.markdown()
    store.write("report.md", text)
    store.write("report.html", report.html())
    try:
        store.write("table.parquet", parquet(rows, metrics))
    except MissingExtraError as problem:
        complain(f"no table.parquet: {problem}")
    for sentence in summary_of(skipped):
        complain(sentence)
    if sys.stdout.isatty() or "COLUMNS" in os.environ:
        _show_table(rows, metrics, store.folder)
    else:
        click.echo(text, nl=False)
    if all(row.problem is not None for row in rows):
        raise InputError(f"no text could be measured: {rows[0].problem}")


def _show_table(rows: "Sequence[Row]", metrics: Sequence[str], folder: Path) -> None:
    """As much of the report as a terminal has room for."""
    from rich.console import Console

    from slalom.evaluation.rows import table
    from slalom.views.side_by_side import fitted_table

    console = Console(highlight=False)
    console.print(fitted_table(*table(rows, metrics), console.width))
    console.print(f"All of it, with what the columns mean: {folder / 'report.html'}", style="dim")


def _budgets(typed: str) -> tuple[int | None, ...]:
    parts = [part.strip() for part in typed.split(",")]
    if not all(part == "auto" or (part.isdecimal() and int(part) > 0) for part in parts):
        raise click.UsageError(f"--queries {typed!r}: give numbers with commas between, or auto")
    return tuple(dict.fromkeys(None if part == "auto" else int(part) for part in parts))
