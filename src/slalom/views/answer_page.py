"""An answer and its sources as a page: sentences linked to sources, and how likely the answer is
without some of them.

The file holds predictions for every set of up to a few sources left out, as many as it has room
for; the live page queries the model. Without a script, the page shows the answer with its
citations and the list of sources.
"""

from html import escape
from itertools import combinations
from math import comb
from typing import Any

import numpy as np

from slalom.explanation import Explanation
from slalom.language.citations import (
    Citation,
    citation_of,
    lost_without,
    sentences_of,
    shares_of,
    suffices,
    weighed,
)
from slalom.views import reading
from slalom.views.answer import (
    N_CITED,
    answer_left,
    source_name,
    trust,
    verdict,
    without_cited,
)
from slalom.views.numbers import number

ROOM = 16_000  # predictions in a file
Record = dict[str, Any]


def answer_record(explanation: Explanation) -> Record:
    """Everything the page shows of an answer."""
    said = explanation.said
    assert said is not None
    parts = sentences_of(explanation)
    units = range(len(explanation.units))
    told = {one.source: one for one in weighed(explanation)[0]}
    measured = explanation.is_measured("removal")
    return {
        "kind": "answer",
        "classifier": reading.label(explanation.classifier),
        "verdict": [[part.text, part.role] for part in verdict(explanation)],
        "answer": reading.visible(said.text),
        "sentences": [
            {
                "before": reading.visible(said.text[end : span[0]]),
                "text": reading.visible(said.text[slice(*span)]),
                "shares": _rounded(shares_of(part)),
                **_cited(citation_of(part, N_CITED)),
            }
            for (span, part), end in zip(parts, [0, *(s[1] for s, _ in parts)], strict=False)
        ],
        "sources": [
            {
                "name": source_name(explanation, unit),
                "title": reading.label(said.names[unit]),
                "text": reading.visible(explanation.units[unit]),
                "share": _rounded(told[unit].nats),
                "lost": f"without it the answer is {answer_left(told[unit])}",
                "matters": told[unit].side != 0,
                "measured": bool(measured[unit]),
            }
            for unit in units
        ],
        "what_if": _what_if(explanation, [part for _, part in parts]),
        "trust": {"word": explanation.quality.trust, "lines": trust(explanation)},
        "notes": reading.notes(explanation),
        "facts": reading.cost(explanation),
    }


def body(explanation: Explanation) -> str:
    """What the page shows without a script."""
    record = answer_record(explanation)
    answer = "".join(
        escape(one["before"] + one["text"])
        + f"<sup>{''.join(f'[{unit + 1}]' for unit in one['cited'])}</sup>"
        for one in record["sentences"]
    )
    sources = "".join(
        f"<li><b>{escape(one['name'])}</b> {number(one['share'])} nats; {escape(one['lost'])}</li>"
        for one in record["sources"]
    )
    said = "".join(
        f'<b class="{role}">{escape(text)}</b>' if role else escape(text)
        for text, role in record["verdict"]
    )
    return f'<p class="sentence">{said}</p><p class="text">{answer}</p><ul>{sources}</ul>'


def _cited(citation: Citation) -> Record:
    cited = [one.source for one in citation.sources]
    told = "; ".join(map(suffices, citation.either))
    if not told and cited:
        told = without_cited(citation)
    return {"cited": cited, "told": told}


def _what_if(explanation: Explanation, parts: list[Explanation]) -> Record:
    """Nats lost by the whole answer and by each sentence, by the sources left out: "2,9" → […]."""
    n_units = len(explanation.units)
    shown = [explanation] if len(parts) == 1 else [explanation, *parts]
    most, n_sets = 0, 1
    while most < n_units and (n_sets + comb(n_units, most + 1)) * len(shown) <= ROOM:
        most += 1
        n_sets += comb(n_units, most)
    most = max(1, most)
    sets = [s for size in range(1, most + 1) for s in combinations(range(n_units), size)]
    lost = np.array([lost_without(one, sets) for one in shown])
    return {
        "most": most,
        "lost": {
            ",".join(map(str, s)): [float(f"{nats:.3g}") for nats in lost[:, at]]
            for at, s in enumerate(sets)
        },
    }


def _rounded(numbers: Any) -> Any:
    return np.vectorize(lambda one: float(f"{one:.4g}"), otypes=[float])(numbers).tolist()
