"""The single-layer attention model as a classifier that every method can explain.

Two classes: the log-odds of "positive" are f. Absence is replacement by the unknown word
(attention_model.py), so every query costs the same T_max positions.
"""

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from slalom.classifiers.base import TOO_LONG, Units, checked_text
from slalom.classifiers.text.units import Cut, cuts_of
from slalom.document import Document, FloatArray, Queries, Text, features_of
from slalom.errors import InputError, Setting, UnknownNameError
from slalom.theory.attention_model import AttentionModel, EncodedText, input_ids

if TYPE_CHECKING:
    from slalom.theory.attention_torch import AttentionInternals


def words_of(text: str) -> list[str]:
    """The words that the classifier cuts a text into, punctuation included."""
    return [text[start:end] for start, end in cuts_of(text, "word")[0]]


class AttentionClassifier:
    """Splits a text into words and runs the model on them; its internals are open to methods."""

    name = "single-layer attention"
    labels = ("negative", "positive")

    def __init__(self, model: AttentionModel) -> None:
        self.model = model

    def split(self, text: Text, units: Units = None, *, too_long: str = "error") -> Document:
        text = checked_text(text)
        if isinstance(text, tuple):
            raise InputError("this model reads one text at a time, not a pair")
        words, notes = self._within(cuts_of(text, "word")[0], too_long=too_long)
        cuts = cuts_of(text, "word" if units in (None, "token") else units)[0]
        cuts = [cut for cut in cuts if cut[0] < words[-1][1]]
        if not cuts:
            raise InputError("all spans lie beyond the words that the model reads")
        ids = self.model.ids([text[start:end] for start, end in words])[: len(words)]
        owner = np.array([_unit_of(word, cuts) for word in words], dtype=np.int32)
        keys = [tuple(ids[owner == unit].tolist()) for unit in range(len(cuts))]
        if () in keys:
            start, end = cuts[keys.index(())]
            raise InputError(f"the span {(start, end)} has no word of its own: spans hold words")
        n_unknown = int((ids == self.model.unknown).sum())
        if n_unknown:
            notes = (*notes, f"{n_unknown} of {len(ids)} words are unknown to the model")
        return Document(
            text=text,
            units=tuple(text[start:end] for start, end in cuts),
            spans=tuple(cuts),
            keys=tuple(keys),
            features=features_of(keys),
            sizes=np.zeros(len(cuts), dtype=np.int32),  # every position is computed anyway
            overhead=self.model.n_positions,
            has_empty_query=True,
            frame=EncodedText(ids, owner),
            notes=notes,
            n_unknown=sum(set(key) == {self.model.unknown} for key in keys),
        )

    def _within(self, words: list[Cut], *, too_long: str) -> tuple[list[Cut], tuple[str, ...]]:
        n_positions = self.model.n_positions
        if too_long not in TOO_LONG:
            raise UnknownNameError("too_long", too_long, TOO_LONG)
        if len(words) <= n_positions:
            return words, ()
        if too_long == "truncate":
            cut = f"the text was cut after {n_positions} of {len(words)} words"
            return words[:n_positions], (cut,)
        raise InputError(
            f"the text has {len(words)} words and the model {n_positions} positions: "
            "shorten it, or give ",
            Setting("too_long", "truncate"),
        )

    def seen(self, document: Document, queries: Queries) -> list[Hashable]:
        return [row.tobytes() for row in input_ids(self.model, document, queries)]

    def logits(self, asked: Sequence[tuple[Document, Queries]]) -> list[FloatArray]:
        scores = [
            self.model(input_ids(self.model, document, queries)) for document, queries in asked
        ]
        return [np.column_stack([np.zeros(len(part)), part]) for part in scores]

    def internals(self) -> "AttentionInternals":
        """What gradient and attention methods ask for."""
        from slalom.theory.attention_torch import AttentionInternals

        return AttentionInternals(self.model)


def _unit_of(word: Cut, cuts: Sequence[Cut]) -> int:
    """The first unit that shares a character with this word, or −1."""
    return next((n for n, (start, end) in enumerate(cuts) if start < word[1] and word[0] < end), -1)
