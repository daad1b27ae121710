"""One worker turns shards into Parquet files; both engines, and every machine, run this.

The finished part of a shard is kept in pieces of about ten seconds' work, so that a killed worker
loses no more than that, and its successor repeats no query.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import chain, islice
from time import perf_counter
from typing import IO, Any

from slalom.classifiers.base import Classifier, text_logits
from slalom.corpus.folder import RowLayout, RunFolder
from slalom.corpus.plan import Shard
from slalom.corpus.words import added, sums_of
from slalom.document import Document
from slalom.errors import FileError, InputError, SlalomError
from slalom.explainers.base import Explainer, Request
from slalom.explainers.execution.driver import explained
from slalom.explainers.execution.steps import Order
from slalom.explainers.splitting import document_of
from slalom.explanation import Explanation
from slalom.records import Record, parquet_file
from slalom.tables import Failed, arrow, reading

FIRST_PIECE, LARGEST_PIECE = 4, 1024  # rows
SECONDS_PER_PIECE = 10.0
KEPT = b"slalom.receipt"  # the key under which a Parquet file holds its receipt
Advance = Callable[[int], None]


@dataclass(frozen=True)
class Recipe:
    """How every document is explained."""

    method: Explainer
    target: int | None  # one for the whole corpus; None: each row's predicted class
    n_queries: int | None = None
    units: str | None = None
    too_long: str = "error"
    seed: int = 0
    repeats: int = 1

    @property
    def request(self) -> Request:
        return Request(self.target, self.n_queries, self.seed, self.repeats)


@dataclass(frozen=True)
class Receipt:
    """The result and cost of a shard."""

    n_rows: int
    n_failed: int
    n_queries: int
    n_tokens: int
    seconds: float
    first_problem: str | None = None


@dataclass
class Worker:
    """Explains shards with one classifier."""

    folder: RunFolder
    layout: RowLayout
    recipe: Recipe
    classifier: Classifier
    piece_rows: int = FIRST_PIECE  # adapts to the time that a piece takes

    def finish(self, shard: Shard, advance: Advance) -> Receipt:
        """Explain the rest of a shard, then write its file."""
        pieces = self.folder.finished_pieces(shard.name)
        done = sum(n_rows for _, n_rows in pieces)
        records = islice(shard.records(), done, None)
        while chunk := list(islice(records, self.piece_rows)):
            begin = perf_counter()
            self._write_piece(shard, done, chunk)
            done += len(chunk)
            self._pace(perf_counter() - begin)
            advance(len(chunk))
        if done != shard.n_rows:
            raise InputError(
                f"{shard.path} changed while it was being read: {done} rows where "
                f"{shard.n_rows} were counted; start again with an input that does not change"
            )
        return self._commit(shard)

    def _pace(self, seconds: float) -> None:
        if seconds < SECONDS_PER_PIECE / 2:
            self.piece_rows = min(LARGEST_PIECE, 2 * self.piece_rows)
        elif seconds > 2 * SECONDS_PER_PIECE:
            self.piece_rows = max(1, self.piece_rows // 2)

    def _write_piece(self, shard: Shard, first: int, chunk: Sequence[Record]) -> None:
        found = self.results(chunk)
        rows = [
            self.layout.row(shard.path, record, result)
            for record, (result, _) in zip(chunk, found, strict=True)
        ]
        together = self.recipe.target is not None  # scores of different targets do not add up
        words = [
            sums_of(result, document)
            for result, document in found
            if together and isinstance(result, Explanation) and document is not None
        ]
        pa = arrow()
        table = pa.Table.from_pylist(rows, schema=self.layout.schema())
        piece = self.folder.pieces(shard.name) / f"{first}-{len(chunk)}.arrow"
        beside = piece.with_suffix(".words")
        self.folder.write(beside, lambda file: _write_ipc(file, added(*words)))
        self.folder.write(piece, lambda file: _write_ipc(file, table))

    def results(
        self, chunk: Sequence[Record]
    ) -> list[tuple[Explanation | Failed, Document | None]]:
        """Each row's explanation, or the reason why there is none."""
        read = [self._document(record) for record in chunk]
        answers = iter(self._together([one for one in read if isinstance(one, Document)]))
        return [(next(answers), one) if isinstance(one, Document) else (one, None) for one in read]

    def _document(self, record: Record) -> Document | Failed:
        recipe = self.recipe
        try:
            text = self.layout.text(record)
            return document_of(self.classifier, text, recipe.units, too_long=recipe.too_long)
        except InputError as problem:
            cell = record.cells.get(self.layout.text_column)
            return Failed(cell if isinstance(cell, str) else None, str(problem))

    def _together(self, documents: Sequence[Document]) -> list[Explanation | Failed]:
        recipe = self.recipe
        order = Order(recipe.method, recipe.request, keep_errors=True)
        found = list(explained(self.classifier, order, documents))
        unasked = [at for at, result in enumerate(found) if _is_of_the_classifier(result)]
        if unasked:
            text_logits(self.classifier, ["a"])  # raises if the classifier has stopped answering
            again = explained(self.classifier, order, [documents[at] for at in unasked])
            for at, result in zip(unasked, again, strict=True):  # it may have failed for a moment
                found[at] = result
        return [
            result if isinstance(result, Explanation) else Failed(document.text, str(result))
            for document, result in zip(documents, found, strict=True)
        ]

    def _commit(self, shard: Shard) -> Receipt:
        """Write the words first and the rows last: if the rows exist, so does everything."""
        pieces = [path for path, _ in self.folder.finished_pieces(shard.name)]
        words = added(*(_read_ipc(path.with_suffix(".words")) for path in pieces))
        self.folder.write(self.folder.words(shard.name), lambda file: _write_parquet(file, [words]))
        receipt = _receipt(_read_ipc(path) for path in pieces)
        rows = (_read_ipc(path) for path in pieces)
        self.folder.write(
            self.folder.shard(shard.name), lambda file: _write_parquet(file, rows, receipt)
        )
        self.folder.drop_pieces(shard.name)
        return receipt


