"""What an explanation spends its time on, beside the last release: ratios, not seconds.

    python -m benchmarks.hot_paths [--repeats 7] [--most 1.3]      compare with hot_paths.json
    python -m benchmarks.hot_paths --keep                          at a release: write them there

Every path is timed in processor seconds, one thread, the least of so many repeats, and divided by
those of a yardstick (Cholesky factors and plain Python) that takes turns with it: so a slower or
busier machine says the same. More than --most times the last release ends with status 1.

    import     a new interpreter loads slalom
    split      a review of 120 words into units, by the bundled tokenizer
    ask        500 queries about it, by the bundled classifier
    fit        slalom-eff on a function that costs nothing: 500 queries, fit, read out
    posterior  slalom on it: the same, and all that corrects the fit, with its errors
    page       the explanation as a page of its own
    file       the explanation as JSON, and back
"""

import argparse
import gc
import json
import os
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np

import slalom
from benchmarks.inside import SubsetSizes

KEPT = Path(__file__).with_name("hot_paths.json")
N_QUERIES, MOST = 500, 1.3
WORDS = (
    "a slow start and one awful song but the second half of this film is wonderful because every "
    "actor seems to enjoy the strange script that nobody else dared to finish "
).split()
TEXT = " ".join(WORDS[k % len(WORDS)] + ("" if k < len(WORDS) else str(k)) for k in range(60))
REVIEW = " ".join(WORDS * 4)
Step = Callable[[], object]


def yardstick() -> None:
    matrix = np.eye(300) + 0.5
    for _ in range(30):
        np.linalg.cholesky(matrix)
    sum(k * k for k in range(150_000))


def average(texts: list[str]) -> Any:
    """A SLALOM of words: log-odds are an average in which some are louder."""
    scores = []
    for text in texts:
        loud = [1.0 + len(word) for word in text.split()]
        said = [
            ((number_of(word) % 13) - 6) * w for word, w in zip(text.split(), loud, strict=True)
        ]
        scores.append(sum(said) / (5.0 + sum(loud)))
    return np.column_stack([np.zeros(len(texts)), scores])


def number_of(word: str) -> int:
    return sum((k + 1) * ord(letter) for k, letter in enumerate(word))


def paths() -> dict[str, Step]:
    bundled = slalom.load()
    function = slalom.FunctionClassifier(average, labels=["neg", "pos"], gives="logits")
    document = bundled.split(REVIEW)
    queries = SubsetSizes().sample(document, N_QUERIES, np.random.default_rng(0)).queries
    told = slalom.explain(function, TEXT, n_queries=N_QUERIES, progress=False)
    kept = Path(os.devnull)

    def fit(method: str) -> Step:
        return lambda: slalom.explain(
            function, TEXT, method, target="pos", n_queries=N_QUERIES, progress=False
        )

    def there_and_back() -> None:
        told.save(kept)
        slalom.Explanation.from_json(json.loads(json.dumps(told.to_json())))

    return {
        "split": lambda: [bundled.split(REVIEW) for _ in range(50)],
        "ask": lambda: bundled.logits([(document, queries)]),
        "fit": fit("slalom-eff"),
        "posterior": fit("slalom"),
        "page": lambda: [told.to_html() for _ in range(10)],
        "file": lambda: [there_and_back() for _ in range(10)],
    }


def imported() -> float:
    """Processor seconds of a new interpreter that loads slalom."""
    before = os.times()
    subprocess.run([sys.executable, "-c", "import slalom"], check=True)
    after = os.times()
    return (after.children_user - before.children_user) + (
        after.children_system - before.children_system
    )


def measured(repeats: int) -> dict[str, float]:
    """The least of each path over the least of the yardstick; all take turns."""
    todo = {"yardstick": yardstick, **paths()}
    gc.collect()
    gc.freeze()  # what the bundled classifier loads is not looked through again
    least = dict.fromkeys([*todo, "import"], float("inf"))
    for _ in range(repeats):
        for name, path in todo.items():
            start = process_time()
            path()
            least[name] = min(least[name], process_time() - start)
        least["import"] = min(least["import"], imported())
    unit = least.pop("yardstick")
    return {name: round(seconds / unit, 4) for name, seconds in least.items()}


def main() -> int:
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--repeats", type=int, default=7)
    options.add_argument("--most", type=float, default=MOST, help="times the last release")
    options.add_argument("--keep", action="store_true", help="as those of this version")
    given = options.parse_args()
    warnings.simplefilter("ignore", slalom.SlalomWarning)
    found = measured(given.repeats)
    kept = json.loads(KEPT.read_text(encoding="utf-8"))
    if given.keep:
        kept[slalom.__version__] = found
        KEPT.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    return compared(found, *last(kept), most=given.most)


def last(kept: dict[str, dict[str, float]]) -> tuple[str, dict[str, float]]:
    """The newest release that was kept; entries are in the order of releases."""
    version = list(kept)[-1]
    return version, kept[version]


def compared(
    found: dict[str, float], version: str, before: dict[str, float], *, most: float
) -> int:
    """A table of both and their ratio; 1 if something takes more than `most` times as long."""
    print(f"| in yardsticks | now | {version} | ratio |\n|---|---|---|---|")
    slow = []
    for name, now in found.items():
        ratio = now / before[name] if name in before else float("nan")
        print(f"| {name} | {now:.2f} | {before.get(name, float('nan')):.2f} | {ratio:.2f} |")
        if ratio > most:
            slow.append(name)
    if slow:
        print(f"slower than {version} by more than {most} times: {', '.join(slow)}")
    return int(bool(slow))


if __name__ == "__main__":
    sys.exit(main())
