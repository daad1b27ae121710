"""Options about the model, which runs here or behind an address."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import click

from slalom.cli.typed import ABSENT, CACHE, COUNT, DEVICE, REVISION

if TYPE_CHECKING:
    from slalom.classifiers.base import Classifier

Command = TypeVar("Command", bound=Callable[..., Any])

OPTIONS = (
    DEVICE,
    REVISION,
    click.option(
        "--base-url", metavar="URL", help="Query a chat model at this address (OpenAI-compatible)."
    ),
    click.option(
        "--labels",
        metavar="A=X,B=Y",
        help="What the model answers for each label, such as neg=0,pos=1.",
    ),
    click.option("--prompt", metavar="TEXT", help="The prompt; {text} stands for the text."),
    click.option(
        "--samples",
        type=COUNT,
        metavar="N",
        help="Sample N answers per query, for servers without log-probabilities.",
    ),
    ABSENT,
    CACHE,
)


@dataclass(frozen=True)
class TypedModel:
    """The options about the model, as typed."""

    name: str | None
    device: str | None
    revision: str | None
    labels: dict[str, str] | None
    prompt: str | None
    base_url: str | None
    samples: int | None
    cache: str | None
    absent: str = "remove"

    def classifier(self) -> "Classifier":
        """The classifier that they describe."""
        from slalom.classifiers.load import with_absent

        return with_absent(self._loaded(), self.absent)

    def _loaded(self) -> "Classifier":
        if self.base_url is not None:
            return self._at(self.base_url)
        if self.samples is not None or self.cache is not None:
            raise click.UsageError("--samples and --cache are for chat models: give --base-url")
        from slalom.classifiers.load import load

        return load(
            self.name,
            device=self.device,
            labels=self.labels,
            prompt=self.prompt,
            revision=self.revision,
        )

    def _at(self, url: str) -> "Classifier":
        from slalom.classifiers.chat.classifier import ChatClassifier

        if self.name is None or self.labels is None:
            raise click.UsageError("--base-url needs --model and --labels, such as neg=0,pos=1")
        for option, given in (("--device", self.device), ("--revision", self.revision)):
            if given is not None:
                raise click.UsageError(f"{option} is for models that run here, not at --base-url")
        return ChatClassifier(
            self.name,
            self.labels,
            url,
            prompt=self.prompt,
            n_samples=self.samples,
            cache=self.cache,
        )


def model_options(command: Command) -> Command:
    """Add the options of a TypedModel, --model aside, in this order."""
    for option in reversed(OPTIONS):
        command = option(command)
    return command


def labels_typed(typed: str | None) -> dict[str, str] | None:
    """neg=0,pos=1: labels and the model's answers for them; by default the label itself."""
    if typed is None:
        return None
    pairs = [part.partition("=") for part in typed.split(",")]
    labels = {label.strip(): answer if sign else label for label, sign, answer in pairs}
    if len(labels) < len(pairs) or "" in labels:
        raise click.UsageError(f"--labels {typed!r} is not of the form A=X,B=Y with two names")
    return labels
