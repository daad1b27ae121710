"""Answers kept in a file between runs: what a benchmark asked once it need not ask again.

Not a benchmark itself: `python -m benchmarks.memory FILE` says how many answers a file holds.
"""

import argparse
import pickle
from collections.abc import Hashable
from pathlib import Path

from slalom.classifiers.base import Classifier
from slalom.classifiers.cached import CachedClassifier
from slalom.document import FloatArray


def remembered(classifier: Classifier, path: Path | None) -> CachedClassifier:
    """The classifier with the answers of a file, as far as there are any."""
    cached = CachedClassifier(classifier)
    if path is not None and path.exists():
        cached._answers.update(_read(path))
    return cached


def keep(classifier: CachedClassifier, path: Path | None) -> None:
    """Write all answers that are known to the file."""
    if path is not None:
        beside = path.with_suffix(".part")
        beside.write_bytes(pickle.dumps(classifier._answers, protocol=5))
        beside.replace(path)


def _read(path: Path) -> dict[Hashable, FloatArray]:
    """Files of one's own runs only: unpickling runs what the file says."""
    return dict(pickle.loads(path.read_bytes()))


def main() -> None:
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("file", type=Path)
    print(f"{len(_read(options.parse_args().file))} answers")


if __name__ == "__main__":
    main()
