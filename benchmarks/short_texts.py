"""Short texts, few questions, any number of classes: how well methods predict fresh subsets.

    python -m benchmarks.short_texts --data TEXTS.csv [--train] [--model FOLDER] [--queries 200]
        [--texts 24] [--methods slalom,boosted] [--out FILE]

The first texts of 8 to 25 words. With --train the classifier is a network over words and pairs of
neighbours (scikit-learn), trained on the other lines and their labels, and all of its classes are
explained together; without, a model of two classes and its second class. Squared error on 1000
subsets of uniform / log-uniform sizes, relative to predicting the mean, summed over classes.
"""

import argparse
import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import slalom
from benchmarks.asked import explainers
from benchmarks.reviews import opened
from slalom.classifiers.base import Classifier
from slalom.classifiers.cached import CachedClassifier
from slalom.evaluation.items import Item, read_items
from slalom.explainers.base import Request
from slalom.explainers.execution.steps import in_step
from slalom.metrics.faithfulness import subset_error
from slalom.metrics.subject import subject_of

FEWEST, MOST = 8, 25  # words
WIDTH, N_ITERATIONS = 64, 12


def trained(items: list[Item]) -> tuple[Classifier, float]:
    """A network of one hidden layer, and its accuracy on a tenth of the lines."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline

    texts, labels = [str(item.text) for item in items], [item.label for item in items]
    held = len(texts) // 10
    network = make_pipeline(
        TfidfVectorizer(ngram_range=(1, 2), min_df=3, token_pattern=r"(?u)\b\w+\b"),
        MLPClassifier((WIDTH,), max_iter=N_ITERATIONS, early_stopping=True, random_state=0),
    )
    with warnings.catch_warnings():  # a dozen rounds do: it is to be explained, not to win
        warnings.simplefilter("ignore")
        network.fit(texts[held:], labels[held:])
    names = [str(label) for label in network.classes_]
    right = float((network.predict(texts[:held]) == np.array(labels[:held])).mean())
    return slalom.FunctionClassifier(network.predict_proba, labels=names), right


def measured(classifier: CachedClassifier, text: str, method: str, given: Any) -> dict[str, Any]:
    request = Request("all" if given.train else 1, given.queries)
    plan = explainers()[method].plan(classifier.split(text), request)
    (found,) = in_step(classifier, [plan])
    subject = subject_of(classifier, found)
    errors = [subset_error(subject, log_uniform=w, n_subsets=1000).value for w in (False, True)]
    return {"text": text, "method": method, "r2": found.quality.r2, "U": errors[0], "W": errors[1]}


def main() -> None:
    given = _options().parse_args()
    items, _ = read_items(given.data, tuple(map(str, range(given.classes))))
    short = [item for item in items if FEWEST <= len(str(item.text).split()) <= MOST]
    chosen = short[: given.texts]
    if given.train:
        asked = {item.number for item in chosen}
        model, right = trained([item for item in items if item.number not in asked])
        print(f"accuracy {right:.3f} of {len(model.labels)} classes")
    else:
        model = opened(given.model, None)
    classifier, rows = CachedClassifier(model), list[dict[str, Any]]()
    for item in chosen:
        rows += [measured(classifier, str(item.text), m, given) for m in given.methods.split(",")]
        if given.out:
            given.out.write_text(json.dumps(rows, indent=0) + "\n", encoding="utf-8")
    for method in given.methods.split(","):
        own = [row for row in rows if row["method"] == method]
        means = [np.mean([row[key] for row in own if row[key] is not None]) for key in ("U", "W")]
        r2 = np.mean([row["r2"] for row in own if row["r2"] is not None])
        print(f"{method:16s} {means[0]:.3f} / {means[1]:.3f}   R² {r2:.3f}   {len(own)} texts")


def _options() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--data", type=Path, required=True, help="lines with text and label")
    options.add_argument("--train", action="store_true", help="a classifier from the labels")
    options.add_argument("--classes", type=int, default=2, help="numbers that a label may be")
    options.add_argument("--model", help="a folder  [default: the bundled classifier]")
    options.add_argument("--queries", type=int, default=200)
    options.add_argument("--texts", type=int, default=24)
    options.add_argument("--methods", default="slalom,boosted")
    options.add_argument("--out", type=Path, help="keep the rows as JSON")
    return options


if __name__ == "__main__":
    main()
