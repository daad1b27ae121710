"""Reviews in which people marked the decisive words (Yelp-HAT, Sen et al. 2020).

Of the 2–4 annotators of a review, "consensus" words were marked by all. Words are found in the
text one after the other and kept as spans of characters.
"""

import csv
import html
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from training.data import Reviews

from training import data

PARTS = ("hat_50_words", "hat_100_words", "hat_200_words", "hat_mixed")
WORD = re.compile(r"<span(?P<marks>[^>]*)>(?P<word>.*?)</span>", re.DOTALL)
TIMES = 3  # that a restaurant review is read beside the films


@dataclass(frozen=True)
class Marked:
    text: str
    label: int
    spans: tuple[tuple[int, int], ...]  # of the consensus words


def marked_reviews(folder: Path | None, part: str = PARTS[0]) -> list[Marked]:
    """Reviews with their consensus words; those without any are left out."""
    found = []
    for text, (label, marks) in _annotated(folder, part).items():
        if consensus := set.intersection(*marks):
            found.append(Marked(text, label, tuple(sorted(consensus))))
    return found


def explained_texts(folder: Path | None, n_documents: int) -> frozenset[str]:
    return frozenset(review.text for review in marked_reviews(folder)[:n_documents])


def unmarked_reviews(folder: Path | None, but: Collection[str]) -> Reviews:
    """All reviews but these, as something to learn from."""
    found: dict[str, int] = {}
    for part in PARTS:
        if data.stored(folder, f"yelp_hat/{part}.csv") is not None:
            found |= {text: label for text, (label, _) in _annotated(folder, part).items()}
    kept = {text: label for text, label in found.items() if text not in but}
    return Reviews(tuple(kept) * TIMES, tuple(kept.values()) * TIMES)


def _annotated(folder: Path | None, part: str) -> dict[str, tuple[int, list[set[tuple[int, int]]]]]:
    path = data.stored(folder, f"yelp_hat/{part}.csv")
    if path is None:
        raise FileNotFoundError(
            f"found no yelp_hat/{part}.csv: give a folder that holds the files of Yelp-HAT "
            "(Sen et al. 2020) with --data; no package carries them"
        )
    found: dict[str, tuple[int, list[set[tuple[int, int]]]]] = {}
    with data.opened(path) as lines:
        for row in csv.DictReader(lines):
            text = row["Input.text"]
            _, marks = found.setdefault(text, (int(row["Input.label"]), []))
            marks.append(set(_spans(text, row["Answer.html_output"])))
    return found


def _spans(text: str, page: str) -> Iterator[tuple[int, int]]:
    """Where the marked words stand in the text, found one after the other."""
    reached = 0
    for match in WORD.finditer(page):
        word = html.unescape(match["word"]).strip()
        start = text.find(word, reached) if word else -1
        if start >= 0:
            reached = start + len(word)
            if "active" in match["marks"]:
                yield start, reached
