"""Rows of numbers, dense or sparse, behind the few operations a fit needs.

Short sequences touch 1–3 of hundreds of features: stored sparsely, their normal equations
cost a hundredth. Subsets touch half of them and stay dense.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slalom.document import FloatArray

SPARSE_BELOW = 0.1  # share of non-zeros at which sparse rows win
MAX_PAIRS = 2**20  # of non-zeros, up to which a list of them is quicker than scipy's matrices
FEW = 4  # columns of a product, likewise


@dataclass(frozen=True, eq=False)
class Cells:
    """Where non-zeros are, row by row. A fit multiplies them dozens of times in the same places."""

    row: NDArray[np.intp]  # (n_nonzero,) ascending
    column: NDArray[np.intp]  # (n_nonzero,)
    n_columns: int

    @cached_property
    def starts(self) -> NDArray[np.intp]:
        """(n + 1,) as far as there are non-zeros: where each row begins."""
        return np.append(0, np.cumsum(np.bincount(self.row)))

    @cached_property
    def n_pairs(self) -> int:
        return int((np.diff(self.starts) ** 2).sum())

    @cached_property
    def pairs(self) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]:
        """Every two non-zeros of one row, and where in a product of columns theirs goes."""
        widths = np.diff(self.starts)[self.row]
        first = np.repeat(np.arange(len(self.row)), widths)
        within = np.arange(len(first)) - np.repeat(np.cumsum(widths) - widths, widths)
        second = self.starts[self.row[first]] + within
        return first, second, self.column[first] * self.n_columns + self.column[second]


@dataclass(frozen=True, eq=False)
class Rows:
    """A matrix with fixed non-zeros; every operation returns the same kind of rows."""

    data: FloatArray  # (n, k) dense, or (n_nonzero,) sparse
    shape: tuple[int, int]
    cells: Cells | None  # None: dense

    @classmethod
    def of(cls, matrix: Any) -> "Rows":
        """Of an array, or of scipy's sparse rows."""
        (n, k), is_array = matrix.shape, isinstance(matrix, np.ndarray)
        n_nonzero = np.count_nonzero(matrix) if is_array else matrix.nnz
        if n_nonzero >= SPARSE_BELOW * n * k:
            return cls(matrix if is_array else matrix.toarray(), (n, k), None)
        row, column = matrix.nonzero()
        return cls(matrix[row, column], (n, k), Cells(row, column, k))

    def scale_rows(self, factors: FloatArray) -> "Rows":
        """Every entry times its row's factor."""
        return Rows(self.data * self._by_row(factors), self.shape, self.cells)

    def scale_columns(self, factors: FloatArray) -> "Rows":
        """Every entry times its column's factor."""
        return Rows(self.data * self._by_column(factors), self.shape, self.cells)

    def times_difference(self, columns: FloatArray, rows: FloatArray) -> "Rows":
        """Every entry times (its column's number − its row's)."""
        differences = self._by_column(columns) - self._by_row(rows)
        return Rows(self.data * differences, self.shape, self.cells)

    def sums(self) -> FloatArray:
        """(n,) of each row."""
        if self.cells is None:
            return np.asarray(self.data.sum(axis=1))
        return self._added(self.cells.row, self.data, self.shape[0])

    def apply(self, columns: FloatArray) -> FloatArray:
        """Matrix times (k,) or (k, c)."""
        if self.cells is None or columns[:1].size > FEW:
            return np.asarray(self._matrix() @ columns)
        return self._product(self.cells.row, columns[self.cells.column], self.shape[0])

    def apply_transposed(self, rows: FloatArray) -> FloatArray:
        """Transposed matrix times (n,) or (n, c)."""
        if self.cells is None or rows[:1].size > FEW:
            return np.asarray(self._matrix().T @ rows)
        return self._product(self.cells.column, rows[self.cells.row], self.shape[1])

    def gram(self, other: "Rows") -> FloatArray:
        """Transposed matrix times another of the same rows and cells: (k, k), dense."""
        if self.cells is None:
            return np.asarray(self.data.T @ other.data)
        k = self.shape[1]
        if self.cells.n_pairs > MAX_PAIRS:
            return np.asarray((self._matrix().T @ other._matrix()).toarray())
        first, second, at = self.cells.pairs
        return self._added(at, self.data[first] * other.data[second], k * k).reshape(k, k)

    def dense(self) -> FloatArray:
        if self.cells is None:
            return self.data
        matrix = np.zeros(self.shape, self.data.dtype)
        matrix[self.cells.row, self.cells.column] = self.data
        return matrix

    def transposed(self) -> FloatArray:
        """(k, n), dense."""
        return np.ascontiguousarray(self.dense().T)

    def _by_row(self, rows: FloatArray) -> FloatArray:
        return rows[:, None] if self.cells is None else rows[self.cells.row]

    def _by_column(self, columns: FloatArray) -> FloatArray:
        return columns if self.cells is None else columns[self.cells.column]

    def _product(self, at: NDArray[np.intp], factors: FloatArray, size: int) -> FloatArray:
        """Non-zeros times their factors, (n_nonzero,) or (n_nonzero, c), added up where they go."""
        if factors.ndim == 1:
            return self._added(at, self.data * factors, size)
        if factors.shape[1] == 1:
            return self._added(at, self.data * factors[:, 0], size)[:, None]
        columns = [self._added(at, self.data * factor, size) for factor in factors.T]
        return np.stack(columns, axis=1) if columns else np.zeros((size, 0), self.data.dtype)

    def _added(self, at: NDArray[np.intp], numbers: FloatArray, size: int) -> FloatArray:
        return np.bincount(at, numbers, size).astype(numbers.dtype, copy=False)

    def _matrix(self) -> Any:
        if self.cells is None:
            return self.data
        from scipy.sparse import csr_array

        ends = np.full(self.shape[0] + 1, len(self.data))
        ends[: len(self.cells.starts)] = self.cells.starts
        return csr_array((self.data, self.cells.column, ends), shape=self.shape)
