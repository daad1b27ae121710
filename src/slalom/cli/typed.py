"""What all commands share: options, targets, texts, files, complaints.

Knows what can be typed on a command line, and nothing of what is done with it.
"""

import codecs
import json
import os
import re
import sys
import tempfile
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from slalom.errors import (
    FileError,
    InputError,
    Setting,
    SlalomError,
    SlalomWarning,
    UnknownNameError,
)
from slalom.files import is_device, resolved, unless_broken, write_whole

if TYPE_CHECKING:
    from rich.console import Console

    from slalom.explainers.base import Explainer
    from slalom.explanation import Explanation

STANDARD = "-"  # standard input or output
OPTIONS = {"n_queries": "--queries", "n_samples": "--samples"}  # named differently in the library
PLAINER = {  # for terminals and pipes whose encoding lacks a character
    **dict.fromkeys("−–—", "-"),
    **dict.fromkeys("“”", '"'),
    **{"’": "'", "±": "+-", "×": "x", "²": "2", "·": "|", "…": "...", "→": "->", "←": "<-"},
    **{"≤": "<=", "≥": ">=", "\u202f": " "},
}
STORED = re.compile(  # settings in sentences that the library stored
    r'\b(too_long|units|cache|n_samples)="?(\w+)"?|\b(n_queries|base_url|max_error|repeats)\b'
)
MAX_BYTES = 2**24  # of a text or a source
MAX_NAME = 1000  # characters; a longer text is no file name
WIDE = 1000  # columns of what is not a terminal
COUNT = click.IntRange(min=1)
METHOD = click.option(
    "--method", default="slalom", show_default=True, help="One of `slalom methods`."
)
MAX_ERROR = click.option(
    "--max-error",
    type=float,
    metavar="E",
    help="Query until the standard error of every Shapley value is at most E.",
)
REPEATS = click.option(
    "--repeats",
    type=COUNT,
    default=1,
    metavar="K",
    help="Repeat every query K times and average, for a classifier whose answers vary.",
)
DRY_RUN = click.option(
    "--dry-run", is_flag=True, help="Estimate the cost without running the model."
)
TEXT_COLUMN = click.option(
    "--text-column", default="text", show_default=True, help="The column that holds the texts."
)
ANSWERS_BY = "slalom-sources,context-cite,kernel-shap,leave-one-out"
ANSWERS_MEASURED = "LDS,top-3 drop"
SOURCE = click.option(
    "--source",
    "sources",
    multiple=True,
    metavar="FILE",
    help="A text file; repeat the option for several. A single one is cut into sentences.",
)
QUESTION = click.option(
    "--question", default="", help="The question for the model.  [default: a request for a summary]"
)
ANSWER = click.option("--answer", help="The answer to explain.  [default: what the model says]")
BY = click.option(
    "--by",
    type=click.Choice(["sentence", "paragraph", "word"]),
    help="Cut every document into smaller sources.",
)
QUERIES = click.option("--queries", type=COUNT, metavar="N", help="Use at most N queries.")
JSON = click.option(
    "--json", "json_file", metavar="FILE", help="Write the explanation; - for standard output."
)
HTML = click.option(
    "--html",
    "html_file",
    metavar="FILE",
    help="Write a page for the browser; - for standard output.",
)
SEED = click.option(
    "--seed",
    type=click.IntRange(min=0),
    metavar="N",
    default=0,
    show_default=True,
    help="Seed of the random queries; the same seed gives the same numbers.",
)
TARGET = click.option("--target", help="A label or its number.  [default: the predicted class]")
WAYS = click.Choice(["error", "truncate", "windows"])
LONGER = "What to do with a text longer than the model can read."
TOO_LONG = click.option("--too-long", type=WAYS, default="error", show_default=True, help=LONGER)
TOO_LONG_ALONE = click.option(  # one text: a slow answer is better than none
    "--too-long", type=WAYS, default="windows", show_default=True, help=LONGER
)
UNITS = click.option(
    "--units",
    type=click.Choice(["token", "word", "sentence"]),
    help="What gets a score.  [default: word]",
)


