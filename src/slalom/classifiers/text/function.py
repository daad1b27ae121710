"""Any function from texts to probabilities or logits, scikit-learn pipelines included.

This part knows strings: units are words by default, each includes the gap before it, and the
full query is exactly the original text. A pair is given to the function as a tuple of two texts.
"""

from collections.abc import Callable, Hashable, Sequence, Set
from contextlib import suppress
from functools import cached_property
from typing import Any

import numpy as np

from slalom.classifiers.base import (
    TOO_LONG,
    Units,
    checked_logits,
    checked_str,
    checked_text,
    described,
)
from slalom.classifiers.fingerprint import function_key
from slalom.classifiers.text.strings import TextOutline, document_of_strings, texts_of
from slalom.document import Document, FloatArray, Queries, Text
from slalom.errors import ClassifierError, InputError, UnknownNameError

GIVES = ("probabilities", "logits")
CLIP = 1e-6
MAX_LENGTH = 400  # characters of another library's message
MAX_QUOTED = 80  # characters of a text quoted in ours
MARGINS = "margins of decision_function are treated as log-odds: percentages are not probabilities"
LABELS = "if these are labels, give probabilities instead: predict_proba, or the model itself"
VECTORIZE = "pass a pipeline that begins with a vectorizer"


class FunctionClassifier:
    """`f` takes n texts and returns (n, n_classes), or (n,) for the second of two classes.

    For a pair, `f` takes n tuples of two texts. `gives` says what it returns, "probabilities" or
    "logits". Without `labels`, the classes are called "0", "1", …. `batch_size` limits the number
    of texts per call.
    """

    def __init__(
        self,
        f: Callable[[list[Any]], Any],
        labels: Sequence[str] | None = None,
        gives: str = "probabilities",
        name: str | None = None,
        batch_size: int | None = None,
    ) -> None:
        if not callable(f):
            raise InputError(f"a function of a list of texts is needed, not {type(f).__name__}")
        if gives not in GIVES:
            raise UnknownNameError("gives", gives, GIVES)
        if batch_size is not None and batch_size < 1:
            raise InputError(
                f"batch_size must be at least 1, or None for no limit, not {batch_size}"
            )
        self.f = f
        self.gives = gives
        self.batch_size = batch_size
        self._labels = None if labels is None else _names(labels)
        self._name = None if name is None else checked_str(name, "the name")

    def __repr__(self) -> str:
        return described(self)

    @property
    def name(self) -> str:
        return self._name or str(getattr(self.f, "__qualname__", type(self.f).__name__))

    @property
    def labels(self) -> tuple[str, ...]:
        return self._labels or self._counted_labels

    @property
    def knows_labels(self) -> bool:
        """False until the first answer, if the caller gave no names."""
        return self._labels is not None or "_counted_labels" in vars(self)

    @property
    def fingerprint(self) -> str | None:
        """A key that distinguishes it from others of its name; None: none could be computed."""
        with suppress(Exception):  # any kind of object may be inspected
            return function_key(self.f, self.gives)
        return None

    @property
    def outline(self) -> TextOutline:
        """What a process without the function needs in order to make queries."""
        return TextOutline(self.name, self.labels)

    def split(self, text: Text, units: Units = None, *, too_long: str = "error") -> Document:
        if too_long not in TOO_LONG:  # a function reads texts of any length
            raise UnknownNameError("too_long", too_long, TOO_LONG)
        text = checked_text(text)
        if units == "token":
            raise InputError("a function has no tokens: its units are word, sentence or spans")
        return document_of_strings(text, "word" if units is None else units)

    def seen(self, document: Document, queries: Queries) -> list[Hashable]:
        return list(texts_of(document, queries))

    def logits(self, asked: Sequence[tuple[Document, Queries]]) -> list[FloatArray]:
        texts = [texts_of(document, queries) for document, queries in asked]
        scores = self([text for part in texts for text in part])
        return np.split(scores, np.cumsum([len(part) for part in texts])[:-1]) if texts else []

    def remarks(self, document: Document, queries: Queries, logits: FloatArray) -> tuple[str, ...]:
        if self.gives != "probabilities":
            return (MARGINS,) if _gives_margins(self.f) else ()
        bounds = np.log([CLIP * (1 + 1e-6), 1 - CLIP * (1 - 1e-6)])
        if ((logits > bounds[0]) & (logits < bounds[1])).all():
            return ()
        note = f"probabilities of 0 or 1 were clipped at {CLIP:.0e}".replace("e-0", "e-")
        are_all = (logits.max(axis=1) > np.log(1 - 2 * CLIP)).all()
        return (f"{note}, and there are no others; {LABELS}" if are_all else note,)

    def __call__(self, texts: Sequence[Text]) -> FloatArray:
        """(n, n_classes) logits of n full texts."""
        if isinstance(texts, str):
            raise InputError("give a list of texts, not one str")
        step = self.batch_size or max(1, len(texts))
        parts = [self._scores(list(texts[at : at + step])) for at in range(0, len(texts), step)]
        if parts and not self.knows_labels:  # learnt from this answer, to save a query
            vars(self)["_counted_labels"] = _numbers(parts[0].shape[1])
        n_classes = len(self.labels)
        for part in parts:
            checked_logits(part, n_queries=len(part), n_classes=n_classes, name=self.name)
        return np.concatenate(parts) if parts else np.zeros((0, n_classes))

    @cached_property
    def _counted_labels(self) -> tuple[str, ...]:
        try:
            n_classes = self._scores(["a"]).shape[1]
        except ClassifierError as problem:
            try:
                n_classes = self._scores([("a", "a")]).shape[1]  # a function of pairs
            except ClassifierError:
                raise problem from problem.__cause__
        return _numbers(n_classes)

    def _scores(self, texts: list[Text]) -> FloatArray:
        """Call the function once: (n, n_classes) logits."""
        try:
            answer = self.f([*texts])  # a list of its own, which it may change
        except Exception as problem:
            what = f"{type(problem).__name__}: {_briefly(problem)}"
            raise ClassifierError(
                f"{self.name} raised {what}{self._why(problem, texts)}"
            ) from problem
        table = _table(answer, texts=texts, name=self.name)
        if self.gives == "logits":
            return np.hstack([np.zeros_like(table), table]) if table.shape[1] == 1 else table
        return _log_probabilities(table, name=self.name)

    def _why(self, problem: Exception, texts: list[Text]) -> str:
        """A hint about texts that the function may not expect."""
        if any(isinstance(text, tuple) for text in texts):
            return " (it was given pairs)"
        if not self._takes(max(texts, key=len)):
            if _is_bare_model(self.f):
                return f" (it was given a list of texts: {VECTORIZE})"
            return " (it was given a list of texts)" if "list" in _briefly(problem) else ""
        only_of_nothing = "" in texts and not self._takes("")
        return " (for the empty text, which is queried too: equal odds will do)" * only_of_nothing

    def _takes(self, text: Text) -> bool:
        try:
            self.f([text])
        except Exception:  # of whatever kind
            return False
        return True


