"""A run: its input, settings, engine and results.

Knows the order of the steps; an engine knows where they happen. Another run in the same folder is
refused, with the differences. The shards' sums per word, added up, become a `slalom.Vocabulary`.
"""

import json
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import cached_property
from hashlib import sha256
from math import ceil
from pathlib import Path
from typing import Any, Protocol

from slalom.classifiers.base import PREDICTED, Classifier, fingerprint_of, one_target
from slalom.corpus.folder import RowLayout, RunFolder
from slalom.corpus.plan import Indexed, Shard, find_files, index_file
from slalom.corpus.words import WordSums, sums_in, vocabulary_of
from slalom.corpus.work import Advance, Recipe, Worker, receipt_of
from slalom.errors import DamageError, FileError
from slalom.explainers.adaptive import WithMaxError
from slalom.explainers.base import Explainer, TargetName
from slalom.explainers.table import METHODS
from slalom.explanation import Quality
from slalom.records import digest_of
from slalom.schema import plain, read_as
from slalom.tables import SCHEMA_VERSION

ROWS_PER_FILE = 1000
SHARDS_PER_WORKER = 4  # so that nobody waits long for the last shard
PLAN = "plan.json"
Make = Callable[[], Classifier]
Columns = tuple[str, str | None]  # of the texts and, where one is named, of the ids


@dataclass(frozen=True)
class Identity:
    """A classifier's name, labels and fingerprint."""

    name: str
    labels: tuple[str, ...]
    fingerprint: str | None

    @classmethod
    def of(cls, classifier: Classifier) -> "Identity":
        return cls(classifier.name, tuple(classifier.labels), fingerprint_of(classifier))


@dataclass(frozen=True)
class ShardWork:
    """All that a worker needs; it pickles, since the classifier is made where it is used."""

    folder: RunFolder
    layout: RowLayout
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

    def each(self, columns: Columns, paths: Sequence[Path]) -> list[Indexed]:
        """Read and index every file."""
        ...

    def run(self, work: ShardWork, shards: Sequence[Shard], advance: Advance) -> None:
        """Finish every shard, in any order; `advance` is called with numbers of rows."""
        ...

    def word_sums(self, paths: Sequence[Path]) -> WordSums:
        """The sums per word of all shards, from their files."""
        ...

    def close(self) -> None:
        """Stop what was started for it."""
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

    def each(self, columns: Columns, paths: Sequence[Path]) -> list[Indexed]:
        return [index_file(path, *columns) for path in paths]

    def run(self, work: ShardWork, shards: Sequence[Shard], advance: Advance) -> None:
        worker = work.worker(self.classifier)
        for shard in shards:
            worker.finish(shard, advance)

    def word_sums(self, paths: Sequence[Path]) -> WordSums:
        return sums_in(paths)

    def close(self) -> None:
        """Nothing was started."""


@dataclass(frozen=True)
class Summary:
    """The results of a run, over all shards."""

    folder: Path
    n_rows: int
    n_failed: int
    n_queries: int
    n_tokens: int
    seconds: float  # of explaining, summed over workers
    first_problem: str | None


def target_index(target: TargetName, labels: Sequence[str]) -> int:
    """The index of the one target of a corpus; a numeral that is not a label is an index."""
    if isinstance(target, str) and target.isdecimal() and target not in labels:
        target = int(target)
    index = one_target(target, labels, "a corpus").index
    assert index is not None  # one class of all
    return index


def index_input(
    given: str, columns: Columns, *, folder: RunFolder, engine: Engine
) -> tuple[list[Indexed], dict[str, Any]]:
    """Index every file, and return what a later run can reuse.

    A file with the same content as in an earlier run is not indexed again.
    """
    known = _known_plan(folder)
    paths = find_files(given, folder.path)
    stamps = {path: _stamp(path, columns) for path in paths}
    files: dict[Path, Indexed] = {}
    for path in paths:
        before = known.get(str(path.resolve()))
        with suppress(DamageError, LookupError, TypeError):  # damaged: index it again
            if before and before["stamp"] == stamps[path]:
                files[path] = read_as(Indexed, {**before["index"], "path": str(path)})
    new = [path for path in paths if path not in files]
    files |= dict(zip(new, engine.each(columns, new), strict=True))
    plan = {
        str(path.resolve()): {"stamp": stamps[path], "index": plain(files[path])} for path in paths
    }
    return [files[path] for path in paths], plan


def _stamp(path: Path, columns: Columns) -> list[Any]:
    """Includes a digest, because size and time can stay the same when the content changes."""
    return [*columns, digest_of(path)]


