"""Rows of files: read from any place, broken ones named."""

import csv
import gzip
import io
import os
import time

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from corpora import reviews, write_jsonl
from slalom import records as records_module
from slalom.corpus.plan import broken_lines, find_files, index_file, shards_of
from slalom.errors import FileError
from slalom.records import read_records


def as_csv(rows):
    text = io.StringIO()
    table = csv.DictWriter(text, rows[0])
    table.writeheader()
    table.writerows(rows)
    return text.getvalue()


@pytest.fixture(params=["jsonl", "csv", "parquet", "jsonl.gz", "csv.gz"])
def table(request, tmp_path):
    """The same eleven rows in every format; a text may hold line ends and quotes."""
    rows = reviews(11)
    rows[4]["text"] = 'two\nlines, "quoted" – Ünï'
    path = tmp_path / f"rows.{request.param}"
    if request.param == "parquet":
        parquet.write_table(pa.Table.from_pylist(rows), path, row_group_size=4)
    elif "csv" in request.param:
        content = as_csv(rows).encode()
        path.write_bytes(gzip.compress(content) if request.param.endswith("gz") else content)
    else:
        write_jsonl(path, rows)
        if request.param.endswith("gz"):
            path.write_bytes(gzip.compress(path.read_bytes()))
    return path, rows


def test_every_format_gives_the_same_rows(table):
    path, rows = table
    records = list(read_records(path))
    assert [record.cells["text"] for record in records] == [row["text"] for row in rows]
    assert [record.cells["key"] for record in records] == [row["key"] for row in rows]
    assert [record.place.row for record in records] == list(range(len(rows)))


def test_shards_cut_a_file_anywhere_and_together_hold_it_all(table):
    path, rows = table
    index = index_file(path, "text", None)
    assert index.n_rows == len(rows)
    for size in (1, 3, 4, 50):
        shards = shards_of([index], size)
        assert [shard.n_rows for shard in shards][:-1] == [size] * (len(shards) - 1)
        texts = [record.cells["text"] for shard in shards for record in shard.records()]
        assert texts == [row["text"] for row in rows]


def test_marks_are_thinned_when_there_are_many(tmp_path, monkeypatch):
    monkeypatch.setattr("slalom.corpus.plan.MAX_MARKS", 8)
    path = write_jsonl(tmp_path / "many.jsonl", reviews(100))
    index = index_file(path, "text", None)
    assert len(index.marks) <= 8
    monkeypatch.setattr("slalom.corpus.plan.MAX_STEP", 4)
    assert len(index_file(path, "text", None).marks) == 25  # shards do not become too large
    texts = [r.cells["text"] for shard in shards_of([index], 20) for r in shard.records()]
    assert texts == [row["text"] for row in reviews(100)]


def test_broken_lines_keep_their_place_and_are_named(tmp_path):
    path = tmp_path / "broken.jsonl"
    path.write_bytes(b'{"text": "fine"}\n\nnot json\n{"text": "\xff"}\n[1]\n{"other": 1}\n')
    records = list(read_records(path))
    assert [record.line for record in records] == [1, 3, 4, 5, 6]
    assert [record.problem is None for record in records] == [True, False, False, False, True]
    index = index_file(path, "text", None)
    assert (index.n_rows, index.n_broken) == (5, 4)
    (sentence,) = broken_lines([index])
    assert "4 lines" in sentence
    assert "line 3 (not valid JSON" in sentence
    assert "line 6 (has no 'text'" in sentence


def test_broken_rows_of_a_table(tmp_path):
    path = tmp_path / "broken.csv"
    path.write_bytes(b'text,n\nfine,1\na,b,c\n\xff,2\n"good" one,3\nlast,4\n')
    records = list(read_records(path))
    assert [record.cells.get("text") for record in records][::4] == ["fine", "last"]
    assert "3 cells, the table has 2 columns" in records[1].problem
    assert "UTF-8" in records[2].problem
    assert "not a row" in records[3].problem


def test_an_open_quote_costs_its_own_row_and_no_other(tmp_path):
    path = tmp_path / "quote.csv"
    path.write_text('text,n\nfine,1\n"open,2\ndull,3\nlast,4\n')
    records = list(read_records(path))
    assert [record.cells.get("text") for record in records] == ["fine", None, "dull", "last"]
    assert (records[1].line, records[3].line) == (3, 5)
    assert "a quote is opened and not closed" in records[1].problem
    for size in (1, 2):
        shards = shards_of([index_file(path, "text", None)], size)
        assert [r.cells.get("text") for s in shards for r in s.records()][2:] == ["dull", "last"]


