"""Rows of many documents, several processes at work: fits do not wait for one another.

Documents are kept in a file as they are finished, and the same command goes on from there.
"""

import functools
import hashlib
import json
import multiprocessing
import os
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import click

import slalom
from slalom.classifiers.base import Classifier
from slalom.classifiers.load import load
from slalom.evaluation.items import Item
from slalom.evaluation.rows import Key, Row
from slalom.evaluation.run import Plan, evaluate
from slalom.files import write_whole


class Listed(click.ParamType):
    """Several of a kind with commas between, each once."""

    name = "list"

    def __init__(self, kind: Callable[[str], Any]) -> None:
        self.kind = kind

    def convert(self, value: Any, param: Any, ctx: Any) -> tuple[Any, ...]:
        if isinstance(value, tuple):
            return value
        try:
            return tuple(dict.fromkeys(self.kind(part.strip()) for part in value.split(",")))
        except ValueError:
            self.fail(f"{value!r} is not a list of numbers with commas between", param, ctx)


LISTED, LISTED_NUMBERS = Listed(str), Listed(int)


@dataclass(frozen=True)
class Model:
    """What a process needs to load the classifier itself."""

    name: str | None
    device: str | None

    def load(self) -> Classifier:
        return _loaded(self.name, self.device)


@functools.cache
def _loaded(name: str | None, device: str | None) -> Classifier:
    return load(name, device=device)


def collect(
    model: Model,
    items: Sequence[Item],
    plan: Callable[[], Plan],
    *,
    jobs: int,
    out: Path | None = None,
    about: str = "",
) -> list[Row]:
    """All rows, with a line on standard error whenever a document is done.

    `plan` is called where the work is done: what it holds does not travel. Rows in the file
    must be of the same texts, model, seed and release, and `about` the same.
    """
    planned = plan()
    settings: dict[str, Any] = {
        "about": about,
        "model": model.name or "bundled",
        "seed": planned.seed,
        "release": slalom.__version__,
    }
    settings["texts"] = {str(item.number): _digest(item) for item in items}
    rows = _kept(out, settings)
    have = {row.key for row in rows}
    left = [item for item in items if not _keys(item, planned) <= have]
    start = perf_counter()
    for n_done, found in enumerate(_by_document(model, left, plan, have, jobs=jobs), start=1):
        rows += found
        _keep(out, settings, rows)
        taken = perf_counter() - start
        click.echo(f"{n_done} of {len(left)} documents, {taken:.0f} s", err=True)
    asked = set().union(*(_keys(item, planned) for item in items))
    return sorted((row for row in rows if row.key in asked), key=lambda row: row.document)


def _digest(item: Item) -> str:
    return hashlib.sha256(repr(item.text).encode()).hexdigest()[:16]


def _keys(item: Item, plan: Plan) -> set[Key]:
    return {(item.number, m.name, budget) for m in plan.methods for budget in plan.budgets}


def _by_document(
    model: Model,
    items: Sequence[Item],
    plan: Callable[[], Plan],
    have: Collection[Key],
    *,
    jobs: int,
) -> Iterator[list[Row]]:
    work = functools.partial(_rows, model, plan, have)
    if jobs == 1 or len(items) < 2:
        yield from map(work, items)
        return
    fresh = multiprocessing.get_context("spawn")  # CUDA does not survive a fork
    jobs = min(jobs, len(items))
    with ProcessPoolExecutor(jobs, fresh, _share_cores, (jobs,)) as pool:
        for done in as_completed([pool.submit(work, item) for item in items]):
            yield done.result()


def _share_cores(jobs: int) -> None:
    """Before torch is loaded: processes that each use all cores wait for one another."""
    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // jobs)))


def _rows(model: Model, plan: Callable[[], Plan], have: Collection[Key], item: Item) -> list[Row]:
    return list(evaluate(model.load(), [item], plan(), done=have))


def _kept(out: Path | None, settings: dict[str, Any]) -> list[Row]:
    if out is None or not out.exists():
        return []
    try:
        stored = json.loads(out.read_text(encoding="utf-8"))
        before: dict[str, Any] = stored["settings"]
    except (ValueError, KeyError, TypeError) as problem:
        raise click.ClickException(f"{out} holds no rows of an experiment: {problem}") from problem
    other = [name for name in settings if name != "texts" and before.get(name) != settings[name]]
    texts = before.get("texts", {})
    if any(settings["texts"].get(number, digest) != digest for number, digest in texts.items()):
        other.append("set of texts")
    if other:
        raise click.ClickException(
            f"{out} holds rows of other {', '.join(other)}: give another file"
        )
    settings["texts"] = texts | settings["texts"]
    return [Row.from_json(record) for record in stored["rows"]]


def _keep(out: Path | None, settings: dict[str, Any], rows: Sequence[Row]) -> None:
    if out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)
        content = {"settings": settings, "rows": [row.to_json() for row in rows]}
        write_whole(out, json.dumps(content))
