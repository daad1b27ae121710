"""Any function from texts to probabilities or logits, scikit-learn pipelines included.

This part knows strings: units are words by default, each brings the gap before it, and the
full query shows exactly the original text.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slalom.classifiers.base import TOO_LONG, Units, checked_logits, checked_text
from slalom.classifiers.batching import in_place
from slalom.classifiers.units import Cut, cuts_of, stripped
from slalom.document import (
    HOLE,
    BoolArray,
    Document,
    FloatArray,
    IntArray,
    Queries,
    Text,
    features_of,
)
from slalom.errors import ClassifierError, InputError, UnknownNameError

GIVES = ("probabilities", "logits")
CLIP = 1e-6


@dataclass(frozen=True, eq=False)
class Strings:
    """A document's pieces in order: units, and text between them that is always shown."""

    shown: NDArray[np.object_]  # (3 · n_pieces + 1,): with its gap, after a space, bare; nothing
    has_gap: BoolArray  # (n_pieces,)
    slots: IntArray  # (n_units,) how many fixed pieces come before
    pieces: NDArray[np.int64]  # unit and fixed numbers of `in_place` → piece, or −1
    tail: str  # what follows the last piece

    @property
    def n_fixed(self) -> int:
        return len(self.pieces) - len(self.slots) - 2


class FunctionClassifier:
    """`f` takes n texts and gives (n, n_classes), or (n,) for the second of two classes."""

    def __init__(
        self,
        f: Callable[[list[str]], Any],
        labels: Sequence[str] | None = None,
        gives: str = "probabilities",
        name: str | None = None,
        batch_size: int | None = None,
    ) -> None:
        if not callable(f):
            raise InputError(f"a function of a list of texts is needed, not {type(f).__name__}")
        if gives not in GIVES:
            raise UnknownNameError("kind of scores in gives=", gives, GIVES)
        if batch_size is not None and batch_size < 1:
            raise InputError(
                f"batch_size must be at least 1, or None for no limit, not {batch_size}"
            )
        if labels is not None and (isinstance(labels, str) or len(labels) < 2):
            raise InputError(f"labels must be a list of two names or more, not {labels!r}")
        self.f = f
        self.gives = gives
        self.batch_size = batch_size
        self._labels = None if labels is None else tuple(str(label) for label in labels)
        self._name = name

    @property
    def name(self) -> str:
        return self._name or str(getattr(self.f, "__qualname__", type(self.f).__name__))

    @property
    def labels(self) -> tuple[str, ...]:
        return self._labels or self._counted_labels

    @property
    def independent(self) -> bool:
        return False

    def split(self, text: Text, units: Units = None, *, too_long: str = "error") -> Document:
        if too_long not in TOO_LONG:  # a function reads texts of any length
            raise UnknownNameError("choice for too_long", too_long, TOO_LONG)
        text = checked_text(text)
        if not isinstance(text, str):
            raise InputError("a function reads one text, not a pair: join the two sides")
        if units == "token":
            raise InputError("a function has no tokens: its units are word, sentence or spans")
        cuts = cuts_of(text, "word" if units is None else units)[0]
        keys = tuple(text[start:end] for start, end in cuts)
        return Document(
            text=text,
            units=keys,
            spans=tuple(cuts),
            keys=keys,
            features=features_of(keys),
            sizes=np.ones(len(cuts), dtype=np.int32),
            overhead=0,
            can_be_empty=True,
            frame=_strings(text, cuts),
        )

    def seen(self, document: Document, queries: Queries) -> list[Hashable]:
        return list(_texts(document, queries))

    def logits(self, asked: Sequence[tuple[Document, Queries]]) -> list[FloatArray]:
        texts = [_texts(document, queries) for document, queries in asked]
        scores = self([text for part in texts for text in part])
        return np.split(scores, np.cumsum([len(part) for part in texts])[:-1]) if texts else []

    def remarks(self, document: Document, queries: Queries, logits: FloatArray) -> tuple[str, ...]:
        if self.gives != "probabilities":
            return ()
        bounds = np.log([CLIP * (1 + 1e-6), 1 - CLIP * (1 - 1e-6)])
        if ((logits > bounds[0]) & (logits < bounds[1])).all():
            return ()
        return (f"probabilities of 0 or 1 were clipped at {CLIP:.0e}".replace("e-0", "e-"),)

    def __call__(self, texts: Sequence[str]) -> FloatArray:
        if isinstance(texts, str):
            raise InputError("give a list of texts, not one str")
        n_classes = len(self.labels)
        step = self.batch_size or max(1, len(texts))
        parts = [self._scores(list(texts[at : at + step])) for at in range(0, len(texts), step)]
        for part in parts:
            checked_logits(part, n_queries=len(part), n_classes=n_classes, name=self.name)
        return np.concatenate(parts) if parts else np.zeros((0, n_classes))

    @cached_property
    def _counted_labels(self) -> tuple[str, ...]:
        return tuple(str(index) for index in range(self._scores(["a"]).shape[1]))

    def _scores(self, texts: list[str]) -> FloatArray:
        """Ask the function once: (n, n_classes) logits."""
        try:
            answer = self.f(texts)
        except Exception as problem:
            raise ClassifierError(
                f"{self.name} raised {type(problem).__name__}: {problem}"
            ) from problem
        table = _table(answer, n_texts=len(texts), name=self.name)
        if self.gives == "logits":
            return np.hstack([np.zeros_like(table), table]) if table.shape[1] == 1 else table
        return _log_probabilities(table, name=self.name)


