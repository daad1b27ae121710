"""Figures are drawn from numbers alone."""

import io
import sys
from itertools import pairwise

import numpy as np
import pytest

import slalom
from explanations import made, with_facts, with_one_score
from oracles import TEXT, linear_oracle
from slalom.metrics.faithfulness import deletion
from slalom.metrics.subject import subject_of
from slalom.views import plots
from slalom.views.plots import _apart, plot_curves


def test_curves_become_figures(monkeypatch):
    monkeypatch.delitem(sys.modules, "matplotlib.pyplot", raising=False)  # others may have used it
    classifier = linear_oracle()[0].classifier
    found = {
        name: slalom.explain(classifier, TEXT, name, target="pos", n_queries=200)
        for name in ("linear", "constant")
    }
    curves = plot_curves(
        {name: deletion(subject_of(classifier, e)) for name, e in found.items()}, title="x"
    )
    assert len(curves.axes[0].lines) == 2
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
    assert made().plot("value").axes[0].get_xlabel().endswith("(log-odds)")
    assert "log-odds" not in made().plot("importance").axes[0].get_xlabel()
    with pytest.raises(slalom.SlalomError, match="unknown score"):
        made().plot("loudness")


@pytest.mark.parametrize("scale", ["log-odds", "probability"])
@pytest.mark.parametrize("score", ["shapley", "value"])
def test_no_axis_label_is_cut_off(score, scale):
    figure = made().plot(None if scale == "probability" else score, scale=scale)
    figure.draw_without_rendering()
    label, frame = figure.axes[0].xaxis.label.get_window_extent(), figure.get_window_extent()
    assert frame.x0 <= label.x0
    assert label.x1 <= frame.x1


def drawn(figure, kind="svg"):
    return plots.picture(figure, kind)


def labels_of(figure):
    figure.draw_without_rendering()
    return [text.get_window_extent() for text in figure.axes[0].texts]


def test_the_plane_names_its_words_without_covering_any():
    crowd = with_facts(made(" ".join(f"word{n}" for n in range(60)) + " great awful slow"))
    figure = plots.plot_plane(crowd)
    boxes = [(b.x0, b.y0, b.x1, b.y1) for b in labels_of(figure)]
    assert len(boxes) >= 3
    assert all(_apart(box, boxes[:n]) for n, box in enumerate(boxes))
    assert "value" in figure.axes[0].get_xlabel()
    with pytest.raises(slalom.SlalomError, match="no importances"):
        plots.plot_plane(with_one_score(made()))


def test_equal_words_at_one_place_are_named_once():
    figure = plots.plot_plane(with_facts(made("great Great great, but awful")))
    named = [text.get_text().casefold() for text in figure.axes[0].texts]
    assert named.count("great") == 1


def test_words_in_context_are_those_measured_both_ways():
    explanation = with_facts(made())
    figure = plots.plot_context(explanation)
    both = explanation.measured["alone"] & explanation.measured["removal"]
    n_points = sum(len(points.get_offsets()) for points in figure.axes[0].collections[::2])
    assert 0 < n_points <= both.sum()
    assert figure.axes[0].get_title().startswith("“")
    with pytest.raises(slalom.SlalomError, match="measured no word both"):
        plots.plot_context(made())


def test_the_text_is_all_there_line_by_line():
    explanation = made(
        "A great film.\nAn awful end with 5$ and 6$. " + "Words and more words. " * 12
    )
    figure = plots.plot_text(explanation)
    words = "".join(text.get_text() for text in figure.axes[0].texts).replace("\\$", "$")
    assert words.replace(" ", "") == explanation.text.replace(" ", "").replace("\n", "")
    right = figure.axes[0].get_window_extent().x1
    assert all(box.x1 <= right + 12 for box in labels_of(figure))
    tops = np.unique(np.round([box.y1 for box in labels_of(figure)]))
    assert len(tops) > 3
    boxes = sorted(labels_of(figure), key=lambda box: (-round(box.y1), box.x0))
    beside = [(a, b) for a, b in pairwise(boxes) if round(a.y1) == round(b.y1)]
    assert len(beside) > 10
    assert max(b.x0 - a.x1 for a, b in beside) < 12  # pixels: no holes in a line
    heights = [box.height for box in labels_of(figure)]
    assert max(heights) < 0.8 * np.diff(tops).min()  # no line touches another
    assert b"<svg" in drawn(figure)


def shouting(texts):
    return [[0.3, 0.7] if "great" in text else [0.8, 0.2] for text in texts]


def test_sentences_as_units_leave_room_for_their_bars():
    long = "A great start with one song that goes on and on until the last of us has left the hall."
    text = f"{long}\nAn awful end."
    explanation = slalom.explain(shouting, text, units="sentence")
    bars = explanation.plot()
    assert drawn(bars, "png")  # a warning that nothing fits would be an error here
    named = [label.get_text() for label in bars.axes[0].get_yticklabels()]
    assert sorted(named) == ["A great start with one song…", "An awful end."]
    frame = bars.axes[0].get_window_extent()
    assert frame.width > 0.4 * bars.get_window_extent().width
    painted = plots.plot_text(explanation)
    right = painted.axes[0].get_window_extent().x1
    assert all(box.x1 <= right for box in labels_of(painted))
    said = " ".join(line.get_text() for line in painted.axes[0].texts)
    assert said.split() == text.split()
    assert repr(explanation).count("…") == 1


def test_methods_beside_each_other_are_a_grid():
    figure = plots.plot_comparison({"slalom": made(), "attention": with_one_score(made())})
    assert [label.get_text() for label in figure.axes[0].get_xticklabels()] == [
        "slalom",
        "attention",
    ]
    assert drawn(figure, "png").startswith(b"\x89PNG")
    with pytest.raises(slalom.SlalomError, match="not about the same units"):
        plots.plot_comparison({"a": made(), "b": made("another text")})
    with pytest.raises(slalom.SlalomError, match="at least one"):
        plots.plot_comparison({})


def test_an_unknown_kind_of_picture_is_refused():
    with pytest.raises(slalom.SlalomError, match=r"\.png, \.svg or \.pdf"):
        plots.picture(made().plot(), "bmp")
