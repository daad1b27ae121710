"""From queries to rows of token ids, and from rows to batches of like lengths: integers only.

A frame holds the token ids of a document: its units, then what is always shown. Rows longer than a
model reads are cut into windows, and scores averaged over them. Every window begins and ends with
the tokens that are always shown (special ones, the prompt); between them it holds as many others
as fit. Windows are full and evenly spaced, so that they overlap by at least a quarter. A row that
fits, as most queries do, is one window and asked as it is. This part knows no model and no
tokenizer.
"""

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slalom.document import (
    Document,
    FloatArray,
    IntArray,
    Queries,
    with_fixed_parts,
)
from slalom.errors import InputError

LongArray = NDArray[np.int64]
TOLERATED_PADDING = 0.05  # share of a batch's tokens
SMALL = 1 / 16  # of a full batch: to start another one takes a device as long
OVERLAP = 0.25  # of a window, at least
MIN_ROOM = 4  # tokens of the text in a window; fewer say nothing
MAX_ROWS = 2**15  # per batch: attention kernels of CUDA refuse 2**16, "invalid argument"


@dataclass(frozen=True, eq=False)
class Frame:
    """Token ids of units, fixed parts and nothing at all, in this order."""

    ids: IntArray  # all parts end to end
    types: IntArray  # token types, beside the ids
    starts: IntArray  # (n_units + n_slots + 2,)
    lengths: IntArray  # (n_units + n_slots + 2,)
    slots: IntArray  # (n_units,)

    @classmethod
    def of(cls, ids: NDArray[Any], types: NDArray[Any], sizes: NDArray[Any], slots: Any) -> "Frame":
        """Parts end to end, `sizes` of them; nothing at all comes on top."""
        lengths = np.append(sizes, 0).astype(np.int32)
        starts = np.cumsum(lengths) - lengths
        return cls(*(np.asarray(part, np.int32) for part in (ids, types, starts, lengths, slots)))

    @property
    def n_units(self) -> int:
        return len(self.slots)

    @property
    def n_fixed(self) -> int:
        return len(self.starts) - self.n_units - 1


@dataclass(frozen=True, eq=False)
class TokenRows:
    """Rows of token ids of different lengths, end to end."""

    ids: IntArray
    types: IntArray
    lengths: LongArray  # (n_rows,)

    @cached_property
    def starts(self) -> LongArray:
        """(n_rows,) where each row begins."""
        return np.asarray(np.cumsum(self.lengths) - self.lengths)

    @property
    def n_tokens(self) -> int:
        return len(self.ids)

    def __reduce__(self) -> tuple[Any, ...]:
        """Between processes numbers take no more bytes than they need."""
        types = _narrow(self.types) if self.types.any() else None
        return _widened, (_narrow(self.ids), types, _narrow(self.lengths))


def _narrow(numbers: NDArray[Any]) -> NDArray[Any]:
    """In the smallest type that holds them; none is negative."""
    return numbers.astype(np.min_scalar_type(int(numbers.max(initial=0))))


def _widened(ids: NDArray[Any], types: NDArray[Any] | None, lengths: NDArray[Any]) -> TokenRows:
    wide = ids.astype(np.int32)
    return TokenRows(
        wide,
        np.zeros_like(wide) if types is None else types.astype(np.int32),
        lengths.astype(np.int64),
    )


def assemble(frame: Frame, queries: Queries) -> TokenRows:
    """The rows a model reads for these queries, fixed parts included."""
    placed = with_fixed_parts(frame.slots, frame.n_fixed, queries)
    shown = placed != frame.n_units + frame.n_fixed
    parts, n_parts = placed[shown], shown.sum(axis=1)
    sizes = frame.lengths[parts]
    source = frame.starts[parts]
    if len(sizes) and (sizes != 1).any():
        ends = np.cumsum(sizes, dtype=np.int64)
        source = np.arange(int(ends[-1])) + np.repeat(source - (ends - sizes), sizes)
    begins = np.cumsum(n_parts) - n_parts  # no row is empty: it has its fixed parts
    lengths = np.add.reduceat(sizes, begins, dtype=np.int64) if len(queries) else n_parts
    typed = frame.types.any()
    types = frame.types[source] if typed else np.zeros(len(source), dtype=np.int32)
    return TokenRows(frame.ids[source], types, lengths)


def joined(parts: Sequence[TokenRows]) -> TokenRows:
    """Rows of several documents under each other."""
    return TokenRows(
        np.concatenate([part.ids for part in parts]),
        np.concatenate([part.types for part in parts]),
        np.concatenate([part.lengths for part in parts]),
    )


def row_bytes(rows: TokenRows, *, with_types: bool) -> list[bytes]:
    """Each row as bytes: equal rows, equal bytes."""
    starts = rows.starts * rows.ids.itemsize
    ends = starts + rows.lengths * rows.ids.itemsize
    ids, types = rows.ids.tobytes(), rows.types.tobytes()
    borders = zip(starts.tolist(), ends.tolist(), strict=True)
    if with_types:
        return [ids[start:end] + types[start:end] for start, end in borders]
    return [ids[start:end] for start, end in borders]


def seen_rows(document: Document, queries: Queries) -> list[Hashable]:
    """The rows of ids that a model reads, each as bytes."""
    frame = frame_in(document)
    return list(row_bytes(assemble(frame, queries), with_types=bool(frame.types.any())))


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


def in_row_order(lengths: LongArray, *, budget: int) -> Iterator[LongArray]:
    """Row numbers as they come, at most `budget` tokens and MAX_ROWS rows per batch."""
    ends = np.cumsum(lengths)
    start = 0
    while start < len(lengths):
        room = budget + (int(ends[start - 1]) if start else 0)
        end = min(start + MAX_ROWS, int(np.searchsorted(ends, room, side="right")))
        end = max(end, start + 1)
        yield np.arange(start, end)
        start = end


def batches(
    lengths: LongArray, *, budget: int, padding: bool, small: float = SMALL, alike: int = 0
) -> Iterator[LongArray]:
    """Row numbers, longest rows first, at most `budget` tokens per batch, padding included,
    and at most MAX_ROWS rows.

    A batch ends where padding would exceed TOLERATED_PADDING, unless it is still so small (the
    share `small` of the budget) that starting another one costs more than the padding. Rows of at
    most `alike` tokens are never padded.
    """
    order = np.argsort(-lengths, kind="stable")
    ends = np.concatenate([[0], np.cumsum(lengths[order])])
    worthwhile = max(1, int(small * budget))
    start = 0
    while start < len(order):
        longest = max(1, int(lengths[order[start]]))
        most = min(len(order), start + max(1, min(budget // longest, MAX_ROWS)))
        if padding and longest > alike:
            n_rows = np.arange(1, most - start + 1)
            real = ends[start + 1 : most + 1] - ends[start]
            kept = (real >= (1 - TOLERATED_PADDING) * longest * n_rows) | (
                longest * n_rows <= worthwhile
            )
            end = start + max(1, int(kept.sum()))  # both conditions hold for the first rows only
        else:
            end = start + int(np.searchsorted(-lengths[order[start:most]], -longest, side="right"))
        yield order[start:end]
        start = end
