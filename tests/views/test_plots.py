"""Figures are drawn from numbers alone."""

import io
import sys

import pytest

import slalom
from explanations import made
from oracles import TEXT, linear_oracle
from slalom.metrics.faithfulness import deletion, removal_error
from slalom.metrics.subject import subject_of
from slalom.views.plots import plot_curves, plot_removal_errors


def test_curves_and_errors_become_figures(monkeypatch):
    monkeypatch.delitem(sys.modules, "matplotlib.pyplot", raising=False)  # others may have used it
    classifier = linear_oracle()[0].classifier
    found = {
        name: slalom.explain(classifier, TEXT, name, target="pos", n_queries=200)
        for name in ("linear", "constant")
    }
    curves = plot_curves(
        {name: deletion(subject_of(classifier, e)) for name, e in found.items()}, title="x"
    )
    errors = plot_removal_errors(
        {name: removal_error(subject_of(classifier, e)) for name, e in found.items()}
    )
    assert len(curves.axes[0].lines) == 2
    assert len(errors.axes[0].lines) == 3
    sink = io.BytesIO()
    curves.savefig(sink, format="svg")
    assert b"<svg" in sink.getvalue()


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(slalom.SlalomError, match=r"slalom-xai\[plot\]"):
        plot_curves({})


def test_units_become_bars_with_errors():
    figure = made().plot()
    (axes,) = figure.axes
    assert len(axes.patches) == 15  # different units
    assert "great ×3" in [label.get_text() for label in axes.get_yticklabels()]
    assert made().plot("value").axes[0].get_xlabel()
    with pytest.raises(slalom.SlalomError, match="unknown score"):
        made().plot("loudness")
