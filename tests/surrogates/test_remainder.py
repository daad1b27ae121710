"""What the parts leave over: found where it is, absent where it is not, judged fairly."""

from dataclasses import replace

import numpy as np
import pytest

from slalom.schema import plain, read_as
from slalom.surrogates.boosted import Ground
from slalom.surrogates.permuted_shapley import permuted_shapley
from slalom.surrogates.remainder import FoldedRows, fit_remainder
from slalom.surrogates.response import Response, fit_response, flat
from slalom.surrogates.slalom.completed import JUDGED, Grown
from slalom.surrogates.slalom.length import LengthCurve
from slalom.surrogates.slalom.model import Anchor, SlalomModel
from slalom.surrogates.slalom.readouts import read_outs

N_FOLDS = 4


def described(scores, counts, ridge=1e-6):
    """Rows as linear regressions describe them, with all rows and without each fold."""
    folds = np.arange(len(scores)) % N_FOLDS
    said = linear(scores, counts, ridge)
    without = [linear(scores, counts, ridge, kept=folds != fold) for fold in range(N_FOLDS)]
    return FoldedRows(
        counts, scores, np.ones(len(scores)), said, np.stack(without), folds.astype(np.int32)
    )


def linear(scores, counts, ridge=1e-6, kept=slice(None), at=None):
    design = np.hstack([np.ones((len(counts), 1)), counts])
    rows = design[kept]
    weights = np.linalg.solve(
        rows.T @ rows + ridge * np.eye(design.shape[1]), rows.T @ scores[kept]
    )
    return weights[0] + (counts if at is None else at) @ weights[1:]


@pytest.fixture
def counts():
    return np.random.default_rng(0).integers(0, 2, size=(400, 12)).astype(float)


def test_two_folds_less_are_nearly_the_sum_of_both(counts):
    rng = np.random.default_rng(1)
    scores = counts @ rng.normal(size=12) + rng.normal(size=400)
    rows = described(scores, counts)
    found = rows.held_out_beside(1)
    for fold in (0, 2, 3):
        out = rows.folds == fold
        true = linear(scores, counts, kept=~out & (rows.folds != 1))
        near, far = np.abs(found - true)[out].mean(), np.abs(rows.held_out() - true)[out].mean()
        assert near < 0.6 * far


def test_a_bent_classifier_gets_a_response(counts):
    rng = np.random.default_rng(3)
    plain = counts @ np.linspace(-1, 1.5, 12) - 1
    found = fit_remainder(described(np.tanh(plain) * 3, counts), None)
    assert not found.is_nothing
    fresh = rng.integers(0, 2, size=(500, 12)).astype(float)
    truth = np.tanh(fresh @ np.linspace(-1, 1.5, 12) - 1) * 3
    said = linear(np.tanh(plain) * 3, counts, at=fresh)
    before, after = ((truth - p) ** 2 for p in (said, said + found.predict(fresh, said)))
    assert after.mean() < 0.3 * before.mean()
    unseen = ((np.tanh(plain) * 3 - found.unseen) ** 2).mean()
    assert unseen == pytest.approx(after.mean(), rel=0.3)


@pytest.mark.parametrize("noise", [0.0, 1.0])
def test_what_only_adds_up_has_no_remainder(counts, noise):
    scores = counts @ np.linspace(-1, 1, 12) + noise * np.random.default_rng(4).normal(size=400)
    assert fit_remainder(described(scores, counts), None).is_nothing


def test_trees_find_a_pair_and_are_followed_as_far_as_it_pays(counts):
    plain = counts @ np.linspace(-1, 1, 12)
    scores = plain + 3 * counts[:, 2] * counts[:, 7] + np.random.default_rng(8).normal(size=400)
    found = fit_remainder(described(scores, counts), Grown.on(counts))
    both, one = np.zeros((2, 12)), np.zeros((2, 12))
    both[0, [2, 7]], one[0, 2], one[1, 7] = 1, 1, 1
    added = found.forest.predict(both)[0] - found.forest.predict(one).sum()
    assert added + found.forest.predict(both)[1] > 1.0
    fresh = np.random.default_rng(9).integers(0, 2, size=(500, 12)).astype(float)
    truth = fresh @ np.linspace(-1, 1, 12) + 3 * fresh[:, 2] * fresh[:, 7]
    said = linear(scores, counts, at=fresh)
    before, after = ((truth - p) ** 2 for p in (said, said + found.predict(fresh, said)))
    assert after.mean() < 0.75 * before.mean()


def test_trees_do_not_follow_noise(counts):
    grower, kept = Grown.on(counts), 0
    for seed in range(8):
        noise = np.random.default_rng(seed).normal(size=400)
        found = fit_remainder(described(counts @ np.linspace(-1, 1, 12) + noise, counts), grower)
        kept += not found.is_nothing
        assert np.abs(found.predict(counts, counts.sum(axis=1))).mean() < 0.35
    assert kept <= 1


