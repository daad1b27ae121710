"""Are the error bars and the trust figure honest? On real reviews, against the classifier itself.

    python -m benchmarks.coverage --data FOLDER [--model FOLDER] [--documents 8] [--longest 90]
        [--queries 500] [--orders 120] [--device cuda] [--out FILE]

Error bars: the share of units whose 90 % interval holds the classifier's own answer (85–95 % is
right): Shapley values by many random orders, whose own noise is allowed for; `removal` and
`alone` where they were not measured, by asking. Trust: leave-one-out R² against R² on 1000
queries that were never fitted (within 0.05 is right).
"""

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

import slalom
from benchmarks.reviews import reviews
from slalom.document import BoolArray, FloatArray
from slalom.metrics.shapley import true_shapley
from slalom.metrics.subject import Subject, subject_of
from slalom.samplers.subsets import SubsetSizes

NOMINAL = 1.645  # 90 % of a normal distribution lie within so many standard errors
FRESH = 1000


def shapley_hits(subject: Subject, n_orders: int) -> BoolArray:
    """Whether each unit's interval holds its true Shapley value, known up to some noise."""
    found = subject.explanation
    one, other = true_shapley(subject, n_orders=n_orders)
    noise = np.sqrt(np.mean((one - other) ** 2)) / 2  # of the mean of both
    wide = np.hypot(found.errors["shapley"], noise)
    return np.asarray(np.abs(found.scores["shapley"] - (one + other) / 2) <= NOMINAL * wide)


def asked_hits(subject: Subject, name: str) -> BoolArray:
    """Of the units whose `removal` or `alone` was not measured."""
    found, n_units = subject.explanation, subject.n_units
    rest = np.flatnonzero(~found.is_measured(name))
    if not len(rest) or name not in found.errors:
        return np.zeros(0, dtype=bool)
    one, none = np.eye(n_units, dtype=bool)[rest], np.zeros((1, n_units), dtype=bool)
    asked = subject.scores(np.vstack([~none, ~one] if name == "removal" else [none, one]))
    truth = (asked[0] - asked[1:]) * (1 if name == "removal" else -1)
    missed = np.abs(found.scores[name][rest] - truth)
    return np.asarray(missed <= NOMINAL * found.errors[name][rest])


def fresh_r2(subject: Subject) -> float:
    """R² on subsets drawn like the fitted ones, with another seed, the two ends left out."""
    document = subject.document
    queries = SubsetSizes().sample(document, FRESH, np.random.default_rng(10_007)).queries
    present: FloatArray = document.untied().count(queries)
    sizes = present.sum(axis=1)
    present = present[(sizes > 0) & (sizes < subject.n_units)]
    scores = subject.scores(present > 0)
    said = subject.explanation.predict(present)
    return float(1 - np.mean((said - scores) ** 2) / scores.var())


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--data", type=Path)
    options.add_argument("--model")
    options.add_argument("--documents", type=int, default=8)
    options.add_argument("--longest", type=int, default=90, help="words")
    options.add_argument("--queries", type=int, default=500)
    options.add_argument("--orders", type=int, default=120)
    options.add_argument("--device")
    options.add_argument("--out", type=Path)
    given = options.parse_args()
    classifier = slalom.load(given.model, device=given.device)
    texts = reviews(classifier, given.data, 12 * given.documents)
    texts = [t for t in texts if len(t.split()) <= given.longest][: given.documents]
    rows: list[dict[str, Any]] = []
    for text in texts:
        found = slalom.explain(classifier, text, n_queries=given.queries)
        subject = subject_of(classifier, found)
        hits = {"shapley": shapley_hits(subject, given.orders)}
        hits |= {name: asked_hits(subject, name) for name in ("removal", "alone")}
        row: dict[str, Any] = {name: hit.tolist() for name, hit in hits.items()}
        rows.append(row | {"r2": found.quality.r2, "fresh": fresh_r2(subject)})
        shown = " ".join(f"{n} {np.mean(h):.2f} of {len(h)}" for n, h in hits.items() if len(h))
        r2s = f"R² {found.quality.r2}, fresh {rows[-1]['fresh']:.3f}"
        print(f"{subject.n_units} units: {shown}; {r2s}", flush=True)
    for name in ("shapley", "removal", "alone"):
        every = [hit for row in rows for hit in row[name]]
        if every:
            print(f"{name:8s} {np.mean(every):.3f} of {len(every)} units held by a 90 % interval")
    gaps = [row["r2"] - row["fresh"] for row in rows if row["r2"] is not None]
    print(f"R² less fresh R²: {np.mean(gaps):+.3f} on average, {max(map(abs, gaps)):.3f} at most")
    if given.out:
        given.out.write_text(json.dumps(rows) + "\n")


if __name__ == "__main__":
    main()
