"""What a document of a corpus costs, and what more documents and more workers change.

    python -m benchmarks.corpus_scaling --data reviews.jsonl.gz [--documents 60] [--queries 200]
        [--method slalom] [--model FOLDER] [--engine ray --workers 2]
    python -m benchmarks.corpus_scaling --quick --documents 100000 --method leave-one-out
    python -m benchmarks.corpus_scaling --quick --wait 0.002 --engine ray --workers 2

With --data: the first texts of up to 70 words of JSON lines, explained by a model. With --quick:
made-up texts of eight words and a function that takes no time, so that what is left is our own;
or, with --wait, one that waits so many seconds per text, as for a model on another machine.
Seconds count from the first piece of rows to the last, without the loading of models and the
starting of Ray; memory is the peak of this process at a tenth of the rows and at the end.
"""

import argparse
import gzip
import json
import random
import resource
import tempfile
import warnings
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter, process_time, sleep
from typing import Any

import numpy as np

import slalom

SAYS = {"great": 2.0, "fine": 1.0, "dull": -1.0, "awful": -2.0}
WORDS = (*SAYS, *"a the film end with song story of no one here very".split())
MAX_WORDS = 70  # words


@dataclass(frozen=True)
class Quick:
    """A bag of words; waits, and costs next to nothing."""

    wait: float  # seconds per text

    def __call__(self, texts: list[str]) -> np.ndarray:
        sleep(self.wait * len(texts))
        odds = [sum(SAYS.get(word, 0.0) for word in text.split()) for text in texts]
        return np.column_stack([np.zeros(len(texts)), odds])


def write_quick(path: Path, n_documents: int) -> None:
    rng = random.Random(0)
    with path.open("w", encoding="utf-8") as file:
        for _ in range(n_documents):
            file.write(json.dumps({"text": " ".join(rng.choices(WORDS, k=8))}) + "\n")


def write_reviews(path: Path, data: Path, n_documents: int) -> None:
    with (gzip.open if data.suffix == ".gz" else open)(data, "rt") as lines, path.open("w") as file:
        for line in lines:
            if len(json.loads(line)["text"].split()) <= MAX_WORDS:
                file.write(line)
                n_documents -= 1
            if not n_documents:
                return


class Watch:
    """When rows were done, and what memory had been used by then."""

    def __init__(self) -> None:
        self.first: tuple[float, int] | None = None
        self.last = (0.0, 0)
        self.early: float | None = None

    def __call__(self, done: int, total: int) -> None:
        if done and self.first is None:
            self.first = (perf_counter(), done)
        if self.early is None and done >= total / 10:
            self.early = peak()
        self.last = (perf_counter(), done)

    def rate(self) -> float:
        begin, n_before = self.first or self.last
        end, n_after = self.last
        return (n_after - n_before) / max(1e-9, end - begin)


def peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024  # MB


def main() -> None:
    given = _options().parse_args()
    warnings.simplefilter("ignore", slalom.SlalomWarning)
    classifier: Any = given.model
    if given.quick:
        waiting = Quick(given.wait)
        classifier = slalom.FunctionClassifier(waiting, ["bad", "good"], gives="logits", name="q")
    with tempfile.TemporaryDirectory() as name:
        rows = Path(name) / "rows.jsonl"
        if given.quick:
            write_quick(rows, given.documents)
        else:
            write_reviews(rows, Path(given.data), given.documents)
        watch, begin = Watch(), process_time()
        summary = slalom.corpus.explain_dataset(
            classifier, str(rows), Path(name) / "out", method=given.method,
            n_queries=given.queries, engine=given.engine, workers=given.workers,
            rows_per_file=given.rows_per_file, on_progress=watch,
        )  # fmt: skip
        size = sum(path.stat().st_size for path in (Path(name) / "out").glob("*.parquet"))
    n = summary.n_rows
    print(
        f"{given.engine}, {given.workers} at work, {given.method}: {n} documents, "
        f"{watch.rate():.3g} per second; each {summary.n_queries / n:.0f} queries, "
        f"{summary.n_tokens / n:.0f} tokens, {summary.seconds / n:.3g} s of explaining "
        f"({(process_time() - begin) / n:.3g} s of this process's processor), "
        f"{size / n / 1024:.1f} kB; memory {watch.early or 0:.0f} MB at a tenth, "
        f"{peak():.0f} MB at the end"
    )


def _options() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--data", help="JSON lines with 'text', also .gz")
    options.add_argument("--quick", action="store_true", help="a function instead of a model")
    options.add_argument("--wait", type=float, default=0.0, help="seconds per text, with --quick")
    options.add_argument("--documents", type=int, default=60)
    options.add_argument("--model", help="name or folder; default: the bundled one")
    options.add_argument("--method", default="slalom")
    options.add_argument("--queries", type=int)
    options.add_argument("--engine", choices=["local", "ray"], default="local")
    options.add_argument("--workers", type=int, default=1)
    options.add_argument("--rows-per-file", type=int)
    return options


if __name__ == "__main__":
    main()
