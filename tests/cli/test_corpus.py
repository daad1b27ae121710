"""slalom corpus: what it leaves behind and says, and how it ends."""

import re

import pytest
from pyarrow import parquet

import slalom
from corpora import classifier, log_odds, reviews, write_jsonl
from slalom.cli import main as cli


@pytest.fixture
def run(run_any):
    return lambda *arguments: run_any("corpus", *arguments)


@pytest.fixture
def run_any(capfd, monkeypatch):
    """The command in this process, a small function in the place of the bundled model."""
    monkeypatch.setattr("slalom.classifiers.load.load", lambda name, **_: classifier())

    def call(*arguments):
        with pytest.raises(SystemExit) as ended:
            cli.main([*map(str, arguments)])
        captured = capfd.readouterr()
        return int(ended.value.code or 0), captured.out, captured.err

    return call


@pytest.fixture
def data(tmp_path):
    return write_jsonl(tmp_path / "reviews.jsonl", reviews(6), "not json")


def test_it_explains_a_file_and_says_what_it_did(run, data, tmp_path):
    status, out, err = run(data, tmp_path / "out", "--queries", 40, "--id-column", "key")
    assert status == 0
    assert "6 of 7 texts explained in" in out
    assert "cannot be explained: line 7 (not valid JSON" in err
    assert "could not be explained" not in err  # once is enough
    table = parquet.read_table(tmp_path / "out/part-000000.parquet")
    assert table["id"].to_pylist()[:2] == ["r0", "r1"]
    status, out, _ = run("--queries", 40, "--id-column", "key", data, tmp_path / "out")
    assert (status, "7 texts" in out) == (0, True)


def test_a_dry_run_says_the_cost_and_writes_nothing(run, data, tmp_path):
    status, out, _ = run(data, tmp_path / "out", "--queries", 40, "--dry-run")
    assert status == 0
    assert out.startswith("6 texts to explain: about")  # not the line that cannot be read
    assert "tokens each), into 1 file" in out
    assert not (tmp_path / "out").exists()
    empty = write_jsonl(tmp_path / "empty.jsonl", [{"text": " "}] * 3)
    assert (
        "3 texts left; none of those sampled can be explained"
        in run(empty, tmp_path, "--dry-run")[1]
    )
    assert run(data, tmp_path / "out", "--queries", 40)[0] == 0
    _, out, _ = run(data, tmp_path / "out", "--queries", 40, "--dry-run")
    assert out == "nothing is left to explain\n"