def complain(sentence: object) -> None:
    """One line on standard error, with parameters named as options."""
    message = sentence.message(as_typed) if isinstance(sentence, SlalomError) else str(sentence)
    if not message.isprintable():
        from slalom.document import visible

        message = visible(message)
    click.echo(f"slalom: {message}", err=True)


def write_what_fits(*streams: Any) -> None:
    """Replace characters that a stream cannot encode by plainer ones: no minus may be lost."""
    codecs.register_error("slalom", _plainer)
    for stream in streams:
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="slalom")


def _plainer(problem: UnicodeError) -> tuple[str, int]:
    if not isinstance(problem, UnicodeEncodeError):
        raise problem
    missing = problem.object[problem.start : problem.end]
    return "".join(PLAINER.get(sign, "?") for sign in missing), problem.end


def as_typed(setting: Setting) -> str:
    """A parameter of the library as the option that sets it."""
    option = OPTIONS.get(setting.name, "--" + setting.name.replace("_", "-"))
    return option if setting.value is None else f"{option} {setting.value}"


def in_typed_words(sentence: str) -> str:
    """A sentence that the library stored, with its parameters named as options."""
    return STORED.sub(lambda found: as_typed(Setting(found[1] or found[3], found[2])), sentence)


def target(typed: str | None, labels: Sequence[str]) -> str | int | None:
    """A number is an index, unless it is also a label."""
    if typed is not None and typed not in labels and typed.isdecimal():
        return int(typed)
    return typed


def text(typed: str | None, file: str | None) -> str:
    """The text as it is, without the newline at the end of a file."""
    if typed not in (None, STANDARD) and file is None:
        return _decoded(str(typed).encode("utf-8", "surrogateescape"))
    content = _file_bytes(Path(file)) if file is not None and typed is None else _piped(typed, file)
    return re.sub(r"\r?\n\Z", "", _decoded(content, "the text" if file is None else file))


def sources(names: Sequence[str]) -> str | list[tuple[str, str]]:
    """One text, or a document for each of several files."""
    if not names:
        raise InputError("there are no sources: give a text file for each, with --source")
    texts = [(Path(name).name, text(None, name)) for name in names]
    return texts[0][1] if len(texts) == 1 else texts


def _piped(text: str | None, file: str | None) -> bytes:
    """Piped input needs no -, but must not be empty."""
    if text == STANDARD and file is None:
        return _bytes_of_text(sys.stdin.buffer)
    piped = b"" if text or file or sys.stdin.isatty() else _bytes_of_text(sys.stdin.buffer)
    if not piped:
        raise click.UsageError("give one text: as an argument, through a pipe, or by --file")
    return piped


def _decoded(content: bytes, name: str = "the text") -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        raise InputError(
            f"{name} is not UTF-8 (byte {problem.start}): convert it, for example with iconv"
        ) from problem


def _file_bytes(path: Path) -> bytes:
    with unless_broken(f"cannot read {path}"), path.open("rb") as file:
        return _bytes_of_text(file)


def _bytes_of_text(file: IO[bytes]) -> bytes:
    """All of it, unless there is more than of any text; a device may have no end."""
    content = file.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise InputError(f"the text has more than {MAX_BYTES} bytes: give a part of it")
    return content


def files(json_file: str | None, html_file: str | None) -> list[str]:
    """Where results go; only one of them can be standard output."""
    named = [name for name in (json_file, html_file) if name is not None]
    if named.count(STANDARD) > 1:
        raise click.UsageError("only one of --json and --html can go to standard output")
    check_apart({"--json": json_file, "--html": html_file})
    for name in named:
        if Path(name).suffix.lower() in (".png", ".svg", ".pdf"):
            raise click.UsageError(
                f"{name} is a picture, which --json and --html do not write (--plot does)"
            )
        check_writable(name)
    return named


