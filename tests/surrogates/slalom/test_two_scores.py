"""The two scores: bounded, shared by classes, the same with more queries, and sure of that."""

import numpy as np
import pytest

from slalom.samplers.base import random_subsets
from slalom.surrogates.base import Observations
from slalom.surrogates.rows import Rows
from slalom.surrogates.slalom.fit import SlalomSurrogate
from slalom.surrogates.slalom.model import Prior
from slalom.surrogates.slalom.newton import descend
from slalom.surrogates.slalom.process import AllAsked, fit_process
from slalom.surrogates.slalom.two_scores import (
    REACH,
    Known,
    Predicted,
    Unasked,
    chance_of,
    description,
    optima,
    predicted,
    range_of,
    two_scores,
)

N_WORDS = 24


def subsets(n_rows, seed):
    """Of uniform sizes, nothing and everything first."""
    rng = np.random.default_rng(seed)
    drawn = random_subsets(rng.integers(1, N_WORDS, n_rows - 2), N_WORDS, rng)
    return np.vstack([np.zeros(N_WORDS), np.ones(N_WORDS), drawn]).astype(float)


def world(counts):
    """Words that add up, attend and turn each other round: no SLALOM."""
    rng = np.random.default_rng(3)
    effects, weights = rng.normal(size=N_WORDS), np.exp(rng.normal(size=N_WORDS))
    attended = counts @ (weights * effects) / (6.0 + counts @ weights)
    return 2 * attended + 0.2 * counts @ effects - 0.5 * counts[:, 0] * counts[:, 1]


def described(counts, scores):
    seen = Observations(counts, scores, np.ones(len(counts)), np.ones(counts.shape[1]))
    return two_scores(seen, Known(counts[:0], scores[:0]))


@pytest.mark.parametrize(("anchor", "lost"), [(2.0, -20.0), (-20.0, 5.0)])
def test_the_better_of_two_optima_is_found(anchor, lost):
    """With an anchor, or with none, from a point on the other side of the ridge."""
    rng, counts = np.random.default_rng(5), subsets(400, 0)[1:]
    values, weights = rng.normal(size=N_WORDS), np.exp(rng.normal(size=N_WORDS))
    attended = counts @ (weights * values) / (np.exp(anchor) + counts @ weights)
    scores = (attended + 0.05 * rng.normal(size=len(counts)))[:, None]
    shown, ends = np.hstack([counts, np.ones((len(counts), 1))]), counts.sum(axis=1) == N_WORDS
    bounds, weights = range_of(scores, ends), np.ones(len(counts))
    problem = description(Rows.of(shown), scores, weights, bounds, np.zeros(1))
    start = problem.start()
    importances = np.append(start.importances[:-1], lost)
    across = problem.at(start.latent, start.effects, importances)
    best, *others = optima(problem, across)
    assert best.objective <= descend(problem, start, 1e-9).objective * 1.001
    assert best.objective < 0.9 * across.objective
    assert best.objective <= min(other.objective for other in others)
    assert chance_of(problem, best, best, 400) <= 0.5
    assert all(chance_of(problem, best, other, 400) <= 0.5 for other in others)


def test_values_stay_within_twice_the_range():
    counts = subsets(500, 0)
    scores = counts @ np.linspace(-1, 1, N_WORDS)  # adds up: without a bound values run away
    values = described(counts, scores).scores["value"]
    middle = (scores.max() + scores.min()) / 2
    assert np.abs(values - middle).max() < REACH * np.ptp(scores) / 2
    assert np.corrcoef(np.argsort(np.argsort(values)), np.arange(N_WORDS))[0, 1] > 0.98


def test_two_classes_say_what_their_difference_says():
    counts = subsets(300, 1)
    scores = world(counts)
    one, two = described(counts, scores), described(counts, np.outer(scores, [-0.5, 0.5]))
    np.testing.assert_allclose(two.scores["importance"], one.scores["importance"], atol=1e-4)
    np.testing.assert_allclose(2 * two.scores["value"][:, 1], one.scores["value"], atol=1e-3)
    np.testing.assert_allclose(two.errors["importance"], one.errors["importance"], rtol=1e-3)
    assert two.r2 == pytest.approx(one.r2, abs=1e-4)


def test_classes_that_share_out_a_score_are_as_sure_of_it():
    """Also of what the whole model says: classes miss it with different signs."""
    counts, more, errors = subsets(300, 1), subsets(400, 4)[2:], []
    for parts in ([1.0], [1.0, -0.5, -0.5]):
        scores, others = (np.outer(world(shown), parts) for shown in (counts, more))
        nothing = np.zeros((20, len(parts), 1))
        beyond = Predicted(more, others, np.ones(len(more)), nothing, 0.0 * others, 0.9)
        seen = Observations(counts, scores, np.ones(len(counts)), np.ones(N_WORDS))
        found = two_scores(seen, Known(counts[:0], scores[:0]), beyond)
        errors.append(found.errors["importance"])
    np.testing.assert_allclose(errors[1], errors[0], rtol=0.15)


