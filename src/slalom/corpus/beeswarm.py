"""Points per word, side by side where they would lie on each other: an SVG without a script."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

from slalom.corpus.findings import Findings
from slalom.corpus.survey import Survey
from slalom.views.colours import AGAINST, FOR
from slalom.views.numbers import number
from slalom.views.reading import label

WIDTH, LEFT, RIGHT, LINE, RADIUS = 860, 150, 30, 30, 2.6
MAX_LENGTH = 18  # characters of a word


@dataclass(frozen=True)
class Scale:
    """From log-odds to places across; zero is always on it."""

    low: float
    high: float

    def across(self, effect: float) -> float:
        return LEFT + (effect - self.low) / (self.high - self.low) * (WIDTH - RIGHT - LEFT)


def beeswarm(survey: Survey, found: Findings, link: Callable[[int], str | None]) -> str:
    """The strongest words, one line each; `link` is where a word leads to."""
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
        f"<g><title>{escape(name)}: {number(mean)} in the mean of {survey.sums.n[word]:.0f} "
        f'documents</title><text class="end" x="{LEFT - 12}" y="{y + 4:.0f}">{escape(name)}</text>'
        f'{dots}<path d="M{at:.1f} {y - 9:.0f}v18" stroke="currentColor" stroke-width="2"/></g>'
    )


def _swarm(points: Sequence[float], scale: Scale) -> list[tuple[float, float, str]]:
    """Each point as near to the line as those before it leave room."""
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
