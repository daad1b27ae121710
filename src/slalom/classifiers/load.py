"""Classifiers by name, by folder, or from whatever the caller already has.

Nothing heavy is imported here before it is needed: objects are recognised by their attributes and
by the module their class comes from.
"""

import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

from slalom.classifiers.base import MASK, REMOVE, Classifier, checked_str
from slalom.errors import FileError, InputError, Setting, needing

if TYPE_CHECKING:
    from slalom.classifiers.huggingface.writer import LocalWriter

LANGUAGE_MODEL = "language model"
PLACEHOLDER = "."  # shown instead of an empty text to pipelines that refuse one


def load(
    name_or_folder: str | Path | None = None,
    *,
    device: str | None = None,
    precision: str | None = None,
    labels: Mapping[str, str] | None = None,
    prompt: str | None = None,
    revision: str | None = None,
) -> Classifier:
    """The bundled model, or one from a folder or the Hugging Face hub.

    With `labels` and `prompt`, a causal language model is loaded that compares the labels' answers
    after the prompt; else a sequence classifier. `device` is where it runs ("cuda"; None: the CPU),
    `precision` is "bf16" or "fp16" (None: its own), `revision` a branch, tag or commit of the hub;
    with a commit, the model cannot change.
    """
    with needing(None, "hf"):
        import torch  # noqa: F401
        import transformers
    if (labels is None) != (prompt is None):
        raise InputError(
            Setting("labels"),
            " and ",
            Setting("prompt"),
            " go together: they make a classifier of a causal language model; "
            "a sequence classifier has its own labels and reads no prompt",
        )
    chosen = Chosen(name_or_folder, revision)
    if labels is not None and prompt is not None:
        if chosen.name is None:
            raise InputError(
                "the bundled model has its own labels and reads no prompt: "
                "name a causal language model, or leave out ",
                Setting("labels"),
                " and ",
                Setting("prompt"),
            )
        from slalom.classifiers.huggingface.causal import CausalClassifier

        model, tokenizer = pretrained(chosen, transformers.AutoModelForCausalLM, LANGUAGE_MODEL)
        model = moved(model, device)
        return CausalClassifier(model, tokenizer, labels, prompt, precision=precision)
    from slalom.classifiers.huggingface.classifier import HuggingFaceClassifier

    if chosen.name is None:
        from slalom.classifiers.huggingface.bundled import read_packed

        model, tokenizer = read_packed()
        name = "the bundled sentiment model"
    else:
        auto = transformers.AutoModelForSequenceClassification
        model, tokenizer = pretrained(chosen, auto, "classifier")
        name = None
    return HuggingFaceClassifier(moved(model, device), tokenizer, precision=precision, name=name)


@dataclass(frozen=True)
class Chosen:
    """A model by its name or folder, and which state of it."""

    given: str | Path | None  # None: the bundled one
    revision: str | None = None

    def __post_init__(self) -> None:
        if self.revision is not None and (self.name is None or self.is_folder):
            what = "the bundled model" if self.name is None else f"the folder {self.name!r}"
            raise InputError(f"{what} has only one version: leave out ", Setting("revision"))

    @property
    def name(self) -> str | None:
        return None if self.given is None else str(self.given)

    @property
    def folder(self) -> Path:
        return Path(self.name or "").expanduser()

    @property
    def is_folder(self) -> bool:
        try:
            return self.folder.is_dir()
        except OSError:  # a name that no folder can have
            return False


def language_model(
    name_or_folder: str | Path, *, device: str | None = None, revision: str | None = None
) -> "LocalWriter":
    """A causal language model that continues a prompt; on a GPU in half precision.

    `device` is where it runs; None: a GPU if there is one, else the CPU.
    """
    with needing(None, "hf"):
        import torch
        from transformers import AutoModelForCausalLM
    from slalom.classifiers.huggingface.writer import LocalWriter

    chosen = Chosen(name_or_folder, revision)
    model, tokenizer = pretrained(chosen, AutoModelForCausalLM, LANGUAGE_MODEL)
    device = device or ("cuda" if torch.cuda.is_available() else None)
    if str(device).startswith("cuda") and model.dtype == torch.float32:
        model = model.to(torch.bfloat16)
    return LocalWriter(moved(model, device), tokenizer)


