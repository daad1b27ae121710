"""How well a fit predicts subsets it has not seen, on stored answers: no model is asked.

    python -m benchmarks.subset_error FOLDER [--queries A] [--every 1] [--out FILE]

FOLDER holds one .npz per classifier; for review k it has `k.features` (equal units share a
number) and for every set of queries X `k.X.mask` (packed bits, one row per query) and `k.X.y`
(log-odds). Fitted to `--queries`, tested on U (sizes uniform) and W (log-uniform): squared error
relative to predicting the mean, mean and worst over the reviews; where there are deletions (R),
`slalom-local`'s surrogate and least squares are fitted to 400 of them and tested on the rest,
relative to predicting no change. Seconds are of one core, in the fit alone.
"""

import argparse
import json
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np

from slalom.document import FloatArray
from slalom.surrogates.base import Surrogate
from slalom.surrogates.linear import LinearSurrogate
from slalom.surrogates.slalom.fit import SlalomSurrogate
from slalom.surrogates.threads import one_thread

N_REVIEWS, N_FITTED = 16, 400


def masks_of(stored: Any, name: str, n_units: int) -> FloatArray:
    return np.unpackbits(stored[f"{name}.mask"], axis=1)[:, :n_units].astype(float)


def missed(said: FloatArray, truth: FloatArray, reference: float) -> float:
    return float(((said - truth) ** 2).sum() / ((truth - reference) ** 2).sum())


def subsets(stored: Any, review: int, queries: str) -> dict[str, float | None]:
    """One review: errors on U and W, R², R² on fresh queries, seconds."""
    features = stored[f"{review}.features"]
    n_units = len(features)
    tied = np.eye(int(features.max()) + 1)[features]
    counts = masks_of(stored, f"{review}.{queries}", n_units) @ tied
    scores = stored[f"{review}.{queries}.y"].astype(float)
    start = process_time()
    with one_thread():
        fit = SlalomSurrogate().fit(
            counts, scores, weights=np.ones(len(scores)), document_counts=tied.sum(axis=0)
        )
    row: dict[str, float | None] = {"r2": fit.r2, "seconds": process_time() - start}
    for name in "UW":
        truth = stored[f"{review}.{name}.y"].astype(float)
        said = fit.model.predict(masks_of(stored, f"{review}.{name}", n_units) @ tied)
        row[name] = missed(said, truth, float(truth.mean()))
    return row


def deletions(stored: Any, review: int, surrogate: Surrogate) -> tuple[float, float]:
    """Summed squares on held-back deletions: of the error, and of the change itself."""
    n_units = len(stored[f"{review}.features"])
    whole = float(stored[f"{review}.A.y"][0])
    masks, truth = masks_of(stored, f"{review}.R", n_units), stored[f"{review}.R.y"].astype(float)
    fitted = np.vstack([np.ones(n_units), masks[:N_FITTED]])
    with one_thread():
        fit = surrogate.fit(
            fitted,
            np.append(whole, truth[:N_FITTED]),
            weights=np.ones(len(fitted)),
            document_counts=np.ones(n_units),
        )
    said = fit.model.predict(masks[N_FITTED:]) - fit.model.predict(fitted[:1])
    change = truth[N_FITTED:] - whole
    return float(((said - change) ** 2).sum()), float((change**2).sum())


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("folder", type=Path)
    options.add_argument("--queries", default="A")
    options.add_argument("--every", type=int, default=1, help="take one review in so many")
    options.add_argument("--deletions", action="store_true")
    options.add_argument("--out", type=Path)
    given = options.parse_args()
    kept: dict[str, list[dict[str, float | None]]] = {}
    print("| | UNI | WIDE | worst | R² | fresh | seconds |\n|---|---|---|---|---|---|---|")
    for path in sorted(given.folder.glob("*.npz")):
        stored, reviews = np.load(path), range(0, N_REVIEWS, given.every)
        rows = kept[path.stem] = [subsets(stored, k, given.queries) for k in reviews]
        uni, wide, r2, seconds = (
            np.array([row[key] for row in rows], float) for key in ("U", "W", "r2", "seconds")
        )
        worst, fresh = max(uni.max(), wide.max()), 1 - (uni + wide).mean() / 2
        print(
            f"| {path.stem} | {uni.mean():.3f} | {wide.mean():.3f} | {worst:.2f} "
            f"| {np.nanmean(r2):.3f} | {fresh:.3f} | {seconds.mean():.2f} |",
            flush=True,
        )
        if given.deletions and "0.R.mask" in stored:
            for name, surrogate in (("slalom", SlalomSurrogate()), ("linear", LinearSurrogate())):
                sums = np.array([deletions(stored, k, surrogate) for k in reviews])
                ratio = sums[:, 0].sum() / sums[:, 1].sum()
                print(
                    f"  deletions, {name}: {ratio:.3f}, mean of ratios "
                    f"{(sums[:, 0] / sums[:, 1]).mean():.3f}",
                    flush=True,
                )
    if given.out:
        given.out.write_text(json.dumps(kept, indent=0) + "\n")


if __name__ == "__main__":
    main()
