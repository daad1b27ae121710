"""What a fit left, shared out: right where it is known, equal where it is noise."""

import numpy as np
import pytest

from slalom.samplers.base import all_subsets
from slalom.surrogates.shapley_estimates import shapley_of_all
from slalom.surrogates.slalom.residual_shapley import Left, residual_shares

N = 7


def left(residual, *, document_counts=None, rows=None):
    """Every subset of N units asked; equal units share a feature."""
    masks = all_subsets(N)
    at = np.ones(N) if document_counts is None else document_counts
    owner = np.repeat(np.arange(len(at)), at.astype(int))
    counts = np.stack([masks[:, owner == j].sum(axis=1) for j in range(len(at))], axis=1)
    sizes = masks.sum(axis=1)
    ways = np.bincount(sizes)[sizes].astype(float)
    scores = residual(masks)
    kept = slice(None) if rows is None else rows
    return Left(
        counts=counts[kept].astype(float),
        residuals=scores[kept, None],
        n_alike=ways[kept],
        document_counts=at,
        whole=scores[:1],
        empty=scores[-1:],
    )


def test_all_subsets_give_the_shapley_values_of_the_residual():
    rng = np.random.default_rng(0)
    table = rng.normal(size=2**N) + 3 * all_subsets(N) @ rng.normal(size=N)
    shares = residual_shares(left(lambda masks: table))[:, 0]
    exact = shapley_of_all(all_subsets(N), table)
    assert shares.sum() == pytest.approx(table[0] - table[-1])
    np.testing.assert_allclose(shares, exact, atol=0.15 * np.abs(exact).max())


def test_what_is_additive_comes_back_and_equal_units_share():
    at = np.array([2.0, 1, 3, 1])
    owner = np.repeat(np.arange(4), at.astype(int))
    worth = np.array([1.0, -2.0, 0.5, 3.0])
    shares = residual_shares(left(lambda masks: masks @ worth[owner] + 0.7, document_counts=at))
    np.testing.assert_allclose(shares[:, 0], worth, atol=0.02)
    assert at @ shares[:, 0] == pytest.approx(at @ worth)


def test_noise_is_shared_equally_as_a_rule():
    """With few rows and nothing to be found the pull towards equal shares mostly wins."""
    strays = []
    for seed in range(25):
        rng = np.random.default_rng(seed)
        rows = np.append(0, rng.permutation(np.arange(1, 2**N - 1))[:20])
        noise = rng.normal(size=2**N)
        noise[0], noise[-1] = 1.4, 0.0
        shares = residual_shares(left(lambda masks, noise=noise: noise, rows=rows))[:, 0]
        assert shares.sum() == pytest.approx(1.4)
        strays.append(np.abs(shares - 0.2).max())
    assert np.median(strays) < 0.1


def test_without_rows_only_the_sum_is_put_right():
    shares = residual_shares(left(lambda masks: masks.sum(axis=1) * 1.0, rows=slice(0)))
    np.testing.assert_allclose(shares[:, 0], 1.0)
