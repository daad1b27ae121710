"""What every classifier offers: split a text into units, and answer queries about it.

A classifier knows tokens, special tokens, prompts, devices and batches, but not which method
queries it. The scores of a target are log-odds; `Target` computes them from logits.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from slalom.document import Document, FloatArray, Queries, Span, Text
from slalom.errors import ClassifierError, InputError, UnknownNameError

UNIT_KINDS = ("token", "word", "sentence")
TOO_LONG = ("error", "truncate", "windows")
REMOVE, MASK = "remove", "mask"  # what happens to absent words
PREDICTED = "predicted"  # as a target: the class that the classifier predicts for the text
MAX_TEXT = 1_000_000  # characters; ten times as many take gigabytes and minutes
MAX_SCORE = 1e30  # tables and trees use 32-bit numbers, whose range ends at 3e38
Units = str | Sequence[Span] | None


class Classifier(Protocol):
    """What every classifier must have: Hugging Face models, functions, models behind an API.

    The functions below read optional members and say what their absence means.
    """

    @property
    def name(self) -> str: ...  # in words, for people

    @property
    def labels(self) -> tuple[str, ...]: ...

    def split(self, text: Text, units: Units = None, *, too_long: str = "error") -> Document: ...

    def seen(self, document: Document, queries: Queries) -> list[Hashable]:
        """The classifier's input for each query: equal entries get equal answers."""
        ...

    def logits(self, asked: Sequence[tuple[Document, Queries]]) -> list[FloatArray]:
        """Answer all queries of all documents in one go: [(n_queries, n_classes), …]."""
        ...


class Delegating(Protocol):
    """A classifier that wraps another and delegates what it does not do itself.

    `__getattr__` delegates optional members too.
    """

    classifier: Classifier

    @property
    def name(self) -> str:
        return self.classifier.name

    @property
    def labels(self) -> tuple[str, ...]:
        return self.classifier.labels

    def split(self, text: Text, units: Units = None, *, too_long: str = "error") -> Document:
        return self.classifier.split(text, units, too_long=too_long)

    def seen(self, document: Document, queries: Queries) -> list[Hashable]:
        return self.classifier.seen(document, queries)

    def __call__(self, texts: Sequence[Text]) -> FloatArray:
        """(n, n_classes) logits of n full texts."""
        return text_logits(self.classifier, texts)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or "classifier" not in vars(self):  # while it is unpickled
            raise AttributeError(name)
        return getattr(self.classifier, name)


def described(classifier: Classifier) -> str:
    """For `repr`: its kind, its name, and its labels if they are known without a query."""
    labels = f", labels={list(classifier.labels)!r}" if knows_labels(classifier) else ""
    return f"{type(classifier).__name__}({classifier.name!r}{labels})"


def is_independent(classifier: Classifier) -> bool:
    """Whether labels do not compete (multi-label, regression): its `independent`, else False."""
    return bool(getattr(classifier, "independent", False))


def knows_labels(classifier: Classifier) -> bool:
    """Whether `labels` is known without a query: its `knows_labels`, else True."""
    return bool(getattr(classifier, "knows_labels", True))


def runs_elsewhere(classifier: Classifier) -> bool:
    """Whether this machine's cores are free while it answers: its `runs_elsewhere`, else False."""
    return bool(getattr(classifier, "runs_elsewhere", False))


def accelerator(classifier: Classifier) -> str | None:
    """The GPU that it runs on, if that can also do other work in double precision, else None."""
    device: str | None = getattr(classifier, "accelerator", None)
    return device


def fingerprint_of(classifier: Classifier) -> str | None:
    """Its `fingerprint`, which distinguishes it from others of its name; None: it has none."""
    fingerprint: str | None = getattr(classifier, "fingerprint", None)
    return fingerprint


def defined_together(classifier: Classifier, name: str, other: str) -> bool:
    """Whether the class that defines its method `name` defines `other`, too.

    Then the two agree. They may disagree if a wrapper, a subclass or the object itself replaces
    `name` but inherits `other`.
    """
    kinds = (kind for kind in type(classifier).__mro__ if name in vars(kind))
    return name not in vars(classifier) and other in vars(next(kinds, object))


def anew(classifier: Classifier, number: int) -> Classifier:
    """The same classifier without remembered answers, for repetition number 1, 2, ….

    That is its `anew(number)`, if its class defines that beside `logits`; else itself, which then
    remembers nothing.
    """
    able: Any = classifier
    found: Classifier = able.anew(number) if defined_together(able, "logits", "anew") else able
    return found


def remarks_on(
    classifier: Classifier, document: Document, queries: Queries, logits: FloatArray
) -> tuple[str, ...]:
    """Notes for readers of these answers (clipped probabilities, censored labels)."""
    remarks = getattr(classifier, "remarks", None)
    return () if remarks is None else tuple(remarks(document, queries, logits))


def unpaid(classifier: Classifier, document: Document, queries: Queries) -> tuple[int, int] | None:
    """At most how many requests and tokens these queries would cost now; None: they are free."""
    cost = getattr(classifier, "unpaid", None)
    return None if cost is None else cost(document, queries)


def text_logits(classifier: Classifier, texts: Sequence[Text]) -> FloatArray:
    """(n, n_classes) logits of full texts, by its `__call__` if it has one."""
    if callable(classifier):
        return np.asarray(classifier(texts), dtype=np.float64)
    documents = [classifier.split(text) for text in texts]
    answers = classifier.logits([(document, document.full()) for document in documents])
    return np.concatenate([np.zeros((0, len(classifier.labels))), *answers])


