"""The functions that people call, over the methods of table.py.

A poor fit must not pass for an explanation: each call warns of those once.
"""

import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import numpy as np

from slalom.classifiers.base import (
    REMOVE,
    UNIT_KINDS,
    Classifier,
    Units,
    knows_labels,
    runs_elsewhere,
    target_of,
)
from slalom.classifiers.load import as_classifier, with_absent
from slalom.document import Document, Text
from slalom.errors import InputError, Setting, SlalomWarning, UnknownNameError, counted
from slalom.explainers.adaptive import WithMaxError
from slalom.explainers.base import (
    UNREAD,
    Explainer,
    Request,
    Result,
    SplitText,
    TargetName,
    checked_many,
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
from slalom.explainers.phrases import PHRASE, ByPhrases
from slalom.explainers.splitting import document_of
from slalom.explainers.surrogate import SurrogateExplainer
from slalom.explainers.table import METHODS as METHODS
from slalom.explainers.vocabulary import FromVocabulary
from slalom.explanation import FAIR_TRUST, Explanation
from slalom.surrogates.slalom.fit import SlalomSurrogate

ON_ERROR = ("raise", "keep")


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
    :param target: a label, its index, or "all"; None or "predicted": the predicted class
    :param n_queries: how many distinct texts the classifier is shown at most; None: the method
        chooses, by the length of the text
    :param units: what gets a score: "word" (the default), "token", "sentence", "phrase" (neighbours
        that act as one are joined: two more queries per word), or spans of the text
    :param too_long: a text longer than the model reads is an "error", or it is read as far as it
        goes ("truncate"), or piece by piece ("windows")
    :param seed: of the random queries; the same seed gives the same numbers
    :param progress: True shows a bar; a function is called with the numbers of answered and of
        planned queries, and an error it raises stops the work
    :param repeats: how often each query is made, for a classifier whose answers vary; the mean is
        used, and every repeat counts towards `n_queries`
    :param max_error: query until no Shapley value has a larger standard error (in log-odds), with
        at most `n_queries` or 8000 queries
    :param labels: names of the classes of a function, or of a zero-shot pipeline
    :param absent: what becomes of words that a query does not show: "remove", "mask" (the model's
        mask token), or a text that replaces each
    """
    wrapped = with_absent(as_classifier(classifier, labels), absent)
    explainer, units = by_phrases(with_max_error(method, max_error), units, too_long)
    order = _checked(wrapped, explainer, Request(target, n_queries, seed, repeats))
    document = document_of(wrapped, text, units, too_long=too_long)
    _warn_of_long_fits([document], order)
    with _meter(progress, [document], order) as meter:
        (explanation,) = explained(wrapped, order, [document], meter=meter)
    assert isinstance(explanation, Explanation)  # errors are raised, not kept
    poor = PoorFits()
    poor.add(explanation)
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
    wrapped = with_absent(as_classifier(classifier, labels), absent)
    explainer, units = by_phrases(with_max_error(method, max_error), units, too_long)
    order = _checked(wrapped, explainer, Request(target, n_queries, seed, repeats), on_error)
    documents = list(_documents(wrapped, order, texts, units, too_long))
    _warn_of_long_fits(documents, order)
    in_turn = list(range(len(documents)))
    if runs_elsewhere(wrapped):  # what takes long to fit first: nobody waits for it at the end
        in_turn.sort(key=lambda number: -_n_features(documents[number]))
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
    poor = PoorFits()
    for result in found:
        poor.add(result)
    poor.warn()
    return [result for _, result in sorted(zip(in_turn, found, strict=True), key=itemgetter(0))]


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
    wrapped = with_absent(as_classifier(classifier, labels), absent)
    explainer, units = by_phrases(with_max_error(method, max_error), units, too_long)
    order = _checked(wrapped, explainer, Request(target, n_queries, seed, repeats), on_error)
    return _each(wrapped, order, _documents(wrapped, order, texts, units, too_long), progress)


def method_named(method: str | Explainer) -> Explainer:
    """A method of the table by its name, or an explainer of the caller's own."""
    if not isinstance(method, str):
        if not isinstance(method, Explainer):
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


def by_phrases(method: Explainer, units: Units, too_long: str) -> tuple[Explainer, Units]:
    """The method and the units it is given: words, where phrases are wanted."""
    if isinstance(units, str) and units == PHRASE:
        return ByPhrases(method, too_long), "word"
    if isinstance(units, str) and units not in UNIT_KINDS:
        raise UnknownNameError("unit kind", units, (*UNIT_KINDS, PHRASE))
    return method, units.tolist() if isinstance(units, np.ndarray) else units


def _each(
    classifier: Classifier, order: Order, documents: Iterable[SplitText], progress: bool | Progress
) -> Iterator[Result]:
    if progress:
        documents = list(documents)
    counted = documents if isinstance(documents, list) else []
    poor = PoorFits()
    together = QUERIES_PER_CHUNK if runs_elsewhere(classifier) else QUERIES_PER_STEP
    with _meter(progress, counted, order) as meter:
        for result in explained(classifier, order, documents, n_queries=together, meter=meter):
            poor.add(result)
            yield result
    poor.warn()


def checked_repeats(repeats: int, explainer: Explainer) -> int:
    if checked_whole("repeats", repeats, 1) > 1 and explainer.looks_inside:
        raise InputError(
            Setting("repeats"),
            f" needs a method that only queries the classifier: {explainer.name!r} looks inside it",
        )
    return repeats


def _checked(
    classifier: Classifier, explainer: Explainer, wanted: Request, on_error: str = "raise"
) -> Order:
    """What is wanted of the classifier; wrong arguments raise before anything is asked."""
    if on_error not in ON_ERROR:
        raise UnknownNameError("on_error", on_error, ON_ERROR)
    target, n_queries = wanted.target, wanted.n_queries
    allowed = None if n_queries is None else checked_whole("n_queries", n_queries, 1)
    repeats = checked_repeats(wanted.repeats, explainer)
    if allowed is not None and allowed < repeats:
        few = f" must be at least {repeats}, one for each repeat of a query, not {allowed}"
        raise InputError(Setting("n_queries"), few)
    request = Request(target, allowed, checked_whole("seed", wanted.seed, 0), repeats)
    if knows_labels(classifier):
        labels = tuple(classifier.labels)
        if target is not None:
            target_of(target, labels, np.zeros(len(labels)))
        if isinstance(explainer, FromVocabulary):
            explainer.check(classifier.name, labels)
    return Order(explainer, request, keep_errors=on_error == "keep")


def _documents(
    classifier: Classifier, order: Order, texts: Iterable[Text], units: Units, too_long: str
) -> Iterator[SplitText]:
    checked_many(texts, "explain_many")
    for number, text in enumerate(texts):
        document: SplitText
        try:
            document = document_of(classifier, text, units, too_long=too_long)
        except InputError as problem:
            document = InputError(f"text {number}: ", *problem.args)
            if not order.keep_errors:
                raise document from problem
        yield document


def _n_features(document: SplitText) -> int:
    return document.n_features if isinstance(document, Document) else 0


@contextmanager
def _meter(
    progress: bool | Progress, documents: Sequence[SplitText], order: Order
) -> Iterator[Meter | None]:
    """For a progress function, for a bar if a person is watching, or None."""
    total = planned(order, documents)
    if not progress or callable(progress):
        yield Meter(progress, total) if callable(progress) else None
    else:
        with bar(total, Wait("explaining", "queries", after="fitting")) as show:
            yield None if show is None else Meter(show, total)


def _warn_of_long_fits(documents: Sequence[SplitText], order: Order) -> None:
    """A fit of SLALOM costs rows × features²: a long one is announced before anything is asked."""
    explainer, request = order.explainer, order.request
    surrogate = explainer.surrogate if isinstance(explainer, SurrogateExplainer) else None
    if not isinstance(surrogate, SlalomSurrogate):
        return
    readable = [document for document in documents if isinstance(document, Document)]
    costs = [request.planned(explainer, d) * d.n_features**2 for d in readable]
    seconds = 8e-9 * max(costs, default=0)  # on one core: of 2000 × 600
    if seconds >= 60.0:
        n_features = readable[int(np.argmax(costs))].n_features
        warnings.warn(
            f"a text has {n_features} different units, so its fit alone will take about "
            f"{seconds / 60:.0f} min: use sentences as units, or leave units out, "
            "to make it shorter",
            SlalomWarning,
            stacklevel=3,
        )


@dataclass
class PoorFits:
    """How many explanations of a call are not to be trusted, and the one warning that says so.

    Counts alone are kept: the explanations themselves may be the caller's, and gone.
    """

    n_explanations: int = 0
    n_unread: int = 0  # texts unknown to the tokenizer
    n_poor: int = 0  # others whose trust is low
    lowest_r2: float = 1.0  # of these

    def add(self, result: Result) -> None:
        """What is no explanation does not count."""
        if not isinstance(result, Explanation):
            return
        self.n_explanations += 1
        quality = result.quality
        if quality.trust != "low":
            return
        if any(note.endswith(UNREAD) for note in quality.notes):
            self.n_unread += 1
        elif quality.r2 is not None:
            self.n_poor += 1
            self.lowest_r2 = min(self.lowest_r2, quality.r2)

    def warn(self) -> None:
        """At most once per cause, on the line that called the caller."""
        one, messages = self.n_explanations == 1, []
        if self.n_unread:
            many = (
                f"texts mostly unknown to the tokenizer: {self.n_unread} of {self.n_explanations}"
            )
            what = "most of the text is unknown to the tokenizer" if one else many
            unread = f"the classifier cannot have read {'it' if one else 'them'}"
            messages.append(f"{what}; {unread}, whatever the fit says")
        if self.n_poor:
            doubt = "perhaps less well than R² suggests, as it rests on few queries"
            how = "poorly" if self.lowest_r2 < FAIR_TRUST else doubt
            r2 = f"{'' if one else 'lowest '}held-out R² {self.lowest_r2:.2f}"
            many = f"{self.n_poor} of {self.n_explanations} explanations describe"
            what = f"{'the explanation describes' if one else many} the classifier {how} ({r2})"
            caution = f"treat {'it' if one else 'them'} with caution"
            messages.append(f"{what}: {caution}; more queries or another method may help")
        for message in messages:
            warnings.warn(message, SlalomWarning, stacklevel=3)
