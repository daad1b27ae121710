"""What is known of a classifier without its model: names, and what it would read.

Worker processes draw queries and fit with no more than this; torch is never loaded there.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import NoReturn

from slalom.classifiers.base import Units
from slalom.classifiers.huggingface.batching import seen_rows
from slalom.document import Document, Queries, Text
from slalom.errors import ClassifierError


@dataclass(frozen=True)
class Outline:
    """A classifier that cannot answer."""

    name: str
    labels: tuple[str, ...]
    independent: bool

    def seen(self, document: Document, queries: Queries) -> list[Hashable]:
        return seen_rows(document, queries)

    def split(self, text: Text, units: Units = None, *, too_long: str = "error") -> NoReturn:
        raise ClassifierError(f"{self.name} is here without its tokenizer")

    def logits(self, asked: Sequence[tuple[Document, Queries]]) -> NoReturn:
        raise ClassifierError(f"{self.name} is here without its model")
