"""Explanations and curves as matplotlib figures, for papers and notebooks; needs the extra `plot`.

Knows explanations, but no classifier and no method. Figures are returned, never shown, and the
caller's pyplot state is left alone.
"""

import io
from collections.abc import Mapping, Sequence
from textwrap import wrap
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from slalom.document import FloatArray
from slalom.errors import InputError, needing
from slalom.explanation import Explanation
from slalom.scales import LOG_ODDS, on_scale
from slalom.views import reading
from slalom.views.reading import UnitRow
from slalom.views.sentence import context_sentence, plain, sentence

if TYPE_CHECKING:
    from matplotlib.figure import Figure

N_BARS, N_WORDS, N_NAMED = 20, 20, 16
FOR, AGAINST, STRONG, GREY = reading.FOR[1], reading.AGAINST[1], reading.UNSIGNED[1], "#8a92a0"
FORMATS = ("png", "svg", "pdf")
FAINT = 0.35  # opacity of points whose error is larger than the spread of the words
LINE = 0.34  # inches of a line of text
Box = tuple[float, float, float, float]  # left, low, right, high
MAX_LENGTH = 28  # characters of a unit beside the bars: they need the room


class Path(Protocol):
    """A deletion or insertion curve."""

    @property
    def shares(self) -> FloatArray: ...

    @property
    def probabilities(self) -> FloatArray: ...


def plot_units(
    explanation: Explanation, score: str | None = None, scale: str = LOG_ODDS
) -> "Figure":
    """The strongest units as bars, the strongest on top; lines are 90 % intervals."""
    shown, by = _looked_at(on_scale(explanation, scale), score)
    rows = reading.rows(shown, by)[:N_BARS]
    units = [row.unit for row in rows]
    scores, errors = shown.scores[by][units], shown.errors.get(by)
    label = reading.label(explanation.labels[reading.shown_class(explanation)])
    title = f"{reading.TITLES.get(by, by)} for “{label}”"
    figure, axes = _figure(f"{reading.prediction(explanation)}: {title}")
    figure.set_figheight(1.2 + 0.24 * len(rows))
    axes.barh(
        range(len(rows)),
        scores,
        xerr=None if errors is None else reading.SURE * errors[units],
        color=_hues(shown, by)[units].tolist(),
        error_kw={"ecolor": "#666666", "elinewidth": 1},
    )
    axes.set_yticks(range(len(rows)), [_named(row.label, row.more) for row in rows])
    axes.invert_yaxis()
    axes.axvline(0, color="#666666", linewidth=0.8)
    meaning = reading.MEANINGS.get(by, by)
    measure = reading.explained(explanation)[0] if scale == LOG_ODDS else "probability"
    has_unit = by in reading.LOG_ODDS | {"score"}
    meaning = f"{meaning} ({measure})" if has_unit else meaning
    axes.set_xlabel("\n".join(wrap(meaning, 44)))  # matplotlib cuts off what is longer
    return figure


def plot_plane(explanation: Explanation) -> "Figure":
    """Words by value (across) and importance (up); crosses are 90 % intervals."""
    shown, by = _looked_at(explanation, None)
    if not {"value", "importance"} <= shown.scores.keys():
        raise InputError(f"{explanation.method} has no importances: a plane needs a SLALOM")
    rows = [row for row in reading.rows(shown, by) if shown.identified[row.unit]]
    shares = reading.weight_shares(shown)[[row.unit for row in rows]]
    label = reading.label(explanation.labels[reading.shown_class(explanation)])
    empty = 0.0 if shown.anchor is None else float(np.ravel(shown.anchor.value)[0])
    figure, axes = _figure(plain(sentence(explanation)), size=(6.4, 4.8))
    axes.axvline(empty, color="#666666", linewidth=0.8)
    axes.set_xlabel(f"← against   value   for “{_literal(label)}” →")
    axes.set_ylabel("importance →")
    size = 12 + 160 * shares / max(float(shares.max(initial=0.0)), 1e-9)
    _scatter(figure, axes, shown, rows, ("value", "importance"), size)
    return figure


def plot_context(explanation: Explanation) -> "Figure":
    """Words by their score alone (across) and their removal (up), both measured."""
    shown, by = _looked_at(explanation, None)
    known = shown.is_measured("alone") & shown.is_measured("removal") & shown.identified
    if not known.any():
        raise InputError(f"{explanation.method} measured no word both alone and in the text")
    rows = [row for row in reading.rows(shown, by) if known[row.unit]]
    index = reading.shown_class(explanation)
    label = _literal(reading.label(explanation.labels[index]))
    figure, axes = _figure(context_sentence(shown, index), size=(5.6, 5.6))
    axes.axvline(0, color="#666666", linewidth=0.8)
    axes.axhline(0, color="#666666", linewidth=0.8)
    axes.axline((0, 0), slope=1, color="#666666", linewidth=0.8, linestyle="--")
    axes.set_xlabel(f"← against   alone   for “{label}” →")
    axes.set_ylabel("in the text (removal) →")
    _scatter(figure, axes, shown, rows, ("alone", "removal"), np.full(len(rows), 40.0))
    return figure


