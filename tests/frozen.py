"""Explanations by every method, as numbers that a change of structure must not change.

    python tests/frozen.py write    keeps what the code says now, where numbers change on purpose
    python tests/frozen.py          compares to 1e-9, for the machine they were written on

The suite compares more loosely (test_frozen.py): a processor of another kind rounds otherwise.
Most classifiers here are plain functions of words in double precision, which do not.
"""

import gzip
import itertools
import json
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import slalom
from slalom.explainers.surrogate import SurrogateExplainer

FILE = Path(__file__).parent / "frozen.json.gz"
WORDS = (
    "the film was not good bad slow great very a plot and but its cast is dull never funny "
    "in of music left me cold to warm end with no charm every scene felt long , ."
).split()
N_TEXTS = {"slalom": 16, "slalom-local": 8, "slalom-fast": 8}  # of the functions' 60 texts
N_OTHERS = 4
REVIEW = "A slow start, but a truly wonderful film about two brothers, not a boat."
Numbers = dict[str, Any]


def texts() -> list[str]:
    """60 texts of 1 to 60 words; the first ones are short enough to ask about every part."""
    rng = np.random.default_rng(7)
    lengths = [1, 2, 3, 5, *rng.integers(6, 60, 56).tolist()]
    return [" ".join(rng.choice(WORDS, size=n)) for n in lengths]


def scores_of(text: str) -> list[float]:
    """Log-odds of three classes: words that add up, attend, saturate and negate each other."""
    words = text.split()
    places = [WORDS.index(word) for word in words]
    values = [np.sin(2.1 * place + 0.4) * 2.0 for place in places]
    weights = [np.exp(np.cos(1.3 * place)) for place in places]
    attended = (0.3 + sum(map(np.multiply, values, weights))) / (1.0 + sum(weights))
    turned = sum(one == "not" for one, after in itertools.pairwise(words) if after)
    both = ("good" in words) * ("bad" in words) - 0.5 * ("slow" in words) * ("great" in words)
    added = 0.1 * sum(np.cos(3.0 * place) for place in places)
    second = np.tanh(added) - 0.4 * turned + 0.3 * both
    return [0.0, float(2.0 * attended + second), float(second - 0.5 * attended)]


def two(texts: list[str]) -> np.ndarray:
    return np.array([scores_of(text)[:2] for text in texts])


def three(texts: list[str]) -> np.ndarray:
    return np.array([scores_of(text) for text in texts])


def cases() -> Iterator[tuple[str, Callable[[], slalom.Explanation]]]:
    """Each with a name under which it is kept."""
    given = texts()
    pair = slalom.FunctionClassifier(two, labels=["neg", "pos"], gives="logits")
    triple = slalom.FunctionClassifier(three, labels=["a", "b", "c"], gives="logits")
    bundled = slalom.load()
    vocabulary = slalom.explain_vocabulary(pair, given[4:34], least_documents=2)

    def case(name: str, *called: Any, **wanted: Any) -> Any:
        return name, lambda: slalom.explain(*called, **wanted)

    for name, method in slalom.METHODS.items():
        if isinstance(method, SurrogateExplainer):
            step = len(given) // N_TEXTS.get(name, N_OTHERS)
            for at in range(0, len(given), step):
                n_queries = None if at % 2 else 150
                text = given[at if name != "exact-shapley" else at % 4]
                if name == "exact-shapley" or (name.startswith("slalom-an") and n_queries):
                    n_queries = None
                yield case(f"{name} {at}", pair, text, name, n_queries=n_queries, seed=at)
            yield case(f"{name} all", triple, given[3], name, target="all")
        text = "Not a dull film." if name == "exact-shapley" else REVIEW
        yield case(f"{name} bundled", bundled, text, name, n_queries=_enough(name))
    long = given[20]
    yield case("slalom three", triple, long, target="all", n_queries=200)
    yield case("slalom few", pair, long, n_queries=40)
    yield case("slalom phrases", pair, long, units="phrase")
    yield case("slalom until sure", pair, given[31], max_error=0.05, n_queries=900)
    yield case("slalom pair", bundled, (REVIEW, "It was dull."), n_queries=120)
    yield case("slalom sentences", bundled, f"{REVIEW} Dull. {REVIEW} Why?", units="sentence")
    yield "slalom-prior", lambda: slalom.explain(pair, long, vocabulary.method(), n_queries=150)


def _enough(name: str) -> int | None:
    return None if name.startswith(("exact", "leave", "slalom-an")) else 120


def numbers_of(e: slalom.Explanation) -> Numbers:
    """All that a method finds out, and what the model says of a few subsets."""
    shown = np.random.default_rng(0).random((5, len(e.units))) < 0.6
    quality = e.quality
    return {
        "scores": {name: _kept(score) for name, score in e.scores.items()},
        "errors": {name: _kept(error) for name, error in e.errors.items()},
        "measured": {name: np.flatnonzero(known).tolist() for name, known in e.measured.items()},
        "identified": np.flatnonzero(e.identified).tolist(),
        "predicted": None if e.model is None else _kept(e.predict(shown)),
        "quality": [_kept(value) for value in (quality.r2, quality.rmse, quality.r2_error)],
        "cost": [quality.n_queries, quality.n_tokens],
        "trust": quality.trust,
        "notes": list(quality.notes),
        "ends": [_kept(e.whole), _kept(e.base), _kept(e.logits)],
        "anchor": e.anchor and _kept([*np.ravel(e.anchor.value), e.anchor.importance]),
    }


def _kept(value: Any) -> Any:
    return None if value is None else np.round(np.asarray(value, float), 9).tolist()


def found() -> dict[str, Numbers]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", slalom.SlalomWarning)
        return {name: numbers_of(make()) for name, make in cases()}


def kept() -> dict[str, Numbers]:
    known: dict[str, Numbers] = json.loads(gzip.decompress(FILE.read_bytes()))
    return known


def differences(one: Any, other: Any, tolerance: float, at: str = "") -> list[str]:
    """Where two of them differ by more than this, relative to the largest of their numbers."""
    if isinstance(one, dict) and isinstance(other, dict):
        if one.keys() != other.keys():
            return [f"{at}: {sorted(one)} is not {sorted(other)}"]
        return [
            d for key in one for d in differences(one[key], other[key], tolerance, f"{at} {key}")
        ]
    try:
        ours, theirs = np.array(one, float), np.array(other, float)
    except (TypeError, ValueError):
        if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
            pairs = enumerate(zip(one, other, strict=True))
            return [d for n, pair in pairs for d in differences(*pair, tolerance, f"{at} {n}")]
        return [] if one == other else [f"{at}: {one!r} is not {other!r}"]
    if ours.shape != theirs.shape:
        return [f"{at}: {ours.shape} numbers instead of {theirs.shape}"]
    if not ours.size or np.array_equal(ours, theirs, equal_nan=True):
        return []
    off = float(np.abs(ours - theirs).max())
    allowed = tolerance * max(1.0, float(np.abs(theirs).max()))
    return [] if off <= allowed else [f"{at}: off by {off:.2g}"]


def main() -> None:
    now = found()
    if sys.argv[1:] == ["write"]:
        text = json.dumps(now, separators=(",", ":"))
        FILE.write_bytes(gzip.compress(text.encode(), mtime=0))
        return
    wrong = differences(now, kept(), 2e-9)
    sys.stdout.write("\n".join([*wrong, f"{len(wrong)} differences in {len(now)} explanations\n"]))
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
