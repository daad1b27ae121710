"""The fidelity experiment from a folder of data to a table, at the smallest scale."""

import json

import pytest
from click.testing import CliRunner
from experiments.__main__ import main

from experiments import fidelity
from oracles import WORDS, slalom_oracle

LONG = " ".join(WORDS)


@pytest.fixture
def folder(tmp_path):
    """Reviews of which only the third is neither too short nor too long."""
    (tmp_path / "imdb").mkdir()
    texts = ["too short", " ".join([LONG] * 9), LONG]
    lines = [json.dumps({"text": text, "label": 1}) for text in texts]
    (tmp_path / "imdb" / "test.jsonl").write_text("\n".join(lines))
    return tmp_path


def test_a_table_and_the_rows_behind_it(folder, monkeypatch):
    monkeypatch.setattr(fidelity, "load", lambda model, device: slalom_oracle().classifier)
    out = folder / "rows.json"
    line = ["fidelity", "--data", str(folder), "--queries", "60,120", "--out", str(out)]
    line += ["--methods", "slalom,linear-uniform,permutation-shapley,exact-shapley", "--jobs", "1"]
    told = CliRunner().invoke(main, line, catch_exceptions=False).output
    rows = json.loads(out.read_text())
    assert {(row["method"], row["budget"]) for row in rows} == {
        (method, budget)
        for method in ("slalom", "linear-uniform", "permutation-shapley", "exact-shapley")
        for budget in (60, 120)
    }
    assert {row["document"] for row in rows} == {0}
    assert "| slalom | 120 |" in told
    assert "exact Shapley values of 36 units need 2^36" in told
