"""How fits of many documents scale with worker processes: no model is asked.

    python -m benchmarks.pool [--answers FOLDER] [--workers 1,2,4,8,16] [--documents 10]

Documents are the reviews of stored answers (benchmarks/subset_error says what FOLDER holds), or,
without them, made-up ones: a SLALOM of 110 units with a bend and noise, 500 subsets of all
sizes. Every worker gets --documents of them, so that no row takes much longer than another.
Prints, row by row, documents per second by the clock, what one document takes of a processor
inside a worker, how much of the cores' time is fitting, and how many bytes travel per document.
"""

import argparse
import pickle
from pathlib import Path
from time import perf_counter, process_time

import numpy as np

import slalom
from benchmarks.subset_error import N_REVIEWS, _masks, _scores, _ties
from slalom.explainers.execution.pool import Ask, Pool
from slalom.surrogates.base import Fit, Observations, Surrogate
from slalom.surrogates.slalom.model import Anchor, SlalomModel
from slalom.surrogates.threads import one_thread


def main() -> None:
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--answers", type=Path)
    options.add_argument("--workers", default="1,2")
    options.add_argument("--documents", type=int, default=10, help="per worker")
    options.add_argument("--method", default="slalom")
    given = options.parse_args()
    found = made_up(24) if given.answers is None else stored(given.answers, given.method)
    surrogate: Surrogate = slalom.METHODS[given.method].surrogate  # type: ignore[attr-defined]
    parts = [(surrogate, one) for one in found]
    _timed(parts[0], print)  # warms up
    sent = np.mean([len(pickle.dumps(part)) for part in parts[:4]])
    back = np.mean([len(pickle.dumps(_timed(part, print)[0])) for part in parts[:4]])
    print(f"per document {sent / 1e3:.0f} kB there, {back / 1e3:.0f} kB back", flush=True)
    print("| workers | documents | per second | processor seconds per document | busy |")
    print("|---|---|---|---|---|", flush=True)
    for n_workers in map(int, given.workers.split(",")):
        n_documents = given.documents * n_workers
        _report(n_workers, [parts[number % len(parts)] for number in range(n_documents)])


def _report(n_workers: int, parts: list[tuple[Surrogate, Observations]]) -> None:
    pool = Pool(n_workers)
    _in_workers(pool, parts[: 2 * n_workers])  # starts and warms the workers
    start = perf_counter()
    told = _in_workers(pool, parts)
    seconds = perf_counter() - start
    spent = sum(seconds for _, seconds in told)
    print(
        f"| {n_workers} | {len(parts)} | {len(parts) / seconds:.1f} | {spent / len(parts):.3f} "
        f"| {spent / (n_workers * seconds):.0%} |",
        flush=True,
    )


def _in_workers(pool: Pool, parts: list[tuple[Surrogate, Observations]]) -> list[tuple[Fit, float]]:
    futures = [pool.submit(_timed, part, print) for part in parts]
    return [future.result() for future in futures]


def _timed(part: tuple[Surrogate, Observations], ask: Ask) -> tuple[Fit, float]:
    surrogate, observed = part
    start = process_time()
    with one_thread():
        fit = surrogate.fit(observed)
    return fit, process_time() - start


def stored(folder: Path, method: str) -> list[Observations]:
    """Set A of every review of every classifier."""
    found = []
    for path in sorted(folder.glob("*.npz")):
        answers = np.load(path)
        for review in range(N_REVIEWS):
            tied, scores = _ties(answers, review, method), _scores(answers, review, "A")
            counts = _masks(answers, review, "A") @ tied
            found.append(Observations(counts, scores, np.ones(len(scores)), tied.sum(axis=0)))
    return found


def made_up(n_documents: int, n_units: int = 110, n_queries: int = 500) -> list[Observations]:
    """No two alike."""
    found = []
    for seed in range(n_documents):
        rng = np.random.default_rng(seed)
        model = SlalomModel(rng.normal(size=n_units), rng.normal(size=n_units), Anchor(0.3, 2.0))
        counts = (rng.random((n_queries, n_units)) < rng.random((n_queries, 1))).astype(float)
        counts[0], counts[1] = 1.0, 0.0
        said = model.predict(counts)
        scores = np.tanh(2 * said) + 0.1 * rng.normal(size=n_queries)
        found.append(Observations(counts, scores, np.ones(n_queries), np.ones(n_units)))
    return found


if __name__ == "__main__":
    main()
