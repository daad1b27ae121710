"""`slalom serve`: the live page, by default for this machine only."""

import secrets
import webbrowser
from dataclasses import replace
from importlib.util import find_spec
from typing import TYPE_CHECKING

import click

from slalom.cli.model import DEVICE, REVISION, TypedModel, option, pass_model
from slalom.errors import InputError, MissingExtraError

if TYPE_CHECKING:
    from slalom.web.models import Models

BUNDLED = "bundled"
NEEDED = {"torch": "hf", "starlette": "web", "uvicorn": "web"}  # modules and their extras


@click.command(short_help="Explore explanations in the browser.")
@click.option(
    "--model",
    "models",
    metavar="NAME",
    multiple=True,
    help="Name or folder; may be given several times.  [default: the bundled one]",
)
@option(
    "--language-model",
    metavar="NAME",
    help="A language model instead: find the sources behind its answers.",
)
@DEVICE
@REVISION
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="Where to listen; whoever opens the page needs the token in the printed address.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    metavar="N",
    default=8421,
    show_default=True,
    help="Port to listen on; if it is busy, another one is used.",
)
@click.option(
    "--no-token",
    is_flag=True,
    help="Require no token; any program or user on this machine can then open the page.",
)
@click.option("--no-browser", is_flag=True, help="Do not open the page.")
@pass_model
def serve(
    model: TypedModel,
    models: tuple[str, ...],
    host: str,
    port: int,
    no_token: bool,
    no_browser: bool,
) -> None:
    """Explore explanations in the browser: paste a text, remove words, see what changes."""
    _check_extras()
    from slalom.web.answers import Language
    from slalom.web.guard import LOOPBACK
    from slalom.web.models import Models
    from slalom.web.server import Address, app, listening, run

    if model.language_model is not None and models:
        raise InputError("--model and --language-model need a server each: start two")
    if no_token and host not in LOOPBACK:
        raise InputError("--no-token is for this machine only: leave out --no-token or --host")
    token = None if no_token else secrets.token_urlsafe(16)
    taken, address = listening(Address(host, port, token))
    if port not in (0, address.port):
        click.echo(f"Port {port} is busy, using {address.port}.")
    with taken:
        click.echo("Loading the model …")
        held, language = Models(()), None
        if model.language_model is None:
            held = _loaded(models, model)
        else:
            language = Language(model.writer())

        def started() -> None:
            click.echo(f"SLALOM is at {address.url}  (Ctrl-C stops it)")
            if not no_browser:
                webbrowser.open(address.url)

        run(app(held, address=address, language=language, started=started), taken)
    click.echo("Stopped.")


def _check_extras() -> None:
    """Name all missing extras at once, rather than one after the other."""
    missing = {module: extra for module, extra in NEEDED.items() if find_spec(module) is None}
    if missing:
        raise MissingExtraError(", ".join(missing), ",".join(dict.fromkeys(missing.values())))


def _loaded(names: tuple[str, ...], model: TypedModel) -> "Models":
    from slalom.web.models import Model, Models

    given = tuple(dict.fromkeys(names)) or (BUNDLED,)
    if model.revision is not None and len(given) > 1:
        raise InputError("--revision is for a single model: start a server for each")
    named = {name: replace(model, name=None if name == BUNDLED else name) for name in given}
    return Models(tuple(Model(name, one.classifier()) for name, one in named.items()))