def _names(labels: Any) -> tuple[str, ...]:
    """The names of the classes in order; scikit-learn keeps them in an array."""
    try:
        listed = [] if isinstance(labels, str | Set) else list(labels)
    except TypeError:  # no list of anything
        listed = []
    if len(listed) < 2:
        raise InputError(f"labels must be a list of two names or more, not {labels!r}")
    names = tuple(checked_str(str(label), "a label") for label in listed)
    if len({*names}) < len(names):
        raise InputError(f"labels must differ from each other: {listed!r}")
    return names


def _gives_margins(f: Callable[[list[Any]], Any]) -> bool:
    """Distances from a decision boundary, such as a support vector machine's."""
    is_decision = getattr(f, "__name__", None) == "decision_function"
    return is_decision and not hasattr(getattr(f, "__self__", None), "predict_proba")


def _is_bare_model(f: Callable[[list[Any]], Any]) -> bool:
    """A method of a scikit-learn model that is no pipeline, and so may have no vectorizer."""
    model = getattr(f, "__self__", None)
    return hasattr(model, "get_params") and not hasattr(model, "steps")


def _briefly(problem: Exception) -> str:
    """Its beginning: some libraries put all given texts into their message."""
    try:
        message = str(problem)
    except Exception as worse:  # of the caller's own kind, too
        message = f"it cannot be shown, {type(worse).__name__}"
    return message if len(message) <= MAX_LENGTH else f"{message[: MAX_LENGTH - 1].rstrip()}…"


def _numbers(n_classes: int) -> tuple[str, ...]:
    return tuple(str(index) for index in range(n_classes))


def _table(answer: Any, *, texts: list[Text], name: str) -> FloatArray:
    """The function's answer, one row per text."""
    n_texts = len(texts)
    try:
        if hasattr(answer, "detach"):  # a torch tensor on any device
            answer = answer.detach().cpu().double()
        table = np.asarray(answer)
        if table.dtype.kind in "cmM":
            raise TypeError(f"these are {table.dtype}")
        table = table.astype(np.float64)
    except Exception as problem:  # whatever the caller's own types raise
        why = f"{_briefly(problem)}{f'; {LABELS}' if _are_words(answer) else ''}"
        raise ClassifierError(f"{name} did not return an array of numbers: {why}") from problem
    if table.ndim == 1:
        table = table[:, None]
    if table.ndim != 2 or len(table) != n_texts or not table.size:
        raise ClassifierError(
            f"{name} returned shape {np.shape(answer)} for {n_texts} texts: "
            f"expected ({n_texts}, n_classes), one row per text and one column per class"
        )
    missing = np.flatnonzero(~np.isfinite(table).all(axis=1))
    if 0 < len(missing) < n_texts:
        raise ClassifierError(
            f"{name} returned NaN or infinity for {len(missing)} of {n_texts} texts, such as "
            f"{_quoted(texts[missing[0]])}: a classifier must give finite scores for every text"
        )
    return checked_logits(table, n_queries=n_texts, n_classes=table.shape[1], name=name)


def _are_words(answer: Any) -> bool:
    try:
        return isinstance(next(iter(answer)), str)
    except (TypeError, StopIteration):
        return False


def _quoted(text: Text) -> str:
    named = repr(text) if any(text) else "the empty one"
    return named if len(named) <= MAX_QUOTED else f"{named[: MAX_QUOTED - 1]}…"


def _log_probabilities(table: FloatArray, *, name: str) -> FloatArray:
    if table.min(initial=0) < -1e-9 or table.max(initial=1) > 1 + 1e-6:
        raise ClassifierError(
            f"{name} returned {table.min():.3g} to {table.max():.3g}, which are not probabilities: "
            'if these are logits, wrap it: slalom.FunctionClassifier(f, gives="logits")'
        )
    if table.shape[1] == 1:
        table = np.hstack([1 - table, table])
    sums = table.sum(axis=1)
    if (np.abs(sums - 1) > 1e-3).any():
        worst = sums[np.abs(sums - 1).argmax()]
        raise ClassifierError(
            f"{name} returned probabilities that sum to {worst:.4g}, not 1: normalise each row, "
            "or explain one label at a time by returning its column alone"
        )
    return np.asarray(np.log(np.clip(table, CLIP, 1 - CLIP)))
