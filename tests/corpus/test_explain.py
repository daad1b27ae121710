"""A corpus explained: one row per input row, and a run that goes on where it stopped."""

import copy
import json
import os
import resource
from dataclasses import replace
from datetime import datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
import torch
from pyarrow import parquet

import slalom
from corpora import SAYS, classifier, in_python, log_odds, reviews, write_jsonl
from slalom.classifiers.huggingface.classifier import HuggingFaceClassifier
from slalom.corpus.diff import diff
from slalom.corpus.explain import explain_dataset
from slalom.corpus.folder import RunFolder
from slalom.errors import ClassifierError, FileError, InputError
from tokenizers_made_here import tiny

QUERIES = 40


def rows_in(folder):
    return [row for path in sorted(folder.glob("*.parquet")) for row in _rows(path)]


def _rows(path):
    return parquet.read_table(path).to_pylist()


class Counting:
    """The quick classifier, which writes down what it is asked, and may be ended by a text."""

    def __init__(self, ended_by=None):
        self.asked, self.ended_by = [], ended_by

    def __call__(self, texts):
        if self.ended_by in texts:
            raise KeyboardInterrupt
        self.asked += texts
        return log_odds(texts)

    def classifier(self):
        return slalom.FunctionClassifier(self, ["bad", "good"], gives="logits", name="small")


@pytest.fixture
def data(tmp_path):
    rows = [*reviews(20), {"text": "", "key": "empty", "stars": 1, "group": "A"}]
    return write_jsonl(tmp_path / "reviews.jsonl", rows, "not json")


def test_every_row_comes_out_once_as_explain_would_have_it(data, tmp_path):
    seen = []
    summary = explain_dataset(
        classifier(), str(data), tmp_path / "out", n_queries=QUERIES, id_column="key",
        rows_per_file=8, on_progress=lambda done, total: seen.append((done, total)),
    )  # fmt: skip
    rows = rows_in(tmp_path / "out")
    assert [row["id"] for row in rows] == [
        *(f"r{n}" for n in range(20)),
        "empty",
        "reviews.jsonl:22",
    ]
    assert [row["stars"] for row in rows[:20]] == [row["stars"] for row in reviews(20)]
    for row in rows[:3]:
        e = slalom.explain(classifier(), row["text"], target="good", n_queries=QUERIES)
        assert row["units"] == list(e.units)
        for name, scores in e.scores.items():
            np.testing.assert_allclose(row["scores"][name], scores, atol=1e-5)
        assert row["log_odds"] == pytest.approx(e.logits[1] - e.logits[0])
    assert [row["problem"] is None for row in rows] == [True] * 20 + [False] * 2
    assert "JSON" in rows[21]["problem"]
    assert (summary.n_rows, summary.n_failed) == (22, 2)
    assert summary.n_queries == sum(row["quality"]["n_queries"] for row in rows[:20])
    assert (seen[0], seen[-1]) == ((0, 22), (22, 22))
    assert json.loads((tmp_path / "out/run.json").read_text())["result"]["n_rows"] == 22


def test_an_interrupted_run_goes_on_and_asks_nothing_again(data, tmp_path):
    out, whole = tmp_path / "out", tmp_path / "whole"
    call = {"n_queries": QUERIES, "rows_per_file": 8}
    first = Counting(ended_by=reviews(12)[11]["text"])
    with pytest.raises(KeyboardInterrupt):
        explain_dataset(first.classifier(), str(data), out, **call)
    assert len(RunFolder(out).finished()) == 1
    second = Counting()
    explain_dataset(second.classifier(), str(data), out, **call)
    once = Counting()
    explain_dataset(once.classifier(), str(data), whole, **call)
    assert sorted(set(once.asked)) == sorted(set(first.asked) | set(second.asked))
    assert len(second.asked) < len(once.asked)
    assert _timeless(rows_in(out)) == _timeless(rows_in(whole))
    ours, theirs = (slalom.Vocabulary.read(f / "vocabulary.json") for f in (out, whole))
    assert ours.tokens == theirs.tokens
    np.testing.assert_allclose(ours.scores["value"], theirs.scores["value"], atol=1e-9)
    assert not list((out / ".slalom/pieces").iterdir())
    third = Counting()
    explain_dataset(third.classifier(), str(data), out, **call)
    assert third.asked == []