def as_classifier(thing: Any, labels: Sequence[str] | None = None) -> Classifier:
    """A classifier itself, a transformers or scikit-learn pipeline, or a plain function.

    `labels` names the classes of a function, or those of a zero-shot pipeline.
    """
    if isinstance(thing, type):
        raise InputError(f"{thing.__name__} is a class: give an instance of it")
    if all(_has(thing, name) for name in ("split", "seen", "logits")):
        return _unlabelled(_complete(thing), labels)
    if isinstance(thing, str) and len(thing.split()) > 1:
        raise InputError(
            f"{_short_repr(thing)} is a text, not a classifier: give the classifier first"
        )
    if isinstance(thing, (str, Path)):
        raise InputError(
            f"{thing!r} is a name, not a classifier: load it with slalom.load({thing!r})"
        )
    if comes_from(thing, "transformers.pipelines"):
        return _from_pipeline(thing, labels)
    if comes_from(thing, "torch.nn"):
        raise InputError(
            "a model alone cannot read text: give slalom.HuggingFaceClassifier(model, tokenizer)"
        )
    if hasattr(thing, "predict_proba"):
        return _from_estimator(thing, thing.predict_proba, labels, gives="probabilities")
    if hasattr(thing, "decision_function"):
        return _from_estimator(thing, thing.decision_function, labels, gives="logits")
    if callable(thing):
        from slalom.classifiers.text.function import FunctionClassifier

        return FunctionClassifier(thing, labels)
    if hasattr(thing, "predict"):
        raise InputError(
            f"a {type(thing).__name__} with predict alone gives no probabilities: if it predicts "
            'numbers, give slalom.FunctionClassifier(it.predict, gives="logits"), '
            "and its score is the number"
        )
    raise InputError(
        f"{_short_repr(thing)} is not a classifier: give slalom.load(…), a transformers or "
        "scikit-learn pipeline, or a function from a list of texts to probabilities"
    )


def with_absent(classifier: Classifier, absent: str) -> Classifier:
    """The classifier itself if absent words are removed, else one that replaces them."""
    if not isinstance(absent, str) or not absent:
        raise InputError(
            Setting("absent"),
            f' must be "remove", "mask" or a text to put in place of absent words, not {absent!r}',
        )
    if checked_str(absent, "the text in place of absent words") == REMOVE:
        return classifier
    from slalom.classifiers.absent import ReplacingClassifier

    return ReplacingClassifier(classifier, None if absent == MASK else absent)


def _complete(thing: Any) -> Classifier:
    """A class of the caller's own must also have `labels` and `name`."""
    lacking = [name for name in ("labels", "name") if not _has(thing, name)]
    if lacking:
        raise InputError(
            f"{type(thing).__name__} has split, seen and logits but no {' and no '.join(lacking)}: "
            "labels is a tuple of class names, name is the classifier's name"
        )
    return cast(Classifier, thing)


def _has(thing: object, name: str) -> bool:
    """Without reading the attribute: the labels of a function may cost a query."""
    return hasattr(type(thing), name) or name in getattr(thing, "__dict__", {})


def _short_repr(thing: object) -> str:
    full = repr(thing)
    return full if len(full) <= 60 and "\n" not in full else f"a {type(thing).__name__}"


def comes_from(thing: object, module: str) -> bool:
    return any(
        base.__module__ == module or base.__module__.startswith(module + ".")
        for base in type(thing).__mro__
    )


def _unlabelled(classifier: Classifier, labels: Sequence[str] | None) -> Classifier:
    if labels is not None:
        raise InputError(
            Setting("labels"),
            f" names the classes of a function or of a zero-shot pipeline: {classifier.name} has "
            "labels of its own",
        )
    return classifier


def _from_pipeline(pipeline: Any, labels: Sequence[str] | None) -> Classifier:
    from slalom.classifiers.huggingface.classifier import HuggingFaceClassifier

    task = getattr(pipeline, "task", None)
    if task == "zero-shot-classification":
        return _zero_shot(pipeline, labels)
    if task in ("text-generation", "text2text-generation"):
        raise InputError(
            f"a {task} pipeline writes text, it does not classify: slalom.attribute explains what "
            'it writes; slalom.load(name, labels={…}, prompt="… {text} …") compares two answers'
        )
    if task != "text-classification":
        raise InputError(
            f"the pipeline's task is {task!r}: "
            "a text-classification or zero-shot-classification pipeline is needed"
        )
    return _unlabelled(HuggingFaceClassifier(pipeline.model, pipeline.tokenizer), labels)


def _zero_shot(pipeline: Any, labels: Sequence[str] | None) -> Classifier:
    """A zero-shot pipeline, which scores any labels; they compete with each other."""
    from slalom.classifiers.text.function import FunctionClassifier

    if labels is None:
        raise InputError(
            "a zero-shot pipeline has no labels of its own: give ",
            Setting("labels"),
            ', such as labels=["sports", "politics"]',
        )
    names = [str(label) for label in labels]

    def probabilities(texts: list[str]) -> list[list[float]]:
        readable = [
            text if text.strip() else PLACEHOLDER for text in texts
        ]  # it refuses empty ones
        rows = []
        answers = pipeline(readable, candidate_labels=names)
        for told in [answers] if isinstance(answers, dict) else answers:
            score = dict(zip(told["labels"], told["scores"], strict=True))
            rows.append([score[name] for name in names])
        return rows

    return FunctionClassifier(probabilities, names, name=f"zero-shot {pipeline.model.name_or_path}")


def _from_estimator(
    estimator: Any,
    f: Callable[[list[str]], Any],
    labels: Sequence[str] | None,
    *,
    gives: str,
) -> Classifier:
    from slalom.classifiers.text.function import FunctionClassifier

    classes = getattr(estimator, "classes_", None)
    if labels is None and classes is not None:
        labels = [str(label) for label in classes]
    return FunctionClassifier(f, labels=labels, gives=gives, name=type(estimator).__name__)


