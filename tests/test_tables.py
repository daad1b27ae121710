"""Explanations as Arrow rows: nothing is lost that a reader of the table needs."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import slalom
from explanations import made, with_one_score
from slalom.errors import SlalomError
from slalom.tables import (
    SCHEMA_VERSION,
    SCORES,
    Failed,
    document_schema,
    document_table,
    unit_table,
    write_unit_table,
    write_words,
)


def test_a_document_row_holds_the_explanation():
    e = made()
    marks = np.zeros(len(e.units), dtype=bool)
    marks[2] = True
    e = replace(e, measured={"removal": marks}, whole=1.5)
    (row,) = document_table([e]).to_pylist()
    assert row["text"] == e.text
    assert row["units"] == list(e.units)
    assert [(s["start"], s["end"]) for s in row["spans"]] == list(e.spans)
    for name, scores in e.scores.items():
        np.testing.assert_allclose(row["scores"][name], scores, rtol=1e-6)
        np.testing.assert_allclose(row["errors"][name], e.errors[name], rtol=1e-6)
    assert row["measured"]["removal"] == marks.tolist()
    assert row["measured"]["alone"] is None
    assert row["log_odds"] == pytest.approx(e.logits[1] - e.logits[0])
    assert row["whole"] == 1.5
    assert row["quality"]["two_scores"] == e.quality.two_scores
    assert row["quality"]["r2"] == e.quality.r2
    assert row["quality"]["notes"] == ["a note"]
    assert (row["target"], row["target_index"], row["problem"]) == ("positive", 1, None)
    assert row["schema_version"] == SCHEMA_VERSION


def test_every_row_has_the_same_columns_whatever_became_of_it(tmp_path):
    table = document_table([made(), with_one_score(made()), Failed("", "the text is empty")])
    assert table.schema == document_schema()
    parquet.write_table(table, tmp_path / "rows.parquet")
    back = parquet.read_table(tmp_path / "rows.parquet")
    assert back.equals(table)
    assert back["problem"].to_pylist() == [None, None, "the text is empty"]
    assert back["units"].to_pylist()[2] is None


def test_a_pair_keeps_its_sides():
    sides = ((0, 0, 1), (1, 0, 1))
    e = replace(made("a b"), text=("a", "b"), spans=sides)
    (row,) = document_table([e]).to_pylist()
    assert (row["text"], row["second_text"]) == ("a", "b")
    assert [(s["side"], s["start"], s["end"]) for s in row["spans"]] == list(sides)
    assert unit_table([e])["side"].to_pylist() == [0, 1]


def test_documents_need_one_target_and_known_scores():
    with pytest.raises(slalom.SlalomError, match="one target"):
        document_table([made(all_classes=True, n_classes=3)])
    with pytest.raises(slalom.SlalomError, match="no column for the score 'loudness'"):
        document_table([replace(made("a"), scores={"loudness": np.zeros(1)})])


def test_unit_rows_come_document_by_document():
    first, second = made("great film"), with_one_score(made("awful"))
    table = unit_table([first, second])
    assert table.column_names[:4] == ["document", "unit", "start", "end"]
    assert table["document"].to_pylist() == [0, 0, 1]
    assert table["unit"].to_pylist() == ["great", "film", "awful"]
    assert table["removal"].to_pylist()[:2] == first.scores["removal"].tolist()
    assert table["removal_error"].to_pylist()[:2] == first.errors["removal"].tolist()
    assert table["removal"].to_pylist()[2] is None
    assert table["score"].to_pylist()[0] is None


def test_unit_rows_of_all_classes_have_a_column_per_class():
    e = made("great film", n_classes=3, all_classes=True)
    table = unit_table([e])
    assert table["removal: class 2"].to_pylist() == e.scores["removal"][:, 2].tolist()
    assert table["importance"].to_pylist() == e.scores["importance"].tolist()


def test_no_explanations_make_an_empty_table():
    assert unit_table([]).num_rows == 0
    assert document_table([]).num_rows == 0
    assert pa.types.is_struct(document_schema().field("scores").type)
    assert {field.name for field in document_schema().field("scores").type} == set(SCORES)


def test_frames_have_one_row_per_unit_and_the_document_first():
    first, second = made("great film"), made("awful")
    frame = slalom.to_frame([first, ValueError("kept"), second])
    assert list(frame.columns[:4]) == ["document", "unit", "start", "end"]
    assert frame["document"].tolist() == [0, 0, 2]
    assert frame["removal"].tolist()[:2] == first.scores["removal"].tolist()
    own = first.to_frame()
    assert list(own.columns) == list(frame.columns[1:])
    assert own["unit"].tolist() == ["great", "film"]
    assert unit_table([first]).to_pandas()["removal"].tolist() == own["removal"].tolist()
    assert len(slalom.to_frame([])) == 0
    with pytest.raises(slalom.SlalomError, match="takes a list"):
        slalom.to_frame(first)


def test_a_measured_column_is_true_or_false_in_every_row():
    short = replace(made("good"), measured={"shapley": np.ones(1, dtype=bool)})
    frame = slalom.to_frame([made(), short])
    assert frame["shapley_measured"].dtype == bool
    assert frame["shapley_measured"].tolist() == [False] * len(made().units) + [True]


def test_a_file_of_documents_is_read_back_row_by_row(tmp_path):
    pair = replace(made("good film"), text=("good", "film"), spans=((0, 0, 4), (1, 0, 4)))
    kept = [made(), with_one_score(made()), pair]
    parquet.write_table(document_table([*kept, Failed("", "it is empty")]), tmp_path / "d.parquet")
    *back, failed = slalom.read(tmp_path / "d.parquet")
    for before, after in zip(kept, back, strict=True):
        assert (after.text, after.units, after.spans) == (before.text, before.units, before.spans)
        assert set(after.scores) == set(before.scores)
        for name, scores in before.scores.items():
            np.testing.assert_allclose(after.scores[name], scores, rtol=1e-6)
        assert after.quality.r2 == before.quality.r2
        assert (after.target, after.independent) == (before.target, before.independent)
        assert repr(after) == repr(before)
        with pytest.raises(SlalomError, match="has no model"):
            after.predict(np.ones((1, len(after))))
    assert isinstance(failed, SlalomError)
    assert str(failed) == "it is empty"
    parquet.write_table(pa.table({"text": ["a"]}), tmp_path / "other.parquet")
    with pytest.raises(SlalomError, match="none that slalom explain --out wrote"):
        slalom.read(tmp_path / "other.parquet")


@pytest.mark.parametrize("name", ["w.csv", "w.parquet"])
def test_documents_become_one_row_per_word(tmp_path, name):
    from pyarrow import csv

    rows = [made(), Failed("", "it is empty"), with_one_score(made("a b"))]
    parquet.write_table(document_table(rows), tmp_path / "d.parquet")
    write_words(tmp_path / "d.parquet", tmp_path / name)
    read = csv.read_csv if name.endswith("csv") else parquet.read_table
    words = read(tmp_path / name).to_pylist()
    assert [row["document"] for row in words] == [0] * len(made()) + [2, 2]
    assert [row["unit"] for row in words[: len(made())]] == list(made().units)
    assert words[0]["shapley"] == pytest.approx(made().scores["shapley"][0], rel=1e-5)
    assert words[0]["score"] is None
    assert words[-1]["score"] == pytest.approx(with_one_score(made("a b")).scores["score"][1])
    write_unit_table(made(), tmp_path / name)
    assert len(read(tmp_path / name)) == len(made())
