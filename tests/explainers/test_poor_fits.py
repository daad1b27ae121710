"""Explanations that are not to be trusted are counted, and nothing is kept of them."""

import tracemalloc
from dataclasses import replace

import pytest

import slalom
from corpora import classifier
from explanations import made
from slalom.errors import SlalomWarning
from slalom.explainers.base import UNREAD
from slalom.explainers.methods import PoorFits


def of(trust, r2, notes=()):
    explanation = made()
    return replace(
        explanation, quality=replace(explanation.quality, trust=trust, r2=r2, notes=notes)
    )


def test_the_lowest_and_how_many_are_said():
    poor = PoorFits()
    for one in (of("high", 0.95), of("low", 0.2), slalom.SlalomError("no text")):
        poor.add(one)
    for one in (of("low", -0.3), of("low", 0.9, (f"it {UNREAD}",))):
        poor.add(one)
    with pytest.warns(SlalomWarning) as told:
        poor.warn()
    unread, badly = (str(one.message) for one in told)
    assert "unknown to the tokenizer: 1 of 4" in unread
    assert "2 of 4 explanations describe the classifier poorly (lowest" in badly
    assert "R² -0.30" in badly


def test_a_stream_keeps_nothing_of_what_it_has_handed_over():
    texts = [f"a great film with song {n % 50}" for n in range(1800)]
    peaks = [0, 0, 0]  # bytes, of every 600 documents
    tracemalloc.start()
    try:
        each = slalom.explain_each(classifier(), iter(texts), method="leave-one-out")
        for n, _ in enumerate(each):
            peaks[n // 600] = max(peaks[n // 600], tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    assert peaks[2] - peaks[1] < 600 * 200  # one Quality alone takes 280 per document


def test_a_fit_of_minutes_is_announced_before_anything_is_asked():
    def f(texts):
        raise RuntimeError("asked")

    text = " ".join(f"w{n}" for n in range(1500))
    given = slalom.FunctionClassifier(f, labels=["no", "yes"])
    with (
        pytest.warns(SlalomWarning, match="1500 different units, so its fit alone .* 2 min"),
        pytest.raises(slalom.SlalomError, match="asked"),
    ):
        slalom.explain(given, text, units="word", n_queries=5000)