def pretrained(chosen: Chosen, form: Any, kind: str) -> tuple[Any, Any]:
    """Model and tokenizer, or a FileError that says in one sentence why they cannot be read."""
    name, folder, revision = chosen.name or "", chosen.folder, chosen.revision
    if not name or (_looks_like_a_path(name) and not chosen.is_folder):
        raise FileError(f"there is no folder {name!r}: give a folder that holds a model")
    source = str(folder) if chosen.is_folder else name
    local = chosen.is_folder or not _hub_is_reachable()
    try:
        with _quiet():
            model, found = form.from_pretrained(
                source, output_loading_info=True, local_files_only=local, revision=revision
            )
    except Exception as problem:
        raise FileError(
            f"cannot load {name!r}: {_why_not(problem, kind)}; "
            f"check the name, or give a folder that holds a {kind}"
        ) from problem
    if kind == LANGUAGE_MODEL and _classifies(model):
        raise FileError(
            f"{name!r} is a text classifier ({model.config.architectures[0]}), "
            "not a language model: name one that writes text"
        )
    if found["missing_keys"]:
        lacks = ", ".join(sorted(found["missing_keys"]))
        advice = _as_language_model(model) or ("give one that was",)
        raise FileError(f"{name!r} is not a trained {kind}: it lacks {lacks}; ", *advice)
    return model.eval(), _tokenizer(name, source, local=local, revision=revision)


def _tokenizer(name: str, source: str, *, local: bool, revision: str | None) -> Any:
    """The model's tokenizer; FileError if it is missing."""
    from transformers import AutoTokenizer

    why = ""
    try:
        with _quiet():
            found = AutoTokenizer.from_pretrained(source, local_files_only=local, revision=revision)
    except Exception as problem:
        told = _first_sentence(problem)
        found, why = None, f" that can be read ({told.rstrip('.')})"
        if told.endswith(":"):  # what it could have been, one per line
            why = " that can be read"
    if found is None or len(found) <= len(found.all_special_tokens):
        raise FileError(
            f"{name!r} holds no tokenizer{why}: save it beside the model with "
            "tokenizer.save_pretrained(folder)"
        )
    return found


def _classifies(model: Any) -> bool:
    """Whether it is a classifier, although it has all weights of a language model."""
    kinds = list(map(str, model.config.architectures or ()))
    return bool(kinds) and all(kind.endswith("Classification") for kind in kinds)


def _as_language_model(model: Any) -> tuple[str | Setting, ...]:
    """How to make a classifier of a causal language model, if this is one."""
    kinds = map(str, model.config.architectures or ())
    if not any(kind.endswith(("ForCausalLM", "LMHeadModel")) for kind in kinds):
        return ()
    return (
        "it is a language model, compare its answers after a prompt: give ",
        Setting("labels"),
        ' (say " bad" for negative and " good" for positive) and ',
        Setting("prompt"),
        ' (say "Review: {text} Verdict:")',
    )


def _looks_like_a_path(name: str) -> bool:
    return name.startswith(("/", ".", "~", "\\")) or name.count("/") > 1 or "\\" in name


def _hub_is_reachable() -> bool:
    """Whether the hub's address resolves; if not, its client would retry for half a minute."""
    from urllib.request import getproxies

    from huggingface_hub.constants import ENDPOINT

    if getproxies():
        return True
    try:
        socket.getaddrinfo(urlsplit(ENDPOINT).hostname, 443)
    except OSError:
        return False
    return True


def _why_not(problem: Exception, kind: str) -> str:
    """The message of transformers, unless it is about transformers' own options."""
    if "ignore_mismatched_sizes" in str(problem):
        return f"its weights have other shapes than those of a {kind}"
    if "Unrecognized configuration class" in str(problem):
        return f"models of its kind are no {kind}"
    return _first_sentence(problem).rstrip(".")


def _first_sentence(problem: Exception) -> str:
    lines = [line.strip() for line in str(problem).splitlines() if line.strip()]
    return lines[0] if lines else type(problem).__name__


def moved(model: Any, device: str | None) -> Any:
    """On this device; in 32 bits on a CPU, where 16 bits are many times slower."""
    import torch

    try:
        there = model if device is None else model.to(device)
    except (RuntimeError, AssertionError, ValueError) as problem:
        raise InputError(
            f"cannot use the device {device!r}: {_first_sentence(problem)}"
        ) from problem
    if getattr(there, "is_quantized", False):  # transformers refuses to convert these
        return there
    half = (torch.float16, torch.bfloat16)
    on_cpu = all(weight.device.type == "cpu" for weight in there.parameters())
    is_half = any(weight.dtype in half for weight in there.parameters())
    return there.float() if on_cpu and is_half else there


@contextmanager
def _quiet() -> Iterator[None]:
    """Loading without progress bars and advice, and without touching the random state."""
    import torch
    from transformers.utils import logging as transformers_logging

    logging: Any = transformers_logging
    verbosity, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        with torch.random.fork_rng(devices=[]):
            yield
    finally:
        logging.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()
