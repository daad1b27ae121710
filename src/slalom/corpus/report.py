"""A run as one page: the effects of words, documents to look at, and where trust is low.

The page loads nothing and runs no script; text of the corpus is escaped. Every word links to
documents below, coloured by the same score; for the strongest words, every document is a point.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from math import isfinite
from typing import Any

import numpy as np

from slalom.corpus.folder import RunFolder
from slalom.corpus.survey import Findings, Survey, findings, survey_of
from slalom.views.html import document, shade, table
from slalom.views.numbers import counted, margin, number, percent, probability, r2
from slalom.views.reading import AGAINST, FAINT, FOR, label, visible

MAX_CHARACTERS = 4000  # of a document on the page
STYLE = (  # besides that of the views: tables in full, a chart that stays readable on a phone,
    # links that can be read in the dark
    ".slalom a{color:inherit}.slalom .scroll{max-height:none;margin-bottom:12px}"
    ".slalom .wide{overflow-x:auto}.slalom .wide .chart{min-width:600px}"
)
TRUSTED = ("exact", "high", "fair", "low")


def report(folder: RunFolder, by: str | None = None) -> str:
    """One HTML file about a finished run; `by` names an input column whose groups are compared."""
    survey = survey_of(folder, by)
    found = findings(survey)
    cards = Cards(survey.effect, survey.settings["target"])
    target = escape(label(survey.settings["target"]))

    def place_of(word: int) -> str | None:
        shown = found.examples.get(word)
        return cards.place(shown[0].row) if shown else None

    sections = [
        _section(
            f"The strongest words, for “{target}” to the right, against it to the left",
            f"<figure>{beeswarm(survey, found, place_of)}<figcaption>One point per document; the "
            f"stroke is a word's mean; a word links to a document. The effect is the score "
            f"“{escape(survey.effect)}”, in log-odds of the target.</figcaption></figure>",
        ),
        _section(f"Words that speak for “{target}”", _words(survey, found, found.agreed, cards)),
        _section(
            f"Words that speak {_other_side(survey)}", _words(survey, found, found.opposed, cards)
        ),
        _section("Much attention, little effect", _attended(survey, found, cards)),
        _section("Where trust is low", _doubtful(survey, found, cards)),
    ]
    if by is not None:
        sections.append(_section(f"By {escape(label(by))}", _groups(survey, found, cards)))
    if survey.problems:
        sections.append(_section("What could not be explained", _problems(survey)))
    sections.append(_section("Documents", cards.html()))
    return page(f"{survey.settings['model']} · corpus", _head(survey) + "".join(sections))


def page(title: str, body: str) -> str:
    """The frame of every page about runs."""
    content = f'<main class="slalom">\n{body}\n</main>'
    return document(f"{title} · SLALOM", content, extra=STYLE)


class Cards:
    """The documents that the page links to, each once."""

    def __init__(self, effect: str, target: str) -> None:
        self.effect, self.target = effect, target
        self.places: dict[tuple[str, str], int] = {}  # by id and text: ids may repeat
        self.rows: list[dict[str, Any]] = []

    def place(self, row: dict[str, Any]) -> str:
        """The document's place on the page, to which it is added."""
        place = self.places.setdefault((row["id"], row["text"]), len(self.rows))
        if place == len(self.rows):
            self.rows.append(row)
        return f"#d{place}"

    def link(self, row: dict[str, Any]) -> str:
        return f'<a href="{self.place(row)}">{escape(label(row["id"]))}</a>'

    def html(self) -> str:
        return "".join(self._card(at, row) for at, row in enumerate(self.rows))

    def _card(self, place: int, row: dict[str, Any]) -> str:
        quality = row["quality"]
        return (
            f'<figure id="d{place}"><p class="small"><b>{escape(label(row["id"]))}</b> · '
            f"{percent(probability(row['log_odds']))} “{escape(label(self.target))}” · "
            f"R² {r2(quality['r2'])}, trust "
            f"{escape(quality['trust'])}</p>{painted(row, self.effect)}</figure>"
        )


