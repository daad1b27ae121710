"""From texts to the units that are explained: coarser ones where a text is long.

A fit costs the cube of the number of units, and nobody reads a thousand bars. Where the caller
does not choose the units, a text of more than MAX_UNITS words is split into its sentences, if they
are neither too few nor too many, else into runs of a few words; a note says so, and how to get
words nevertheless.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby

from slalom.classifiers.base import Classifier, Units, checked_text
from slalom.classifiers.text.units import would_have_words
from slalom.document import Document, Span, Text

MAX_UNITS = 1000  # above it coarser units are taken
N_RUNS = 300  # of words, about, where sentences do not serve
NO_WORDS = (
    "units are characters or pieces of the tokenizer, since this script puts no spaces between "
    "words: with  pip install 'slalom-xai[words]'  they are words"
)


def document_of(
    classifier: Classifier, text: object, units: Units, *, too_long: str = "error"
) -> Document:
    """The text as the classifier cuts it, with coarser units where there would be too many."""
    checked = checked_text(text)
    document = classifier.split(checked, units, too_long=too_long)
    if units in (None, "word") and would_have_words("".join(checked)):
        document = replace(document, notes=(*document.notes, NO_WORDS))
    if units is not None or document.n_units <= MAX_UNITS:
        return document
    what, spans = _coarser(classifier, checked, document, too_long)
    coarse = classifier.split(checked, spans, too_long=too_long)
    note = (
        f"the text has {document.n_units} words and signs, so its units are {coarse.n_units} "
        f"{what}; explaining every word is possible, but takes much longer"
    )
    return replace(coarse, notes=(*coarse.notes, note))


def _coarser(
    classifier: Classifier, text: Text, document: Document, too_long: str
) -> tuple[str, Units]:
    sentences = classifier.split(text, "sentence", too_long=too_long)
    if 50 <= sentences.n_units <= MAX_UNITS:  # fewer would make a poor explanation
        return "sentences", "sentence"
    length = -(-document.n_units // N_RUNS)
    return f"runs of {length} words", _runs(document.spans, length)


def _runs(spans: Sequence[Span], length: int) -> list[Span]:
    """Spans of `length` consecutive units, never across the two sides of a pair."""
    runs: list[Span] = []
    for side, own in groupby(spans, key=lambda span: span[:-2]):
        units = list(own)
        for start in range(0, len(units), length):
            part = units[start : start + length]
            runs.append((*side, part[0][-2], part[-1][-1]))
    return runs
