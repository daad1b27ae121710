"""An evaluation as Markdown, and as a page of its own with the curves drawn.

Knows rows and sentences; the page loads nothing from anywhere.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from slalom.document import FloatArray
from slalom.evaluation.rows import COVERAGE, GRID, Row, groups, markdown, mean_curve, table
from slalom.metrics.table import METRICS
from slalom.views import html

COLOURS = ("#0b4f9e", "#d9822b", "#2a8f5b", "#a33b8f", "#7a5c00", "#c0392b", "#4a90a4", "#555555")
DASHES = ("", "6 3", "2 2", "8 2 2 2")
WIDTH, HEIGHT, LEFT, BOTTOM = 360, 220, 40, 30
STYLE = (  # besides that of the views: the table in full, curves beside each other
    ".slalom .scroll{max-height:none;margin-bottom:12px}"
    ".slalom thead th{white-space:normal}.slalom .key span{margin-right:1rem}"
    ".slalom figure{display:inline-block;margin:0 12px 12px 0}"
)


@dataclass(frozen=True)
class Report:
    """Rows, metrics, and facts that a reader must know."""

    title: str
    rows: tuple[Row, ...]
    metrics: tuple[str, ...]
    facts: tuple[str, ...] = ()  # model, data, what was left out

    def markdown(self) -> str:
        parts = [f"# {self.title}", *(f"- {fact}" for fact in self.facts), ""]
        parts += [markdown(self.rows, self.metrics), "", *(f"- {line}" for line in self._legend())]
        parts += [f"- {problem}" for problem in problems(self.rows)]
        return "\n".join(parts) + "\n"

    def html(self) -> str:
        heads, lines = table(self.rows, self.metrics)
        content = (
            f'<main class="slalom">\n<h1 class="sentence">{escape(self.title)}</h1>'
            f"{_listed(self.facts)}{html.table(heads, html.escaped(lines))}"
            f"{_listed(self._legend())}{self._figures()}{_listed(problems(self.rows))}\n</main>"
        )
        return html.document(f"{self.title} · SLALOM", content, extra=STYLE)

    def _legend(self) -> list[str]:
        """What the columns mean, a sentence each."""
        known = [METRICS[name] for name in self.metrics if name in METRICS]
        return [
            f"Cells are means over documents, ± the longer side of their {100 * COVERAGE:.0f} % "
            "bootstrap interval.",
            *(f"{m.title}: {m.summary}; {m.better} is better." for m in known),
            "queries, tokens, seconds: the cost of one explanation.",
        ]

    def _figures(self) -> str:
        found = groups(self.rows)
        names = list(dict.fromkeys(name for row in self.rows for name in row.curves))
        drawn = []
        for name in names:
            curves = {key: mean_curve(rows, name) for key, rows in found.items()}
            lines = "".join(
                _line(number, curve)
                for number, curve in enumerate(curves.values())
                if curve is not None
            )
            drawn.append(
                f'<figure><svg class="chart" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" '
                f'role="img" aria-label="{escape(name)}">{_axes()}{lines}</svg>'
                f"<figcaption>{escape(name)}: p(class) by share of units</figcaption></figure>"
            )
        keys = "".join(
            f'<span><svg width="24" height="8"><path d="M0 4H24" {_stroke(number)}/></svg> '
            f"{escape(method)} {budget or 'auto'}</span>"
            for number, (method, budget) in enumerate(found)
        )
        return f'{"".join(drawn)}<p class="key">{keys}</p>' if drawn else ""


def _listed(sentences: Sequence[str]) -> str:
    return f"<ul>{''.join(f'<li>{escape(sentence)}</li>' for sentence in sentences)}</ul>"


def problems(rows: Sequence[Row]) -> list[str]:
    """Sentences about texts that could not be explained, each with the first reason."""
    whose: dict[str, list[str]] = {}
    found = groups(rows)
    for (method, budget), members in found.items():
        failed = [row for row in members if row.problem]
        if failed:
            what = (
                f"no answer for {len(failed)} of {len(members)} "
                f"texts, the first is line {failed[0].document}: {failed[0].problem}"
            )
            whose.setdefault(what, []).append(f"{method} at {budget or 'auto'}")
    return [
        f"{'all methods' if len(who) == len(found) > 1 else ', '.join(who)}: {what}"
        for what, who in whose.items()
    ]


def _line(number: int, curve: FloatArray) -> str:
    points = " ".join(
        f"{_across(share):.1f},{_up(p):.1f}" for share, p in zip(GRID, curve, strict=True)
    )
    return f'<polyline points="{points}" {_stroke(number)}/>'


def _stroke(number: int) -> str:
    """Colours and dashes, which together distinguish more lines, also without colours."""
    colour = COLOURS[number % len(COLOURS)]
    dash = DASHES[number // len(COLOURS) % len(DASHES)]
    return f'fill="none" stroke="{colour}" stroke-width="2" stroke-dasharray="{dash}"'


def _axes() -> str:
    parts = []
    for tick in (0.0, 0.5, 1.0):
        x, y = _across(tick), _up(tick)
        parts.append(f'<path d="M{LEFT} {y:.1f}H{WIDTH - 10}" stroke="#8884"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{tick:g}</text>')
        parts.append(f'<text x="{x:.1f}" y="{HEIGHT - 8}" text-anchor="middle">{tick:g}</text>')
    return f'<g font-size="12" fill="currentColor">{"".join(parts)}</g>'


def _across(share: float) -> float:
    return LEFT + share * (WIDTH - LEFT - 10)


def _up(probability: float) -> float:
    return HEIGHT - BOTTOM - probability * (HEIGHT - BOTTOM - 10)
