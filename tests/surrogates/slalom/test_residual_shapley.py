"""What a fit left, shared out: right where it is known, equal where it is noise."""

from dataclasses import replace

import numpy as np
import pytest

from slalom.samplers.base import all_subsets
from slalom.surrogates.shapley_estimates import shapley_of_all
from slalom.surrogates.slalom.residual_shapley import Left, residual_shares

N = 7


def left(residual, *, rows=None):
    """Every subset of N units asked, or some of them."""
    masks = all_subsets(N)
    sizes = masks.sum(axis=1)
    ways = np.bincount(sizes)[sizes].astype(float)
    scores = residual(masks)
    kept = slice(None) if rows is None else rows
    return Left(
        present=masks[kept].astype(float),
        residuals=scores[kept, None],
        n_of_size=ways[kept],
        whole=scores[:1],
        empty=scores[-1:],
    )


def test_all_subsets_give_the_shapley_values_of_the_residual():
    rng = np.random.default_rng(0)
    table = rng.normal(size=2**N) + 3 * all_subsets(N) @ rng.normal(size=N)
    shares = residual_shares(left(lambda masks: table)).values[:, 0]
    exact = shapley_of_all(all_subsets(N), table)
    assert shares.sum() == pytest.approx(table[0] - table[-1])
    np.testing.assert_allclose(shares, exact, atol=0.03 * np.abs(exact).max())


def test_what_is_additive_comes_back_and_is_sure():
    worth = np.array([1.0, -2.0, 0.5, 3.0, 0.0, 0.2, -0.7])
    found = residual_shares(left(lambda masks: masks @ worth + 0.7))
    np.testing.assert_allclose(found.values[:, 0], worth, atol=0.02)
    assert found.values.sum() == pytest.approx(worth.sum())
    assert (found.variances < 0.01).all()


def test_noise_is_shared_equally_as_a_rule():
    """With nothing to be found the pull towards equal shares mostly wins."""
    strays = []
    for seed in range(25):
        rng = np.random.default_rng(seed)
        rows = np.append(0, rng.permutation(np.arange(1, 2**N - 1))[:60])
        noise = rng.normal(size=2**N)
        noise[0], noise[-1] = 1.4, 0.0
        shares = residual_shares(left(lambda masks, noise=noise: noise, rows=rows)).values[:, 0]
        assert shares.sum() == pytest.approx(1.4)
        strays.append(np.abs(shares - 0.2).max())
    assert np.median(strays) < 0.25  # a single answer strays by 1


def test_without_rows_only_the_sum_is_put_right():
    shares = residual_shares(left(lambda masks: masks.sum(axis=1) * 1.0, rows=slice(0)))
    np.testing.assert_allclose(shares.values[:, 0], 1.0)
    assert not shares.variances.any()


@pytest.mark.parametrize(("n_rows", "strength"), [(25, 1.0), (40, 1.0), (40, 0.2), (100, 0.5)])
def test_intervals_hold_what_the_residual_is_worth(n_rows, strength):
    """A game of one's own for each seed: additive in part, the rest of it noise."""
    held = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        table = all_subsets(N) @ rng.normal(size=N) * strength + rng.normal(size=2**N)
        rows = rng.permutation(np.arange(1, 2**N - 1))[:n_rows]
        found = residual_shares(left(lambda masks, table=table: table, rows=rows))
        missed = found.values[:, 0] - shapley_of_all(all_subsets(N), table)
        held.append(np.abs(missed) <= 1.645 * np.sqrt(found.variances[:, 0]))
    assert 0.8 <= np.mean(held) <= 0.98


def test_classes_that_sum_to_nothing_do_so_again_and_two_are_one():
    rng = np.random.default_rng(4)
    tables = rng.normal(size=(2**N, 3)) + all_subsets(N) @ rng.normal(size=(N, 3))
    tables -= tables.mean(axis=1, keepdims=True)
    one = left(lambda masks: tables[:, 0], rows=slice(1, 60))

    def told(columns):
        part = replace(one, residuals=columns[1:60], whole=columns[0], empty=columns[-1])
        return residual_shares(part)

    np.testing.assert_allclose(told(tables).values.sum(axis=1), 0.0, atol=1e-9)
    both, single = told(tables[:, :1] * [1.0, -1.0]), residual_shares(one)
    np.testing.assert_allclose(both.values[:, 0], single.values[:, 0])
    np.testing.assert_allclose(both.variances[:, 1], single.variances[:, 0])
