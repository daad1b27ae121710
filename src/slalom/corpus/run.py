"""A run: what is read, who works on it where, and what came of it.

Knows the order of things; an engine knows where they happen.
"""

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import cached_property
from math import ceil
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from slalom.classifiers.base import Classifier, fingerprint_of, target_of
from slalom.corpus.folder import RunFolder
from slalom.corpus.layout import Layout
from slalom.corpus.plan import Indexed, Shard, find_files, index_file
from slalom.corpus.records import bytes_of
from slalom.corpus.words import WordSums, sums_in
from slalom.corpus.work import Advance, Receipt, Recipe, Worker, receipt_of
from slalom.errors import InputError
from slalom.explainers.base import TargetName
from slalom.files import write_json

ROWS_PER_FILE = 1000
SHARDS_PER_WORKER = 4  # so that nobody waits long for the last one
PLAN = "plan.json"
Make = Callable[[], Classifier]


@dataclass(frozen=True)
class Identity:
    """What a classifier is called, its labels, and what tells it from others of that name."""

    name: str
    labels: tuple[str, ...]
    fingerprint: str | None

    @classmethod
    def of(cls, classifier: Classifier) -> "Identity":
        return cls(classifier.name, tuple(classifier.labels), fingerprint_of(classifier))


@dataclass(frozen=True)
class Work:
    """All a worker needs; it pickles, and the classifier is made where it is used."""

    folder: RunFolder
    layout: Layout
    recipe: Recipe
    make: Make

    def worker(self, classifier: Classifier | None = None) -> Worker:
        made = self.make() if classifier is None else classifier
        return Worker(self.folder, self.layout, self.recipe, made)


class Engine(Protocol):
    """Where shards are worked on."""

    @property
    def n_workers(self) -> int: ...

    def identity(self, make: Make) -> Identity: ...

    def each(self, index: "Index", paths: Sequence[Path]) -> list[Indexed]:
        """Every file read through."""
        ...

    def run(self, work: Work, shards: Sequence[Shard], advance: Advance) -> None:
        """Finish every shard, in any order; `advance` hears of rows."""
        ...

    def word_sums(self, paths: Sequence[Path]) -> WordSums:
        """The sums per word of all shards, from their files."""
        ...

    def close(self) -> None:
        """Let go of what was started for it."""
        ...


@dataclass(frozen=True, eq=False)
class LocalEngine:
    """In this process, one shard after another; the classifier is made once."""

    make: Make
    n_workers: int = 1

    @cached_property
    def classifier(self) -> Classifier:
        return self.make()

    def identity(self, make: Make) -> Identity:
        return Identity.of(self.classifier)

    def each(self, index: "Index", paths: Sequence[Path]) -> list[Indexed]:
        return [index(path) for path in paths]

    def run(self, work: Work, shards: Sequence[Shard], advance: Advance) -> None:
        worker = work.worker(self.classifier)
        for shard in shards:
            worker.finish(shard, advance)

    def word_sums(self, paths: Sequence[Path]) -> WordSums:
        return sums_in(paths)

    def close(self) -> None:
        """There is nothing to let go of."""


@dataclass(frozen=True)
class Summary:
    """What a run has left in its folder, all shards together."""

    folder: Path
    n_rows: int
    n_failed: int
    n_queries: int
    n_tokens: int
    seconds: float  # of explaining, added up over workers
    first_problem: str | None


def one_target(target: TargetName, labels: Sequence[str]) -> int:
    """A corpus has one target, by default the last class; a number in words is a number."""
    wanted = len(labels) - 1 if target is None else target
    if isinstance(wanted, str) and wanted.isdecimal() and wanted not in labels:
        wanted = int(wanted)
    if wanted == "predicted" and wanted not in labels:
        raise InputError(
            "a corpus has one target, so that its words can be added up: give a label "
            f"({', '.join(labels)}); slalom explain --file takes --target predicted"
        )
    index = target_of(wanted, labels, np.zeros(len(labels))).index
    if index is None:
        raise InputError(
            "a corpus has one target: give a label or its number instead of 'all' "
            f"({', '.join(labels)})"
        )
    return index


@dataclass(frozen=True)
class Index:
    """Reads one file through; it pickles, and so can be sent to where the file is read."""

    text_column: str
    id_column: str | None

    def __call__(self, path: Path) -> Indexed:
        return index_file(path, self.text_column, self.id_column)


def index_input(
    given: str, index: Index, *, folder: RunFolder, engine: Engine
) -> tuple[list[Indexed], dict[str, Any]]:
    """Every file read through, and what to remember of that.

    A file whose content is that of an earlier run is not indexed again.
    """
    known = _known_plan(folder)
    paths = find_files(given, folder.path)
    stamps = {path: _stamp(path, index) for path in paths}
    files: dict[Path, Indexed] = {}
    for path in paths:
        before = known.get(str(path.resolve()))
        if before and before["stamp"] == stamps[path]:
            files[path] = Indexed.from_json({**before["index"], "path": str(path)})
    new = [path for path in paths if path not in files]
    files |= dict(zip(new, engine.each(index, new), strict=True))
    plan = {
        str(path.resolve()): {"stamp": stamps[path], "index": files[path].to_json()}
        for path in paths
    }
    return [files[path] for path in paths], plan


def _stamp(path: Path, index: Index) -> list[Any]:
    """Sizes and times of files can stay when contents change."""
    with bytes_of(path) as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return [index.text_column, index.id_column, digest]


def keep_plan(folder: RunFolder, plan: dict[str, Any]) -> None:
    write_json(folder.hidden / PLAN, plan)


def _known_plan(folder: RunFolder) -> dict[str, Any]:
    try:
        known = json.loads((folder.hidden / PLAN).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return known if isinstance(known, dict) else {}


def rows_per_file(files: Sequence[Indexed], n_workers: int) -> int:
    """Enough shards for everyone, none too large."""
    if n_workers == 1:
        return ROWS_PER_FILE
    n_rows = sum(file.n_rows for file in files)
    return min(ROWS_PER_FILE, max(1, ceil(n_rows / (SHARDS_PER_WORKER * n_workers))))


def summary_of(folder: RunFolder, shards: Sequence[Shard]) -> Summary:
    """Added up from what every finished shard says of itself."""
    receipts: list[Receipt] = [receipt_of(folder, shard.name) for shard in shards]
    problems = [receipt.first_problem for receipt in receipts if receipt.first_problem]
    return Summary(
        folder.path,
        sum(receipt.n_rows for receipt in receipts),
        sum(receipt.n_failed for receipt in receipts),
        sum(receipt.n_queries for receipt in receipts),
        sum(receipt.n_tokens for receipt in receipts),
        sum(receipt.seconds for receipt in receipts),
        problems[0] if problems else None,
    )


def close(folder: RunFolder, summary: Summary) -> None:
    """Write down what came of it, beside what was asked."""
    record = folder.settings() or {}
    result = {name: value for name, value in asdict(summary).items() if name != "folder"}
    finished = datetime.now(UTC).isoformat(timespec="seconds")
    folder.keep_settings({**record, "finished": finished, "result": result})