def _timeless(rows):
    for row in rows:
        (row["quality"] or {}).pop("seconds", None)
    return rows


def test_another_run_is_refused_with_what_differs(data, tmp_path):
    out = tmp_path / "out"
    explain_dataset(classifier(), str(data), out, n_queries=QUERIES)
    for difference, what in (
        ({"seed": 1}, r"other settings \(seed was 0, now 1\)"),
        ({"n_queries": 50}, r"\(queries was 40, now 50\)"),
        ({"method": "linear"}, r"\(method was 'slalom', now 'linear'\)"),
        ({"target": "bad"}, r"\(target was 'good', now 'bad'\)"),
        ({"rows_per_file": 3}, r"\(rows per file was 1000, now 3\)"),
    ):
        with pytest.raises(FileError, match=what):
            explain_dataset(classifier(), str(data), out, **{"n_queries": QUERIES, **difference})
    other = slalom.FunctionClassifier(log_odds, ["bad", "good"], gives="logits", name="other")
    with pytest.raises(FileError, match="model was 'small', now 'other'"):
        explain_dataset(other, str(data), out, n_queries=QUERIES)
    write_jsonl(data, reviews(20, seed=1))
    with pytest.raises(FileError, match=r"\(input: reviews.jsonl has changed\)"):
        explain_dataset(classifier(), str(data), out, n_queries=QUERIES)


