"""Two runs beside each other: two models on one corpus, or one model on two corpora.

Words are compared by their mean effects, in standard errors of the difference. Where both runs
read the same input, documents are compared too, row by row.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import chain
from typing import Any

import numpy as np

from slalom.corpus.findings import CLEAR, MIN_DOCUMENTS
from slalom.corpus.folder import RunFolder
from slalom.corpus.report import page, table
from slalom.corpus.run import OTHER_MODEL
from slalom.corpus.survey import Survey, batches, survey_of
from slalom.errors import InputError
from slalom.views.numbers import counted, margin, number
from slalom.views.reading import label

N_SHOWN = 30


@dataclass(frozen=True)
class WordDifference:
    """What a word does in two runs, in the mean over documents."""

    word: str
    first: float
    second: float
    error: float  # of the difference
    n_first: int
    n_second: int


@dataclass(frozen=True)
class Moved:
    """A document that two models see differently."""

    name: str
    first: float  # log-odds of the target
    second: float


@dataclass(frozen=True)
class Diff:
    """What differs between two runs."""

    settings: tuple[str, ...]
    words: tuple[WordDifference, ...]  # the clearest first
    n_words: int  # that could be compared
    n_documents: int  # that could be compared; 0: the inputs differ
    n_flipped: int  # on the other side of even odds
    moved: tuple[Moved, ...]  # the farthest first

    def facts(self) -> list[str]:
        """What to know, in sentences."""
        lines = [*self.settings] or ["the same settings"]
        differ = "differs" if len(self.words) == 1 else "differ"
        lines.append(
            f"{len(self.words)} of {counted(self.n_words, 'common word')} {differ} by "
            f"{CLEAR:g} standard errors or more{': some may by chance' if self.words else ''}"
        )
        if self.n_documents:
            are = "is" if self.n_flipped == 1 else "are"
            lines.append(
                f"{self.n_flipped} of {counted(self.n_documents, 'document')} {are} on the other "
                "side of even odds"
            )
        return lines

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
        lines = [
            [label(one.name), number(one.first), number(one.second)] for one in self.moved[:N_SHOWN]
        ]
        return ["document", "log-odds A", "log-odds B"], lines

    def html(self) -> str:
        facts = "".join(f"<li>{escape(fact)}</li>" for fact in self.facts())
        body = f'<h1 class="sentence">Two runs</h1><ul>{facts}</ul>'
        if self.words:
            body += f"<h2>Words</h2>{_escaped(*self.word_table())}"
        if self.moved:
            body += f"<h2>Documents that moved most</h2>{_escaped(*self.document_table())}"
        return page("Two runs", body)


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
    rows = list(_odds(first, second)) if same_input else []
    flipped = [one for one in rows if (one.first > 0) != (one.second > 0)]
    apart = [one for one in rows if one.first != one.second]
    moved = sorted(apart, key=lambda one: -abs(one.second - one.first))[:N_SHOWN]
    return Diff(_differing(*surveys), words, n_words, len(rows), len(flipped), tuple(moved))


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
    clear = np.abs(gap) / np.maximum(error, 1e-9)
    order = [at for at in np.argsort(-clear, kind="stable").tolist() if clear[at] >= CLEAR]
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


def _odds(first: RunFolder, second: RunFolder) -> Iterator[Moved]:
    """Both runs keep the order of the input, so that rows meet without being looked up."""
    for mine, theirs in zip(_rows(first), _rows(second), strict=True):
        if mine["problem"] is None and theirs["problem"] is None:
            yield Moved(mine["id"], mine["log_odds"], theirs["log_odds"])


def _rows(folder: RunFolder) -> Iterator[dict[str, Any]]:
    return chain.from_iterable(batches(folder))


def _differing(first: Survey, second: Survey) -> tuple[str, ...]:
    names = [name for name in first.settings if name not in ("input", "fingerprint")]
    differences = [
        f"{name}: {first.settings[name]!r} in A, {second.settings.get(name)!r} in B"
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


def _escaped(heads: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    return table(heads, [[escape(cell) for cell in line] for line in lines])
