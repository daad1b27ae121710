"""Texts split by a tokenizer that lies in a file: worker processes do it without torch."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from slalom.classifiers.base import Units, checked_text
from slalom.classifiers.huggingface.encoding import Encoded, document_of
from slalom.document import Document, Text


@dataclass(frozen=True)
class Splitter:
    """The part of a classifier that splits."""

    path: str  # of the tokenizer
    makes_types: bool
    limit: int  # tokens that the model reads at once
    unknown: int | None  # the id that stands for whatever the tokenizer does not know

    def split(self, text: Text, units: Units = None, *, too_long: str = "error") -> Document:
        text = checked_text(text)
        sides = (text,) if isinstance(text, str) else text
        found = _tokenizer_in(self.path).encode(*sides)
        types = found.type_ids if self.makes_types else [0] * len(found.ids)
        encoded = Encoded(found.ids, types, found.offsets, found.sequence_ids)
        return document_of(
            text, encoded, units, limit=self.limit, too_long=too_long, unknown=self.unknown
        )


@lru_cache(maxsize=2)
def _tokenizer_in(path: str) -> Any:
    """Nothing is cut off or padded, whatever its owner set."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(path)
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer
