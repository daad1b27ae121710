"""Classifiers that no surrogate describes must not look described; benchmarks/trust.py has more."""

import numpy as np
import pytest
from benchmarks.trust import KINDS, classifier_of, fresh_r2, is_lie, judged

import slalom

pytestmark = pytest.mark.filterwarnings("ignore::slalom.SlalomWarning")


@pytest.mark.parametrize("seed", range(6))
def test_redundant_evidence_is_not_trusted_where_it_fails(seed):
    """Any of three words will do: few deletions miss all three, and only those rows differ."""
    row = judged("any of three", "slalom-local", 30, seed)
    assert not is_lie(row), row


def test_an_odd_empty_text_carries_nothing():
    for kind in ("parity, empty odd", "xors, empty -13.8", "xors, empty -30", "xors, empty -100"):
        row = judged(kind, "slalom", 12, 0)
        assert row["r2"] is None or abs(row["r2"] - row["fresh"]) < 0.15, row
        assert row["trust"] == "low" or row["fresh"] > 0.5, row


def test_all_classes_have_the_figure_of_one_target():
    score = KINDS["xors"](15, np.random.default_rng(0))
    classifier, text = classifier_of(score, 15), " ".join(f"w{word}" for word in range(15))
    one, both = (slalom.explain(classifier, text, target=t).quality.r2 for t in ("yes", "all"))
    assert one == pytest.approx(both, abs=1e-4)


@pytest.mark.parametrize("n_queries", [21, 30])
@pytest.mark.parametrize("kind", ["one xor", "xors", "parity"])
def test_few_rows_do_not_make_a_fair_fit(kind, n_queries):
    score = KINDS[kind](10, np.random.default_rng(1))
    classifier = classifier_of(score, 10)
    text = " ".join(f"w{word}" for word in range(10))
    found = slalom.explain(classifier, text, target="yes", n_queries=n_queries)
    fresh = fresh_r2(found, classifier, "slalom", score)
    assert found.quality.trust == "low" or fresh > 0.4


@pytest.mark.parametrize("method", ["slalom", "slalom-fast", "linear", "gam"])
@pytest.mark.parametrize("kind", ["steps", "products", "noise", "maximum", "linear, huge", "count"])
def test_high_means_high_on_fresh_queries(kind, method):
    row = judged(kind, method, 20, 0)
    assert not is_lie(row), row
    if row["r2"] is not None:
        assert row["r2"] - row["fresh"] < 0.2, row
