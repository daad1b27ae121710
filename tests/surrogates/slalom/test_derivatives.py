"""Variances from the structure of derivatives against those from the whole matrix."""

import numpy as np
import pytest

from slalom.surrogates.slalom.derivatives import Common, Layout


@pytest.mark.parametrize(
    "layout", [Layout(4, 1, 4, 3), Layout(4, 1, 0, 0), Layout(4, 0, 0, 0)], ids=str
)
def test_variances_are_those_of_the_whole_jacobian(layout):
    rng = np.random.default_rng(0)
    n_parameters = layout.importances.stop
    assert n_parameters == 2 * (4 + layout.n_anchors) + layout.n_direct + layout.n_rises
    common = Common(layout, rng.normal(size=(2, n_parameters)))
    slopes = rng.normal(size=(4, 5))  # by a unit's value, importance, direct effect; in common

    jacobian = slopes[:, 3:] @ common.directions
    own = [layout.values.start, layout.importances.start, layout.direct.start]
    for unit, by in enumerate(slopes):
        for part, start in enumerate(own[: 3 if layout.n_direct else 2]):
            jacobian[unit, start + unit] += by[part]
    covariance = np.cov(rng.normal(size=(n_parameters, 60)))
    changes = rng.normal(size=(n_parameters, 2))

    inside, moved = common.covariances(covariance), common.changes(changes)
    np.testing.assert_allclose(
        np.einsum("mk,mkl,ml->m", slopes, inside, slopes),
        np.diag(jacobian @ covariance @ jacobian.T),
    )
    np.testing.assert_allclose(np.einsum("mk,mkn->mn", slopes, moved), jacobian @ changes)
