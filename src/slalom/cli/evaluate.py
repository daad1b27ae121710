"""`slalom evaluate`: tables of the quality and cost of methods on many texts or answers."""

import os
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from slalom.cli import typed
from slalom.cli.model import ABSENT, DEVICE, MODEL, REVISION, WRITER, TypedModel, pass_model
from slalom.errors import FileError, InputError, MissingExtraError

if TYPE_CHECKING:
    from slalom.classifiers.base import Classifier
    from slalom.evaluation.items import SkippedLine
    from slalom.evaluation.rows import Key, Row, Store
    from slalom.evaluation.run import Plan
    from slalom.language.scoring import Writer

EVALUATED = "slalom,slalom-local,slalom-fast,lime,kernel-shap,linear"
MEASURED = "UNI,WIDE,REM,deletion,insertion"


@click.command(short_help="Measure methods on many texts: quality and cost.")
@click.option("--data", required=True, metavar="FILE", help="Texts: .jsonl, .csv or .parquet.")
@click.option(
    "--out", required=True, metavar="DIR", help="Folder for results; an interrupted run is resumed."
)
@MODEL
@WRITER
@click.option(
    "--methods", help=f"Names, or all.  [default: {EVALUATED}; for answers {typed.ANSWERS_BY}]"
)
@click.option(
    "--queries",
    default="auto",
    show_default=True,
    metavar="N,M",
    help="Queries per text; one run for each number.",
)
@click.option(
    "--metrics", help=f"Names, or all.  [default: {MEASURED}; for answers {typed.ANSWERS_MEASURED}]"
)
@click.option("--documents", type=typed.COUNT, metavar="N", help="Only the first N texts.")
@typed.TARGET
@typed.UNITS
@typed.TOO_LONG
@typed.SEED
@DEVICE
@REVISION
@ABSENT
@click.option(
    "--jobs",
    type=typed.COUNT,
    metavar="N",
    default=1,
    show_default=True,
    help="Documents to work on at the same time.",
)
@pass_model
def evaluate(
    model: TypedModel,
    data: str,
    out: str,
    methods: str | None,
    queries: str,
    metrics: str | None,
    documents: int | None,
    target: str | None,
    units: str | None,
    too_long: str,
    seed: int,
    jobs: int,
) -> None:
    """Measure the quality and cost of methods on many texts.

    The results are Parquet, Markdown and HTML tables.
    """
    from slalom.classifiers.base import REMOVE
    from slalom.evaluation.rows import Store
    from slalom.evaluation.run import Plan
    from slalom.metrics.table import CURVES, METRICS

    of_texts = {"--model": model.name, "--target": target, "--units": units}
    switched = {"--absent": model.absent != REMOVE, "--jobs": jobs > 1}
    typed.check_language_model(model.language_model, {}, {**of_texts, **switched})
    if methods is None:
        methods = typed.ANSWERS_BY if model.language_model else EVALUATED
    if metrics is None:
        metrics = typed.ANSWERS_MEASURED if model.language_model else MEASURED
    chosen, budgets = typed.methods(methods), _budgets(queries)
    wanted = typed.names(metrics, METRICS, "metric")
    path = Path(data)
    if not path.is_file():
        why = "it is a folder" if path.is_dir() else "there is no such file"
        raise FileError(f"cannot read {path}: {why}")
    if not out:
        raise click.UsageError("--out is empty: name a folder for the results")
    plan = Plan(
        methods=chosen,
        budgets=budgets,
        metrics=tuple(METRICS[name] for name in wanted),
        units=units,
        too_long=too_long,
        seed=seed,
    )
    if model.language_model is not None:
        work = _of_answers(model.writer(), path, plan, documents)
    else:
        classifier = model.classifier()
        one_class = typed.one_class(target, classifier.labels)
        plan = replace(plan, target=one_class, curves=tuple(CURVES))
        work = _of_texts(classifier, path, plan, documents=documents, jobs=jobs)
    settings = _settings(work, path, plan)
    settings |= {} if model.absent == REMOVE else {"absent": model.absent}
    store = Store(Path(out), settings)
    _done(work, plan, store)
    _report(store, work, plan, data=path)


@dataclass(frozen=True)
class Measurement:
    """What is measured: a model on the lines of a file."""

    model: "Classifier | Writer"
    numbers: tuple[int, ...]  # of the lines
    called: str  # "texts" or "answers"
    skipped: "Sequence[SkippedLine]"
    rows: "Callable[[Collection[Key]], Iterator[Row]]"  # all but the given ones


