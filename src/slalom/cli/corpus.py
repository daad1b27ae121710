"""`slalom corpus`: explain every row of a table, on one machine or many."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from slalom.cli import typed
from slalom.cli.model import MODEL, TypedModel, model_options, pass_model
from slalom.errors import InputError, SlalomError, counted

if TYPE_CHECKING:
    from slalom.corpus.explain import Dataset, Prepared
    from slalom.corpus.run import Summary
    from slalom.corpus.work import Recipe
    from slalom.explainers.execution.progress import Progress


class UnnamedContext(click.Context):
    """The context of the default sub-command, which help and hints leave unnamed."""

    @property
    def command_path(self) -> str:
        return super().command_path.removesuffix(" explain")


class UnnamedCommand(click.Command):
    context_class = UnnamedContext


class CorpusGroup(click.Group):
    """`report` and `diff` are sub-commands; anything else that comes first is an INPUT."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        named = bool(args) and args[0] in self.commands
        return super().parse_args(ctx, args if named else ["explain", *args])


@click.group(
    cls=CorpusGroup, short_help="Explain every row of large files; report and compare runs."
)
def corpus() -> None:
    """Explain every row of a table: JSON lines, CSV or Parquet in, Parquet out."""


@corpus.command(
    "explain",
    cls=UnnamedCommand,
    hidden=True,
    epilog="Also: slalom corpus report OUTPUT, slalom corpus diff OUTPUT OTHER.",
)
@click.argument("input")
@click.argument("output")
@click.argument("more", nargs=-1, metavar="")
@typed.TEXT_COLUMN
@click.option(
    "--id-column",
    metavar="NAME",
    help="Column that identifies rows.  [default: id, else the line number]",
)
@MODEL
@typed.METHOD
@click.option("--target", help="A label or its number.  [default: the last class]")
@typed.UNITS
@click.option("--queries", type=typed.COUNT, metavar="N", help="Use at most N queries per text.")
@typed.MAX_ERROR
@typed.REPEATS
@typed.SEED
@typed.TOO_LONG
@model_options
@click.option(
    "--engine",
    type=click.Choice(["local", "ray"]),
    default="local",
    show_default=True,
    help="Run in this process or on a Ray cluster.",
)
@click.option(
    "--workers",
    type=typed.COUNT,
    metavar="N",
    default=1,
    help="Number of model copies (engine ray).",
)
@click.option(
    "--rows-per-file",
    type=typed.COUNT,
    metavar="N",
    help="Approximate rows per Parquet file.  [default: at most 1000]",
)
@typed.DRY_RUN
@pass_model
def explain_corpus(
    model: TypedModel,
    input: str,
    output: str,
    more: tuple[str, ...],
    text_column: str,
    id_column: str | None,
    method: str,
    target: str | None,
    units: str | None,
    queries: int | None,
    max_error: float | None,
    repeats: int,
    seed: int,
    too_long: str,
    engine: str,
    workers: int,
    rows_per_file: int | None,
    dry_run: bool,
) -> None:
    """Explain every row of INPUT (a file, a folder, a pattern) into the folder OUTPUT.

    An interrupted run continues where it stopped when the command is repeated.
    """
    from slalom.corpus.explain import Dataset, engine_named, finish, is_gpu, prepare
    from slalom.corpus.plan import broken_lines
    from slalom.corpus.work import Recipe
    from slalom.explainers.methods import with_max_error

    if more:  # most likely a pattern without quotes, which the shell expanded
        raise click.UsageError(
            f"give one INPUT and one OUTPUT, not {2 + len(more)} names: for several files give "
            "their folder, or a pattern in quotes, such as 'data/*.csv'"
        )
    typed.check_foretold(max_error, dry_run=dry_run)
    chosen_method = with_max_error(method, max_error)
    recipe = Recipe(chosen_method, 0, queries, units, too_long, seed, repeats)
    chosen = engine_named(engine, model.classifier, workers, on_gpu=is_gpu(model.device))
    dataset = Dataset(input, Path(output), text_column, id_column, rows_per_file)
    with closing(chosen):
        prepared = prepare(model.classifier, dataset, recipe, target=target, engine=chosen)
        for sentence in broken_lines(prepared.files):
            typed.complain(sentence)
        if dry_run:
            click.echo(_cost(prepared, model))
        else:
            with _going_on(prepared), _bar(prepared) as show:
                summary = finish(prepared, chosen, show)
            _say(summary, prepared)


def _cost(prepared: "Prepared", model: TypedModel) -> str:
    from slalom.corpus.explain import cost_of

    work = prepared.work
    cost = cost_of(model.classifier(), work.recipe, work.layout, left=prepared.left)
    return f"{cost}, into {counted(len(prepared.left), 'file')}" if cost.n_sampled else str(cost)


