"""Texts longer than a model reads: rows cut into windows, scores averaged.

This part knows rows of ids. Every window begins and ends with the tokens that are always
shown (special ones, the prompt); between them it holds as many others as fit. Windows are
full and evenly spaced, so that they overlap by at least a quarter. A row that fits, as most
queries do, is one window and asked as it is.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from slalom.classifiers.huggingface.batching import Frame, LongArray, TokenRows, assemble, joined
from slalom.document import Document, FloatArray, Queries
from slalom.errors import InputError

OVERLAP = 0.25  # of a window, at least
MIN_ROOM = 4  # tokens of the text in a window; fewer say nothing


@dataclass(frozen=True, eq=False)
class Windowed:
    """A frame whose rows may be longer than the model reads."""

    frame: Frame
    before: int  # tokens every window begins with
    after: int  # tokens it ends with
    room: int  # tokens between them

    @property
    def overlap(self) -> int:
        return int(self.room * OVERLAP)

    @property
    def limit(self) -> int:
        return self.before + self.room + self.after

    def starts(self, length: int) -> LongArray:
        """Where the windows of a row begin, counted from its first token of the text."""
        n = length - self.before - self.after
        if n <= self.room:
            return np.zeros(1, dtype=np.int64)
        step = self.room - self.overlap
        n_windows = 1 + -(-(n - self.room) // step)
        return np.linspace(0, n - self.room, n_windows).round().astype(np.int64)


def windowed(frame: Frame, before: int, after: int, *, limit: int) -> Windowed:
    room = limit - before - after
    if room < MIN_ROOM:
        raise InputError(
            f"the model reads {limit} tokens, of which {before + after} are special ones or the "
            "prompt: too few are left for windows, shorten the prompt"
        )
    return Windowed(frame, before, after, room)


def note_on(frame: Windowed, n_tokens: int) -> str:
    """What a reader must know about the full text."""
    n_windows = len(frame.starts(n_tokens))
    return (
        f"read in {n_windows} windows of {frame.room} tokens, overlapping by at least "
        f"{frame.overlap}; scores are averages over the windows"
    )


def frame_in(document: Document) -> Frame:
    """The frame of a document that was split by tokens."""
    frame = document.frame
    if isinstance(frame, Windowed):
        return frame.frame
    if not isinstance(frame, Frame):
        raise InputError("this document was split by another classifier: split it with this one")
    return frame


def answered(
    asked: Sequence[tuple[Document, Queries]], ask: Callable[[TokenRows], FloatArray]
) -> list[FloatArray]:
    """One row of scores per query, all windows of all documents asked in one go."""
    parts = [
        in_windows(assemble(frame_in(document), queries), document.frame)
        for document, queries in asked
    ]
    if not parts:
        return []
    scores = ask(joined([rows for rows, _ in parts]))
    ends = np.cumsum([len(rows.lengths) for rows, _ in parts])[:-1]
    return [
        _means(part, owners, len(queries))
        for part, (_, owners), (_, queries) in zip(
            np.split(scores, ends), parts, asked, strict=True
        )
    ]


def in_windows(rows: TokenRows, frame: object) -> tuple[TokenRows, LongArray]:
    """The rows a model can read, and the row that each of them is a window of."""
    n_rows = len(rows.lengths)
    if not isinstance(frame, Windowed) or not (rows.lengths > frame.limit).any():
        return rows, np.arange(n_rows)
    sources, lengths, owners = [], [], []
    for number, (begin, length) in enumerate(zip(rows.starts, rows.lengths, strict=True)):
        body = min(frame.room, int(length) - frame.before - frame.after)
        head = begin + np.arange(frame.before)
        tail = begin + length - frame.after + np.arange(frame.after)
        for start in frame.starts(int(length)):
            inside = begin + frame.before + start + np.arange(body)
            sources.append(np.concatenate([head, inside, tail]))
            lengths.append(frame.before + body + frame.after)
            owners.append(number)
    source = np.concatenate(sources)
    return TokenRows(rows.ids[source], rows.types[source], np.array(lengths)), np.array(owners)


def _means(scores: FloatArray, owners: LongArray, n_rows: int) -> FloatArray:
    if len(scores) == n_rows:
        return scores
    sums = np.zeros((n_rows, scores.shape[1]))
    np.add.at(sums, owners, scores)
    return sums / np.bincount(owners, minlength=n_rows)[:, None]
