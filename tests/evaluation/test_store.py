"""Results that survive: torn lines, full disks, other settings; and the reports made of them."""

import io
import json
from pathlib import Path

import pyarrow.parquet
import pytest

import slalom
from slalom.evaluation.report import Report, problems
from slalom.evaluation.rows import GRID, Row, Store, parquet
from slalom.schema import plain, read_as

ROWS = [
    Row(
        1,
        "slalom",
        500,
        {"UNI": 0.25},
        curves={"deletion": (0.5,) * len(GRID)},
        correct=True,
        n_queries=500,
        n_tokens=4000,
        seconds=0.5,
    ),
    Row(2, "slalom", 500, {"UNI": None}, r2=0.5, n_queries=300),
    Row(1, "<b>", None, problem="no & never"),
]
SETTINGS = {"model": "m", "seed": 0}


def filled(folder: Path) -> Store:
    store = Store(folder, SETTINGS)
    for row in ROWS:
        store.add(row)
    return store


def test_rows_come_back(tmp_path):
    filled(tmp_path / "a" / "b")
    assert Store(tmp_path / "a" / "b", SETTINGS).rows == ROWS


def test_a_torn_line_is_dropped_and_written_again(tmp_path):
    filled(tmp_path)
    path = tmp_path / "rows.jsonl"
    path.write_bytes(path.read_bytes()[:-9])
    again = Store(tmp_path, SETTINGS)
    assert again.rows == ROWS[:2]
    again.add(ROWS[2])
    assert Store(tmp_path, SETTINGS).rows == ROWS


def test_other_settings_are_refused(tmp_path):
    filled(tmp_path)
    with pytest.raises(slalom.SlalomError, match="another seed"):
        Store(tmp_path, {**SETTINGS, "seed": 1})


def test_a_full_disk_keeps_what_is_finished(tmp_path):
    store = Store(tmp_path, SETTINGS)
    store.add(ROWS[0])
    (tmp_path / "rows.jsonl").rename(tmp_path / "kept.jsonl")
    (tmp_path / "rows.jsonl").symlink_to("/dev/full")
    with pytest.raises(slalom.SlalomError, match="1 finished rows are kept"):
        store.add(ROWS[1])
    (tmp_path / "kept.jsonl").replace(tmp_path / "rows.jsonl")
    assert Store(tmp_path, SETTINGS).rows == store.rows == ROWS[:1]


def test_a_folder_that_cannot_be(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(slalom.SlalomError, match="cannot write"):
        Store(tmp_path / "file", SETTINGS)


def test_a_damaged_line_costs_no_other(tmp_path):
    store = Store(tmp_path, SETTINGS)
    for number in range(3):
        store.add(Row(number, "slalom", 500, {"UNI": 0.5}))
    path = tmp_path / "rows.jsonl"
    lines = path.read_text().splitlines()
    path.write_text("\n".join([lines[0], lines[1][:20], lines[2]]) + "\n")
    assert [row.document for row in Store(tmp_path, SETTINGS).rows] == [0, 2]
    (tmp_path / "settings.json").write_text("[]")
    with pytest.raises(slalom.SlalomError, match=r"settings.json is damaged"):
        Store(tmp_path, SETTINGS)


def test_a_row_that_is_made_again_takes_the_place_of_the_first(tmp_path):
    store = Store(tmp_path, SETTINGS)
    store.add(Row(3, "slalom", 500, problem="the server is down"))
    store.add(Row(3, "slalom", 500, {"UNI": 0.5}))
    for found in (store, Store(tmp_path, SETTINGS)):
        assert [(row.problem, row.values) for row in found.rows] == [(None, {"UNI": 0.5})]


def test_parquet_has_a_column_a_metric():
    table = pyarrow.parquet.read_table(io.BytesIO(parquet(ROWS, ["UNI"])))
    assert table["UNI"].to_pylist() == [0.25, None, None]
    assert table["budget"].to_pylist() == [500, 500, None]
    assert table["problem"].to_pylist() == [None, None, "no & never"]
    assert table["correct"].to_pylist() == [True, None, None]


def test_reports_are_complete_and_escaped():
    report = Report("A <title>", tuple(ROWS), ("UNI",), ("a & b",))
    page = report.html()
    assert "<b>" not in page
    assert "&lt;b&gt;" in page
    assert "a &amp; b" in page
    assert page.count("<polyline") == 1
    assert "://" not in page
    text = report.markdown()
    assert "| slalom | 500 | 0.250 | 400 | 2000 | 0.25 | 2 of 2 |" in text
    assert "lower is better" in text


def test_problems_are_named_with_their_first_line():
    assert problems(ROWS) == [
        "<b> at auto: no answer for 1 of 1 texts, the first is line 1: no & never"
    ]


def test_rows_are_json():
    for row in ROWS:
        assert read_as(Row, json.loads(json.dumps(plain(row), allow_nan=False))) == row
