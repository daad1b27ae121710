"""From texts to the units that are explained: coarser ones where a text is long.

A fit costs the cube of the number of units, and nobody reads a thousand bars. Where the caller
does not choose the units, a text of more than MAX_UNITS words is split into its sentences, if they
are neither too few nor too many, else into runs of a few words; a note says so, and how to get
words nevertheless.

To split a text takes the process that holds the model about a millisecond, which it lacks beside
a GPU. Where worker processes explain texts they split them, too, ahead of those that are
explained: they have the classifier's tokenizer in a file, and begin once a few documents of theirs
were the same as those made here. Whatever goes wrong there is done here.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, suppress
from dataclasses import dataclass, fields, is_dataclass, replace
from itertools import groupby, islice
from pathlib import Path
from time import perf_counter
from typing import Any, Protocol, cast
from weakref import finalize

import numpy as np

from slalom.classifiers.base import Classifier, Units, checked_text, defined_together
from slalom.classifiers.text.units import would_have_words
from slalom.document import Document, Span, Text
from slalom.errors import InputError
from slalom.explainers.base import SplitText
from slalom.explainers.execution.driver import AHEAD
from slalom.explainers.execution.pool import Ask, submit
from slalom.temporary import temporary_folder

MAX_UNITS = 1000  # above it coarser units are taken
N_RUNS = 300  # of words, about, where sentences do not serve
NO_WORDS = (
    "units are characters or pieces of the tokenizer, since this script puts no spaces between "
    "words: with  pip install 'slalom-xai[words]'  they are words"
)

TEXTS_PER_TASK = 32
SPLIT_HERE = 2 * TEXTS_PER_TASK  # for fewer texts no worker need read a tokenizer
SLOW_SECONDS = 0.25  # for texts of one task to come: nobody shall wait for more of them

Tasks = deque[tuple[list[Text], "Future[list[SplitText]]"]]


class Splits(Protocol):
    """A classifier, or the part of one that splits."""

    def split(self, text: Text, units: Units = None, *, too_long: str = "error") -> Document: ...


def document_of(
    classifier: Splits, text: object, units: Units, *, too_long: str = "error"
) -> Document:
    """The text as the classifier cuts it, with coarser units where there would be too many."""
    checked = checked_text(text)
    document = classifier.split(checked, units, too_long=too_long)
    if units in (None, "word") and would_have_words("".join(checked)):
        document = replace(document, notes=(*document.notes, NO_WORDS))
    if units is not None or document.n_units <= MAX_UNITS:
        return document
    what, spans = _coarser(classifier, checked, document, too_long)
    coarse = classifier.split(checked, spans, too_long=too_long)
    note = (
        f"the text has {document.n_units} words and signs, so its units are {coarse.n_units} "
        f"{what}; explaining every word is possible, but takes much longer"
    )
    return replace(coarse, notes=(*coarse.notes, note))


def _coarser(
    classifier: Splits, text: Text, document: Document, too_long: str
) -> tuple[str, Units]:
    sentences = classifier.split(text, "sentence", too_long=too_long)
    if 50 <= sentences.n_units <= MAX_UNITS:  # fewer would make a poor explanation
        return "sentences", "sentence"
    length = -(-document.n_units // N_RUNS)
    return f"runs of {length} words", _runs(document.spans, length)


def _runs(spans: Sequence[Span], length: int) -> list[Span]:
    """Spans of `length` consecutive units, never across the two sides of a pair."""
    runs: list[Span] = []
    for side, own in groupby(spans, key=lambda span: span[:-2]):
        units = list(own)
        for start in range(0, len(units), length):
            part = units[start : start + length]
            runs.append((*side, part[0][-2], part[-1][-1]))
    return runs


@dataclass(frozen=True, eq=False)
class Splitting:
    """How texts become documents."""

    classifier: Classifier
    units: Units
    too_long: str
    shared: Callable[[Sequence[Document]], bool]  # whether workers explain documents like these

    def each(self, texts: Iterable[Text]) -> Iterator[SplitText]:
        """Each text's document, or what is wrong with the text."""
        left, first = iter(texts), []
        for text in islice(left, SPLIT_HERE):
            first.append((text, self._split_local(text)))
            yield first[-1][1]
        for text in islice(left, 1):
            yield self._split_local(text)
            if self.shared([found for _, found in first if isinstance(found, Document)]):
                yield from self._after_trial(first[-TEXTS_PER_TASK:], left)
        yield from map(self._split_local, left)

    def _split_local(self, text: object) -> SplitText:
        return _split_or_error(self.classifier, text, self.units, self.too_long)

    def _after_trial(
        self, known: Sequence[tuple[Text, SplitText]], left: Iterator[Text]
    ) -> Iterator[SplitText]:
        """Texts by workers, as soon as they were seen to split some as was done here."""
        begun: Tasks = deque()
        with ExitStack() as kept:
            kept.callback(_drop, begun)
            folder = kept.enter_context(temporary_folder())
            finalize(self, kept.close)  # a program may end while its caller holds this generator
            splitter = self._splitter(folder)
            if splitter is None:
                return
            self._begin(begun, splitter, [text for text, _ in known])
            for text in left:
                yield self._split_local(text)
                if begun[0][1].done():
                    break
            if _agreed([found for _, found in known], begun.popleft()[1]):
                yield from self._by_workers(splitter, left, begun)

    def _splitter(self, folder: Path) -> Splits | None:
        """None where the classifier has none, or another way to split."""
        if not defined_together(self.classifier, "split", "splitter"):
            return None
        able: Any = self.classifier
        with suppress(Exception):  # whatever it is: texts can be split here
            return cast("Splits", able.splitter(folder))
        return None

    def _begin(self, begun: Tasks, splitter: Splits, group: list[Text]) -> None:
        task = (splitter, group, self.units, self.too_long)
        begun.append((group, submit(_split_in_worker, task)))

    def _by_workers(
        self, splitter: Splits, left: Iterator[Text], begun: Tasks
    ) -> Iterator[SplitText]:
        """As long as texts come quickly."""
        group = _next_group(left)
        while group:
            self._begin(begun, splitter, group)
            group = _next_group(left) if len(group) == TEXTS_PER_TASK else []
            if len(begun) > AHEAD:  # they wait their turn among documents that are explained
                yield from self._of(*begun.popleft())
        while begun:
            yield from self._of(*begun.popleft())

    def _of(self, group: list[Text], future: "Future[list[SplitText]]") -> list[SplitText]:
        """What a worker found; what it could not do is done here."""
        try:
            return future.result()
        except Exception:
            return list(map(self._split_local, group))