def _scatter(
    figure: Any,
    axes: Any,
    shown: Explanation,
    rows: Sequence[UnitRow],
    names: tuple[str, str],
    sizes: FloatArray,
) -> None:
    """Points with names and crosses; faint if an error is larger than the spread of the words."""
    units = [row.unit for row in rows]
    scores = np.stack([shown.scores[name][units] for name in names])
    errors = np.stack([shown.errors.get(name, np.zeros(len(shown.units)))[units] for name in names])
    hues = _hues(shown, reading.colouring(shown))[units]
    unsure = (errors > scores.std(axis=1, keepdims=True)).any(axis=0)
    for strong in (False, True):
        at = unsure != strong
        fade = 1.0 if strong else FAINT
        x, y = scores[:, at]
        axes.scatter(x, y, s=sizes[at], color=hues[at], alpha=fade, linewidths=0)
        across, up = reading.SURE * errors[:, at]
        axes.errorbar(
            *(x, y, up, across),
            fmt="none",
            ecolor=hues[at],
            elinewidth=0.7,
            alpha=fade * FAINT,
        )
    axes.margins(0.12)
    places = [(row.label, *at) for row, at in zip(rows, scores.T.tolist(), strict=True)]
    once = {(name.casefold(), *at): (name, *at) for name, *at in reversed(places)}  # equal words
    _name(figure, axes, list(reversed(once.values())))


def plot_text(explanation: Explanation, score: str | None = None) -> "Figure":
    """The text with its units painted."""
    shown, by = _looked_at(explanation, score)
    figure, axes = _figure("", size=(7.2, 3.0))
    n_lines = _paint(figure, axes, shown, by)
    figure.set_figheight(0.5 + LINE * n_lines)
    figure.suptitle(plain(sentence(explanation)), fontsize=10, wrap=True)
    return figure


def plot_comparison(explanations: Mapping[str, Explanation]) -> "Figure":
    """Words down, methods across: scores of the strongest words, relative to each method's own."""
    if not explanations:
        raise InputError("a comparison needs at least one explanation")
    first = next(iter(explanations.values()))
    if any(e.spans != first.spans for e in explanations.values()):
        raise InputError("these explanations are not about the same units of the same text")
    columns = []
    for explanation in explanations.values():
        shown, by = _looked_at(explanation, None)
        columns.append(reading.strengths(shown, by))
    table = np.column_stack(columns)  # (n_units, n_methods)
    order = np.argsort(-np.abs(table).mean(axis=1), kind="stable")[:N_WORDS]
    chosen = np.sort(order)  # as they stand in the text
    figure, axes = _figure(
        reading.prediction(first), size=(1.9 + 1.0 * len(columns), 1.4 + 0.27 * len(chosen))
    )
    axes.imshow(table[chosen], cmap=_two_sided(), vmin=-1, vmax=1, aspect="auto")
    axes.set_yticks(range(len(chosen)), [_named(reading.label(first.units[u])) for u in chosen])
    axes.set_xticks(range(len(columns)), list(explanations), rotation=30, ha="right")
    for row, unit in enumerate(chosen):
        for column in range(len(columns)):
            if abs(table[unit, column]) >= reading.FAINTEST:
                axes.text(
                    column, row, f"{table[unit, column]:+.1f}", ha="center", va="center", size=8
                )
    return figure


def plot_curves(curves: Mapping[str, Path], *, title: str = "") -> "Figure":
    """The probability of the class by the share of units deleted or inserted."""
    figure, axes = _figure(title)
    for name, curve in curves.items():
        axes.plot(curve.shares, curve.probabilities, label=name)
    axes.set(xlabel="share of the units", ylabel="probability of the class", ylim=(0, 1))
    axes.legend()
    return figure


def picture(figure: "Figure", kind: str) -> bytes:
    """The figure as a file of this kind: png, svg or pdf."""
    if kind not in FORMATS:
        raise InputError(f"cannot draw {kind!r}: give a file that ends in .png, .svg or .pdf")
    sink = io.BytesIO()
    figure.savefig(sink, format=kind, dpi=160)
    return sink.getvalue()


def _looked_at(explanation: Explanation, score: str | None) -> tuple[Explanation, str]:
    """One class of an explanation, and the name of the score to draw."""
    names = reading.checked_names(explanation, () if score is None else (score,))
    shown = reading.for_class(explanation, reading.shown_class(explanation))
    return shown, reading.colouring(shown, names)


