"""The two functions that people call, over the methods of table.py."""

import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from slalom.classifiers.base import Classifier, Units, checked_text, knows_labels, target_of
from slalom.classifiers.load import as_classifier
from slalom.document import Document, Text
from slalom.errors import InputError, Setting, SlalomWarning, UnknownNameError
from slalom.explainers.base import Explainer, TargetName
from slalom.explainers.table import METHODS as METHODS
from slalom.explanation import Explanation

QUERIES_PER_CHUNK = 20_000  # documents whose queries are asked together


def explain(
    classifier: Any,
    text: Text,
    method: str | Explainer = "slalom",
    target: TargetName = None,
    n_queries: int | None = None,
    units: Units = None,
    too_long: str = "error",
    seed: int = 0,
) -> Explanation:
    """What every unit of the text says to the classifier, and how loudly it says it.

    `classifier` is one of slalom's, a transformers pipeline, a scikit-learn pipeline or a
    function from a list of texts to class probabilities. `target=None` explains the
    predicted class. `n_queries` bounds how many distinct texts the classifier is shown;
    None lets the method choose by the length of the text.
    """
    asked = as_classifier(classifier)
    explainer = method_named(method)
    _check(n_queries, seed)
    document = asked.split(checked_text(text), units, too_long=too_long)
    _check_target(asked, target)
    explanation = explainer.explain(
        asked, [document], target=target, n_queries=n_queries, seed=seed
    )[0]
    _warn_of_poor_fits([explanation])
    return explanation


def explain_many(
    classifier: Any,
    texts: Sequence[Text],
    method: str | Explainer = "slalom",
    target: TargetName = None,
    n_queries: int | None = None,
    units: Units = None,
    too_long: str = "error",
    seed: int = 0,
    progress: bool = True,
) -> list[Explanation]:
    """Explain many texts with the same call; queries are batched across documents."""
    asked = as_classifier(classifier)
    explainer = method_named(method)
    _check(n_queries, seed)
    if isinstance(texts, str):
        raise InputError("explain_many takes a list of texts, not one str: use explain for one")
    documents = []
    for number, text in enumerate(texts):
        try:
            documents.append(asked.split(checked_text(text), units, too_long=too_long))
        except InputError as problem:
            raise InputError(f"text {number}: {problem}") from problem
    _check_target(asked, target)
    explanations: list[Explanation] = []
    with _progress(len(documents), shown=progress) as advance:
        for chunk in _chunks(explainer, documents, n_queries):
            explanations += explainer.explain(
                asked, chunk, target=target, n_queries=n_queries, seed=seed
            )
            advance(len(chunk))
    _warn_of_poor_fits(explanations)
    return explanations


def method_named(method: str | Explainer) -> Explainer:
    """A method of the table by its name, or an explainer of the caller's own."""
    if not isinstance(method, str):
        if not hasattr(method, "explain"):
            raise InputError(f"method must be a name of slalom.METHODS, not {method!r}")
        return method
    if method not in METHODS:
        raise UnknownNameError("method", method, METHODS)
    return METHODS[method]


def _check(n_queries: object, seed: object) -> None:
    for name, given, least in (("n_queries", n_queries, 1), ("seed", seed, 0)):
        if given is None and name == "n_queries":
            continue
        if isinstance(given, bool) or not isinstance(given, int | np.integer) or given < least:
            raise InputError(
                Setting(name), f" must be a whole number of at least {least}, not {given!r}"
            )


def _check_target(classifier: Classifier, target: TargetName) -> None:
    """A wrong target is said before anything is asked, wherever the labels are known by then."""
    if target is not None and knows_labels(classifier):
        target_of(target, classifier.labels, np.zeros(len(classifier.labels)))


def _chunks(
    explainer: Explainer, documents: Sequence[Document], n_queries: int | None
) -> Iterator[list[Document]]:
    """Neighbours whose queries together fill a few large batches."""
    chunk: list[Document] = []
    queries = 0
    for document in documents:
        chunk.append(document)
        queries += n_queries or explainer.budget(document)
        if queries >= QUERIES_PER_CHUNK:
            yield chunk
            chunk, queries = [], 0
    if chunk:
        yield chunk


@contextmanager
def _progress(total: int, *, shown: bool) -> Iterator[Callable[[int], None]]:
    """A bar on standard error while the work lasts, if a person is watching."""
    if not shown or not sys.stderr.isatty():
        yield lambda done: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

    columns = ("explaining", BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("explaining", total=total)
        yield lambda done: bar.advance(task, done)


def _warn_of_poor_fits(explanations: Sequence[Explanation]) -> None:
    """One warning per call: a fit that describes little must not pass for an explanation."""
    poor = [e for e in explanations if e.quality.r2 is not None and e.quality.trust == "low"]
    if poor:
        worst = min(e.quality.r2 for e in poor if e.quality.r2 is not None)
        warnings.warn(
            f"{len(poor)} of {len(explanations)} explanations describe the classifier poorly "
            f"(lowest leave-one-out R² {np.floor(100 * worst) / 100:.2f}): read them with care; "
            "more queries or another method may do better",
            SlalomWarning,
            stacklevel=3,
        )
