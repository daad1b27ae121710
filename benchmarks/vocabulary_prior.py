"""How many queries a vocabulary saves: error on held-out queries with and without it as a prior.

    python -m benchmarks.vocabulary_prior --data FOLDER [--documents 800] [--judged 24]

A vocabulary is made from some test reviews, then others are explained at several budgets, from
scratch and from the vocabulary. Both are evaluated on the same random subsets of two units and
more, which none of them was fitted to but by chance: squared error over the variance of the
scores, mean and median over reviews.
"""

import argparse
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import slalom
from benchmarks.inside import (
    BoolArray,
    CachedClassifier,
    Document,
    FloatArray,
    queries_from_masks,
    random_subsets,
)
from benchmarks.reviews import reviews

BUDGETS = (25, 50, 100, 200, 400)
N_HELD_OUT = 300  # queries


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, help="a folder with reviews (docs/models.md)")
    parser.add_argument("--documents", type=int, default=800, help="texts of the vocabulary")
    parser.add_argument("--judged", type=int, default=24, help="texts that are explained")
    parser.add_argument("--queries", type=int, default=20, help="per text of the vocabulary")
    parser.add_argument("--vocabulary", type=Path, help="keep the vocabulary here, or read it")
    given = parser.parse_args()
    warnings.simplefilter("ignore", slalom.SlalomWarning)
    classifier: Any = CachedClassifier(slalom.load())
    texts = reviews(classifier, given.data, given.documents + given.judged)
    if given.vocabulary and given.vocabulary.exists():
        vocabulary = slalom.Vocabulary.read(given.vocabulary)
    else:
        vocabulary = slalom.explain_vocabulary(
            classifier, texts[: given.documents], n_queries=given.queries
        )
    if given.vocabulary:
        vocabulary.save(given.vocabulary)
    quality = vocabulary.quality
    print(
        f"vocabulary: {len(vocabulary)} tokens of {given.documents} texts, {quality.n_queries} "
        f"queries, held-out R² {quality.r2:.2f}, {quality.seconds:.0f} s"
    )
    errors = {name: np.zeros((given.judged, len(BUDGETS))) for name in ("slalom", "from it")}
    for row, text in enumerate(texts[given.documents : given.documents + given.judged]):
        document = classifier.split(text)
        masks, truth = _held_out(classifier, document)
        for column, budget in enumerate(BUDGETS):
            for name, method in (("slalom", "slalom"), ("from it", vocabulary.method())):
                e = slalom.explain(classifier, text, method, target=1, n_queries=budget)
                squared = (e.predict(masks) - truth) ** 2
                errors[name][row, column] = squared.mean() / truth.var()
    print("queries       ", *(f"{budget:7d}" for budget in BUDGETS))
    for name, table in errors.items():
        print(f"{name:14s}", *(f"{mean:7.3f}" for mean in table.mean(axis=0)))
        print("  median      ", *(f"{middle:7.3f}" for middle in np.median(table, axis=0)))
    better = (errors["from it"] < errors["slalom"]).mean(axis=0)
    print("better on     ", *(f"{share:6.0%} " for share in better))


def _held_out(classifier: Any, document: Document) -> tuple[BoolArray, FloatArray]:
    """Random subsets of uniform and log-uniform sizes, and the classifier's log-odds.

    Not single units nor the whole text, which every explanation has asked.
    """
    rng, n_units = np.random.default_rng(12345), document.n_units
    log_uniform = np.exp(rng.uniform(np.log(2), np.log(n_units), size=N_HELD_OUT)).astype(int)
    uniform = rng.integers(2, n_units, size=N_HELD_OUT)
    sizes = np.where(rng.random(N_HELD_OUT) < 0.5, log_uniform, uniform)
    masks = random_subsets(sizes, n_units, rng)
    (logits,) = classifier.logits([(document, queries_from_masks(masks))])
    return masks, logits[:, 1] - logits[:, 0]


if __name__ == "__main__":
    main()
