"""A classifier whose absent words are replaced, instead of leaving a shorter text.

Each query is a subset of the units. Absent units are replaced by the mask token, once for each of
their tokens, or by a text of the caller's, as in shap's maskers. Positions of units stay the same.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, cast

import numpy as np

from slalom.classifiers.base import (
    REMOVE,
    Classifier,
    Delegating,
    Units,
    anew,
    described,
    fingerprint_of,
    remarks_on,
    text_logits,
    unpaid,
)
from slalom.document import BoolArray, Document, FloatArray, IntArray, Queries, Text
from slalom.errors import InputError, Setting


class Fills(Protocol):
    """A classifier of tokens, which lays out a document with a filler for every unit."""

    def with_fillers(self, document: Document, filler: str | None) -> Document:
        """Units 0 … n − 1 as they are, units n … 2 n − 1 what stands in their places."""
        ...


@dataclass(frozen=True, eq=False)
class Filled:
    """The frame of a document whose gaps are filled."""

    document: Document  # as the classifier split it
    doubled: Document | None  # with its fillers; None: a classifier of strings


class ReplacingClassifier(Delegating):
    """Puts `filler` in the place of every absent word; None: the model's mask token."""

    def __init__(self, classifier: Classifier, filler: str | None = None) -> None:
        self.classifier = classifier
        self.filler = filler
        if filler is None and not hasattr(classifier, "with_fillers"):
            raise InputError(
                f"{classifier.name} has no mask token: give a text for absent words, such as ",
                Setting("absent", "…"),
            )

    def __repr__(self) -> str:
        return f"ReplacingClassifier({described(self.classifier)}, {self.filler!r})"

    outline = None  # no process without the model can fill gaps

    @property
    def fingerprint(self) -> str | None:
        own = fingerprint_of(self.classifier)
        return own and f"{own}, absent {self.filler!r}"

    def anew(self, number: int) -> "ReplacingClassifier":
        return ReplacingClassifier(anew(self.classifier, number), self.filler)

    def split(self, text: Text, units: Units = None, *, too_long: str = "error") -> Document:
        document = self.classifier.split(text, units, too_long=too_long)
        doubled = None
        if hasattr(self.classifier, "with_fillers"):
            doubled = cast(Fills, self.classifier).with_fillers(document, self.filler)
        what = "the mask token" if self.filler is None else repr(self.filler)
        n_tokens = document.overhead + int((document if doubled is None else doubled).sizes.sum())
        return replace(
            document,
            sizes=np.zeros_like(document.sizes),  # a query costs the same, whatever it shows
            overhead=n_tokens,
            has_empty_query=True,
            frame=Filled(document, doubled),
            notes=(*document.notes, f"absent words were replaced by {what}, not removed"),
        )

    def seen(self, document: Document, queries: Queries) -> list[Hashable]:
        filled = _filled(document)
        if filled.doubled is not None:
            return self.classifier.seen(filled.doubled, _with_fillers(document, queries))
        return list(self._texts(filled.document, queries))

    def logits(self, asked: Sequence[tuple[Document, Queries]]) -> list[FloatArray]:
        doubled = [(_filled(document).doubled, document, queries) for document, queries in asked]
        if all(one is not None for one, _, _ in doubled):
            return self.classifier.logits(
                [(cast(Document, one), _with_fillers(d, q)) for one, d, q in doubled]
            )
        return [
            text_logits(self.classifier, self._texts(_filled(document).document, queries))
            for document, queries in asked
        ]

    def remarks(self, document: Document, queries: Queries, logits: FloatArray) -> tuple[str, ...]:
        return remarks_on(self.classifier, _filled(document).document, queries, logits)

    def unpaid(self, document: Document, queries: Queries) -> tuple[int, int] | None:
        inner = _filled(document).document
        cost = unpaid(self.classifier, inner, queries)
        if cost is None:
            return None
        return cost[0], max(cost[1], cost[0] * int(inner.n_tokens(inner.full())[0]))

    def internals(self) -> Any:
        raise InputError(
            "methods that look inside the model remove no words: leave out ", Setting("absent")
        )

    def _texts(self, document: Document, queries: Queries) -> list[Text]:
        present = _present(document, queries)
        if isinstance(document.text, str):
            return list(_rendered(document.text, document.spans, present, str(self.filler)))
        sides = np.array([span[0] for span in document.spans])
        rendered = [
            _rendered(
                side,
                [span[1:] for span in document.spans if span[0] == at],
                present[:, sides == at],
                str(self.filler),
            )
            for at, side in enumerate(document.text)
        ]
        return list(zip(*rendered, strict=True))


def _filled(document: Document) -> Filled:
    if not isinstance(document.frame, Filled):
        raise InputError("this document was split by another classifier: split it with this one")
    return document.frame


def _present(document: Document, queries: Queries) -> BoolArray:
    """(n_queries, n_units) which units each query shows; each once and in order, or an error."""
    n_units = document.n_units
    shown = queries < n_units
    rows = np.repeat(np.arange(len(queries)), shown.sum(axis=1))
    present = np.zeros((len(queries), n_units), dtype=bool)
    present[rows, queries[shown]] = True
    follows = shown[:, 1:] & (queries[:, 1:] <= queries[:, :-1])
    if follows.any():
        raise InputError(
            "this method changes the order of words or repeats them, which leaves no gap to fill: "
            "choose one that shows subsets of the text, such as 'slalom', or ",
            Setting("absent", REMOVE),
        )
    return present


def _with_fillers(document: Document, queries: Queries) -> IntArray:
    n_units = document.n_units
    units = np.arange(n_units, dtype=np.int32)
    return np.where(_present(document, queries), units, units + np.int32(n_units)).astype(np.int32)


def _rendered(
    text: str, spans: Sequence[tuple[int, ...]], present: BoolArray, filler: str
) -> list[str]:
    """The text of each row, with the filler in place of absent units."""
    parts: list[Any] = []
    end = 0
    for column, (start, stop) in enumerate(spans):
        parts.append(text[end:start])
        parts.append(np.where(present[:, column], text[start:stop], filler).tolist())
        end = stop
    parts.append(text[end:])
    return [
        "".join(part if isinstance(part, str) else part[row] for part in parts)
        for row in range(len(present))
    ]