def explain_table(
    dataset: "Dataset", recipe: "Recipe", model: TypedModel, *, target: str | None, dry_run: bool
) -> None:
    """One table into one Parquet file: `slalom explain --file x.csv --out scores.parquet`."""
    from slalom.classifiers.base import PREDICTED, names
    from slalom.corpus.explain import finish_file, prepare_file
    from slalom.corpus.plan import broken_lines
    from slalom.corpus.run import LocalEngine

    engine = LocalEngine(model.classifier)
    prepared = prepare_file(model.classifier, dataset, recipe, target=target, engine=engine)
    for sentence in broken_lines(prepared.files):
        typed.complain(sentence)
    if dry_run:
        click.echo(_cost(prepared, model))
        return
    with _going_on(prepared), _bar(prepared) as show:
        summary = finish_file(prepared, dataset.output, engine, show)
    if summary is None:
        click.echo(f"{dataset.output} already exists, with the same settings")
    else:
        _say(summary, prepared)
        explained = prepared.settings["target"]
        own = names(explained, PREDICTED, prepared.settings["labels"])
        click.echo(
            "Each row explains its own predicted class."
            if own
            else f"Every row explains the class {explained!r}; --target predicted explains each "
            "row's own predicted class."
        )


def _bar(prepared: "Prepared") -> "AbstractContextManager[Progress | None]":
    """A bar with rows done, their rate and the time left, if a person is watching."""
    from slalom.explainers.execution.progress import Wait, bar

    return bar(prepared.n_rows, Wait("explaining", "texts", before=prepared.n_done))


@contextmanager
def _going_on(prepared: "Prepared") -> Iterator[None]:
    """If anything ends the work early, say how much was kept."""
    try:
        yield
    except (KeyboardInterrupt, SlalomError):
        if done := prepared.n_done:
            texts, are = counted(prepared.n_rows, "text"), "is" if done == 1 else "are"
            typed.complain(
                f"{done} of {texts} {are} explained and kept: repeat the command to continue"
            )
        raise


def _say(summary: "Summary", prepared: "Prepared") -> None:
    """One line about what is in the folder now; broken lines were named before."""
    first = typed.in_typed_words(summary.first_problem or "")
    if summary.n_failed == summary.n_rows:
        raise InputError(
            f"none of {counted(summary.n_rows, 'text')} could be explained; the first: {first}"
        )
    n_broken = sum(file.n_broken for file in prepared.files)
    if summary.n_failed > n_broken:
        failed = counted(summary.n_failed - n_broken, "more text" if n_broken else "text")
        why = "the rows say why" if n_broken else f"the first: {first}"
        typed.complain(f"{failed} could not be explained; {why}")
    rows = counted(summary.n_rows, "text")
    explained = f"{summary.n_rows - summary.n_failed} of " if summary.n_failed else ""
    click.echo(
        f"{explained}{rows} explained in {summary.folder}: "
        f"{counted(summary.n_queries, 'query')}, "
        f"{counted(summary.n_tokens, 'token')}, {summary.seconds:.1f} s"
    )


@corpus.command("report")
@click.argument("output")
@click.option("--by", metavar="COLUMN", help="Compare groups of rows by this input column.")
@click.option(
    "--html", "file", metavar="FILE", help="Where to write the page.  [default: OUTPUT/report.html]"
)
def report_corpus(output: str, by: str | None, file: str | None) -> None:
    """Write a page about a finished run: what its words do, with documents to look at."""
    from slalom.corpus.folder import RunFolder
    from slalom.corpus.report import report

    page = report(RunFolder(Path(output)), by)
    _write_page(file or str(Path(output) / "report.html"), page)


def _write_page(place: str, page: str) -> None:
    typed.write(place, page)
    if place != typed.STANDARD:
        click.echo(f"Written: {place}")


@corpus.command("diff")
@click.argument("first", metavar="OUTPUT")
@click.argument("second", metavar="OTHER")
@click.option("--html", "file", metavar="FILE", help="Write a page; - for standard output.")
def diff_corpora(first: str, second: str, file: str | None) -> None:
    """Compare two runs: two models on one corpus, or one model on two."""
    from slalom.corpus.diff import diff
    from slalom.corpus.folder import RunFolder
    from slalom.views.side_by_side import fitted_table

    found = diff(RunFolder(Path(first)), RunFolder(Path(second)))
    if file is not None:
        _write_page(file, found.html())
        return
    console = typed.console_for_results()
    for fact in found.facts():
        console.print(fact, markup=False)
    if found.words:
        console.print(fitted_table(*found.word_table(), console.width))
    if found.moved:
        console.print(fitted_table(*found.document_table(), console.width))
