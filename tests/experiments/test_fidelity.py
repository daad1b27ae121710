"""The fidelity experiment from a folder of data to a table, at the smallest scale."""

import json

import pytest
from click.testing import CliRunner
from experiments.fidelity import command as main

from experiments import fidelity, many
from oracles import WORDS, slalom_oracle
from slalom.evaluation.rows import Row

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
    monkeypatch.setattr(many, "_loaded", lambda name, device: slalom_oracle().classifier)
    out = folder / "rows.json"
    line = ["--data", str(folder), "--queries", "60,120", "--out", str(out)]
    line += ["--methods", "slalom,linear-uniform,permutation-shapley,exact-shapley", "--jobs", "1"]
    told = CliRunner().invoke(main, line, catch_exceptions=False).output
    rows = json.loads(out.read_text())["rows"]
    assert {(row["method"], row["budget"]) for row in rows} == {
        (method, budget)
        for method in ("slalom", "linear-uniform", "permutation-shapley", "exact-shapley")
        for budget in (60, 120)
    }
    assert {row["document"] for row in rows} == {0}
    assert "| slalom | 120 |" in told
    assert "exact Shapley values of 36 units need 2^36" in told

    before = out.read_bytes()
    again = CliRunner().invoke(main, line, catch_exceptions=False).output
    assert again == told.split("\n", 1)[1], "nothing is asked again"
    assert out.read_bytes() == before
    other = CliRunner().invoke(main, [*line, "--seed", "1"])
    assert other.exit_code == 1
    assert "give another file" in other.output


def test_standings_are_paired_and_signed_so_that_more_is_better():
    def row(document, method, uni, deletion):
        return Row(document, method, 500, values={"UNI": uni, "deletion": deletion})

    rows = [
        *(row(0, "slalom", 0.2, 0.9), row(1, "slalom", 0.4, 0.7)),
        *(row(0, "lime", 0.3, 0.95), row(1, "lime", 0.6, 0.85)),
        *(row(0, "random", 0.9, 0.1), row(1, "random", 0.9, 0.1)),
    ]
    *_, uni, deletion = fidelity.standings(rows)
    assert uni == "- UNI at 500: slalom +0.150 ± 0.050 on lime"  # gaps .1 and .2
    assert deletion == "- deletion at 500: slalom -0.100 ± 0.050 on lime"  # −.05 and −.15
    assert fidelity.standings(rows[2:]) == []
