"""The functions that people call, over the methods of table.py."""

import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from operator import itemgetter
from typing import Any

import numpy as np

from slalom.classifiers.absent import REMOVE, with_absent
from slalom.classifiers.base import Classifier, Units, knows_labels, runs_elsewhere, target_of
from slalom.classifiers.load import as_classifier
from slalom.document import Document, Text
from slalom.errors import InputError, Setting, SlalomError, SlalomWarning, UnknownNameError, counted
from slalom.explainers.adaptive import WithMaxError
from slalom.explainers.base import (
    AskingMethod,
    Explainer,
    InsideMethod,
    Request,
    Result,
    TargetName,
    checked_whole,
)
from slalom.explainers.execution.driver import (
    QUERIES_PER_CHUNK,
    QUERIES_PER_STEP,
    explained,
    planned,
    queries_per_chunk,
)
from slalom.explainers.execution.progress import Meter, Progress, Wait, bar
from slalom.explainers.execution.steps import Order
from slalom.explainers.execution.workers import workers_pay
from slalom.explainers.phrases import by_phrases
from slalom.explainers.poor_fits import PoorFits
from slalom.explainers.split_ahead import Split
from slalom.explainers.splitting import document_of
from slalom.explainers.table import METHODS as METHODS
from slalom.explainers.vocabulary import FromVocabulary
from slalom.explanation import Explanation
from slalom.surrogates.slalom.fit import SlalomSurrogate

ON_ERROR = ("raise", "keep")
SECONDS_PER_CELL = 3e-8  # of a fit of SLALOM, rows × features², on one core
LONG_FIT = 60.0  # seconds that nobody should wait for unawares


def explain(
    classifier: Any,
    text: Text,
    method: str | Explainer = "slalom",
    target: TargetName = None,
    n_queries: int | None = None,
    units: Units = None,
    too_long: str = "error",
    seed: int = 0,
    progress: bool | Progress = False,
    max_error: float | None = None,
    labels: Sequence[str] | None = None,
    absent: str = REMOVE,
    repeats: int = 1,
) -> Explanation:
    """Explain what the classifier predicts for a text, unit by unit.

    :param classifier: one of slalom's, a transformers or scikit-learn pipeline, or a function from
        a list of texts to class probabilities
    :param text: a string, or a pair of strings
    :param method: a name of `slalom.METHODS`, or an explainer of your own
    :param target: a label, its index, or "all"; None: the predicted class
    :param n_queries: how many distinct texts the classifier is shown at most; None: the method
        chooses, by the length of the text
    :param units: what gets a score: "word" (the default), "token", "sentence", "phrase" (neighbours
        that act as one are joined: two more queries per word), or spans of the text
    :param too_long: a text longer than the model reads is an "error", or it is read as far as it
        goes ("truncate"), or piece by piece ("windows")
    :param seed: of the random queries; the same seed gives the same numbers
    :param progress: True shows a bar; a function is called with the numbers of answered and of
        planned queries, and an error it raises stops the work
    :param repeats: how often each query is asked, of a classifier that does not repeat itself;
        answers are means, and all of them count towards `n_queries`
    :param max_error: ask on until no Shapley value has a larger standard error (in log-odds), up to
        `n_queries` or 8000 queries
    :param labels: names of the classes of a function, or of a zero-shot pipeline
    :param absent: what becomes of words that a query does not show: "remove", "mask" (the model's
        mask token), or a text that replaces each
    """
    given = with_absent(as_classifier(classifier, labels), absent)
    wanted, units = by_phrases(with_max_error(method, max_error), units, too_long)
    wrapped, order = _checked(given, wanted, Request(target, n_queries, seed, repeats))
    document = document_of(wrapped, text, units, too_long=too_long)
    _warn_of_long_fits([document], order)
    with _meter(progress, [document], order) as meter:
        (explanation,) = explained(wrapped, order, [document], meter=meter)
    assert isinstance(explanation, Explanation)  # errors are raised, not kept
    poor = PoorFits()
    poor.add([explanation])
    poor.warn()
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
    progress: bool | Progress = True,
    on_error: str = "raise",
    max_error: float | None = None,
    labels: Sequence[str] | None = None,
    absent: str = REMOVE,
    repeats: int = 1,
) -> list[Any]:
    """Explain many texts with the same call; queries are batched across documents.

    `on_error="keep"` puts the error in the place of a text that cannot be explained. `progress`
    is True for a bar where a person is watching, or a function as for `explain`.
    """
    keep = _keeps(on_error)
    given = with_absent(as_classifier(classifier, labels), absent)
    wanted, units = by_phrases(with_max_error(method, max_error), units, too_long)
    wrapped, order = _checked(given, wanted, Request(target, n_queries, seed, repeats))
    order = replace(order, keep_errors=keep)
    split = Split(wrapped, units, too_long, partial(workers_pay, wrapped, order))
    documents = list(_documents(split, texts, keep=keep))
    _warn_of_long_fits(documents, order)
    in_turn = _longest_first(documents) if runs_elsewhere(wrapped) else range(len(documents))
    found: list[Result] = []
    with _meter(progress, documents, order) as meter:
        ordered = [documents[number] for number in in_turn]
        together = queries_per_chunk(wrapped, order, documents)
        try:
            for result in explained(wrapped, order, ordered, n_queries=together, meter=meter):
                found.append(result)
        except KeyboardInterrupt as stopped:
            stopped.add_note(
                f"{len(found)} of {counted(len(documents), 'text')} were explained and are lost: "
                "explain_each hands each over as it is finished"
            )
            raise
    results = [result for _, result in sorted(zip(in_turn, found, strict=True), key=itemgetter(0))]
    poor = PoorFits()
    poor.add(results)
    poor.warn()
    return results