def test_a_dry_run_looks_at_rows_from_everywhere(run, tmp_path):
    """Short texts first, long ones last: what it says is near what it then takes."""
    rows = [{"text": "a great film " * (1 + n // 20)} for n in range(100)]
    data = write_jsonl(tmp_path / "sorted.jsonl", rows)
    options = (data, tmp_path / "out", "--method", "leave-one-out", "--rows-per-file", 30)
    _, foretold, _ = run(*options, "--dry-run")
    _, done, _ = run(*options)
    tokens = [
        int(re.search(r"([\d\u202f]*\d) tokens", out)[1].replace("\u202f", ""))
        for out in (foretold, done)
    ]
    assert tokens[0] == pytest.approx(tokens[1], rel=0.1)


def test_wrong_use_is_one_sentence_and_status_2(run, data, tmp_path):
    out = tmp_path / "out"
    for arguments, sentence in (
        ((data,), "Missing argument 'OUTPUT' (see slalom corpus --help)"),
        ((data, data, out), "or a pattern in quotes, such as 'data/*.csv'"),
        ((tmp_path / "none.csv", out), "no such file or folder"),
        ((data, data), "reviews.jsonl is a file: name a folder"),
        ((data, out, "--text-column", "body"), "its columns are text, key, stars, group"),
        ((data, out, "--target", "ugly"), "expected one of bad, good"),
        ((data, out, "--target", "all"), "a corpus has one target"),
        ((data, out, "--workers", "2"), "several need --engine ray"),
        ((data, out, "--method", "magic"), "unknown method 'magic'"),
    ):
        status, _, err = run(*arguments)
        assert status == 2, arguments
        assert sentence in err
        assert len([line for line in err.splitlines() if "cannot be explained" not in line]) == 1


def test_an_interrupt_keeps_what_is_finished_and_says_how_to_go_on(
    run, data, tmp_path, monkeypatch
):
    sixth, at_hand = reviews(6)[5]["text"], [True]

    def interrupted(texts):
        if sixth in texts and at_hand:
            raise KeyboardInterrupt
        return log_odds(texts)

    broken = slalom.FunctionClassifier(interrupted, ["bad", "good"], gives="logits", name="small")
    monkeypatch.setattr("slalom.classifiers.load.load", lambda name, **_: broken)
    status, _, err = run(data, tmp_path / "out", "--queries", 40, "--rows-per-file", 4)
    assert status == 130
    assert "4 of 7 texts are explained and kept: repeat the command to continue" in err
    at_hand.clear()
    assert run(data, tmp_path / "out", "--queries", 40)[0] == 0


def test_no_text_at_all_is_an_error(run, tmp_path):
    data = write_jsonl(tmp_path / "d.jsonl", [{"text": " "}])
    status, _, err = run(data, tmp_path / "out", "--queries", 40)
    assert status == 2
    assert (
        err.splitlines()[-1]
        == "slalom: none of 1 text could be explained; the first: 'text' is empty"
    )


def test_report_and_diff_are_words_of_their_own(run, data, tmp_path):
    out = tmp_path / "out"
    assert run(data, out, "--queries", 40)[0] == 0
    status, told, _ = run("report", out, "--by", "group")
    assert (status, "report.html" in told) == (0, True)
    assert "By group" in (out / "report.html").read_text()
    status, told, _ = run("diff", out, out)
    assert status == 0
    assert "the same settings" in told
    assert run("report", tmp_path / "none")[0] == 2
    assert run("diff", out, out, "--html", tmp_path / "d.html")[0] == 0
    assert "Two runs" in (tmp_path / "d.html").read_text()


def test_errors_of_a_method_that_has_none_are_refused_at_once(run_any, data, tmp_path):
    wanted = ("--method", "lime", "--max-error", "0.1")
    for line in (
        ("corpus", data, tmp_path / "out"),
        ("explain", "--file", data, "--out", tmp_path / "out.parquet"),
        ("explain", "a film"),
    ):
        status, told, err = run_any(*line, *wanted)
        assert (status, told) == (2, "")
        assert err.startswith("slalom: --max-error needs a method whose Shapley values have")
        assert "give --queries" in err
        assert len(err.splitlines()) == 1
    assert {*tmp_path.iterdir()} == {data}


def test_explain_takes_a_table_row_by_row(run_any, data, tmp_path):
    out = tmp_path / "scores.parquet"
    line = ("explain", "--file", data, "--out", out, "--queries", 40)
    status, told, err = run_any(*line, "--dry-run")
    assert (status, "6 texts to explain" in told, out.exists()) == (0, True, False)
    status, told, err = run_any(*line)
    assert status == 0
    assert "7 texts explained in" in told
    assert "line 7 (not valid JSON" in err
    table = parquet.read_table(out)
    assert table.num_rows == 7
    assert table["stars"].to_pylist()[0] == reviews(1)[0]["stars"]
    assert {*tmp_path.iterdir()} == {data, out}
    assert "already exists" in run_any(*line)[1]
    status, _, err = run_any(*line, "--seed", 1)
    assert (status, "holds other results" in err) == (2, True)


def test_a_run_killed_at_its_very_end_leaves_no_folder(run_any, data, tmp_path):
    out = tmp_path / "scores.parquet"
    line = ("explain", "--file", data, "--out", out, "--queries", 40)
    run_any(*line)
    (tmp_path / ".scores.parquet.run/.slalom").mkdir(parents=True)
    assert "already exists" in run_any(*line)[1]
    assert {*tmp_path.iterdir()} == {data, out}


def test_a_table_needs_a_place_for_its_explanations(run_any, data, tmp_path):
    for arguments, sentence in (
        (("--file", data), "is a table: name a file"),
        (("--file", data, "--out", "x", "--max-error", "0.1", "--dry-run"), "cannot estimate"),
        (("--file", data, "--out", tmp_path / "x", "--html", "-"), "its results go to --out"),
        (("a text", "--out", tmp_path / "x"), "--out is for tables"),
        (("--file", data, "--out", tmp_path), "it is a folder"),
        (("--file", data, "--out", tmp_path / "x.csv"), "a name that ends in .parquet"),
        (("--file", data, "--out", tmp_path / "no/x.parquet"), "there is no folder"),
    ):
        status, _, err = run_any("explain", *arguments)
        assert status == 2
        assert sentence in err


def test_reasons_name_options_and_not_parameters(run, tmp_path, monkeypatch):
    monkeypatch.undo()  # the bundled model: it has a longest text
    data = write_jsonl(tmp_path / "d.jsonl", [{"text": "word " * 600}])
    status, _, err = run(data, tmp_path / "out", "--queries", 20)
    assert status == 2
    assert "--too-long truncate" in err
    assert "too_long" not in err
    assert (
        "too_long"
        in parquet.read_table(tmp_path / "out/part-000000.parquet")["problem"].to_pylist()[0]
    )


def test_a_table_is_one_in_capitals_too(run_any, data, tmp_path):
    table = data.rename(tmp_path / "REVIEWS.JSONL")
    status, _, err = run_any("explain", "--file", table)
    assert (status, "is a table: name a file" in err) == (2, True)
    status, _, err = run_any("explain", "--file", table, "--out", tmp_path / "X.CSV")
    assert (status, "ends in .parquet" in err) == (2, True)


def test_a_dry_run_of_a_table_needs_no_place_for_results(run_any, data, tmp_path):
    status, told, _ = run_any("explain", "--file", data, "--queries", 40, "--dry-run")
    assert (status, "6 texts to explain" in told) == (0, True)
    assert {*tmp_path.iterdir()} == {data}


def test_the_class_explained_of_a_table_is_said(run_any, data, tmp_path):
    line = ("explain", "--file", data, "--queries", 40)
    labels = classifier().labels
    _, told, _ = run_any(*line, "--out", tmp_path / "last.parquet")
    assert f"Every row explains the class {labels[-1]!r}" in told
    assert "--target predicted" in told
    out = tmp_path / "own.parquet"
    _, told, _ = run_any(*line, "--out", out, "--target", "predicted")
    assert "Each row explains its own predicted class." in told
    rows = [e for e in slalom.read(out) if isinstance(e, slalom.Explanation)]
    assert {row.target for row in rows} == set(labels)
    assert all(row.target_index == row.logits.argmax() for row in rows)
    assert "already exists" in run_any(*line, "--out", out, "--target", "predicted")[1]
    status, _, err = run_any("corpus", data, tmp_path / "folder", "--target", "predicted")
    assert (status, "a corpus has one target" in err) == (2, True)


def test_one_row_per_word_is_written_beside_the_documents(run_any, data, tmp_path):
    line = ("explain", "--file", data, "--queries", 40, "--out", tmp_path / "x.parquet")
    assert run_any(*line, "--words", tmp_path / "w.csv")[0] == 0
    head, *rows = (tmp_path / "w.csv").read_text().splitlines()
    assert head.startswith('"document","unit","start","end"')
    found = [e for e in slalom.read(tmp_path / "x.parquet") if isinstance(e, slalom.Explanation)]
    assert len(rows) == sum(map(len, found))
    status, _, err = run_any(*line, "--words", tmp_path / "w.txt")
    assert (status, "ends in .csv or .parquet" in err) == (2, True)
    run_any("explain", "a great film", "--words", tmp_path / "one.csv")
    assert len((tmp_path / "one.csv").read_text().splitlines()) == 4


def test_the_name_of_a_file_is_probably_no_text(run_any, data):
    status, _, err = run_any("explain", data, "--queries", 40)
    assert status == 0
    assert f"--file {data} reads it" in err
    assert "--file" not in run_any("explain", "a great film", "--queries", 8)[2]