def test_an_input_that_changed_without_its_size_or_time_is_told(data, tmp_path):
    out = tmp_path / "out"
    explain_dataset(classifier(), str(data), out, n_queries=QUERIES)
    before, content = data.stat(), data.read_bytes()
    data.write_bytes(content.replace(b"dull", b"fine"))
    os.utime(data, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (data.stat().st_size, data.stat().st_mtime_ns) == (before.st_size, before.st_mtime_ns)
    assert data.read_bytes() != content
    with pytest.raises(FileError, match=r"\(input: reviews.jsonl has changed\)"):
        explain_dataset(classifier(), str(data), out, n_queries=QUERIES)


def test_a_model_of_the_same_name_with_other_weights_is_refused(data, tmp_path):
    model, tokenizer = tiny("BERT")
    explain_dataset(HuggingFaceClassifier(model, tokenizer), str(data), tmp_path / "out", "random")
    again = HuggingFaceClassifier(copy.deepcopy(model), tokenizer)
    explain_dataset(again, str(data), tmp_path / "out", "random")
    with torch.no_grad():
        again.model.classifier.bias += 1.0
    with pytest.raises(FileError, match=r"\(model 'BertForSeq\w+' has other weights or other code"):
        explain_dataset(again, str(data), tmp_path / "out", "random")
    explain_dataset(again, str(data), tmp_path / "other", "random")
    found = diff(RunFolder(tmp_path / "out"), RunFolder(tmp_path / "other"))
    assert found.settings == (
        "model: 'BertForSequenceClassification' has other weights or other code, "
        "or is queried differently in B",
    )


def test_a_method_of_the_same_name_with_other_settings_is_refused(data, tmp_path):
    default = slalom.METHODS["linear"]
    explain_dataset(classifier(), str(data), tmp_path / "out", default, n_queries=QUERIES)
    other = replace(default, surrogate=replace(default.surrogate, ridges=(1.0,)))
    with pytest.raises(FileError, match=r"method was 'linear', now 'linear \(\w{8}\)'"):
        explain_dataset(classifier(), str(data), tmp_path / "out", other, n_queries=QUERIES)


def test_files_of_one_name_in_two_folders_are_told_apart(tmp_path):
    for folder, text in (("x", "a great film"), ("y", "a dull film")):
        (tmp_path / "in" / folder).mkdir(parents=True)
        write_jsonl(tmp_path / "in" / folder / "a.jsonl", [{"text": text}])
    explain_dataset(classifier(), str(tmp_path / "in"), tmp_path / "out", n_queries=QUERIES)
    assert [row["id"] for row in rows_in(tmp_path / "out")] == ["x/a.jsonl:1", "y/a.jsonl:1"]
    write_jsonl(tmp_path / "in/x/a.jsonl", [{"text": "another film"}])
    with pytest.raises(FileError, match=r"input: x/a.jsonl has changed"):
        explain_dataset(classifier(), str(tmp_path / "in"), tmp_path / "out", n_queries=QUERIES)


def test_an_empty_file_among_others_brings_no_row(tmp_path):
    (tmp_path / "in").mkdir()
    write_jsonl(tmp_path / "in/a.jsonl", [{"text": "a great film"}])
    (tmp_path / "in/b.jsonl").touch()
    (tmp_path / "in/c.csv").touch()
    (tmp_path / "in/d.csv").write_text("text\n")
    parquet.write_table(pa.table({"text": pa.array([], pa.string())}), tmp_path / "in/e.parquet")
    summary = explain_dataset(
        classifier(), str(tmp_path / "in"), tmp_path / "out", n_queries=QUERIES
    )
    assert (summary.n_rows, len(rows_in(tmp_path / "out"))) == (1, 1)
    for name in ("b.jsonl", "c.csv", "d.csv", "e.parquet"):
        with pytest.raises(FileError, match="is empty: there is no row to explain"):
            explain_dataset(classifier(), str(tmp_path / "in" / name), tmp_path / "none")


def test_folders_of_something_else_are_left_alone(data, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/table.parquet").touch()
    with pytest.raises(FileError, match=r"holds Parquet files but no run\.json"):
        explain_dataset(classifier(), str(data), tmp_path / "mine", n_queries=QUERIES)


def test_an_output_inside_the_input_is_not_read(data, tmp_path):
    for _ in range(2):
        summary = explain_dataset(classifier(), str(tmp_path), tmp_path / "out", n_queries=QUERIES)
    assert summary.n_rows == 22
    with pytest.raises(FileError, match=r"all files of .* lie in the output folder"):
        explain_dataset(classifier(), str(tmp_path), tmp_path, n_queries=QUERIES)


def test_two_runs_do_not_share_a_folder(data, tmp_path):
    folder = RunFolder(tmp_path / "out")
    folder.open()
    with folder.alone(), pytest.raises(FileError, match="another run is writing"):
        explain_dataset(classifier(), str(data), tmp_path / "out", n_queries=QUERIES)


def test_a_text_that_cannot_be_explained_is_a_row_with_its_reason(tmp_path):
    data = write_jsonl(tmp_path / "d.jsonl", [{"text": "fine film"}, {"text": "bomb"}])

    def fragile(texts):
        if any("bomb" in text for text in texts):
            raise ValueError("boom \ud800")  # half a character, which no file can hold
        return log_odds(texts)

    asked = slalom.FunctionClassifier(fragile, ["bad", "good"], gives="logits")
    explain_dataset(asked, str(data), tmp_path / "out", n_queries=QUERIES)
    rows = rows_in(tmp_path / "out")
    assert rows[0]["problem"] is None
    assert "boom \\ud800" in rows[1]["problem"]
    assert rows[1]["text"] == "bomb"


def test_a_classifier_that_is_gone_ends_the_run_instead_of_failing_every_row(data, tmp_path):
    def gone(texts):
        raise OSError("no route to host")

    asked = slalom.FunctionClassifier(gone, ["bad", "good"], gives="logits", name="small")
    with pytest.raises(ClassifierError, match="no route to host"):
        explain_dataset(asked, str(data), tmp_path / "out", n_queries=QUERIES)
    summary = explain_dataset(classifier(), str(data), tmp_path / "out", n_queries=QUERIES)
    assert summary.n_failed == 2


def test_rows_that_met_a_classifier_while_it_was_away_are_asked_again(data, tmp_path):
    plain, n_calls = classifier(), 0

    def away_at_first(texts):
        nonlocal n_calls
        n_calls += 1
        if n_calls < 6:
            raise OSError("no route to host")
        return plain(texts)

    asked = slalom.FunctionClassifier(away_at_first, ["bad", "good"], gives="logits", name="small")
    summary = explain_dataset(asked, str(data), tmp_path / "out", n_queries=QUERIES)
    assert summary.n_failed == 2


def test_an_edited_function_is_another_one_once_a_row_is_explained(data, tmp_path):
    def run(f):
        asked = slalom.FunctionClassifier(f, ["bad", "good"], gives="logits", name="mine")
        return explain_dataset(asked, str(data), tmp_path / "out", n_queries=QUERIES)

    def edition(factor):
        return lambda texts: factor * log_odds(texts)

    run(edition(1.0))
    run(edition(1.0))
    with pytest.raises(FileError, match=r"\(model 'mine' has other weights or other code"):
        run(edition(2.0))
    first = rows_in(tmp_path / "out")
    settings = json.loads((tmp_path / "out/run.json").read_text())
    settings["settings"]["fingerprint"] = None  # as earlier versions wrote it
    (tmp_path / "out/run.json").write_text(json.dumps(settings))
    run(edition(2.0))
    assert rows_in(tmp_path / "out") == first


def test_a_full_disk_is_said_and_nothing_is_lost(data, tmp_path):
    """The system's own limit on file sizes stands in for the disk."""
    run = in_python(
        "import resource\n"
        "from corpora import classifier\n"
        "from slalom.corpus.explain import explain_dataset\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, resource.RLIM_INFINITY))\n"
        f"explain_dataset(classifier(), {str(data)!r}, {str(tmp_path / 'out')!r}, n_queries=40)\n"
    )
    assert "cannot write " in run.stderr.splitlines()[-1]
    assert not list((tmp_path / "out").glob("*.parquet"))
    assert not list((tmp_path / "out/.slalom").glob("*.part"))
    explain_dataset(classifier(), str(data), tmp_path / "out", n_queries=40)
    assert len(rows_in(tmp_path / "out")) == 22


def test_columns_of_our_names_and_columns_of_all_kinds_are_carried(tmp_path):
    rows = [
        {"text": "fine", "id": 7, "method": "mine", "n": 1, "deep": {"a": 1}, "input_method": "x"},
        {"text": "dull", "id": 8, "n": None, "new": 0.5},
    ]
    data = write_jsonl(tmp_path / "d.jsonl", rows)
    explain_dataset(classifier(), str(data), tmp_path / "out", n_queries=QUERIES)
    first, second = rows_in(tmp_path / "out")
    assert (first["id"], second["id"]) == ("7", "8")
    assert (first["input_input_method"], first["method"]) == ("mine", "slalom")
    assert first["input_method"] == "x"
    assert (first["n"], second["n"], first["deep"]) == (1, None, '{"a": 1}')
    assert (first["new"], second["new"]) == (None, 0.5)


def test_dates_and_decimals_of_parquet_are_carried_as_they_are_written(tmp_path):
    when, price = datetime(2020, 1, 2, 3, 4, 5), Decimal("1.50")
    table = pa.table({"text": ["fine film"], "when": [when], "price": [price]})
    parquet.write_table(table, tmp_path / "d.parquet")
    explain_dataset(classifier(), str(tmp_path / "d.parquet"), tmp_path / "out", n_queries=QUERIES)
    (row,) = rows_in(tmp_path / "out")
    assert (row["when"], row["price"]) == ("2020-01-02 03:04:05", "1.50")


def test_every_text_is_asked_on_until_its_errors_are_small(tmp_path):
    words = "a great film although the end is dull and the song rather awful but fine".split()
    rows = [{"text": " ".join(words)}, {"text": "a great film"}]
    data = write_jsonl(tmp_path / "d.jsonl", rows)
    explain_dataset(classifier(), str(data), tmp_path / "out", max_error=0.05)
    for row in rows_in(tmp_path / "out"):
        alone = slalom.explain(classifier(), row["text"], target="good", max_error=0.05)
        assert row["quality"]["n_queries"] == alone.quality.n_queries
        assert max(row["errors"]["shapley"]) <= 0.05
        assert "a standard error of at most 0.05" in row["quality"]["notes"][-1]
    with pytest.raises(FileError, match=r"\(max_error was 0\.05, now 0\.1\)"):
        explain_dataset(classifier(), str(data), tmp_path / "out", max_error=0.1)
    with pytest.raises(InputError, match="max_error must be a number above 0"):
        explain_dataset(classifier(), str(data), tmp_path / "out", max_error=0)


def test_answers_that_vary_are_averaged(data, tmp_path):
    rows = [{"text": "a great film although the end is dull"}, {"text": "a great film"}]
    data = write_jsonl(tmp_path / "d.jsonl", rows)
    explain_dataset(classifier(), str(data), tmp_path / "out", n_queries=QUERIES, repeats=3)
    for row in rows_in(tmp_path / "out"):
        wanted = {"target": "good", "n_queries": QUERIES, "repeats": 3}
        alone = slalom.explain(classifier(), row["text"], **wanted)
        assert row["scores"]["shapley"] == pytest.approx(alone.scores["shapley"], abs=1e-6)
        n_queries, n_repeats = row["quality"]["n_queries"], alone.quality.n_repeats
        assert (n_queries, n_repeats) == (alone.quality.n_queries, 2 * n_queries // 3)
    with pytest.raises(FileError, match=r"\(repeats was 3, now not set\)"):
        explain_dataset(classifier(), str(data), tmp_path / "out", n_queries=QUERIES)
    with pytest.raises(InputError, match="repeats needs a method that only queries"):
        explain_dataset(classifier(), str(data), tmp_path / "in", "attention-mean", repeats=2)


def test_the_vocabulary_of_a_run_knows_what_the_words_say(tmp_path):
    data = write_jsonl(tmp_path / "d.jsonl", reviews(60))
    explain_dataset(classifier(), str(data), tmp_path / "out", rows_per_file=25)
    table = slalom.Vocabulary.read(tmp_path / "out/vocabulary.json")
    strong = [entry.token for entry in table.table()]
    assert strong[0] == "great"
    assert strong[-1] == "awful"
    assert table.n_documents == 60
    assert set(SAYS) < set(table.tokens)
    e = slalom.explain(classifier(), "a great film", method=table.method(), n_queries=8)
    assert "starts from a vocabulary of 60 documents" in e.quality.notes[-1]


def test_memory_does_not_grow_with_the_rows(tmp_path):
    peaks = []
    for n in (200, 2000):
        data = write_jsonl(tmp_path / f"{n}.jsonl", reviews(n))
        explain_dataset(
            classifier(), str(data), tmp_path / f"out{n}", method="leave-one-out",
            rows_per_file=100,
        )  # fmt: skip
        peaks.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
    assert peaks[1] < peaks[0] + 40_000  # kB; ten times the rows


def test_wrong_calls_say_what_is_wrong(data, tmp_path):
    with pytest.raises(slalom.SlalomError, match="unknown engine 'spark'"):
        explain_dataset(classifier(), str(data), tmp_path / "out", engine="spark")
    with pytest.raises(InputError, match='need engine="ray"'):
        explain_dataset(classifier(), str(data), tmp_path / "out", workers=2)
    with pytest.raises(InputError, match="one target"):
        explain_dataset(classifier(), str(data), tmp_path / "out", target="all")
    with pytest.raises(InputError, match="for a model given by its name"):
        explain_dataset(classifier(), str(data), tmp_path / "out", device="cuda")
    with pytest.raises(slalom.SlalomError, match="cannot use the device 'nowhere'"):
        explain_dataset(None, str(data), tmp_path / "out", device="nowhere")
