"""Cholesky factors of small matrices and what is solved with them, straight from LAPACK.

A fit factors some fifty matrices of a hundred or two columns. scipy's own front doors check
and copy each of them, which takes as long as a small factorisation itself.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from slalom.document import FloatArray


def cholesky(matrix: FloatArray) -> FloatArray | None:
    """L of a symmetric matrix LLᵀ, which is overwritten; None where it is not positive.

    Above the diagonal L holds leftovers.
    """
    lower, failed = _lapack(matrix.dtype.char)[0](
        matrix.T, lower=1, overwrite_a=1, clean=0
    )  # LAPACK reads columns first: transposed, nothing is copied
    return None if failed else lower


def solve_lower(root: FloatArray, right: FloatArray) -> FloatArray:
    """L⁻¹ times (k, n)."""
    return _divided(root, right, back=False)


def solve_lower_transposed(root: FloatArray, right: FloatArray) -> FloatArray:
    """L⁻ᵀ times (k, n)."""
    return _divided(root, right, back=True)


def _divided(root: FloatArray, right: FloatArray, *, back: bool) -> FloatArray:
    """Transposed and from the other side: numpy's rows are BLAS's columns, and it is quicker."""
    divide = _lapack(root.dtype.char)[1]
    return np.asarray(divide(1.0, root, right.T, side=1, lower=1, trans_a=not back).T)


def inverse_of(root: FloatArray) -> FloatArray:
    """(LLᵀ)⁻¹."""
    half = solve_lower(root, np.eye(len(root), dtype=root.dtype))
    return np.asarray(half.T @ half)


def solved(root: FloatArray, right: FloatArray) -> FloatArray:
    """(LLᵀ)⁻¹ times (k,) or (k, n)."""
    return np.asarray(_lapack(root.dtype.char)[2](root, right, lower=1)[0])


def diagonal_of(matrix: FloatArray) -> FloatArray:
    """The diagonal of a square matrix as a view, to be written to."""
    return matrix.reshape(-1)[:: len(matrix) + 1]


def stacked(parts: Sequence[FloatArray]) -> FloatArray:
    """(n_columns, …); most fits have one column, of which nothing is copied."""
    return parts[0][None] if len(parts) == 1 else np.stack(parts)


@cache
def _lapack(kind: str) -> tuple[Any, Any, Any]:
    from scipy.linalg import get_blas_funcs, get_lapack_funcs

    root, solve = get_lapack_funcs(("potrf", "potrs"), dtype=kind)
    return root, get_blas_funcs("trsm", dtype=kind), solve
