"""Rows of numbers, dense or sparse, behind the few operations a fit needs.

Short sequences touch 1–3 of hundreds of features: stored sparsely, their normal equations
cost a hundredth. Subsets touch half of them and stay dense.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slalom.document import FloatArray

SPARSE_BELOW = 0.1  # share of non-zeros at which sparse rows win


@dataclass(frozen=True, eq=False)
class Rows:
    """A matrix with fixed non-zeros; every operation returns the same kind of rows."""

    data: FloatArray  # (n, k) dense, or (n_nonzero,) sparse
    shape: tuple[int, int]
    cells: tuple[NDArray[np.intp], NDArray[np.intp]] | None  # row and column of each non-zero

    @classmethod
    def of(cls, matrix: FloatArray) -> "Rows":
        n, k = matrix.shape
        if np.count_nonzero(matrix) >= SPARSE_BELOW * matrix.size:
            return cls(matrix, (n, k), None)
        cells = np.nonzero(matrix)
        return cls(matrix[cells], (n, k), (cells[0], cells[1]))

    def times(self, rows: FloatArray | float, columns: FloatArray | float) -> "Rows":
        """Every entry times its row's and its column's factor."""
        by_row, by_column = self._spread(rows, columns)
        data = self.data if _is_one(rows) else self.data * by_row
        return Rows(data if _is_one(columns) else data * by_column, self.shape, self.cells)

    def times_difference(self, columns: FloatArray, rows: FloatArray) -> "Rows":
        """Every entry times (its column's number − its row's)."""
        by_row, by_column = self._spread(rows, columns)
        return Rows(self.data * (by_column - by_row), self.shape, self.cells)

    def sums(self) -> FloatArray:
        """(n,) of each row."""
        if self.cells is None:
            return np.asarray(self.data.sum(axis=1))
        return np.bincount(self.cells[0], self.data, self.shape[0]).astype(np.float64)

    def apply(self, columns: FloatArray) -> FloatArray:
        """Matrix times (k, c)."""
        return np.asarray(self._matrix() @ columns)

    def apply_transposed(self, rows: FloatArray) -> FloatArray:
        """Transposed matrix times (n, c)."""
        return np.asarray(self._matrix().T @ rows)

    def gram(self, other: "Rows") -> FloatArray:
        """Transposed matrix times another of the same rows: (k, k), dense."""
        product = self._matrix().T @ other._matrix()
        return np.asarray(product if self.cells is None else product.toarray())

    def dense(self) -> FloatArray:
        return self.data if self.cells is None else np.asarray(self._matrix().toarray())

    def _spread(self, rows: FloatArray | float, columns: FloatArray | float) -> tuple[Any, Any]:
        if self.cells is None:
            return np.reshape(rows, (-1, 1)), columns
        row, column = self.cells
        return (
            np.broadcast_to(rows, self.shape[:1])[row],
            np.broadcast_to(columns, self.shape[1:])[column],
        )

    def _matrix(self) -> Any:
        if self.cells is None:
            return self.data
        from scipy.sparse import csr_array

        return csr_array((self.data, self.cells), shape=self.shape)


def _is_one(factor: FloatArray | float) -> bool:
    """Multiplying by it can be spared."""
    return isinstance(factor, float) and factor == 1.0
