"""The stored answers that `benchmarks.subset_error` fits and tests on: reviews, subsets, log-odds.

    python -m benchmarks.store_answers OUT.npz --data FOLDER [--model FOLDER] [--reviews 16]
        [--longest 250] [--units token]

For review k (25 to 250 units): `k.units`, `k.features` (equal units share a number), and for each
set X of queries `k.X.mask` (packed bits, 1 = shown: `np.unpackbits(…, axis=1)[:, :n_units]`) and
`k.X.y`, the log-odds of the last class:

    A, B   500 and 2000 queries of the default design, the full and the empty text first
    U, W   1000 subsets of uniform and of log-uniform sizes, to test on, never to fit
    R      600 deletions of up to 10 units
"""

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

import slalom
from benchmarks.inside import Deletions, Queries, Sampler, SubsetSizes
from benchmarks.reviews import LONGEST, SHORTEST, opened, reviews

SETS: dict[str, tuple[Sampler, int]] = {
    "A": (SubsetSizes(), 500),
    "B": (SubsetSizes(), 2000),
    "U": (SubsetSizes(log_uniform=0.0, singles=0.0), 1000),
    "W": (SubsetSizes(log_uniform=1.0, singles=0.0), 1000),
    "R": (Deletions(), 600),
}


def answers(
    classifier: Any,
    text: str,
    units: str | None,
    sets: Mapping[str, tuple[Sampler, int]],
) -> dict[str, Any]:
    """The entries of one review, without its number."""
    document = classifier.split(text, units)
    found: dict[str, Any] = {
        "units": np.array(document.units),
        "features": document.features.astype(np.int16),
    }
    for name, (sampler, n_queries) in sets.items():
        rng = np.random.default_rng(ord(name))
        queries = sampler.sample(document, n_queries, rng).queries
        (logits,) = classifier.logits([(document, queries)])
        found[f"{name}.mask"] = np.packbits(shown(queries, document.n_units), axis=1)
        found[f"{name}.y"] = (logits[:, -1] - logits[:, 0]).astype(np.float32)
    return found


def shown(queries: Queries, n_units: int) -> Any:
    """(n_queries, n_units) which units a query shows."""
    masks = np.zeros((len(queries), n_units), dtype=bool)
    rows, columns = np.nonzero((queries >= 0) & (queries < n_units))
    masks[rows, queries[rows, columns]] = True
    return masks


def main() -> None:
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("out", type=Path)
    options.add_argument("--data", type=Path)
    options.add_argument("--model")
    options.add_argument("--device")
    options.add_argument("--reviews", type=int, default=16)
    options.add_argument("--longest", type=int, default=LONGEST, help="words")
    options.add_argument("--units", default="token")
    given = options.parse_args()
    classifier = opened(given.model, given.device)
    texts = reviews(classifier, given.data, given.reviews, longest=given.longest)
    if len(texts) < given.reviews:
        raise slalom.SlalomError(
            f"{len(texts)} reviews have {SHORTEST} to {given.longest} units, not {given.reviews}"
        )
    kept: dict[str, Any] = {}
    for at, text in enumerate(texts):
        found = answers(classifier, text, given.units, SETS)
        kept |= {f"{at}.{name}": entry for name, entry in found.items()}
        print(f"{at + 1} of {len(texts)} reviews", flush=True)
    np.savez_compressed(given.out, **kept)


if __name__ == "__main__":
    main()
