"""Linear algebra of small matrices: Cholesky factors straight from LAPACK, on one thread.

A fit factors some fifty matrices of a hundred or two columns. scipy's own front doors check
and copy each of them, which takes as long as a small factorisation itself. And it is thousands of
products of a few hundred rows: spread over all cores each waits for its threads longer than it
computes; on 16 cores a 500-query fit took 4.2 s instead of 0.2 s.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from threading import Lock
from typing import Any

import numpy as np

from slalom.document import FloatArray


def cholesky(matrix: FloatArray) -> FloatArray | None:
    """L of a symmetric matrix LLᵀ, which is overwritten; None where it is not positive.

    Above the diagonal L holds leftovers.
    """
    factor, _, _ = _routines()
    # LAPACK reads columns first: transposed, nothing is copied
    lower, failed = factor(matrix.T, lower=1, overwrite_a=1, clean=0)
    return None if failed else lower


def solve_lower(root: FloatArray, right: FloatArray) -> FloatArray:
    """L⁻¹ times (k, n)."""
    return _divided(root, right, back=False)


def solve_lower_transposed(root: FloatArray, right: FloatArray) -> FloatArray:
    """L⁻ᵀ times (k, n)."""
    return _divided(root, right, back=True)


def _divided(root: FloatArray, right: FloatArray, *, back: bool) -> FloatArray:
    """Transposed and from the other side: numpy's rows are BLAS's columns, and it is quicker."""
    _, _, divide = _routines()
    return np.asarray(divide(1.0, root, right.T, side=1, lower=1, trans_a=not back).T)


def inverse_of(root: FloatArray) -> FloatArray:
    """(LLᵀ)⁻¹ whole."""
    _, invert, _ = _routines()
    lower = np.tril(invert(root, lower=1)[0])
    inverse = lower + lower.T
    diagonal_of(inverse)[:] *= 0.5
    return np.asarray(inverse)


def solved(root: FloatArray, right: FloatArray) -> FloatArray:
    """(LLᵀ)⁻¹ times (k, n)."""
    return solve_lower_transposed(root, solve_lower(root, right))


def quasi_newton(
    slope: FloatArray, steps: list[tuple[FloatArray, FloatArray]], shape: FloatArray
) -> FloatArray:
    """The inverse Hessian times a gradient, by L-BFGS' two loops over all steps so far."""
    found, slopes = slope.copy(), []
    for step, change in steps[::-1]:
        slopes.append(float(step @ found) / float(change @ step))
        found = found - slopes[-1] * change
    scale = 1.0
    if steps:
        step, change = steps[-1]
        scale = float(step @ change) / float(change @ (shape * change))
    found = scale * shape * found
    for (step, change), along in zip(steps, slopes[::-1], strict=True):
        found = found + step * (along - float(change @ found) / float(change @ step))
    return found


def errors_of_classes(root: FloatArray, contrasts: FloatArray, n_drawn: int = 300) -> FloatArray:
    """(n, n_classes, q) of LLᵀ in each contrast: squares add up; of many, some are drawn."""
    n, n_columns = len(root), contrasts.shape[1]
    if n * n_columns <= 2 * n_drawn:
        errors = root[:, None, :, None] * contrasts[:, None, :]
        return np.asarray(errors.reshape(n, len(contrasts), -1))
    rng = np.random.default_rng(0)
    errors = np.zeros((n, len(contrasts), n_drawn))
    for contrast in contrasts.T:
        drawn = root @ rng.standard_normal((n, n_drawn)) / np.sqrt(n_drawn)
        errors += contrast[:, None] * drawn[:, None]
    return errors


@cache
def legendre(n_nodes: int) -> tuple[FloatArray, FloatArray]:
    """Nodes and weights of Gauss–Legendre quadrature from 0 to 1."""
    points, weights = np.polynomial.legendre.leggauss(n_nodes)
    return (points + 1) / 2, weights / 2


def diagonal_of(matrix: FloatArray) -> FloatArray:
    """The diagonal of a square matrix as a view, to be written to."""
    return matrix.reshape(-1)[:: len(matrix) + 1]


@cache
def _routines() -> tuple[Any, Any, Any]:
    """To factor, to invert by a factor, and to divide by one; in double precision."""
    from scipy.linalg import get_blas_funcs, get_lapack_funcs

    factor, invert = get_lapack_funcs(("potrf", "potri"))
    return factor, invert, get_blas_funcs("trsm")


@dataclass(eq=False)
class OneThread:
    """The first thread to enter sets the limit, the last to leave lifts it."""

    n_inside: int = 0
    limit: Any = None
    lock: Lock = field(default_factory=Lock)

    @contextmanager
    def __call__(self) -> Iterator[None]:
        with self.lock:
            if not self.n_inside:
                _take_control()
                self.limit = _libraries().limit(limits=1, user_api="blas")
            self.n_inside += 1
        try:
            yield
        finally:
            with self.lock:
                self.n_inside -= 1
                if not self.n_inside:
                    _take_control()
                    self.limit.restore_original_limits()


one_thread = OneThread()  # linear algebra inside runs on one thread


def _take_control() -> None:
    """threadpoolctl from 3.8 on heeds the first thread to set a limit, and ignores all others."""
    from threadpoolctl import OpenBLASController

    clear = getattr(OpenBLASController, "clear_controlling_thread", None)
    if clear is not None:
        clear(force=True)


@cache
def _libraries() -> Any:
    """The loaded linear algebra libraries; finding them takes longer than a fit."""
    import scipy.linalg  # noqa: F401  # brings its own library, which must be found too
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