def test_a_row_without_weight_is_not_seen(counts):
    rng = np.random.default_rng(10)
    scores, weights = rng.normal(size=(400, 2)), np.ones((400, 2))
    weights[:200, 0] = 0.0
    *_, said = Ground.of(counts).rounds(scores, weights=weights, growth=JUDGED)
    other = scores.copy()
    other[:200] += 5.0
    *_, again = Ground.of(counts).rounds(other, weights=weights, growth=JUDGED)
    np.testing.assert_array_equal(again[:, 0], said[:, 0])
    assert np.abs(again[:, 1] - said[:, 1]).max() > 1.0


def test_rounds_say_what_the_forest_does(counts):
    """The rounds begin with nothing; a forest of as many trees says what the last of them does."""
    scores, ones = np.random.default_rng(11).normal(size=400), np.ones(400)
    ground, growth = Ground.of(counts), replace(JUDGED, n_trees=6)
    first, *_, last = ground.rounds(scores[:, None], weights=ones[:, None], growth=growth)
    five = ground.forest(scores, weights=ones, growth=replace(growth, n_trees=5))
    assert not first.any()
    np.testing.assert_allclose(five.predict(counts), last[:, 0], atol=1e-4)


def test_few_rows_say_nothing(counts):
    rows = described(np.tanh(counts[:40].sum(axis=1)), counts[:40])
    assert fit_remainder(rows, None).is_nothing


def test_a_response_surface_interpolates_and_stays_level():
    surface = Response(np.array([-1.0, 1.0]), np.array([1.0, 3.0]), np.array([[0, 1.0], [2, 3.0]]))
    found = surface(np.array([-1, 0, 1, 9, -9.0]), np.array([1, 3, 1, 99, 0.0]))
    np.testing.assert_allclose(found, [0, 2, 2, 3, 0])
    again = read_as(Response, plain(surface))
    np.testing.assert_array_equal(again(found, found), surface(found, found))


def test_a_response_follows_its_misses():
    rng = np.random.default_rng(5)
    said, sizes = rng.normal(size=2000), rng.integers(1, 30, size=2000).astype(float)
    residuals = np.where(said > 0, -0.5 * said, 0.0) + 0.02 * sizes
    surface = fit_response(said, residuals, sizes=sizes, weights=np.ones(2000))
    inside = np.abs(said) < 2
    assert np.abs(surface(said, sizes) - residuals)[inside].max() < 0.25
    assert ((surface(said, sizes) - residuals) ** 2).mean() < 0.02 * residuals.var()


def test_permuted_shapley_values_add_up_and_agree_with_exact_ones():
    rng = np.random.default_rng(6)
    model = SlalomModel(rng.normal(size=9), rng.normal(size=9), Anchor(0.3, 1.0))
    counts = np.array([1, 1, 2, 1, 1, 3, 1, 1, 1.0])
    exact = read_outs(model, counts)["shapley"]
    found = permuted_shapley(lambda o: (model.joined(o), model.joined(o)), counts, exact=exact)
    np.testing.assert_allclose(found, exact, atol=1e-12)  # its own control: nothing left to chance
    bent = permuted_shapley(
        lambda o: (np.tanh(model.joined(o)), model.joined(o)), counts, exact=exact
    )
    ends = np.tanh(model.predict(np.stack([counts, 0 * counts])))
    assert bent @ counts == pytest.approx(ends[0] - ends[1])
    blind = permuted_shapley(
        lambda o: (model.joined(o), 0 * model.joined(o)), counts, exact=0 * exact
    )
    np.testing.assert_allclose(blind, exact, atol=0.03)


@pytest.mark.parametrize("anchor", [Anchor(0.3, 1.0), None])
def test_units_that_join_one_by_one_are_predicted_as_their_counts(anchor):
    rng = np.random.default_rng(7)
    model = SlalomModel(rng.normal(size=5), rng.normal(size=5), anchor)
    if anchor is not None:
        curve = LengthCurve(np.array([1.0, 3, 7]), rng.normal(size=3))
        model = replace(model, direct=rng.normal(size=5), length=curve)
    orders = rng.permuted(np.tile([0, 1, 1, 2, 3, 4, 4], (3, 1)), axis=1)
    shown = np.zeros((3, 8, 5))
    shown[:, 1:] = np.eye(5)[orders].cumsum(axis=1)
    said = model.predict(shown.reshape(-1, 5)).reshape(3, 8)
    np.testing.assert_allclose(model.joined(orders), said, atol=1e-12)


def test_a_flat_surface_adds_nothing_anywhere():
    said, sizes = np.linspace(-5, 5, 7), np.arange(7.0)
    np.testing.assert_array_equal(flat()(said, sizes), np.zeros(7))
    np.testing.assert_array_equal(read_as(Response, plain(flat()))(said, sizes), np.zeros(7))
