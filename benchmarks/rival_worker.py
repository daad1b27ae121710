"""The newest peers at work, in an environment of their own: numpy and the peers, nothing of ours.

`python -m benchmarks.rivals` starts this program with the address of a socket. It is told which
peer is to estimate the Shapley values of a game of so many units with so many queries; it asks the
game through the socket, rows of 0/1 to log-odds, so that every peer gets the same answers; and it
sends what came of it: the values, what the peer's model says of the test rows (where it has one),
and the processor seconds of the peer's own work. It also ranks values as shapiq's benchmark does.
"""

import contextlib
import io
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Client, Connection
from time import process_time
from typing import Any

import numpy as np

Game = Callable[[np.ndarray], np.ndarray]  # (n_rows, n_units) of 0/1 → (n_rows,)
Found = tuple[np.ndarray, Callable[[np.ndarray], np.ndarray] | None]  # values; a model of rows


@dataclass(frozen=True)
class Task:
    """What a peer is told."""

    n_units: int
    n_queries: int
    game: Game


def main(address: str) -> None:
    with contextlib.suppress(EOFError), Client(address) as line:  # the other end may be killed
        while (message := line.recv()) is not None:
            if message[0] == "rankings":
                line.send(rankings(*message[1:]))
                continue
            name, n_units, n_queries, test = message
            clock = _Clock(line)
            task = Task(n_units, n_queries, clock.ask)
            try:
                with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
                    warnings.simplefilter("ignore")
                    start = process_time()
                    values, model = PEERS[name](task)
                    seconds = process_time() - start
                said = None if model is None else np.asarray(model(test), dtype=np.float64)
            except Exception as problem:  # a peer's failure is a result too
                line.send(("failed", f"{type(problem).__name__}: {problem}".splitlines()[0][:120]))
                continue
            line.send(("done", np.asarray(values, dtype=np.float64), said, seconds))


def rankings(truth: np.ndarray, values: np.ndarray) -> dict[str, float]:
    """How well values rank, by shapiq's benchmark."""
    from shapiq_benchmark.metrics import ranking_metrics

    return ranking_metrics(truth, values)


@dataclass
class _Clock:
    line: Connection

    def ask(self, rows: np.ndarray) -> np.ndarray:
        self.line.send(("ask", np.atleast_2d(rows).astype(bool)))
        return np.asarray(self.line.recv())


def additive(values: np.ndarray, empty: float) -> Callable[[np.ndarray], np.ndarray]:
    return lambda rows: empty + rows @ values


def sum_of_sets(found: Any) -> Callable[[np.ndarray], np.ndarray]:
    """Σ over the sets of units that are all there: how these packages reconstruct a game."""

    def said(rows: np.ndarray) -> np.ndarray:
        total = np.full(len(rows), float(found.baseline_value))
        for units, amount in found.dict_values.items():
            if units and amount:
                total += amount * rows[:, list(units)].all(axis=1)
        return total

    return said


def shapiq_values(kind: str, **settings: Any) -> Callable[[Task], Found]:
    """An estimator of Shapley values, as its package sets it up."""

    def estimate(task: Task) -> Found:
        import shapiq

        method = getattr(shapiq, kind)(n=task.n_units, random_state=0, **settings)
        found = method.approximate(task.n_queries, task.game)
        values = np.array([found[(unit,)] for unit in range(task.n_units)])
        return values, additive(values, float(found.baseline_value))

    return estimate


def shapiq_sets(kind: str, **settings: Any) -> Callable[[Task], Found]:
    """A few sets of units as a model of the game; each set's amount is shared by its units."""

    def estimate(task: Task) -> Found:
        import shapiq

        method = getattr(shapiq, kind)(n=task.n_units, random_state=0, **settings)
        found = method.approximate(task.n_queries, task.game)
        values = np.zeros(task.n_units)
        for units, amount in found.dict_values.items():
            if units:
                values[list(units)] += amount / len(units)
        return values, sum_of_sets(found)

    return estimate


def shap_kernel(task: Task) -> Found:
    import shap

    empty = np.zeros((1, task.n_units))
    explainer = shap.KernelExplainer(task.game, empty)
    full = np.ones((1, task.n_units))
    values = explainer.shap_values(full, nsamples=task.n_queries - 2, l1_reg=0, silent=True)
    return np.ravel(values), additive(np.ravel(values), float(explainer.expected_value))


PEERS: dict[str, Callable[[Task], Found]] = {
    "shapiq LeverageSHAP": shapiq_values("LeverageSHAP"),
    "shapiq OddSHAP": shapiq_values("OddSHAP"),
    "shapiq RegressionMSR": shapiq_values("RegressionMSR", index="SV"),
    "shapiq ProxySHAP": shapiq_values("ProxySHAP", index="SV", max_order=1, adjustment=True),
    "shapiq PolySHAP": shapiq_values("PolySHAP", pairing_trick=True),
    "shapiq KernelSHAP": shapiq_values("KernelSHAP"),
    "shapiq SVARM": shapiq_values("SVARM"),
    "shapiq PermutationSamplingSV": shapiq_values("PermutationSamplingSV"),
    "shapiq ProxySPEX": shapiq_sets("ProxySPEX", index="FBII", max_order=4),
    "shapiq ProxySPEX once": shapiq_sets("ProxySPEX", index="FBII", max_order=4, hpo=False),
    "shap KernelExplainer": shap_kernel,
}
