"""Explanation files with something wrong: refused in a sentence, or as good as any other.

    python -m benchmarks.broken_files --files 100000

Files of many methods are changed in a random place, or a few, by what damages files: values of
another type or size, entries lost, doubled or swapped, keys of others, bytes flipped, the end
missing. What is read in spite of that must be shown (sentence, terminal, page, figure), saved,
read again and asked like any other explanation; every error must be a SlalomError.
"""

import argparse
import json
import marshal
import os
import random
import sys
import time
import traceback
import warnings
from collections import Counter
from contextlib import suppress
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import slalom
from benchmarks.inside import FILES
from slalom import Explanation

TEXTS = ("not so bad, a great film", ("a long film", "a film, never dull"), "great", "😀 naïve ß")
METHODS = ("slalom", "slalom-fast", "slalom-fidel", "boosted", "gam", "linear", "leave-one-out")
STRANGE: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2, 10**6, 2**31, 2**63, 10**40, 0.5, -0.5, 1e-320, 1e20, 1e99,
    1e200, 1e308, float("nan"), float("inf"), "", "x", "all", "\ud800", "\x00", "😀", [], [[]],
    [None], [1], [[1.0]], {}, {"x": 1}, {"kind": "linear"}, {"kind": "slalom"},
)  # fmt: skip
DEEPER = 0.8  # chance that what is inside is changed, and not all of it


def written() -> list[str]:
    """Files as they are written, of several methods, targets and texts."""
    warnings.simplefilter("ignore")
    classifier = slalom.FunctionClassifier(_scores, labels=["neg", "so-so", "pos"], gives="logits")
    found = []
    for method in METHODS:
        for text in TEXTS:
            for target in ("pos", "all"):
                if method == "slalom-fidel" and target == "all":
                    continue
                e = slalom.explain(classifier, text, method, target=target, n_queries=60)
                if method == "slalom" and target == "pos":
                    e = e.with_pairs(4)
                found.append(json.dumps(e.to_json()))
    return found


def _scores(texts: list[Any]) -> np.ndarray:
    words = [" ".join(text).split() if isinstance(text, tuple) else text.split() for text in texts]
    score = [
        2.0 * ("great" in w) - 1.5 * ("not" in w) * ("bad," in w) + 0.1 * len(w) for w in words
    ]
    return np.array([[0.0, 0.3 * s, s] for s in score])


def damaged(content: str, rng: random.Random) -> Any:
    """The same file with something wrong: its bytes, or the record that it holds."""
    if rng.random() < 0.1:
        return _flipped(content.encode(), rng)
    record = marshal.loads(_marshalled(content))
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        _change(*_place(record, rng), rng, _place(record, rng))
    return record


@cache
def _marshalled(content: str) -> bytes:
    """What is copied faster than JSON is read."""
    return marshal.dumps(json.loads(content))


def _flipped(data: bytes, rng: random.Random) -> bytes:
    changed = bytearray(data[: rng.randrange(1, len(data))] if rng.random() < 0.3 else data)
    for _ in range(rng.choice((1, 2, 8))):
        changed[rng.randrange(len(changed))] = rng.randrange(256)
    return bytes(changed)


def _place(record: Any, rng: random.Random) -> tuple[Any, Any]:
    """A (holder, key) of a record, the outer ones more often."""
    holder, key = record, rng.choice(list(record))
    while isinstance(holder[key], dict | list) and holder[key] and rng.random() < DEEPER:
        holder = holder[key]
        key = rng.choice(list(holder if isinstance(holder, dict) else range(len(holder))))
    return holder, key


def _change(holder: Any, key: Any, rng: random.Random, other: tuple[Any, Any]) -> None:
    if rng.random() < 0.5 and isinstance(holder[key], bool | int | float | str):
        holder[key] = _like(holder[key], rng)
        return
    how = rng.randrange(7)
    if how == 0:
        del holder[key]
    elif how == 1 and isinstance(holder, list):
        holder.insert(key, holder[key])
    elif how == 2 and isinstance(holder[key], int | float):
        holder[key] = holder[key] * rng.choice((-1, 0, 2, 1e6, 1e30, 1e90)) + rng.choice((0, 1, -1))
    elif how == 3 and isinstance(holder[key], list):
        rng.shuffle(holder[key])
    elif how == 4:
        holder[key] = json.loads(json.dumps(other[0][other[1]])) if _has(*other) else None
    else:
        holder[key] = rng.choice(STRANGE)


def _like(value: Any, rng: random.Random) -> Any:
    """Another value of the same type."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, str):
        return rng.choice((value[1:], value * 2, value.upper(), "", "all", "score", "shapley", "ß"))
    if isinstance(value, int):
        return value + rng.choice((-2, -1, 1, 2, 100))
    return rng.choice((-value, value / 3, value * 10, 0.0, 1.0, 1e6, 1e90, -1e90, 1e-300))


def _has(holder: Any, key: Any) -> bool:
    return key in holder if isinstance(holder, dict) else key < len(holder)


def use(e: Explanation, folder: Path, *, draw: bool = False) -> None:
    """All that can be done with an explanation without asking a classifier."""
    from rich.console import Console

    from benchmarks.inside import TerminalView, brief, page

    with open(os.devnull, "w", encoding="utf-8") as nowhere:  # noqa: PTH123
        Console(file=nowhere, width=80).print(TerminalView(e))
    for written in (brief(e), page(e)):  # a fragment is the body of a page
        written.encode()
    e.save(folder / "again.json")
    if slalom.read(folder / "again.json") != e:
        raise AssertionError("it is another one after it was saved")
    if e.model is not None:
        rng = np.random.default_rng(0)
        said = e.predict(rng.integers(0, 2, (8, len(e.units))))
        if not np.isfinite(said).all():
            raise AssertionError("it predicts what is no number")
    for ask in (e.counterfactual, e.interactions, e.to_frame):
        with suppress(slalom.SlalomError):
            ask()
    if draw:
        from matplotlib import pyplot

        e.plot().savefig(folder / "drawn.png")
        pyplot.close("all")


def tried(damage: Any, folder: Path, *, draw: bool = False) -> str:
    """What became of a file: "refused" or "used"; every other error comes out."""
    place = folder / "file.json"
    try:
        if isinstance(damage, bytes):
            place.write_bytes(damage)
            e = slalom.read(place)
        else:
            e = FILES.parsed(damage, str(place))
    except slalom.SlalomError:
        return "refused"
    use(e, folder, draw=draw)
    return "used"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=2000)
    parser.add_argument("--minutes", type=float, default=1e9)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    originals, counts = written(), Counter[str]()
    warnings.simplefilter("error")
    warnings.filterwarnings("ignore", "Glyph ")  # of signs that no font has matplotlib itself warns
    ends = time.monotonic() + 60 * given.minutes
    with TemporaryDirectory() as folder:
        for content in originals:
            assert tried(content.encode(), Path(folder), draw=True) == "used"
        for number in range(given.files):
            if time.monotonic() > ends:
                break
            rng = random.Random(f"{given.seed} {number}")
            data = damaged(rng.choice(originals), rng)
            try:
                counts[tried(data, Path(folder), draw=number % 200 == 0)] += 1
            except Exception as problem:
                counts["broken"] += 1
                where = traceback.extract_tb(problem.__traceback__)[-1]
                at = f"{Path(where.filename).name}:{where.lineno}"
                print(f"{number}: {type(problem).__name__}: {problem} at {at}", file=sys.stderr)
    print(f"{sum(counts.values())} files: {dict(counts)} (format {FILES.version})")
    sys.exit(counts["broken"] > 0)


if __name__ == "__main__":
    main()
