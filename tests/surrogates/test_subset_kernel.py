"""Shapley values of products over units: the same as by counting all subsets."""

import numpy as np
import pytest

from slalom.samplers.base import all_subsets
from slalom.surrogates.shapley_estimates import shapley_of_all
from slalom.surrogates.subset_kernel import shapley_of_kernel, shapley_variances, subset_kernel

RATES = np.array([0.1, 2.0, 0.0, 0.7, 0.3])


def test_the_kernel_multiplies_over_the_units_in_which_two_parts_differ():
    first, other = np.array([[1.0, 0, 1, 1, 0]]), np.array([[1.0, 1, 1, 0, 0]])
    assert subset_kernel(first, other, RATES)[0, 0] == pytest.approx(np.exp(-2.7))
    assert subset_kernel(first, first, RATES)[0, 0] == pytest.approx(1.0)


def test_values_are_those_of_all_subsets():
    masks = all_subsets(5)
    kernel = subset_kernel(masks.astype(float), masks.astype(float), RATES)
    exact = shapley_of_all(masks, kernel)  # (n_units, 2⁵) of k(·, T)
    np.testing.assert_allclose(shapley_of_kernel(masks.astype(float), RATES), exact.T)


def test_variances_are_those_of_a_function_with_this_covariance():
    masks = all_subsets(5)
    kernel = subset_kernel(masks.astype(float), masks.astype(float), RATES)
    shapley = shapley_of_all(masks, np.eye(32))  # (n_units, 2⁵) what each score counts for
    expected = np.diag(shapley @ kernel @ shapley.T)
    np.testing.assert_allclose(shapley_variances(RATES), expected, atol=1e-12)