def test_intervals_hold_what_many_queries_say():
    counts = subsets(20_000, 2)
    truth = described(counts, world(counts))
    inside = {name: [] for name in truth.scores}
    for seed in range(10):
        counts = subsets(300, 10 + seed)
        found = described(counts, world(counts))
        for name, scores in found.scores.items():
            off = np.abs(scores - truth.scores[name])
            inside[name].append(off <= 1.645 * found.errors[name])
    for name, hits in inside.items():
        assert 0.84 <= np.mean(hits) <= 0.96, name


def test_intervals_of_what_the_whole_model_predicts_hold_what_many_queries_say():
    """Where a SLALOM describes all that can be, the process is as wrong as the fitted SLALOM is."""
    rng = np.random.default_rng(4)
    values, weights = 2 * rng.normal(size=N_WORDS), np.exp(rng.normal(size=N_WORDS))

    def scores_at(counts):
        alone = np.sin(1e4 * counts @ np.arange(1.0, N_WORDS + 1) ** 2)
        return counts @ (weights * values) / (1 + counts @ weights) + 0.4 * alone

    counts = subsets(20_000, 2)
    truth = described(counts, scores_at(counts))
    inside = {name: [] for name in truth.scores}
    for seed in range(8):
        counts, more = subsets(300, 10 + seed), subsets(3000, 50 + seed)[2:]
        seen = Observations(counts, scores_at(counts), np.ones(300), np.ones(N_WORDS))
        fit = SlalomSurrogate().fit(seen)
        rows = np.arange(300, dtype=np.int32)
        asked = AllAsked(
            fit, np.arange(N_WORDS), counts > 0, seen.scores, rows, seen.weights, exact=False
        )
        beyond = predicted(Unasked(more > 0, more, np.ones(len(more))), fit_process(asked))
        found = two_scores(seen, Known(counts[:0], seen.scores[:0]), beyond)
        for name, scores in found.scores.items():
            off = np.abs(scores - truth.scores[name])
            inside[name].append(off <= 1.645 * found.errors[name])
    for name in ("value", "importance", "share"):
        assert 0.84 <= np.mean(inside[name]) <= 0.96, name


def test_where_every_subset_was_asked_nothing_is_left_open():
    rng = np.random.default_rng(0)
    counts = np.array([[bits >> j & 1 for j in range(6)] for bits in range(64)], float)
    found = described(counts, rng.normal(size=64))
    assert not any(errors.any() for errors in found.errors.values())


def test_one_word_alone_says_nothing_of_how_loud_it_is():
    counts = np.array([[0.0], [1.0]])
    found = described(counts, np.array([0.0, 2.0]))
    assert found.errors["value"][0] > 1.0


def test_few_answers_leave_much_open():
    few, many = (described(subsets(n, 4), world(subsets(n, 4))) for n in (20, 500))
    for name in ("value", "importance"):
        assert np.median(few.errors[name]) > 2 * np.median(many.errors[name])


def test_what_always_says_the_same_has_no_values():
    counts = subsets(100, 0)
    found = described(counts, np.full(100, 1.5))
    np.testing.assert_allclose(found.scores["value"], 1.5, atol=1e-9)
    np.testing.assert_allclose(found.scores["importance"], 0.0, atol=1e-9)
    assert found.r2 is None
    assert (found.errors["importance"] > 0.5).all()


def test_words_in_another_order_have_the_same_scores():
    counts = subsets(300, 5)
    order = np.random.default_rng(0).permutation(N_WORDS)
    one, other = described(counts, world(counts)), described(counts[:, order], world(counts))
    for name, scores in one.scores.items():
        np.testing.assert_allclose(other.scores[name], scores[order], atol=1e-5)


def test_a_prior_helps_where_answers_do_not_tell():
    counts = subsets(20_000, 2)
    truth = described(counts, world(counts))
    told = Prior(truth.scores["value"], truth.scores["importance"], truth.anchor.importance)
    counts = subsets(40, 6)
    seen = Observations(counts, world(counts), np.ones(40), np.ones(N_WORDS))
    off_by = {}
    for prior in (None, told):
        found = two_scores(seen, Known(counts[:0], seen.scores[:0]), prior=prior)
        off_by[prior] = [np.abs(found.scores[n] - truth.scores[n]).mean() for n in truth.scores]
    assert (np.array(off_by[told]) < 0.8 * np.array(off_by[None])).all()