@dataclass(frozen=True)
class Target:
    """Which log-odds are explained: one class against the rest, or all classes at once."""

    index: int | None  # None: all
    label: str

    def scores(self, logits: FloatArray, *, independent: bool) -> FloatArray:
        """(n, n_classes) → (n,) log-odds, or (n, n_classes) centred logits for all classes."""
        if self.index is None:
            return logits if independent else logits - logits.mean(axis=1, keepdims=True)
        chosen = logits[:, self.index]
        if independent or logits.shape[1] == 1:
            return chosen
        others = np.delete(logits, self.index, axis=1)
        return np.asarray(chosen - np.logaddexp.reduce(others, axis=1))


def names(wanted: object, word: str, labels: Sequence[str]) -> bool:
    """Whether a target is this keyword, and not a label with the same name."""
    return isinstance(wanted, str) and wanted == word and word not in labels


def target_of(
    wanted: str | int | None, labels: Sequence[str], document_logits: FloatArray
) -> Target:
    """The target for a label, an index, "all", or None or "predicted" (the predicted class)."""
    if wanted is None or names(wanted, PREDICTED, labels):
        index = int(np.argmax(document_logits))
        return Target(index, labels[index])
    if isinstance(wanted, str):
        if wanted in labels:
            return Target(list(labels).index(wanted), wanted)
        if wanted == "all":
            return Target(None, "all")
        raise UnknownNameError("target", wanted, [*labels, "all", PREDICTED])
    if isinstance(wanted, bool) or not isinstance(wanted, (int, np.integer)):
        raise InputError(f"target must be a label, an index, 'all' or None, not {wanted!r}")
    if str(wanted) in labels and list(labels).index(str(wanted)) != wanted:
        if wanted >= len(labels):  # no class has this number: the label is meant
            return Target(list(labels).index(str(wanted)), str(wanted))
        raise InputError(
            f"target {wanted} is a label and the number of another class: "
            f"give the label as a str, {str(wanted)!r}, or another number"
        )
    if not 0 <= wanted < len(labels):
        raise InputError(
            f"target {wanted} is out of range: the classes are 0 to {len(labels) - 1} "
            f"({', '.join(labels)})"
        )
    return Target(int(wanted), labels[wanted])


def one_target(wanted: str | int | None, labels: Sequence[str], of: str) -> Target:
    """The one target of many documents, by default the last class; `of` names what needs it."""
    if names(wanted, "all", labels) or names(wanted, PREDICTED, labels):
        raise InputError(
            f"{of} has one target, so that its words can be added up: "
            f"give a label or its number instead of {wanted!r} ({', '.join(labels)})"
        )
    return target_of(len(labels) - 1 if wanted is None else wanted, labels, np.zeros(len(labels)))


def checked_text(text: object) -> Text:
    """The text itself; an InputError says why it cannot be explained."""
    if isinstance(text, tuple) and len(text) == 2 and all(isinstance(side, str) for side in text):
        if not text[0].strip() and not text[1].strip():
            raise InputError("both sides of the pair are empty: give at least one word")
        return _not_too_long(text[0]), _not_too_long(text[1])
    if isinstance(text, list):
        raise InputError(
            "the text must be a str, not a list: give a pair as a tuple, (first, second), "
            "and many texts to explain_many"
        )
    if isinstance(text, tuple):
        raise InputError("the text must be a str, not tuple: a pair is a tuple of two texts")
    checked = _not_too_long(text)
    if not checked.strip():
        raise InputError("the text is empty: give at least one word to explain")
    return checked


def _not_too_long(text: object) -> str:
    checked = checked_str(text, "the text")
    if len(checked) > MAX_TEXT:
        raise InputError(
            f"the text has {len(checked)} characters: at most {MAX_TEXT} are read; explain a part"
        )
    return checked


def checked_str(text: object, what: str) -> str:
    """The text, unless it has a lone surrogate, which no tokenizer, file or page accepts."""
    if not isinstance(text, str):
        raise InputError(f"{what} must be a str, not {type(text).__name__}")
    try:
        text.encode()
    except UnicodeEncodeError as problem:
        raise InputError(
            f"{what} holds half a character ({text[problem.start]!r} at {problem.start}): "
            'repair it with text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")'
        ) from problem
    return text


def checked_logits(logits: object, *, n_queries: int, n_classes: int, name: str) -> FloatArray:
    """The answers as float64, or a ClassifierError that says what is wrong with them."""
    try:
        answers = np.asarray(logits, dtype=np.float64)
    except (TypeError, ValueError) as problem:
        raise ClassifierError(f"{name} did not return an array of numbers: {problem}") from problem
    if answers.shape != (n_queries, n_classes):
        raise ClassifierError(
            f"{name} returned shape {answers.shape} for {n_queries} texts: "
            f"expected ({n_queries}, {n_classes}), one row per text and one column per class"
        )
    if not np.isfinite(answers).all():
        n_bad = int((~np.isfinite(answers)).any(axis=1).sum())
        raise ClassifierError(
            f"{name} returned NaN or infinity for {n_bad} of {n_queries} texts: "
            "a classifier must give finite scores for every text"
        )
    if np.abs(answers).max(initial=0.0) > MAX_SCORE:
        raise ClassifierError(
            f"{name} returned scores of {np.abs(answers).max():.0e}: no fit works with numbers "
            f"beyond {MAX_SCORE:.0e}, divide them by a constant"
        )
    return answers
