"""The value–importance plane and, for methods with one score, bars: as SVG, made by hand.

    across  value        what a unit says: against the target on the left, for it on the right
    up      importance   how loudly it says it

A unit's presence raises the score where it lies right of the dashed line, what the model (not the
classifier) says of the whole text, and lowers it where it lies left: F(c) − F(c − e_i) has the
sign of v_i − F. Points carry `data-f`, their row in the page's data, so that a script can link
them to the words.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from unicodedata import east_asian_width

import numpy as np

from slalom.document import FloatArray
from slalom.explanation import Explanation
from slalom.views import reading
from slalom.views.reading import Row

WIDTH, HEIGHT = 620, 460
LEFT, RIGHT, TOP, BOTTOM = 48, 14, 14, 52
N_LABELS, N_LOUDEST = 24, 3
LETTER, LINE = 6.6, 13  # of a label, in pixels
SPOTS = (  # where a label may stand beside its point: anchor and offset, the best first
    *(("", 8.0, 4.0), ("end", -8.0, 4.0), ("mid", 0.0, -9.0), ("mid", 0.0, 17.0)),
    *(("", 6.0, -6.0), ("end", -6.0, -6.0), ("", 6.0, 14.0), ("end", -6.0, 14.0)),
    *(("", -16.0, -9.0), ("end", 16.0, -9.0), ("", -16.0, 17.0), ("end", 16.0, 17.0)),
)
N_BARS, BAR_HEIGHT = 16, 27
FAINTEST = 0.03  # strength; page.js has the same


@dataclass(frozen=True)
class Axis:
    """Data from low to high onto pixels from start to end; what lies outside sticks to the edge."""

    low: float
    high: float
    start: float
    end: float

    @property
    def slope(self) -> float:
        return (self.end - self.start) / (self.high - self.low)

    def __call__(self, data: float) -> float:
        inside = min(max(data, self.low), self.high)
        return self.start + self.slope * (inside - self.low)

    def holds(self, data: float) -> bool:
        return self.low <= data <= self.high

    def ticks(self) -> list[float]:
        """About five round numbers."""
        rough = (self.high - self.low) / 5
        power = 10.0 ** np.floor(np.log10(rough))
        step = next(float(power * m) for m in (1, 2, 5, 10) if power * m >= rough)
        first, last = int(np.ceil(self.low / step)), int(np.floor(self.high / step))
        return [step * i for i in range(first, last + 1)]


FARTHEST = 3.0  # of the anchor's value over the largest of the units', or it is not drawn
Box = tuple[float, float, float, float]  # left, top, right, bottom


def has_plane(explanation: Explanation) -> bool:
    return {"value", "importance"} <= explanation.scores.keys()


def value_axis(explanation: Explanation) -> Axis:
    """One axis for all classes, so that choosing another class only moves the points."""
    anchor = np.ravel(() if explanation.anchor is None else explanation.anchor.value)
    always = [0.0, *whole_text(explanation).tolist()]
    values = explanation.scores["value"][explanation.identified]
    always += [value for value in anchor.tolist() if _in_sight(value, values)]
    return _axis(values, always, LEFT, WIDTH - RIGHT)


def _in_sight(value: float, values: FloatArray) -> bool:
    """A local fit may put its anchor a thousand times farther out than any word."""
    return bool(abs(value) <= FARTHEST * max(1.0, np.abs(values).max(initial=0.0)))


def whole_text(explanation: Explanation) -> FloatArray:
    """What the model says of the whole text: (1,), or (n_classes,) for all classes."""
    if explanation.model is None:
        return np.zeros(0)
    return np.ravel(explanation.predict(np.ones((1, len(explanation.units)))))


def plane(explanation: Explanation, rows: Sequence[Row]) -> str:
    """The plane of one class (the target, or the predicted one), one point per row."""
    across = value_axis(explanation)
    index = reading.shown_class(explanation)
    shown = reading.for_class(explanation, index)
    values = explanation.scores["value"][explanation.identified]
    seen = shown.anchor is not None and _in_sight(float(np.ravel(shown.anchor.value)[0]), values)
    anchor = [shown.anchor.importance] if shown.anchor is not None and seen else []
    loud = shown.scores["importance"][shown.identified]
    up = _axis(loud, anchor, HEIGHT - BOTTOM, TOP)
    known = [(number, row) for number, row in enumerate(rows) if shown.identified[row.unit]]
    places = [_place(shown, row, across, up) for _, row in known]
    named = _named(places, [row for _, row in known], worth=_worth_naming(shown, known))
    points = [
        _point(shown, row, (across, up), number=number, label=named.get(place))
        for place, (number, row) in enumerate(known)
    ]
    whole = whole_text(explanation)
    line = whole[index if len(whole) > 1 else 0] if len(whole) else None
    label = escape(reading.label(explanation.labels[index]))
    return "".join(
        [
            f'<svg class="plane" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="'
            f"The {reading.counted(len(known), 'different unit')}: "
            f"across what each says of {label} (value), "
            f'up how loudly it says it (importance)">',
            *_frame(across, up, label),
            "" if line is None else _whole(across, float(line)),
            *reversed(points),  # the strongest are painted last, on top
            _anchor(shown, across, up) if seen else "",
            "</svg>",
        ]
    )


def bars(explanation: Explanation, rows: Sequence[Row], by: str) -> str:
    """The strongest units of a method with one score, as bars around a zero line."""
    shown = reading.for_class(explanation, reading.shown_class(explanation))
    strengths, sided = reading.strengths(shown, by), reading.takes_sides(shown, by)
    first = [(n, row) for n, row in enumerate(rows) if shown.identified[row.unit]][:N_BARS]
    middle, reach, height = WIDTH * 0.63, WIDTH * 0.36, BAR_HEIGHT * len(first) + 8
    parts = [
        f'<svg class="plane" viewBox="0 0 {WIDTH} {height}" role="img" '
        f'aria-label="The {reading.counted(len(first), "strongest unit")} by {escape(by)}">',
        f'<line class="zero" x1="{middle}" x2="{middle}" y1="0" y2="{height}"/>',
    ]
    for place, (number, row) in enumerate(first):
        strength = float(strengths[row.unit])
        y, length = 4 + BAR_HEIGHT * place, max(abs(strength) * reach, 0.5)
        x = middle if strength > 0 else middle - length
        parts.append(
            f'<g class="p {side(strength, sided=sided)}" data-f="{number}" '
            f'style="--s:{abs(strength):.3f}">'
            f'<title>{escape(tooltip(shown, row))}</title><rect x="{x:.1f}" y="{y + 3}" rx="2" '
            f'width="{length:.1f}" height="{BAR_HEIGHT - 6}"/>'
            f'<text class="end" x="{WIDTH * 0.25}" y="{y + 18}">{escape(_short(row.label))}</text>'
            "</g>"
        )
    return "".join([*parts, "</svg>"])


def side(strength: float, *, sided: bool) -> str:
    """The class that gives a mark its hue; none for what is too weak to take a side."""
    if abs(strength) < FAINTEST:
        return ""
    return "loud" if not sided else "for" if strength > 0 else "against"


def tooltip(explanation: Explanation, row: Row) -> str:
    """Every score of a row in one line, for readers without a script."""
    if not explanation.identified[row.unit]:
        return f"{row.label}: not identified"
    names = reading.names(explanation)
    told = [
        f"{name} {reading.number(float(scores[row.unit]), reading.digits(scores))}"
        for name, scores in ((name, explanation.scores[name]) for name in names)
    ]
    return f"{row.label}: {', '.join(told)}"


def _axis(data: FloatArray, always: Sequence[float], start: float, end: float) -> Axis:
    """All of the data, but for values so far out that they would squeeze the others."""
    low, high = np.percentile(data, (5, 95)) if data.size else (0.0, 0.0)
    spread = 1.5 * (high - low)
    inner = np.append(data[(data >= low - spread) & (data <= high + spread)], np.asarray(always))
    least, most = (float(inner.min()), float(inner.max())) if inner.size else (0.0, 0.0)
    room = 0.08 * (most - least) or 1.0
    return Axis(least - room, most + room, start, end)


def _frame(across: Axis, up: Axis, label: str) -> list[str]:
    bottom, right = HEIGHT - BOTTOM, WIDTH - RIGHT
    parts = []
    for tick in across.ticks():
        x, zero = across(tick), ' class="zero"' if tick == 0 else ""
        parts.append(
            f'<line{zero} x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{bottom}"/>'
            f'<text class="tick mid" x="{x:.1f}" y="{bottom + 16}">{_tick(tick)}</text>'
        )
    for tick in up.ticks():
        parts.append(
            f'<line x1="{LEFT}" x2="{right}" y1="{up(tick):.1f}" y2="{up(tick):.1f}"/>'
            f'<text class="tick end" x="{LEFT - 7}" y="{up(tick) + 4:.1f}">{_tick(tick)}</text>'
        )
    foot, middle = HEIGHT - 12, (TOP + bottom) / 2
    return [
        f'<g class="grid">{"".join(parts)}</g><g class="axes">',
        f'<text x="{LEFT}" y="{foot}">← against {label}</text>',
        f'<text class="mid" x="{(LEFT + right) / 2}" y="{foot}">value: what it says</text>',
        f'<text class="end" x="{right}" y="{foot}">for {label} →</text>',
        f'<text class="mid" transform="translate(13 {middle}) rotate(-90)">'
        "importance: how loudly it says it →</text></g>",
    ]


def _whole(across: Axis, score: float) -> str:
    x, bottom = across(score), HEIGHT - BOTTOM
    anchor, nudge = ("end", -5) if x > (across.start + across.end) / 2 else ("", 5)
    return (
        f'<g class="whole" style="transform:translate({x:.1f}px,0px)">'
        f'<line y1="{TOP}" y2="{bottom}"/><text class="{anchor}" x="{nudge}" y="{bottom - 7}">'
        f"model of the whole text {reading.number(score)}</text></g>"
    )


def _anchor(explanation: Explanation, across: Axis, up: Axis) -> str:
    assert explanation.anchor is not None
    value = explanation.anchor.value
    assert isinstance(value, float | int)
    x, y = across(float(value)), up(explanation.anchor.importance)
    loud = explanation.anchor.importance
    told = f"value {reading.number(float(value))}, importance {reading.number(loud)}"
    side, nudge = ("end", -9) if x > WIDTH - 90 else ("", 9)
    return (
        f'<g class="anchor" style="transform:translate({x:.1f}px,{y:.1f}px)">'
        f"<title>anchor, what is always there: {told}</title>"
        f'<path d="M0-6 6 0 0 6-6 0Z"/><text class="{side}" x="{nudge}" y="4">anchor</text></g>'
    )


def _place(explanation: Explanation, row: Row, across: Axis, up: Axis) -> tuple[float, float]:
    scores = explanation.scores
    return across(float(scores["value"][row.unit])), up(float(scores["importance"][row.unit]))


def _point(
    explanation: Explanation,
    row: Row,
    axes: tuple[Axis, Axis],
    *,
    number: int,
    label: tuple[str, float, float] | None,
) -> str:
    across, up = axes
    x, y = _place(explanation, row, across, up)
    value, loud = (explanation.scores[name][row.unit] for name in ("value", "importance"))
    by = reading.colouring(explanation)
    strength = float(reading.strengths(explanation, by)[row.unit])
    hue = side(strength, sided=reading.takes_sides(explanation, by))
    beyond = "" if across.holds(value) and up.holds(loud) else " beyond"
    anchor, dx, dy = label or ("", 8.0, 4.0)
    return (
        f'<g class="p {hue}{beyond}{" named" if label else ""}" data-f="{number}" '
        f'style="transform:translate({x:.1f}px,{y:.1f}px);--s:{abs(strength):.3f}">'
        f"<title>{escape(tooltip(explanation, row))}</title>"
        f"{_cross(explanation, row, axes, at=(x, y))}"
        f'<circle r="4.5"/><text class="{anchor}" x="{dx:g}" y="{dy:g}">'
        f"{escape(_short(row.label))}</text></g>"
    )


def _cross(
    explanation: Explanation, row: Row, axes: tuple[Axis, Axis], *, at: tuple[float, float]
) -> str:
    """One standard error to each side, within the frame."""
    errors, (across, up), (x, y) = explanation.errors, axes, at
    if not {"value", "importance"} <= errors.keys():
        return ""
    dx = abs(across.slope * float(errors["value"][row.unit]))
    dy = abs(up.slope * float(errors["importance"][row.unit]))
    left, right = max(-dx, LEFT - x), min(dx, WIDTH - RIGHT - x)
    top, bottom = max(-dy, TOP - y), min(dy, HEIGHT - BOTTOM - y)
    return f'<path class="error" d="M{left:.1f} 0H{right:.1f}M0 {top:.1f}V{bottom:.1f}"/>'


def _worth_naming(explanation: Explanation, known: Sequence[tuple[int, Row]]) -> set[int]:
    """Rows that take a side, and the loudest few."""
    strengths = np.abs(reading.strengths(explanation, reading.colouring(explanation)))
    loud = explanation.scores["importance"]
    loudest = sorted(known, key=lambda pair: -loud[pair[1].unit])[:N_LOUDEST]
    return {row.unit for _, row in known if strengths[row.unit] >= FAINTEST} | {
        row.unit for _, row in loudest
    }


def _named(
    places: Sequence[tuple[float, float]], rows: Sequence[Row], *, worth: set[int]
) -> dict[int, tuple[str, float, float]]:
    """Labels of the strongest points, where they cover neither a point nor each other."""
    taken: list[Box] = [(x - 4, y - 4, x + 4, y + 4) for x, y in places]
    named: dict[int, tuple[str, float, float]] = {}
    for place, ((x, y), row) in enumerate(zip(places, rows, strict=True)):
        if row.unit not in worth or len(named) == N_LABELS:
            continue
        wide = _width(_short(row.label))
        for anchor, dx, dy in SPOTS:
            left = x + dx - {"": 0.0, "end": wide, "mid": wide / 2}[anchor]
            box = (left, y + dy - LINE + 3, left + wide, y + dy + 3)
            inside = box[0] > LEFT and box[2] < WIDTH and box[1] > TOP and box[3] < HEIGHT - BOTTOM
            if inside and not any(_overlap(box, other) for other in taken):
                taken.append(box)
                named[place] = (anchor, dx, dy)
                break
    return named


def _overlap(a: Box, b: Box) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def _width(text: str) -> float:
    return LETTER * sum(1.8 if east_asian_width(c) in "WF" else 1.0 for c in text)


def _short(label: str) -> str:
    return label if len(label) <= 18 else f"{label[:17]}…"


def _tick(tick: float) -> str:
    return f"{round(tick, 6) + 0.0:g}".replace("-", "−")