def painted(row: dict[str, Any], effect: str) -> str:
    """The text of a row, its units coloured by their effect."""
    scores = np.array(row["scores"][effect], dtype=float)
    peak = max(FAINT, float(np.abs(scores).max(initial=0.0)))
    sides = []
    for side, text in enumerate((row["text"], row["second_text"])):
        if text is None:
            continue
        parts, end = [], 0
        for span, score in zip(row["spans"], scores / peak, strict=True):
            if span["side"] != side or span["start"] > MAX_CHARACTERS:
                continue
            parts.append(escape(visible(text[end : span["start"]])))
            unit = escape(visible(text[span["start"] : span["end"]]))
            parts.append(f'<span class="w{shade(score)}">{unit}</span>')
            end = span["end"]
        rest = text[end:]
        parts.append(escape(visible(rest)) if end + len(rest) <= MAX_CHARACTERS else " …")
        sides.append(f'<p class="text" dir="auto">{"".join(parts)}</p>')
    return "".join(sides)


def _section(title: str, content: str) -> str:
    return f"<section><h2>{title}</h2>{content}</section>\n"


def _head(survey: Survey) -> str:
    settings = survey.settings
    n_failed = sum(survey.problems.values())
    trust = ", ".join(f"{name} {survey.trust[name]}" for name in TRUSTED if survey.trust[name])
    some = f"{survey.n_rows - n_failed} of " if n_failed else ""
    return (
        f'<h1 class="sentence">{some}{counted(survey.n_rows, "document")} explained for '
        f"“{escape(label(settings['target']))}”</h1>"
        f'<p class="small">{escape(label(settings["model"]))} · {escape(settings["method"])} · '
        f"trust: {escape(trust)} · {n_failed} could not be explained</p>\n"
    )


def _other_side(survey: Survey) -> str:
    """With two classes, against the target is for the other one."""
    target = survey.settings["target"]
    others = [name for name in survey.settings["labels"] if name != target]
    if len(others) == 1:
        return f"for “{escape(label(others[0]))}”"
    return f"against “{escape(label(target))}”"


def _words(survey: Survey, found: Findings, words: Sequence[int], cards: Cards) -> str:
    if not words:
        return "<p>No word in three or more documents clearly does so.</p>"
    lines = [
        (
            _word(survey, found, word, cards),
            _mean(survey.sums.mean[word], survey.sums.error[word]),
            f"{survey.sums.n[word]:.0f}",
            _links(found, word, cards),
        )
        for word in words
    ]
    order = '<p class="small">The strongest first; words in few documents rank lower.</p>'
    return order + table(["word", "mean effect", "documents", "look at"], lines)


def _mean(mean: float, error: float) -> str:
    shown = f" <small>{margin(float(error))}</small>" if isfinite(error) else ""
    return f"{number(float(mean))}{shown}"


def _word(survey: Survey, found: Findings, word: int, cards: Cards) -> str:
    """The word, linked to its first document: on a phone the other links are out of sight."""
    name = escape(label(survey.words[word]))
    shown = found.examples.get(word)
    return f'<a href="{cards.place(shown[0].row)}">{name}</a>' if shown else name


def _links(found: Findings, word: int, cards: Cards) -> str:
    return " · ".join(cards.link(example.row) for example in found.examples.get(word, []))


def _attended(survey: Survey, found: Findings, cards: Cards) -> str:
    if not survey.sums.attention.any():
        return "<p>The method of this run does not give importances.</p>"
    if not found.attended:
        return (
            "<p>No word in three or more documents draws much attention with next to no effect.</p>"
        )
    lines = [
        (
            _word(survey, found, word, cards),
            f"{survey.sums.attention[word] / survey.sums.n[word]:.1f} ×",
            _mean(survey.sums.mean[word], survey.sums.error[word]),
            f"{survey.sums.n[word]:.0f}",
            _links(found, word, cards),
        )
        for word in found.attended
    ]
    note = (
        '<p class="small">These words get more than an average share of the attention, but move '
        "the prediction less than a tenth as much as the strongest word: cues that may matter in "
        "other texts. Check before relying on this.</p>"
    )
    return note + table(["word", "attention", "mean effect", "documents", "look at"], lines)


def _doubtful(survey: Survey, found: Findings, cards: Cards) -> str:
    n_low, n = survey.trust["low"], sum(survey.trust.values())
    lead = f"<p>{n_low} of {n} explanations describe the classifier poorly.</p>"
    if not found.doubtful:
        return lead
    lines = [
        (cards.link(row), r2(row["quality"]["r2"]), str(row["quality"]["n_queries"]))
        for row in found.doubtful
    ]
    return lead + table(["document", "R²", "queries"], lines)


