"""Language models by name, by folder, or from whatever the caller already has."""

from pathlib import Path
from typing import Any, cast

from slalom.classifiers.load import comes_from, language_model
from slalom.errors import InputError
from slalom.language.scoring import Writer

ASKED = ("has_template", "addressed", "write", "tokens", "count", "log_odds")


def as_writer(thing: Any, *, device: str | None = None, revision: str | None = None) -> Writer:
    """A writer itself, a name or folder, (model, tokenizer), or a text-generation pipeline.

    `device` and `revision` are for a name; without a device a GPU is taken, if there is one.
    """
    if all(hasattr(thing, name) for name in ASKED):
        return cast(Writer, thing)
    if isinstance(thing, str | Path):
        return language_model(thing, device=device, revision=revision)
    from slalom.classifiers.huggingface.writer import LocalWriter

    if isinstance(thing, tuple) and len(thing) == 2:
        return LocalWriter(*thing)
    if comes_from(thing, "torch.nn"):
        raise InputError(
            f"a {type(thing).__name__} alone cannot read text: give (model, tokenizer), "
            "or the folder that holds both"
        )
    if all(hasattr(thing, name) for name in ("model", "tokenizer", "task")):
        if thing.task != "text-generation":
            raise InputError(
                f"the pipeline's task is {thing.task!r}: a text-generation pipeline is needed"
            )
        return LocalWriter(thing.model, thing.tokenizer)
    raise InputError(
        f"a {type(thing).__name__} is no language model: give a name or folder, "
        "(model, tokenizer), a text-generation pipeline, or slalom.CompletionServer(…)"
    )
