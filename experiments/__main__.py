"""The command line of the experiments: `python -m experiments NAME`, and --help of each."""

from typing import Any

import click

from experiments import fidelity, human
from slalom.errors import SlalomError


class OneSentence(click.Group):
    """What went wrong for the user's reasons is said in one sentence, without a traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except (SlalomError, OSError) as problem:
            raise click.ClickException(str(problem)) from problem


@click.group(cls=OneSentence)
def main() -> None:
    """Repeat the experiments of the paper."""


main.add_command(fidelity.command)
main.add_command(human.command)

if __name__ == "__main__":
    main()
