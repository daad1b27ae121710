"""`slalom explain`: one text by one method, in the terminal, as JSON or as a page."""

import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from slalom.cli import typed
from slalom.cli.corpus import explain_table
from slalom.cli.model import MODEL, TypedModel, model_options, pass_model
from slalom.errors import InputError, SlalomError, UnknownNameError, counted
from slalom.files import write_whole

if TYPE_CHECKING:
    from slalom.classifiers.base import Classifier
    from slalom.document import Document
    from slalom.explainers.base import Explainer, Request
    from slalom.explanation import Explanation
    from slalom.views.terminal import TerminalView

Draw = Callable[["Explanation", Sequence[str]], None]
TABLES = (".jsonl", ".csv", ".parquet")
OTHER_FORMATS = (".jsonl", ".csv", ".json", ".tsv", ".txt", ".html", ".gz", ".xlsx")
MAX_WIDTH = 100  # columns; longer lines are hard to read


@click.command(short_help="Explain the prediction for a text, or for each row of a table.")
@click.argument("text", required=False)
@click.option(
    "--file", "file", metavar="FILE", help="A file with one text, or a table with one text per row."
)
@typed.TEXT_COLUMN
@click.option(
    "--out", metavar="FILE", help="Parquet file for the explanations of a table, one per row."
)
@click.option("--words", metavar="FILE", help="Also write one row per word, as .csv or .parquet.")
@MODEL
@typed.METHOD
@click.option(
    "--target",
    help="A label, its number, or “all”; for a table also “predicted”, each row's own class.  "
    "[default: the predicted class; for a table the last class]",
)
@click.option(
    "--units",
    type=click.Choice(["token", "word", "phrase", "sentence"]),
    help="What gets a score; a phrase joins neighbouring words that act as one.  "
    "[default: word, or coarser for a long text]",
)
@typed.QUERIES
@typed.MAX_ERROR
@typed.REPEATS
@typed.SEED
@click.option(
    "--too-long", type=typed.WAYS, help=f"{typed.LONGER}  [default: windows; for a table error]"
)
@model_options
@typed.DRY_RUN
@click.option("--scores", metavar="A,B", help="Scores to show; the first colours the text.")
@click.option(
    "--scale",
    type=click.Choice(["log-odds", "probability"]),
    default="log-odds",
    show_default=True,
    help="Show scores as log-odds, or as changes of the predicted probability.",
)
@click.option(
    "--pairs",
    type=typed.COUNT,
    metavar="K",
    help="Also find the K strongest pairs of words that act together.",
)
@click.option(
    "--counterfactual", is_flag=True, help="Also find words whose removal changes the prediction."
)
@typed.JSON
@typed.HTML
@click.option("--plot", "plot_file", metavar="FILE", help="Draw bars as .png, .svg or .pdf.")
@click.option("-v", "--verbose", is_flag=True, help="Also show how the fit was judged.")
@pass_model
def explain(
    model: TypedModel,
    text: str | None,
    file: str | None,
    text_column: str,
    out: str | None,
    words: str | None,
    method: str,
    target: str | None,
    units: str | None,
    queries: int | None,
    max_error: float | None,
    repeats: int,
    seed: int,
    too_long: str | None,
    dry_run: bool,
    scores: str | None,
    scale: str,
    pairs: int | None,
    counterfactual: bool,
    json_file: str | None,
    html_file: str | None,
    plot_file: str | None,
    verbose: bool,
) -> None:
    """Explain a classifier's prediction for TEXT (if omitted, the text is read from a pipe)."""
    typed.check_foretold(max_error, dry_run=dry_run)
    typed.check_apart(
        {
            "--file": file, "--out": out, "--words": words,
            "--json": json_file, "--html": html_file, "--plot": plot_file, "--cache": model.cache,
        }
    )  # fmt: skip
    files = typed.files(json_file, html_file)
    picture = None if plot_file is None else picture_typed(plot_file)
    typed.check_words(words)
    if _is_table(text, file, out, needs_out=not dry_run):
        assert file is not None
        if files or plot_file or scores or pairs or counterfactual:
            raise click.UsageError(f"{file} is a table: its results go to --out")
        if units == "phrase":
            raise click.UsageError(f"{file} is a table: --units phrase is for one text at a time")
        from slalom.corpus.explain import Dataset
        from slalom.corpus.work import Recipe
        from slalom.explainers.methods import with_max_error

        chosen = with_max_error(method, max_error)
        recipe = Recipe(chosen, 0, queries, units, too_long or "error", seed, repeats)
        dataset = Dataset(file, Path(out or f"{file}.parquet"), text_column)
        explain_table(dataset, recipe, model, target=target, dry_run=dry_run)
        if words is not None and not dry_run:
            from slalom.tables import write_words

            write_words(dataset.output, Path(words))
        return
    content, too_long = typed.text(text, file), too_long or "windows"
    if text is not None and typed.is_file_name(text):
        typed.complain(
            f"{text} is the name of a file, but was explained as a text: --file {text} reads it"
        )
    columns = _columns(scores)
    with typed.sentences_for_warnings():
        from slalom.explainers.base import Request
        from slalom.explainers.methods import by_phrases, explain, with_max_error
        from slalom.explainers.splitting import document_of
        from slalom.views.reading import checked_names

        chosen = with_max_error(method, max_error)
        with _status("loading the model"):
            classifier = model.classifier()
        if dry_run:
            rehearsed, cut = by_phrases(chosen, units, too_long)
            document = document_of(classifier, content, cut, too_long=too_long)
            request = Request(n_queries=queries, seed=seed, repeats=repeats)
            click.echo(_cost(rehearsed, classifier, document, request=request))
            return
        explanation = explain(
            classifier,
            content,
            method=chosen,
            target=typed.target(target, classifier.labels),
            n_queries=queries,
            units=units,
            too_long=too_long,
            seed=seed,
            progress=True,
            repeats=repeats,
        )
        turned, problem = None, None
        shown: tuple[str, ...] = ()
        try:
            shown = checked_names(explanation, columns)
            if pairs is not None:
                explanation = explanation.with_pairs(pairs, classifier)
            if counterfactual:
                turned = explanation.counterfactual(classifier).sentence
        except SlalomError as failed:  # reported after the explanation, which still holds
            problem = failed
    typed.write_explanation(explanation, json_file, html_file, scale)
    if words is not None:
        from slalom.tables import write_unit_table

        write_unit_table(explanation, Path(words))
    if picture is not None:
        picture(explanation, shown)
    if typed.STANDARD not in files:
        from slalom.views.terminal import TerminalView

        view = TerminalView(explanation, shown, details=verbose, scale=scale)
        _show(view, turned)
    elif turned is not None:
        click.echo(turned, err=True)
    if problem is not None:
        raise problem


