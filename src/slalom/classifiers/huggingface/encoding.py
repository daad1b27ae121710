"""A tokenizer's reading of a text, and the document that comes of it.

This part knows tokens and whose characters they are; it knows no model. Special tokens and
prompts are the same to it: tokens that belong to no side of the text and are always shown.
"""

from collections.abc import Hashable
from dataclasses import dataclass, replace

import numpy as np

from slalom.classifiers.base import TOO_LONG, Units
from slalom.classifiers.huggingface.batching import Frame, TokenRows, frame_in, note_on, windowed
from slalom.classifiers.text.units import Run, cuts_of, grouped_runs, spanned_runs, token_runs
from slalom.document import Document, Span, Text, features_of
from slalom.errors import InputError, Setting, UnknownNameError


@dataclass(frozen=True)
class Encoded:
    """What the tokenizer makes of a text: ids, token types, and whose characters they are."""

    ids: list[int]
    types: list[int]
    offsets: list[tuple[int, int]]
    sides: list[int | None]  # None: a special token, or one of the prompt

    @property
    def n_fixed(self) -> int:
        return self.sides.count(None)

    def open_ended(self) -> "Encoded":
        """Without the special tokens that would end the text: what follows is still to come."""
        n = len(self.ids)
        while n and self.sides[n - 1] is None:
            n -= 1
        return Encoded(self.ids[:n], self.types[:n], self.offsets[:n], self.sides[:n])

    def row(self) -> TokenRows:
        """All of it, as one row."""
        return TokenRows(
            np.array(self.ids, dtype=np.int32),
            np.array(self.types, dtype=np.int32),
            np.array([len(self.ids)]),
        )


def runs_of(text: Text, encoded: Encoded, units: Units) -> list[list[Run]]:
    """The tokens of each side, as units and as text that is always shown."""
    sides = [text] if isinstance(text, str) else list(text)
    tokens = []
    for number, side in enumerate(sides):
        places = [place for place, owner in enumerate(encoded.sides) if owner == number]
        offsets = [encoded.offsets[place] for place in places]
        tokens.append(token_runs(side, offsets, places[0] if places else 0))
    if units == "token":
        return tokens
    cuts = cuts_of(text, "word" if units is None else units)
    if units is None or isinstance(units, str):
        return [grouped_runs(runs, cut) for runs, cut in zip(tokens, cuts, strict=True)]
    return [spanned_runs(*parts) for parts in zip(sides, tokens, cuts, strict=True)]


def document_of(
    text: Text,
    encoded: Encoded,
    units: Units,
    *,
    limit: int,
    too_long: str,
    unknown: int | None = None,
) -> Document:
    """The units of a text in their places; `limit` is what the model reads at once.

    `unknown` is the id that stands for whatever the tokenizer does not know.
    """
    if too_long not in TOO_LONG:
        raise UnknownNameError("too_long", too_long, TOO_LONG)
    runs = runs_of(text, encoded, units)
    if not any(not run.fixed for side in runs for run in side):
        raise InputError(
            "the tokenizer makes no tokens of this text alone: give it at least one word"
        )
    if len(encoded.ids) <= limit:
        return _document(text, runs, encoded, unknown=unknown)
    if too_long == "error" or len(runs) > 1:
        raise InputError(*_too_long(encoded, limit, pair=len(runs) > 1))
    if too_long == "truncate":
        kept, note = _first_runs(runs[0], encoded, limit)
        return replace(_document(text, [kept], encoded, unknown=unknown), notes=(note,))
    document = _document(text, runs, encoded, unknown=unknown)
    places = [place for place, side in enumerate(encoded.sides) if side is not None]
    after = len(encoded.ids) - 1 - places[-1]
    frame = windowed(frame_in(document), places[0], after, limit=limit)
    note = note_on(frame, len(encoded.ids))
    return replace(document, frame=frame, notes=(note,), windowed=True)


def _too_long(encoded: Encoded, limit: int, *, pair: bool) -> tuple[str | Setting, ...]:
    n_fixed = encoded.n_fixed
    sentence = (
        f"the text has {len(encoded.ids) - n_fixed} tokens and {n_fixed} special ones, the model "
        f"reads at most {limit}: shorten the text"
    )
    if pair:
        return (sentence,)
    cut, read = Setting("too_long", "truncate"), Setting("too_long", "windows")
    return sentence, ", cut it with ", cut, " or read it with ", read


def _first_runs(runs: list[Run], encoded: Encoded, limit: int) -> tuple[list[Run], str]:
    """As many runs as the model reads, and a note about the rest."""
    n_fixed, first = encoded.n_fixed, runs[0].first
    kept = [run for run in runs if run.last - first <= limit - n_fixed]
    if not any(not run.fixed for run in kept):
        raise InputError(
            f"the first unit alone has more tokens than the model reads ({limit}): "
            "choose smaller units"
        )
    n_kept, n_text = kept[-1].last - first, len(encoded.ids) - n_fixed
    return kept, f"cut to the first {n_kept} of {n_text} tokens"


def _document(
    text: Text, runs: list[list[Run]], encoded: Encoded, *, unknown: int | None
) -> Document:
    sides = [text] if isinstance(text, str) else list(text)
    pair = len(sides) > 1
    frame = _laid_out(runs, encoded)
    shown = [(side, run) for side, row in enumerate(runs) for run in row if not run.fixed]
    ids = [tuple(encoded.ids[run.first : run.last]) for _, run in shown]
    spans: list[Span] = [(run.start, run.end) for _, run in shown]
    keys: list[Hashable] = list(ids)
    if pair:
        spans = [(side, *span) for (side, _), span in zip(shown, spans, strict=True)]
        keys = [(side, key) for (side, _), key in zip(shown, ids, strict=True)]
    n_units = len(shown)
    overhead = int(frame.lengths[n_units:].sum())
    return Document(
        text=text,
        units=tuple(sides[side][run.start : run.end] for side, run in shown),
        spans=tuple(spans),
        keys=tuple(keys),
        features=features_of(keys),
        sizes=frame.lengths[:n_units],
        overhead=overhead,
        has_empty_query=overhead > 0,
        frame=frame,
        n_unknown=sum(set(unit) == {unknown} for unit in ids) if unknown in encoded.ids else 0,
    )


def _laid_out(runs: list[list[Run]], encoded: Encoded) -> Frame:
    """Units in their slots, and between them special tokens and text that is always shown."""
    units = [run for row in runs for run in row if not run.fixed]
    first, last = (np.array(ends) for ends in tuple(zip(*units, strict=True))[:2])
    always = np.array([side is None for side in encoded.sides])
    for run in (run for row in runs for run in row if run.fixed):
        always[run.first : run.last] = True
    sides = np.array([encoded.sides[run.first] for run in units])
    opens = np.append(True, (first[1:] != last[:-1]) | (sides[1:] != sides[:-1]))  # another slot
    sizes = last - first
    shown = np.arange(sizes.sum()) + np.repeat(first - (np.cumsum(sizes) - sizes), sizes)
    fixed = np.flatnonzero(always)
    part = np.searchsorted(first[opens], fixed)  # those before the first slot, the second …
    order = np.append(shown, fixed)
    return Frame.of(
        np.array(encoded.ids)[order],
        np.array(encoded.types)[order],
        np.append(sizes, np.bincount(part, minlength=opens.sum() + 1)),
        np.cumsum(opens) - 1,
    )
