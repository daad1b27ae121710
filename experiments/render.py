"""Tables as Markdown, figures as files: one renderer for all experiments.

Knows Tables and the records they are kept in, nothing of how they were made.
"""

from collections.abc import Iterable
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np

from experiments.claims import CLAIMS
from experiments.store import Result
from experiments.table import Cell, Map, Number, Panel, Series, Table

MAX_IN_LEGEND = 14  # lines of a figure that a legend can hold
MAX_SVG_POINTS = 2500
WIDTH, HEIGHT = 4.4, 3.2  # of a panel, inches


def shown(cell: Cell) -> str:
    """A number with its standard error, and the paper's in brackets."""
    if isinstance(cell, str):
        return cell
    text = "–" if cell.value is None else _digits(cell.value, cell.digits)
    if cell.error is not None:
        text += f" ± {_digits(cell.error, cell.digits)}"
    if cell.paper is not None:
        beside = cell.paper if isinstance(cell.paper, str) else _digits(cell.paper, cell.digits)
        text += f" [{beside}]"
    return text


def _unbroken(cell: Cell) -> str:
    """As shown, with a number and its error on one line of a narrow column."""
    return shown(cell) if isinstance(cell, str) else shown(cell).replace(" ± ", "\u00a0±\u00a0")


def _digits(value: float, digits: int) -> str:
    if not isfinite(value):
        return "–"
    tiny = value != 0 and abs(value) < 0.5 * 10**-digits
    return f"{value:.1e}" if tiny or abs(value) >= 1e6 else f"{value:.{digits}f}"


def markdown(table: Table) -> str:
    """The table and what to know about it."""
    lines = ["| " + " | ".join(table.columns) + " |", "|" + "---|" * len(table.columns)]
    lines += ["| " + " | ".join(map(_unbroken, row)) + " |" for row in table.rows]
    if any(
        isinstance(cell, Number) and cell.paper is not None for row in table.rows for cell in row
    ):
        lines += ["", "In square brackets: the paper."]
    lines += [""] if table.notes else []
    lines += [f"- {note}" for note in table.notes]
    if table.differs:
        lines += ["", "What differs from the paper:", ""] + [f"- {line}" for line in table.differs]
    return "\n".join(lines)


def page(results: Iterable[tuple[str, Result]], figures: Path) -> str:
    """All results as one page; figures are written beside it."""
    results = list(results)
    parts = [HEAD, overview([(name, result.table) for name, result in results]), ""]
    for name, result in results:
        parts += [f"## {result.table.title}", ""]
        parts += [f"`{result.command(name)}` · {result.made_on()}", ""]
        if result.table.panels:
            path = figures / f"{name}.{_format(result.table)}"
            draw(result.table, path)
            parts += [f"![{result.table.title}]({figures.name}/{path.name})", ""]
        parts += [markdown(result.table), ""]
    return "\n".join(parts)


def overview(tables: Iterable[tuple[str, Table]]) -> str:
    """What the paper claims and what was found, a line each."""
    lines = ["| experiment | the paper | here | |", "|---|---|---|---|"]
    by_name = dict(tables)
    for name in by_name:
        claim = CLAIMS[name]
        verdict, found = claim.verdict(name, by_name)
        lines.append(f"| `{name}` | {claim.says} | {found} | {verdict} |")
    return "\n".join(lines)


HEAD = """# The paper's tables and figures, with our numbers

Every section is one entry of `python -m experiments list`, made by the command under its title
and rendered by `python -m experiments render` from the rows under `experiments/results/`.
The paper is Leemann et al., arXiv 2405.13536 (TMLR 2025); lime-limit, seven-explainers,
attention-maps and histogram are figures of Lopardo et al., ICML 2024. Our models are of our
own training, so numbers need not agree; what they are about should. ± is one standard error.

The overview is computed from the tables below it. “Agrees” is about order and effect, not about
sizes; “within the set-up” means that models, sizes or data differ from the paper's, as told under
the table. “Differs because” gives a cause that was tested, “open” what would settle it.
"""


def _format(table: Table) -> str:
    """Few points are drawn as they are, many as a picture."""
    panels = [panel for panel in table.panels if isinstance(panel, Panel)]
    n_points = sum(len(series.x) for panel in panels for series in panel.series)
    return "svg" if n_points <= MAX_SVG_POINTS else "png"


def draw(table: Table, path: Path) -> None:
    """The panels side by side; the name of the file says in which format."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    n_columns = min(2, len(table.panels))  # three would be too small to read on a page
    n_rows = -(-len(table.panels) // n_columns)
    settings = {"svg.hashsalt": "slalom", "svg.fonttype": "none", "font.size": 8}
    with rc_context(settings):
        figure = Figure(figsize=(WIDTH * n_columns, HEIGHT * n_rows), layout="constrained")
        axes = figure.subplots(n_rows, n_columns, squeeze=False).ravel()
        for place, panel in zip(axes, table.panels, strict=False):
            _map(place, panel) if isinstance(panel, Map) else _panel(place, panel)
        for place in axes[len(table.panels) :]:
            place.set_visible(False)
        path.parent.mkdir(parents=True, exist_ok=True)
        dated = "Date" if path.suffix == ".svg" else "Software"  # the same bytes every time
        figure.savefig(path, dpi=90, metadata={dated: None})


def _panel(axes: object, panel: Panel) -> None:
    if panel.boxes is not None:
        axes.boxplot(
            panel.boxes.values,
            positions=range(len(panel.boxes.values)),
            whis=(0, 100),
            manage_ticks=False,
            label=panel.boxes.label,
        )
    for series in panel.series:
        _series(axes, series)
    axes.set(title=panel.title, xlabel=panel.x_label, ylabel=panel.y_label)  # type: ignore[attr-defined]
    if panel.log:
        _log(axes)
    if 1 < len(panel.series) <= MAX_IN_LEGEND:
        axes.legend(fontsize=6)  # type: ignore[attr-defined]


def _log(axes: Any) -> None:
    """Ticks are written as plain numbers."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())


def _map(axes: Any, panel: Map) -> None:
    """Blue above 0, orange below, as in the views."""
    from matplotlib.colors import LinearSegmentedColormap

    colours = LinearSegmentedColormap.from_list("signed", ["#c2571a", "white", "#1f5fa8"])
    values = np.array(panel.values)
    size = max(np.abs(values).max(), 1e-12)
    axes.imshow(values, cmap=colours, vmin=-size, vmax=size, aspect="auto")
    axes.set_xticks(range(len(panel.x_marks)), panel.x_marks, rotation=60, ha="right")
    axes.set_yticks(range(len(panel.y_marks)), panel.y_marks)
    axes.set_title(panel.title)


def _series(axes: object, series: Series) -> None:
    if series.joined:
        axes.plot(series.x, series.y, label=series.label, linewidth=1)  # type: ignore[attr-defined]
    elif series.label:  # else words for points that are there
        axes.scatter(series.x, series.y, label=series.label, s=6, alpha=0.6, zorder=3)  # type: ignore[attr-defined]
    for word, x, y in zip(series.marks, series.x, series.y, strict=False):
        axes.annotate(word, (x, y), fontsize=6)  # type: ignore[attr-defined]