class OneWay(io.BytesIO):
    """A compressed file goes back by reading all again."""

    def seek(self, at, whence=0):
        assert at >= self.tell()
        return super().seek(at, whence)


def test_many_open_quotes_are_read_in_one_pass(tmp_path, monkeypatch):
    lines = ["text,n", '"open,1', "fine,2", '"open,3', '"dull" film,4', "last,5"]
    file = OneWay("\n".join(lines).encode())
    monkeypatch.setattr(records_module, "_opened", lambda path: file)
    records = list(read_records(tmp_path / "x.csv.gz"))
    assert [record.cells.get("text") for record in records] == [None, "fine", None, None, "last"]
    assert [(record.line, record.place.line) for record in records] == [
        (n + 1, n) for n in range(1, 6)
    ]
    assert [record.place.byte for record in records] == [7, 15, 22, 30, 44]
    assert "a quote is opened and not closed" in records[0].problem
    assert "a quote is opened and not closed" in records[2].problem
    assert "a cell goes on after its closing quote" in records[3].problem


def test_a_cell_may_be_long(tmp_path):
    path = tmp_path / "long.csv"
    path.write_text('text,page\nfine,"' + "line\n" * 50_000 + '"\nlast,x\n')
    before = csv.field_size_limit()
    first, second = read_records(path)
    assert (first.cells["text"], len(first.cells["page"])) == ("fine", 250_000)
    assert second.cells["text"] == "last"
    assert csv.field_size_limit() == before


def test_half_a_character_is_a_broken_line(tmp_path):
    path = tmp_path / "half.jsonl"
    path.write_text(
        '{"text": "fine \\ud83d\\ude00"}\n{"text": "a \\ud800"}\n{"text": "b", "n\\udc00": 1}\n'
    )
    records = list(read_records(path))
    assert [record.problem is None for record in records] == [True, False, False]
    assert "half a character" in records[1].problem
    assert records[0].cells["text"] == "fine 😀"


def test_parquet_may_call_bytes_texts_that_are_none(tmp_path):
    ends = np.array([0, 4, 7, 11], dtype=np.int32)
    texts = pa.StringArray.from_buffers(3, pa.py_buffer(ends), pa.py_buffer(b"fine\xff\xfealast"))
    parquet.write_table(pa.table({"text": texts}), tmp_path / "odd.parquet")
    records = list(read_records(tmp_path / "odd.parquet"))
    assert [record.cells.get("text") for record in records] == ["fine", None, "last"]
    assert records[1].problem == "not in UTF-8"


def test_two_columns_of_one_name_are_refused(tmp_path):
    (tmp_path / "two.csv").write_text("text,n,n\na,1,2\n")
    twice = pa.Table.from_arrays([pa.array(["a"])] * 3, names=["text", "n", "n"])
    parquet.write_table(twice, tmp_path / "two.parquet")
    for name in ("two.csv", "two.parquet"):
        with pytest.raises(FileError, match="two columns with the same name: text, n, n"):
            index_file(tmp_path / name, "text", None)


def test_a_missing_column_names_those_there_are(tmp_path):
    path = write_jsonl(tmp_path / "rows.jsonl", [{"review": "a", "stars": 1}])
    with pytest.raises(FileError, match="no column 'text': its columns are review, stars"):
        index_file(path, "text", None)
    path.write_text("[1]\n" + "[" * 100_000 + "\n")
    (told,) = broken_lines([index_file(path, "text", None)])
    assert "2 lines of " in told
    assert " cannot be explained: line 1 (not a JSON object: {…})" in told
    table = tmp_path / "rows.csv"
    table.write_text("review,stars\na,1\n")
    with pytest.raises(FileError, match="no column 'name': its columns are review, stars"):
        index_file(table, "review", "name")
    table.write_text("text;stars\na;1\n")
    with pytest.raises(FileError, match="one column, 'text;stars': put commas between its cells"):
        index_file(table, "text", None)


def test_kinds_of_columns_are_found_over_the_whole_file(tmp_path):
    rows = [
        {"text": "a", "n": 1, "x": 1, "mixed": 1, "deep": {"a": [1]}, "big": 2**70, "none": None},
        {"text": "b", "n": 2, "x": 0.5, "mixed": "one"},
    ]
    columns = index_file(write_jsonl(tmp_path / "k.jsonl", rows), "text", None).columns
    assert columns["n"] == "int"
    assert columns["x"] == "float"
    assert [columns[name] for name in ("mixed", "deep", "big")] == ["json"] * 3
    assert columns["none"] == "string"


