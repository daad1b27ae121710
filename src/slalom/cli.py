"""The command line: reads what was typed, calls the library, prints what it says.

Wrong use ends with one sentence on standard error and status 2; nothing is imported before it
is needed, so that `slalom --help` answers at once.
"""

import os
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

import click

from slalom.cli_evaluate import compare, evaluate
from slalom.cli_typed import (
    STANDARD,
    at_least,
    check_writable,
    complain,
    target_typed,
    text_typed,
    write,
)
from slalom.errors import SlalomError, SlalomWarning, UnknownNameError

if TYPE_CHECKING:
    from slalom.classifiers.base import Classifier
    from slalom.document import Document
    from slalom.explainers.base import Explainer
    from slalom.explanation import Explanation

SCORES = ("value", "importance", "shapley", "removal", "gradient", "linearised", "score")
WIDEST = 100  # columns; longer lines are hard to read
WRONG_USE, INTERRUPTED, PIPE_CLOSED = 2, 130, 1


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """The `slalom` command."""
    try:
        status = commands.main(arguments, prog_name="slalom", standalone_mode=False)
        sys.stdout.flush()
    except click.UsageError as problem:
        asked = f" (see  {problem.ctx.command_path} --help)" if problem.ctx else ""
        complain(problem.format_message().rstrip(".") + asked)
        status = WRONG_USE
    except (click.ClickException, SlalomError) as problem:
        complain(problem)
        status = WRONG_USE
    except (click.Abort, KeyboardInterrupt):
        status = INTERRUPTED
    except BrokenPipeError:  # the reader has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = PIPE_CLOSED
    sys.exit(status)


