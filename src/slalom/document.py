"""A text cut into units, and queries as integer matrices of unit positions.

This part knows positions and which of them are equal; it knows nothing of classifiers,
methods or scores. A *query* is a row of positions in the order shown; the code END, nothing
follows, lies outside every position and so can never index silently.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slalom.errors import InputError

# As files are read by these, written out: from numpy 2.5 on NDArray is a name without its parts.
FloatArray = np.ndarray[tuple[Any, ...], np.dtype[np.float64]]
IntArray = np.ndarray[tuple[Any, ...], np.dtype[np.int32]]
BoolArray = np.ndarray[tuple[Any, ...], np.dtype[np.bool_]]
Queries = IntArray  # (n_queries, width)
Text = str | tuple[str, str]
Span = tuple[int, ...]  # (start, end), for a pair (side, start, end)

END = np.int32(2**31 - 1)
STEERING = {  # characters that set directions or break lines
    *(0x061C, 0x200E, 0x200F),
    *range(0x2028, 0x202F),
    *range(0x2066, 0x206A),
}


@dataclass(frozen=True, eq=False)
class Document:
    """What a classifier made of one text: its units, and which of them are the same feature."""

    text: Text
    units: tuple[str, ...]
    spans: tuple[Span, ...]
    keys: tuple[Hashable, ...]  # one per unit, what the classifier sees; ties units of documents
    features: IntArray  # (n_units,) numbered in order of first occurrence
    sizes: IntArray  # (n_units,) tokens that each unit costs
    overhead: int  # tokens every query costs besides: special tokens, prompt
    has_empty_query: bool
    frame: object  # what only its classifier reads to rebuild an input
    notes: tuple[str, ...] = ()
    windowed: bool = False  # longer than the model reads at once: read in windows
    n_unknown: int = 0  # units of which the classifier's tokenizer knows nothing

    @property
    def n_units(self) -> int:
        return len(self.units)

    @property
    def n_features(self) -> int:
        return int(self.features.max()) + 1 if self.n_units else 0

    def untied(self) -> "Document":
        """The same document with one feature per position."""
        return replace(self, features=np.arange(self.n_units, dtype=np.int32))

    def full(self) -> Queries:
        """The one query that shows everything."""
        return np.arange(self.n_units, dtype=np.int32)[None, :]

    def count(self, queries: Queries) -> FloatArray:
        """How often each feature occurs in each query."""
        n_queries, n_features = len(queries), self.n_features
        shown = queries < self.n_units
        rows = np.repeat(np.arange(n_queries), shown.sum(axis=1))
        cells = rows * n_features + self.features[queries[shown]]
        counts = np.bincount(cells, minlength=n_queries * n_features)
        return counts.reshape(n_queries, n_features).astype(np.float64)

    def n_tokens(self, queries: Queries) -> IntArray:
        """What each query costs in tokens through the model."""
        sizes = np.append(self.sizes, np.int32(0))  # END costs nothing
        shown = sizes.take(queries, mode="clip").sum(axis=1)
        return np.asarray(shown + self.overhead, dtype=np.int32)


def features_of(keys: Sequence[Hashable]) -> IntArray:
    """Equal keys get equal numbers, in order of first occurrence."""
    numbers: dict[Hashable, int] = {}
    return np.array([numbers.setdefault(key, len(numbers)) for key in keys], dtype=np.int32)


def masks_without(sets: Sequence[Sequence[int]], n_units: int) -> BoolArray:
    """(k, n_units): every unit shown but those of each set."""
    kept = np.ones((len(sets), n_units), dtype=bool)
    for row, removed in enumerate(sets):
        kept[row, list(removed)] = False
    return kept


def queries_from_masks(masks: BoolArray) -> Queries:
    """Keep the marked units in their order and close the gaps: (k, n_units) → (k, width)."""
    masks = np.asarray(masks, dtype=bool)
    lengths = masks.sum(axis=1)
    queries = np.full((len(masks), max(1, int(lengths.max(initial=0)))), END, dtype=np.int32)
    units = np.flatnonzero(masks) - np.repeat(np.arange(len(masks)) * masks.shape[1], lengths)
    queries[np.arange(queries.shape[1]) < lengths[:, None]] = units
    return queries


def stack(parts: Sequence[Queries]) -> Queries:
    """Put queries of different widths under each other."""
    width = max((part.shape[1] for part in parts), default=1)
    stacked = np.full((sum(map(len, parts)), width), END, dtype=np.int32)
    first = 0
    for part in parts:
        stacked[first : first + len(part), : part.shape[1]] = part
        first += len(part)
    return stacked


def row_keys(rows: NDArray[Any]) -> list[bytes]:
    """The bytes of each row, to tell rows apart."""
    contiguous = np.ascontiguousarray(rows)
    if not contiguous.size:
        return [b""] * len(contiguous)
    row = np.dtype((np.void, contiguous.shape[1] * contiguous.itemsize))
    keys: list[Any] = contiguous.view(row).ravel().tolist()
    return keys


def distinct(seen: Sequence[Hashable]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Where each distinct entry occurs first, and the number of each entry among the distinct."""
    numbers: dict[Hashable, int] = {}
    inverse = np.array([numbers.setdefault(entry, len(numbers)) for entry in seen], dtype=np.intp)
    first = np.zeros(len(numbers), dtype=np.intp)
    first[inverse[::-1]] = np.arange(len(seen))[::-1]
    return first, inverse


def with_fixed_parts(slots: IntArray, n_fixed: int, queries: Queries) -> NDArray[np.int64]:
    """Queries with the fixed parts put between the slots: (n_queries, width + n_fixed).

    Fixed parts (special tokens, separators, text that is never removed) are always shown. A
    document is laid out as  fixed 0 · slot 0 · fixed 1 · slot 1 · … · fixed k,  and every unit
    lives in one slot: one text has one, a pair two; text that the caller froze splits a slot in
    two. Units keep their numbers; then come the fixed parts, then nothing at all. Whether a part
    is token ids or characters is not known here.
    """
    n_units = len(slots)
    units = queries[queries != END]
    unknown = (units < 0) | (units >= n_units)
    if unknown.any():
        raise InputError(f"a query shows unit {units[unknown][0]} of a document with {n_units}")
    absent = n_units + n_fixed
    shown = queries.astype(np.int64)
    shown[queries == END] = absent
    fixed = np.tile(np.arange(n_units, absent), (len(queries), 1))
    if n_fixed == 2:  # one slot: nothing to sort
        return np.concatenate([fixed[:, :1], shown, fixed[:, 1:]], axis=1)
    places = 2 * np.concatenate([slots, np.full(n_fixed + 1, n_fixed)])[shown] + 1
    order = np.argsort(np.concatenate([places, 2 * (fixed - n_units)], axis=1), kind="stable")
    return np.take_along_axis(np.concatenate([shown, fixed], axis=1), order, axis=1)


def visible(text: str) -> str:
    """The text with everything that could steer a terminal or a browser made visible."""
    lines = text.replace("\r\n", "\n").replace("\t", "    ")
    return "".join(c if c == "\n" else visible_sign(c) for c in lines)


def visible_sign(character: str) -> str:
    code = ord(character)
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "␡"
    if 0x80 <= code < 0xA0:
        return f"\\x{code:02x}"
    if code in STEERING or 0xD800 <= code < 0xE000:
        return f"\\u{code:04x}"
    return character
