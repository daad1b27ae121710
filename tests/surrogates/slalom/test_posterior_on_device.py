"""Posteriors of many documents at once are those of each alone."""

from dataclasses import fields, replace

import numpy as np
import pytest

from slalom.surrogates.slalom import posterior_on_device as module
from slalom.surrogates.slalom.posterior import Residuals, posterior_of
from slalom.surrogates.slalom.posterior_on_device import posteriors_on


def residuals(seed, n_rows, n_units, n_columns=1):
    """Words that add up and a few that act together, against a fit that knows half of it."""
    rng = np.random.default_rng(seed)
    present = rng.random((n_rows, n_units)) < rng.uniform(0.2, 0.8, size=(n_rows, 1))
    present[present.all(axis=1), 0] = False
    present[~present.any(axis=1), 0] = True
    effects = rng.normal(size=(n_units, n_columns))
    both = (present[:, :3] & present[:, 3:6]) @ rng.normal(size=(3, n_columns))
    predicted = present @ (effects + rng.normal(scale=0.3, size=effects.shape))
    noise = rng.normal(scale=0.1, size=predicted.shape)
    ends = np.stack([np.zeros(n_columns), predicted.mean(axis=0)])
    return Residuals(
        present, present @ effects + both + noise - predicted, predicted, ends, 0.1 * ends, effects
    )


def assert_same(one, other):
    np.testing.assert_allclose(one.left_out, other.left_out, rtol=1e-7, atol=1e-9)
    for part, expected in ((one.shares, other.shares), (one.correction, other.correction)):
        for name in (field.name for field in fields(expected)):
            found, wanted = getattr(part, name), getattr(expected, name)
            assert found.dtype == wanted.dtype, name
            np.testing.assert_allclose(found, wanted, rtol=1e-7, atol=1e-9, err_msg=name)


def test_documents_of_all_sizes_in_one_batch():
    given = [residuals(0, 60, 8), residuals(1, 150, 40), residuals(2, 90, 25), residuals(3, 30, 9)]
    for found, one in zip(posteriors_on("cpu", given), given, strict=True):
        assert_same(found, posterior_of(one))


def test_several_classes_and_one_side_by_side():
    given = [residuals(0, 80, 10, 3), residuals(1, 70, 12), residuals(2, 60, 11, 3)]
    centred = given[2].values - given[2].values.mean(axis=1, keepdims=True)
    given[2] = replace(given[2], values=centred)  # one class says nothing new
    for found, one in zip(posteriors_on("cpu", given), given, strict=True):
        assert_same(found, posterior_of(one))


def test_a_fit_that_leaves_nothing_and_one_that_says_nothing():
    exact, silent = residuals(0, 60, 8), residuals(1, 60, 8)
    exact = replace(exact, values=0 * exact.values, of_ends=0 * exact.of_ends)
    silent = replace(silent, predicted=0 * silent.predicted, ends=0 * silent.ends)
    silent = replace(silent, shapley=0 * silent.shapley)
    given = [exact, silent, residuals(2, 60, 8)]
    for found, one in zip(posteriors_on("cpu", given), given, strict=True):
        assert_same(found, posterior_of(one))


def test_batches_stay_within_memory(monkeypatch):
    given = [residuals(seed, 40, 8) for seed in range(5)]
    monkeypatch.setattr(module, "MAX_NUMBERS", 2 * 7 * 40**2)
    assert [len(batch) for batch in module._batches(given, module.MAX_NUMBERS)] == [2, 2, 1]
    for found, one in zip(posteriors_on("cpu", given), given, strict=True):
        assert_same(found, posterior_of(one))


def test_nothing_is_asked_of_no_document():
    assert posteriors_on("cpu", []) == []


@pytest.mark.parametrize("n_rows", [1, 2, 3])
def test_hardly_any_rows(n_rows):
    one = residuals(0, n_rows, 7)
    assert_same(posteriors_on("cpu", [one])[0], posterior_of(one))
