"""Random classifiers, texts and settings: what must hold of every explanation, held.

    python -m benchmarks.fuzz --cases 10000
    python -m benchmarks.fuzz --minutes 60

Nothing but a SlalomError may come out of `explain`, and of what is explained: all numbers are
finite; errors are not negative; Shapley values add up; what is called measured is the answer when
it is asked again; the budget is kept; the same seed gives the same numbers, and so does
explain_many beside a neighbour; a file gives back an equal explanation that can be shown and
asked; who is trusted highly describes parts of the text that were never asked (R² of .8).
A case that fails is printed as it can be made again: `check(Case(...))`.
"""

import argparse
import random
import sys
import time
import warnings
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import slalom
from benchmarks.broken_files import use
from benchmarks.inside import SubsetSizes, Target, queries_from_masks
from slalom import Explanation

WORDS = (
    "good bad not never a the film great awful but very so an end, start. slow! (fun) don't it's "
    "great. Bad — … ß naïve 映画 좋은 😀 👩‍🔬 \u202eabc\u202c <b>x</b> 100% $3.50 re-made and/or i"
).split(" ")
GAPS = (" ", " ", " ", "  ", "\n", "\t", "\u00a0")
SAYS = {"good": 1.0, "bad": -1.5, "great": 2.0, "great.": 2.0, "awful": -2.5, "fun": 0.5}
METHODS = (
    "slalom", "slalom", "slalom", "slalom-fast", "slalom-local", "slalom-boosted", "slalom-eff",
    "slalom-fidel", "slalom-analytic", "slalom-analytic-anchor", "linear", "gam", "boosted", "lime",
    "kernel-shap", "permutation-shapley", "exact-shapley", "leave-one-out", "random", "constant",
    "context-cite", "attention-mean",
)  # fmt: skip
CLOSE = 1e-5


@dataclass(frozen=True)
class Case:
    """One call of `explain`."""

    classifier: str
    text: Any
    method: str = "slalom"
    target: str | int | None = None
    units: str | None = None
    n_queries: int | None = None
    seed: int = 0


def _additive(words: list[str]) -> float:
    return sum(SAYS.get(word, 0.05 * len(word)) for word in words)


def _attentive(words: list[str]) -> float:
    loud = {"great": 2.0, "awful": 2.5, "not": 1.0}
    weights = np.exp([loud.get(word, 0.0) for word in words])
    values = np.array([3 * SAYS.get(word, 0.0) for word in words])
    return float((weights @ values + 0.3) / (weights.sum() + 1.0))


def _negated(words: list[str]) -> float:
    return _additive(words) * (-1 if "not" in words or "never" in words else 1)


def _odd(words: list[str]) -> float:
    return 4.0 * (sum(map(len, words)) % 2) - 2.0


SCORES = {
    "additive": _additive,
    "attentive": _attentive,
    "negated": _negated,
    "odd": _odd,
    "any": lambda words: 3.0 * bool({"good", "great", "fun"} & {*words}),
    "long": lambda words: 0.5 * np.log1p(len(words)),
    "huge": lambda words: 1e9 * _additive(words),
    "small": lambda words: 1e-9 * _additive(words),
    "rounding": lambda words: 0.3 + 1e-16 * len(words),
    "constant": lambda words: -2.0,
    "steep": lambda words: 40.0 * np.sign(_additive(words)),
}


def classifier_of(name: str) -> slalom.FunctionClassifier:
    """ "additive", "additive 3" with three classes, "additive certain" with probabilities."""
    kind, _, form = name.partition(" ")

    def logits(texts: list[Any]) -> np.ndarray:
        words = [(t if isinstance(t, str) else " ".join(t)).split() for t in texts]
        score = np.array([SCORES[kind](w) for w in words])
        if form == "1":
            return score[:, None]
        if form == "certain":
            return np.column_stack([score <= 0, score > 0]).astype(float)
        if form == "broken":
            return np.where(score > 0, np.nan, score)[:, None] * [0.0, 1.0]
        columns = [np.zeros(len(score)), score, -0.5 * score, 0.1 * score][: 3 if form else 2]
        return np.column_stack(columns)

    gives = "probabilities" if form == "certain" else "logits"
    return slalom.FunctionClassifier(logits, gives=gives, name=name)


def drawn(rng: random.Random) -> Case:
    def text() -> str:
        n_words = rng.choice((1, 1, 2, 3, 5, 8, 13, 20, rng.randint(1, 60)))
        return "".join(rng.choice(WORDS) + rng.choice(GAPS) for _ in range(n_words))

    form = rng.choices(("", " 3", " 1", " certain", " broken"), (6, 3, 2, 2, 0.3))[0]
    targets, units = (None, 0, 1, "all", "1", "nobody"), (None, "word", "sentence", "phrase", "ß")
    return Case(
        classifier=rng.choice([*SCORES]) + form,
        text=(text(), text()) if rng.random() < 0.1 else text(),
        method=rng.choice(METHODS),
        target=rng.choices(targets, (8, 1, 1, 2, 1, 0.2))[0],
        units=rng.choices(units, (8, 2, 1, 1, 0.2))[0],
        n_queries=rng.choice((None, None, 5, 20, 60, 150, rng.randint(1, 300))),
        seed=rng.randrange(10**6),
    )


