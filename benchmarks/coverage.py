"""Are the error bars and the trust figure honest? On real reviews, against the classifier itself.

    python -m benchmarks.coverage --data FOLDER [--model FOLDER] [--documents 8] [--longest 60]
        [--words 0] [--queries 500] [--orders 120] [--device cuda] [--memory FILE] [--out FILE]
    python -m benchmarks.coverage --shown FILE …

Error bars: the share of units whose 90 % interval holds the classifier's own answer (85–95 % is
right): Shapley values by many random orders, whose own noise is allowed for; `removal` and
`alone` where they were not measured, by asking. Beside it stands how far an interval reaches to
either side, in units of what the truths of a text spread by: one that says nothing holds all.
Trust: leave-one-out R² against R² on 1000 queries that were never fitted (within 0.05 is right).
`--words 14` explains the first 14 words of each review. Rows hold what was said, its error and
the truth; `--shown` reads them again.
"""

import argparse
import json
from typing import Any

import numpy as np

import slalom
from benchmarks.inside import BoolArray, FloatArray, Subject, SubsetSizes, subject_of, true_shapley
from benchmarks.reviews import keep, opened, options_of, remembered, reviews

NOMINAL = 1.645  # 90 % of a normal distribution lie within so many standard errors
FRESH = 1000
NAMES = ("shapley", "removal", "alone")
Row = dict[str, Any]


def shapley_row(subject: Subject, n_orders: int) -> dict[str, list[float]]:
    """Every unit's Shapley value as said and as it is, the latter known up to some noise.

    None where the explanation has no errors: too little was asked, and it says so.
    """
    if "shapley" not in subject.explanation.errors:
        return _told(subject, "shapley", np.arange(0), truth=np.zeros(0), noise=0.0)
    one, other = true_shapley(subject, n_orders=n_orders)
    noise = np.sqrt(np.mean((one - other) ** 2)) / 2  # of the mean of both
    return _told(
        subject, "shapley", np.arange(subject.n_units), truth=(one + other) / 2, noise=float(noise)
    )


def asked_row(subject: Subject, name: str) -> dict[str, list[float]]:
    """The units whose `removal` or `alone` was not measured."""
    found, n_units = subject.explanation, subject.n_units
    rest = np.flatnonzero(~found.is_measured(name))
    if not len(rest) or name not in found.errors:
        return _told(subject, name, rest[:0], truth=np.zeros(0), noise=0.0)
    one, none = np.eye(n_units, dtype=bool)[rest], np.zeros((1, n_units), dtype=bool)
    if name == "alone" and not subject.document.has_empty_query:
        base = np.asarray(subject.explanation.base)
        return _told(subject, name, rest, truth=subject.scores(one) - base, noise=0.0)
    asked = subject.scores(np.vstack([~none, ~one] if name == "removal" else [none, one]))
    truth = (asked[0] - asked[1:]) * (1 if name == "removal" else -1)
    return _told(subject, name, rest, truth=truth, noise=0.0)


def _told(
    subject: Subject, name: str, units: Any, *, truth: FloatArray, noise: float
) -> dict[str, list[float]]:
    found = subject.explanation
    errors = found.errors.get(name, np.zeros(subject.n_units))
    told = {"said": found.scores[name][units], "error": np.hypot(errors[units], noise)}
    return {key: np.round(part, 5).tolist() for key, part in {**told, "truth": truth}.items()}


def hits(row: dict[str, list[float]]) -> BoolArray:
    """Whether each interval holds the truth."""
    said, error, truth = (np.array(row[key], float) for key in ("said", "error", "truth"))
    return np.asarray(np.abs(said - truth) <= NOMINAL * error)


def reach_of(row: dict[str, Any]) -> float:
    """How far intervals reach to either side, of the truth's spread or of what `row` says it is."""
    spread = row.get("spread", float(np.std(row["truth"])))
    return float(NOMINAL * np.mean(row["error"]) / max(spread, 1e-9))


def fresh_r2(subject: Subject) -> float:
    """R² on subsets drawn like the fitted ones, with another seed, that were not fitted.

    The whole text, the empty one and units alone were, all of them.
    """
    document = subject.document
    queries = SubsetSizes().sample(document, FRESH, np.random.default_rng(10_007)).queries
    present: FloatArray = document.untied().count(queries)
    sizes = present.sum(axis=1)
    present = present[(sizes > 1) & (sizes < subject.n_units)]
    scores = subject.scores(present > 0)
    said = subject.explanation.predict(present)
    return float(1 - np.mean((said - scores) ** 2) / scores.var())


def shown(rows: list[Row]) -> None:
    """Coverage over all units of all texts, and how far R² is from R² on fresh queries."""
    for name in NAMES:
        each = [hits(row[name]) for row in rows if row[name]["said"]]
        if each:
            every, worst = np.concatenate(each), min(float(hit.mean()) for hit in each)
            reach = np.mean([reach_of(row[name]) for row in rows if len(row[name]["said"]) > 1])
            print(
                f"{name:8s} {np.mean(every):.3f} of {len(every)} units of {len(each)} texts held "
                f"by a 90 % interval (± {reach:.2f} spreads), {worst:.2f} of the worst text"
            )
    gaps = [row["r2"] - row["fresh"] for row in rows if row["r2"] is not None]
    if gaps:
        print(
            f"R² less fresh R²: {np.mean(gaps):+.3f} on average, {max(map(abs, gaps)):.3f} at most"
        )


def main() -> None:
    given = _options().parse_args()
    for path in given.shown:
        print(path.stem)
        shown(json.loads(path.read_text(encoding="utf-8")))
    if given.shown:
        return
    classifier = remembered(opened(given.model, given.device), given.memory)
    texts = reviews(
        classifier, given.data, given.documents, longest=given.longest, words=given.words
    )
    rows: list[Row] = []
    for text in texts:
        found = slalom.explain(
            classifier, text, n_queries=given.queries, method=given.method, target=1
        )
        subject = subject_of(classifier, found)
        row: Row = {"units": subject.n_units, "queries": given.queries, "r2": found.quality.r2}
        row["shapley"] = shapley_row(subject, given.orders)
        row |= {name: asked_row(subject, name) for name in ("removal", "alone")}
        rows.append(row | {"fresh": fresh_r2(subject)})
        keep(classifier, given.memory)
        each = " ".join(f"{n} {np.mean(hits(row[n])):.2f}" for n in NAMES if row[n]["said"])
        print(f"{subject.n_units} units: {each}", flush=True)
    shown(rows)
    if given.out:
        given.out.write_text(json.dumps(rows) + "\n", encoding="utf-8")


def _options() -> argparse.ArgumentParser:
    options = options_of((__doc__ or "").splitlines()[0])
    options.add_argument("--method", default="slalom")
    options.add_argument("--queries", type=int, default=500)
    return options


if __name__ == "__main__":
    main()
