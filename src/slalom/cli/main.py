"""The command itself: its sub-commands, and how errors end it.

Wrong use ends with one sentence on standard error and status 2. Modules are imported only when
needed, so that `slalom --help` answers at once.
"""

import errno
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import NoReturn

import click

from slalom.cli.attribute import attribute
from slalom.cli.compare import compare
from slalom.cli.corpus import corpus
from slalom.cli.evaluate import evaluate
from slalom.cli.explain import explain
from slalom.cli.serve import serve
from slalom.cli.typed import complain, write_what_fits
from slalom.errors import SlalomError

WRONG_USE, INTERRUPTED, TERMINATED, PIPE_CLOSED = 2, 130, 143, 1
UNQUOTED = "Got unexpected extra argument"
FULL = (errno.ENOSPC, errno.EDQUOT)  # of standard output: errors of files are caught elsewhere


class Terminated(KeyboardInterrupt):
    """SIGTERM; handled like Ctrl-C, so that workers end too."""


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """The `slalom` command."""
    _open_what_is_closed()
    write_what_fits(sys.stdout, sys.stderr)
    with suppress(ValueError):  # not in the main thread
        signal.signal(signal.SIGTERM, _terminate)
    try:
        status = commands.main(arguments, prog_name="slalom", standalone_mode=False)
        sys.stdout.flush()
    except click.UsageError as problem:
        complain(_usage(problem))
        status = WRONG_USE
    except (click.ClickException, SlalomError) as problem:
        complain(problem)
        status = WRONG_USE
    except (click.Abort, KeyboardInterrupt) as problem:
        status = TERMINATED if isinstance(problem.__cause__, Terminated) else INTERRUPTED
    except BrokenPipeError:  # whoever was reading has stopped
        _drop_output()
        status = PIPE_CLOSED
    except OSError as problem:
        if problem.errno in FULL:
            complain(f"cannot write to standard output: {problem.strerror}")
            _drop_output()
        elif problem.errno == errno.ENAMETOOLONG:
            complain(f"no file can have the name {problem.filename}: {problem.strerror}")
        else:
            raise
        status = WRONG_USE
    sys.exit(status)


def _usage(problem: click.UsageError) -> str:
    """What is wrong, what to do about it, and where to read on."""
    message, context = problem.format_message().rstrip("."), problem.ctx
    if context is None:
        return message
    takes_text = any(parameter.name == "text" for parameter in context.command.params)
    if takes_text and message.startswith(UNQUOTED):
        message += ": put quotes around a text of several words"
    return f"{message} (see {context.command_path} --help)"


def _open_what_is_closed() -> None:
    """Replace streams that the caller closed; else the next open file would take their number."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: PTH123, SIM115


def _terminate(*_: object) -> NoReturn:
    raise Terminated


def _drop_output() -> None:
    """Nobody reads what is still buffered: Python must not try to write it as it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@click.group(
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(package_name="slalom-xai", message="%(prog)s %(version)s")
@click.pass_context
def commands(context: click.Context) -> None:
    """Explain what a text classifier predicts, word by word."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


@click.command()
def methods() -> None:
    """List the available methods."""
    from slalom.explainers.methods import METHODS

    table = click.HelpFormatter(width=80)
    table.write_dl([(name, method.summary) for name, method in METHODS.items()])
    click.echo(table.getvalue(), nl=False)


for command in (explain, attribute, compare, evaluate, corpus, serve, methods):
    commands.add_command(command)
