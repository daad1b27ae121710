"""What asking until it is sure enough saves against one number of queries for all texts.

    python -m benchmarks.max_error --data FOLDER [--documents 12] [--longest 60]
        [--errors 0.3,0.2,0.1] [--out rows.jsonl]

With max_error=e every text is asked on until its largest standard error of a Shapley value is at
most e. The fixed number that does the same for all texts must suit the least sure one; the one
for nine in ten of them the tenth least sure. Both are looked for in steps of a fifth. Answers are
remembered, so that only fits are made again; seconds are not measured.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

import slalom
from benchmarks.reviews import short_reviews
from slalom.classifiers.cached import CachedClassifier

FIRST, STEP, MOST = 60, 1.2, 8000  # queries of the fixed numbers


def main() -> None:
    given = _options().parse_args()
    classifier: Any = CachedClassifier(slalom.load(given.model))
    texts = short_reviews(classifier, given.data, given.documents, longest=given.longest)
    errors = sorted(map(float, given.errors.split(",")), reverse=True)
    fixed = [_errors_by_queries(classifier, text, errors[-1]) for text in texts]
    for error in errors:
        row = _row(classifier, texts, fixed, error)
        print("  ".join(f"{k} {v:.4g}" for k, v in row.items()), flush=True)
        if given.out:
            with Path(given.out).open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")


def _options() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--model", help="a folder; the bundled one unless given")
    options.add_argument("--data", type=Path, help="folder of data")
    options.add_argument("--documents", type=int, default=12)
    options.add_argument("--longest", type=int, default=60, help="words")
    options.add_argument("--errors", default="0.3,0.2,0.1", help="log-odds")
    options.add_argument("--out", metavar="FILE", help="add a line of JSON per row to this file")
    return options


def _errors_by_queries(classifier: Any, text: str, least: float) -> dict[int, float]:
    """Number of queries → largest standard error, until it is as small as wanted."""
    found: dict[int, float] = {}
    n_queries = float(FIRST)
    while n_queries < MOST:
        explanation = slalom.explain(classifier, text, n_queries=int(n_queries))
        errors = explanation.errors.get("shapley", np.array([np.inf]))
        found[int(n_queries)] = float(errors.max())
        if found[int(n_queries)] <= least:
            break
        n_queries *= STEP
    return found


def _row(
    classifier: Any, texts: list[str], fixed: list[dict[int, float]], error: float
) -> dict[str, float]:
    explained = [slalom.explain(classifier, text, max_error=error) for text in texts]
    asked = [e.quality.n_queries for e in explained]
    reached = [float(e.errors["shapley"].max()) <= error for e in explained]
    needed = sorted(
        min((n for n, found in one.items() if found <= error), default=MOST) for one in fixed
    )
    nine = needed[int(np.ceil(0.9 * len(needed))) - 1]
    return {
        "max_error": error,
        "documents": len(texts),
        "reached": float(np.mean(reached)),
        "asked_mean": float(np.mean(asked)),
        "asked_least": float(min(asked)),
        "asked_most": float(max(asked)),
        "fixed_for_all": float(needed[-1]),
        "fixed_for_nine_in_ten": float(nine),
        "fixed_with_hindsight": float(np.mean(needed)),
        "times_fewer_than_for_all": needed[-1] / float(np.mean(asked)),
        "times_fewer_than_for_nine_in_ten": nine / float(np.mean(asked)),
    }


if __name__ == "__main__":
    main()
