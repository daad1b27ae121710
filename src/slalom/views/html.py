"""An explanation as HTML: a fragment for notebooks, or one self-contained page.

Everything is there without a script: coloured text, plane, table. The script links them, shows
every score of a word, and recolours. What comes from outside goes through `escape` or JSON.
"""

import json
from functools import cache
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from slalom.document import FloatArray
from slalom.explanation import Explanation
from slalom.views import plane, reading
from slalom.views.reading import Row

QUIET = 0.25  # of the loudest unit's share; below it nothing is underlined
N_SHORT = 200  # pieces; a text with fewer is set larger


def page(explanation: Explanation) -> str:
    """One HTML file with everything in it: nothing is loaded from anywhere."""
    title = escape(f"{reading.prediction(explanation)} · SLALOM")
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n<style>{_part('page.css')}</style>\n</head>\n"
        f'<body class="slalom-page">\n{body(explanation)}\n'
        f"<script>{_part('page.js')}</script>\n</body>\n</html>\n"
    )


def fragment(explanation: Explanation) -> str:
    """The same for a notebook cell."""
    style, script = _part("page.css"), _part("page.js")
    return f"<div><style>{style}</style>{body(explanation)}<script>{script}</script></div>"


def body(explanation: Explanation) -> str:
    """The explanation without style and script."""
    by = reading.colouring(explanation)
    shown = reading.for_class(explanation, reading.shown_class(explanation))
    rows = reading.rows(shown, by)
    figure = (
        plane.plane(explanation, rows)
        if plane.has_plane(explanation)
        else plane.bars(explanation, rows, by)
    )
    return "\n".join(
        [
            '<section class="slalom" aria-label="Explanation">',
            _header(explanation),
            '<div class="panes">',
            f'<figure class="reading">{_controls(explanation, by)}{text(shown, rows, by)}'
            f"{_legend(explanation, by)}</figure>",
            f"<figure>{figure}{_caption(explanation)}</figure>",
            "</div>",
            table(shown, rows),
            _footer(explanation),
            '<div class="tip" role="status" hidden></div>',
            f'<script type="application/json">{_data(explanation, rows, by)}</script>',
            "</section>",
        ]
    )


def text(explanation: Explanation, rows: list[Row], by: str) -> str:
    """The text with its units painted."""
    number = {int(explanation.features[row.unit]): n for n, row in enumerate(rows)}
    strengths, sided = reading.strengths(explanation, by), reading.takes_sides(explanation, by)
    shares = _loudness(explanation)
    sides = []
    for segments in reading.segments(explanation):
        words = []
        for segment in segments:
            shown = escape(reading.visible(segment.text))
            if segment.unit is None:
                words.append(shown)
                continue
            feature = number[int(explanation.features[segment.unit])]
            strength = float(strengths[segment.unit])
            words.append(
                f'<span class="w {plane.side(strength, sided=sided)}" data-f="{feature}" '
                f'style="--s:{abs(strength):.3f};--i:{shares[segment.unit]:.3f}">{shown}</span>'
            )
        size = " short" if len(segments) < N_SHORT else ""
        sides.append(f'<p class="text{size}" dir="auto">{"".join(words)}</p>')
    return "".join(sides)


def table(explanation: Explanation, rows: list[Row]) -> str:
    """Every score of every unit, the strongest first."""
    heads = "".join(
        f'<th scope="col" data-score="{escape(name)}" title="{escape(reading.SAYS.get(name, ""))}">'
        f"{escape(name)}</th>"
        for name in reading.names(explanation)
    )
    lines = "".join(
        f'<tr data-f="{number}"><th scope="row">{escape(row.label)}{_times(row)}</th>'
        f"{''.join(_cell(explanation, name, row.unit) for name in reading.names(explanation))}</tr>"
        for number, row in enumerate(rows)
    )
    return (
        "<details><summary>"
        f"All scores of the {reading.counted(len(rows), 'different unit')}</summary>"
        f'<div class="scroll"><table><thead><tr><th scope="col">unit</th>{heads}</tr></thead>'
        f"<tbody>{lines}</tbody></table></div></details>"
    )


def _header(explanation: Explanation) -> str:
    quality = explanation.quality
    trust, meter = escape(quality.trust), ""
    if quality.r2 is not None:
        share = 100 * min(max(quality.r2, 0.0), 1.0)
        meter = f'<span class="meter"><span style="width:{share:.0f}%"></span></span>'
    return (
        f'<header><div class="verdict">{_verdict(explanation)}</div>'
        f'<div class="trust {trust}"><p><b>Trust: {trust}</b>{meter}</p>'
        f"<p>{escape(reading.trust_sentence(explanation))}</p></div></header>"
    )


def _verdict(explanation: Explanation) -> str:
    shares = reading.probabilities(explanation)
    measure, label = reading.explained(explanation)
    told = f"the {measure} of <b>{escape(reading.label(label))}</b>" if label else measure
    below = (
        f'<p class="small">{escape(reading.label(explanation.classifier))} · explained: {told}</p>'
    )
    if shares is None:
        return f"<h1>{escape(reading.prediction(explanation))}</h1>{below}"
    best = int(np.argmax(shares))
    return (
        f"<h1>{escape(reading.label(explanation.labels[best]))} "
        f"<span>{escape(reading.percent(float(shares[best])))}</span></h1>{below}"
    )


