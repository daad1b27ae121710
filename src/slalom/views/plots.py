"""Explanations and curves as matplotlib figures, for papers and notebooks; needs the extra `plot`.

Knows numbers and what a reader is told about them, nothing of classifiers or methods.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

from slalom.document import FloatArray
from slalom.errors import MissingExtraError
from slalom.explanation import Explanation
from slalom.views import reading

if TYPE_CHECKING:
    from matplotlib.figure import Figure

N_BARS = 20
FOR, AGAINST, STRONG = "#2f6fb7", "#e08e3c", "#7a63c0"  # as in the terminal


class Path(Protocol):
    """A deletion or insertion curve."""

    @property
    def shares(self) -> FloatArray: ...

    @property
    def probabilities(self) -> FloatArray: ...


class Errors(Protocol):
    """Errors by the number of removed units."""

    @property
    def n_removed(self) -> Any: ...

    @property
    def squared(self) -> FloatArray: ...

    @property
    def no_change(self) -> FloatArray: ...


def plot_units(explanation: Explanation, score: str | None = None) -> "Figure":
    """The strongest units as bars, the strongest on top; lines are standard errors."""
    names = reading.checked_names(explanation, () if score is None else (score,))
    shown = reading.for_class(explanation, reading.shown_class(explanation))
    by = reading.colouring(shown, names)
    rows = reading.rows(shown, by)[:N_BARS]
    units = [row.unit for row in rows]
    scores, errors = shown.scores[by][units], shown.errors.get(by)
    sided = reading.takes_sides(shown, by)
    label = explanation.labels[reading.shown_class(explanation)]
    figure, axes = _figure(f"{reading.prediction(explanation)}: {by} for “{label}”")
    figure.set_figheight(1.2 + 0.24 * len(rows))
    axes.barh(
        [f"{row.label} ×{row.times}" if row.times > 1 else row.label for row in rows],
        scores,
        xerr=None if errors is None else errors[units],
        color=[STRONG if not sided else FOR if s > 0 else AGAINST for s in scores],
        error_kw={"ecolor": "#666666", "elinewidth": 1},
    )
    axes.invert_yaxis()
    axes.axvline(0, color="#666666", linewidth=0.8)
    axes.set_xlabel(reading.SAYS.get(by, by))
    return figure


def plot_curves(curves: Mapping[str, Path], *, title: str = "") -> "Figure":
    """The probability of the class by the share of units deleted or inserted."""
    figure, axes = _figure(title)
    for name, curve in curves.items():
        axes.plot(curve.shares, curve.probabilities, label=name)
    axes.set(xlabel="share of the units", ylabel="probability of the class", ylim=(0, 1))
    axes.legend()
    return figure


def plot_removal_errors(errors: Mapping[str, Errors], *, title: str = "") -> "Figure":
    """The error of the predicted change by the number of units removed; dashed: no change."""
    figure, axes = _figure(title)
    for name, found in errors.items():
        axes.plot(found.n_removed, found.squared, marker="o", label=name)
    first = next(iter(errors.values()))
    axes.plot(first.n_removed, first.no_change, "k--", label="predicting no change")
    axes.set(xlabel="units removed", ylabel="mean squared error of the log-odds")
    axes.legend()
    return figure


def _figure(title: str) -> tuple["Figure", Any]:
    """A figure of its own: the caller's pyplot state is left alone."""
    try:
        from matplotlib.figure import Figure
    except ImportError as problem:
        raise MissingExtraError("matplotlib", "plot") from problem
    figure = Figure(figsize=(5, 3.2), layout="constrained")
    axes = figure.subplots()
    axes.set_title(title)
    return figure, axes