def _known_plan(folder: RunFolder) -> dict[str, Any]:
    try:
        known = json.loads((folder.hidden / PLAN).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return known if isinstance(known, dict) else {}


def rows_per_file(files: Sequence[Indexed], n_workers: int) -> int:
    """A size that gives every worker enough shards, none too large."""
    if n_workers == 1:
        return ROWS_PER_FILE
    n_rows = sum(file.n_rows for file in files)
    return min(ROWS_PER_FILE, max(1, ceil(n_rows / (SHARDS_PER_WORKER * n_workers))))


def summary_of(folder: RunFolder, shards: Sequence[Shard]) -> Summary:
    """The sum of the receipts of all shards."""
    receipts = [receipt_of(folder, shard.name) for shard in shards]
    problems = (receipt.first_problem for receipt in receipts)
    return Summary(
        folder.path,
        n_rows=sum(receipt.n_rows for receipt in receipts),
        n_failed=sum(receipt.n_failed for receipt in receipts),
        n_queries=sum(receipt.n_queries for receipt in receipts),
        n_tokens=sum(receipt.n_tokens for receipt in receipts),
        seconds=sum(receipt.seconds for receipt in receipts),
        first_problem=next(filter(None, problems), None),
    )


def close(folder: RunFolder, summary: Summary) -> None:
    """Store the results beside the settings."""
    record = folder.settings() or {}
    result = {name: value for name, value in asdict(summary).items() if name != "folder"}
    finished = datetime.now(UTC).isoformat(timespec="seconds")
    folder.keep_settings({**record, "finished": finished, "result": result})


# What a different fingerprint means:
OTHER_MODEL = "other weights or other code, or is queried differently"


def settings_of(
    identity: Identity, recipe: Recipe, layout: RowLayout, files: Sequence[Indexed]
) -> dict[str, Any]:
    """What all rows of a folder must share."""
    return {
        "model": identity.name,
        "fingerprint": identity.fingerprint,
        "labels": list(identity.labels),
        "method": _method_in_words(recipe.method),
        "target": PREDICTED if recipe.target is None else identity.labels[recipe.target],
        "queries": recipe.n_queries,
        "max_error": recipe.method.max_error if isinstance(recipe.method, WithMaxError) else None,
        "units": recipe.units,
        "too_long": recipe.too_long,
        "seed": recipe.seed,
        "repeats": None if recipe.repeats == 1 else recipe.repeats,
        "text column": layout.text_column,
        "id column": layout.id_column,
        "input": {str(Path(file.path).relative_to(layout.folder)): file.sha256 for file in files},
        "schema version": SCHEMA_VERSION,
    }


def _method_in_words(method: Explainer) -> str:
    """Its name, with a hash of its parts if it is not the method of this name in METHODS."""
    if isinstance(method, WithMaxError):
        return _method_in_words(method.method)
    if METHODS.get(method.name) is method:
        return method.name
    made_of = re.sub(r" at 0x[0-9a-f]+", "", repr(method))
    return f"{method.name} ({sha256(made_of.encode()).hexdigest()[:8]})"


def agree(
    folder: RunFolder, settings: dict[str, Any], n_rows_each: int | None, default: int
) -> int:
    """The rows per file of the existing run, or of a new one; another run is refused."""
    before = folder.settings()
    if before is None or not folder.holds_rows():
        return n_rows_each or default
    differences = _differences(before["settings"], settings)
    if n_rows_each is not None and n_rows_each != before["rows_per_file"]:
        differences.append(f"rows per file was {before['rows_per_file']}, now {n_rows_each}")
    if differences:
        raise FileError(
            f"{folder.path} holds a run with other settings ({'; '.join(differences)}): "
            "name another output, or delete this folder"
        )
    return int(before["rows_per_file"])


def begin(folder: RunFolder, settings: dict[str, Any], n_rows_each: int) -> None:
    """Store the settings before the first query; another run may have begun in between."""
    if folder.holds_rows():
        agree(folder, settings, n_rows_each, n_rows_each)
    else:
        started = datetime.now(UTC).isoformat(timespec="seconds")
        folder.keep_settings(
            {"settings": settings, "rows_per_file": n_rows_each, "started": started}
        )


def _differences(before: dict[str, Any], now: dict[str, Any]) -> list[str]:
    found = []
    for name in now:
        if before.get(name) == now[name] or (name == "fingerprint" and before.get(name) is None):
            continue
        if name == "input":
            found.append(f"input: {_input_difference(before.get(name) or {}, now[name])}")
        elif name == "fingerprint":
            if before["model"] == now["model"]:
                found.append(f"model {now['model']!r} has {OTHER_MODEL}")
        else:
            found.append(f"{name} was {in_words(before.get(name))}, now {in_words(now[name])}")
    return found


def in_words(setting: Any) -> str:
    return "not set" if setting is None else repr(setting)


def _input_difference(before: dict[str, str], now: dict[str, str]) -> str:
    parts = [
        *(f"{name} is gone" for name in before if name not in now),
        *(f"{name} is new" for name in now if name not in before),
        *(f"{name} has changed" for name in now if name in before and before[name] != now[name]),
    ]
    return ", ".join(parts[:3]) + (", …" if len(parts) > 3 else "")


NAME = "vocabulary.json"
MIN_DOCUMENTS = 2
NOTE = (
    "means over the fits of single documents, the uncertain ones shrunk towards the mean of all: "
    "no query was made for it, and it was not judged on unseen documents"
)


def write_vocabulary(folder: RunFolder, sums: WordSums, summary: Summary) -> None:
    """Write the table; a method without values and importances leaves none."""
    if not len(sums):  # rows of different targets are not added up
        return
    settings = (folder.settings() or {})["settings"]
    labels = tuple(settings["labels"])
    quality = Quality(
        r2=None,
        rmse=None,
        n_queries=summary.n_queries,
        n_tokens=summary.n_tokens,
        seconds=summary.seconds,
        trust="low",
        notes=(NOTE,),
    )
    about = {
        "n_documents": summary.n_rows - summary.n_failed,
        "labels": labels,
        "target": settings["target"],
        "target_index": labels.index(settings["target"]),
        "classifier": settings["model"],
        "units": settings["units"],
        "seed": settings["seed"],
    }
    found = vocabulary_of(sums, MIN_DOCUMENTS, quality, about)
    if found is not None:
        found.save(folder.path / NAME)