def _of_texts(
    classifier: "Classifier", path: Path, plan: "Plan", *, documents: int | None, jobs: int
) -> Measurement:
    from slalom.evaluation.items import read_items
    from slalom.evaluation.run import evaluate

    items, skipped = read_items(path, classifier.labels)
    items = items[:documents]
    rows = lambda done: evaluate(classifier, items, plan, done=done, jobs=jobs)  # noqa: E731
    return Measurement(classifier, tuple(item.number for item in items), "texts", skipped, rows)


def _of_answers(writer: "Writer", path: Path, plan: "Plan", documents: int | None) -> Measurement:
    from slalom.evaluation.items import read_answer_items
    from slalom.evaluation.run import evaluate_answers

    items, skipped = read_answer_items(path)
    items = items[:documents]
    rows = lambda done: evaluate_answers(writer, items, plan, done=done)  # noqa: E731
    return Measurement(writer, tuple(item.number for item in items), "answers", skipped, rows)


def _settings(work: Measurement, data: Path, plan: "Plan") -> dict[str, Any]:
    """What all rows of a table must share; methods and documents can be added later."""
    from slalom.records import digest_of

    return {
        "model": [work.model.name, getattr(work.model, "fingerprint", None)],
        "data": digest_of(data),
        "metrics": [metric.name for metric in plan.metrics],
        "target": plan.target,
        "units": plan.units,
        "too_long": plan.too_long,
        "seed": plan.seed,
    }


def _done(work: Measurement, plan: "Plan", store: "Store") -> None:
    from slalom.explainers.execution.progress import Wait, bar

    done = {row.key for row in store.rows if row.problem is None}  # what failed is tried again
    keys = {(n, m.name, b) for n in work.numbers for m in plan.methods for b in plan.budgets}
    n_done = len(keys & done)
    try:
        with bar(len(keys), Wait("measuring", "explanations", before=n_done)) as show:
            for number, row in enumerate(work.rows(done), n_done + 1):
                store.add(row)
                if show is not None:
                    show(number, len(keys))
    except KeyboardInterrupt:
        kept = "1 row is" if len(store.rows) == 1 else f"{len(store.rows)} rows are"
        typed.complain(f"{kept} kept: repeat the command to continue")
        raise


def _report(store: "Store", work: Measurement, plan: "Plan", *, data: Path) -> None:
    from slalom.evaluation.items import summary_of
    from slalom.evaluation.report import Report
    from slalom.evaluation.rows import groups, parquet

    places = {method.name: place for place, method in enumerate(plan.methods)}
    rows = sorted(
        store.rows,
        key=lambda row: (row.budget or 0, places.get(row.method, len(places)), row.document),
    )
    measured = [name for row in rows for name in row.values]
    metrics = tuple(dict.fromkeys([*(metric.name for metric in plan.metrics), *measured]))
    right = {row.document: row.correct for row in rows if row.correct is not None}
    facts = [
        f"{work.model.name}, {len({row.document for row in rows})} {work.called} of {data.name}"
    ]
    if right:
        facts.append(f"the classifier is right about {sum(right.values())} of {len(right)}")
    if len({len(members) for members in groups(rows).values()}) > 1:
        facts.append("not all methods were given the same texts: compare those that were")
    facts += summary_of(work.skipped)
    report = Report("Methods compared", tuple(rows), metrics, tuple(facts))
    text = report.markdown()
    store.write("report.md", text)
    store.write("report.html", report.html())
    try:
        store.write("table.parquet", parquet(rows, metrics))
    except MissingExtraError as problem:
        typed.complain(f"no table.parquet: {problem}")
    for sentence in summary_of(work.skipped):
        typed.complain(sentence)
    if sys.stdout.isatty() or "COLUMNS" in os.environ:
        _show_table(rows, metrics, store.folder)
    else:
        click.echo(text, nl=False)
    if all(row.problem is not None for row in rows):
        raise InputError(f"none of the {work.called} could be measured: {rows[0].problem}")


def _show_table(rows: "Sequence[Row]", metrics: Sequence[str], folder: Path) -> None:
    """As much of the report as the terminal has room for."""
    from rich.console import Console

    from slalom.evaluation.rows import table
    from slalom.views.side_by_side import fitted_table

    console = Console(highlight=False)
    console.print(fitted_table(*table(rows, metrics), console.width))
    place = folder / "report.html"
    console.print(f"The whole table, and what its columns mean: {place}", style="dim")


def _budgets(typed: str) -> tuple[int | None, ...]:
    parts = [part.strip() for part in typed.split(",")]
    if not all(part == "auto" or (part.isdecimal() and int(part) > 0) for part in parts):
        raise click.UsageError(f"--queries {typed!r}: give numbers with commas between, or auto")
    return tuple(dict.fromkeys(None if part == "auto" else int(part) for part in parts))
