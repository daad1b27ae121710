"""`slalom attribute`: the sources behind a language model's answer."""

import json

import click

from slalom.cli.typed import (
    ANSWER,
    BY,
    CACHE,
    DEVICE,
    HTML,
    JSON,
    QUERIES,
    QUESTION,
    REVISION,
    SEED,
    SOURCE,
    STANDARD,
    check_apart,
    check_writable,
    console_for_results,
    files_typed,
    sentences_for_warnings,
    sources_typed,
    write,
)


@click.command(short_help="Find the sources behind a language model's answer.")
@click.argument("files", nargs=-1, metavar="[FILE]...")
@click.option("--model", required=True, metavar="NAME", help="A language model's name or folder.")
@SOURCE
@QUESTION
@ANSWER
@BY
@QUERIES
@click.option(
    "--method", default="slalom-sources", show_default=True, help="One of `slalom methods`."
)
@click.option("--prompt", metavar="TEXT", help="A template with {sources} and {question}.")
@SEED
@DEVICE
@REVISION
@click.option(
    "--base-url",
    metavar="URL",
    help="Query a completion server at this address (OpenAI-compatible).",
)
@CACHE
@JSON
@HTML
def attribute(
    files: tuple[str, ...],
    model: str,
    sources: tuple[str, ...],
    question: str,
    answer: str | None,
    by: str | None,
    queries: int | None,
    method: str,
    prompt: str | None,
    seed: int,
    device: str | None,
    revision: str | None,
    base_url: str | None,
    cache: str | None,
    json_file: str | None,
    html_file: str | None,
) -> None:
    """Find the sources behind a language model's answer.

    Each source is a text FILE, named as an argument or with --source.
    """
    written = files_typed(json_file, html_file)
    for name in (*sources, *files):
        check_apart({"--source": name, "--cache": cache, "--json": json_file, "--html": html_file})
    given = sources_typed((*sources, *files))
    if cache is not None:
        check_writable(cache)
    with sentences_for_warnings():
        from slalom.classifiers.chat.completions import CompletionServer
        from slalom.language import attribute as language

        found = language.attribute(
            model if base_url is None else CompletionServer(model, base_url),
            given,
            question,
            answer,
            by=by,
            n_queries=queries,
            seed=seed,
            prompt=prompt,
            method=method,
            cache=cache,
            device=device,
            revision=revision,
        )
    if json_file is not None:
        write(json_file, json.dumps(found.to_json(), ensure_ascii=False) + "\n")
    if html_file is not None:
        write(html_file, found.to_html() or "")
    if STANDARD not in written:
        from rich.text import Text

        from slalom.views.answer import lines

        console = console_for_results()
        for line in lines(found, room=console.width):
            console.print(Text(line))
