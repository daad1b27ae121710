"""Curves as matplotlib figures, for papers and notebooks; needs the extra `plot`.

Knows curves by their numbers, nothing of classifiers or methods.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

from slalom.document import FloatArray
from slalom.errors import MissingExtraError

if TYPE_CHECKING:
    from matplotlib.figure import Figure


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
