"""Many texts split, by worker processes where these explain them, too.

To split a text takes the process that holds the model about a millisecond, which it lacks beside
a GPU. Workers have the classifier's tokenizer in a file and split texts ahead of those that are
explained. The first of their documents are compared with those that are made here, and whatever
goes wrong there is done here.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import numpy as np

from slalom.classifiers.base import Classifier, Units
from slalom.document import Document, Text
from slalom.errors import InputError
from slalom.explainers.splitting import Splits, document_of
from slalom.surrogates.pool import submit

SPLIT_HERE = 64  # texts: for fewer of them no worker need read a tokenizer
TEXTS_PER_TASK = 32
TASKS_AHEAD = 8  # they wait their turn among documents that are explained
SLOW_SECONDS = 0.25  # for texts of one task to come: nobody shall wait for more of them

Found = Document | InputError


@dataclass(frozen=True, eq=False)
class Split:
    """How texts become documents."""

    classifier: Classifier
    units: Units
    too_long: str
    shared: Callable[[Sequence[Document]], bool]  # whether workers explain documents like these

    def each(self, texts: Iterable[Text]) -> Iterator[Found]:
        """Each text's document, or what is wrong with the text."""
        left, first = iter(texts), []
        for text in islice(left, SPLIT_HERE):
            found = self._here(text)
            if isinstance(found, Document):
                first.append(found)
            yield found
        group = _next_group(left)
        if group and len(group) == TEXTS_PER_TASK and first and self.shared(first):
            yield from self._by_workers(group, left)
        else:
            yield from map(self._here, group)
        yield from map(self._here, left)

    def _here(self, text: object) -> Found:
        return _found(self.classifier, text, self.units, self.too_long)

    def _by_workers(self, group: list[Text], left: Iterator[Text]) -> Iterator[Found]:
        """A group of texts and what follows, as long as texts come quickly."""
        with TemporaryDirectory(prefix="slalom-") as folder:
            splitter = self._splitter(Path(folder), group)
            begun: deque[tuple[list[Text], Future[list[Found]]]] = deque()
            try:
                while splitter is not None and group:
                    task = (splitter, group, self.units, self.too_long)
                    begun.append((group, submit(_split_there, task)))
                    group = _next_group(left) if len(group) == TEXTS_PER_TASK else []
                    if len(begun) > TASKS_AHEAD:
                        yield from self._of(*begun.popleft())
                while begun:
                    yield from self._of(*begun.popleft())
            finally:
                for _, future in begun:
                    future.cancel()
        yield from map(self._here, group)

    def _splitter(self, folder: Path, group: Sequence[Text]) -> Splits | None:
        """A part of the classifier's own class, if it splits these texts as the classifier does."""
        made: Any = getattr(type(self.classifier), "splitter", None)  # not that of a wrapped one
        if made is None:
            return None
        with suppress(Exception):  # whatever it is: they can be split here
            splitter: Splits = made(self.classifier, folder)
            here = map(self._here, group)
            there = _split_there((splitter, group, self.units, self.too_long))
            if all(map(_alike, here, there)):
                return splitter
        return None

    def _of(self, group: list[Text], future: "Future[list[Found]]") -> list[Found]:
        """What a worker found; what it could not do is done here."""
        try:
            return future.result()
        except Exception:
            return list(map(self._here, group))


def _next_group(texts: Iterator[Text]) -> list[Text]:
    """The next texts; fewer than TEXTS_PER_TASK where they end, or come slowly."""
    group: list[Text] = []
    start = perf_counter()
    for text in texts:
        group.append(text)
        if len(group) == TEXTS_PER_TASK or perf_counter() - start > SLOW_SECONDS:
            break
    return group


def _split_there(given: tuple[Splits, Sequence[Text], Units, str]) -> list[Found]:
    splitter, texts, units, too_long = given
    return [_found(splitter, text, units, too_long) for text in texts]


def _found(splitter: Splits, text: object, units: Units, too_long: str) -> Found:
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
    if hasattr(one, "__dataclass_fields__"):
        return all(
            _alike(getattr(one, name), getattr(other, name)) for name in one.__dataclass_fields__
        )
    if isinstance(one, InputError):
        return str(one) == str(other)
    return bool(one == other)
