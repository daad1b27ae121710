"""The command line: what it prints where, and how it ends."""

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import slalom
from slalom.cli import main as cli

TEXT = "a great film with an awful end"
WORDS = {"great": 3.0, "awful": -2.0}


def scores(texts: list[str]) -> np.ndarray:
    odds = np.array([0.2 + sum(WORDS.get(word, 0.0) for word in text.split()) for text in texts])
    return np.column_stack([np.zeros(len(texts)), odds])


def asked_of(texts: list[str]) -> np.ndarray:
    return scores(texts)  # looked up when asked, so that a test may turn it


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> list[tuple[object, object]]:
    """A small function takes the place of the bundled model; says what was asked for."""
    asked: list[tuple[object, object]] = []

    def load(model: object, *, device: object, **_: object) -> slalom.FunctionClassifier:
        asked.append((model, device))
        return slalom.FunctionClassifier(
            lambda t: scores(t), labels=["bad", "good"], gives="logits"
        )

    monkeypatch.setattr("slalom.classifiers.load.load", load)
    return asked


class Run:
    """One call of the command in this process."""

    def __init__(self, capture: pytest.CaptureFixture[bytes]) -> None:
        self.capture = capture

    def __call__(self, *arguments: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as ended:
            cli.main(arguments)
        out, err = self.capture.readouterr()
        return int(ended.value.code or 0), out.decode(), err.decode()


@pytest.fixture
def run(
    capfdbinary: pytest.CaptureFixture[bytes],
    loaded: list[tuple[object, object]],
    monkeypatch: pytest.MonkeyPatch,
) -> Run:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO()))  # nothing is piped in
    return Run(capfdbinary)


