"""The command line of the experiments: `python -m experiments NAME --scale small|paper`."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from experiments import fidelity


def common(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options that every experiment takes."""
    options = (
        click.option("--scale", type=click.Choice(["small", "paper"]), default="small"),
        click.option(
            "--data",
            type=click.Path(exists=True, file_okay=False, path_type=Path),
            help="A folder with the data; else installed packages and the hub are asked.",
        ),
        click.option(
            "--cache",
            type=click.Path(file_okay=False, path_type=Path),
            default=Path("cache"),
            show_default=True,
            help="Where trained models are kept and looked for.",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


@click.group()
def main() -> None:
    """Train the models and repeat the experiments of the paper."""


@main.group()
def train() -> None:
    """Train a group of models; those already in the cache are not trained again."""


@train.command("bundled")
@common
@click.option("--student", multiple=True, help="A shape of experiments/student.py; repeatable.")
def train_bundled(scale: str, data: Path | None, cache: Path, student: tuple[str, ...]) -> None:
    """The classifier that ships with the package."""
    from experiments import bundled

    small = scale == "small"
    shapes = student or (("tiny",) if small else (bundled.SHIPPED,))
    bundled.make(data, cache, shapes, bundled.SMALL if small else bundled.PAPER)


@train.command("teacher")
@common
@click.option("--turn", default=0, help="Which of the teachers, from 0.")
def train_teacher(scale: str, data: Path | None, cache: Path, turn: int) -> None:
    """One teacher of the bundled classifier: to train several at the same time."""
    from experiments import bundled

    plan = bundled.SMALL if scale == "small" else bundled.PAPER
    texts = bundled.material(data, cache, plan)
    bundled.make_teacher(data, cache, texts, plan, turn=turn)


@train.command("minilm")
@common
@click.option("--layers", multiple=True, type=int, default=(6, 2, 1), show_default=True)
def train_minilm(scale: str, data: Path | None, cache: Path, layers: tuple[int, ...]) -> None:
    """MiniLM fine-tuned on IMDB."""
    from experiments.models import Bench, minilm

    for n_layers in layers:
        minilm(Bench(data, cache, scale == "small"), n_layers)


main.add_command(fidelity.command)

if __name__ == "__main__":
    main()
