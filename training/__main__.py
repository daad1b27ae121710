"""The command line of training: `python -m training NAME`, and --help of each."""

import functools
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from slalom.errors import SlalomError

if TYPE_CHECKING:
    from training.models import Bench


def common(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options that every group takes, handed on as one `Bench`."""

    @functools.wraps(command)
    def on_bench(scale: str, data: Path | None, cache: Path, seed: int, **own: Any) -> None:
        from training.models import Bench  # torch and transformers: not for --help

        claim(cache, seed)
        command(Bench(data, cache, scale == "small", seed), **own)

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
        click.option("--seed", default=0, show_default=True, help="Each needs its own cache."),
    )
    for option in reversed(options):
        on_bench = option(on_bench)
    return on_bench


def claim(cache: Path, seed: int) -> None:
    """A cache is of one seed: what it holds is taken as it is."""
    mark = cache / "seed"
    if mark.exists():
        held = int(mark.read_text())
    else:
        held = 0 if cache.exists() and any(cache.iterdir()) else seed
    if held != seed:
        raise click.ClickException(
            f"{cache} holds models of seed {held}: give seed {seed} a --cache of its own"
        )
    cache.mkdir(parents=True, exist_ok=True)
    mark.write_text(f"{seed}\n")


class OneSentence(click.Group):
    """What went wrong for the user's reasons is said in one sentence, without a traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except (SlalomError, OSError) as problem:
            raise click.ClickException(str(problem)) from problem


@click.group(cls=OneSentence)
def main() -> None:
    """Train a group of models; those already in the cache are not trained again."""


@main.command("bundled")
@common
@click.option("--layers", multiple=True, type=int, help="Depths to train; repeatable.")
def train_bundled(bench: "Bench", layers: tuple[int, ...]) -> None:
    """The classifier that ships with the package."""
    from training import bundled

    plan = bundled.SMALL if bench.small else bundled.PAPER
    bundled.make(bench, layers or (bundled.SHIPPED,), plan)


@main.command("minilm")
@common
@click.option("--layers", multiple=True, type=int, default=(6, 2, 1), show_default=True)
def train_minilm(bench: "Bench", layers: tuple[int, ...]) -> None:
    """MiniLM fine-tuned on IMDB."""
    from training import groups

    groups.train_minilm(bench, layers)


@main.command("synthetic")
@common
@click.option("--kind", "kinds", multiple=True, help="bert, distilbert, gpt2; default all.")
@click.option("--layers", multiple=True, type=int, help="Default 1, 2, 6 and 12.")
def train_synthetic(bench: "Bench", kinds: tuple[str, ...], layers: tuple[int, ...]) -> None:
    """Transformers and ReLU nets on the linear and the SLALOM data set."""
    from training import groups

    groups.train_synthetic(bench, kinds, layers)


@main.command("imdb")
@common
@click.option("--only", multiple=True, help="For example bert-2; default all.")
def train_imdb(bench: "Bench", only: tuple[str, ...]) -> None:
    """Small BERT, DistilBERT, GPT-2, BLOOM and Mamba from scratch on IMDB."""
    from training import groups

    groups.train_imdb(bench, only)


@main.command("smollm")
@common
def train_smollm(bench: "Bench") -> None:
    """SmolLM2-135M with a classification head, fine-tuned on IMDB."""
    from training import groups

    groups.train_smollm(bench)


@main.command("classic")
@common
@click.option("--only", multiple=True, help="For example naive-bayes; default all.")
def train_classic(bench: "Bench", only: tuple[str, ...]) -> None:
    """Naive Bayes, logistic regression, a net on TF-IDF, an LSTM."""
    from training import groups

    groups.train_classic(bench, only)


if __name__ == "__main__":
    main()
