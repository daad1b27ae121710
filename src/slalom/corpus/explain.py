"""`explain_dataset`: the one call behind `slalom corpus` and `slalom explain --file`.

The cost of a run is estimated from a few of its documents, without queries. A small corpus becomes
a single Parquet file: unfinished work is kept in a hidden folder beside it, so that the same
command resumes it; the folder is removed when the file is complete.
"""

import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any

from slalom.classifiers.base import PREDICTED, Classifier, accelerator, names
from slalom.classifiers.load import as_classifier, load
from slalom.corpus import run
from slalom.corpus.folder import RowLayout, RunFolder, layout_of
from slalom.corpus.plan import Indexed, Shard, columns_together, folder_of, shards_of
from slalom.corpus.work import Recipe
from slalom.errors import FileError, InputError, Setting, UnknownNameError, counted, grouped
from slalom.explainers.base import Explainer, TargetName
from slalom.explainers.dry_run import Cost, dry_run
from slalom.explainers.methods import checked_repeats, with_max_error
from slalom.explainers.splitting import document_of
from slalom.files import write_json
from slalom.records import Record, parquet_file
from slalom.tables import arrow, reading

ENGINES = ("local", "ray")
SETTINGS = b"slalom.settings"  # the key under which a single file holds its settings
OnProgress = Callable[[int, int], None]  # rows done, rows in all


@dataclass(frozen=True)
class Dataset:
    """Input, output and the columns to read."""

    input: str
    output: Path
    text_column: str = "text"
    id_column: str | None = None
    rows_per_file: int | None = None  # None: by the number of rows and workers


@dataclass(frozen=True)
class Prepared:
    """A run that fits its folder, before anything is written or queried."""

    work: run.ShardWork
    files: list[Indexed]
    shards: list[Shard]
    settings: dict[str, Any]
    rows_per_file: int
    plan: dict[str, Any]  # saves a later run from reading all input again

    @property
    def n_rows(self) -> int:
        return sum(shard.n_rows for shard in self.shards)

    @property
    def left(self) -> list[Shard]:
        finished = self.work.folder.finished()
        return [shard for shard in self.shards if shard.name not in finished]

    @property
    def n_done(self) -> int:
        """Rows that are explained already."""
        finished = self.n_rows - sum(shard.n_rows for shard in self.left)
        return finished + self.work.folder.rows_at_work()


def explain_dataset(
    classifier: Any,
    input: str,
    output: str | Path,
    method: str | Explainer = "slalom",
    target: TargetName = None,
    n_queries: int | None = None,
    units: str | None = None,
    too_long: str = "error",
    seed: int = 0,
    text_column: str = "text",
    id_column: str | None = None,
    engine: str = "local",
    workers: int = 1,
    rows_per_file: int | None = None,
    device: str | None = None,
    max_error: float | None = None,
    repeats: int = 1,
    on_progress: OnProgress | None = None,
) -> run.Summary:
    """Explain every row of JSON lines, CSV or Parquet files into a folder of Parquet files.

    `classifier` is what `slalom.explain` takes, or the name of a model, which every worker
    then loads onto `device`; None is the bundled one. The same call on the same folder resumes an
    interrupted run and repeats no query. With `max_error`, each text is queried until its errors
    are that small, up to `n_queries`; with `repeats`, each query is made that often, and answers
    are averaged.
    """
    make, on_gpu = _maker(classifier, device)
    chosen = engine_named(engine, make, workers, on_gpu=on_gpu)
    dataset = Dataset(str(input), Path(output), text_column, id_column, rows_per_file)
    chosen_method = with_max_error(method, max_error)
    recipe = Recipe(chosen_method, 0, n_queries, units, too_long, seed, repeats)
    with closing(chosen):
        prepared = prepare(make, dataset, recipe, target=target, engine=chosen)
        return finish(prepared, chosen, on_progress)


