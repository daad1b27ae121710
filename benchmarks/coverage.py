"""Are the error bars and the trust figure honest? On real reviews and the bundled model.

    python -m benchmarks.coverage --data FOLDER [--documents 10] [--device cuda]

Error bars: the share of units whose 90 % interval at 500 queries holds the answer of 20 000
queries (85–95 % is right). Trust: leave-one-out R² at 500 queries against R² on 2000 queries
that were never fitted (within 0.05 is right).
"""

import argparse
from pathlib import Path

import numpy as np

import slalom
from benchmarks.reviews import reviews
from slalom.classifiers.base import Target
from slalom.samplers.subsets import SubsetSizes

NOMINAL = 1.645  # 90 % of a normal distribution lie within so many standard errors
FEW, MANY, FRESH = 500, 20_000, 2_000


def held(few: slalom.Explanation, many: slalom.Explanation) -> dict[str, float]:
    """For every read-out, the share of units whose interval holds the many-query answer."""
    return {
        name: float(np.mean(np.abs(few.scores[name] - many.scores[name]) <= NOMINAL * error))
        for name, error in few.errors.items()
    }


def fresh_r2(classifier: slalom.HuggingFaceClassifier, found: slalom.Explanation) -> float:
    """R² on subsets drawn like the fitted ones, with another seed."""
    document = classifier.split(found.text)
    queries = SubsetSizes().sample(document, FRESH, np.random.default_rng(10_007)).queries
    present = document.untied().count(queries)
    target = Target(found.target_index, found.target)
    scores = target.scores(classifier.logits([(document, queries)])[0], independent=False)
    return float(1 - np.mean((found.predict(present) - scores) ** 2) / scores.var())


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--data", type=Path)
    options.add_argument("--model")
    options.add_argument("--documents", type=int, default=10)
    options.add_argument("--device")
    given = options.parse_args()
    classifier = slalom.load(given.model, device=given.device)
    texts = reviews(classifier, given.data, given.documents)
    shares: dict[str, list[float]] = {}
    gaps = []
    for text in texts:
        few = slalom.explain(classifier, text, n_queries=FEW)
        many = slalom.explain(classifier, text, n_queries=MANY, seed=1)
        for name, share in held(few, many).items():
            shares.setdefault(name, []).append(share)
        gaps.append((few.quality.r2 or 0.0) - fresh_r2(classifier, few))
        print(f"{len(gaps)} of {len(texts)}: R² {few.quality.r2:.3f}, off by {gaps[-1]:+.3f}")
    for name, share in shares.items():
        print(f"{name:12s} {np.mean(share):.3f} of units held by their 90 % interval")
    worst = max(map(abs, gaps))
    print(f"leave-one-out R² off by {np.mean(np.abs(gaps)):.3f} on average, {worst:.3f} at most")


if __name__ == "__main__":
    main()
