"""What is known of a classifier without its model: names, what it would read, how it splits a text.

Worker processes draw queries, split texts and fit with no more than this; torch is never loaded
there.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

from slalom.classifiers.base import Units, checked_text
from slalom.classifiers.huggingface.batching import TokenRows, answered, seen_rows
from slalom.classifiers.huggingface.encoding import Encoded, document_of
from slalom.document import Document, FloatArray, Queries, Text


@dataclass(frozen=True)
class Outline:
    """What a classifier reads; it neither splits nor answers."""

    name: str
    labels: tuple[str, ...]
    independent: bool

    def seen(self, document: Document, queries: Queries) -> list[Hashable]:
        return seen_rows(document, queries)

    def answered(
        self, asked: Sequence[tuple[Document, Queries]], ask: Callable[[TokenRows], FloatArray]
    ) -> list[FloatArray]:
        """Rows are put together here, and answered wherever `ask` takes them."""
        return answered(asked, ask)


_read: dict[str, Any] = {}  # the last tokenizer, by the digest of its file


@dataclass(frozen=True)
class Splitter:
    """The part of a classifier that splits."""

    path: str  # of the tokenizer
    digest: str  # of what the file holds: read once, wherever it lies
    makes_types: bool
    limit: int  # tokens that the model reads at once
    unknown: int | None  # the id that stands for whatever the tokenizer does not know

    def split(self, text: Text, units: Units = None, *, too_long: str = "error") -> Document:
        text = checked_text(text)
        sides = (text,) if isinstance(text, str) else text
        found = self._tokenizer().encode(*sides)
        types = found.type_ids if self.makes_types else [0] * len(found.ids)
        encoded = Encoded(found.ids, types, found.offsets, found.sequence_ids)
        return document_of(
            text, encoded, units, limit=self.limit, too_long=too_long, unknown=self.unknown
        )

    def _tokenizer(self) -> Any:
        """Nothing is cut off or padded, whatever its owner set."""
        if self.digest not in _read:
            from tokenizers import Tokenizer

            tokenizer = Tokenizer.from_file(self.path)
            tokenizer.no_truncation()
            tokenizer.no_padding()
            _read.clear()
            _read[self.digest] = tokenizer
        return _read[self.digest]
