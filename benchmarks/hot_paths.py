"""What an explanation spends its time on, beside the last release: ratios, not seconds.

    python -m benchmarks.hot_paths [--repeats 7] [--most 1.3]      compare with hot_paths.json
    python -m benchmarks.hot_paths --keep                          at a release: write them there

Every path is timed in processor seconds, one thread, the least of so many repeats, and divided by
those of a yardstick (Cholesky factors and plain Python) that takes turns with it: so a slower or
busier machine says the same. What seems too slow gets twice as many turns more, as other work in
the same caches makes anything slower and nothing faster. More than --most times the last release
ends with status 1.

    import     a new interpreter loads slalom, with its start
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
from collections.abc import Callable, Mapping
from functools import partial
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
    """Processor seconds of a new interpreter that loads slalom, as it counts them itself.

    Those that a parent is told of are whole hundredths of a second, as long as this takes.
    """
    program = "import slalom, time; print(time.process_time())"
    told = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)
    return float(told.stdout)


def measured(
    repeats: int, before: Mapping[str, float] | None = None, most: float = MOST
) -> dict[str, float]:
    """The least of each path over the least of the yardstick; all take turns."""
    todo = {"yardstick": yardstick, **paths()}
    gc.collect()
    gc.freeze()  # what the bundled classifier loads is not looked through again
    clocks = {name: partial(seconds_of, path) for name, path in todo.items()}
    clocks["import"] = imported
    least = turns(clocks, repeats, {})
    slow = too_slow(in_yardsticks(least), before or {}, most)
    if slow:
        again = {name: clocks[name] for name in ("yardstick", *slow)}
        least |= turns(again, 2 * repeats, least)
    return in_yardsticks(least)


def seconds_of(path: Step) -> float:
    start = process_time()
    path()
    return process_time() - start


def turns(
    clocks: Mapping[str, Callable[[], float]], repeats: int, least: Mapping[str, float]
) -> dict[str, float]:
    """The least seconds by each clock, those before included."""
    found = {name: least.get(name, float("inf")) for name in clocks}
    for _ in range(repeats):
        for name, clock in clocks.items():
            found[name] = min(found[name], clock())
    return found


def in_yardsticks(least: Mapping[str, float]) -> dict[str, float]:
    unit = least["yardstick"]
    return {name: round(s / unit, 4) for name, s in least.items() if name != "yardstick"}


def too_slow(found: Mapping[str, float], before: Mapping[str, float], most: float) -> list[str]:
    return [name for name, now in found.items() if now > most * before.get(name, float("inf"))]


def main() -> int:
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--repeats", type=int, default=7)
    options.add_argument("--most", type=float, default=MOST, help="times the last release")
    options.add_argument("--keep", action="store_true", help="as those of this version")
    given = options.parse_args()
    warnings.simplefilter("ignore", slalom.SlalomWarning)
    kept = json.loads(KEPT.read_text(encoding="utf-8"))
    found = measured(given.repeats, last(kept)[1], given.most)
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
    for name, now in found.items():
        ratio = now / before[name] if name in before else float("nan")
        print(f"| {name} | {now:.2f} | {before.get(name, float('nan')):.2f} | {ratio:.2f} |")
    slow = too_slow(found, before, most)
    if slow:
        print(f"slower than {version} by more than {most} times: {', '.join(slow)}")
    return int(bool(slow))


if __name__ == "__main__":
    sys.exit(main())
