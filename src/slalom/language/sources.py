"""Sources as one text with a span per source, and the text that shows some of them.

A source brings the whitespace before it. The title of a document is shown wherever any of its
sources is; text outside of the caller's spans is always shown.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, cast

import numpy as np

from slalom.classifiers.base import checked_str
from slalom.classifiers.text.units import caller_cuts, sentence_cuts, stripped, word_cuts
from slalom.document import BoolArray
from slalom.errors import InputError, Setting, UnknownNameError

BETWEEN = "\n\n"  # documents
BLANK_LINES = re.compile(r"\n\s*\n")
KINDS = ("sentence", "paragraph", "word")
ALWAYS, NO_UNIT = -1, -1

By = str | Sequence[Sequence[int]] | None
Given = str | Sequence[Any]


@dataclass(frozen=True)
class Piece:
    """Some of the text: a source, the title of a document, or what is always shown."""

    start: int
    end: int
    unit: int  # NO_UNIT: a title, or always shown
    document: int  # ALWAYS: shown whatever is left out

    @property
    def is_title(self) -> bool:
        return self.unit == NO_UNIT and self.document != ALWAYS


@dataclass(frozen=True, eq=False)
class Sources:
    """All sources end to end, and how to show some of them."""

    text: str
    pieces: tuple[Piece, ...]
    titles: tuple[str, ...]  # one per document, "" for none

    @property
    def spans(self) -> tuple[tuple[int, int], ...]:
        return tuple((one.start, one.end) for one in self.pieces if one.unit != NO_UNIT)

    @property
    def names(self) -> tuple[str, ...]:
        """The title of each source's document."""
        return tuple(self.titles[p.document] for p in self.pieces if p.unit != NO_UNIT)

    def shown(self, present: BoolArray) -> str:
        """The text with the marked sources alone."""
        documents = {p.document for p in self.pieces if p.unit != NO_UNIT and present[p.unit]}
        parts: list[str] = []
        reached, last = 0, -1
        for number, piece in enumerate(self.pieces):
            gap, reached = self.text[reached : piece.start], piece.end
            if piece.unit != NO_UNIT:
                on = bool(present[piece.unit])
            else:
                on = piece.document == ALWAYS or piece.document in documents
            if on:
                joint = gap or (" " if number != last + 1 else "")
                if last >= 0 and self.pieces[last].is_title:
                    joint = "\n"
                parts += [joint if parts else "", self.text[piece.start : piece.end]]
                last = number
        return "".join(parts)


def sources_of(given: Given, by: By = None) -> Sources:
    """One text, cut into sentences unless `by` says otherwise, or documents, each one source."""
    if isinstance(given, str):
        text = _checked(given, "the text of the sources")
        spans_are_given = not (by is None or isinstance(by, str))
        documents = [("", given if spans_are_given else text)]
        by = "sentence" if by is None else by
    elif isinstance(given, Sequence):
        documents = [_document(one, number) for number, one in enumerate(given, start=1)]
    else:
        raise InputError(
            f"sources must be one text or a list of documents, not {type(given).__name__}"
        )
    if not documents:
        raise InputError("there are no sources: give one text, or a list of documents")
    if not (by is None or isinstance(by, str)) and len(documents) > 1:
        raise InputError(
            f"spans cut one text, and {len(documents)} documents were given: "
            'join them, or cut each with by="sentence"'
        )
    found = _joined(documents, by)
    if len(found.spans) < 2:
        finer = {None: "sentence", "paragraph": "sentence", "sentence": "word"}
        further = finer.get(by if by is None or isinstance(by, str) else "sentence")
        cut = (", or cut it further (", Setting("by", further), ")") if further else ()
        raise InputError(
            "there is one source only, and nothing to tell it from: give several", *cut
        )
    return found


def _document(given: Any, number: int) -> tuple[str, str]:
    """Title and text: from a text, a pair, or a mapping with both."""
    name = f"source {number}"
    if isinstance(given, str):
        return "", _checked(given, name)
    if isinstance(given, Mapping) and "text" in given:
        given = (given.get("title") or "", given["text"])
    if isinstance(given, tuple) and len(given) == 2:
        title = " ".join(checked_str(given[0], f"the title of {name}").split())
        return title, _checked(given[1], f"{name} ({title})" if title else name)
    raise InputError(
        f'{name} must be a text, a pair (title, text) or {{"title": …, "text": …}}, '
        f"not {type(given).__name__}"
    )


def _checked(given: Any, name: str) -> str:
    text = checked_str(given, name).replace("\r\n", "\n").strip()
    if not text:
        raise InputError(f"{name} is empty: leave it out")
    return text


def _joined(documents: Sequence[tuple[str, str]], by: By) -> Sources:
    pieces: list[Piece] = []
    text = ""
    n_units = 0
    for number, (title, body) in enumerate(documents):
        text += BETWEEN if text else ""
        if title:
            pieces.append(Piece(len(text), len(text) + len(title), NO_UNIT, number))
            text += title + "\n"
        at, cuts = len(text), _cuts(body, by)
        for (_, before), (start, end) in pairwise([(0, 0), *cuts, (len(body), len(body))]):
            fixed = stripped(body, before, start)
            if fixed[0] < fixed[1]:
                pieces.append(Piece(at + fixed[0], at + fixed[1], NO_UNIT, ALWAYS))
            if end > start:
                pieces.append(Piece(at + start, at + end, n_units, number))
                n_units += 1
        text += body
    return Sources(text, tuple(pieces), tuple(title for title, _ in documents))


def _cuts(body: str, by: By) -> list[tuple[int, int]]:
    if by is None:
        return [(0, len(body))]
    if not isinstance(by, str):
        if not isinstance(by, Sequence | np.ndarray):
            raise InputError(
                Setting("by"), f" must be one of {', '.join(KINDS)} or a list of spans, not {by!r}"
            )
        return caller_cuts([body], cast(Sequence[Sequence[int]], by))[0]
    if by == "sentence":
        return sentence_cuts(body)
    if by == "word":
        return word_cuts(body)
    if by != "paragraph":
        raise UnknownNameError("kind of source", by, KINDS)
    borders = [0, *(gap.end() for gap in BLANK_LINES.finditer(body)), len(body)]
    cuts = [stripped(body, start, end) for start, end in pairwise(borders)]
    return [cut for cut in cuts if cut[0] < cut[1]]