def check_apart(files: Mapping[str, str | None]) -> None:
    """No option may write a file that another one reads or writes."""
    options: dict[Path, str] = {}
    for option, name in files.items():
        if name is None or name == STANDARD or is_device(place := resolved(name)):
            continue
        if place in options:
            raise click.UsageError(
                f"{options[place]} and {option} name the same file: give each its own"
            )
        options[place] = option


def check_foretold(max_error: float | None, *, dry_run: bool) -> None:
    if dry_run and max_error is not None:
        raise click.UsageError(
            "a dry run cannot estimate how many queries --max-error needs, which shows only while "
            "running: limit them with --queries"
        )


def check_writable(name: str) -> None:
    """Fail before the work, not after it, if the result cannot be written."""
    path = Path(name)
    if name == STANDARD or is_device(path):
        return
    if path.is_dir():
        raise FileError(f"cannot write {path}: it is a folder, name a file in it")
    with unless_broken(f"cannot write {path}"):
        tempfile.TemporaryFile(dir=resolved(path).parent).close()


def write(name: str, content: str) -> None:
    """To a file, or to standard output."""
    if name == STANDARD:
        sys.stdout.buffer.write(content.encode())
    else:
        write_whole(name, content)


def write_explanation(
    explanation: "Explanation",
    json_file: str | None,
    html_file: str | None,
    scale: str = "log-odds",
) -> None:
    """To the files that were named."""
    if json_file is not None:
        record = explanation.to_json()
        write(json_file, json.dumps(record, ensure_ascii=False, allow_nan=False) + "\n")
    if html_file is not None:
        write(html_file, explanation.to_html(scale=scale) or "")


def names(typed: str | None, known: Any, what: str) -> tuple[str, ...]:
    """Names separated by commas, or `all`."""
    if typed is None:
        return ()
    if typed == "all":
        return tuple(known)
    given = tuple(dict.fromkeys(name.strip() for name in typed.split(",")))
    if "" in given:
        raise click.UsageError(
            f"--{what}s {typed!r} lacks a name: give {what}s with commas between, or all "
            f"({', '.join(known)})"
        )
    for name in given:
        if name not in known:
            raise UnknownNameError(what, name, known)
    return given


def is_file_name(text: str) -> bool:
    """Whether a text is the name of an existing file, probably by mistake."""
    try:
        return len(text) < MAX_NAME and "\n" not in text and Path(text).is_file()
    except (OSError, ValueError):  # not a possible file name
        return False


def check_words(name: str | None) -> None:
    """Fail before the work if --words cannot be written."""
    if name is None:
        return
    if Path(name).suffix.lower() not in (".csv", ".parquet"):
        raise click.UsageError(f"--words {name}: give a file that ends in .csv or .parquet")
    check_writable(name)


def console_for_results() -> "Console":
    """Standard output at its own width; a pipe or a file has room for everything."""
    from rich.console import Console

    width = None if sys.stdout.isatty() or "COLUMNS" in os.environ else WIDE
    return Console(highlight=False, width=width)


def methods(typed: str) -> "tuple[Explainer, ...]":
    from slalom.explainers.methods import METHODS

    return tuple(METHODS[name] for name in names(typed, METHODS, "method"))


def check_language_model(
    name: str | None, answers: Mapping[str, object], texts: Mapping[str, object]
) -> None:
    """Options for answers need --language-model, those for texts exclude it."""
    for option in [option for option, value in (texts if name else answers).items() if value]:
        one, other = ("texts", "leave out") if name else ("answers", "give")
        raise click.UsageError(f"{option} is for {one}: {other} --language-model")


def one_class(typed: str | None, labels: Sequence[str]) -> str | int | None:
    if typed == "all" and typed not in labels:
        raise click.UsageError(
            f"--target all is for explain: give one label ({', '.join(labels)}) or its number"
        )
    return target(typed, labels)


@contextmanager
def sentences_for_warnings() -> Iterator[None]:
    """Print each of slalom's warnings as a sentence, after the work."""
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
