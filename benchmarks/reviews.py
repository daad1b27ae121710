"""Test reviews for benchmarks: random ones whose length suits a classifier.

Not a benchmark itself: `python -m benchmarks.reviews FOLDER` shows what would be read.
"""

import argparse
from pathlib import Path

import numpy as np

import slalom
from slalom.classifiers.base import Classifier
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


def opened(folder: str | None, device: str | None) -> Classifier:
    """The bundled classifier, or one of a folder; Mamba's has a class of this project's own."""
    if folder is None or not (Path(folder) / "record.json").exists():
        return slalom.load(folder, device=device)
    from training.models import load

    from slalom.classifiers.huggingface.classifier import HuggingFaceClassifier

    model, tokenizer = load(folder)
    return HuggingFaceClassifier(model.to(device or "cpu"), tokenizer)


def reviews(
    classifier: Classifier,
    folder: Path | None,
    n_documents: int,
    *,
    seed: int = 0,
    longest: int = LONGEST,
) -> list[str]:
    """Random IMDB test reviews whose length in units, and in words, is within bounds."""
    texts = data.imdb("test", folder).texts
    found: list[str] = []
    for at in np.random.default_rng(seed).permutation(len(texts)):
        if len(texts[at]) > 12 * LONGEST or len(texts[at].split()) > longest:
            continue
        try:
            n_units = classifier.split(texts[at]).n_units
        except slalom.SlalomError:  # too long for the model
            continue
        if SHORTEST <= n_units <= LONGEST:
            found.append(texts[at])
        if len(found) == n_documents:
            break
    return found


def short_reviews(
    classifier: Classifier, folder: Path | None, n_documents: int, *, longest: int, words: int = 0
) -> list[str]:
    """Those of at most `longest` words; with `words`, the first so many of each review."""
    if words:
        return [" ".join(t.split()[:words]) for t in reviews(classifier, folder, n_documents)]
    return reviews(classifier, folder, n_documents, longest=longest)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    for text in reviews(slalom.load(), parser.parse_args().folder, 3):
        print(text[:100])


if __name__ == "__main__":
    main()
