"""Variances from the structure of a derivative against those from the whole matrix."""

import numpy as np
import pytest

from slalom.surrogates.slalom.derivatives import Derivative, Layout


@pytest.mark.parametrize(
    "layout", [Layout(4, 1, 4, 3), Layout(4, 1, 0, 0), Layout(4, 0, 0, 0)], ids=str
)
def test_variances_are_those_of_the_whole_jacobian(layout):
    rng = np.random.default_rng(0)
    some = np.ones(layout.n_features + 1)
    direction = layout.direction(2 * some, 3 * some, 5.0)
    n_parameters = len(direction)
    directions = np.stack([direction, rng.normal(size=n_parameters)])
    own_value, own_importance = rng.normal(size=(2, layout.n_features))
    derivative = Derivative(own_value, own_importance, 0.5, rng.normal(size=(4, 2)), directions)

    jacobian = derivative.shares @ directions
    for unit in range(layout.n_features):
        jacobian[unit, layout.value.start + unit] += own_value[unit]
        jacobian[unit, layout.importance.start + unit] += own_importance[unit]
        if layout.n_direct:
            jacobian[unit, layout.direct.start + unit] += 0.5
    covariance = np.cov(rng.normal(size=(n_parameters, 60)))
    changes = rng.normal(size=(n_parameters, 2))

    np.testing.assert_allclose(
        derivative.variances(covariance, layout), np.diag(jacobian @ covariance @ jacobian.T)
    )
    np.testing.assert_allclose(derivative.applied(changes, layout), jacobian @ changes)
    assert (direction[layout.value] == 2).all()
    assert (direction[layout.importance] == 3).all()
    assert (direction[layout.rises] == 5).all()
    assert not direction[layout.direct].any()