def engine_named(name: str, make: run.Make, workers: int, *, on_gpu: bool = False) -> run.Engine:
    """The engine of this name: where the work is done."""
    if name not in ENGINES:
        raise UnknownNameError("engine", name, ENGINES)
    if workers < 1:
        raise InputError(f"workers must be at least 1, not {workers}")
    if name == "local":
        if workers > 1:
            raise InputError(
                f"the local engine is one process, not {workers}: several need ",
                Setting("engine", "ray"),
            )
        return run.LocalEngine(make)
    from slalom.corpus.ray_engine import RayEngine

    return RayEngine(workers, n_gpus=1.0 if on_gpu else 0.0)


def prepare(
    make: run.Make,
    dataset: Dataset,
    recipe: Recipe,
    *,
    target: TargetName,
    engine: run.Engine,
    each_its_own: bool = False,
) -> Prepared:
    """Read all input and check that the folder belongs to the same run.

    `each_its_own` allows the target "predicted": each row's own class.
    """
    arrow()
    checked_repeats(recipe.repeats, recipe.method)
    folder = RunFolder(dataset.output)
    columns = dataset.text_column, dataset.id_column
    files, plan = run.index_input(dataset.input, columns, folder=folder, engine=engine)
    if not any(file.n_rows for file in files):
        raise FileError(f"{dataset.input} is empty: there is no row to explain")
    layout = layout_of(columns_together(files), *columns, folder=folder_of(files))
    identity = engine.identity(make)
    own = each_its_own and names(target, PREDICTED, identity.labels)
    aimed = replace(recipe, target=None if own else run.target_index(target, identity.labels))
    settings = run.settings_of(identity, aimed, layout, files)
    usual = run.rows_per_file(files, engine.n_workers)
    n_each = run.agree(folder, settings, dataset.rows_per_file, usual)
    work = run.ShardWork(folder, layout, aimed, make)
    return Prepared(work, files, shards_of(files, n_each), settings, n_each, plan)


def finish(
    prepared: Prepared, engine: run.Engine, on_progress: OnProgress | None = None
) -> run.Summary:
    """Do the remaining work and add up the results."""
    folder = prepared.work.folder
    folder.open()
    with folder.alone():
        run.begin(folder, prepared.settings, prepared.rows_per_file)
        write_json(folder.hidden / run.PLAN, prepared.plan)
        done = prepared.n_done

        def advance(n_rows: int) -> None:
            nonlocal done
            done += n_rows
            if on_progress is not None:
                on_progress(done, prepared.n_rows)

        advance(0)
        if left := prepared.left:
            engine.run(prepared.work, left, advance)
        summary = run.summary_of(folder, prepared.shards)
        words = [folder.words(shard.name) for shard in prepared.shards]
        run.write_vocabulary(folder, engine.word_sums(words), summary)
        run.close(folder, summary)
    return summary


def is_gpu(device: str | None) -> bool:
    return device is not None and device.startswith("cuda")


def _maker(classifier: Any, device: str | None) -> tuple[run.Make, bool]:
    """How every worker gets its classifier (it pickles), and whether it uses a GPU."""
    if classifier is None or isinstance(classifier, str):
        return partial(load, classifier, device=device), is_gpu(device)
    if device is not None:
        raise InputError(
            f"device={device!r} is for a model given by its name: this classifier runs where it is"
        )
    on_gpu = accelerator(as_classifier(classifier)) is not None
    return partial(as_classifier, classifier), on_gpu


SAMPLE = 20  # documents that are rehearsed, at least if there are so many


@dataclass(frozen=True)
class RunCost:
    """Mean cost of the rehearsed documents, and the number of rows left."""

    n_rows: int
    n_tried: int  # rows that were looked at
    n_sampled: int  # those of them that can be explained
    n_queries: float  # per document
    n_tokens: float
    n_requests: float | None  # None: nothing is sent anywhere

    def __str__(self) -> str:
        if not self.n_rows:
            return "nothing is left to explain"
        if not self.n_sampled:
            rows = counted(self.n_rows, "text")
            return f"{rows} left; none of those sampled can be explained"
        n_texts = round(self.n_rows * self.n_sampled / self.n_tried)
        roughly = "about " if self.n_sampled < self.n_tried < self.n_rows else ""
        queries = f"about {_rounded(n_texts * self.n_queries)} queries"
        if self.n_requests is not None:
            queries += f" (at most {_rounded(n_texts * self.n_requests)} requests)"
        return (
            f"{roughly}{counted(n_texts, 'text')} to explain: "
            f"{queries} and {_rounded(n_texts * self.n_tokens)} tokens, "
            f"estimated from {self.n_sampled} of them ({self.n_queries:.0f} queries and "
            f"{self.n_tokens:.0f} tokens each)"
        )