def explain_each(
    classifier: Any,
    texts: Iterable[Text],
    method: str | Explainer = "slalom",
    target: TargetName = None,
    n_queries: int | None = None,
    units: Units = None,
    too_long: str = "error",
    seed: int = 0,
    progress: bool | Progress = False,
    on_error: str = "raise",
    max_error: float | None = None,
    labels: Sequence[str] | None = None,
    absent: str = REMOVE,
    repeats: int = 1,
) -> Iterator[Any]:
    """As `explain_many`, but yields each explanation as soon as it is finished.

    `texts` may be an endless iterator; with `progress` all texts are read first, to count them.
    """
    keep = _keeps(on_error)
    given = with_absent(as_classifier(classifier, labels), absent)
    wanted, units = by_phrases(with_max_error(method, max_error), units, too_long)
    wrapped, order = _checked(given, wanted, Request(target, n_queries, seed, repeats))
    order = replace(order, keep_errors=keep)
    split = Split(wrapped, units, too_long, partial(workers_pay, wrapped, order))
    return _each(wrapped, order, _documents(split, texts, keep=keep), progress)


def method_named(method: str | Explainer) -> Explainer:
    """A method of the table by its name, or an explainer of the caller's own."""
    if not isinstance(method, str):
        if not isinstance(method, AskingMethod | InsideMethod):
            raise InputError(
                Setting("method"), f" must be a name of slalom.METHODS, not {method!r}"
            )
        return method
    if method not in METHODS:
        raise UnknownNameError("method", method, METHODS)
    return METHODS[method]


def with_max_error(method: str | Explainer, max_error: float | None) -> Explainer:
    """A method by its name; with `max_error` one that goes on until its errors are so small."""
    chosen = method_named(method)
    return chosen if max_error is None else WithMaxError(chosen, max_error)


def _each(
    classifier: Classifier,
    order: Order,
    documents: Iterable[Document | SlalomError],
    progress: bool | Progress,
) -> Iterator[Result]:
    if progress:
        documents = list(documents)
    counted = documents if isinstance(documents, list) else []
    poor = PoorFits()
    together = QUERIES_PER_CHUNK if runs_elsewhere(classifier) else QUERIES_PER_STEP
    with _meter(progress, counted, order) as meter:
        for result in explained(classifier, order, documents, n_queries=together, meter=meter):
            poor.add([result])
            yield result
    poor.warn()


def checked_repeats(repeats: int, explainer: Explainer) -> int:
    if checked_whole("repeats", repeats, 1) > 1 and not isinstance(explainer, AskingMethod):
        raise InputError(
            Setting("repeats"), f" needs a method that only asks, which {explainer.name!r} is not"
        )
    return repeats


def _checked(classifier: Any, explainer: Explainer, wanted: Request) -> tuple[Classifier, Order]:
    """The classifier, and what is wanted of it; wrong arguments raise before anything is asked."""
    wrapped, target = as_classifier(classifier), wanted.target
    n_queries = wanted.n_queries
    allowed = None if n_queries is None else checked_whole("n_queries", n_queries, 1)
    repeats = checked_repeats(wanted.repeats, explainer)
    request = Request(target, allowed, checked_whole("seed", wanted.seed, 0), repeats)
    if knows_labels(wrapped):
        labels = tuple(wrapped.labels)
        if target is not None:
            target_of(target, labels, np.zeros(len(labels)))
        if isinstance(explainer, FromVocabulary):
            explainer.check(wrapped.name, labels)
    return wrapped, Order(explainer, request)


def _keeps(on_error: str) -> bool:
    if on_error not in ON_ERROR:
        raise UnknownNameError("on_error", on_error, ON_ERROR)
    return on_error == "keep"


def _documents(
    split: Split, texts: Iterable[Text], *, keep: bool
) -> Iterator[Document | SlalomError]:
    if isinstance(texts, str):
        raise InputError("explain_many takes a list of texts, not one str: use explain for one")
    for number, found in enumerate(split.each(texts)):
        if isinstance(found, Document):
            yield found
            continue
        problem = InputError(f"text {number}: ", *found.args)
        if not keep:
            raise problem from found
        yield problem


def _longest_first(documents: Sequence[Document | SlalomError]) -> list[int]:
    """Numbers of the documents, those that take long to fit first: none of them is waited for alone
    at the end."""
    sizes = [one.n_features if isinstance(one, Document) else 0 for one in documents]
    return sorted(range(len(documents)), key=lambda number: -sizes[number])


@contextmanager
def _meter(
    progress: bool | Progress | None,
    documents: Sequence[Document | SlalomError],
    order: Order,
) -> Iterator[Meter | None]:
    """For a progress function, for a bar if a person is watching, or None."""
    total = planned(order, documents)
    if callable(progress):
        yield Meter(progress, total)
    elif not progress:
        yield None
    else:
        with bar(total, Wait("explaining", "queries", after="fitting")) as show:
            yield None if show is None else Meter(show, total)


def _warn_of_long_fits(documents: Sequence[Document | SlalomError], order: Order) -> None:
    """A fit of SLALOM costs rows × features²: a long one is announced before anything is asked."""
    explainer, request = order.explainer, order.request
    if not isinstance(getattr(explainer, "surrogate", None), SlalomSurrogate):
        return
    readable = [document for document in documents if isinstance(document, Document)]
    costs = [request.planned(explainer, d) * d.n_features**2 for d in readable]
    seconds = SECONDS_PER_CELL * max(costs, default=0)
    if seconds >= LONG_FIT:
        n_features = readable[int(np.argmax(costs))].n_features
        warnings.warn(
            f"a text has {n_features} different units, so its fit alone will take about "
            f"{seconds / 60:.0f} min: sentences as units, or none named, make it shorter",
            SlalomWarning,
            stacklevel=3,
        )
