"""An explanation as HTML: a fragment for notebooks, or one self-contained page.

Without a script, as in mail programs and untrusted notebooks, it shows the sentence, the coloured
text and the table. The script of `page/` replaces them by the whole page, drawn from the record
inside. Input goes through `escape` or JSON; nothing is loaded from anywhere, and the page's own
policy forbids it.
"""

import json
from base64 import b64encode
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from hashlib import sha256
from html import escape
from importlib.resources import files

from slalom.explanation import Explanation
from slalom.scales import LOG_ODDS, on_scale
from slalom.views import answer_page, reading
from slalom.views.numbers import digits, margin, number
from slalom.views.reading import UnitRow, pair_label
from slalom.views.record import Record, record
from slalom.views.sentence import sentence, trust_sentence

SCRIPTS = (  # in the order in which they need each other
    *("elements", "numbers", "text", "bars", "bridge", "plane", "length"),
    *("table", "card", "picture", "arcs", "answer", "explanation"),
)
N_SHADES = 9  # of a colour, from faint to full; style.css has them


def page(explanation: Explanation, scale: str = LOG_ODDS) -> str:
    """One HTML file that loads nothing; it opens on this scale and can switch to the other."""
    title, code = f"{reading.prediction(explanation)} · SLALOM", f"{script()}slalom.start();"
    return document(title, f"<main>\n{body(explanation, scale)}\n</main>", code=code)


def document(title: str, content: str, *, extra: str = "", code: str = "") -> str:
    """The frame of every page: its style and script, and a policy that allows no others."""
    sheet = style() + extra
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_policy(code, sheet)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(reading.label(title))}</title>\n<style>{sheet}</style>\n</head>\n"
        f'<body class="slalom-page">\n{content}\n'
        f"{f'<script>{code}</script>' if code else ''}\n</body>\n</html>\n"
    )


def table(heads: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """A table whose first cell names the row; cells are HTML already."""
    head = "".join(f'<th scope="col">{escape(title)}</th>' for title in heads)
    body = "".join(
        f'<tr><th scope="row">{first}</th>{"".join(f"<td>{cell}</td>" for cell in cells)}</tr>'
        for first, *cells in lines
    )
    return (
        f'<div class="scroll"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def escaped(lines: Iterable[Sequence[str]]) -> Iterator[list[str]]:
    """Rows of a table, from plain text to HTML."""
    return (list(map(escape, line)) for line in lines)


def fragment(explanation: Explanation) -> str:
    """The same for a notebook cell."""
    return (
        f"<div><style>{style()}</style>{body(explanation)}"
        f"<script>{script()}slalom.start();</script></div>"
    )


def body(explanation: Explanation, scale: str = LOG_ODDS) -> str:
    """The explanation without style and script."""
    if explanation.said is not None and explanation.model is not None:
        data = as_data(answer_page.answer_record(explanation))
        inside = f'{answer_page.body(explanation)}<script type="application/json">{data}</script>'
        return f'<section class="slalom" aria-label="Explanation">{inside}</section>'
    by = reading.colouring(explanation)
    shown = reading.for_class(explanation, reading.shown_class(explanation))
    rows = reading.rows(shown, by)
    on_scale(explanation, scale)  # an error if it has no such scale
    content = record(explanation) | ({} if scale == LOG_ODDS else {"scale": scale})
    return "\n".join(
        [
            '<section class="slalom" aria-label="Explanation">',
            f'<p class="sentence">{_sentence(explanation)}</p>',
            f'<p class="small">Trust: {escape(explanation.quality.trust)}. '
            f"{escape(trust_sentence(explanation))}</p>",
            painted_text(shown, by),
            _pairs(shown),
            _table(shown, rows),
            f'<script type="application/json">{as_data(content)}</script>',
            "</section>",
        ]
    )


def as_data(content: Record) -> str:
    """JSON that cannot end the element it stands in."""
    text = json.dumps(content, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


@cache
def style() -> str:
    return _part("style.css")


@cache
def script() -> str:
    """The renderer: all files in order, each adding to `slalom`."""
    return "".join(_part(f"{name}.js") for name in SCRIPTS)


def _part(name: str) -> str:
    return (files("slalom.views") / "page" / name).read_text(encoding="utf-8")


def _policy(code: str, sheet: str) -> str:
    """Only this script, if any, and one style sheet; no request."""
    scripts = f"script-src '{_hash(code)}'; " if code else ""
    return (
        f"default-src 'none'; {scripts}style-src '{_hash(sheet)}'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )


def _hash(code: str) -> str:
    return f"sha256-{b64encode(sha256(code.encode()).digest()).decode()}"


def _sentence(explanation: Explanation) -> str:
    return "".join(
        f'<b class="{part.role}">{escape(part.text)}</b>' if part.role else escape(part.text)
        for part in sentence(explanation)
    )


def painted_text(shown: Explanation, by: str) -> str:
    """The text with its units painted by CSS classes: the policy allows no style attributes."""
    strengths, sided = reading.strengths(shown, by), reading.takes_sides(shown, by)
    sides = []
    for segments in reading.segments(shown):
        words = []
        for segment in segments:
            word = escape(reading.visible(segment.text))
            if segment.unit is not None:
                word = f'<span class="w{shade(strengths[segment.unit], sided=sided)}">{word}</span>'
            words.append(word)
        sides.append(f'<p class="text" dir="auto">{"".join(words)}</p>')
    return "".join(sides)


def shade(strength: float, *, sided: bool = True) -> str:
    """The CSS classes that paint a unit of this strength (−1 … 1); none if it is too weak."""
    if abs(strength) < reading.FAINTEST:
        return ""
    side = "unsigned" if not sided else "for" if strength > 0 else "against"
    return f" {side} s{max(1, round(abs(strength) * N_SHADES))}"


def _pairs(shown: Explanation) -> str:
    """A list of words that act together, if they were looked for."""
    if not shown.pairs:
        return ""
    lines = (f"{pair_label(pair)}: {pair.in_words}" for pair in shown.pairs)
    return f'<ul class="pairs">{"".join(f"<li>{escape(line)}</li>" for line in lines)}</ul>'


def _table(shown: Explanation, rows: list[UnitRow]) -> str:
    """Every score of every unit, the strongest first."""
    names = reading.names(shown)
    lines = (
        [
            f"{escape(row.label)}<small>{row.more}</small>",
            *(_cell(shown, name, row.unit) for name in names),
        ]
        for row in rows
    )
    heading = reading.table_heading(shown)
    return f"<details><summary>{heading}</summary>{table(['unit', *names], lines)}</details>"


def _cell(shown: Explanation, name: str, unit: int) -> str:
    if not shown.identified[unit]:
        return "–"
    scores, error = shown.scores[name], shown.errors.get(name)
    decimals = digits(scores)
    more = "" if error is None else f" <small>{margin(float(error[unit]), decimals)}</small>"
    return f"{number(float(scores[unit]), decimals)}{more}"