@click.group(
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(package_name="slalom-xai", message="%(prog)s %(version)s")
@click.pass_context
def commands(context: click.Context) -> None:
    """What every word says to a text classifier, and how loudly it says it."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


@commands.command()
@click.argument("text", required=False)
@click.option("--file", "file", metavar="FILE", help="Read the text from a file.")
@click.option(
    "--model", metavar="NAME", help="A model's name or folder.  [default: the bundled one]"
)
@click.option("--method", default="slalom", show_default=True, help="One of `slalom methods`.")
@click.option("--target", help="A label, its number, or all.  [default: the predicted class]")
@click.option(
    "--units", type=click.Choice(["token", "word", "sentence"]), help="What gets a score."
)
@click.option("--queries", type=at_least(1), metavar="N", help="Ask at most N questions.")
@click.option("--seed", type=at_least(0), metavar="N", default=0, show_default=True)
@click.option(
    "--too-long",
    type=click.Choice(["error", "truncate", "windows"]),
    default="error",
    show_default=True,
    help="What to do with a text longer than the model reads.",
)
@click.option("--device", help="Where the model runs, such as cpu or cuda.")
@click.option("--base-url", metavar="URL", help="Ask a chat model there, in OpenAI's protocol.")
@click.option("--labels", metavar="A=X,B=Y", help="What the model answers for each label.")
@click.option("--prompt", metavar="TEXT", help="What the model is asked; {text} is the text.")
@click.option("--samples", type=at_least(1), metavar="N", help="Count N answers each.")
@click.option("--cache", metavar="FILE", help="Keep a chat model's replies, pay for none twice.")
@click.option("--dry-run", is_flag=True, help="Say what it would cost, and ask nothing.")
@click.option("--scores", metavar="A,B", help="Columns to show; the first colours the text.")
@click.option(
    "--json", "json_file", metavar="FILE", help="Write the explanation; - for standard output."
)
@click.option(
    "--html", "html_file", metavar="FILE", help="Write a page for the browser; - likewise."
)
def explain(
    text: str | None,
    file: str | None,
    model: str | None,
    method: str,
    target: str | None,
    units: str | None,
    queries: int | None,
    seed: int,
    too_long: str,
    device: str | None,
    base_url: str | None,
    labels: str | None,
    prompt: str | None,
    samples: int | None,
    cache: str | None,
    dry_run: bool,
    scores: str | None,
    json_file: str | None,
    html_file: str | None,
) -> None:
    """Explain what a classifier says of TEXT (- reads it from standard input)."""
    files = [name for name in (json_file, html_file) if name is not None]
    if files.count(STANDARD) > 1:
        raise click.UsageError("only one of --json and --html can go to standard output")
    content = text_typed(text, file)
    for name in files:
        check_writable(name)
    columns = _columns(scores)
    with _sentences_for_warnings(), _status("loading the model") as say:
        from slalom.explainers.methods import explain, method_named
        from slalom.views.reading import checked_names

        chosen = method_named(method)
        typed = _Model(model, device, _labels(labels), prompt, base_url, samples, cache)
        classifier = typed.classifier()
        if dry_run:
            document = classifier.split(content, units, too_long=too_long)
            click.echo(_cost(chosen, classifier, document, n_queries=queries, seed=seed))
            return
        say("asking the classifier")
        explanation = explain(
            classifier,
            content,
            method=chosen,
            target=target_typed(target, classifier.labels),
            n_queries=queries,
            units=units,
            too_long=too_long,
            seed=seed,
        )
        checked_names(explanation, columns)
    if json_file is not None:
        write(json_file, _json(explanation))
    if html_file is not None:
        write(html_file, _html(explanation))
    if STANDARD not in files:
        _show(explanation, columns)


@commands.command()
def methods() -> None:
    """List the methods that explain can use."""
    from slalom.explainers.methods import METHODS

    table = click.HelpFormatter(width=80)
    table.write_dl([(name, method.summary) for name, method in METHODS.items()])
    click.echo(table.getvalue(), nl=False)


commands.add_command(compare)
commands.add_command(evaluate)


@dataclass(frozen=True)
class _Model:
    """What was typed about the model."""

    name: str | None
    device: str | None
    labels: dict[str, str] | None
    prompt: str | None
    base_url: str | None
    samples: int | None
    cache: str | None

    def classifier(self) -> "Classifier":
        """A model that runs here, or one behind an address."""
        if self.base_url is not None:
            return self._at(self.base_url)
        if self.samples is not None or self.cache is not None:
            raise click.UsageError("--samples and --cache are for chat models: give --base-url")
        from slalom.classifiers.load import load

        return load(self.name, device=self.device, labels=self.labels, prompt=self.prompt)

    def _at(self, url: str) -> "Classifier":
        from slalom.classifiers.chat import ChatClassifier

        if self.name is None or self.labels is None:
            raise click.UsageError("--base-url needs --model and --labels, such as neg=0,pos=1")
        if self.device is not None:
            raise click.UsageError("--device is for models that run here, not at --base-url")
        return ChatClassifier(
            self.name,
            self.labels,
            url,
            prompt=self.prompt,
            n_samples=self.samples,
            cache=self.cache,
        )


def _labels(typed: str | None) -> dict[str, str] | None:
    """neg=0,pos=1: labels and what the model answers for them; an answer may be the label."""
    if typed is None:
        return None
    pairs = [part.partition("=") for part in typed.split(",")]
    labels = {label.strip(): answer if sign else label for label, sign, answer in pairs}
    if len(labels) < len(pairs) or "" in labels:
        raise click.UsageError(f"--labels {typed!r} is not of the form A=X,B=Y with two names")
    return labels


def _cost(
    method: "Explainer",
    classifier: "Classifier",
    document: "Document",
    *,
    n_queries: int | None,
    seed: int,
) -> str:
    from slalom.explainers.dry_run import dry_run

    cost = dry_run(method, classifier, document, n_queries=n_queries, seed=seed)
    if cost.n_requests is None:
        return f"{cost.n_queries} queries, {cost.n_tokens} tokens through {classifier.name}"
    return (
        f"{cost.n_queries} queries: at most {cost.n_requests} requests to {classifier.name}, "
        f"about {cost.n_tokens} tokens"
    )


def _columns(scores: str | None) -> tuple[str, ...]:
    names = () if scores is None else tuple(name.strip() for name in scores.split(","))
    for name in names:
        if name not in SCORES:
            raise UnknownNameError("score", name, SCORES)
    return names


def _json(explanation: "Explanation") -> str:
    import json

    return json.dumps(explanation.to_json(), ensure_ascii=False, allow_nan=False) + "\n"


def _html(explanation: "Explanation") -> str:
    from slalom.views.html import page

    return page(explanation)


def _show(explanation: "Explanation", columns: tuple[str, ...]) -> None:
    from rich.console import Console

    from slalom.views.terminal import TerminalView

    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")  # a terminal without emoji still gets the rest
    console = Console(highlight=False)
    console.print(TerminalView(explanation, columns), width=min(console.width, WIDEST))


@contextmanager
def _sentences_for_warnings() -> Iterator[None]:
    """Say each of slalom's warnings as a sentence, after the work."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", SlalomWarning)
        yield
    for warning in caught:
        if issubclass(warning.category, SlalomWarning):
            complain(warning.message)
        else:
            warnings.showwarning(
                warning.message, warning.category, warning.filename, warning.lineno
            )


@contextmanager
def _status(first: str) -> Iterator[Callable[[str], None]]:
    """A line on standard error about what is going on, if a person is watching."""
    if not sys.stderr.isatty():
        yield lambda now: None
        return
    from rich.console import Console

    with Console(stderr=True).status(f"{first} …") as status:
        yield lambda now: status.update(f"{now} …")
