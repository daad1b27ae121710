"""Classifiers asked afresh: what methods get right with the same number of questions.

    python -m benchmarks.asked --data FOLDER [--model FOLDER] [--documents 8] [--longest 60]
        [--orders 120] [--methods slalom:500,lime:500] [--memory FILE] [--out FILE]
    python -m benchmarks.asked --shown FILE …

METHOD:QUERIES, facts and all. Besides the library's methods: `design`, the SLALOM of slalom on
random subsets alone, no unit asked for by itself and no fact beside the fit; `linear-local`,
least squares on the deletions of slalom-local. Per review:

    U, W        squared error on 1000 subsets of uniform / log-uniform sizes, relative to the mean
    shapley     of Shapley values, truth by many orders (metrics/shapley.py)
    1 … 10      of the predicted score of the text less so many units, and of its change from
                what is said of the whole text, both relative to predicting no change

Means over reviews; removals and Shapley values are summed before they are divided. Rows of
methods that FILE holds already and that are not named again are kept.
"""

import argparse
import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

import slalom
from benchmarks.inside import (
    LinearSurrogate,
    Subject,
    SubsetSizes,
    SurrogateExplainer,
    random_subsets,
    shapley_error,
    subject_of,
    subset_error,
)
from benchmarks.reviews import keep, opened, options_of, remembered, reviews

REMOVED, N_EACH = (1, 2, 3, 5, 10), 40
DEFAULT = (
    "slalom:500,design:500,boosted:500,gam:500,linear:500,lime:500,"
    "slalom-local:500,linear-local:500,kernel-shap:500,kernel-shap:1000,"
    "permutation-shapley:500,permutation-shapley:1000"
)
NOT_SHAPLEY = ("lime", "linear", "linear-local", "slalom-local", "gam", "design")
Row = dict[str, Any]


def explainers() -> dict[str, SurrogateExplainer]:
    """The library's, and three that show what a choice is worth."""
    found = {n: m for n, m in slalom.METHODS.items() if isinstance(m, SurrogateExplainer)}
    own, local = found["slalom"], found["slalom-local"]
    found["design"] = replace(own, name="design", sampler=SubsetSizes(singles=0.0), follow_up=None)
    found["linear-local"] = replace(
        local, name="linear-local", surrogate=LinearSurrogate(), follow_up=None
    )
    return found


def measured(subject: Subject, method: str, n_orders: int) -> Row:
    row: Row = {"r2": subject.explanation.quality.r2}
    for name, log_uniform in (("U", False), ("W", True)):
        row[name] = subset_error(subject, log_uniform=log_uniform, n_subsets=1000)
    if method not in NOT_SHAPLEY:
        error, power = shapley_error(subject, n_orders=n_orders)
        row["shapley"] = [error * power, power]
    for n_removed in REMOVED:
        row[str(n_removed)] = removals(subject, n_removed)
    return row


def removals(subject: Subject, n_removed: int) -> list[float]:
    """Squared errors of the score and of its change, and the square of the true change."""
    rng = np.random.default_rng((n_removed, subject.n_units))
    n_units = subject.n_units
    masks = random_subsets(np.full(N_EACH, n_units - n_removed), n_units, rng)
    whole = np.ones((1, n_units), dtype=bool)
    true, at = subject.scores(masks), subject.scores(whole)
    said = subject.explanation.predict(masks.astype(float))
    changed = said - subject.explanation.predict(whole.astype(float))
    squares = [(said - true) ** 2, (changed - (true - at)) ** 2, (true - at) ** 2]
    return [float(square.mean()) for square in squares]


def shown(rows: Sequence[Row]) -> None:
    """One line per method: means over documents."""
    print("| | U | W | shapley | " + " | ".join(f"−{n}" for n in REMOVED) + " |")
    print("|" + "---|" * (4 + len(REMOVED)))
    for name in dict.fromkeys(row["method"] for row in rows):
        own = [row for row in rows if row["method"] == name]
        cells = [f"{np.mean([row[key] for row in own]):.3f}" for key in "UW"]
        shares = np.array([row.get("shapley", (np.nan, 1.0)) for row in own]).sum(axis=0)
        cells.append("–" if np.isnan(shares[0]) else f"{shares[0] / shares[1]:.3f}")
        for n in REMOVED:
            score, change, none = np.array([row[str(n)] for row in own]).sum(axis=0)
            cells.append(f"{score / none:.2f} ({change / none:.2f})")
        print(f"| {name} | " + " | ".join(cells).replace("0.", ".") + " |")


def main() -> None:
    given = _options().parse_args()
    for path in given.shown:
        print(f"\n{path.stem}\n")
        shown(json.loads(path.read_text(encoding="utf-8")))
    if given.shown:
        return
    classifier = remembered(opened(given.model, given.device), given.memory)
    texts = reviews(
        classifier, given.data, given.documents, longest=given.longest, words=given.words
    )
    methods = given.methods.split(",")
    rows: list[Row] = []
    if given.out and given.out.exists():
        kept = json.loads(given.out.read_text(encoding="utf-8"))
        rows = [row for row in kept if row["method"] not in methods]
    for at, text in enumerate(texts):
        for method in methods:
            name, n_queries = method.split(":")
            found = slalom.explain(
                classifier, text, explainers()[name], target=1, n_queries=int(n_queries)
            )
            subject = subject_of(classifier, found)
            rows.append({"document": at, "units": subject.n_units, "method": method})
            rows[-1] |= measured(subject, name, given.orders)
        keep(classifier, given.memory)
        if given.out:
            given.out.write_text(json.dumps(rows) + "\n", encoding="utf-8")
    shown(rows)


def _options() -> argparse.ArgumentParser:
    options = options_of((__doc__ or "").splitlines()[0])
    options.add_argument("--methods", default=DEFAULT, help="METHOD:QUERIES, …")
    return options


if __name__ == "__main__":
    main()
