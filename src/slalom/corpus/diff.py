"""Compare two runs: two models on one corpus, or one model on two corpora.

Words are compared by their mean effects and sorted by the difference less two of its standard
errors. If both runs read the same input, documents are compared too, row by row.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from heapq import nlargest
from html import escape
from itertools import chain, zip_longest
from typing import Any

import numpy as np

from slalom.corpus.folder import RunFolder
from slalom.corpus.report import page, painted
from slalom.corpus.run import OTHER_MODEL, in_words
from slalom.corpus.survey import CLEAR, MIN_DOCUMENTS, Survey, batches, survey_of
from slalom.errors import FileError, InputError
from slalom.views.html import escaped, table
from slalom.views.numbers import ROUNDING, counted, margin, number
from slalom.views.reading import label

N_SHOWN = 30


@dataclass(frozen=True)
class WordDifference:
    """The mean effect of a word in two runs."""

    word: str
    first: float
    second: float
    error: float  # of the difference
    n_first: int
    n_second: int


@dataclass(frozen=True)
class Moved:
    """A document that two models score differently."""

    rows: tuple[dict[str, Any], dict[str, Any]]

    @property
    def name(self) -> str:
        return str(self.rows[0]["id"])

    @property
    def first(self) -> float:
        """Log-odds of the target."""
        return float(self.rows[0]["log_odds"])

    @property
    def second(self) -> float:
        return float(self.rows[1]["log_odds"])


@dataclass(frozen=True)
class Diff:
    """What differs between two runs."""

    settings: tuple[str, ...]
    words: tuple[WordDifference, ...]  # the largest clear difference first
    n_words: int  # that could be compared
    n_documents: int  # that could be compared; 0: the inputs differ
    n_flipped: int  # on the other side of 50 % in B
    moved: tuple[Moved, ...]  # the farthest first
    effect: str  # the score that both runs have

    def facts(self) -> list[str]:
        """The differences in sentences."""
        lines = [*self.settings] or ["the same settings"]
        lines.append(self._words_in_words())
        if self.n_documents:
            are = "is" if self.n_flipped == 1 else "are"
            lines.append(
                f"{self.n_flipped} of {counted(self.n_documents, 'document')} {are} on the other "
                "side of 50 % in the second run"
            )
        return lines

    def _words_in_words(self) -> str:
        if not self.n_words:
            return f"no word is in {MIN_DOCUMENTS} documents or more of both runs"
        differ = "differs" if 1 in (len(self.words), self.n_words) else "differ"
        chance = "; some of that may be chance" if self.words else ""
        return (
            f"{len(self.words)} of {counted(self.n_words, 'common word')} {differ} by "
            f"{CLEAR:g} standard errors or more{chance}"
        )

    def word_table(self) -> tuple[list[str], list[list[str]]]:
        heads = ["word", "A", "B", "B−A", "documents A", "documents B"]
        lines = [
            [
                label(one.word),
                number(one.first),
                number(one.second),
                f"{number(one.second - one.first)} {margin(one.error)}",
                str(one.n_first),
                str(one.n_second),
            ]
            for one in self.words[:N_SHOWN]
        ]
        return heads, lines

    def document_table(self) -> tuple[list[str], list[list[str]]]:
        lines = [[label(one.name), number(one.first), number(one.second)] for one in self.moved]
        return ["document", "log-odds A", "log-odds B"], lines

    def html(self) -> str:
        facts = "".join(f"<li>{escape(fact)}</li>" for fact in self.facts())
        body = f'<h1 class="sentence">Two runs</h1><ul>{facts}</ul>'
        if self.words:
            heads, lines = self.word_table()
            body += f"<h2>Words</h2>{table(heads, escaped(lines))}"
        if self.moved:
            heads, lines = self.document_table()
            linked = [
                [f'<a href="#d{at}">{escape(name)}</a>', *numbers]
                for at, (name, *numbers) in enumerate(lines)
            ]
            body += f"<h2>Documents that moved most</h2>{table(heads, linked)}"
            body += "".join(self._card(at, one) for at, one in enumerate(self.moved))
        return page("Two runs", body)

    def _card(self, at: int, moved: Moved) -> str:
        """One document as both runs paint it."""
        sides = "".join(
            f'<p class="small"><b>{side}</b> {number(row["log_odds"])}</p>'
            f"{painted(row, self.effect)}"
            for side, row in zip("AB", moved.rows, strict=True)
        )
        name = escape(label(moved.name))
        return f'<figure id="d{at}"><p class="small"><b>{name}</b></p>{sides}</figure>'


def diff(first: RunFolder, second: RunFolder) -> Diff:
    """Compare two finished runs with the same target."""
    surveys = survey_of(first), survey_of(second)
    if surveys[0].settings["target"] != surveys[1].settings["target"]:
        raise InputError(
            f"the runs explain different targets, {surveys[0].settings['target']!r} and "
            f"{surveys[1].settings['target']!r}: their scores cannot be compared"
        )
    if surveys[0].effect != surveys[1].effect:
        raise InputError(
            f"the runs have no effect in common: {surveys[0].effect!r} and {surveys[1].effect!r}; "
            "use methods that give the same score"
        )
    words, n_words = _words(*surveys)
    same_input = surveys[0].settings["input"] == surveys[1].settings["input"]
    n_documents, n_flipped, moved = _documents(first, second) if same_input else (0, 0, ())
    return Diff(
        _differing(*surveys), words, n_words, n_documents, n_flipped, moved, surveys[0].effect
    )


def _words(first: Survey, second: Survey) -> tuple[tuple[WordDifference, ...], int]:
    rows = {word: row for row, word in enumerate(second.words)}
    common = [(a, rows[word]) for a, word in enumerate(first.words) if word in rows]
    if not common:
        return (), 0
    a, b = np.array(common).T
    enough = np.minimum(first.sums.n[a], second.sums.n[b]) >= MIN_DOCUMENTS
    a, b = a[enough], b[enough]
    gap = second.sums.mean[b] - first.sums.mean[a]
    error = np.hypot(first.sums.error[a], second.sums.error[b])
    sure = np.abs(gap) - CLEAR * error
    order = [at for at in np.argsort(-sure, kind="stable").tolist() if sure[at] > ROUNDING]
    found = tuple(
        WordDifference(
            first.words[a[at]],
            float(first.sums.mean[a[at]]),
            float(second.sums.mean[b[at]]),
            float(error[at]),
            int(first.sums.n[a[at]]),
            int(second.sums.n[b[at]]),
        )
        for at in order
    )
    return found, len(a)


def _documents(first: RunFolder, second: RunFolder) -> tuple[int, int, tuple[Moved, ...]]:
    """How many documents both have, how many changed sides, and those that moved most."""
    n_documents = n_flipped = 0

    def apart() -> Iterator[Moved]:
        nonlocal n_documents, n_flipped
        for rows in zip_longest(_rows(first), _rows(second)):  # both in the input's order
            if None in rows:
                lost = first if rows[0] is None else second
                raise FileError(f"{lost.path} has lost rows: repeat the command that made it")
            if any(row["problem"] is not None for row in rows):
                continue
            one = Moved(rows)
            n_documents += 1
            n_flipped += (one.first > 0) != (one.second > 0)
            if one.first != one.second:
                yield one

    moved = nlargest(N_SHOWN, apart(), key=lambda one: abs(one.second - one.first))
    return n_documents, n_flipped, tuple(moved)


def _rows(folder: RunFolder) -> Iterator[dict[str, Any]]:
    return chain.from_iterable(batches(folder))


def _differing(first: Survey, second: Survey) -> tuple[str, ...]:
    names = [name for name in first.settings if name not in ("input", "fingerprint")]
    differences = [
        f"{name}: {in_words(first.settings[name])} in A, {in_words(second.settings.get(name))} in B"
        for name in names
        if first.settings[name] != second.settings.get(name)
    ]
    model, other = first.settings["model"], second.settings["model"]
    keys = [run.settings.get("fingerprint") for run in (first, second)]
    if model == other and None not in keys and keys[0] != keys[1]:
        differences.insert(0, f"model: {model!r} has {OTHER_MODEL} in B")
    if first.settings["input"] != second.settings["input"]:
        differences.append("the inputs differ")
    return tuple(differences)