def _groups(survey: Survey, found: Findings, cards: Cards) -> str:
    lines = [
        (escape(label(name)), str(odds.n), _mean(odds.mean, odds.error))
        for name, odds in sorted(survey.group_odds.items())
    ]
    groups = table(["group", "documents", "mean log-odds"], lines)
    if not found.differing:
        return groups + "<p>No word differs clearly between groups.</p>"
    rows = [
        (
            _word(survey, found, one.word, cards),
            escape(label(one.group)),
            number(one.here),
            number(one.elsewhere),
            _mean(one.here - one.elsewhere, one.error),
            _links(found, one.word, cards),
        )
        for one in found.differing
    ]
    heads = ["word", "group", "there", "elsewhere", "difference", "look at"]
    note = (
        '<p class="small">The largest of many differences: some may be due to chance, even beyond '
        "two standard errors.</p>"
    )
    return groups + note + table(heads, rows)


def _problems(survey: Survey) -> str:
    lines = [(escape(visible(reason)), str(n)) for reason, n in survey.problems.most_common(10)]
    return table(["reason", "documents"], lines)


WIDTH, LEFT, RIGHT, LINE, RADIUS = 860, 150, 30, 30, 2.6
MAX_LENGTH = 18  # characters of a word


@dataclass(frozen=True)
class Scale:
    """From log-odds to horizontal positions; zero is always inside."""

    low: float
    high: float

    def across(self, effect: float) -> float:
        return LEFT + (effect - self.low) / (self.high - self.low) * (WIDTH - RIGHT - LEFT)


def beeswarm(survey: Survey, found: Findings, link: Callable[[int], str | None]) -> str:
    """The strongest words, one line each; `link` gives the place a word links to."""
    words = found.strongest
    effects = [0.0, *(effect for word in words for effect in found.points.get(word, []))]
    low, high = min(effects), max(effects)
    scale = Scale(low, high) if high > low else Scale(-1.0, 1.0)
    height = LINE * (len(words) + 1)
    lines = []
    for at, word in enumerate(words):
        line = _line(survey, word, found.points.get(word, []), LINE * (at + 0.5), scale)
        place = link(word)
        lines.append(line if place is None else f'<a href="{place}">{line}</a>')
    return (
        '<div class="wide">'
        f'<svg class="chart" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" role="img" '
        f'aria-label="Effects of the strongest words, one point per document">'
        f"{_axis(scale, height)}{''.join(lines)}</svg></div>"
    )


def _line(survey: Survey, word: int, points: Sequence[float], y: float, scale: Scale) -> str:
    name = label(survey.words[word])
    name = name if len(name) <= MAX_LENGTH else f"{name[: MAX_LENGTH - 1]}…"
    mean = float(survey.sums.mean[word])
    dots = "".join(
        f'<circle cx="{x:.1f}" cy="{y + up:.1f}" r="{RADIUS}" fill="{colour}" fill-opacity=".6"/>'
        for x, up, colour in _swarm(points, scale)
    )
    at = scale.across(mean)
    return (
        f"<g><title>{escape(name)}: mean {number(mean)} over {survey.sums.n[word]:.0f} "
        f'documents</title><text class="end" x="{LEFT - 12}" y="{y + 4:.0f}">{escape(name)}</text>'
        f'{dots}<path d="M{at:.1f} {y - 9:.0f}v18" stroke="currentColor" stroke-width="2"/></g>'
    )


def _swarm(points: Sequence[float], scale: Scale) -> list[tuple[float, float, str]]:
    """Each point as near to the line as the earlier points allow."""
    placed: list[tuple[float, float, str]] = []
    taken: dict[int, int] = {}
    for effect in sorted(points):
        x = scale.across(effect)
        column = int(x // (2 * RADIUS))
        n = taken.get(column, 0)
        taken[column] = n + 1
        up = min(LINE / 2 - 3, 2 * RADIUS * ((n + 1) // 2)) * (1 if n % 2 else -1)
        placed.append((x, up, (FOR if effect > 0 else AGAINST)[1]))
    return placed


def _axis(scale: Scale, height: float) -> str:
    parts = []
    for effect in dict.fromkeys((scale.low, 0.0, scale.high)):
        x = scale.across(effect)
        parts.append(f'<path d="M{x:.1f} 0V{height - LINE + 6}" stroke="#8886"/>')
        parts.append(f'<text class="mid tick" x="{x:.1f}" y="{height - 6}">{number(effect)}</text>')
    return "".join(parts)