def _table(answer: Any, *, n_texts: int, name: str) -> FloatArray:
    """The function's answer as one row a text."""
    if hasattr(answer, "detach"):  # a torch tensor, wherever it lives
        answer = answer.detach().cpu().double()
    try:
        table = np.asarray(answer, dtype=np.float64)
    except (TypeError, ValueError) as problem:
        raise ClassifierError(f"{name} returned no array of numbers: {problem}") from problem
    if table.ndim == 1:
        table = table[:, None]
    if table.ndim != 2 or len(table) != n_texts:
        raise ClassifierError(
            f"{name} returned shape {np.shape(answer)} for {n_texts} texts: "
            f"expected ({n_texts}, n_classes), one row a text and one column a class"
        )
    return checked_logits(table, n_queries=n_texts, n_classes=table.shape[1], name=name)


def _log_probabilities(table: FloatArray, *, name: str) -> FloatArray:
    if table.min(initial=0) < -1e-9 or table.max(initial=1) > 1 + 1e-6:
        raise ClassifierError(
            f"{name} returned {table.min():.3g} to {table.max():.3g}, which are no probabilities: "
            'give gives="logits" if these are logits'
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


def _strings(text: str, cuts: Sequence[Cut]) -> Strings:
    pieces: list[Cut] = []
    units: list[int] = []
    fixed = [-1]
    slots: list[int] = []
    for (_, before), (start, end) in pairwise([(0, 0), *cuts, (len(text), -1)]):
        frozen = stripped(text, before, start)
        if frozen[0] < frozen[1]:
            if slots and slots[-1] == len(fixed) - 1:
                fixed.append(-1)
            fixed[-1] = len(pieces)
            pieces.append(frozen)
        if end > start:
            units.append(len(pieces))
            slots.append(len(fixed) - 1)
            pieces.append((start, end))
    if slots[-1] == len(fixed) - 1:
        fixed.append(-1)
    bare = [text[start:end] for start, end in pieces]
    gaps = [text[end:start] for (_, end), (start, _) in pairwise([(0, 0), *pieces])]
    with_gap = [gap + piece for gap, piece in zip(gaps, bare, strict=True)]
    return Strings(
        shown=np.array([*with_gap, *(" " + piece for piece in bare), *bare, ""], dtype=object),
        has_gap=np.array([bool(gap) for gap in gaps]),
        slots=np.array(slots, dtype=np.int32),
        pieces=np.array([*units, *fixed, -1, -1]),
        tail=text[pieces[-1][1] :],
    )


def _texts(document: Document, queries: Queries) -> list[str]:
    """The text of each query; the full query gives the original, to the last space."""
    strings = document.frame
    if not isinstance(strings, Strings):
        raise InputError("this document was split by another classifier: split it with this one")
    if (queries == HOLE).any():
        raise ClassifierError("a function has no mask: remove units instead of masking them")
    pieces = strings.pieces[in_place(strings.slots, strings.n_fixed, queries)]
    order = np.argsort(pieces < 0, axis=1, kind="stable")
    pieces = np.take_along_axis(pieces, order, axis=1)  # (n_queries, width), −1 at the end
    before = np.pad(pieces[:, :-1], ((0, 0), (1, 0)), constant_values=-1)
    n_pieces = len(strings.has_gap)
    form = np.where(strings.has_gap[pieces] | (before == pieces - 1), 0, 1)
    form[:, 0] = np.where(pieces[:, 0] == 0, 0, 2)  # a text does not begin with an inner gap
    shown = strings.shown[np.where(pieces < 0, -1, form * n_pieces + pieces)]
    texts = ["".join(row) for row in shown.tolist()]
    if not strings.tail:
        return texts
    lengths = (pieces >= 0).sum(axis=1)
    closes = (lengths > 0) & (pieces[np.arange(len(pieces)), lengths - 1] == n_pieces - 1)
    return [
        text + strings.tail if close else text for text, close in zip(texts, closes, strict=True)
    ]
