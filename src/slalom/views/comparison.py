"""Several explanations of one text as one page that loads nothing and needs no script.

Each method shows the text in its own colours and its strongest words; a table compares quality and
cost. Knows explanations and numbers measured elsewhere, no method.
"""

from collections.abc import Mapping, Sequence
from html import escape

import numpy as np

from slalom.errors import grouped
from slalom.explanation import Explanation
from slalom.views import reading
from slalom.views.brief import strongest_words
from slalom.views.html import document, escaped, painted_text, table
from slalom.views.numbers import r2
from slalom.views.sentence import verdict

OWN_R2 = (
    "own R²: how well each method predicts its own queries, which differ between methods; the "
    "other measures of quality use the same queries for all methods."
)


def page(
    explanations: Sequence[Explanation],
    measured: Mapping[str, Mapping[str, float | None]],
) -> str:
    """One HTML file; `measured` is method → title → number, measured alike for all methods."""
    first = explanations[0]
    label = reading.label(first.labels[reading.shown_class(first)])
    methods = "".join(_method(explanation, explanations) for explanation in explanations)
    notes = f'<p class="small">{escape(OWN_R2)}</p>'
    heads, rows = comparison_table(explanations, measured)
    return document(
        f"{reading.prediction(first)} · methods side by side",
        f'<main class="slalom">\n<h1 class="sentence">{escape(verdict(first))}</h1>\n'
        f'<p class="small">{escape(reading.label(first.classifier))} · scores: '
        f"{escape(scored_in(explanations))} · blue speaks for "
        f"“{escape(label)}”, orange against it, violet has no side</p>\n"
        f"{methods}{table(heads, escaped(rows))}{notes}\n</main>",
    )


def scored_in(explanations: Sequence[Explanation]) -> str:
    """What the scores are, of those methods whose scores have a unit if any have."""
    measure, label = _scale_of(explanations), reading.label(explanations[0].target)
    if measure == reading.OWN_SCALE:
        return measure
    return f"{measure} of “{label}”, Shapley values where a method has them"


def remarks(explanation: Explanation, explanations: Sequence[Explanation]) -> list[str]:
    """The notes of one of them; before them its scale, if that is another than of the rest."""
    own = reading.explained(explanation)[0]
    scale = [] if own == _scale_of(explanations) else [f"scores: {own}"]
    return [*scale, *map(reading.label, explanation.quality.notes)]


def _scale_of(explanations: Sequence[Explanation]) -> str:
    measures = [reading.explained(each)[0] for each in explanations]
    return next((one for one in measures if one != reading.OWN_SCALE), measures[0])


def _method(explanation: Explanation, explanations: Sequence[Explanation]) -> str:
    shown = reading.for_class(explanation, reading.shown_class(explanation))
    notes = "".join(
        f'<p class="small">{escape(note)}</p>' for note in remarks(explanation, explanations)
    )
    return (
        f'<figure class="method"><h2>{escape(explanation.method)}</h2>'
        f'<p class="small">{escape(strongest_words(explanation))}</p>'
        f"{painted_text(shown, reading.colouring(shown))}{notes}"
        "</figure>\n"
    )


def comparison_table(
    explanations: Sequence[Explanation], measured: Mapping[str, Mapping[str, float | None]]
) -> tuple[list[str], list[list[str]]]:
    """Headings and cells, one row per method: its own R², the common metrics, its cost."""
    titles = list(dict.fromkeys(title for row in measured.values() for title in row))
    heads = ["method", "own R²", *titles, "queries", "tokens", "seconds"]
    rows = [
        [
            explanation.method,
            r2(explanation.quality.r2),
            *(_number(measured.get(explanation.method, {}).get(title)) for title in titles),
            grouped(explanation.quality.n_queries),
            grouped(explanation.quality.n_tokens),
            f"{explanation.quality.seconds:.2f}",
        ]
        for explanation in explanations
    ]
    return heads, rows


def _number(value: float | None) -> str:
    return "–" if value is None or not np.isfinite(value) else f"{value:.2f}"
