"""ContextCite's LASSO: scikit-learn's numbers, and few units where few matter."""

import numpy as np
import pytest
from sklearn.linear_model import Lasso
from sklearn.preprocessing import StandardScaler

import slalom
from slalom.surrogates.additive import LassoSurrogate
from slalom.surrogates.base import Observations
from writers import FACTS, scorer


def asked(n_rows: int, n_units: int = 12) -> Observations:
    effects = 5 * np.random.default_rng(1).normal(size=n_units)
    rng = np.random.default_rng(0)
    present = (rng.random((n_rows, n_units)) < 0.5).astype(float)
    scores = present @ effects - 20 + 3 * rng.normal(size=n_rows)
    return Observations(present, scores, np.ones(n_rows), np.ones(n_units))


@pytest.mark.parametrize("n_rows", [8, 32, 200])
@pytest.mark.parametrize("n_tokens", [1, 30])
def test_it_is_scikit_learns(n_rows, n_tokens) -> None:
    given = asked(n_rows)
    scaler = StandardScaler().fit(given.counts)
    theirs = Lasso(alpha=0.01, tol=1e-12, max_iter=100_000)
    theirs.fit(scaler.transform(given.counts), given.scores / n_tokens)
    ours = LassoSurrogate(n_tokens=n_tokens).fit(given)
    fresh = (np.random.default_rng(1).random((50, 12)) < 0.5).astype(float)
    expected = theirs.predict(scaler.transform(fresh)) * n_tokens
    np.testing.assert_allclose(ours.model.predict(fresh), expected, atol=1e-4)


def test_what_does_not_matter_gets_nothing() -> None:
    present = (np.random.default_rng(0).random((60, 10)) < 0.5).astype(float)
    given = Observations(present, 3 * present[:, 4] - 7, np.ones(60), np.ones(10))
    scores = LassoSurrogate().fit(given).scores["score"]
    assert np.flatnonzero(np.abs(scores) > 0.02).tolist() == [4]


def test_r2_is_that_of_rows_it_has_not_seen() -> None:
    given, fresh = asked(64), asked(4000)
    fit = LassoSurrogate().fit(given)
    missed = fresh.scores - fit.model.predict(fresh.counts)
    assert fit.quality.r2 == pytest.approx(1 - missed.var() / fresh.scores.var(), abs=0.1)


def test_of_an_answer_it_counts_nats_per_token() -> None:
    given = scorer()
    found = slalom.explain(given, given.text, "context-cite", n_queries=30)
    per_token = slalom.attribute(
        given.writer, list(FACTS), "Where?", method="context-cite", n_queries=30, progress=False
    )
    assert per_token.scores["score"][2] < found.scores["score"][2]  # pulled more
