"""Are value and importance true, found again, and as sure as they say? On real reviews.

    python -m benchmarks.two_scores --data FOLDER [--models FOLDER,…] [--documents 5] [--out FILE]
    python -m benchmarks.two_scores --shown FILE …

For the bundled classifier and those of the folders, on the first 40 to 50 words of test reviews,
on 12 words and on 100: what `slalom` says with 500 queries, beside what the same fit gives with
6000 others.

sign       of value − empty is that of the Shapley value: strongest fifth of the words
found      rank correlations of importances and values, and mean changes in spreads
again      rank correlations of two seeds
inside     share of words whose 90 % interval holds what 6000 queries say; median error in spreads
R²         held out: two scores alone (and on fresh queries), and the whole model

Then exact SLALOMs of 2 to 36 words, and plain sentences: whether the word with the largest
measured removal is among the three with the largest share.
"""

import argparse
import itertools
import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import slalom
from benchmarks.inside import (
    Classifier,
    FloatArray,
    Known,
    Observations,
    SlalomModel,
    SubsetSizes,
    balanced,
    two_scores,
)
from benchmarks.reviews import opened
from training import data

NOMINAL = 1.645  # 90 % of a normal distribution lie within so many standard errors
KINDS = {"short": (12, 12), "usual": (40, 50), "long": (100, 100)}  # words
N_QUERIES, N_MANY = 500, 6000
NAMES = ("importance", "value")
Row = dict[str, Any]
SENTENCES = (
    "A slow start, but a truly wonderful film about two brothers, not a boat.",
    "Great screen but terrible battery.",
    "I loved every minute of it.",
    "The food was awful and the waiter was rude.",
    "A boring film with one brilliant scene.",
    "Nothing in this movie works.",
    "The worst sequel I have ever seen.",
    "It is charming, funny and far too short.",
    "The plot makes no sense at all.",
    "Beautiful music saves a dull script.",
    "I fell asleep after ten minutes.",
    "An excellent cast is wasted here.",
    "The ending ruined everything before it.",
    "Simple, honest and deeply moving.",
    "Do not waste your money on this.",
    "One of the best films of the year.",
    "It starts badly and then gets worse.",
    "The children enjoyed it, I did not.",
    "A perfect little comedy.",
    "Poor acting, poor sound, poor taste.",
    "Disappointing from the first to the last page.",
)


def texts_of(
    classifier: Classifier, folder: Path | None, words: tuple[int, int], n: int
) -> list[str]:
    """Random test reviews of so many words, or that begin with so many."""
    given, found = data.imdb("test", folder).texts, []
    for at in np.random.default_rng(1).permutation(len(given)):
        parts = given[at].split()
        if len(parts) < words[0] or (words[0] != words[1] and len(parts) > words[1]):
            continue
        text = " ".join(parts[: words[1]])
        if len(text) < 8 * words[1]:
            found.append(text)
        if len(found) == n:
            break
    return found


def many(classifier: Classifier, text: str, target: int) -> Observations:
    """Very many queries, of another seed."""
    document = classifier.split(text, None)
    samples = SubsetSizes().sample(document, N_MANY, np.random.default_rng(99))
    logits = np.asarray(next(iter(classifier.logits([(document, samples.queries)]))))
    others = np.delete(logits, target, axis=1)
    scores = logits[:, target] - np.logaddexp.reduce(others, axis=1)
    counts = document.count(samples.queries)
    assert samples.due is not None
    weights = balanced(counts, samples.weights, samples.due)
    return Observations(counts, scores, weights, document.count(document.full())[0])


def compared(classifier: Classifier, name: str, kind: str, text: str) -> Row:
    """One text: what is said, how sure, and what is true."""
    one, other = (
        slalom.explain(classifier, text, n_queries=N_QUERIES, seed=seed) for seed in (0, 1)
    )
    assert one.target_index is not None
    assert one.anchor is not None
    first = np.unique(one.features, return_index=True)[1]  # equal words once
    seen = many(classifier, text, one.target_index)
    truth = two_scores(seen, Known(seen.counts[:0], seen.scores[:0]))
    value, importance = (one.scores[score][first] for score in ("value", "importance"))
    row: Row = {
        "classifier": name,
        "kind": kind,
        "units": len(one.units),
        "r2": one.quality.r2,
        "two_scores": one.quality.two_scores,
        "fresh": r2_of(SlalomModel(value, importance, one.anchor), seen),
        "away": _kept(value - one.anchor.value),
        "shapley": _kept(one.scores["shapley"][first]),
    }
    for score in NAMES:
        row[score] = {
            "said": _kept(one.scores[score][first]),
            "error": _kept(one.errors[score][first]),
            "again": _kept(other.scores[score][first]),
            "truth": _kept(truth.scores[score]),
        }
    return row


def r2_of(described: SlalomModel, seen: Observations) -> float:
    """How well a description does on queries that it has never seen."""
    drawn = (seen.weights > 0) & (seen.counts.sum(axis=1) > 1)
    weights, scores = seen.weights[drawn] / seen.weights[drawn].sum(), seen.scores[drawn]
    missed = weights @ (scores - described.predict(seen.counts[drawn])) ** 2
    return float(1.0 - missed / (weights @ (scores - weights @ scores) ** 2))


def _kept(numbers: FloatArray) -> list[float]:
    return [float(f"{number:.4g}") for number in numbers]


def right_signs(row: Row) -> tuple[int, int]:
    """Of the strongest fifth of the words, and how many these are."""
    away, shapley = np.array(row["away"]), np.array(row["shapley"])
    strongest = np.argsort(-np.abs(shapley))[: max(1, round(len(shapley) / 5))]
    return int((away[strongest] * shapley[strongest] > 0).sum()), len(strongest)