def _agreed(known: Sequence[SplitText], trial: "Future[list[SplitText]]") -> bool:
    """Whether a worker found the same; not so where it is still at it, and no text is left."""
    if trial.cancel() or not trial.done() or trial.exception() is not None:
        return False
    return all(map(_alike, known, trial.result()))


def _drop(begun: Tasks) -> None:
    for _, future in begun:
        future.cancel()
    begun.clear()


def _next_group(texts: Iterator[Text]) -> list[Text]:
    """The next texts; fewer than TEXTS_PER_TASK where they end, or come slowly."""
    group: list[Text] = []
    start = perf_counter()
    for text in texts:
        group.append(text)
        if len(group) == TEXTS_PER_TASK or perf_counter() - start > SLOW_SECONDS:
            break
    return group


def _split_in_worker(given: tuple[Splits, Sequence[Text], Units, str], ask: Ask) -> list[SplitText]:
    splitter, texts, units, too_long = given
    return [_split_or_error(splitter, text, units, too_long) for text in texts]


def _split_or_error(splitter: Splits, text: object, units: Units, too_long: str) -> SplitText:
    try:
        return document_of(splitter, text, units, too_long=too_long)
    except InputError as problem:
        return problem


def _alike(one: Any, other: Any) -> bool:
    """Whether two documents, or parts of them, are the same throughout."""
    if type(one) is not type(other):
        return False
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and np.array_equal(one, other)
    if is_dataclass(one):
        names = [field.name for field in fields(one)]
        return all(_alike(getattr(one, name), getattr(other, name)) for name in names)
    return bool(str(one) == str(other) if isinstance(one, InputError) else one == other)
