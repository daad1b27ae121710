"""What every command reads and writes in the same way: counts, targets, texts, files, complaints.

Knows what can be typed on a command line, nothing of what is done with it.
"""

import re
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import click

from slalom.errors import FileError, InputError
from slalom.files import is_device, write_whole

STANDARD = "-"  # standard input or output
AS_TYPED = {  # how the library names a thing, and how it is typed
    'too_long="truncate"': "--too-long truncate",
    'too_long="windows"': "--too-long windows",
    'units="sentence"': "--units sentence",
    "n_queries": "--queries",
    "n_samples=32": "--samples 32",
    "or give api_key=…, or base_url=…": "or give another --base-url",
    "base_url": "--base-url",
    "labels and prompt": "--labels and --prompt",
}


def at_least(least: int) -> Callable[[str], int]:
    """The type of an option that counts; says in one sentence what it takes."""

    def number(typed: str) -> int:
        if not str(typed).isdecimal() or int(typed) < least:
            raise click.BadParameter(f"{typed!r} is not a whole number of at least {least}")
        return int(typed)

    return number


def complain(sentence: object) -> None:
    """One line on standard error, in the words of the command line."""
    names = "|".join(map(re.escape, AS_TYPED))
    told = re.sub(rf"(?<![\w./\\-])({names})(?![\w./\\-])", lambda m: AS_TYPED[m[1]], str(sentence))
    click.echo(f"slalom: {told}", err=True)


def target_typed(target: str | None, labels: Sequence[str]) -> str | int | None:
    """A number is an index, unless a label looks just like it."""
    if target is not None and target not in labels and target.isdecimal():
        return int(target)
    return target


def text_typed(text: str | None, file: str | None) -> str:
    """The text as it is; the line end that closes a file is not part of it."""
    if (text is None) == (file is None):
        raise click.UsageError(
            "give one text: as an argument, as - for standard input, or by --file"
        )
    if text is not None and text != STANDARD:
        return _decoded(text.encode("utf-8", "surrogateescape"))
    content = sys.stdin.buffer.read() if file is None else _file_bytes(Path(file))
    return re.sub(r"\r?\n\Z", "", _decoded(content))


def _decoded(content: bytes) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        raise InputError(
            f"the text is not UTF-8 (byte {problem.start}): convert it, for example with iconv"
        ) from problem


def _file_bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as problem:
        raise FileError(f"cannot read {path}: {problem.strerror or problem}") from problem


def check_writable(name: str) -> None:
    """Find out before the work, not after it, that a result has nowhere to go."""
    path = Path(name)
    if name == STANDARD or is_device(path):
        return
    if path.is_dir():
        raise FileError(f"cannot write {path}: it is a folder, name a file in it")
    try:
        tempfile.TemporaryFile(dir=path.resolve().parent).close()
    except OSError as problem:
        raise FileError(f"cannot write {path}: {problem.strerror or problem}") from problem


def write(name: str, content: str) -> None:
    """To a file, or to standard output."""
    if name == STANDARD:
        sys.stdout.buffer.write(content.encode())
    else:
        write_whole(name, content)
