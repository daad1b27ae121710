"""Several explanations of one text in a terminal, one below the other.

Each shows its strongest words and the text in its own colours, so that agreement and disagreement
are seen at a glance; a table compares quality and cost.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from slalom.explanation import Explanation
from slalom.views import reading
from slalom.views.brief import strongest_words
from slalom.views.comparison import OWN_R2, comparison_table, remarks, scored_in
from slalom.views.sentence import verdict
from slalom.views.terminal import GAP, painted_text


@dataclass(frozen=True)
class SideBySide:
    """Print this with a rich Console.

    `measured` has further columns, measured alike for all methods: method → title → number.
    """

    explanations: Sequence[Explanation]
    measured: Mapping[str, Mapping[str, float | None]] = field(default_factory=dict)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        first = self.explanations[0]
        facts = f"{scored_in(self.explanations)} · {reading.label(first.classifier)}"
        yield Text(verdict(first), style="bold")
        yield Text(f"Scores: {facts}", style="dim")
        for explanation in self.explanations:
            yield Text()
            yield Text.assemble(
                (explanation.method, "bold"), "  ", (strongest_words(explanation), "")
            )
            shown = reading.for_class(explanation, reading.shown_class(explanation))
            if console.color_system is not None and not console.no_color:
                yield painted_text(shown, reading.colouring(shown))
            for note in remarks(explanation, self.explanations):
                yield Padding(Text(note, style="dim"), (0, 0, 0, 2), expand=False)
        yield Text()
        table = comparison_table(self.explanations, self.measured)
        yield fitted_table(*table, options.max_width)
        yield Text(OWN_R2, style="dim")


def fitted_table(heads: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> RenderableType:
    """A table as wide as the terminal: columns that do not fit are named below, none is cut.

    The first column names the row. Headings are broken at spaces, so that long ones take less room.
    """
    words = [max(head.split(), key=cell_len) for head in heads]
    wide = [max(map(cell_len, column)) for column in zip(words, *rows, strict=True)]
    n_shown = max(1, int((np.cumsum(wide) + GAP * np.arange(len(wide)) <= width).sum()))
    table = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), header_style="dim")
    for column, head in enumerate(heads[:n_shown]):
        table.add_column(
            Text(head.replace(" ", "\n")),
            vertical="bottom",
            justify="right" if column else "left",
            no_wrap=True,
        )
    for row in rows:
        table.add_row(*row[:n_shown])
    left_out = f"In a wider terminal: {', '.join(heads[n_shown:])}"
    return Group(table, *([Text(left_out, style="dim")] if n_shown < len(heads) else []))
