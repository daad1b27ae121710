"""A vocabulary for people: two lines of text, or the tokens that say most for and against.

Knows a table of values and importances; the page loads nothing and needs no script.
"""

from html import escape

from slalom.errors import counted
from slalom.explainers.vocabulary import Entry, Vocabulary
from slalom.views.numbers import margin, number, r2
from slalom.views.reading import label

N_NAMED, N_ROWS = 3, 20
MIN_DOCUMENTS = 2  # that hold a token, for it to be shown among the first
STYLE = """
.slalom-table{font:15px/1.5 system-ui,sans-serif;max-width:60rem}
.slalom-table table{border-collapse:collapse;display:inline-table;margin:0 2rem 1rem 0}
.slalom-table td,.slalom-table th{padding:.15rem .6rem;text-align:right;font-weight:normal}
.slalom-table td:first-child,.slalom-table th:first-child{text-align:left}
.slalom-table tr{border-bottom:1px solid #8883}.slalom-table small{opacity:.7}
"""


def brief(vocabulary: Vocabulary) -> str:
    """What it is of, how far it holds, and the tokens at both ends."""
    first, last = _ends(vocabulary, N_NAMED)
    words = " · ".join(f"{label(e.token)} {number(e.value)}" for e in [*first, *last])
    return f"<vocabulary of “{vocabulary.target}”: {_facts(vocabulary)}\n {words}>"


def page(vocabulary: Vocabulary) -> str:
    """One HTML file with the strongest tokens on both sides."""
    title = escape(f"What says “{vocabulary.target}”")
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{title} · SLALOM</title>\n</head>\n<body>\n{fragment(vocabulary)}\n</body>\n"
        "</html>\n"
    )


def fragment(vocabulary: Vocabulary) -> str:
    """The same for a notebook cell."""
    target = escape(vocabulary.target)
    first, last = _ends(vocabulary, N_ROWS)
    return (
        f'<div class="slalom-table"><style>{STYLE}</style>'
        f"<p><b>What says “{target}”</b> to {escape(label(vocabulary.classifier))}<br>"
        f"<small>{escape(_facts(vocabulary))}</small></p>"
        f"{_table(f'for “{target}”', first)}{_table(f'against “{target}”', last)}"
        "<p><small>value: what a token says when all attention rests on it, in log-odds; "
        "importance: how much attention it takes, +1 is 2.7 times; ± standard errors.</small></p>"
        "</div>"
    )


def _facts(vocabulary: Vocabulary) -> str:
    quality = vocabulary.quality
    facts = [counted(len(vocabulary), "token"), counted(vocabulary.n_documents, "document")]
    facts.append(counted(quality.n_queries, "query"))
    if quality.r2 is not None:
        facts.append(f"R² {r2(quality.r2)} on documents left out")
    return " · ".join(facts)


def _ends(vocabulary: Vocabulary, n_each: int) -> tuple[list[Entry], list[Entry]]:
    """The highest values, and the lowest, the lowest first; nothing stands in both."""
    entries = vocabulary.table(least_documents=MIN_DOCUMENTS) or vocabulary.table()
    n_each = min(n_each, (len(entries) + 1) // 2)
    return entries[:n_each], entries[max(n_each, len(entries) - n_each) :][::-1]


def _table(title: str, entries: list[Entry]) -> str:
    rows = "".join(
        f'<tr><th scope="row">{escape(label(e.token))}</th>'
        f"<td>{number(e.value)} <small>{margin(e.value_error)}</small></td>"
        f"<td>{number(e.importance)} <small>{margin(e.importance_error)}</small></td>"
        f"<td>{e.documents}</td></tr>"
        for e in entries
    )
    heads = "".join(
        f'<th scope="col">{head}</th>' for head in (title, "value", "importance", "documents")
    )
    return f"<table><tr>{heads}</tr>{rows}</table>"
