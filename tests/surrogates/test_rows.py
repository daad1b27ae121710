"""Sparse rows do what dense ones do, in either precision."""

import numpy as np
import pytest

from slalom.surrogates import rows as of_rows
from slalom.surrogates.rows import Rows


def matrix_of(kind: str) -> np.ndarray:
    """Few non-zeros; some rows, the last one too, and some columns have none."""
    rng = np.random.default_rng(0)
    matrix = rng.integers(1, 4, size=(40, 30)) * (rng.random((40, 30)) < 0.06)
    matrix[[3, 39]], matrix[:, 29] = 0, 0
    return matrix.astype(kind)


@pytest.mark.parametrize("kind", ["float64", "float32"])
@pytest.mark.parametrize("max_pairs", [of_rows.MAX_PAIRS, 0])
def test_sparse_rows_do_what_dense_ones_do(kind, max_pairs, monkeypatch):
    monkeypatch.setattr(of_rows, "MAX_PAIRS", max_pairs)
    matrix = matrix_of(kind)
    sparse, dense = Rows.of(matrix), Rows(matrix, matrix.shape, None)
    assert sparse.cells is not None
    rng = np.random.default_rng(1)
    by_row, by_column = rng.random(40).astype(kind), rng.random(30).astype(kind)
    wide, tall = (rng.random((n, 9)).astype(kind) for n in (30, 40))
    pairs = [(sparse, dense)]
    pairs.append(tuple(r.scale_rows(by_row) for r in (sparse, dense)))
    pairs.append(tuple(r.scale_columns(by_column) for r in (sparse, dense)))
    pairs.append(tuple(r.times_difference(by_column, by_row) for r in (sparse, dense)))
    for few, all_of_them in pairs:
        for told, expected in (
            (few.dense(), all_of_them.dense()),
            (few.transposed(), all_of_them.dense().T),
            (few.sums(), all_of_them.sums()),
            (few.gram(sparse), all_of_them.gram(dense)),
            *((few.apply(by), all_of_them.apply(by)) for by in (by_column, wide, wide[:, :2])),
            (few.apply(wide[:, :0]), all_of_them.apply(wide[:, :0])),
            *(
                (few.apply_transposed(by), all_of_them.apply_transposed(by))
                for by in (by_row, tall, tall[:, :2])
            ),
        ):
            assert told.shape == expected.shape
            assert told.dtype == kind
            np.testing.assert_allclose(told, expected, rtol=1e-5)
