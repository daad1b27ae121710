"""Data files as people have them: what is usable is used, the rest is counted and named."""

import gzip
import json

import pytest

import slalom
from slalom.evaluation.items import Item, SkippedLine, read_items, summary_of

LABELS = ("negative", "positive")


def test_json_lines_good_and_bad(tmp_path):
    path = tmp_path / "reviews.jsonl"
    lines = [
        json.dumps({"text": "good", "label": "positive", "rationales": [[0, 4]]}),
        json.dumps({"text": "bad", "label": 0}),
        json.dumps({"text": ["one", "two"]}),
        "",
        "{broken",
        json.dumps({"label": 1}),
        json.dumps({"text": "  "}),
        json.dumps({"text": 7}),
        json.dumps({"text": "fine", "label": "neutral"}),
        json.dumps({"text": "fine", "label": 2}),
        json.dumps({"text": "fine", "rationales": [[1]]}),
        json.dumps(["no", "record"]),
    ]
    path.write_bytes("\n".join(lines).encode() + b"\n\xff\xfe\n")
    items, bad = read_items(path, LABELS)
    assert items == [
        Item(1, "good", 1, ((0, 4),)),
        Item(2, "bad", 0),
        Item(3, ("one", "two")),
    ]
    assert [line.number for line in bad] == [5, 6, 7, 8, 9, 10, 11, 12, 13]
    reasons = " ".join(line.reason for line in bad)
    for word in ("not valid JSON", "has no 'text'", "empty", "str, not int", "'neutral'", "spans"):
        assert word in reasons


@pytest.mark.parametrize("span", [[5, 900], [-3, 2], [5, 2], [5, 5], [0, 0, 4], [0, float("inf")]])
def test_rationales_outside_the_text_are_left_out_and_named(tmp_path, span):
    path = tmp_path / "reviews.jsonl"
    records = [
        {"text": "good films", "rationales": [[0, 10]]},
        {"text": "good films", "rationales": [[0, 4], span]},
        {"text": ["good", "films"], "rationales": [[0, 0, 4], [1, 0, 5]]},
        {"text": ["good", "films"], "rationales": [[2, 0, 4]]},
    ]
    path.write_text("\n".join(map(json.dumps, records)))
    items, bad = read_items(path, LABELS)
    assert [item.number for item in items] == [1, 3]
    assert [line.number for line in bad] == [2, 4]
    assert all("rationales must" in line.reason for line in bad)


def test_tables_and_compressed_files(tmp_path):
    path = tmp_path / "reviews.csv"
    path.write_text(
        'text,label,rationales\n"good, really",1,"[[0, 4]]"\nbad,,\n,0,\n', encoding="utf-8"
    )
    items, bad = read_items(path, LABELS)
    assert items == [Item(2, "good, really", 1, ((0, 4),)), Item(3, "bad")]
    assert [(line.number, line.reason[:17]) for line in bad] == [(4, "the text is empty")]
    packed = tmp_path / "reviews.csv.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert read_items(packed, LABELS) == (items, bad)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", "review,label\ngood,1\n", "no column 'text': its columns are review, label"),
        ("a.csv", '"text\ngood\n', "cannot read the columns"),
        ("a.jsonl", "", "it is empty"),
        ("a.jsonl", "{", "line 1: not valid JSON"),
        ("a.txt", "good", "expected .jsonl or .csv"),
        ("a.jsonl.gz", "good", "cannot read"),
    ],
)
def test_files_that_are_of_no_use(tmp_path, name, content, message):
    path = tmp_path / name
    path.write_text(content)
    with pytest.raises(slalom.SlalomError, match=message):
        read_items(path, LABELS)
    with pytest.raises(slalom.SlalomError, match="cannot read"):
        read_items(tmp_path / "none.jsonl", LABELS)


def test_reasons_are_summed_up():
    bad = [SkippedLine(number, "empty") for number in range(1, 9)] + [SkippedLine(20, "odd")]
    assert summary_of(bad) == [
        "left out 8 lines (1, 2, 3, 4, 5, …): empty",
        "left out line 20: odd",
    ]


def test_rows_of_a_table_that_would_be_altered_are_left_out(tmp_path):
    path = tmp_path / "reviews.csv"
    path.write_bytes(
        b'text,label\ngood film,1\nGood film, really awful,0\nCaf\xe9,1\n"dull" plot,0\n'
        b'a fine one,1.0\n"never closed,1\nthe rest\n'
    )
    found, bad = read_items(path, ["neg", "pos"])
    kept = [("good film", 1), ("a fine one", 1), ("the rest", None)]
    assert [(item.text, item.label) for item in found] == kept
    reasons = [line.reason for line in bad]
    assert reasons[:2] == ["has 3 cells, the table has 2 columns", "not in UTF-8"]
    assert all(reason.startswith("not a row of a table: ") for reason in reasons[2:])
    assert len(reasons) == 4


def test_a_line_too_deep_for_json_is_left_out(tmp_path):
    path = tmp_path / "deep.jsonl"
    path.write_text("[" * 100_000 + '\n{"text": "good"}\n')
    found, bad = read_items(path, ["neg", "pos"])
    assert (len(found), bad[0].reason) == (1, "not valid JSON in UTF-8")