def _is_table(
    text: str | None, file: str | None, out: str | None, *, needs_out: bool = True
) -> bool:
    """Whether --file holds one text per row, by its name."""
    named = "" if file is None else file.lower().removesuffix(".gz")
    if text is None and named.endswith(TABLES):
        if out is None and needs_out:
            raise click.UsageError(
                f"{file} is a table: name a file for its explanations with --out scores.parquet, "
                "or pipe it in to explain it as one text"
            )
        if out is not None and out.lower().endswith(OTHER_FORMATS):
            raise click.UsageError(
                f"--out {out} is written as Parquet: give it a name that ends in .parquet; "
                "--words FILE.csv also writes one row per word"
            )
        return True
    if out is not None:
        raise click.UsageError(f"--out is for tables: give one by --file ({', '.join(TABLES)})")
    return False


def _cost(
    method: "Explainer", classifier: "Classifier", document: "Document", *, request: "Request"
) -> str:
    from slalom.explainers.dry_run import dry_run

    cost = dry_run(method, classifier, document, request=request)
    if cost.n_requests is None:
        queries, tokens = counted(cost.n_queries, "query"), counted(cost.n_tokens, "token")
        return f"{queries} and {tokens} for {classifier.name}"
    return (
        f"{counted(cost.n_queries, 'query')}: "
        f"at most {counted(cost.n_requests, 'request')} to {classifier.name}, "
        f"about {counted(cost.n_tokens, 'token')}"
    )


def _columns(scores: str | None) -> tuple[str, ...]:
    if scores is None:
        return ()
    from slalom.tables import SCORES

    names = tuple(name.strip() for name in scores.split(","))
    for name in names:
        if name not in SCORES:
            raise UnknownNameError("score", name, SCORES)
    return names


def _show(view: "TerminalView", turned: str | None) -> None:
    from rich.text import Text

    console = typed.console_for_results()
    parts = [view, *([] if turned is None else [Text("\n" + turned)])]
    console.print(*parts, sep="\n", width=min(console.width, MAX_WIDTH))


@contextmanager
def _status(doing: str) -> Iterator[None]:
    """A line on standard error about what is being done, if a person is watching."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(f"{doing} …"):
        yield


def picture_typed(name: str) -> Draw:
    """A function that draws bars of the first score into a .png, .svg or .pdf file.

    Before the work it is checked whether the picture can be drawn.
    """
    kind = Path(name).suffix.lstrip(".").lower()
    if kind not in ("png", "svg", "pdf"):
        raise InputError(f"cannot draw {name}: give a file that ends in .png, .svg or .pdf")
    typed.check_writable(name)

    def draw(explanation: "Explanation", scores: Sequence[str]) -> None:
        from slalom.views.plots import picture, plot_units

        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            figure = plot_units(explanation, scores[0] if scores else None)
            drawn = picture(figure, kind)
        write_whole(name, drawn)
        _say(name, caught)

    return draw


def _say(name: str, caught: "Sequence[warnings.WarningMessage]") -> None:
    """One sentence for all characters that no font has; other warnings as they are."""
    lacking = {str(one.message) for one in caught if str(one.message).startswith("Glyph ")}
    if lacking:
        signs = counted(len(lacking), "character")
        typed.complain(
            f"matplotlib has no font for {signs} of the text: {name} shows boxes instead"
        )
    for one in caught:
        if str(one.message) not in lacking:
            warnings.showwarning(one.message, one.category, one.filename, one.lineno)