def test_files_are_found_by_name_folder_and_pattern(tmp_path):
    for name in ("b.jsonl", "a.csv", "deep/c.jsonl.gz", ".hidden.jsonl", "note.txt", "_x/d.csv"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.touch()
    out = tmp_path / "out"
    assert [p.name for p in find_files(str(tmp_path), out)] == ["a.csv", "b.jsonl", "c.jsonl.gz"]
    assert [p.name for p in find_files(str(tmp_path / "*.csv"), out)] == ["a.csv"]
    with pytest.raises(FileError, match="nothing matches"):
        find_files(str(tmp_path / "*.parquet"), out)
    with pytest.raises(FileError, match="no such file"):
        find_files(str(tmp_path / "missing.csv"), out)
    with pytest.raises(FileError, match="cannot tell what"):
        list(read_records(tmp_path / "note.txt"))
    (tmp_path / "B.CSV").write_text("text\nfine\n")
    assert [r.cells["text"] for r in read_records(tmp_path / "B.CSV")] == ["fine"]
    odd = tmp_path / os.fsdecode(b"bad\xff.csv")
    odd.touch()
    with pytest.raises(FileError, match="not in UTF-8: rename it"):
        find_files(str(odd), out)


def test_what_is_no_table_is_said_to_be_none(tmp_path):
    path = tmp_path / "x.parquet"
    path.write_bytes(b"PAR")
    with pytest.raises(FileError, match=r"cannot read .*x\.parquet: Parquet"):
        index_file(path, "text", None)
    (tmp_path / "blank.csv").write_text("\ntext\na\n")
    with pytest.raises(FileError, match=r"first line of .* is blank"):
        index_file(tmp_path / "blank.csv", "text", None)
    (tmp_path / "cut.jsonl.gz").write_bytes(gzip.compress(b'{"text": "a"}\n' * 99)[:20])
    with pytest.raises(FileError, match="cannot read"):
        index_file(tmp_path / "cut.jsonl.gz", "text", None)


def test_a_row_of_json_lines_has_a_size(tmp_path, monkeypatch):
    path = tmp_path / "rows.jsonl"
    long = b'{"text": "' + b"x" * 500 + b'"}'
    many = b'{"text": "x", "more": [' + b"1," * 100 + b"1]}"
    rows = [b'{"text": "a film"}', long, many, b'{"text": "a song"}', long]
    path.write_bytes(b"\n".join(rows))
    monkeypatch.setattr(records_module, "MAX_LINE", 300)
    monkeypatch.setattr(records_module, "MAX_ENTRIES", 100)
    found = list(read_records(path))
    assert [record.problem for record in found] == [
        None,
        f"has {len(long) + 1} bytes, 300 at most are read",
        "has more than 100 entries",
        None,
        f"has {len(long)} bytes, 300 at most are read",
    ]
    assert [record.line for record in found] == [1, 2, 3, 4, 5]
    for record in found:  # a run that goes on begins at any of them
        assert next(read_records(path, record.place)) == record


def test_a_large_row_takes_little_time_and_memory(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b'{"text": "x", "more": [' + b"[]," * 15_000_000 + b'1]}\n{"text": "y"}\n')
    began = time.process_time()
    first, second = read_records(path)
    assert time.process_time() - began < 5
    assert "bytes" in first.problem
    assert second.cells == {"text": "y"}


@pytest.mark.parametrize("size", ["a cell", "a line"])
def test_a_large_cell_is_not_called_an_open_quote(size, tmp_path, monkeypatch):
    path = tmp_path / "rows.csv"
    path.write_text("text,key\n" + "x" * 500 + ",1\na film,2\n", encoding="utf-8")
    monkeypatch.setattr(records_module, "MAX_CELL", 300 if size == "a cell" else 10**6)
    monkeypatch.setattr(records_module, "MAX_LINE", 10**6 if size == "a cell" else 20)
    large, after = read_records(path)
    assert "a cell has more than" in large.problem
    assert "quote" not in large.problem
    assert after.cells == {"text": "a film", "key": "2"}


def test_a_flipped_bit_of_a_parquet_file_is_named(tmp_path):
    good, path = tmp_path / "good.parquet", tmp_path / "rows.parquet"
    rows = pa.Table.from_pylist([{"text": f"a film {n}", "key": n} for n in range(200)])
    parquet.write_table(rows, good, row_group_size=50)
    content, seen = good.read_bytes(), set()
    for at in range(0, len(content), max(1, len(content) // 150)):
        damaged = bytearray(content)
        damaged[at] ^= 1 << at % 8
        path.write_bytes(damaged)
        try:
            seen.add(len(list(read_records(path))))
        except FileError as problem:
            seen.add(str(path) in str(problem))
    assert seen >= {200, True}
    assert False not in seen
