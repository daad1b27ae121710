"""A vocabulary for people: two lines of text, or tables of its strongest tokens.

Knows a table of values and importances; the HTML loads nothing and needs no script.
"""

from html import escape

from slalom.errors import counted
from slalom.explainers.vocabulary import Entry, Vocabulary
from slalom.views.html import style, table
from slalom.views.numbers import margin, number, r2
from slalom.views.reading import label

N_NAMED, N_ROWS = 3, 20
MIN_DOCUMENTS = 2  # that hold a token, if others can be shown instead


def brief(vocabulary: Vocabulary) -> str:
    """Target, cost and quality, and the tokens at both ends."""
    first, last = _ends(vocabulary, N_NAMED)
    words = " · ".join(f"{label(e.token)} {number(e.value)}" for e in [*first, *last])
    return f"<vocabulary of “{vocabulary.target}”: {_facts(vocabulary)}\n {words}>"


def fragment(vocabulary: Vocabulary) -> str:
    """The strongest tokens on both sides, for a notebook cell."""
    target = escape(vocabulary.target)
    first, last = _ends(vocabulary, N_ROWS)
    return (
        f'<div class="slalom"><style>{style()}</style><p class="sentence">What says “{target}” to '
        f'{escape(label(vocabulary.classifier))}</p><p class="small">{escape(_facts(vocabulary))}'
        f"</p>{_table(f'for “{vocabulary.target}”', first)}"
        f"{_table(f'against “{vocabulary.target}”', last)}"
        '<p class="small">value: what a token says when all attention rests on it, in log-odds; '
        "importance: how much attention it takes, +1 is 2.7 times; ± standard errors.</p></div>"
    )


def _facts(vocabulary: Vocabulary) -> str:
    quality = vocabulary.quality
    facts = [counted(len(vocabulary), "token"), counted(vocabulary.n_documents, "document")]
    facts.append(counted(quality.n_queries, "query"))
    if quality.r2 is not None:
        facts.append(f"R² {r2(quality.r2)} on documents left out")
    return " · ".join(facts)


def _ends(vocabulary: Vocabulary, n_each: int) -> tuple[list[Entry], list[Entry]]:
    """The highest values, and the lowest with the lowest first; no token is in both."""
    entries = vocabulary.table(least_documents=MIN_DOCUMENTS) or vocabulary.table()
    n_each = min(n_each, (len(entries) + 1) // 2)
    return entries[:n_each], entries[max(n_each, len(entries) - n_each) :][::-1]


def _table(title: str, entries: list[Entry]) -> str:
    lines = (
        (
            escape(label(e.token)),
            f"{number(e.value)} <small>{margin(e.value_error)}</small>",
            f"{number(e.importance)} <small>{margin(e.importance_error)}</small>",
            str(e.documents),
        )
        for e in entries
    )
    return table((title, "value", "importance", "documents"), lines)
