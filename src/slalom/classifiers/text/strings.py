"""Queries as plain text, exactly as a function gets them, spaces included.

A unit includes the whitespace before it. If it has none and follows a different unit than in the
text, a space is added. Text between the caller's spans is always shown. The two sides of a pair are
built separately.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from slalom.classifiers.text.units import Cut, cuts_of, stripped
from slalom.document import (
    END,
    BoolArray,
    Document,
    IntArray,
    Queries,
    Span,
    Text,
    features_of,
    with_fixed_parts,
)
from slalom.errors import InputError


@dataclass(frozen=True)
class TextOutline:
    """A classifier of texts without its function: what a worker process needs of it."""

    name: str
    labels: tuple[str, ...]

    def seen(self, document: Document, queries: Queries) -> list[Hashable]:
        return list(texts_of(document, queries))


@dataclass(frozen=True, eq=False)
class Strings:
    """The pieces of one text in order: units, and text between them that is always shown."""

    whole: str
    shown: NDArray[np.object_]  # (3 · n_pieces + 1,): with its gap, after a space, bare; then ""
    has_gap: BoolArray  # (n_pieces,)
    slots: IntArray  # (n_units,) how many fixed pieces come before
    pieces: NDArray[np.int64]  # unit and fixed numbers of `with_fixed_parts` → piece, or −1
    tail: str  # what follows the last piece

    @property
    def n_units(self) -> int:
        return len(self.slots)

    @property
    def n_fixed(self) -> int:
        return len(self.pieces) - len(self.slots) - 2


def document_of_strings(text: Text, units: str | Sequence[Span]) -> Document:
    """A text or a pair split into words, sentences or the caller's spans."""
    sides = (text,) if isinstance(text, str) else text
    cuts = cuts_of(text, units)
    owned = [(side, cut) for side, row in enumerate(cuts) for cut in row]
    shown = tuple(sides[side][start:end] for side, (start, end) in owned)
    pair = len(sides) > 1
    keys = [(side, unit) if pair else unit for (side, _), unit in zip(owned, shown, strict=True)]
    return Document(
        text=text,
        units=shown,
        spans=tuple((side, *cut) if pair else cut for side, cut in owned),
        keys=tuple(keys),
        features=features_of(keys),
        sizes=np.ones(len(shown), dtype=np.int32),
        overhead=0,
        has_empty_query=True,
        frame=tuple(_strings(side, row) for side, row in zip(sides, cuts, strict=True)),
    )


def texts_of(document: Document, queries: Queries) -> list[Text]:
    """The text, or the pair, of each query; the full query gives the original."""
    frame = document.frame
    if not isinstance(frame, tuple) or not all(isinstance(side, Strings) for side in frame):
        raise InputError("this document was split by another classifier: split it with this one")
    if len(frame) == 1:
        return list(_texts(frame[0], queries))
    border = frame[0].n_units
    if ((queries < 0) | ((queries >= document.n_units) & (queries < END))).any():
        raise InputError(f"a query shows a unit outside the {document.n_units} of this document")
    first = np.where(queries < border, queries, END).astype(np.int32)
    second = np.where((queries >= border) & (queries < END), queries - border, END)
    sides = (_texts(frame[0], first), _texts(frame[1], second.astype(np.int32)))
    return list(zip(*sides, strict=True))


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
    if slots and slots[-1] == len(fixed) - 1:
        fixed.append(-1)
    bare = [text[start:end] for start, end in pieces]
    gaps = [text[end:start] for (_, end), (start, _) in pairwise([(0, 0), *pieces])]
    with_gap = [gap + piece for gap, piece in zip(gaps, bare, strict=True)]
    return Strings(
        whole=text,
        shown=np.array([*with_gap, *(" " + piece for piece in bare), *bare, ""], dtype=object),
        has_gap=np.array([bool(gap) for gap in gaps]),
        slots=np.array(slots, dtype=np.int32),
        pieces=np.array([*units, *fixed, -1, -1]),
        tail=text[pieces[-1][1] :] if pieces else "",
    )


def _texts(strings: Strings, queries: Queries) -> list[str]:
    if not strings.n_units:  # a side without spans, or empty
        return [strings.whole] * len(queries)
    pieces = strings.pieces[with_fixed_parts(strings.slots, strings.n_fixed, queries)]
    order = np.argsort(pieces < 0, axis=1, kind="stable")
    pieces = np.take_along_axis(pieces, order, axis=1)  # (n_queries, width), −1 at the end
    before = np.pad(pieces[:, :-1], ((0, 0), (1, 0)), constant_values=-1)
    n_pieces = len(strings.has_gap)
    form = np.where(strings.has_gap[pieces] | (before == pieces - 1), 0, 1)
    form[:, 0] = np.where(pieces[:, 0] == 0, 0, 2)  # no text begins with the gap of a later piece
    shown = strings.shown[np.where(pieces < 0, -1, form * n_pieces + pieces)]
    texts = ["".join(row) for row in shown.tolist()]
    if not strings.tail:
        return texts
    lengths = (pieces >= 0).sum(axis=1)
    ends_text = (lengths > 0) & (pieces[np.arange(len(pieces)), lengths - 1] == n_pieces - 1)
    return [
        text + strings.tail if ends else text for text, ends in zip(texts, ends_text, strict=True)
    ]
