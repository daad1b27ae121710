"""Fits of a classifier that cannot read an empty text: what it would say to nothing is a guess."""

import numpy as np
import pytest

from oracles import observed
from slalom.surrogates.base import Observations
from slalom.surrogates.slalom.fit import SlalomSurrogate
from slalom.surrogates.slalom.model import Anchor, SlalomModel


def without_empty(n_units, n_rows, rng):
    """Every unit alone, the whole text, and parts of it; the empty text cannot be asked."""
    places = rng.random((n_rows, n_units)).argsort(axis=1)
    drawn = (places < rng.integers(1, n_units + 1, size=(n_rows, 1))).astype(float)
    return np.unique(np.vstack([np.eye(n_units), np.ones((1, n_units)), drawn]), axis=0)


def test_what_nothing_says_is_no_wild_guess_where_it_cannot_be_asked():
    """A saturated classifier, whose misfit once let go of the anchor: alone was +10 ± 130."""
    rng = np.random.default_rng(2)
    counts, effects = without_empty(12, 300, rng), rng.normal(size=12)
    scores = 5 * np.tanh(2 * counts @ effects)
    given = {"weights": np.ones(len(counts)), "document_counts": np.ones(12)}
    fit = SlalomSurrogate().fit(Observations(counts, scores, **given))
    assert np.abs(fit.model.predict(np.zeros((1, 12)))).max() < 6
    assert fit.length_errors[1] == 0


@pytest.mark.parametrize("seed", range(5))
def test_what_nothing_says_stays_among_what_was_said(seed):
    """All that can be asked of three words was: of nothing they tell little."""
    scores = 5 * np.random.default_rng(seed).normal(size=7)
    counts = np.array(list(np.ndindex(2, 2, 2)), dtype=float)[1:]
    fit = SlalomSurrogate().fit(observed(counts, scores))
    nothing = fit.model.predict(np.zeros((1, 3)))[0]
    assert scores.min() <= nothing <= scores.max()


def test_an_exact_slalom_tells_what_nothing_says_without_being_asked():
    rng = np.random.default_rng(3)
    model, counts = (
        SlalomModel(2 * rng.normal(size=20), rng.normal(size=20), Anchor(0.4, 1.0)),
        without_empty(20, 400, rng),
    )
    fit = SlalomSurrogate().fit(observed(counts, model.predict(counts)))
    none = np.zeros((1, 20))
    np.testing.assert_allclose(fit.model.predict(none), model.predict(none), atol=2e-2)