def _controls(explanation: Explanation, by: str) -> str:
    """Shown once the script runs: which score colours the text, and of which class."""
    choices = "".join(
        f'<label title="{escape(reading.SAYS.get(name, ""))}"><input type="radio" name="by" '
        f'value="{escape(name)}"{" checked" if name == by else ""}>'
        f"<span>{escape(name)}</span></label>"
        for name in reading.names(explanation)
    )
    classes = ""
    if explanation.target_index is None:
        best = reading.shown_class(explanation)
        options = "".join(
            f'<option value="{n}"{" selected" if n == best else ""}>'
            f"{escape(reading.label(name))}</option>"
            for n, name in enumerate(explanation.labels)
        )
        classes = f'<label>class <select name="class">{options}</select></label>'
    return (
        f'<form class="controls" autocomplete="off"><fieldset><legend>colour by</legend>{choices}'
        f"</fieldset>{classes}</form>"
    )


def _legend(explanation: Explanation, by: str) -> str:
    label = escape(reading.label(explanation.labels[reading.shown_class(explanation)]))
    hidden = "" if reading.takes_sides(explanation, by) else " hidden"
    says = escape(reading.SAYS.get(by, ""))
    loud = (
        ' · <span class="key bar">thick underline</span> loud'
        if _has_importance(explanation)
        else ""
    )
    return (
        f'<figcaption><span class="sides"{hidden}><span class="key against">against</span> '
        f'<span class="key for">for</span> <b class="class">{label}</b>, </span>'
        f'by <b class="by">{escape(by)}</b>: <span class="says">{says}</span>{loud}</figcaption>'
    )


def _caption(explanation: Explanation) -> str:
    if not plane.has_plane(explanation):
        return ""
    anchor = (
        ""
        if explanation.anchor is None
        else (" The anchor is what is always there: special tokens, the prompt.")
    )
    return (
        "<figcaption>The dashed line is what this model says of the whole text; what the "
        "classifier says is at the top. A word right of the line raises the score, one left of it "
        f"lowers it; the higher up, the more.{anchor}</figcaption>"
    )


def _footer(explanation: Explanation) -> str:
    quality = explanation.quality
    cost = [f"{quality.n_tokens:,} tokens".replace(",", " "), f"{quality.seconds:.1f} s"]
    line = " · ".join([*reading.facts(explanation), *cost, f"seed {explanation.seed}"])
    notes = "".join(f"<li>{escape(reading.label(note))}</li>" for note in quality.notes)
    return f"<footer>{f'<ul>{notes}</ul>' if notes else ''}<p>{escape(line)}</p></footer>"


def _cell(explanation: Explanation, name: str, unit: int) -> str:
    if not explanation.identified[unit]:
        return "<td>–</td>"
    scores, error = explanation.scores[name], explanation.errors.get(name)
    digits = reading.digits(scores)
    more = "" if error is None else f" <small>{reading.margin(float(error[unit]), digits)}</small>"
    return f"<td>{reading.number(float(scores[unit]), digits)}{more}</td>"


def _times(row: Row) -> str:
    return f" <small>×{row.times}</small>" if row.times > 1 else ""


def _has_importance(explanation: Explanation) -> bool:
    return "importance" in explanation.scores


def _loudness(explanation: Explanation) -> FloatArray:
    """(n_units,) 0..1: the share of the attention beside the loudest unit's."""
    if not _has_importance(explanation):
        return np.zeros(len(explanation.units))
    shares = reading.strengths(explanation, "importance")
    return np.where(shares < QUIET, 0.0, shares)


def _data(explanation: Explanation, rows: list[Row], by: str) -> str:
    """What the script needs, one entry per row; safe inside a script element."""
    units = [row.unit for row in rows]
    classes = range(len(explanation.labels)) if explanation.target_index is None else [0]
    shown = [reading.for_class(explanation, index) for index in classes]
    record: dict[str, Any] = {
        "units": [row.label for row in rows],
        "times": [row.times for row in rows],
        "identified": explanation.identified[units].tolist(),
        "labels": [reading.label(name) for name in explanation.labels],
        "says": {name: reading.SAYS.get(name, "") for name in explanation.scores},
        "sided": {n: reading.takes_sides(explanation, n) for n in explanation.scores},
        "digits": {n: reading.digits(scores) for n, scores in explanation.scores.items()},
        "by": by,
        "scores": {n: _rounded(explanation.scores[n][units]) for n in reading.names(explanation)},
        "errors": {n: _rounded(s[units]) for n, s in explanation.errors.items()},
        "strengths": {
            n: [_rounded(reading.strengths(e, n)[units]) for e in shown] for n in explanation.scores
        },
    }
    if plane.has_plane(explanation):
        axis = plane.value_axis(explanation)
        record["axis"] = [axis.low, axis.high, axis.start, axis.end]
        record["whole"] = _rounded(plane.whole_text(explanation))
        anchor = explanation.anchor
        record["anchor"] = None if anchor is None else _rounded(np.ravel(anchor.value))
    told = json.dumps(record, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return told.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _rounded(scores: FloatArray) -> Any:
    """Six digits are enough to look at."""
    return np.vectorize(lambda score: float(f"{score:.6g}"), otypes=[float])(scores).tolist()


@cache
def _part(name: str) -> str:
    return (Path(__file__).parent / name).read_text(encoding="utf-8")