def told(row: Row, score: str) -> dict[str, float]:
    """How one of the two scores of one text fares."""
    from scipy.stats import spearmanr

    said, error, again, truth = (np.array(part) for part in row[score].values())
    spread = max(float(truth.std()), 1e-12)
    off = np.abs(said - truth)
    return {
        "found": float(spearmanr(said, truth)[0]),
        "change": float(off.mean() / spread),
        "again": float(spearmanr(said, again)[0]),
        "inside": float((off <= NOMINAL * error).mean()),
        "error": float(np.median(error) / spread),
    }


def shown(rows: list[Row]) -> None:
    """A line for each classifier and length, and the mean of those of each length."""
    print(
        f"{'':22s} {'sign':>5s}" + "".join(f"  {s}: found change again inside error" for s in NAMES)
    )
    for kind in KINDS:
        lines = []
        for name in dict.fromkeys(row["classifier"] for row in rows):
            those = [row for row in rows if (row["classifier"], row["kind"]) == (name, kind)]
            if those:
                lines.append(_line(those))
                _print(f"{name} {kind} ({len(those)})", lines[-1])
        if lines:
            _print(f"mean of {kind}", np.mean(lines, axis=0))


def _line(rows: list[Row]) -> FloatArray:
    right, n = np.sum([right_signs(row) for row in rows], axis=0)
    parts = [np.mean([list(told(row, score).values()) for row in rows], axis=0) for score in NAMES]
    fits = [
        np.mean([row[name] for row in rows if row.get(name) is not None])
        for name in ("two_scores", "fresh", "r2")
    ]
    return np.concatenate([[right / n], *parts, fits])


def _print(name: str, line: FloatArray) -> None:
    numbers = [f"{number:.2f}" for number in line]
    columns = "  ".join(" ".join(numbers[a:b]) for a, b in ((0, 1), (1, 6), (6, 11)))
    print(
        f"{name:22s} {columns}  R² {numbers[11]} ({numbers[12]} fresh) of {numbers[13]}", flush=True
    )


def exact_models() -> Iterator[Row]:
    """How far exact SLALOMs come back from the default method."""
    for n_words, seed in itertools.product((2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 36), range(4)):
        n_classes = 2 if n_words > 2 else 3  # two words take three classes
        rng = np.random.default_rng(seed)
        words = [f"w{number}" for number in range(n_words)]
        importances, values = rng.normal(size=n_words), rng.normal(size=(n_words, n_classes))
        empty = rng.normal(size=n_classes)

        logits = partial(_answers, words, importances, values, empty)
        labels = [str(label) for label in range(n_classes)]
        classifier = slalom.FunctionClassifier(logits, labels=labels, gives="logits")
        found = slalom.explain(classifier, " ".join(words), target="all" if n_classes > 2 else 1)
        truth = (
            values - values.mean(axis=1, keepdims=True)
            if n_classes > 2
            else values[:, 1] - values[:, 0]
        )
        off_by = max(
            np.abs(found.scores["value"] - truth).max(),
            np.abs(found.scores["importance"] - importances + importances.mean()).max(),
        )
        yield {"kind": "exact", "words": n_words, "off_by": float(off_by)}


def _answers(
    words: list[str],
    importances: FloatArray,
    values: FloatArray,
    empty: FloatArray,
    texts: list[str],
) -> FloatArray:
    """Logits of a SLALOM whose anchor has importance 1."""
    shown = np.array([[word in text.split() for word in words] for text in texts])
    weights = np.append(shown * np.exp(importances), np.full((len(texts), 1), np.e), axis=1)
    return weights @ np.vstack([values, empty]) / weights.sum(axis=1, keepdims=True)


def sentences(classifier: Classifier) -> Iterator[Row]:
    """Whether what is missed most is what is heard most."""
    for text in SENTENCES:
        found = slalom.explain(classifier, text)
        most = int(np.argmax(np.abs(found.scores["removal"])))
        place = int((found.scores["share"] > found.scores["share"][most]).sum())
        yield {
            "kind": "sentence",
            "text": text,
            "word": found.units[most],
            "place": place + 1,
            "two_scores": found.quality.two_scores,
        }


def main() -> None:
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--data", type=Path, help="a folder with reviews")
    options.add_argument("--models", default="", help="folders, beside the bundled one")
    options.add_argument("--documents", type=int, default=5, help="of each length")
    options.add_argument("--out", type=Path, help="keep the rows, one JSON object per line")
    options.add_argument("--shown", type=Path, nargs="*", default=[], help="rows to read again")
    given = options.parse_args()
    rows: list[Row] = []
    for file in given.shown:
        rows += [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]

    def keep(row: Row) -> None:
        rows.append(row)
        if given.out is not None:
            with given.out.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")

    if not given.shown:
        for row in (*exact_models(), *sentences(slalom.load())):
            keep(row)
        for folder in ("", *filter(None, given.models.split(","))):
            classifier, name = opened(folder or None, None), Path(folder).name or "bundled"
            for kind, words in KINDS.items():
                for text in texts_of(classifier, given.data, words, given.documents):
                    keep(compared(classifier, name, kind, text))
    shown([row for row in rows if row["kind"] in KINDS])
    exact = [row for row in rows if row["kind"] == "exact"]
    if exact:
        worst = max(row["off_by"] for row in exact)
        print(f"{len(exact)} exact SLALOMs of 2 to 36 words: off by {worst:.1g} at most")
    named = [row for row in rows if row["kind"] == "sentence"]
    if named:
        near = sum(row["place"] <= 3 for row in named)
        print(f"{near} of {len(named)} sentences: missed most is among the three heard most")
        for row in named:
            if row["place"] > 3:
                print(f"  {row['word']} is number {row['place']} in “{row['text']}”")


if __name__ == "__main__":
    main()