def _is_of_the_classifier(result: Explanation | SlalomError) -> bool:
    return isinstance(result, SlalomError) and not isinstance(result, InputError)


def receipt_of(folder: RunFolder, name: str) -> Receipt:
    """The receipt of a finished shard."""
    try:
        with reading(folder.shard(name)):
            return Receipt(
                **json.loads(parquet_file(folder.shard(name)).schema_arrow.metadata[KEPT])
            )
    except FileError as problem:
        raise FileError(f"{problem}; delete it, and its rows are explained again") from problem


def _receipt(tables: Iterator[Any]) -> Receipt:
    n_rows = n_failed = n_queries = n_tokens = 0
    seconds, first = 0.0, None
    for table in tables:
        for problem, quality in zip(
            table["problem"].to_pylist(), table["quality"].to_pylist(), strict=True
        ):
            n_rows += 1
            if problem is not None:
                n_failed, first = n_failed + 1, first or problem
            if quality is not None:
                n_queries += quality["n_queries"]
                n_tokens += quality["n_tokens"]
                seconds += quality["seconds"]
    return Receipt(n_rows, n_failed, n_queries, n_tokens, seconds, first)


def _write_ipc(file: IO[bytes], table: Any) -> None:
    pa = arrow()
    with pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)


def _read_ipc(path: Any) -> Any:
    with reading(path):
        return arrow().ipc.open_file(path.read_bytes()).read_all()


def _write_parquet(file: IO[bytes], tables: Iterable[Any], receipt: Receipt | None = None) -> None:
    from pyarrow.parquet import ParquetWriter

    remaining = iter(tables)  # one in memory at a time
    first = next(remaining)
    kept = {} if receipt is None else {KEPT: json.dumps(asdict(receipt))}
    with ParquetWriter(file, first.schema.with_metadata(kept), compression="zstd") as writer:
        for table in chain([first], remaining):
            writer.write_table(table.replace_schema_metadata(kept))
