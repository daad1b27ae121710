"""What it changes whether absent words are removed or masked: `python -m benchmarks.absence`.

Each text is explained twice, with words removed and with words masked. Prints the mean rank
correlation of the Shapley values, how many of the top three words are the same, R² of both, the
log-odds of the empty text (nothing, or nothing but masks), and the tokens that went through.
"""

import argparse
import json
from pathlib import Path

import numpy as np
from scipy.stats import spearmanr

import slalom
from benchmarks.reviews import opened

TEXTS = (
    "A slow start and one awful song, but a wonderful film.",
    "I was bored from the first minute, and the end is not worth the wait.",
    "Great actors, a clever story and beautiful pictures: do not miss it.",
    "It could have been a good film, if only somebody had read the script.",
    "Not a masterpiece, yet funny, warm and never dull.",
    "The worst film of the year, with the best music of the year.",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", help="a folder; without it the bundled model")
    parser.add_argument("--queries", type=int, default=300)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    classifier = opened(given.model)
    rows = [row(classifier, text, given.queries) for text in TEXTS]
    if given.out is not None:
        given.out.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    print(f"{classifier.name}, {len(rows)} texts, {given.queries} queries")
    for name in rows[0]:
        print(f"{name:32} {np.mean([r[name] for r in rows]):8.3f}")


def row(classifier: object, text: str, n_queries: int) -> dict[str, float]:
    removed, masked = (
        slalom.explain(classifier, text, target=1, n_queries=n_queries, absent=absent)
        for absent in ("remove", "mask")
    )
    same = {word for word, _ in removed.top(3)} & {word for word, _ in masked.top(3)}
    ranks = spearmanr(removed.scores["shapley"], masked.scores["shapley"])
    return {
        "rank correlation of shapley": float(ranks.statistic),
        "same among the top three": float(len(same)),
        **_told("removed", removed),
        **_told("masked", masked),
    }


def _told(name: str, e: slalom.Explanation) -> dict[str, float]:
    base = float(np.ravel(e.base)[0]) if e.base is not None else float("nan")
    r2 = 1.0 if e.quality.r2 is None else e.quality.r2
    return {
        f"R2, {name}": r2,
        f"empty text, {name}": base,
        f"tokens, {name}": float(e.quality.n_tokens),
    }


if __name__ == "__main__":
    main()
