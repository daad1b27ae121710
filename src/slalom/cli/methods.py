"""`slalom methods`: the names that every other command takes."""

import click


@click.command()
def methods() -> None:
    """List the available methods."""
    from slalom.explainers.methods import METHODS

    table = click.HelpFormatter(width=80)
    table.write_dl([(name, method.summary) for name, method in METHODS.items()])
    click.echo(table.getvalue(), nl=False)
