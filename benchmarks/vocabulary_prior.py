"""How many queries a vocabulary saves: fresh-query error of explanations with and without it.

    python -m benchmarks.vocabulary_prior reviews.csv[.xz] --documents 800

A vocabulary is made from some texts of the file (a column `text`), then other texts are
explained at several budgets, from scratch and from the vocabulary. Both are judged on queries
that neither has seen: the squared error over the variance of the scores, mean and median over
texts.
"""

import argparse
import csv
import lzma
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import slalom
from slalom.document import Document, FloatArray
from slalom.samplers.subsets import SubsetSizes

BUDGETS = (25, 50, 100, 200, 400)
FRESH = 300  # queries to be judged on


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("--documents", type=int, default=800, help="texts of the vocabulary")
    parser.add_argument("--judged", type=int, default=20, help="texts that are explained")
    parser.add_argument("--queries", type=int, default=20, help="a text of the vocabulary")
    parser.add_argument("--vocabulary", type=Path, help="keep the vocabulary here, or read it")
    given = parser.parse_args()
    warnings.simplefilter("ignore", slalom.SlalomWarning)
    texts = _texts(given.file)
    classifier: Any = slalom.load()
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
        masks, truth = _fresh(classifier, document)
        for column, budget in enumerate(BUDGETS):
            for name, method in (("slalom", "slalom"), ("from it", vocabulary.method())):
                e = slalom.explain(classifier, text, method, target=1, n_queries=budget)
                misses = (e.predict(masks) - truth) ** 2
                errors[name][row, column] = misses.mean() / truth.var()
    print("queries       ", *(f"{budget:7d}" for budget in BUDGETS))
    for name, table in errors.items():
        print(f"{name:14s}", *(f"{mean:7.3f}" for mean in table.mean(axis=0)))
        print("  median      ", *(f"{middle:7.3f}" for middle in np.median(table, axis=0)))
    better = (errors["from it"] < errors["slalom"]).mean(axis=0)
    print("better on     ", *(f"{share:6.0%} " for share in better))


def _fresh(classifier: Any, document: Document) -> tuple[FloatArray, FloatArray]:
    """Random subsets of all sizes, and the log-odds that the classifier gives them."""
    queries = SubsetSizes().sample(document, FRESH, np.random.default_rng(12345)).queries
    masks = np.zeros((len(queries), document.n_units))
    rows, columns = np.nonzero(queries < document.n_units)
    masks[rows, queries[rows, columns]] = 1
    (logits,) = classifier.logits([(document, queries)])
    return masks, logits[:, 1] - logits[:, 0]


def _texts(file: Path) -> list[str]:
    opened = lzma.open if file.suffix == ".xz" else open
    with opened(file, "rt", encoding="utf-8") as lines:
        texts = [row["text"] for row in csv.DictReader(lines)]
    return [texts[at] for at in np.random.default_rng(0).permutation(len(texts))]


if __name__ == "__main__":
    main()
