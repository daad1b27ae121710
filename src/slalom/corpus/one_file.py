"""One table in, one Parquet file out: a small corpus without a folder to look after.

Until it is finished the work lies in a hidden folder beside the result, so that the same
command goes on after an interrupt; then the folder goes and the file is there as a whole.
"""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

from slalom.corpus.explain import Dataset, OnProgress, Prepared, finish, prepare
from slalom.corpus.folder import RunFolder
from slalom.corpus.run import Engine, Make, Summary
from slalom.corpus.work import Recipe
from slalom.errors import FileError
from slalom.explainers.base import TargetName
from slalom.tables import arrow

SETTINGS = b"slalom.settings"  # the key under which the file holds what was asked


def prepare_file(
    make: Make, dataset: Dataset, recipe: Recipe, *, target: TargetName, engine: Engine
) -> Prepared:
    """As for a folder; `dataset.output` is the file. One of another run is refused."""
    arrow()
    out = dataset.output
    if out.is_dir():
        raise FileError(f"cannot write {out}: it is a folder, name a file in it")
    if not out.parent.is_dir():
        raise FileError(f"cannot write {out}: there is no folder {out.parent}")
    inner = replace(dataset, output=_folder(out))
    prepared = prepare(make, inner, recipe, target=target, engine=engine, each_its_own=True)
    if out.exists() and _settings(out) != prepared.settings:
        raise FileError(f"{out} exists, and holds other results: name another file, or delete it")
    return prepared


def finish_file(
    prepared: Prepared, out: Path, engine: Engine, on_progress: OnProgress | None = None
) -> Summary | None:
    """Do what is left and put the file in its place; None: it was there already."""
    folder = prepared.work.folder
    if out.exists():
        shutil.rmtree(folder.path, ignore_errors=True)  # of a run that was killed at its very end
        return None
    summary = finish(prepared, engine, on_progress)
    _join(folder, out, prepared.settings)
    shutil.rmtree(folder.path)
    return replace(summary, folder=out)


def _folder(out: Path) -> Path:
    return out.parent / f".{out.name}.run"


def _settings(out: Path) -> Any:
    from pyarrow import ArrowInvalid, parquet

    try:
        found = (parquet.read_schema(out).metadata or {}).get(SETTINGS)
    except (ArrowInvalid, OSError):
        return None
    return None if found is None else json.loads(found)


def _join(folder: RunFolder, out: Path, settings: dict[str, Any]) -> None:
    from pyarrow.parquet import ParquetFile, ParquetWriter

    parts = sorted(folder.path.glob("part-*.parquet"))
    schema = ParquetFile(parts[0]).schema_arrow.with_metadata({SETTINGS: json.dumps(settings)})

    def fill(file: Any) -> None:
        with ParquetWriter(file, schema, compression="zstd") as writer:
            for part in parts:
                for batch in ParquetFile(part).iter_batches():
                    writer.write_batch(batch.replace_schema_metadata(schema.metadata))

    folder.write(out, fill)
