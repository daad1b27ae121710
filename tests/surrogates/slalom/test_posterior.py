"""Shapley values from every answer: right where they are known, and as sure as they say."""

from dataclasses import replace

import numpy as np
import pytest

from slalom.samplers.base import all_subsets
from slalom.surrogates.shapley_estimates import shapley_of_all
from slalom.surrogates.slalom.posterior import Residuals, posterior_of

N = 8
MASKS = all_subsets(N)


def answered(true, said, rows):
    """Some parts of N units asked, and a fit that says `said` of all of them."""
    true, said = true.reshape(len(MASKS), -1), said.reshape(len(MASKS), -1)
    ends = [-1, 0]
    return Residuals(
        present=MASKS[rows],
        values=(true - said)[rows],
        predicted=said[rows],
        ends=said[ends],
        of_ends=(true - said)[ends],
        shapley=shapley_of_all(MASKS, said),
    )


def some(rng, n_rows):
    return rng.permutation(np.arange(1, len(MASKS) - 1))[:n_rows]


def acting_together(rng, *, noise=0.0):
    """Words that add up, pairs that act together, and what no part of the text explains."""
    table = MASKS @ rng.normal(size=N) + noise * rng.normal(size=len(MASKS))
    for _ in range(6):
        one, other = rng.permutation(N)[:2]
        table += rng.normal() * MASKS[:, one] * MASKS[:, other]
    return table


def test_values_share_out_the_answer_to_the_whole_text():
    rng = np.random.default_rng(0)
    true, said = acting_together(rng, noise=0.3), MASKS @ rng.normal(size=N)
    part = answered(true, said, some(rng, 40))
    values = part.shapley + posterior_of(part).shares.values
    assert values.sum() == pytest.approx(true[0] - true[-1])


def test_a_fit_that_misses_nothing_keeps_its_values():
    said = MASKS @ np.arange(float(N)) + 0.2
    found = posterior_of(answered(said, said, np.arange(1, 60))).shares
    np.testing.assert_allclose(found.values, 0.0, atol=1e-9)
    assert not found.variances.any()


def test_what_is_additive_comes_back_whatever_the_fit_says():
    worth = np.array([1.0, -2.0, 0.5, 3.0, 0.0, 0.2, -0.7, 0.4])
    rng = np.random.default_rng(1)
    for said in (np.zeros(len(MASKS)), MASKS @ worth[::-1], MASKS @ np.abs(worth)):
        part = answered(MASKS @ worth + 0.7, said, some(rng, 60))
        found = posterior_of(part).shares
        np.testing.assert_allclose((part.shapley + found.values)[:, 0], worth, atol=0.03)
        assert (found.variances < 0.01).all()


def test_words_that_act_together_are_shared_out_better_than_by_a_line():
    """A sum of words, its best line over the same rows, and the posterior on top of that."""
    missed, by_line = [], []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        true, rows = acting_together(rng), some(rng, 60)
        exact = shapley_of_all(MASKS, true)
        design = np.column_stack([np.ones(len(MASKS)), MASKS])
        line = np.linalg.lstsq(design[rows], true[rows], rcond=None)[0]
        part = answered(true, design @ line, rows)
        missed.append(((part.shapley + posterior_of(part).shares.values)[:, 0] - exact) ** 2)
        by_line.append((line[1:] - exact) ** 2)
    assert np.mean(missed) < 0.3 * np.mean(by_line)


@pytest.mark.parametrize(("n_rows", "noise"), [(25, 0.5), (40, 0.2), (60, 0.5), (150, 0.5)])
def test_intervals_hold_the_values(n_rows, noise):
    """The fit says the truth of the words as such, and nothing of how they act together."""
    held = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        true = acting_together(rng, noise=noise)
        design = np.column_stack([np.ones(len(MASKS)), MASKS])
        said = design @ np.linalg.lstsq(design, true, rcond=None)[0]
        part = answered(true, said, some(rng, n_rows))
        found = posterior_of(part).shares
        missed = (part.shapley + found.values)[:, 0] - shapley_of_all(MASKS, true)
        held.append(np.abs(missed) <= 1.645 * np.sqrt(found.variances[:, 0]))
    assert 0.8 <= np.mean(held) <= 0.98


def test_classes_that_sum_to_nothing_do_so_again_and_two_are_one():
    rng = np.random.default_rng(4)
    true = np.stack([acting_together(rng, noise=0.2) for _ in range(3)], axis=1)
    said = MASKS @ rng.normal(size=(N, 3))
    true, said = (table - table.mean(axis=1, keepdims=True) for table in (true, said))
    part = answered(true, said, some(rng, 60))
    np.testing.assert_allclose(posterior_of(part).shares.values.sum(axis=1), 0.0, atol=1e-9)
    one = answered(true[:, 0], said[:, 0], some(rng, 60))
    names = ("values", "predicted", "ends", "of_ends", "shapley")
    both = replace(one, **{name: getattr(one, name) * [1.0, -1.0] for name in names})
    single, double = posterior_of(one).shares, posterior_of(both).shares
    np.testing.assert_allclose(double.values[:, 0], single.values[:, 0], rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(double.variances[:, 1], single.variances[:, 0], rtol=1e-2)


def test_as_good_as_all_subsets_where_nearly_all_were_asked():
    rng = np.random.default_rng(3)
    true = acting_together(rng, noise=0.1)
    part = answered(true, MASKS @ rng.normal(size=N), some(rng, 250))
    found = (part.shapley + posterior_of(part).shares.values)[:, 0]
    exact = shapley_of_all(MASKS, true)
    np.testing.assert_allclose(found, exact, atol=0.05 * np.abs(exact).max())


def some_part(seed=5, n_rows=60):
    rng = np.random.default_rng(seed)
    true, said = acting_together(rng, noise=0.2), MASKS @ rng.normal(size=N)
    return true, said, answered(true, said, some(rng, n_rows))


def test_corrected_predictions_have_the_shapley_values_that_are_shared_out():
    _, said, part = some_part()
    found = posterior_of(part)
    table = said + found.correction(MASKS.astype(float), said)[:, 0]
    expected = part.shapley + found.shares.values
    np.testing.assert_allclose(shapley_of_all(MASKS, table), expected[:, 0], atol=1e-8)
    np.testing.assert_allclose(part.shapley + found.correction.shapley(part.shapley), expected)


def test_corrected_predictions_of_the_empty_and_the_full_text_are_the_answers():
    true, said, part = some_part()
    corrected = said + posterior_of(part).correction(MASKS.astype(float), said)[:, 0]
    np.testing.assert_allclose(corrected[[0, -1]], true[[0, -1]], atol=1e-8)


def test_corrected_predictions_are_nearer_to_answers_that_were_not_given():
    true, said, part = some_part()
    unseen = ~(MASKS[:, None] == part.present).all(axis=2).any(axis=1)
    off = said + posterior_of(part).correction(MASKS.astype(float), said)[:, 0] - true
    assert (off[unseen] ** 2).mean() < 0.2 * ((said - true)[unseen] ** 2).mean()


def test_left_out_is_what_all_other_rows_leave_of_a_row():
    _, _, part = some_part(n_rows=120)
    all_of_them = posterior_of(part).left_out
    rows = ("present", "values", "predicted")
    for at in range(5):
        without = replace(part, **{name: np.delete(getattr(part, name), at, 0) for name in rows})
        added = posterior_of(without).correction(part.present[[at]], part.predicted[[at]])
        expected = part.values[at] - added[0]
        np.testing.assert_allclose(all_of_them[at], expected, rtol=0.05, atol=0.02)