def command(*arguments: str, encoding: str = "utf-8") -> tuple[int, str, str]:
    """The same in a process of its own."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONIOENCODING": encoding}
    line = [sys.executable, "-c", "from slalom.cli.main import main; main()", *arguments]
    done = subprocess.run(line, capture_output=True, env=environment, check=False, input=b"")
    return done.returncode, done.stdout.decode(encoding), done.stderr.decode(encoding)


def test_explain_shows_text_and_table(run: Run) -> None:
    status, out, err = run("explain", TEXT)
    assert (status, err) == (0, "")
    assert TEXT in out
    assert "The classifier says good (77 %)." in out
    assert any(line.startswith("great") for line in out.splitlines())


def test_options_reach_the_library(run: Run, loaded: list[tuple[object, object]]) -> None:
    arguments = "--model m --device cpu --method slalom-local --target bad --queries 40 --seed 3"
    status, out, _ = run("explain", TEXT, *arguments.split(), "--units", "word", "--json", "-")
    record = json.loads(out)
    assert status == 0
    assert loaded == [("m", "cpu")]
    assert record["method"] == "slalom-local"
    assert record["target"] == {"index": 0, "label": "bad"}
    assert record["seed"] == 3
    assert record["quality"]["n_queries"] <= 40


def test_a_target_may_be_a_number_or_all(run: Run) -> None:
    assert (
        json.loads(run("explain", TEXT, "--target", "0", "--json", "-")[1])["target"]["index"] == 0
    )
    assert "all classes" in run("explain", TEXT, "--target", "all")[1]


def test_the_text_comes_from_a_file_or_from_standard_input(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "text.txt"
    file.write_bytes(b"\xef\xbb\xbf" + TEXT.encode() + b"\n")
    assert json.loads(run("explain", "--file", str(file), "--json", "-")[1])["text"] == TEXT
    with file.open() as standard_input:
        monkeypatch.setattr("sys.stdin", standard_input)
        assert json.loads(run("explain", "--json", "-")[1])["text"] == TEXT


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"good\r\nfilm\r\n", "good\r\nfilm"),
        (b"good film\n", "good film"),
        (b"good film\n\n", "good film\n"),
        (b"good film \r", "good film \r"),
    ],
)
def test_only_the_last_line_end_of_a_file_is_left_out(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes, text: str
) -> None:
    file = tmp_path / "text.txt"
    file.write_bytes(content)
    assert json.loads(run("explain", "--file", str(file), "--json", "-")[1])["text"] == text
    with file.open() as standard_input:
        monkeypatch.setattr("sys.stdin", standard_input)
        assert json.loads(run("explain", "-", "--json", "-")[1])["text"] == text


def test_files_are_written_and_can_be_read_back(run: Run, tmp_path: Path) -> None:
    page, record = tmp_path / "x.html", tmp_path / "x.json"
    status, out, _ = run("explain", TEXT, "--html", str(page), "--json", str(record))
    assert status == 0
    assert "great" in out
    assert slalom.read(record).text == TEXT
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x.html", "x.json"]
    assert page.stat().st_mode & 0o777 == 0o666 & ~_umask()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_json_to_standard_output_is_all_there_is(run: Run) -> None:
    status, out, err = run("explain", TEXT, "--json", "-")
    assert (status, err) == (0, "")
    assert json.loads(out)["format"] == "slalom-explanation"
    assert out.count("\n") == 1


def test_scores_choose_the_columns(run: Run) -> None:
    out = run("explain", TEXT, "--scores", "value, importance")[1]
    heads = next(line for line in out.splitlines() if line.startswith("unit "))
    assert heads.split() == ["unit", "value", "importance"]


def test_methods_are_listed(run: Run) -> None:
    status, out, _ = run("methods")
    assert status == 0
    assert [row.split()[0] for row in out.splitlines() if row[0] != " "] == list(slalom.METHODS)
    assert all(len(line) <= 80 for line in out.splitlines())


def test_help_and_version(run: Run) -> None:
    assert run("--version") == (0, f"slalom {slalom.__version__}\n", "")
    assert "explain" in run()[1]
    assert "--too-long" in run("explain", "--help")[1]


def test_no_command_is_described_by_half_a_sentence(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    listed = run("--help")[1].partition("Commands:")[2]
    assert len(listed.strip().splitlines()) == len(cli.commands.commands)
    assert "..." not in listed


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["explain"], "give one text"),
        (["explain", TEXT, "--file", "x"], "give one text"),
        (["explain", ""], "the text is empty"),
        (["explain", TEXT, "--json", "x", "--html", "./x"], "name the same file"),
        (["explain", "--file", "x.csv", "--out", "y.parquet", "--words", "x.csv"], "the same file"),
        (["explain", "--file", "x.csv", "--out", "y.parquet", "--words", "y.parquet"], "same file"),
        (["explain", TEXT, "--json", "x.svg", "--plot", "x.svg"], "name the same file"),
        (["attribute", "x", "--model", "m", "--json", "x"], "--source and --json name the same"),
        (
            ["explain", TEXT, "--dry-run", "--max-error", "0.1"],
            "a dry run cannot estimate how many",
        ),
        (["explain", " \n "], "the text is empty"),
        (["explain", "bad \udcff byte"], "not UTF-8"),
        (["explain", "--file", "does/not/exist"], "cannot read does/not/exist"),
        (["explain", "--file", "/dev/zero"], "more than 16777216 bytes"),
        (["attribute", "--source", "/dev/zero", "--model", "m"], "more than 16777216 bytes"),
        (["explain", TEXT, "--method", "slalm"], "did you mean 'slalom'"),
        (["explain", TEXT, "--target", "ugly"], "expected one of bad, good, all"),
        (["explain", TEXT, "--target", "7"], "out of range"),
        (["explain", TEXT, "--units", "letter"], "'token', 'word', 'phrase', 'sentence'"),
        (["explain", TEXT, "--queries", "0"], "0 is not in the range x>=1"),
        (["explain", TEXT, "--queries", "many"], "'many' is not a valid integer"),
        (["explain", TEXT, "--queries", "3"], "or leave --queries out"),
        (["explain", TEXT, "--seed", "-1"], "-1 is not in the range x>=0"),
        (["explain", TEXT, "--scores", "valeu"], "did you mean 'value'"),
        (["explain", TEXT, "--scores", ""], "unknown score"),
        (["explain", TEXT, "--json", "-", "--html", "-"], "only one of"),
        (
            ["explain", TEXT, "--html", "no/such/folder/x.html"],
            "cannot write no/such/folder/x.html",
        ),
        (["explain", TEXT, "--html", "x.png"], "x.png is a picture"),
        (["explain", TEXT, "--json", "."], "it is a folder"),
        (["explain", TEXT, "--json", "x" * 300], "no file can have the name"),
        (["explain", TEXT, "--jsn", "x"], "No such option"),
        (["corpus", "x" * 300, "out"], "no file can have the name"),
        (["explian", TEXT], "No such command"),
    ],
)
def test_wrong_use_is_one_sentence_and_status_2(
    run: Run, arguments: list[str], sentence: str
) -> None:
    status, out, err = run(*arguments)
    assert status == 2
    assert out == ""
    assert err.startswith("slalom: ")
    assert sentence in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("command", ["explain", "compare"])
def test_a_text_without_quotes_is_met_with_advice(
    command: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        cli.main([command, "a", "good", "film"])
    assert "put quotes around a text of several words" in capfd.readouterr().err
    with pytest.raises(SystemExit):
        cli.main(["methods", "all"])
    assert "quotes" not in capfd.readouterr().err


def test_errors_speak_the_words_of_the_command_line(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["explain", "film " * 3000, "--too-long", "error"])
    err = capfd.readouterr().err
    assert "cut it with --too-long truncate or read it with --too-long windows" in err
    assert "too_long" not in err


def test_a_text_longer_than_the_model_reads_is_read_in_windows(
    capfd: pytest.CaptureFixture[str],
) -> None:
    words = "a great film with an awful end and a slow start in the old town".split()
    text = " ".join(words[at % 7 + at // 7 % 8] for at in range(1500))
    with pytest.raises(SystemExit) as ended:
        cli.main(["explain", text, "--queries", "40"])
    out = capfd.readouterr().out
    assert ended.value.code is None
    assert "Note: the text has 1500 words and signs, so its units are 300 runs of 5 words" in out
    assert "Note: read in 4 windows" in out
    assert "All 1500" not in out
    assert len(out) < len(text)  # an excerpt of the text


def test_the_name_of_a_file_is_explained_with_a_hint(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "review.txt"
    path.write_text(TEXT)
    code, out, err = run("explain", str(path))
    assert code == 0
    assert f"--file {path} reads it" in err
    assert "The classifier says" in out
    assert "reads it" not in run("explain", TEXT)[2]


def test_names_of_files_are_left_as_they_are(run: Run) -> None:
    assert "cannot read base_url.txt: " in run("explain", "--file", "base_url.txt")[2]


def test_what_cannot_be_written_is_found_before_the_work(
    run: Run, loaded: list[tuple[object, object]], tmp_path: Path
) -> None:
    status, _, err = run("explain", TEXT, "--html", str(tmp_path / "no" / "x.html"))
    assert status == 2
    assert "No such file or directory" in err
    assert loaded == []


def test_a_failed_write_leaves_nothing_behind(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "x.json"
    file.write_text("old")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    status, _, err = run("explain", TEXT, "--json", str(file))
    assert status == 2
    assert "No space left" in err
    assert [path.name for path in tmp_path.iterdir()] == ["x.json"]
    assert file.read_text() == "old"


def test_what_is_asked_besides_never_costs_the_explanation(run: Run) -> None:
    status, out, err = run("explain", TEXT, "--target", "all", "--pairs", "2")
    assert (status, err) == (
        2,
        "slalom: pairs belong to one class: explain one target, not all of them\n",
    )
    assert "unit" in out
    status, out, err = run("explain", TEXT, "--method", "lime", "--scores", "value")
    assert (status, "unit" in out) == (2, True)
    assert err == "slalom: unknown score 'value' of method 'lime': expected score\n"


def test_what_would_turn_it_is_told_beside_a_result_on_standard_output(run: Run) -> None:
    status, out, err = run("explain", TEXT, "--json", "-", "--counterfactual")
    assert status == 0
    assert json.loads(out)["text"] == TEXT
    assert "the prediction is" in err or "changes the prediction" in err


def test_what_would_turn_it_fits(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    _, out, _ = run("explain", TEXT, "--counterfactual")
    told = out[out.rindex("\n\n") :].strip().splitlines()
    assert len(told) > 1
    assert max(map(len, told)) <= 40


def test_a_link_to_itself_is_replaced_by_the_result(run: Run, tmp_path: Path) -> None:
    place = tmp_path / "loop.json"
    place.symlink_to(place)
    assert run("explain", "fine film", "--json", str(place))[0] == 0
    assert slalom.read(place).units == ("fine", "film")


def test_a_device_is_written_to_never_replaced(run: Run) -> None:
    status, _, _ = run("explain", TEXT, "--json", os.devnull)
    assert status == 0
    assert not Path(os.devnull).is_file()


def test_a_poor_fit_is_told_in_one_sentence(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def load(model: object, *, device: object, **_: object) -> slalom.FunctionClassifier:
        def noise(texts: list[str]) -> np.ndarray:
            rows = [np.random.default_rng(list(text.encode())).normal(size=2) for text in texts]
            return np.array(rows)

        return slalom.FunctionClassifier(noise, labels=["bad", "good"], gives="logits")

    monkeypatch.setattr("slalom.classifiers.load.load", load)
    status, out, err = run("explain", f"{TEXT} and one more after that , then {TEXT}")
    assert status == 0
    assert "Trust: low." in out
    assert err.startswith("slalom: ")
    assert err.count("\n") == 1


def test_errors_of_our_own_are_not_swallowed(monkeypatch: pytest.MonkeyPatch) -> None:
    def load(model: object, *, device: object, **_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("slalom.classifiers.load.load", load)
    with pytest.raises(ZeroDivisionError):
        cli.main(["explain", TEXT])


def test_an_interrupt_is_quiet(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def load(model: object, *, device: object, **_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("slalom.classifiers.load.load", load)
    status, out, err = run("explain", TEXT)
    assert (status, out, err.strip()) == (130, "", "")


def test_the_bundled_model_in_a_real_process_whose_output_has_no_unicode(tmp_path: Path) -> None:
    page, text = tmp_path / "x.html", tmp_path / "x.txt"
    text.write_text("An awful film 👎\n", encoding="utf-8")
    status, out, err = command(
        "explain", "--file", str(text), "--html", str(page), encoding="ascii"
    )
    assert (status, err) == (0, "")
    assert out.startswith("The classifier says negative")
    assert "awful film ?" in out  # no more is lost than cannot be shown
    assert "\x1b" not in out
    assert "👎" in page.read_text(encoding="utf-8")


def test_a_reader_that_leaves_early_is_no_error() -> None:
    line = f'"{sys.executable}" -c "from slalom.cli.main import main; main()" methods | true'
    done = subprocess.run(["bash", "-c", line], capture_output=True, check=False)
    assert done.stderr == b""


def test_a_stream_that_the_caller_closed_leads_nowhere() -> None:
    line = f'"{sys.executable}" -c "from slalom.cli.main import main; main()" explain >&- <&-'
    done = subprocess.run(["bash", "-c", line], capture_output=True, check=False, text=True)
    assert done.stderr.startswith("slalom: give one text")


def test_pairs_are_asked_and_listed(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    code, out, _ = run("explain", TEXT, "--target", "good", "--pairs", "2")
    assert code == 0
    assert "no two words act together" in out.splitlines()
    monkeypatch.setattr(f"{__name__}.scores", turned)
    _, out, _ = run("explain", TEXT, "--target", "good", "--pairs", "2")
    assert "“awful” × “end”: +3.00 (together +1.00, separately −2.00)" in out.splitlines()
    assert "more queries)" in out
    _, page, _ = run("explain", TEXT, "--target", "good", "--pairs", "2", "--html", "-")
    assert "<li>“awful” × “end”: +3.00 (together +1.00, separately −2.00)</li>" in page
    _, kept, _ = run("explain", TEXT, "--target", "good", "--pairs", "2", "--json", "-")
    assert json.loads(kept)["pairs"]["pairs"][0]["words"] == ["awful", "end"]


def test_phrases_are_units(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{__name__}.scores", turned)
    code, out, _ = run("explain", TEXT, "--target", "good", "--units", "phrase", "--json", "-")
    assert code == 0
    assert [unit.strip() for unit in json.loads(out)["units"]][-1] == "awful end"
    _, out, _ = run("explain", TEXT, "--units", "phrase", "--dry-run")
    assert "queries" in out


def turned(texts: list[str]) -> np.ndarray:
    """An awful end is good: three more than its words."""
    odds = scores_of_words(texts)
    odds[:, 1] += [3.0 * ("awful end" in text) for text in texts]
    return odds


scores_of_words = scores


@pytest.mark.parametrize(
    ("name", "start"), [("x.png", b"\x89PNG"), ("x.svg", b"<?xml"), ("x.pdf", b"%PDF")]
)
def test_a_picture_is_drawn(run: Run, tmp_path: Path, name: str, start: bytes) -> None:
    status, _, err = run("explain", TEXT, "--plot", str(tmp_path / name))
    assert (status, err) == (0, "")
    assert (tmp_path / name).read_bytes().startswith(start)


def test_a_picture_of_an_unknown_kind_is_refused_before_the_work(run: Run, tmp_path: Path) -> None:
    status, out, err = run("explain", TEXT, "--plot", str(tmp_path / "x.bmp"))
    assert (status, out) == (2, "")
    assert ".png, .svg or .pdf" in err


def test_scores_are_told_as_probabilities_on_request(run: Run) -> None:
    out = run("explain", TEXT, "--scale", "probability")[1]
    assert "Scores: change of the probability of" in out
    assert out != run("explain", TEXT)[1]
