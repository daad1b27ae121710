"""The tables of the method pages, read off METHODS: `python docs/methods_table.py` writes them.

A table stands between `<!-- methods: A B … -->` and `<!-- end -->`; a test checks that the pages
hold what this would write.
"""

import re
from collections.abc import Sequence
from pathlib import Path

import slalom
from slalom.errors import BudgetError, grouped
from slalom.explainers.base import Explainer, Request
from slalom.explainers.dry_run import dry_run

PAGES = Path(__file__).parent / "methods"
PLACE = re.compile(r"(<!-- methods: ([\w -]+) -->\n).*?(<!-- end -->)", re.DOTALL)
LENGTHS = (20, 100, 500)  # words, all different


def filled(page: str) -> str:
    """A page with its tables as METHODS has them today."""
    return PLACE.sub(lambda m: m[1] + table(m[2].split()) + m[3], page)


def table(names: Sequence[str]) -> str:
    heads = ["method", "in a line", *(f"queries, {n} words" for n in LENGTHS)]
    rows = [_row(slalom.METHODS[name]) for name in names]
    lines = [heads, ["---"] * len(heads), *rows]
    return "".join("| " + " | ".join(cells) + " |\n" for cells in lines)


def _row(method: Explainer) -> list[str]:
    return [f"`{method.name}`", method.summary, *(_asked(method, n_words) for n_words in LENGTHS)]


def _asked(method: Explainer, n_words: int) -> str:
    """How many different texts the method shows the classifier when it may choose; – for none."""

    def halves(texts: list[str]) -> list[list[float]]:
        return [[0.5, 0.5]] * len(texts)

    words = " ".join(f"w{number}" for number in range(n_words))
    classifier = slalom.FunctionClassifier(halves, labels=["a", "b"])
    request = Request(target=None, n_queries=None, seed=0)
    try:
        cost = dry_run(method, classifier, classifier.split(words), request=request)
    except BudgetError:
        return "–"
    return grouped(cost.n_queries)


if __name__ == "__main__":
    for path in sorted(PAGES.glob("*.md")):
        path.write_text(filled(path.read_text(encoding="utf-8")), encoding="utf-8")
