"""Many documents beside a GPU: how the settings of the stream matter, side by side in one run.

    python -m benchmarks.stream --models FOLDER --device cuda --precision bf16 --data FOLDER
        [--methods slalom,slalom-fast] [--documents 240] [--queries 500] [--out rows.jsonl]
        [--settings "PER_WORKER=4 PER_CORE=1.25;PER_WORKER=2 PER_CORE=2"] [--seconds 120]

A setting is any of PER_WORKER (documents a worker takes at a time), PER_CORE (workers), AHEAD
(chunks at work), THREADS_AT_DEVICE (that answer), SECONDS_TO_SEND (a batch, which says how much may
be padded freely) and PACKED_BYTES (0: rows are padded). Rows say documents per second, processor
seconds per document of this process and of its workers, what share of the cores that is, batches
per document and tokens per batch. --wait pretends that a device takes so many seconds per token,
for a rehearsal on a machine that has none. A row is begun only while --seconds are not over.
"""

import argparse
import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter, process_time, sleep
from typing import Any

import slalom
from benchmarks.inside import DeviceRows, calls, devices, driver, encoder, pool, workers
from benchmarks.reviews import reviews
from benchmarks.speed import made_up_texts, shown_as_they_come
from benchmarks.stages import without_shortcuts

PLACES = {
    "PER_WORKER": workers,
    "PER_CORE": pool,
    "AHEAD": driver,
    "THREADS_AT_DEVICE": workers,
    "SECONDS_TO_SEND": devices,
    "PACKED_BYTES": encoder,
    "SHAPE_BITS": devices,
}
TICKS = os.sysconf("SC_CLK_TCK")


def main() -> None:
    given = _options().parse_args()
    warnings.simplefilter("ignore", slalom.SlalomWarning)
    folder = None if given.models == "bundled" else given.models
    classifier = slalom.load(folder, device=given.device, precision=given.precision)
    texts = (
        reviews(classifier, given.data, given.documents)
        if given.data
        else made_up_texts(classifier, given.documents, 0)
    )
    rows = _rows(classifier, texts, given)
    shown_as_they_come(rows, out=given.out, seconds=given.seconds)


def _options() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--models", default="bundled", help="a folder")
    options.add_argument("--device", default="cpu")
    options.add_argument("--precision", choices=("bf16", "fp16"))
    options.add_argument("--methods", default="slalom")
    options.add_argument("--settings", default="", help="NAME=NUMBER …; another row after ;")
    options.add_argument("--documents", type=int, default=240)
    options.add_argument("--queries", type=int, default=500)
    options.add_argument("--data", type=Path, help="folder of data, for reviews")
    options.add_argument("--wait", type=float, help="seconds per token of a pretended device")
    options.add_argument("--seconds", type=float, default=1e9)
    options.add_argument("--out", metavar="FILE", help="add a line of JSON per row to this file")
    return options


def _rows(classifier: Any, texts: list[str], given: argparse.Namespace) -> Iterator[dict[str, Any]]:
    wanted = {"n_queries": given.queries, "units": "token", "progress": False}
    for method in given.methods.split(","):
        for setting in given.settings.split(";"):
            numbers = {name: float(number) for name, number in _pairs(setting)}
            with _set(numbers), _device(given.wait):
                n_warm = 2 * int(workers.PER_WORKER * pool.n_workers())
                _explained(classifier, (texts * 9)[:n_warm], method, wanted)
                yield {"method": method, **numbers, **_measured(classifier, texts, method, wanted)}


def _pairs(setting: str) -> Iterator[tuple[str, str]]:
    for pair in setting.split():
        name, _, number = pair.partition("=")
        if name not in PLACES:
            raise SystemExit(f"{name} is none of {', '.join(PLACES)}")
        yield name, number


def _explained(classifier: Any, texts: list[str], method: str, wanted: dict[str, Any]) -> None:
    """As a corpus is: texts are split while others are explained, and nothing is kept."""
    for _ in slalom.explain_each(classifier, texts, method, **wanted):
        pass


def _measured(classifier: Any, texts: list[str], method: str, wanted: Any) -> dict[str, Any]:
    sizes: list[int] = []
    with _counting(sizes):
        start, own, theirs = perf_counter(), process_time(), _workers_seconds()
        _explained(classifier, texts, method, wanted)
        seconds, own, theirs = (
            perf_counter() - start,
            process_time() - own,
            _workers_seconds() - theirs,
        )
    n = len(texts)
    return {
        "documents": n,
        "documents_per_second": n / seconds,
        "processor": own / n,
        "processor_of_workers": theirs / n,
        "cores_busy": (own + theirs) / seconds / (os.cpu_count() or 1),
        "batches": len(sizes) / n,
        "tokens_per_batch": sum(sizes) / max(1, len(sizes)),
    }


@contextmanager
def _set(numbers: dict[str, float]) -> Iterator[None]:
    before = {name: getattr(place, name) for name, place in PLACES.items()}
    for name, place in PLACES.items():
        number = numbers.get(name, before[name])
        setattr(place, name, number if isinstance(before[name], float) else int(number))
    try:
        yield
    finally:
        for name, place in PLACES.items():
            setattr(place, name, before[name])


@contextmanager
def _replaced(name: str, other: Callable[..., Any]) -> Iterator[None]:
    plain = getattr(calls, name)
    setattr(calls, name, other)
    try:
        yield
    finally:
        setattr(calls, name, plain)


@contextmanager
def _counting(sizes: list[int]) -> Iterator[None]:
    """Tokens of every batch, padding included."""
    padded, packed = DeviceRows.padded, DeviceRows.packed

    def counted(self: DeviceRows, chosen: Any, *, pad: int, multiple: int = 1) -> Any:
        ids, mask, types = padded(self, chosen, pad=pad, multiple=multiple)
        sizes.append(ids.numel())
        return ids, mask, types

    def counted_packed(self: DeviceRows, chosen: Any) -> Any:
        rows = packed(self, chosen)
        sizes.append(rows.ids.numel())
        return rows

    DeviceRows.padded, DeviceRows.packed = counted, counted_packed  # type: ignore[method-assign]
    try:
        yield
    finally:
        DeviceRows.padded, DeviceRows.packed = padded, packed  # type: ignore[method-assign]


@contextmanager
def _device(wait: float | None) -> Iterator[None]:
    """Nothing, or a device that sleeps for every token and says that texts are as long as wide."""
    if wait is None:
        yield
        return
    kind = slalom.HuggingFaceClassifier
    plain = kind.runs_elsewhere
    kind.runs_elsewhere = property(lambda self: True)  # type: ignore[method-assign,assignment]

    def scores(model: Any, inputs: dict[str, Any]) -> Any:
        ids = inputs["input_ids"]
        sleep(wait * ids.numel())
        said = ((ids * 7919 % 101).double() * inputs["attention_mask"]).sum(dim=1) / 50
        return (said / said.max())[:, None] * said.new_tensor([[-1.0, 1.0]])

    try:
        with _replaced("_scores", scores), without_shortcuts():
            yield
    finally:
        kind.runs_elsewhere = plain  # type: ignore[method-assign]


def _workers_seconds() -> float:
    """Processor seconds of this process's children, as far as they live."""
    found = 0.0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:  # it has just ended
            continue
        if int(fields[1]) == os.getpid():
            found += (int(fields[11]) + int(fields[12])) / TICKS
    return found


if __name__ == "__main__":
    main()
