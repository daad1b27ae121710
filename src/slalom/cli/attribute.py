"""`slalom attribute`: the sources behind a language model's answer."""

import click

from slalom.cli import typed
from slalom.cli.model import CACHE, DEVICE, REVISION, TypedModel, pass_model


@click.command(short_help="Find the sources behind a language model's answer.")
@click.argument("files", nargs=-1, metavar="[FILE]...")
@click.option(
    "--model", "named", required=True, metavar="NAME", help="A language model's name or folder."
)
@typed.SOURCE
@typed.QUESTION
@typed.ANSWER
@typed.BY
@typed.QUERIES
@click.option(
    "--method", default="slalom-sources", show_default=True, help="One of `slalom methods`."
)
@click.option("--prompt", metavar="TEXT", help="A template with {sources} and {question}.")
@typed.SEED
@DEVICE
@REVISION
@click.option(
    "--base-url",
    metavar="URL",
    help="Query a completion server at this address (OpenAI-compatible).",
)
@CACHE
@typed.JSON
@typed.HTML
@pass_model
def attribute(
    model: TypedModel,
    files: tuple[str, ...],
    named: str,
    sources: tuple[str, ...],
    question: str,
    answer: str | None,
    by: str | None,
    queries: int | None,
    method: str,
    prompt: str | None,
    seed: int,
    base_url: str | None,
    json_file: str | None,
    html_file: str | None,
) -> None:
    """Find the sources behind a language model's answer.

    Each source is a text FILE, named as an argument or with --source.
    """
    written = typed.files(json_file, html_file)
    for name in (*sources, *files):
        typed.check_apart(
            {"--source": name, "--cache": model.cache, "--json": json_file, "--html": html_file}
        )
    given = typed.sources((*sources, *files))
    if model.cache is not None:
        typed.check_writable(model.cache)
    with typed.sentences_for_warnings():
        from slalom.classifiers.chat.completions import CompletionServer
        from slalom.language import attribute as language

        found = language.attribute(
            named if base_url is None else CompletionServer(named, base_url),
            given,
            question,
            answer,
            by=by,
            n_queries=queries,
            seed=seed,
            prompt=prompt,
            method=method,
            cache=model.cache,
            device=model.device,
            revision=model.revision,
        )
    typed.write_explanation(found, json_file, html_file)
    if typed.STANDARD not in written:
        from rich.text import Text

        from slalom.views.answer import lines

        console = typed.console_for_results()
        for line in lines(found, room=console.width):
            console.print(Text(line))