def _rounded(n: float) -> str:
    """Rounded to three digits."""
    return grouped(round(float(f"{n:.3g}")))


def _spread(left: Sequence[Shard]) -> Iterator[Record]:
    """Some rows of some shards, evenly spaced, because rows may be sorted by length."""
    shards = left[:: max(1, len(left) // SAMPLE)]
    step = max(1, sum(shard.n_rows for shard in shards) // SAMPLE)
    rows = chain.from_iterable(shard.records() for shard in shards)
    return islice(rows, step // 2, None, step)


def cost_of(
    classifier: Classifier, recipe: Recipe, layout: RowLayout, *, left: Sequence[Shard]
) -> RunCost:
    """The cost estimated from documents spread over the input."""
    n_rows = sum(shard.n_rows for shard in left)
    costs: list[Cost] = []
    n_tried = 0
    for record in _spread(left):
        n_tried += 1
        try:
            text = layout.text(record)
            document = document_of(classifier, text, recipe.units, too_long=recipe.too_long)
        except InputError:
            continue
        costs.append(dry_run(recipe.method, classifier, document, request=recipe.request))
    n = max(1, len(costs))
    requests = [cost.n_requests for cost in costs if cost.n_requests is not None]
    return RunCost(
        n_rows,
        n_tried,
        len(costs),
        sum(cost.n_queries for cost in costs) / n,
        sum(cost.n_tokens for cost in costs) / n,
        sum(requests) / n if requests else None,
    )


def prepare_file(
    make: run.Make, dataset: Dataset, recipe: Recipe, *, target: TargetName, engine: run.Engine
) -> Prepared:
    """`prepare` for a single file, `dataset.output`; a file of another run is refused."""
    arrow()
    out = dataset.output
    if out.is_dir():
        raise FileError(f"cannot write {out}: it is a folder, name a file in it")
    if not out.parent.is_dir():
        raise FileError(f"cannot write {out}: there is no folder {out.parent}")
    inner = replace(dataset, output=out.parent / f".{out.name}.run")
    prepared = prepare(make, inner, recipe, target=target, engine=engine, each_its_own=True)
    if out.exists() and _settings(out) != prepared.settings:
        raise FileError(f"{out} exists, and holds other results: name another file, or delete it")
    return prepared


def finish_file(
    prepared: Prepared, out: Path, engine: run.Engine, on_progress: OnProgress | None = None
) -> run.Summary | None:
    """Do the remaining work and write the file; None: it existed already."""
    folder = prepared.work.folder
    if out.exists():
        shutil.rmtree(folder.path, ignore_errors=True)  # left by a run killed at its very end
        return None
    summary = finish(prepared, engine, on_progress)
    _join(folder, out, prepared.settings)
    shutil.rmtree(folder.path)
    return replace(summary, folder=out)


def _settings(out: Path) -> Any:
    from pyarrow import ArrowInvalid, parquet

    try:
        found = (parquet.read_schema(out).metadata or {}).get(SETTINGS)
    except (ArrowInvalid, OSError):
        return None
    return None if found is None else json.loads(found)


def _batches(part: Path) -> Iterator[Any]:
    with reading(part):
        yield from parquet_file(part).iter_batches()


def _join(folder: RunFolder, out: Path, settings: dict[str, Any]) -> None:
    from pyarrow.parquet import ParquetWriter

    parts = sorted(folder.path.glob("part-*.parquet"))
    schema = parquet_file(parts[0]).schema_arrow.with_metadata({SETTINGS: json.dumps(settings)})

    def fill(file: Any) -> None:
        with ParquetWriter(file, schema, compression="zstd") as writer:
            for part in parts:
                for batch in _batches(part):
                    writer.write_batch(batch.replace_schema_metadata(schema.metadata))

    folder.write(out, fill)
