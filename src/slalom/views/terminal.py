"""An explanation in a terminal: a sentence, the coloured text, its strongest units.

Blue speaks for the target, orange against it; stronger effects have stronger colours. Without
colours, the bars of the table show the same.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from slalom.document import FloatArray
from slalom.explanation import Explanation
from slalom.pairs import NONE, Interactions
from slalom.scales import LOG_ODDS, on_scale
from slalom.views import reading
from slalom.views.numbers import counted, digits, margin, number, percent
from slalom.views.sentence import (
    attention_sentence,
    describe_little,
    length_sentence,
    sentence,
    trust_lines,
    trust_sentence,
    two_scores_sentence,
)

COLUMNS = ("shapley", "removal", "value", "importance", "share", "alone")
COLUMNS_NEAR_THE_TEXT = ("removal", "alone", "gradient", "importance")  # for local fits
COLUMNS_ALL_CLASSES: tuple[str, ...] = ("share", "shapley")
N_ROWS, N_MISSING = 12, 5
EXCERPT = 1000  # characters of a text that are shown
MAX_LABEL_WIDTH = 12  # characters of a class above its column
HALF_BAR = 5  # characters to each side of the axis
BAR, GAP, NARROWEST_UNIT, WIDEST_UNIT = 2 * HALF_BAR + 1, 2, 12, 36
LONG_UNIT = 24  # characters; what is longer is no word
FOR, AGAINST, UNSIGNED = (  # as a colour of letters, and of the ground of white or black ones
    (faint, f"{ink} on {clear}", f"bold {ink} on {strong}")
    for (faint, clear, strong), ink in (
        (reading.FOR, "white"),
        (reading.AGAINST, "black"),
        (reading.UNSIGNED, "white"),
    )
)
STEPS = (0.1, 0.35, 0.7)
TRUST = {"exact": "bold green", "high": "bold green", "fair": "bold yellow", "low": "bold red"}


@dataclass(frozen=True)
class Column:
    title: str
    scores: FloatArray  # (n_units,)
    errors: FloatArray | None
    is_share: bool = False


@dataclass(frozen=True)
class Layout:
    """The part of a table that fits."""

    unit: int  # the width of the units' names
    has_bars: bool
    n_columns: int


@dataclass(frozen=True)
class TerminalView:
    """Print this with a rich Console; it adapts to the width.

    It shows the verdict with its reasons, the text, its strongest units, and two lines on trust and
    cost; with `details`, everything else.
    """

    explanation: Explanation
    scores: tuple[str, ...] = ()
    details: bool = False
    scale: str = LOG_ODDS

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        wanted = reading.checked_names(self.explanation, self.scores)
        scaled = on_scale(self.explanation, self.scale)
        by = reading.colouring(self.explanation, wanted)
        shown = reading.for_class(self.explanation, reading.shown_class(self.explanation))
        yield _sentence(self.explanation)
        yield Text()
        yield painted_text(shown, by, None if self.details else EXCERPT)
        yield Text()
        yield _table(scaled, shown, wanted, by=by, options=options)
        if console.color_system is not None and not console.no_color:
            yield _colours(shown, by)
        if shown.pairs is not None:
            yield _pairs(shown.pairs)
        yield Text()
        columns = _columns(scaled, wanted)
        yield from _quality(self.explanation, self.scale, columns)
        yield from (Text(f"Note: {note}") for note in reading.notes(shown))
        if self.details:
            yield from _details(self.explanation, shown)


def _pairs(pairs: Interactions) -> RenderableType:
    """Words that act together, one pair per line."""
    lines = [
        Text.assemble((reading.pair_label(pair), "bold"), f": {pair.in_words}") for pair in pairs
    ] or [Text(NONE)]
    return Group(Text(), Text(f"Words that act together ({pairs.how}):", style="dim"), *lines)


def _quality(explanation: Explanation, scale: str, columns: Sequence[Column]) -> RenderResult:
    """Two lines: how far to trust the explanation, and what it is."""
    quality = explanation.quality
    trust = Text.assemble("Trust: ", (quality.trust, TRUST.get(quality.trust, "bold")), ". ")
    yield trust.append(trust_sentence(explanation))
    if describe_little(explanation):
        yield Text(two_scores_sentence(explanation))
    measure, label = reading.explained(explanation)
    measure = measure if scale == LOG_ODDS else "change of the probability"
    what = f"{measure} of “{reading.label(label)}”" if label else measure
    shown = [column.errors for column in columns if not column.is_share]
    if any(errors is not None and (errors > 0).any() for errors in shown):
        what += " (± one standard error)"
    facts = (
        f"Scores: {what}",
        f"method {explanation.method}",
        counted(quality.n_queries, "query"),
        reading.label(explanation.classifier),
    )
    yield Text(" · ".join(facts), style="dim")


def _details(explanation: Explanation, shown: Explanation) -> RenderResult:
    """Everything else about the fit and its cost."""
    index = reading.shown_class(explanation)
    said = [trust_sentence(explanation)]
    said += [two_scores_sentence(explanation)] if describe_little(explanation) else []
    lines = [line for line in trust_lines(explanation) if line not in said]
    lines.append(attention_sentence(shown, index))
    lines += [length_sentence(shown), reading.cost(explanation)]
    yield Text()
    yield from (Text(line, style="dim") for line in lines if line)


def _sentence(explanation: Explanation) -> Text:
    """In colour, with words of the text also in quotes, for terminals without colours."""
    styles = {"label": "bold", "for": FOR[0], "against": AGAINST[0], "unsigned": UNSIGNED[0]}
    line = Text()
    for part in sentence(explanation):
        quoted = part.text if part.role in ("", "label") else f"“{part.text}”"
        line.append(quoted, style=f"bold {styles[part.role]}" if part.role else "")
    return line


def painted_text(explanation: Explanation, by: str, most: int | None = None) -> RenderableType:
    """The text in colour; for a long one, about `most` characters around its strongest units."""
    sided = reading.takes_sides(explanation, by)
    styles = [_paint(s, sided=sided) for s in reading.strengths(explanation, by).tolist()]
    sides = []
    cut = reading.segments(explanation)
    if most is not None:
        cut = reading.excerpt(cut, np.abs(reading.strengths(explanation, by)), most)
    for side, segments in enumerate(cut):
        line = Text(f"text {side + 1}: " if len(cut) > 1 else "", style="dim")
        for segment in segments:
            style = "not dim" if segment.unit is None else f"not dim {styles[segment.unit]}"
            line.append(reading.visible(segment.text), style=style)
        sides.append(line)
    return Group(*sides)


def _paint(strength: float, *, sided: bool) -> str:
    step = sum(abs(strength) >= limit for limit in STEPS)
    if step == 0:
        return ""
    scale = UNSIGNED if not sided else FOR if strength > 0 else AGAINST
    return scale[step - 1]


def _table(
    whole: Explanation,
    shown: Explanation,
    wanted: Sequence[str],
    *,
    by: str,
    options: ConsoleOptions,
) -> RenderableType:
    rows = reading.rows(shown, by)
    units = [row.unit for row in rows[:N_ROWS]]
    columns = _columns(whole, wanted)
    cells = [
        [_cell(c, unit, known=bool(shown.identified[unit])) for unit in units] for c in columns
    ]
    names = [(row.label, row.more) for row in rows[:N_ROWS]]
    layout = _fitting(
        max(map(cell_len, ("unit", *map("".join, names)))),
        [_width(column, cells[place]) for place, column in enumerate(columns)],
        options.max_width,
    )
    table = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), header_style="dim")
    table.add_column("unit", no_wrap=True, max_width=layout.unit)
    if layout.has_bars:
        table.add_column("", no_wrap=True, min_width=BAR, max_width=BAR)
    for column in columns[: layout.n_columns]:
        table.add_column(column.title, justify="right", no_wrap=True)
    strengths, sided = reading.strengths(shown, by), reading.takes_sides(shown, by)
    for place, (unit, name) in enumerate(zip(units, names, strict=True)):
        bar = _bar(float(strengths[unit]), sided=sided, ascii_only=options.ascii_only)
        table.add_row(
            _shortened(*name, layout.unit),
            *([bar] if layout.has_bars else []),
            *(column[place] for column in cells[: layout.n_columns]),
        )
    more = _left_out(columns, layout, n_rows=len(rows))
    return Group(table, *(Text(line, style="dim") for line in more))


def _left_out(columns: Sequence[Column], layout: Layout, *, n_rows: int) -> list[str]:
    missing = [] if layout.has_bars else ["bars"]
    missing += [column.title.replace("\n", " ") for column in columns[layout.n_columns :]]
    if len(missing) > N_MISSING:
        missing[N_MISSING:] = [f"{len(missing) - N_MISSING} more"]
    weaker = counted(n_rows - N_ROWS, "weaker unit")
    return [
        *([f"… and {weaker}"] if n_rows > N_ROWS else []),
        *([f"(more columns in a wider terminal: {', '.join(missing)})"] if missing else []),
    ]


def _columns(explanation: Explanation, wanted: Sequence[str]) -> list[Column]:
    usual = COLUMNS_ALL_CLASSES if explanation.target_index is None else COLUMNS
    if explanation.primary_score == "removal":
        usual = COLUMNS_NEAR_THE_TEXT
    names = wanted or [name for name in usual if name in explanation.scores] or explanation.scores
    columns = []
    for name in names:
        scores, errors = explanation.scores[name], explanation.errors.get(name)
        if scores.ndim == 1:
            columns.append(Column(name, scores, errors, name == "share"))
            continue
        for index in np.argsort(-explanation.logits, kind="stable"):  # the likeliest class first
            title = f"{name}\n{_class_title(explanation, int(index))}"
            columns.append(Column(title, scores[:, index], None))  # errors would crowd out classes
    return columns


def _class_title(explanation: Explanation, index: int) -> str:
    """A label cut short, with its number if others begin in the same way."""
    label = reading.label(explanation.labels[index])
    if len(label) <= MAX_LABEL_WIDTH:
        return label
    begin = label[: MAX_LABEL_WIDTH - 1]
    alike = sum(reading.label(other).startswith(begin) for other in explanation.labels)
    return f"{f'{index}: {label}' if alike > 1 else label}"[: MAX_LABEL_WIDTH - 1] + "…"


def _fitting(longest: int, widths: Sequence[int], width: int) -> Layout:
    """As many whole columns as fit; bars and long names give way to the first column.

    Names of sentences need more room than names of words.
    """
    needed = min(longest, WIDEST_UNIT) if longest > LONG_UNIT else NARROWEST_UNIT
    for has_bars, unit in (
        (True, needed),
        (True, NARROWEST_UNIT),
        (False, NARROWEST_UNIT),
        (False, 1),
    ):
        room = width - (BAR + GAP if has_bars else 0)
        ends = np.cumsum([GAP + column for column in widths])
        n_columns = int((ends <= room - min(longest, unit)).sum())
        if n_columns:
            return Layout(min(room - int(ends[n_columns - 1]), WIDEST_UNIT), has_bars, n_columns)
    return Layout(min(width, WIDEST_UNIT), False, 0)


def _width(column: Column, cells: Sequence[Text]) -> int:
    return max(*map(cell_len, column.title.split("\n")), *(cell.cell_len for cell in cells))


def _shortened(name: str, times: str, width: int) -> Text:
    """The name is cut short, never the count after it."""
    short = Text(name)
    short.truncate(max(width - cell_len(times), 1), overflow="ellipsis")
    return short.append(times)


def _cell(column: Column, unit: int, *, known: bool) -> Text:
    if not known:
        return Text("–")
    if column.is_share:
        return Text(percent(float(column.scores[unit])))
    decimals = digits(column.scores)
    cell = Text(number(float(column.scores[unit]), decimals))
    if column.errors is not None and column.errors[unit] > 0:  # 0: measured
        cell.append(f" {margin(float(column.errors[unit]), decimals)}", style="dim")
    return cell


def _bar(strength: float, *, sided: bool, ascii_only: bool) -> Text:
    """A bar in steps of half a cell: to the right for the target, to the left against it."""
    full, right, left, axis = ("#", "", "", "|") if ascii_only else ("█", "▌", "▐", "│")
    halves = round(abs(strength) * 2 * HALF_BAR)
    style = _paint(strength, sided=sided).split(" on ")[-1] if halves else ""
    blocks = full * (halves // 2)
    if strength > 0:
        return Text(" " * HALF_BAR + axis) + Text(blocks + right * (halves % 2), style=style)
    drawn = left * (halves % 2) + blocks
    return Text(" " * (HALF_BAR - len(drawn))) + Text(drawn, style=style) + Text(axis)


def _colours(explanation: Explanation, by: str) -> Text:
    """What the colours mean."""
    legend = Text.assemble((f"Colours ({by}): ", "dim"))
    if not reading.takes_sides(explanation, by):
        return legend.append("strong", style=UNSIGNED[1])
    label = reading.label(explanation.labels[reading.shown_class(explanation)])
    legend.append("for", style=FOR[1]).append(" ").append("against", style=AGAINST[1])
    return legend.append(
        f" “{label}”. Words not clearly different from zero are left uncoloured.", style="dim"
    )
