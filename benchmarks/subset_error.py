"""How well fits predict subsets they have not seen, on stored answers: no model is asked.

    python -m benchmarks.subset_error FOLDER [--methods slalom,boosted,gam] [--fit A] [--out FILE]
        [--repeats 3]

FOLDER holds one .npz per classifier; `python -m benchmarks.store_answers` makes them, and says
what is in them: for review k `k.features` (equal units share a number), and for every set of
queries X `k.X.mask` (packed bits, one row per query) and `k.X.y` (log-odds). Fitted to set A (500
queries of the default design) or B (2000), tested on U (sizes uniform) and W (log-uniform):
squared error relative to predicting the mean, U / W, mean over the reviews. Seconds are processor
seconds of a fit of the first method, the least of so many repeats, "times" those of the others
relative to it, the median over the reviews: all methods take turns on a review. `--deletions`
also fits `slalom-local` and least squares to 400 deletions (set R) and tests them on the others,
relative to predicting no change.
"""

import argparse
import json
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np

import slalom
from benchmarks.inside import (
    AllAsked,
    Fit,
    FloatArray,
    Model,
    Observations,
    fit_process,
    one_thread,
)

N_REVIEWS, N_FITTED = 16, 400
DEFAULT = "slalom,boosted,gam,linear"
Row = dict[str, float | None]


def main() -> None:
    given = _options().parse_args()
    methods = given.methods.split(",")
    kept: dict[str, dict[str, list[Row]]] = {}
    print("| U / W | " + " | ".join(methods) + " | worst | R² | fresh | seconds | times |")
    print("|" + "---|" * (len(methods) + 6))
    for path in sorted(given.folder.glob("*.npz")):
        stored, reviews = np.load(path), range(0, N_REVIEWS, given.every)
        rows = [in_turn(stored, k, given) for k in reviews]
        kept[path.stem] = {method: [row[method] for row in rows] for method in methods}
        print(_line(path.stem, kept[path.stem]), flush=True)
        if given.deletions and "0.R.mask" in stored:
            for method in ("slalom-local", "linear"):
                ratios = [deletions(stored, k, method) for k in reviews]
                print(f"  deletions, {method}: {np.mean(ratios):.3f}", flush=True)
    if given.out:
        given.out.write_text(json.dumps(kept, indent=0) + "\n", encoding="utf-8")


def _options() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("folder", type=Path)
    options.add_argument("--methods", default=DEFAULT, help="names; the first is described fully")
    options.add_argument("--fit", default="A", help="the set of queries that is fitted")
    options.add_argument("--every", type=int, default=1, help="take one review in so many")
    options.add_argument("--deletions", action="store_true")
    options.add_argument("--repeats", type=int, default=1, help="of each fit, for its seconds")
    options.add_argument("--out", type=Path, help="keep the rows as JSON")
    return options


def in_turn(stored: Any, review: int, given: argparse.Namespace) -> dict[str, Row]:
    """One review by all methods, again and again; the quickest fits count."""
    rows: dict[str, Row] = {}
    for _ in range(given.repeats):
        for method in given.methods.split(","):
            row = subsets(stored, review, given.fit, method)
            seconds = [each["seconds"] for each in (row, rows.get(method, row))]
            rows[method] = row | {"seconds": min(s for s in seconds if s is not None)}
    return rows


def subsets(stored: Any, review: int, fitted: str, method: str) -> Row:
    """One review: errors on U and W, the fit's own R², processor seconds of all of it."""
    tied = _ties(stored, review, method)
    start = process_time()
    shown, scores = _masks(stored, review, fitted), _scores(stored, review, fitted)
    model, r2 = _fitted(method, shown, scores, tied)
    row: Row = {"r2": r2, "seconds": process_time() - start}
    for name in "UW":
        masks, truth = _masks(stored, review, name), _scores(stored, review, name)
        predicted = model.predict(masks)
        row[name] = float(((predicted - truth) ** 2).mean() / truth.var())
    return row


def deletions(stored: Any, review: int, method: str) -> float:
    """Of the change by held-back deletions, how much is missed."""
    masks, truth = _masks(stored, review, "R"), _scores(stored, review, "R")
    whole = _scores(stored, review, "A")[0]
    shown = np.vstack([np.ones(masks.shape[1]), masks[:N_FITTED]])
    scores = np.append(whole, truth[:N_FITTED])
    model, _ = _fitted(method, shown, scores, np.eye(masks.shape[1]))
    predicted = model.predict(masks[N_FITTED:]) - whole
    change = truth[N_FITTED:] - whole
    return float(((predicted - change) ** 2).sum() / (change**2).sum())


def _fitted(
    method: str, masks: FloatArray, scores: FloatArray, tied: FloatArray
) -> tuple[Model, float | None]:
    """The model over units, with the process around it where the method has one, and its R²."""
    fit, features = _fit(method, masks @ tied, scores, tied), tied.argmax(axis=1).astype(np.int32)
    if getattr(slalom.METHODS[method], "follow_up", None) is None:
        return fit.model.expand(features), fit.quality.r2
    rows, weights = np.arange(len(masks), dtype=np.int32), np.ones(len(masks))
    with one_thread():
        whole = fit_process(AllAsked(fit, features, masks > 0, scores, rows, weights, exact=False))
    return whole.model, whole.quality.r2


def _fit(method: str, counts: FloatArray, scores: FloatArray, tied: FloatArray) -> Fit:
    surrogate = slalom.METHODS[method].surrogate  # type: ignore[attr-defined]
    with one_thread():
        found: Fit = surrogate.fit(
            Observations(
                counts, scores, weights=np.ones(len(scores)), document_counts=tied.sum(axis=0)
            )
        )
    return found


def _ties(stored: Any, review: int, method: str) -> FloatArray:
    """(n_units, n_features) which feature each unit is, as the method has it."""
    features = stored[f"{review}.features"]
    if not slalom.METHODS[method].tied:  # type: ignore[attr-defined]
        return np.eye(len(features))
    return np.asarray(np.eye(int(features.max()) + 1)[features])


def _masks(stored: Any, review: int, name: str) -> FloatArray:
    n_units = len(stored[f"{review}.features"])
    packed = stored[f"{review}.{name}.mask"]
    return np.unpackbits(packed, axis=1)[:, :n_units].astype(np.float64)


def _scores(stored: Any, review: int, name: str) -> FloatArray:
    return np.asarray(stored[f"{review}.{name}.y"], dtype=np.float64)


def _line(classifier: str, rows: dict[str, list[Row]]) -> str:
    """A row of the table: all methods' errors, then what else is known of the first."""
    table = {
        method: np.array([[one[key] for key in ("U", "W", "r2", "seconds")] for one in each], float)
        for method, each in rows.items()
    }
    cells = [
        f"{each[:, 0].mean():.3f} / {each[:, 1].mean():.3f}".replace("0.", ".")
        for each in table.values()
    ]
    first = next(iter(table.values()))
    fresh = 1 - first[:, :2].mean()
    cells += [f"{first[:, :2].max():.2f}", f"{np.nanmean(first[:, 2]):.3f}", f"{fresh:.3f}"]
    times = [f"{np.median(each[:, 3] / first[:, 3]):.2f}" for each in list(table.values())[1:]]
    cells += [f"{first[:, 3].mean():.2f}", ", ".join(times)]
    return f"| {classifier} | " + " | ".join(cells) + " |"


if __name__ == "__main__":
    main()
