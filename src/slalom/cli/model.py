"""Options about the model, which runs here or behind an address; a command gets them as one object.

`@option`s of this module write into a TypedModel, which `@pass_model` hands to the command.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import click

from slalom.cli.typed import COUNT

if TYPE_CHECKING:
    from slalom.classifiers.base import Classifier
    from slalom.language.scoring import Writer

Command = TypeVar("Command", bound=Callable[..., Any])


@dataclass
class TypedModel:
    """The options about the model, as typed."""

    name: str | None = None
    language_model: str | None = None
    device: str | None = None
    revision: str | None = None
    base_url: str | None = None
    labels: dict[str, str] | None = None
    prompt: str | None = None
    samples: int | None = None
    absent: str = "remove"
    cache: str | None = None

    def classifier(self) -> "Classifier":
        """The classifier that they describe."""
        from slalom.classifiers.load import load, with_absent

        if self.base_url is not None:
            return with_absent(self._at(self.base_url), self.absent)
        if self.samples is not None or self.cache is not None:
            raise click.UsageError("--samples and --cache are for chat models: give --base-url")
        loaded = load(
            self.name,
            device=self.device,
            labels=self.labels,
            prompt=self.prompt,
            revision=self.revision,
        )
        return with_absent(loaded, self.absent)

    def writer(self) -> "Writer":
        """The language model that they name."""
        from slalom.classifiers.load import language_model

        assert self.language_model is not None
        return language_model(self.language_model, device=self.device, revision=self.revision)

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


pass_model = click.make_pass_decorator(TypedModel, ensure=True)


def _keep(context: click.Context, option: click.Parameter, given: Any) -> None:
    setattr(context.ensure_object(TypedModel), str(option.name), given)


def _keep_labels(context: click.Context, option: click.Parameter, typed: str | None) -> None:
    """neg=0,pos=1: labels and the model's answers for them; by default the label itself."""
    pairs = [part.partition("=") for part in typed.split(",")] if typed is not None else []
    labels = {label.strip(): answer if sign else label for label, sign, answer in pairs}
    if len(labels) < len(pairs) or "" in labels:
        raise click.UsageError(f"--labels {typed!r} is not of the form A=X,B=Y with two names")
    _keep(context, option, labels or None)


option = partial(click.option, expose_value=False, callback=_keep)
MODEL = option(
    "--model", "name", metavar="NAME", help="A model's name or folder.  [default: the bundled one]"
)
WRITER = option(
    "--language-model",
    metavar="NAME",
    help="Explain a language model's answers instead: which sources they rest on.",
)
DEVICE = option("--device", help="Device for the model, such as cpu or cuda.")
REVISION = option(
    "--revision", metavar="NAME", help="Branch, tag or commit of a model of the Hugging Face hub."
)
ABSENT = option(
    "--absent",
    metavar="HOW",
    default="remove",
    show_default=True,
    help="What happens to absent words: remove, mask, or a text to put in their place.",
)
CACHE = option(
    "--cache", metavar="FILE", help="Keep answers in this file, so that no query is paid for twice."
)
OPTIONS = (
    DEVICE,
    REVISION,
    option(
        "--base-url", metavar="URL", help="Query a chat model at this address (OpenAI-compatible)."
    ),
    option(
        "--labels",
        metavar="A=X,B=Y",
        callback=_keep_labels,
        help="What the model answers for each label, such as neg=0,pos=1.",
    ),
    option("--prompt", metavar="TEXT", help="The prompt; {text} stands for the text."),
    option(
        "--samples",
        type=COUNT,
        metavar="N",
        help="Sample N answers per query, for servers without log-probabilities.",
    ),
    ABSENT,
    CACHE,
)


def model_options(command: Command) -> Command:
    """All options of a model that runs here or behind an address, --model aside, in this order."""
    for one in reversed(OPTIONS):
        command = one(command)
    return command
