"""A real cluster of one machine gives what one process gives."""

import json
import socket
import tempfile
from pathlib import Path

import pytest
from pyarrow import parquet

from corpora import classifier, in_python, reviews, write_jsonl
from slalom.corpus.explain import explain_dataset


def test_rows_and_vocabulary_are_those_of_one_process(tmp_path, monkeypatch):
    """Forty shards: their words are added up by several tasks, then those by another.

    The cluster stands elsewhere; relative names are meant from where the caller is.
    """
    write_jsonl(tmp_path / "reviews.jsonl", reviews(40))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    explain_dataset(classifier(), "reviews.jsonl", "local", n_queries=30, rows_per_file=1)
    run = in_python(
        "import os, ray\n"
        "os.chdir('/')\n"
        "ray.init(address='local', include_dashboard=False, log_to_driver=False)\n"
        f"os.chdir({str(tmp_path)!r})\n"
        "from corpora import classifier\n"
        "from slalom.corpus.explain import explain_dataset\n"
        "explain_dataset(classifier(), 'reviews.jsonl', 'ray', n_queries=30, rows_per_file=1,\n"
        "    engine='ray', workers=2)\n",
        seconds=240,
    )
    assert run.returncode == 0, run.stderr
    mine, theirs = (_contents(tmp_path / name) for name in ("local", "ray"))
    assert mine[0] == theirs[0]
    runs = [json.loads((tmp_path / name / "run.json").read_text()) for name in ("local", "ray")]
    assert runs[0]["settings"] == runs[1]["settings"]  # the function has one key everywhere
    for name in ("tokens", "counts"):
        assert mine[1][name] == theirs[1][name]
    for name in ("scores", "errors"):
        for score, numbers in mine[1][name].items():
            assert theirs[1][name][score] == pytest.approx(numbers, abs=1e-9)


def test_a_cluster_of_this_machine_alone_leaves_nothing_behind(tmp_path, monkeypatch):
    write_jsonl(tmp_path / "reviews.jsonl", reviews(4))
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    with tempfile.TemporaryDirectory() as place:
        before = set(Path(place).parent.glob("ray/*"))
        monkeypatch.setenv("TMPDIR", place)
        run = in_python(
            "import ray\n"
            "from corpora import classifier\n"
            "from slalom.corpus.explain import explain_dataset\n"
            f"explain_dataset(classifier(), {str(tmp_path / 'reviews.jsonl')!r},\n"
            f"    {str(tmp_path / 'out')!r}, n_queries=30, engine='ray')\n",
            seconds=240,
        )
        assert run.returncode == 0, run.stderr
        assert not list(Path(place).glob("*"))
        assert set(Path(place).parent.glob("ray/*")) == before


def test_an_address_where_no_cluster_is_gets_a_sentence(tmp_path, monkeypatch):
    data = write_jsonl(tmp_path / "reviews.jsonl", reviews(2))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        monkeypatch.setenv("RAY_ADDRESS", f"127.0.0.1:{free.getsockname()[1]}")
        run = in_python(
            "from corpora import classifier\n"
            "from slalom.corpus.explain import explain_dataset\n"
            f"explain_dataset(classifier(), {str(data)!r}, 'out', engine='ray')\n"
        )
    assert "no Ray cluster answers at RAY_ADDRESS=127" in run.stderr.splitlines()[-1]


def _contents(folder):
    parts = sorted(folder.glob("*.parquet"))
    assert len(parts) == 40
    rows = [row for part in parts for row in parquet.read_table(part).to_pylist()]
    for row in rows:
        row["quality"].pop("seconds")
    return rows, json.loads((folder / "vocabulary.json").read_text())
