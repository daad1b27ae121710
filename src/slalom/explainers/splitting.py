"""From a text to the units that are explained: coarser ones where a text is long.

A fit costs the cube of the number of units, and nobody reads a thousand bars. Where the caller
does not say what the units are, a text of more than MANY becomes its sentences, if they make a
fair number, else runs of a few words; a note says so and how to get words all the same.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby

from slalom.classifiers.base import Classifier, Units, checked_text
from slalom.document import Document, Span, Text

MANY = 1000  # units; above it they are put together
AIM = 300  # units that a long text is put together into, about
FEWEST = 50  # sentences that make an explanation of a long text worth reading


def document_of(
    classifier: Classifier, text: object, units: Units, *, too_long: str = "error"
) -> Document:
    """The text as the classifier cuts it, with coarser units where there would be too many."""
    checked = checked_text(text)
    document = classifier.split(checked, units, too_long=too_long)
    if units is not None or document.n_units <= MANY:
        return document
    what, spans = _coarser(classifier, checked, document, too_long)
    coarse = classifier.split(checked, spans, too_long=too_long)
    note = (
        f"the text has {document.n_units} words and signs: its units are {coarse.n_units} {what}; "
        'units="word" explains every word, which takes much longer'
    )
    return replace(coarse, notes=(*coarse.notes, note))


def _coarser(
    classifier: Classifier, text: Text, document: Document, too_long: str
) -> tuple[str, Units]:
    sentences = classifier.split(text, "sentence", too_long=too_long)
    if FEWEST <= sentences.n_units <= MANY:
        return "sentences", "sentence"
    length = -(-document.n_units // AIM)
    return f"runs of {length} words", _runs(document.spans, length)


def _runs(spans: Sequence[Span], length: int) -> list[Span]:
    """Neighbours put together, never across the two sides of a pair."""
    runs: list[Span] = []
    for side, own in groupby(spans, key=lambda span: span[:-2]):
        together = list(own)
        for start in range(0, len(together), length):
            part = together[start : start + length]
            runs.append((*side, part[0][-2], part[-1][-1]))
    return runs
