"""What benchmarks ask, and whom: reviews of some length, classifiers, answers kept between runs.

Not a benchmark itself.
"""

import argparse
import pickle
from collections.abc import Callable, Iterator
from itertools import zip_longest
from pathlib import Path

import numpy as np

import slalom
from benchmarks.inside import CachedClassifier, Classifier
from training import data

SHORTEST, LONGEST = 25, 250  # units


def options_of(purpose: str) -> argparse.ArgumentParser:
    """What benchmarks that ask classifiers about short reviews have in common."""
    options = argparse.ArgumentParser(description=purpose)
    options.add_argument("--data", type=Path)
    options.add_argument("--model")
    options.add_argument("--documents", type=int, default=8)
    options.add_argument("--longest", type=int, default=60, help="words")
    options.add_argument("--words", type=int, default=0, help="the first so many; 0: all")
    options.add_argument("--orders", type=int, default=120)
    options.add_argument("--device")
    options.add_argument("--memory", type=Path, help="answers kept between runs")
    options.add_argument("--out", type=Path, help="keep the rows as JSON")
    options.add_argument("--shown", type=Path, nargs="*", default=[], help="rows to read again")
    return options


def opened(folder: str | None, device: str | None = None) -> Classifier:
    """The bundled classifier, or one of a folder; Mamba's has a class of this project's own."""
    if folder is None or not (Path(folder) / "record.json").exists():
        return slalom.load(folder, device=device)
    from training.models import load

    model, tokenizer = load(folder)
    return slalom.HuggingFaceClassifier(model.to(device or "cpu"), tokenizer)


def remembered(classifier: Classifier, path: Path | None) -> CachedClassifier:
    """The classifier with the answers of a file of one's own (unpickling runs what it says)."""
    cached = CachedClassifier(classifier)
    if path is not None and path.exists():
        cached.answers.update(pickle.loads(path.read_bytes()))
    return cached


def keep(classifier: CachedClassifier, path: Path | None) -> None:
    """Write all answers that are known to the file."""
    if path is not None:
        beside = path.with_suffix(".part")
        beside.write_bytes(pickle.dumps(classifier.answers, protocol=5))
        beside.replace(path)


def reviews(
    classifier: Classifier,
    folder: Path | None,
    n_documents: int,
    *,
    seed: int = 0,
    longest: int = LONGEST,
    words: int = 0,
) -> list[str]:
    """Random IMDB test reviews of SHORTEST to LONGEST units and of at most `longest` words.

    With `words` it is the first so many words of reviews of any length.
    """
    longest = LONGEST if words else longest

    def suits(text: str) -> bool:
        short = len(text) <= 12 * LONGEST and len(text.split()) <= longest
        return short and SHORTEST <= n_units_of(classifier, text) <= LONGEST

    found = _first(n_documents, at_random(folder, seed), suits)
    return [" ".join(text.split()[:words]) for text in found] if words else found


def by_length(
    classifier: Classifier, folder: Path | None, n_documents: int, bounds: tuple[int, int]
) -> list[str]:
    """Random IMDB test reviews of so many words, as many of each third of the lengths."""
    fewest, most = bounds
    edges = np.linspace(fewest, most + 1, 4)

    def of_third(third: int) -> list[str]:
        def suits(text: str) -> bool:
            between = edges[third] <= len(text.split()) < edges[third + 1]
            return bool(between) and 0 < n_units_of(classifier, text) <= 2 * most

        return _first(-(-(n_documents - third) // 3), at_random(folder, 0), suits)

    thirds = [of_third(third) for third in range(3)]
    in_turns = zip_longest(*thirds)
    return [text for texts in in_turns for text in texts if text is not None]


def at_random(folder: Path | None, seed: int) -> Iterator[str]:
    texts = data.imdb("test", folder).texts
    return (texts[at] for at in np.random.default_rng(seed).permutation(len(texts)))


def n_units_of(classifier: Classifier, text: str) -> int:
    """0: it is too long for the model."""
    try:
        return classifier.split(text).n_units
    except slalom.SlalomError:
        return 0


def _first(most: int, texts: Iterator[str], suits: Callable[[str], bool]) -> list[str]:
    found: list[str] = []
    for text in texts:
        if len(found) == most:
            break
        if suits(text):
            found.append(text)
    return found