def explained(case: Case) -> Explanation:
    return slalom.explain(
        classifier_of(case.classifier), case.text, case.method, target=case.target,
        units=case.units, n_queries=case.n_queries, seed=case.seed,
    )  # fmt: skip


def check(case: Case, folder: Path | None = None) -> str:
    """ "refused" or "explained"; an AssertionError says which law does not hold."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", slalom.SlalomWarning)
        try:
            e = explained(case)
        except slalom.SlalomError:
            return "refused"
        _numbers(e, case)
        _sums(e)
        _facts(e, classifier_of(case.classifier))
        _repeats(e, case)
        _trust(e, case)
        if folder is None:
            with TemporaryDirectory() as name:
                use(e, Path(name))
        else:
            use(e, folder)
    return "explained"


def _numbers(e: Explanation, case: Case) -> None:
    for name, score in e.scores.items():
        assert np.isfinite(score).all(), f"{name} is not finite"
    for name, error in e.errors.items():
        assert np.isfinite(error).all(), f"the error of {name} is not finite"
        assert (error >= 0).all(), f"the error of {name} is negative"
    asked = e.quality.n_queries
    assert case.n_queries is None or asked <= case.n_queries, f"asked {asked}"
    assert len(e.units) == len(e.spans) > 0


def _sums(e: Explanation) -> None:
    """To what the classifier says beyond the empty text, or to what the fit says of the two."""
    shapley = e.scores.get("shapley")
    if shapley is None or e.model is None:
        return
    ends = e.predict(np.vstack([np.zeros(len(e.units)), np.ones(len(e.units))]))
    sums = [ends[1] - ends[0], e.whole - (0.0 if e.base is None else e.base)]
    if e.base is not None:
        logits = e.logits - e.logits.mean()
        if e.target_index is not None:
            at = e.target_index
            others = np.delete(e.logits, at)
            rest = np.log(np.exp(others - others.max()).sum()) + others.max() if others.size else 0
            logits = e.logits[at] - (0 if e.independent else rest)
        sums.append(logits - e.base)
    size = 1.0 + float(np.abs(shapley).sum())
    misses = [np.abs(shapley.sum(axis=0) - total).max() for total in sums]
    assert min(misses) < 1e-6 * size, f"Shapley values miss their sum by {min(misses):.3g}"


def _facts(e: Explanation, classifier: slalom.FunctionClassifier) -> None:
    """What is marked as measured is what the classifier says."""
    if e.target_index is None or not e.is_measured("removal").any():
        return
    document = classifier.split(e.text, e.spans)
    at = e.is_measured("removal")
    rows = np.vstack([np.ones((1, len(e.units)), bool), ~np.eye(len(e.units), dtype=bool)[at]])
    logits = classifier.logits([(document, queries_from_masks(rows))])[0]
    said = Target(e.target_index, e.target).scores(logits, independent=e.independent)
    said = np.asarray(said).reshape(len(rows))
    miss = np.abs(e.scores["removal"][at] - (said[0] - said[1:])).max()
    bound = CLOSE * (1 + np.abs(said).max())
    assert miss < bound, f"a removal called measured is off by {miss:.3g}"


def _repeats(e: Explanation, case: Case) -> None:
    assert explained(case) == e, "the same seed gave other numbers"
    both = slalom.explain_many(
        classifier_of(case.classifier), [case.text, "good film"], case.method, target=case.target,
        units=case.units, n_queries=case.n_queries, seed=case.seed, progress=False,
        on_error="keep",
    )[0]  # fmt: skip
    assert isinstance(both, Explanation), f"explain_many refused: {both}"
    for name, score in e.scores.items():
        bound = CLOSE * (1 + np.abs(score).max())
        assert np.abs(score - both.scores[name]).max() <= bound, f"explain_many: other {name}"


def _trust(e: Explanation, case: Case) -> None:
    if e.quality.trust != "high" or e.target_index is None or e.model is None:
        return
    if case.method != "slalom" or len(e.units) < 6 or "broken" in case.classifier:
        return
    classifier = classifier_of(case.classifier)
    document = classifier.split(e.text, e.spans)
    fresh = SubsetSizes().sample(document, 300, np.random.default_rng(case.seed + 1)).queries
    logits = classifier.logits([(document, fresh)])[0]
    said = Target(e.target_index, e.target).scores(logits, independent=e.independent).ravel()
    missed = ((e.predict(np.minimum(document.untied().count(fresh), 1)) - said) ** 2).sum()
    spread = ((said - said.mean()) ** 2).sum()
    if spread > 1e-12 * len(said) * max(1.0, float(np.abs(said).max())) ** 2:
        r2 = 1 - missed / spread
        assert r2 >= 0.8, f"trust is high (R² {e.quality.r2}), fresh R² is {r2:.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=10**9)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    counts, ends = Counter[str](), time.monotonic() + 60 * given.minutes
    with TemporaryDirectory() as folder:
        for number in range(given.cases):
            if time.monotonic() > ends:
                break
            case = drawn(random.Random(f"{given.seed} {number}"))
            try:
                counts[check(case, Path(folder))] += 1
            except Exception as problem:
                counts["broken"] += 1
                print(f"{case!r}\n    {type(problem).__name__}: {problem}"[:600], file=sys.stderr)
    print(f"{sum(counts.values())} cases: {dict(counts)}")
    sys.exit(counts["broken"] > 0)


if __name__ == "__main__":
    main()
