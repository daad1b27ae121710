"""The bundled classifier is made from a folder of data, from the reviews to the packed files."""

import hashlib
import json
from dataclasses import replace

from training.bundled import SMALL, make

from slalom.classifiers.huggingface.bundled import read_packed

TINY = replace(SMALL, n_pieces=80, n_held_out=2, n_pool=8)


def test_every_stage_leaves_its_files_and_the_report_is_of_the_packed_model(bench, capsys):
    (folder,) = make(bench, [2], TINY)
    report = json.loads((folder / "report.json").read_text())
    assert report["imdb_test"]["n"] == 8
    assert report["snippets"]["n"] == 2  # the third is in the training set
    assert report["temperature"] > 0
    for line in (folder / "SHA256").read_text().splitlines():
        expected, name = line.split()
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == expected
    model, tokenizer = read_packed(folder)
    assert model.config.vocab_size == len(tokenizer)
    assert model.config.num_hidden_layers == 2
    assert "teacher: held out" in capsys.readouterr().out


def test_a_second_run_takes_the_kept_teacher(bench, capsys):
    make(bench, [1], TINY)
    written = (bench.cache / "teacher" / "model.safetensors").stat().st_mtime_ns
    make(bench, [1], TINY)
    assert (bench.cache / "teacher" / "model.safetensors").stat().st_mtime_ns == written
    capsys.readouterr()