def _hues(shown: Explanation, by: str) -> Any:
    """(n_units,) colours; grey if a score may be zero."""
    strengths, sided = reading.strengths(shown, by), reading.takes_sides(shown, by)
    side = np.where(strengths > 0, FOR, AGAINST) if sided else np.full(len(strengths), STRONG)
    return np.where(np.abs(strengths) < reading.FAINTEST, GREY, side)


def _name(figure: Any, axes: Any, points: Sequence[tuple[str, float, float]]) -> None:
    """Label the first points where the labels cover neither points nor each other."""
    figure.draw_without_rendering()
    places = axes.transData.transform([(x, y) for _, x, y in points])
    taken = [(x - 3.0, y - 3.0, x + 3.0, y + 3.0) for x, y in places]
    frame = axes.get_window_extent()
    for label, x, y in points[:N_NAMED]:
        for dx, dy, side in (
            (7, -3, "left"),
            (-7, -3, "right"),
            (0, 8, "center"),
            (0, -14, "center"),
        ):
            text = axes.annotate(
                _named(label),
                (x, y),
                xytext=(dx, dy),
                textcoords="offset points",
                ha=side,
                size=9,
            )
            box = text.get_window_extent()
            corners = (box.x0, box.y0, box.x1, box.y1)
            inside = frame.x0 <= box.x0 and box.x1 <= frame.x1 and box.y1 <= frame.y1
            if inside and _apart(corners, taken):
                taken.append(corners)
                break
            text.remove()


def _apart(box: Box, others: Sequence[Box]) -> bool:
    """Whether a box covers none of the others."""
    return not any(
        box[0] < other[2] and other[0] < box[2] and box[1] < other[3] and other[1] < box[3]
        for other in others
    )


def _paint(figure: Any, axes: Any, shown: Explanation, by: str) -> int:
    """Words from left to right, line by line; returns the number of lines."""
    from matplotlib.colors import to_rgba

    axes.set_axis_off()
    figure.draw_without_rendering()
    hues, strengths = _hues(shown, by), np.abs(reading.strengths(shown, by))
    width = axes.get_window_extent().width / figure.dpi * 72  # points
    n_fitting = int(width / _width(figure, axes, "n"))
    x, line = 0.0, 0
    for side in reading.segments(shown):
        for segment in side:
            for at, piece in enumerate(_lines(reading.visible(segment.text), n_fitting)):
                wide = _width(figure, axes, piece)
                if at or (x + wide > width and x > 0 and any(c.isalnum() for c in piece)):
                    x, line = 0.0, line + 1
                text = _written(axes, piece, (x, -line * LINE * 72))
                if segment.unit is not None:
                    alpha = 0.75 * float(strengths[segment.unit])
                    fill = to_rgba(str(hues[segment.unit]), alpha)
                    text.set_bbox({"facecolor": fill, "edgecolor": "none", "pad": 1.0})
                x += wide
        x, line = 0.0, line + 1
    return line


def _lines(text: str, n_fitting: int) -> list[str]:
    """Cut at newlines, and where a unit (such as a sentence) is longer than a line."""
    return [
        piece
        for line in text.split("\n")
        for piece in ([line] if len(line) <= n_fitting else wrap(line, n_fitting))
    ]


def _written(axes: Any, piece: str, place: tuple[float, float]) -> Any:
    return axes.annotate(
        _literal(piece), (0, 1), place,
        xycoords="axes fraction", textcoords="offset points", va="top", size=12,
    )  # fmt: skip


def _width(figure: Any, axes: Any, piece: str) -> float:
    """Its width in points, blanks at the ends included, which matplotlib does not measure."""
    text = _written(axes, piece, (0, 0))
    wide: float = text.get_window_extent(figure.canvas.get_renderer()).width / figure.dpi * 72
    text.remove()
    return max(wide, 3.4 * (len(piece) - len(piece.strip(" "))))


def _two_sided() -> Any:
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("sides", [AGAINST, "#ffffff", FOR])


def _named(label: str, more: str = "") -> str:
    """The beginning of a unit on one line."""
    return _literal(reading.short(label, MAX_LENGTH) + more)


def _literal(text: str) -> str:
    """Escape dollar signs, which would start a formula."""
    return text.replace("$", r"\$")


def _figure(title: str, *, size: tuple[float, float] = (5.0, 3.2)) -> tuple["Figure", Any]:
    """A figure of its own: the caller's pyplot state is left alone."""
    with needing("matplotlib", "plot"):
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    axes.set_title(_literal(title), fontsize=10, wrap=True)
    return figure, axes
